//! The transaction that lists sessions by recency, in the order of the index of the heads.

use super::failure::IdbFailure;
use super::rows::{HEADS, HeadRow, RECENT_INDEX, RangeEnd, range, recent_key, recent_keys_end, recent_keys_start};
use super::transaction::{Script, ScriptStep};
use crate::clock::Ms;
use crate::error::Error;
use crate::store::{Page, RecencyQuery, SessionPosition, SessionRow};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::IdbTransaction;

/// The archived sessions, or the others: the index has one after the other.
#[derive(Clone)]
struct RecentScan {
    lower: RangeEnd,
    upper: RangeEnd,
    /// Number of sessions that were found.
    found: usize,
    ended: bool,
}

impl RecentScan {
    fn new(is_archived: bool, after: Option<&SessionPosition>) -> Self {
        let lower = after.map_or_else(
            || RangeEnd::at(recent_keys_start(is_archived)),
            |after| RangeEnd::beyond(recent_key(is_archived, after.updated_at.0, &JsValue::from_str(&after.id))),
        );
        Self { lower, upper: RangeEnd::at(recent_keys_end(is_archived)), found: 0, ended: false }
    }
}

/// Reads a page, and one session more.
pub(super) struct RecentScript {
    query: RecencyQuery,
    after: Option<SessionPosition>,
    scans: Vec<RecentScan>,
    /// The sessions that were found, with the time of the last change of each.
    sessions: Vec<(Ms, SessionRow)>,
}

impl RecentScript {
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub(super) fn new(query: &RecencyQuery) -> Result<Self, Error> {
        let after = query.after()?;
        let mut script = Self { query: query.clone(), after, scans: Vec::new(), sessions: Vec::new() };
        script.restart();
        Ok(script)
    }

    /// Returns the id after which sessions that are not in the index follow, `Some(None)` for all of them. None if the
    /// page has no place for any: they are the oldest.
    pub(super) fn unlisted_after(&self) -> Option<Option<String>> {
        let newer = self.sessions.iter().filter(|(updated_at, _)| *updated_at > 0).count();
        if !self.query.lists_unknown() || newer > self.query.page_size() {
            return None;
        }
        Some(self.after.as_ref().filter(|after| after.updated_at.0 == 0).map(|after| after.id.clone()))
    }

    /// Returns the page of what was found and of the sessions that are not in the index.
    pub(super) fn page(&mut self, unlisted: Vec<SessionRow>) -> Page<SessionRow> {
        let mut sessions = std::mem::take(&mut self.sessions);
        sessions.extend(unlisted.into_iter().map(|row| (0, row)));
        // In the order of UTF-16 code units, as IndexedDB has its keys.
        sessions.sort_by(|(at, one), (other_at, other)| {
            other_at.cmp(at).then_with(|| one.id.encode_utf16().cmp(other.id.encode_utf16()))
        });
        let limit = self.query.page_size();
        let is_last = sessions.len() <= limit;
        sessions.truncate(limit);
        let last = sessions.last().filter(|_| !is_last);
        let cursor = last.map(|(updated_at, row)| SessionPosition::new(*updated_at, &row.id).cursor());
        Page { items: sessions.into_iter().map(|(_, row)| row).collect(), cursor }
    }

    fn page_rows(&self) -> u32 {
        u32::try_from(self.query.page_size().saturating_add(1)).unwrap_or(u32::MAX)
    }

    /// Takes a part of the index, and returns where the next one begins.
    fn take(&mut self, rows: &Array) -> Result<(usize, Option<RangeEnd>), IdbFailure> {
        let (mut found, mut last) = (0, None);
        for value in rows.iter() {
            let mut row = HeadRow::default();
            let Some(key) = row.read(&value).then(|| HeadRow::recent_key_of(&value)).flatten() else { continue };
            let id = key.get(2).as_string();
            last = Some(RangeEnd::beyond(key.into()));
            let is_wanted = self.query.channel.is_none() || row.channel == self.query.channel;
            if let Some(id) = id.filter(|_| is_wanted && !row.deleted) {
                self.sessions.push((row.listed_by.updated_at, SessionRow { id, head: row.head() }));
                found += 1;
            }
        }
        Ok((found, last))
    }
}

impl Script for RecentScript {
    fn stores(&self) -> Vec<&'static str> {
        vec![HEADS]
    }

    fn restart(&mut self) {
        let wanted =
            [false, true].into_iter().filter(|archived| self.query.archived.is_none_or(|one| one == *archived));
        self.scans = wanted.map(|archived| RecentScan::new(archived, self.after.as_ref())).collect();
        self.sessions.clear();
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        let (count, limit) = (self.page_rows(), self.query.page_size());
        let mut scans = std::mem::take(&mut self.scans);
        for (scan, answer) in scans.iter_mut().filter(|scan| !scan.ended).zip(answers) {
            let rows: &Array = answer.unchecked_ref();
            let (found, next) = self.take(rows)?;
            scan.found += found;
            scan.ended = rows.length() < count || scan.found > limit || next.is_none();
            scan.lower = next.unwrap_or_else(|| scan.lower.clone());
        }
        self.scans = scans;
        let index = transaction.object_store(HEADS)?.index(RECENT_INDEX)?;
        let mut requests = Vec::new();
        for scan in self.scans.iter().filter(|scan| !scan.ended) {
            requests.push(index.get_all_with_key_and_limit(&range(&scan.lower, &scan.upper)?.into(), count)?);
        }
        Ok(if requests.is_empty() { ScriptStep::Done(0) } else { ScriptStep::Request(requests) })
    }
}
