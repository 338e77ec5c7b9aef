//! What a session must contain, and the invariants I1 to I4 of the stores' contract:
//!
//! - I1: what was acknowledged is readable, unchanged and in order, after the store was opened again.
//! - I2: no gap and no duplicate: numbers of messages, records, invocations and revisions.
//! - I3: a failed append changes nothing, or is there as a whole.
//! - I4: whatever is stored, nothing panics, and the next body is valid in every dialect.

use super::scripted_host::{Host, SEED, block_on};
use super::stores::SimulatedStore;
use rethread::history::History;
use rethread::message::{Dialect, Message, PartBody};
use rethread::store::{
    AuditQuery, AuditRow, LogStore, Query, Record, RecordKind, SessionLog, Table, open_record, open_session,
};
use rethread::tool::{InvocationStatus, ToolInvocation};
use std::collections::{BTreeMap, BTreeSet};

const DIALECTS: [Dialect; 5] =
    [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Mistral];

/// A session as it was acknowledged and observed.
pub struct ExpectedSession {
    id: String,
    /// Turns by the text of their question, with their number of messages.
    acknowledged: BTreeMap<String, usize>,
    /// Turns whose writer died before it got a reply.
    doubtful: BTreeMap<String, usize>,
    /// Turns that must not appear (any more).
    excluded: BTreeSet<String>,
    /// Call ids and results. Of two results of one call, the second is set aside.
    results: Vec<(String, String)>,
    /// The titles that the session may have: the known one, and those whose writer died before it got a reply.
    titles: Vec<Option<String>>,
    messages: Vec<Message>,
    invocations: Vec<ToolInvocation>,
    revision: u64,
}

impl ExpectedSession {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            acknowledged: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            excluded: BTreeSet::new(),
            results: Vec::new(),
            titles: vec![None],
            messages: Vec::new(),
            invocations: Vec::new(),
            revision: 0,
        }
    }

    pub fn acknowledge(&mut self, turn: &str, messages: usize) {
        self.acknowledged.insert(turn.to_owned(), messages);
    }

    pub fn doubt(&mut self, turn: &str, messages: usize) {
        self.doubtful.insert(turn.to_owned(), messages);
    }

    pub fn exclude(&mut self, turn: &str) {
        self.excluded.insert(turn.to_owned());
    }

    pub fn answer(&mut self, call: &str, content: &str) {
        self.results.push((call.to_owned(), content.to_owned()));
    }

    pub fn title(&mut self, title: &str, acknowledged: bool) {
        if acknowledged {
            self.titles.clear();
        }
        self.titles.push(Some(title.to_owned()));
    }

    /// The session was deleted: nothing of it may come back.
    pub fn delete(&mut self, store: &SimulatedStore) {
        let head = store.plan.paused(|| block_on(store.handle().head(&self.id)));
        assert!(head.unwrap().is_none(), "a deleted session has a head");
        let mut excluded = std::mem::take(&mut self.excluded);
        excluded.extend(self.acknowledged.keys().chain(self.doubtful.keys()).cloned());
        let revision = self.revision;
        *self = Self { excluded, revision, ..Self::new(&self.id) };
    }

    /// Opens the store past the simulation, and checks everything.
    pub fn observe(&mut self, store: &SimulatedStore) {
        let handle = store.handle();
        store.plan.paused(|| self.observe_handle(&*handle));
    }

    fn observe_handle(&mut self, store: &dyn LogStore) {
        let head = block_on(store.head(&self.id)).unwrap();
        let log = block_on(open_session(store, &self.id, SEED, 1)).unwrap();
        assert!(log.findings.is_empty(), "damaged: {:?}", log.findings);
        let revision = head.as_ref().map_or(0, |head| head.revision);
        assert!(revision >= self.revision || head.is_none(), "the revision fell from {} to {revision}", self.revision);
        self.revision = self.revision.max(revision);
        self.check_kept(&log);
        self.check_turns(log.history.messages());
        self.check_results(&log.history);
        check_numbers(store, &log);
        assert!(
            self.titles.contains(&log.head.title),
            "I1: the title is {:?}, not of {:?}",
            log.head.title,
            self.titles
        );
        self.titles = vec![log.head.title.clone()];
        self.messages = log.history.messages().to_vec();
        self.invocations = log.history.invocations().to_vec();
    }

    /// I1: what an earlier observation found is unchanged.
    fn check_kept(&self, log: &SessionLog) {
        let messages = log.history.messages();
        assert!(messages.starts_with(&self.messages), "I1: messages that were there are gone or others");
        let now = log.history.invocations();
        assert!(now.len() >= self.invocations.len(), "I1: invocations are gone");
        for (old, new) in self.invocations.iter().zip(now) {
            let answered = ToolInvocation { status: old.status, result: None, finished_at: None, ..new.clone() };
            let is_kept = old == new || old.status == InvocationStatus::Pending && answered.id == old.id;
            assert!(is_kept, "I1: an invocation changed from {old:?} to {new:?}");
        }
    }

    /// I1 to I3: every acknowledged turn is there once and whole, a doubtful one once and whole or not at all, and no
    /// other.
    fn check_turns(&mut self, messages: &[Message]) {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        let mut current: Option<(String, usize, usize)> = None;
        for message in messages {
            if let Some(question) = question(message) {
                self.close_turn(current.take(), &mut found);
                let wanted = self.acknowledged.get(&question).or_else(|| self.doubtful.get(&question)).copied();
                let wanted = wanted.unwrap_or_else(|| panic!("I2: nobody appended the turn {question:?}"));
                current = Some((question, wanted, 0));
            }
            if let Some((_, _, count)) = &mut current {
                *count += 1;
            }
        }
        self.close_turn(current, &mut found);
        for turn in self.acknowledged.keys() {
            assert!(found.contains_key(turn), "I1: the acknowledged turn {turn:?} is gone");
        }
        // A doubtful turn is acknowledged by being seen, and refused by not being seen.
        for (turn, messages) in std::mem::take(&mut self.doubtful) {
            if found.contains_key(&turn) {
                self.acknowledged.insert(turn, messages);
            } else {
                self.excluded.insert(turn);
            }
        }
    }

    fn close_turn(&self, turn: Option<(String, usize, usize)>, found: &mut BTreeMap<String, usize>) {
        let Some((question, wanted, count)) = turn else { return };
        assert_eq!(count, wanted, "I3: the turn {question:?} is not whole, or another stands in it");
        assert!(!self.excluded.contains(&question), "I3: the turn {question:?} was gone, and came back");
        assert!(found.insert(question.clone(), count).is_none(), "I2: the turn {question:?} is there twice");
    }

    fn check_results(&self, history: &History) {
        for (call, content) in &self.results {
            let content = format!("{content:?}");
            let invocations = history.invocations().iter().filter(|invocation| invocation.call_id == *call);
            let stored = invocations.filter_map(|invocation| invocation.result.as_ref());
            let kept = stored.filter(|result| result.content.as_str() == content).count();
            let set_aside = history.set_aside().iter().filter(|item| item.value.as_str() == content).count();
            assert_eq!(kept + set_aside, 1, "I1: the result {content} of {call:?}");
        }
    }

    /// I4: the body for each dialect keeps the rules of its provider.
    pub fn check_bodies(&self, store: &SimulatedStore) {
        let handle = store.handle();
        store.plan.paused(|| {
            let mut host = Host::open(&*handle, &self.id, "observer");
            for dialect in DIALECTS {
                host.render(dialect);
            }
        });
    }
}

/// The text of a user's message.
fn question(message: &Message) -> Option<String> {
    match message.parts.first().map(|part| &part.body) {
        Some(PartBody::Text(text)) if message.role == rethread::message::Role::User => Some(text.decode().into_owned()),
        _ => None,
    }
}

/// I2: the head agrees with its tables, and nothing is missing between numbers.
fn check_numbers(store: &dyn LogStore, log: &SessionLog) {
    let (head, id) = (&log.head, &log.head.id);
    let records = |table| -> Vec<Record> { block_on(store.read(id, Query::all(table))).unwrap() };
    let mut next = 0;
    for record in records(Table::Log) {
        assert_eq!(record.key, next, "I2: log records");
        next = record.last_key.unwrap_or(record.key) + 1;
    }
    assert_eq!(head.next_record, next, "I2: the head's next record");
    let messages = log.history.messages();
    assert!(messages.iter().map(|message| message.seq).eq(0..head.next_seq), "I2: numbers of messages");
    let turns: Vec<_> = messages.iter().map(|message| message.turn).collect();
    assert!(turns.is_sorted(), "I2: numbers of turns: {turns:?}");
    let invocations = log.history.invocations();
    assert!(
        invocations.iter().map(|invocation| invocation.number).eq(0..head.next_invocation),
        "I2: numbers of invocations"
    );
    let rows: Vec<AuditRow> = records(Table::ToolInvocations)
        .iter()
        .map(|record| open_record(RecordKind::Audit, &record.value).unwrap())
        .collect();
    assert_eq!(rows.len(), invocations.len(), "I2: rows of the audit table");
    for (row, invocation) in rows.iter().zip(invocations) {
        let of_row = (row.number, &row.id, &row.call_id, row.status, row.record);
        let of_log = (invocation.number, &invocation.id, &invocation.call_id, invocation.status, invocation.record);
        assert_eq!(of_row, of_log, "I2: a row of the audit table");
        let bytes = invocation.result.as_ref().map(|result| result.content.as_str().len() as u64);
        assert_eq!(row.result_bytes, bytes, "I2: the result of a row of the audit table");
    }
    let query = AuditQuery { session: Some(id.clone()), limit: rows.len() + 1, ..AuditQuery::default() };
    assert_eq!(block_on(store.invocations(&query)).unwrap().items.len(), rows.len(), "I2: the audit query");
    let entries: u64 = head.runs.iter().map(|run| run.entries).sum();
    assert_eq!(records(Table::Runs).len() as u64, entries, "I2: entries of journals");
}
