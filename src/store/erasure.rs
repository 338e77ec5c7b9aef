//! Erases messages of a session: physically, in every branch, by whole rounds (R59).
//!
//! An erasure is one guarded append, as every change: it writes the log records that have an erased message again
//! without it, under their keys, and removes the audit rows. If it would be too large it is several, each of some
//! messages. A store that writes values once keeps those of earlier appends; they are rewritten after it. What is left
//! is in the head meanwhile ([`UnfinishedErasure`]), so that the next open finishes what a kill cut off.
//!
//! The head counts erasures. Whoever has read the log before reads it again.

mod copies;
mod items;
mod plan;
mod scan;
mod side_items;

use super::append::commit;
use super::journal::check_lease;
use super::log::{Change, NoticeText, SessionLog};
use super::open::refresh;
use super::record::{RecordKind, seal_record};
use super::{Appended, LogStore};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::message::Message;
use crate::session_head::{SessionHead, UnfinishedErasure};
use copies::CopyEraser;
use items::ErasedItems;
use plan::{ErasurePlan, plan_erasure};
use scan::SessionScan;
use side_items::items_of_sides;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Conflicts after which an erasure fails with `busy`.
const MAX_CONFLICTS: u32 = 20;

/// The most records that one append of an erasure writes and removes: stores limit it.
const MAX_RECORDS: usize = 400;

/// The most bytes that one append of an erasure writes, unless one message needs more.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What is asked for.
pub struct Erasure<'a> {
    /// The unique name of the append.
    pub operation: &'a str,
    /// The time.
    pub at: Ms,
    /// The unfinished runs that the caller holds, and nobody else.
    pub owned_runs: &'a [String],
    /// The history revision and the number of branches of the session in which the messages were chosen; `None` if it does
    /// not matter what others have appended since.
    pub chosen_in: Option<(u64, u64)>,
    /// Makes the [notices](super::Batch::notice) of the appends.
    pub notice: Option<&'a NoticeText>,
    /// Returns true for a message that repeats those before it in a form of its provider: a compaction.
    pub has_compaction: fn(&Message) -> bool,
}

/// Something that may have a copy of what was erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// What it is, for programs.
    pub what: &'static str,
    /// Why it was not erased there, and what to do.
    pub why: String,
}

/// What was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasureReceipt {
    /// The ids of the messages, in the order in which they were named, and then of those whose compactions may repeat
    /// them.
    pub messages: Vec<String>,
    /// The number of calls, with their results and audit rows.
    pub invocations: u64,
    /// The number of records that were rewritten or removed, by table.
    pub records: BTreeMap<&'static str, u64>,
    /// By how many bytes the store's values became smaller.
    pub bytes: u64,
    /// What may still have a copy.
    pub unreached: Vec<Unreached>,
}

impl ErasureReceipt {
    fn add(&mut self, plan: &ErasurePlan, chosen: &[String]) {
        self.messages.extend_from_slice(chosen);
        self.invocations += plan.items.invocations.len() as u64;
        self.bytes += plan.bytes;
        for (table, count) in &plan.counts {
            *self.records.entry(table.as_str()).or_default() += count;
        }
        self.add_unreadable(plan.unreadable, "rows of branches");
    }

    /// Says that values stay since they cannot be read.
    fn add_unreadable(&mut self, count: u64, values: &str) {
        if count > 0 {
            let why = format!("{count} {values} cannot be read, and stay until the session is deleted");
            self.unreached.push(Unreached { what: "damaged_values", why });
        }
    }
}

/// Erases messages with their calls, results and audit rows, and the summaries that may be made of them; and so the
/// later answers that have a compaction of them. Ids that are repeated count once.
///
/// # Errors `not_found` if the session has no message of an id; `busy` while another tab or process holds a run, or if
/// others write all the time; `wrong_state` if a run is not over; `corrupt_record`, `unsupported_version` if a record
/// cannot be read or written; those of [`SessionLog::writable`]. Nothing is erased then. The store's own: some of it may
/// be erased, and the next open finishes that.
pub async fn erase_messages(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    ids: &[String],
    erasure: &Erasure<'_>,
) -> Result<ErasureReceipt> {
    let mut eraser = Eraser::new(store, cell, erasure);
    eraser.erase(ids, true).await?;
    Ok(eraser.receipt)
}

/// Returns the ids of the messages that [`erase_messages`] would erase: these, and those of the later answers that have a
/// compaction of them. Ids of no message are left out.
///
/// # Errors
/// `corrupt_record`, `unsupported_version` if a record cannot be read; the store's own.
pub async fn messages_erased_with(
    store: &dyn LogStore,
    cell: &RefCell<SessionLog>,
    ids: &[String],
    has_compaction: fn(&Message) -> bool,
) -> Result<Vec<String>> {
    let head = stored_head_of(&cell.borrow());
    let scan = SessionScan::read(store, &head.id, has_compaction).await?;
    let (mut found, _) = scan.find(ids);
    found.extend(scan.compactions_of(&found, &head));
    Ok(found)
}

/// Returns the head as it is stored, at the branch that was written last.
fn stored_head_of(log: &SessionLog) -> SessionHead {
    let mut head = log.head.clone();
    head.set_branch_state(log.stored_branch());
    head
}

/// Finishes an erasure that was cut off, if the session has one.
///
/// # Errors
/// Those of [`erase_messages`].
pub async fn finish_erasure(store: &dyn LogStore, cell: &RefCell<SessionLog>, erasure: &Erasure<'_>) -> Result<()> {
    let left = cell.borrow().head.erasing.clone();
    if left.is_finished() {
        return Ok(());
    }
    let mut eraser = Eraser::new(store, cell, erasure);
    let UnfinishedErasure { pending, messages, invocations, first_seq } = left;
    if !messages.is_empty() {
        let (messages, invocations) = (messages.into_iter().collect(), invocations.into_iter().collect());
        eraser.erase_copies(ErasedItems { messages, invocations, first_seq }).await?;
    }
    eraser.erase(&pending, false).await
}

/// An erasure under way.
struct Eraser<'a> {
    store: &'a dyn LogStore,
    cell: &'a RefCell<SessionLog>,
    erasure: &'a Erasure<'a>,
    receipt: ErasureReceipt,
    /// The number of appends that were tried.
    appends: u32,
    /// The ids of messages and calls that this erasure has removed wherever they were.
    done: BTreeSet<String>,
}

impl<'a> Eraser<'a> {
    fn new(store: &'a dyn LogStore, cell: &'a RefCell<SessionLog>, erasure: &'a Erasure<'a>) -> Self {
        Self { store, cell, erasure, receipt: ErasureReceipt::default(), appends: 0, done: BTreeSet::new() }
    }
}

impl Eraser<'_> {
    /// Erases messages, a part with each append. Those that are gone are left out, unless `is_strict` is set.
    async fn erase(&mut self, ids: &[String], is_strict: bool) -> Result<()> {
        let mut left = ids.to_vec();
        self.done.extend(ids.iter().cloned());
        let mut is_strict = is_strict;
        while !left.is_empty() {
            let items = self.append_part(&mut left, is_strict).await?;
            is_strict = false;
            if self.keeps_copies() && !items.messages.is_empty() {
                self.erase_copies(items).await?;
            }
        }
        self.end().await
    }

    fn keeps_copies(&self) -> bool {
        !self.store.capabilities().compare_and_append
    }

    /// Erases as many of the messages as one append may; the others stay in `left`.
    async fn append_part(&mut self, left: &mut Vec<String>, is_strict: bool) -> Result<ErasedItems> {
        let mut most = usize::MAX;
        for _ in 0..MAX_CONFLICTS {
            refresh(self.store, self.cell).await?;
            let (head, expected, at_least) = self.stored_head()?;
            self.check_runs(&head)?;
            if is_strict && self.erasure.chosen_in.is_some_and(|at| at != (head.history_revision, head.branch_count)) {
                let sentence = "another writer appended to the session; choose the messages again";
                return Err(Error::new(ErrorCode::Conflict, sentence));
            }
            let scan = SessionScan::read(self.store, &head.id, self.erasure.has_compaction).await?;
            let (mut found, unknown) = scan.find(left);
            if let Some(id) = unknown.filter(|_| is_strict) {
                return Err(unknown_message(&id));
            }
            found.extend(scan.compactions_of(&found, &head));
            self.done.extend(found.iter().cloned());
            left.clone_from(&found);
            if found.is_empty() {
                return Ok(ErasedItems::default());
            }
            let (mut plan, count) = self.plan_part(&scan, &head, (&found, most))?;
            plan.set_time(self.erasure.at);
            plan.batch.at_least = at_least;
            match self.append(&mut plan, expected).await {
                Ok(Some(_)) => {
                    let (chosen, rest) = found.split_at(count);
                    refresh(self.store, self.cell).await?;
                    if self.is_beside(&plan) {
                        continue;
                    }
                    self.receipt.add(&plan, chosen);
                    *left = rest.to_vec();
                    return Ok(plan.items);
                }
                Ok(None) => {}
                Err(error) if error.code == ErrorCode::TooLarge && count > 1 => most = count / 2,
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorCode::Busy, "other writers keep changing the session; try again in a moment"))
    }

    /// Returns true if another writer has appended after the same one, and history is the side that is not erased.
    fn is_beside(&self, plan: &ErasurePlan) -> bool {
        let log = self.cell.borrow();
        let has = |id: &String| log.history.message(id).is_some();
        log.head.erasures < plan.head.erasures || plan.items.messages.iter().any(has)
    }

    /// Plans the append for the first messages that fit, at most `most`. Returns their number.
    fn plan_part(
        &self,
        scan: &SessionScan,
        head: &SessionHead,
        (ids, most): (&[String], usize),
    ) -> Result<(ErasurePlan, usize)> {
        let mut count = ids.len().min(most);
        loop {
            let plan = plan_erasure(scan, head, ids.split_at(count), self.keeps_copies())?;
            let (records, bytes) = plan.size();
            if count <= 1 || records <= MAX_RECORDS && bytes <= MAX_BYTES {
                return Ok((plan, count));
            }
            count /= 2;
        }
    }

    /// Writes a planned append. Returns none if another writer was first.
    async fn append(&mut self, plan: &mut ErasurePlan, expected: u64) -> Result<Option<u64>> {
        let mut batch = std::mem::take(&mut plan.batch);
        batch.head = seal_record(RecordKind::Head, &plan.head);
        batch.describe(&plan.head);
        batch.notice = self.erasure.notice.and_then(|notice| notice(plan.head.history_revision));
        self.appends += 1;
        let operation = format!("{}.{}", self.erasure.operation, self.appends);
        let session = &plan.head.id;
        let appended = match self.store.append(session, expected, batch.clone(), &operation).await {
            Err(error) if error.code != ErrorCode::TooLarge => {
                // The reply may be lost: nobody could name the messages again.
                self.store.append(session, expected, batch, &operation).await.map_err(|_| error)?
            }
            appended => appended?,
        };
        Ok(match appended {
            Appended::Revision(revision) => Some(revision),
            Appended::Conflict(_) | Appended::Occupied => None,
        })
    }

    /// Returns the head as it is stored, at the branch that was written last, its revision, and the lowest one that the
    /// next append may have.
    fn stored_head(&self) -> Result<(SessionHead, u64, u64)> {
        let log = self.cell.borrow();
        log.writable()?;
        Ok((stored_head_of(&log), log.stored_revision, log.min_revision))
    }

    /// Checks that no run is under way, or may go on: its journal may repeat what its model was told.
    fn check_runs(&self, head: &SessionHead) -> Result<()> {
        head.runs.iter().try_for_each(|run| check_lease(run, self.erasure.at))?;
        if let Some(run) = head.pending_runs().next() {
            let message = format!(
                "run \"{}\" of the session is not over, and its journal may repeat the messages; resume it to its end or \
                 discard it, then erase them",
                run.id
            );
            return Err(Error::new(ErrorCode::WrongState, message));
        }
        if head.runs.iter().any(|run| !self.erasure.owned_runs.contains(&run.id)) {
            let message = "a run of the session began meanwhile; try again when it has ended";
            return Err(Error::new(ErrorCode::Busy, message));
        }
        Ok(())
    }

    /// Erases from what the store keeps of earlier appends.
    async fn erase_copies(&mut self, items: ErasedItems) -> Result<()> {
        self.done.extend(items.messages.iter().chain(&items.invocations).cloned());
        let (head, revision, _) = self.stored_head()?;
        let scan = SessionScan::read(self.store, &head.id, self.erasure.has_compaction).await?;
        let (adopted, mut seqs) = (scan.adopted(), scan.seqs());
        seqs.extend(scan.conflict_messages);
        let items_of_sides = items_of_sides(self.store, &head.id, (&items, &adopted)).await?;
        let eraser = CopyEraser::new((items, items_of_sides), seqs, (&head, revision));
        let erased = eraser.run(self.store, &head.id).await?;
        self.store.erase_overwritten(&head.id).await?;
        if erased.count > 0 {
            *self.receipt.records.entry("copies").or_default() += erased.count;
        }
        self.receipt.bytes += erased.bytes;
        self.receipt.add_unreadable(erased.unreadable, "values of earlier appends");
        Ok(())
    }

    /// Removes from the head what was left to do.
    async fn end(&mut self) -> Result<()> {
        if !self.keeps_copies() {
            let session = self.cell.borrow().head.id.clone();
            if let Err(error) = self.store.erase_overwritten(&session).await {
                let why = format!("what the store keeps of overwritten values was not removed: {}", error.message);
                self.receipt.unreached.push(Unreached { what: "overwritten_values", why });
            }
        }
        if self.cell.borrow().head.erasing.is_finished() {
            return Ok(());
        }
        let done = std::mem::take(&mut self.done);
        let change = Change {
            operation: format!("{}.end", self.erasure.operation),
            at: self.erasure.at,
            edit: Some(Box::new(move |head| head.erasing.remove(&done))),
            ..Change::default()
        };
        commit(self.store, self.cell, &change).await.map(drop)
    }
}

fn unknown_message(id: &str) -> Error {
    let message = format!(
        "the session has no message \"{id}\"; nothing was erased: `messages()` lists those of each branch. A message of \
         a run that is not over can be erased when it is"
    );
    Error::new(ErrorCode::NotFound, message).with(|details| {
        details.text("message", id);
    })
}
