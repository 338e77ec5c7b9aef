//! The directory of a session's branches: a record for each in the log, beside those of history.
//!
//! The head has the state of the branch that was written last. The record of any other branch has its state; that of
//! the branch in the head may be older. A log with one branch has no directory.

use super::record::{RecordKind, open_record, seal_record};
use super::{LogStore, MAX_KEY, PAGE_BYTES, Query, Record, Table};
use crate::branch_path::DIRECTORY;
use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::Alternatives;
use crate::session_head::BranchState;
use std::collections::BTreeMap;

/// The name of the main branch.
pub const MAIN_BRANCH: &str = "main";

/// The most forks of a session that is opened with the rows of all its branches.
const FEW_FORKS: u64 = 64;

/// A branch in the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchRow {
    /// Its path and its counters.
    pub state: BranchState,
    /// When it was forked; 0 for the main branch.
    pub created_at: Ms,
    /// The id of the last message that it shares; none if it shares nothing.
    pub forked_after: Option<String>,
    /// The id of the message in whose place the branch has another one: the next one of the branch that it was forked
    /// from. None if that branch ended there.
    pub beside: Option<String>,
    /// The id of the first message of its own; none if it was forked without one.
    pub first: Option<String>,
    /// The name of the append that it was born with.
    pub operation: String,
    /// The other side of a conflict whose content it was born with.
    pub adopted: Option<AdoptedSide>,
}
encode_fields!(struct BranchRow {
    0 => state,
    1 => created_at,
    2 => forked_after,
    3 => beside,
    4 => first,
    5 => operation,
    6 => adopted,
});

/// The other side of a conflict of which a branch has the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptedSide {
    /// The name of the side.
    pub side: String,
    /// The messages and calls that have other ids in the branch than on the side.
    pub renamed: Vec<RenamedId>,
}
encode_fields!(struct AdoptedSide {
    0 => side: required,
    1 => renamed: list,
});

/// A message or a call whose id on the side was another one's in the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenamedId {
    /// The id on the side.
    pub original: String,
    /// The id in the branch.
    pub id: String,
}
encode_fields!(struct RenamedId {
    0 => original: required,
    1 => id: required,
});

impl BranchRow {
    /// Returns the number of the branch.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.state.path.number
    }

    /// Returns the name that applications know the branch by.
    #[must_use]
    pub fn name(&self) -> String {
        branch_name(self.number())
    }

    /// Returns true if the branch was born with the content of this side.
    #[must_use]
    pub fn has_adopted(&self, side: &str) -> bool {
        self.adopted.as_ref().is_some_and(|adopted| adopted.side == side)
    }

    pub(super) fn record(&self) -> Record {
        let value = seal_record(RecordKind::Branch, self);
        Record { table: Table::Log, key: DIRECTORY + self.number(), last_key: None, index: None, value }
    }
}

/// Returns the name of a branch.
#[must_use]
pub fn branch_name(number: u64) -> String {
    if number == 0 { MAIN_BRANCH.to_owned() } else { format!("fork-{number}") }
}

/// Returns the number of the branch that has a name.
pub(super) fn branch_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("fork-").map_or(Some(0), |digits| digits.parse().ok())?;
    (branch_name(number) == name).then_some(number)
}

/// The branches of a session, by number. The main branch is among them once another one was written.
#[derive(Clone, Debug, Default)]
pub struct BranchDirectory {
    rows: BTreeMap<u64, BranchRow>,
    /// The highest number of a branch, whether its record can be read or not.
    highest: u64,
    /// Of each branch from which another one was forked: the `seq` of the first message that no other one shares.
    shared_until: BTreeMap<u64, u64>,
    /// True if rows were left out when the session was opened, or when it was read again: all but that of its branch.
    is_partial: bool,
}

impl BranchDirectory {
    /// Returns true if the session has the main branch only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the highest number of a branch, also of one whose record cannot be read.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns true if rows other than that of the session's branch may be missing.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the number of the first branch whose row may be another one in the store: it was not read, or lacks the
    /// first message.
    fn first_to_read(&self) -> u64 {
        if self.is_partial {
            return 0;
        }
        let incomplete = self.rows.values().find(|row| row.number() != 0 && row.first.is_none()).map(BranchRow::number);
        let next = if self.rows.is_empty() && self.highest == 0 { 0 } else { self.highest + 1 };
        incomplete.unwrap_or(next)
    }

    /// Iterates over the branches, oldest first.
    pub fn rows(&self) -> impl Iterator<Item = &BranchRow> {
        self.rows.values()
    }

    /// Returns the branch with this number.
    #[must_use]
    pub fn row(&self, number: u64) -> Option<&BranchRow> {
        self.rows.get(&number)
    }

    /// Returns the `seq` of the first message of a branch that no other branch shares; none if none was forked from it.
    pub(super) fn shared_until(&self, branch: u64) -> Option<u64> {
        self.shared_until.get(&branch).copied()
    }

    /// Adds the rows among log records, and reports those that cannot be read.
    pub(super) fn add(&mut self, id: &str, records: &[Record]) -> Report {
        let mut findings = Report::new();
        for record in records {
            let Some(number) = record.key.checked_sub(DIRECTORY) else { continue };
            self.highest = self.highest.max(number);
            match open_record::<BranchRow>(RecordKind::Branch, &record.value) {
                Ok(row) => self.insert(row),
                Err(error) => {
                    let name = branch_name(number);
                    let what = format!("branch \"{name}\" of session \"{id}\" cannot be read: {}", error.message);
                    findings.push(Finding::warning(FindingCode::Malformed, what).with_action(Action::Kept));
                }
            }
        }
        findings
    }

    /// Adds a branch, or replaces what is known of it.
    pub(super) fn insert(&mut self, row: BranchRow) {
        self.highest = self.highest.max(row.number());
        for (branch, until_seq) in row.state.path.shared_ends() {
            let known = self.shared_until.entry(branch).or_default();
            *known = (*known).max(until_seq);
        }
        self.rows.insert(row.number(), row);
    }

    /// Adds rows that are missing here, or lack a first message, and are known to this extent.
    pub(super) fn add_newer(&mut self, known: &Self) {
        for row in known.rows() {
            let read = self.rows.get(&row.number());
            if read.is_none_or(|read| read.first.is_none() && row.first.is_some()) {
                self.insert(row.clone());
            }
        }
    }

    /// Returns the row of a branch that the head leaves: with this state, and with what else is known of the branch.
    pub(super) fn row_with(&self, state: BranchState) -> BranchRow {
        let known = self.rows.get(&state.path.number).cloned().unwrap_or_default();
        BranchRow { state, ..known }
    }

    /// Returns the messages that stand at one place in several branches.
    #[must_use]
    pub fn alternatives(&self) -> Alternatives {
        let mut alternatives = Alternatives::default();
        for row in self.rows.values().filter(|row| row.number() != 0) {
            alternatives.add(row.forked_after.as_deref(), row.beside.as_deref(), row.first.as_deref());
        }
        alternatives
    }
}

/// Reads the directory, and reports records that cannot be read.
///
/// # Errors
/// The store's own.
pub(super) async fn read_directory(store: &dyn LogStore, id: &str) -> Result<(BranchDirectory, Report)> {
    let mut directory = BranchDirectory::default();
    let findings = read_rows(store, id, &mut directory, (DIRECTORY, MAX_KEY)).await?;
    Ok((directory, findings))
}

/// Reads what a session with `count` forks is opened with: few rows, or else only that of its branch `own`. A head has
/// the state of its branch, so that of the main branch is not needed.
///
/// # Errors
/// The store's own.
pub(super) async fn read_first_rows(
    store: &dyn LogStore,
    id: &str,
    (count, own): (u64, u64),
) -> Result<(BranchDirectory, Report)> {
    if count <= FEW_FORKS {
        return read_directory(store, id).await;
    }
    let mut directory = BranchDirectory { is_partial: true, ..BranchDirectory::default() };
    let findings = read_row(store, id, &mut directory, own).await?;
    Ok((directory, findings))
}

/// Reads the row of a fork. The main branch has one only while the head has another branch.
///
/// # Errors
/// The store's own.
pub(super) async fn read_row(
    store: &dyn LogStore,
    id: &str,
    directory: &mut BranchDirectory,
    number: u64,
) -> Result<Report> {
    if number == 0 {
        return Ok(Report::new());
    }
    read_rows(store, id, directory, (DIRECTORY + number, DIRECTORY + number)).await
}

/// Reads what is new in the directory of a session with `count` forks, and the row of the branch `own`, which any
/// append to it may have replaced. Other rows that were read keep older counters. Rows that were left out are read.
///
/// # Errors
/// The store's own.
pub(super) async fn read_new_rows(
    store: &dyn LogStore,
    id: &str,
    directory: &mut BranchDirectory,
    (count, own): (u64, Option<u64>),
) -> Result<Report> {
    let first = directory.first_to_read();
    let mut findings = Report::new();
    if let Some(own) = own.filter(|own| *own < first) {
        findings.extend(read_rows(store, id, directory, (DIRECTORY + own, DIRECTORY + own)).await?);
    }
    if first <= count {
        findings.extend(read_rows(store, id, directory, (DIRECTORY + first, MAX_KEY)).await?);
    }
    directory.is_partial = false;
    Ok(findings)
}

/// Reads the rows from a key to another.
pub(super) async fn read_rows(
    store: &dyn LogStore,
    id: &str,
    directory: &mut BranchDirectory,
    (mut from, to): (u64, u64),
) -> Result<Report> {
    let mut findings = Report::new();
    while from <= to {
        let query = Query { from, to, limit_bytes: PAGE_BYTES, ..Query::all(Table::Log) };
        let records = store.read(id, query).await?;
        let Some(last) = records.last() else { break };
        from = last.key + 1;
        findings.extend(directory.add(id, &records));
    }
    Ok(findings)
}
