//! Unfinished runs, found, resumed and given up; and the audit table's pages.

use super::convert::{page, text, whole};
use super::engine::Engine;
use super::platform::held_locks;
use super::run::{RunInner, own};
use super::run_request::setup;
use super::session::{SessionInner, new_operation};
use crate::error::{Code, Error, Result};
use crate::history::{Entry, LogRecord, write_payload};
use crate::json::ArrayWriter;
use crate::message::MessageStatus;
use crate::run::{Desk, recover, stopped_entries};
use crate::session::{RunEntry, Session as Head};
use crate::sorted::Sorted;
use crate::store::{
    AuditQuery, AuditRow, Change, JournalChange, JournalStep, Kind, MAX_KEY, Query, Table, open_record, read_journal,
};
use crate::tool::{InvocationStatus, ToolInvocation};
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Writes the unfinished runs of one session.
pub async fn pending_of(engine: &Rc<Engine>, session: &str, head: &Head, out: &mut ArrayWriter<'_>) -> Result<()> {
    if head.runs.is_empty() {
        return Ok(());
    }
    let held = held_locks().await;
    let now = engine.now();
    for run in &head.runs {
        let name = format!("rethread:{}:run:{}", engine.name, run.id);
        let live = engine.live.borrow().contains(&run.id)
            || held.as_ref().map_or(run.lease_until > now, |held| held.contains(&name));
        let state = if live {
            "live"
        } else if run.failed.is_some() {
            "failed"
        } else {
            "interrupted"
        };
        let recovered =
            read_journal(&*engine.store, session, run).await.and_then(|records| recover(&records, engine.seed));
        match recovered {
            Ok(recovered) => out.object(|out| recovered.write(out, session, state)),
            // One journal that cannot be read hides no other run.
            Err(error) if !matches!(error.code, Code::CorruptRecord | Code::UnsupportedVersion) => return Err(error),
            // It ended while this was read, and took its journal along.
            Err(_) if is_over(engine, session, &run.id).await? => {}
            Err(error) => {
                engine.warn([&crate::finding::Finding::warning(
                    "malformed",
                    format!("the journal of run {} cannot be read: {}", run.id, error.message),
                )]);
            }
        }
    }
    Ok(())
}

/// Whether the session's head, read again, has that run no more.
async fn is_over(engine: &Engine, session: &str, id: &str) -> Result<bool> {
    let Some(head) = engine.store.head(session).await? else { return Ok(true) };
    Ok(open_record::<Head>(Kind::Head, &head.value)?.run(id).is_none())
}

fn entry_of(session: &SessionInner, id: &str) -> Result<RunEntry> {
    session.log.borrow().head.run(id).cloned().ok_or_else(|| {
        Error::new(Code::NotFound, "there is no unfinished run of that id: it was finished or discarded")
    })
}

fn check_lease(session: &SessionInner, entry: &RunEntry, has_lock: bool) -> Result<()> {
    if !has_lock && entry.lease_until > session.engine.now() {
        return Err(Error::new(
            Code::Busy,
            "the run's owner was alive a moment ago; try again when its lease has run out",
        )
        .with(|details| {
            details.number("leaseUntil", entry.lease_until);
        }));
    }
    Ok(())
}

/// Takes a run over and goes on with it.
pub async fn resume(session: &Rc<SessionInner>, id: &str, request: &JsValue) -> Result<Rc<RunInner>> {
    session.enter(false).await?;
    let resumed = take_over(session, id, request).await;
    session.entered(resumed.as_ref().ok().cloned());
    let run = resumed?;
    run.pump().await;
    Ok(run)
}

async fn take_over(session: &Rc<SessionInner>, id: &str, request: &JsValue) -> Result<Rc<RunInner>> {
    let setup = setup(session, request, id.to_owned())?;
    setup.provider.check()?;
    session.refresh().await?;
    entry_of(session, id)?;
    let (lock, has_lock) = own(session, id).await?;
    // Read again: whoever owned it until now may have ended it.
    session.refresh().await?;
    let entry = entry_of(session, id)?;
    check_lease(session, &entry, has_lock)?;
    let recovered = recover(&read_journal(&*session.engine.store, &session.id, &entry).await?, session.engine.seed)?;
    session.engine.ids.draw();
    let revision = session.commit(journal_change(session, id, entry.epoch, JournalStep::Take)).await?;
    session.engine.changed(&session.id, revision, false);
    let now = session.engine.now();
    session.engine.ids.draw();
    let machine = {
        let log = session.log.borrow();
        let mut renderer = session.renderer.borrow_mut();
        let mut desk = Desk {
            history: &log.history,
            renderer: &mut renderer,
            now,
            ids: &session.engine.ids,
            seed: session.engine.seed,
        };
        crate::run::Run::resume(setup, recovered, &mut desk)?
    };
    Ok(RunInner::new(session, id.to_owned(), machine, entry.epoch + 1, request, lock, has_lock))
}

/// Gives a run up; `keep` stores the question and what there was of the answer.
pub async fn discard(session: &Rc<SessionInner>, id: &str, keep: bool) -> Result<()> {
    session.refresh().await?;
    entry_of(session, id)?;
    let (_lock, has_lock) = own(session, id).await?;
    session.refresh().await?;
    let entry = entry_of(session, id)?;
    check_lease(session, &entry, has_lock)?;
    let mut change = journal_change(session, id, entry.epoch, JournalStep::End);
    if keep {
        let recovered =
            recover(&read_journal(&*session.engine.store, &session.id, &entry).await?, session.engine.seed)?;
        let status = if entry.failed.is_some() { MessageStatus::Failed } else { MessageStatus::Stopped };
        change.entries = stopped_entries(&recovered.live, None, status);
    }
    let revision = session.commit(change).await?;
    session.engine.changed(&session.id, revision, false);
    Ok(())
}

fn journal_change(session: &SessionInner, run: &str, epoch: u32, step: JournalStep) -> Change {
    session.engine.ids.draw();
    Change {
        operation: new_operation(session),
        run: Some(run.to_owned()),
        at: session.engine.now(),
        journal: Some(JournalChange { run: run.to_owned(), epoch, lease_until: 0, step }),
        ..Change::default()
    }
}

/// A page of the audit table.
pub async fn audit_page(
    engine: &Rc<Engine>,
    query: &JsValue,
    session: Option<String>,
) -> std::result::Result<JsValue, JsValue> {
    let status = text(query, "status")?;
    if let Some(status) = &status
        && !InvocationStatus::ALL.iter().any(|known| known.as_str() == status)
    {
        return Err(Error::invalid(format!("\"{status}\" is no status of an invocation")).into());
    }
    let wanted = AuditQuery {
        session,
        tool: text(query, "tool")?,
        status,
        channel: text(query, "channel")?,
        since: whole(query, "since")?,
        until: whole(query, "until")?,
        cursor: text(query, "cursor")?,
        limit: usize::try_from(whole(query, "limit")?.unwrap_or(100).clamp(1, 10_000)).unwrap_or(100),
    };
    let message = text(query, "messageId")?;
    let payload = super::convert::flag(query, "payload");
    let rows = engine.store.invocations(&wanted).await?;
    let mut items = String::new();
    let mut array = ArrayWriter::new(&mut items);
    let mut read: Sorted<(String, u64), Option<LogRecord>> = Sorted::new();
    for (session, record) in &rows.items {
        let row: AuditRow = match open_record(Kind::Audit, &record.value) {
            Ok(row) => row,
            Err(error) => {
                engine.warn([&crate::finding::Finding::warning(
                    "malformed",
                    format!("audit row {} of session \"{session}\" cannot be read: {}", record.key, error.message),
                )]);
                continue;
            }
        };
        if message.as_ref().is_some_and(|message| *message != row.message_id) {
            continue;
        }
        let call = if payload { payload_of(engine, session, &row, &mut read).await? } else { None };
        array.object(|out| {
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
            if let Some(call) = &call {
                write_payload(out, call);
            }
        });
    }
    array.end();
    Ok(page(&items, rows.cursor.as_deref()))
}

/// The invocation of a row, from the log records that it points to.
async fn payload_of(
    engine: &Rc<Engine>,
    session: &str,
    row: &AuditRow,
    read: &mut Sorted<(String, u64), Option<LogRecord>>,
) -> Result<Option<ToolInvocation>> {
    let mut found: Option<ToolInvocation> = None;
    for key in [Some(row.record), row.result_record].into_iter().flatten() {
        let place = (session.to_owned(), key);
        if !read.contains(&place) {
            let records =
                engine.store.read(session, Query { from: key, to: key.min(MAX_KEY), ..Query::all(Table::Log) }).await?;
            let record = records.first().and_then(|record| open_record::<LogRecord>(Kind::Log, &record.value).ok());
            read.insert(place.clone(), record);
        }
        for entry in read.get(&place).into_iter().flatten().flat_map(|record| &record.entries) {
            match entry {
                Entry::Invocation(call) if call.id == row.id => found = Some(call.clone()),
                Entry::Result(result) if result.invocation == row.id => {
                    if let Some(call) = &mut found {
                        call.result.clone_from(&result.result);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(found)
}
