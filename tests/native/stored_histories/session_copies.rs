//! Copies of a session up to each of its messages, whatever was appended, forked and merged (R37).

use super::kept::check;
use super::{Ids, Piece, always};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use rethread::history::{JoinBase, Origin, join};
use rethread::id::Seed;
use rethread::json::JsonRef;
use rethread::provider::decode_body;
use rethread::store::{Change, MemoryStore, SessionArchive, SessionCopy, SessionLog, commit, open_fork, open_session};
use serde_json::Value;
use std::cell::RefCell;

use crate::scripted_host::block_on;

/// What is done with a session.
#[derive(Clone, Debug)]
pub enum Act {
    Append(Piece),
    /// What follows is in a branch that begins before a message.
    Fork(Index),
}

fn append(store: &MemoryStore, log: &RefCell<SessionLog>, (piece, ids, at): (&Piece, &Ids, usize)) {
    let text = Value::from(piece.list.clone()).to_string();
    let items = decode_body(piece.dialect, JsonRef::parse(&text).unwrap()).unwrap();
    let origin = Origin { at: piece.at, run_id: piece.run.then(|| format!("run{at}")), ..Origin::default() };
    let entries = join(JoinBase::history(&log.borrow().history), items, &origin, ids).entries;
    let change = Change { operation: format!("append {at}"), at: piece.at, entries, ..Change::default() };
    block_on(commit(store, log, &change)).unwrap();
}

fn played(store: &MemoryStore, acts: &[Act]) -> RefCell<SessionLog> {
    let mut log = RefCell::new(block_on(open_session(store, "s", Seed(1), 1)).unwrap());
    let ids = Ids::new(0);
    for (at, act) in acts.iter().enumerate() {
        match act {
            Act::Append(piece) => append(store, &log, (piece, &ids, at)),
            Act::Fork(place) => {
                let count = log.borrow().history.messages().len();
                if count == 0 {
                    continue;
                }
                let until_seq = log.borrow().history.messages()[place.index(count)].seq;
                let fork = block_on(open_fork(store, &log, until_seq)).unwrap();
                log = RefCell::new(fork);
                let change = Change { operation: format!("fork {at}"), at: 1, is_fork: true, ..Change::default() };
                block_on(commit(store, &log, &change)).unwrap();
            }
        }
    }
    log
}

/// Copies up to each message: the copy is the beginning of the branch, and every dialect takes what is rendered of it.
pub fn check_session_copies(acts: &[Act]) -> Result<(), TestCaseError> {
    let store = MemoryStore::default();
    let log = played(&store, acts);
    let log = log.borrow();
    if log.revision == 0 {
        return Ok(());
    }
    let (archive, _) = block_on(SessionArchive::read(&store, "s", Seed(1))).unwrap();
    for (at, message) in log.history.messages().iter().enumerate() {
        let copy = SessionCopy {
            branch: log.branch_number(),
            until: Some(message.id.clone()),
            operation: "copy".into(),
            at: 2_000_000,
            seed: Seed(2),
        };
        let id = format!("copy{at}");
        let part = archive.copy_branch(&copy).unwrap();
        block_on(part.restore(&store, &id, ("restore", None))).unwrap();
        let copied = block_on(open_session(&store, &id, Seed(3), 1)).unwrap();
        prop_assert!(copied.findings.is_empty(), "{:?}", copied.findings);
        prop_assert_eq!(copied.history.messages(), &log.history.messages()[..=at]);
        let is_copied = |message: &str| copied.history.message(message).is_some();
        let calls: Vec<_> = log.history.invocations().iter().filter(|call| is_copied(&call.message_id)).collect();
        prop_assert_eq!(copied.history.invocations().len(), calls.len());
        for (part, whole) in copied.history.invocations().iter().zip(calls) {
            prop_assert_eq!((&part.id, part.status, &part.result), (&whole.id, whole.status, &whole.result));
            prop_assert_eq!(
                (&part.call_id, &part.replay_id, &part.arguments),
                (&whole.call_id, &whole.replay_id, &whole.arguments)
            );
        }
        prop_assert_eq!((copied.head.next_seq, copied.head.turns), (message.seq + 1, message.turn + 1));
        check(&copied.history, None, &always(), 1_000_000)?;
    }
    Ok(())
}
