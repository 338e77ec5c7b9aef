//! The delta over histories that are built by hand.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::{Delta, OnLost, StateOwner, Unacknowledged};
use crate::error::ErrorCode;
use crate::history::{History, HistoryEntry};
use crate::id::Seed;
use crate::message::{AnswerMeta, Dialect, Message, Role, ServiceMark};
use crate::session_head::StoredOwner;

/// The id of a message, its run, and the `until` and the pending ids of its mark.
type TestMessage<'m> = (&'m str, &'m str, Option<(u64, &'m [&'m str])>);

const SEED: Seed = Seed(1);

const DIALECT: Dialect = Dialect::OpenAiResponses;

fn conversation() -> StateOwner {
    StateOwner::Conversation { id: "conv".into() }
}

/// A history of these messages.
fn history(messages: &[TestMessage<'_>]) -> History {
    let mut history = History::new(SEED);
    for (seq, (id, run, mark)) in messages.iter().enumerate() {
        let mut message = Message::from_text(if mark.is_some() { Role::Assistant } else { Role::User }, id);
        message.id = (*id).to_owned();
        message.seq = seq as u64;
        message.run_id = Some((*run).to_owned());
        message.dialect = Some(DIALECT);
        message.answer = mark.map(|(until, pending)| {
            let pending = pending.iter().map(|id| (*id).to_owned()).collect();
            let mark = ServiceMark { conversation: Some("conv".into()), until, pending, ..ServiceMark::default() };
            Box::new(AnswerMeta { service_mark: Some(Box::new(mark)), ..AnswerMeta::default() })
        });
        history.apply(HistoryEntry::Message(message));
    }
    history
}

/// The ids of the messages that are sent as a whole.
fn sent<'h>(history: &'h History, owner: &StateOwner) -> Vec<&'h str> {
    let delta = Delta::new(owner, DIALECT, history, None);
    let whole = delta.stored().into_iter().filter(|(_, sent)| *sent == Unacknowledged::Message);
    whole.map(|(index, _)| history.messages()[index].id.as_str()).collect()
}

#[test]
fn r23_what_another_writer_stored_meanwhile_is_sent_with_the_next_request() {
    // "b" was stored while the run "r2" waited for its answer.
    let stored = history(&[
        ("a", "r1", None),
        ("A", "r1", Some((0, &[]))),
        ("b", "other", None),
        ("c", "r2", None),
        ("C", "r2", Some((2, &[]))),
        ("d", "r3", None),
    ]);
    assert_eq!(sent(&stored, &conversation()), ["b", "d"]);
}

#[test]
fn r23_two_runs_of_two_tabs_write_to_one_conversation() {
    let stored = history(&[
        ("a", "r1", None),
        ("A", "r1", Some((0, &[]))),
        ("b", "r2", None),
        ("B", "r2", Some((0, &[]))),
        ("c", "r3", None),
    ]);
    assert_eq!(sent(&stored, &conversation()), ["c"]);
}

#[test]
fn r24_so_12_24_what_a_filter_held_back_stays_pending() {
    let stored = history(&[("a", "r1", None), ("b", "r1", None), ("A", "r1", Some((0, &["a"]))), ("c", "r2", None)]);
    assert_eq!(sent(&stored, &conversation()), ["a", "c"]);
}

#[test]
fn r23_what_another_runs_request_contained_of_a_live_turn_is_not_sent_again() {
    let stored = history(&[("a", "r1", None), ("b", "r2", None), ("B", "r2", Some((1, &[])))]);
    let live = history(&[("a", "r1", None), ("c", "r1", None)]);
    let owner = conversation();
    let sent = Delta::new(&owner, DIALECT, &stored, Some(&live)).live();
    assert_eq!(sent, [(0, Unacknowledged::Results), (1, Unacknowledged::Message)]);
}

#[test]
fn r22_marks_of_another_owner_acknowledge_nothing() {
    let stored = history(&[("a", "r1", None), ("A", "r1", Some((0, &[])))]);
    let other = StateOwner::Conversation { id: "other".into() };
    assert_eq!(sent(&stored, &other), ["a", "A"]);
    assert_eq!(sent(&stored, &StateOwner::response(None)), ["a", "A"]);
}

#[test]
fn r32_what_is_new_is_found_without_the_rest_of_the_history() {
    for turns in [10, 1_000, 3_000] {
        let ids: Vec<(String, String)> = (0..turns).map(|turn| (format!("u{turn}"), format!("a{turn}"))).collect();
        let mut messages: Vec<TestMessage<'_>> = Vec::new();
        for (turn, (question, answer)) in ids.iter().enumerate() {
            messages.push((question, question, None));
            messages.push((answer, question, Some((2 * turn as u64, &[]))));
        }
        let stored = history(&messages);
        let live = history(&[("q", "run", None)]);
        let owner = conversation();
        let delta = Delta::new(&owner, DIALECT, &stored, Some(&live));
        // The newest turn, whose calls may wait for results, and the live one: however long the history is.
        assert_eq!((delta.stored().len(), delta.live().len()), (2, 1), "{turns} turns");
    }
}

#[test]
fn r22_an_owner_survives_its_stored_form() {
    let response = |previous: Option<&str>| StateOwner::response(previous.map(Into::into));
    let failing = StateOwner::Response { previous: None, on_lost: OnLost::Fail };
    let begun = |on_lost: OnLost| StateOwner::BegunConversation { on_lost };
    let all =
        [StateOwner::Session, StateOwner::Caller, conversation(), response(None), response(Some("resp_1")), failing];
    for owner in all.into_iter().chain([begun(OnLost::Restart), begun(OnLost::Fail)]) {
        assert_eq!(StateOwner::from_stored(&owner.to_stored()).unwrap(), owner);
    }
    let newer = StoredOwner { kind: 9, ..StoredOwner::default() };
    assert_eq!(StateOwner::from_stored(&newer).unwrap_err().code, ErrorCode::UnsupportedVersion);
    for owner in [StateOwner::Session, StateOwner::Caller, conversation()] {
        let chain = StoredOwner { auto: true, ..owner.to_stored() };
        assert_eq!(StateOwner::from_stored(&chain).unwrap_err().code, ErrorCode::StateOwnerConflict);
    }
    for owner in [StateOwner::Session, StateOwner::Caller] {
        let named = StoredOwner { id: Some("conv".into()), ..owner.to_stored() };
        assert_eq!(StateOwner::from_stored(&named).unwrap_err().code, ErrorCode::StateOwnerConflict);
    }
}
