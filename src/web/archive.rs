//! Sessions as values: serialized, exported, restored, and cleared.

use super::option_reader::read_optional;
use super::options::RestoreOptions;
use super::rethread_inner::RethreadInner;
use super::session_inner::SessionInner;
use super::store_context::StoreContext;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{SessionArchive, clear_session};
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Reads a session with everything that is stored of it. `open` is the session if it is open: values of its state bag that are not stored
/// yet are stored first.
///
/// # Errors
/// `not_found` for a session that is not stored; `busy`; the store's own.
pub async fn read_archive(context: &StoreContext, open: Option<&SessionInner>, id: &str) -> Result<SessionArchive> {
    if let Some(session) = open.filter(|session| !session.state.borrow().is_empty()) {
        let turn = session.writes.enter();
        let _turn = turn.start().await;
        session.commit(session.new_change()).await?;
    }
    SessionArchive::read(&*context.store, id, context.seed).await
}

/// Stores an archive under its id, or the one in the options, and opens the session.
///
/// # Errors
/// `conflict` if a session of this id exists; the store's own.
pub async fn restore_archive(
    inner: &Rc<RethreadInner>,
    archive: SessionArchive,
    options: &JsValue,
) -> Result<Rc<SessionInner>> {
    let RestoreOptions { id } = read_optional("the options", options)?;
    let id = id.unwrap_or_else(|| archive.head.id.clone());
    if id.is_empty() {
        return Err(Error::invalid("a session's id is any text but the empty one"));
    }
    let context = &inner.context;
    let revision = archive.head.history_revision;
    let operation = super::platform::random_id();
    archive.restore(&*context.store, &id, (&operation, context.notice_of(&id))).await?;
    context.announce_append(&id, revision);
    inner.open_session(&id, &JsValue::UNDEFINED).await
}

/// Removes the messages, calls and unfinished runs of a session.
///
/// # Errors
/// `busy` while a run is under way, here or elsewhere; the store's own.
pub async fn clear(session: &SessionInner) -> Result<()> {
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    if session.has_live_run() {
        return Err(Error::new(ErrorCode::Busy, "a run of this session is under way here; cancel it first"));
    }
    let context = &session.context;
    let change = session.new_change();
    let notice = context.notice_of(&session.id);
    clear_session(&*context.store, &session.log, (&change.operation, change.at), notice).await?;
    session.drop_views_of_replaced_history();
    session.update_unfinished().await;
    session.update_hold();
    session.notify();
    context.announce_append(&session.id, session.revision());
    Ok(())
}
