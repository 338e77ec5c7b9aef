//! Kills, broken streams, refusals and polls in any order.

use super::*;
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// What happens to one model call: how many events the service has made since the last one, how many of those arrive,
/// and how the call ends.
#[derive(Clone, Debug)]
struct Move {
    pace: usize,
    events: usize,
    how: How,
    grows_old: bool,
}

fn a_move() -> impl Strategy<Value = Move> {
    let how = prop_oneof![
        3 => Just(How::Ends),
        3 => Just(How::Breaks),
        3 => Just(How::Kill),
        1 => Just(How::Unreachable),
        1 => prop_oneof![Just(429), Just(500), Just(503), Just(401)].prop_map(How::Refused),
    ];
    (0_usize..4, 0_usize..9, how, proptest::bool::weighted(0.1)).prop_map(|(pace, events, how, grows_old)| Move {
        pace,
        events,
        how,
        grows_old,
    })
}

fn play(moves: &[Move], stream: bool, owner: &StateOwner, rounds_of_tools: usize) {
    let store = MemoryStore::default();
    let kept = Service::new(rounds(rounds_of_tools)).with_conversation("conv_1");
    let mut service = BackgroundService::new(kept);
    let setup = || owned("run", stream, owner.clone());
    let mut host = Host::open(&store, "s", "process 0");
    host.start(setup(), "Go").unwrap();
    let (mut moves, mut ran) = (moves.iter(), Vec::new());
    for process in 1.. {
        let ended = drive(&mut host, &mut service, |service| {
            let Some(next) = moves.next() else {
                service.pace = 100;
                return ALL;
            };
            service.pace = next.pace;
            if next.grows_old {
                service.grow_old();
            }
            // The first event of an answer arrives: without a name nothing can be picked up.
            let is_post = !service.is_picking_up;
            let how = match next.how {
                How::Kill | How::Breaks if is_post && !stream => How::Ends,
                How::Refused(_) | How::Unreachable if is_post => How::Ends,
                how => how,
            };
            Fate { events: Some(next.events.max(usize::from(is_post))), how }
        });
        ran.append(&mut host.ran);
        match ended {
            Some(outcome) if outcome.status == RunStatus::Finished => break,
            // What failed is resumed, by the same process.
            Some(outcome) => {
                assert_eq!(outcome.error.unwrap().code, ErrorCode::ModelError);
                host.resume(setup()).unwrap();
            }
            None => {
                host = Host::open(&store, "s", &format!("process {process}"));
                host.resume(setup()).unwrap();
            }
        }
    }
    assert_eq!(service.posts, rounds_of_tools + 1, "an answer was asked for twice");
    assert_eq!(ran.len(), rounds_of_tools, "{ran:?}");
    let last = format!("assistant: done after {rounds_of_tools}");
    let shown = answers(&mut host);
    assert_eq!(shown.last(), Some(&last));
    assert_eq!(shown.iter().filter(|words| **words == "user: Go").count(), 1);
    let sent: Vec<String> = (0..service.posts).flat_map(|request| service.kept.sent(request)).collect();
    if *owner != StateOwner::Session {
        assert_eq!(sent.len(), 1 + rounds_of_tools, "{sent:?}");
    }
}

/// Fewer in wasm, which is slow without optimization.
const CASES: u32 = if cfg!(target_arch = "wasm32") { 100 } else { 3_000 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r18_r20_r27_r77_interleaved_kills_breaks_and_polls_ask_for_each_answer_once(
        moves in proptest::collection::vec(a_move(), 0..30),
        stream: bool, owner in 0_usize..3, rounds_of_tools in 0_usize..3,
    ) {
        let owners =
            [StateOwner::Session, StateOwner::Conversation { id: "conv_1".into() }, StateOwner::response(None)];
        play(&moves, stream, &owners[owner], rounds_of_tools);
    }
}
