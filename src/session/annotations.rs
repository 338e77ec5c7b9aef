//! Annotations of stored messages: labels, notes, a thumb (R57).

use super::open_session::OpenSession;
use crate::error::{Error, ErrorCode, Result};
use crate::history::Annotation;
use crate::store::{Change, commit, read_branch};
use std::cell::RefCell;

/// The most attempts while runs begin branches, or end without one.
const MAX_ATTEMPTS: u32 = 20;

/// Stores an annotation in the branch that is shown. What is sent, the session's revision, its place in the list and
/// what is unread stay as they are.
///
/// # Errors
/// `not_found` if the branch has no such message; the store's own.
pub async fn annotate(session: &OpenSession, annotation: &Annotation) -> Result<()> {
    session.context.host.draw_ids();
    for _ in 0..MAX_ATTEMPTS {
        let annotated = if session.log.borrow().is_unborn() {
            annotate_left_branch(session, annotation).await
        } else {
            let change = Change { annotations: vec![annotation.clone()], ..session.new_change() };
            session.commit(change).await.map(drop)
        };
        match annotated {
            // A run has begun a branch, or ended without one.
            Err(error) if error.code == ErrorCode::Conflict => {}
            outcome => {
                outcome?;
                session.notify();
                return Ok(());
            }
        }
    }
    let message = "runs kept beginning branches while the message was annotated; try again in a moment";
    Err(Error::new(ErrorCode::Busy, message))
}

/// Stores an annotation in the branch that was left for one which is not stored yet, and which takes it over.
async fn annotate_left_branch(session: &OpenSession, annotation: &Annotation) -> Result<()> {
    let store = &*session.context.store;
    let turn = session.commit_turn().await;
    session.context.check_open()?;
    if !session.log.borrow().is_unborn() {
        return Err(Error::new(ErrorCode::Conflict, "the run has ended, or stored its branch; annotate again"));
    }
    session.log.borrow().check_annotation(annotation)?;
    let left = session.forked_branch.get();
    let cell = RefCell::new(read_branch(store, &session.log, left).await?);
    let change = Change {
        annotations: vec![annotation.clone()],
        begins_branch: false,
        unshown_branch: Some(left),
        notice: session.context.notice_of(&session.id),
        ..session.new_change()
    };
    let revision = commit(store, &cell, &change).await?.revision;
    session.log.borrow_mut().carry_annotation(annotation.clone());
    drop(turn);
    session.context.announce_append(&session.id, revision);
    Ok(())
}
