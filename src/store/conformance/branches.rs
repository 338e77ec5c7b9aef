//! A check of sessions with branches: what is read of each, through one handle and through another.

use super::context::{StoreCheckContext, ensure};
use crate::error::{Error, ErrorCode, Result};
use crate::history::HistoryEntry;
use crate::id::Seed;
use crate::message::{Message, Role};
use crate::store::{Change, LogStore, SessionLog, commit, open_fork, open_session, open_session_tail, read_branch};
use std::cell::RefCell;

const SEED: Seed = Seed(1);

/// Size of the messages before the fork: together they are read by their end.
const TEXT_BYTES: usize = 20_000;

pub(super) async fn branches_share_what_is_before_them(context: &StoreCheckContext) -> Result<()> {
    let (session, store) = (&context.session("s"), &*context.store);
    let main = RefCell::new(open_session(store, session, SEED, 1).await?);
    for number in 0..40_u32 {
        append(store, &main, &format!("m{number}"), TEXT_BYTES).await?;
    }
    let fork = RefCell::new(open_fork(store, &main, 30).await?);
    append(store, &fork, "f30", 10).await?;
    append(store, &main, "m40", 10).await?;
    append(store, &fork, "f31", 10).await?;
    let nested = RefCell::new(open_fork(store, &fork, 31).await?);
    append(store, &nested, "n31", 10).await?;
    let older = [expected(&[("m", 0, 41)]), expected(&[("m", 0, 30), ("f", 30, 32)])];
    let newest = expected(&[("m", 0, 30), ("f", 30, 31), ("n", 31, 32)]);
    for handle in [&context.store, &context.other] {
        let opened = RefCell::new(open_session(&**handle, session, SEED, 1).await?);
        check(&opened.borrow(), &newest, "the branch that was written last")?;
        for (number, wanted) in (0_u64..).zip(&older) {
            check(&read_branch(&**handle, &opened, number).await?, wanted, "a branch of its number")?;
        }
        let tail = open_session_tail(&**handle, session, SEED, 1).await?;
        let last = tail.history.messages().last().map(|message| message.id.clone());
        ensure!(last.as_deref() == Some("n31"), "the end of a branch ends with {last:?}");
        let count = tail.history.messages().len();
        ensure!(tail.is_whole() || count > 3, "the end of a branch has {count} messages, all of its own");
    }
    Ok(())
}

async fn append(store: &dyn LogStore, log: &RefCell<SessionLog>, id: &str, bytes: usize) -> Result<()> {
    let message = Message { id: id.to_owned(), ..Message::from_text(Role::User, &"x".repeat(bytes)) };
    let change = Change {
        operation: format!("{}.{id}", log.borrow().head.id),
        entries: vec![HistoryEntry::Message(message)],
        ..Change::default()
    };
    commit(store, log, &change).await.map(drop)
}

/// Returns the ids of ranges of messages.
fn expected(ranges: &[(&'static str, u32, u32)]) -> Vec<String> {
    let mut ids = Vec::new();
    for (prefix, from, past) in ranges {
        ids.extend((*from..*past).map(|number| format!("{prefix}{number}")));
    }
    ids
}

fn check(log: &SessionLog, wanted: &[String], what: &str) -> Result<()> {
    let ids: Vec<_> = log.history.messages().iter().map(|message| message.id.clone()).collect();
    ensure!(ids == wanted, "{what} has {ids:?}, and should have {wanted:?}");
    ensure!(log.findings.is_empty(), "{what} was reported: {:?}", log.findings);
    Ok(())
}
