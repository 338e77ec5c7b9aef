//! Appends that conflict with other writers again and again.

use super::*;
use rethread::clock::Ms;
use std::cell::Cell;
use std::rc::Rc;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A change that notes the longest time that each of its pauses may take, in milliseconds.
fn pausing(log: &RefCell<SessionLog>, name: &str, pauses: &Rc<RefCell<Vec<Ms>>>) -> Change {
    let pauses = pauses.clone();
    let pause = move |longest| -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        pauses.borrow_mut().push(longest);
        Box::pin(async {})
    };
    Change { pause: Some(Box::new(pause)), ..change(log, name, &said(name)) }
}

#[test]
fn r15_the_pauses_after_conflicts_grow_up_to_a_limit() {
    let spy = Spy::new(&three_turns());
    let log = open(&spy, "s");
    let pauses = Rc::default();
    written(commit(&spy, &log, &pausing(&log, "d", &pauses))).unwrap();
    assert!(pauses.borrow().is_empty());
    spy.faults.replace(vec![Some(Fault::Conflicts)]);
    written(commit(&spy, &log, &pausing(&log, "e", &pauses))).unwrap();
    assert!(pauses.borrow().is_empty(), "one conflict is no reason to wait");
    spy.faults.replace(vec![Some(Fault::Conflicts); 9]);
    written(commit(&spy, &log, &pausing(&log, "f", &pauses))).unwrap();
    assert_eq!(*pauses.borrow(), [2, 4, 8, 16, 32, 64, 64, 64]);
    assert_eq!(texts(&log), ["a", "b", "c", "d", "e", "f"]);

    spy.faults.replace(vec![Some(Fault::Conflicts); 200]);
    let reads = spy.heads.get();
    let error = written(commit(&spy, &log, &pausing(&log, "g", &pauses))).unwrap_err();
    assert_eq!((error.code, spy.heads.get() - reads), (ErrorCode::Busy, 200));
    assert_eq!(texts(&log), ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn r15_what_is_written_in_a_pause_is_read_before_the_next_attempt() {
    let spy = Rc::new(Spy::new(&three_turns()));
    let log = open(&*spy, "s");
    let is_first = Cell::new(true);
    let other = spy.data.clone();
    let pause = move |_| -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        if is_first.replace(false) {
            append(&other, &open(&other, "s"), "in the pause", &said("in the pause")).unwrap();
        }
        Box::pin(async {})
    };
    let change = Change { pause: Some(Box::new(pause)), ..change(&log, "d", &said("d")) };
    spy.faults.replace(vec![Some(Fault::Conflicts); 2]);
    let appends = spy.appends.get();
    written(commit(&*spy, &log, &change)).unwrap();
    assert_eq!(spy.appends.get() - appends, 3);
    assert_eq!(texts(&log), ["a", "b", "c", "in the pause", "d"]);
}
