//! Wraps the keys of all sessions anew after the application's key was replaced (R80).

use super::context::StoreContext;
use super::open_store::OpenStore;
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::finding::{Finding, FindingCode};
use crate::store::rotate_key;
use std::rc::Rc;

/// Number of sessions that are listed at once: fewer than those whose keys an encrypted store remembers.
const SESSIONS_PER_READ: usize = 50;

/// Time after the opening before keys are wrapped anew: what the page shows first is read first.
const BEGIN_MS: Ms = 1_000;

/// What a rotation did.
#[derive(Default)]
pub struct Rotated {
    /// The number of sessions whose key was wrapped anew.
    pub rotated: u64,
    /// The ids of the sessions that could not be read or written, and why.
    pub failed: Vec<(String, Error)>,
}

/// Wraps the key of each session with the current key of the application, where a replaced one had wrapped it. When
/// none failed, the replaced keys are no longer needed.
///
/// # Errors `closed`; the store's own, while it lists the sessions. What fails in one session is part of the result.
pub async fn rotate_keys(context: &StoreContext) -> Result<Rotated> {
    let (mut done, mut cursor) = (Rotated::default(), None);
    loop {
        let page = context.store.sessions(cursor.as_deref(), SESSIONS_PER_READ, None).await?;
        cursor = page.cursor;
        // Of one that is damaged, or that others have changed since, nothing is known.
        let due = page.items.into_iter().filter(|row| context.store.has_replaced_key(&row.id) != Some(false));
        for id in due.map(|row| row.id).collect::<Vec<_>>() {
            context.check_open()?;
            match rotate_key(&*context.store, &id, &context.host.random_id()).await {
                Ok(is_rotated) => done.rotated += u64::from(is_rotated),
                Err(error) => done.failed.push((id, error)),
            }
        }
        if cursor.is_none() {
            break;
        }
    }
    // It may have a key that a replaced one wraps; the next search stores it again.
    if done.rotated > 0
        && let Some(store) = context.store.search_index_store()
    {
        store.remove_index().await?;
        context.search_index.borrow_mut().set_unstored();
    }
    Ok(done)
}

/// Begins a rotation that nobody awaits, some time after the store was opened. What fails is reported as a warning.
/// Not in a store that does not exclude a second writer: there, a write that nobody asked for may conflict with a turn.
pub fn rotate_keys_soon(open: &Rc<OpenStore>) {
    if !open.context.store.capabilities().compare_and_append {
        return;
    }
    let (waiting, timer) = (Rc::downgrade(open), open.context.host.sleep(BEGIN_MS));
    open.context.spawn(async move {
        timer.await;
        let Some(open) = waiting.upgrade() else { return };
        let rotated = rotate_keys(&open.context).await;
        if open.context.check_open().is_err() {
            return;
        }
        let what = match rotated {
            Ok(Rotated { failed, .. }) => match failed.first() {
                None => return,
                Some((id, error)) => format!("of {} sessions, \"{id}\" for one: {}", failed.len(), error.message),
            },
            Err(error) => format!("of all sessions: {}", error.message),
        };
        let what =
            format!("the keys could not be wrapped anew {what}; keep the keys in `previous`, and call `rotateKeys`");
        open.context.warn(&[Finding::warning(FindingCode::ReadFailed, what)]);
    });
}
