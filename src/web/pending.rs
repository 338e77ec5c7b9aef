//! Unfinished runs, found, resumed and given up; and the audit table's pages.

use super::convert::{page, parsed};
use super::option_reader::read_optional;
use super::options::InvocationQuery;
use super::payloads::AuditPayloads;
use super::platform::held_locks;
use super::promise::Work;
use super::run::{RunInner, RunLock, acquire_run_lock, lock_name};
use super::run_request::RunOptions;
use super::session::SessionInner;
use super::store_context::StoreContext;
use crate::error::{Code, Error, Result};
use crate::history::write_payload;
use crate::json::{ArrayWriter, ObjectWriter};
use crate::message::MessageStatus;
use crate::run::{RecoveredRun, recover, stopped_entries};
use crate::session_head::{RunEntry, SessionHead};
use crate::store::{
    AuditQuery, AuditRow, Change, JournalChange, JournalStep, Record, RecordKind, open_record, read_journal,
};
use crate::tool::ToolInvocation;
use js_sys::Promise;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// The unfinished runs of these sessions.
pub fn pending_runs(context: &Rc<StoreContext>, sessions: Vec<(String, SessionHead)>) -> Work<'_, Result<JsValue>> {
    Box::pin(async move {
        let mut items = String::new();
        let mut array = ArrayWriter::new(&mut items);
        for (session, head) in sessions {
            if !head.runs.is_empty() {
                pending_of(context, &session, &head, &mut array).await?;
            }
        }
        array.end();
        Ok(parsed(&items))
    })
}

async fn pending_of(
    context: &StoreContext,
    session: &str,
    head: &SessionHead,
    out: &mut ArrayWriter<'_>,
) -> Result<()> {
    let held = held_locks().await;
    let now = context.now();
    for run in head.pending_runs() {
        let name = lock_name(context, session, &run.id);
        let live = context.live.borrow().contains(&name)
            || held.as_ref().map_or(run.lease_until > now, |held| held.contains(&name));
        let state = if live {
            "live"
        } else if run.failed.is_some() {
            "failed"
        } else {
            "interrupted"
        };
        match journal_of(context, session, run).await {
            Ok(recovered) => out.object(|out| recovered.write(out, session, state)),
            // One journal that cannot be read hides no other run.
            Err(error) if !matches!(error.code, Code::CorruptRecord | Code::UnsupportedVersion) => return Err(error),
            // It ended while this was read, and took its journal along.
            Err(_) if is_over(context, session, &run.id).await? => {}
            Err(error) => {
                context.report_unreadable(format!("the journal of run {} cannot be read: {}", run.id, error.message))
            }
        }
    }
    Ok(())
}

/// Reads an unfinished run.
pub fn journal_of<'a>(
    context: &'a StoreContext,
    session: &'a str,
    run: &'a RunEntry,
) -> Work<'a, Result<RecoveredRun>> {
    Box::pin(async move { recover(&read_journal(&*context.store, session, run).await?, context.seed) })
}

/// Whether the session's head, read again, has that run no more.
pub async fn is_over(context: &StoreContext, session: &str, id: &str) -> Result<bool> {
    let Some(stored) = context.store.head(session).await? else { return Ok(true) };
    Ok(context.head(session, &stored).await?.run(id).is_none())
}

fn entry_of(session: &SessionInner, id: &str) -> Result<RunEntry> {
    session.log.borrow().head.run(id).cloned().ok_or_else(|| {
        Error::new(Code::NotFound, "there is no unfinished run of that id: it was finished or discarded")
    })
}

/// An unfinished run that nobody owns any more but who claims it.
struct LockedRun {
    entry: RunEntry,
    lock: Option<RunLock>,
}

fn lock_run<'a>(session: &'a SessionInner, id: &'a str) -> Work<'a, Result<LockedRun>> {
    Box::pin(async move {
        session.refresh().await?;
        entry_of(session, id)?;
        let lock = acquire_run_lock(session, id).await?;
        // Read again: whoever owned it until now may have ended it.
        session.refresh().await?;
        let entry = entry_of(session, id)?;
        if lock.is_none() && entry.lease_until > session.context.now() {
            return Err(Error::new(
                Code::Busy,
                "the run's owner was alive a moment ago; try again when its lease has run out",
            )
            .with(|details| {
                details.number("leaseUntil", entry.lease_until);
            }));
        }
        Ok(LockedRun { entry, lock })
    })
}

/// Takes a run over, to go on with it.
pub async fn resume_run(session: &Rc<SessionInner>, id: &str, options: RunOptions) -> Result<Rc<RunInner>> {
    let setup = options.into_setup(session, id.to_owned())?;
    setup.provider.check()?;
    let LockedRun { entry, lock } = lock_run(session, id).await?;
    let recovered = journal_of(&session.context, &session.id, &entry).await?;
    recovered.check_credentials(&setup.provider)?;
    let revision = session.commit(journal_change(session, &entry, JournalStep::Take)).await?;
    session.context.announce_change(&session.id, revision, false);
    session.notify();
    let machine = crate::run::Run::resume(setup, recovered, &mut session.borrow_for_step().run_context())?;
    Ok(RunInner::new(session, entry.id, machine, entry.epoch + 1, lock))
}

/// Gives a run up; `keep` stores the question and what there was of the answer.
pub async fn discard(session: &Rc<SessionInner>, id: &str, keep: bool) -> Result<()> {
    if !keep && session.forget_unwritten(id) {
        return Ok(());
    }
    let LockedRun { entry, lock: _lock } = lock_run(session, id).await?;
    let mut change = journal_change(session, &entry, JournalStep::End);
    if keep {
        let recovered = journal_of(&session.context, &session.id, &entry).await?;
        let failed = entry.failed.is_some() && !entry.is_stopped();
        let status = if failed { MessageStatus::Failed } else { MessageStatus::Stopped };
        change.entries = stopped_entries(&recovered.live, recovered.partial, status);
    }
    let revision = session.commit(change).await?;
    session.context.announce_change(&session.id, revision, false);
    Ok(())
}

fn journal_change(session: &SessionInner, entry: &RunEntry, step: JournalStep) -> Change {
    session.context.ids.draw();
    let run = entry.id.clone();
    let mut change = session.change();
    change.run = Some(run.clone());
    change.journal = Some(JournalChange { run, epoch: entry.epoch, lease_until: 0, step });
    change
}

/// A page of the audit table: of one session, or of the one that the query names, if it does.
pub fn audit_page(context: &Rc<StoreContext>, query: JsValue, session: Option<String>) -> Promise {
    let shared = context.clone();
    context.promise(Box::pin(async move {
        let mut query: InvocationQuery = read_optional("the query", &query)?;
        let message = query.message_id.take();
        let payload = query.payload.unwrap_or(false);
        let wanted = audit_query(query, session);
        let found = shared.store.invocations(&wanted).await?;
        let rows = audit_rows(&shared, &found.items, message.as_deref());
        // Taken, not borrowed: another query may come while this one reads.
        let mut payloads = if payload { shared.payloads.take() } else { AuditPayloads::default() };
        if payload {
            payloads.read(&shared, &rows).await?;
        }
        let mut items = String::new();
        let mut array = ArrayWriter::new(&mut items);
        for (session, row) in &rows {
            array.object(|out| write_row(out, session, row, payloads.call(session, row).as_ref()));
        }
        array.end();
        if payload && found.cursor.is_some() {
            payloads.keep_for_next_page();
            shared.payloads.replace(payloads);
        }
        Ok(page(&items, found.cursor.as_deref()))
    }))
}

/// The rows that can be read, of that message or of any.
fn audit_rows<'r>(
    context: &StoreContext,
    found: &'r [(String, Record)],
    message: Option<&str>,
) -> Vec<(&'r str, AuditRow)> {
    let mut rows = Vec::new();
    for (session, record) in found {
        match open_record::<AuditRow>(RecordKind::Audit, &record.value) {
            Ok(row) => {
                if message.is_none_or(|message| message == row.message_id) {
                    rows.push((session.as_str(), row));
                }
            }
            Err(error) => context.report_unreadable(format!(
                "audit row {} of session \"{session}\" cannot be read: {}",
                record.key, error.message
            )),
        }
    }
    rows
}

/// Maximum number of items of a page.
pub const MAX_PAGE: u64 = 10_000;

fn audit_query(query: InvocationQuery, session: Option<String>) -> AuditQuery {
    let limit = query.limit.unwrap_or(100).clamp(1, MAX_PAGE);
    AuditQuery {
        session: session.or(query.session),
        status: query.status.map(|option| option.0.as_str().to_owned()),
        tool: query.tool,
        channel: query.channel,
        since: query.since,
        until: query.until,
        cursor: query.cursor,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    }
}

fn write_row(out: &mut ObjectWriter<'_>, session: &str, row: &AuditRow, call: Option<&ToolInvocation>) {
    out.text("id", &row.id)
        .text("sessionId", session)
        .text("messageId", &row.message_id)
        .number("turn", u64::from(row.turn))
        .text("callId", &row.call_id)
        .text("name", &row.name)
        .number("roundIndex", u64::from(row.round))
        .number("sequenceIndex", u64::from(row.place))
        .text("status", row.status.as_str())
        .number_or_null("startedAt", row.started_at)
        .number_or_null("finishedAt", row.finished_at)
        .bool("redacted", row.redacted)
        .text_or_null("channel", row.channel.as_deref());
    if let Some(call) = call {
        write_payload(out, call);
    }
}
