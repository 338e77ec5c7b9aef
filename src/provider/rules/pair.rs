//! The common pairing: which result answers which call, and which id both end up with. Knows no dialect.

use crate::finding::{Action, Finding, Report};
use crate::id::{IdMap, Seed};
use crate::sorted::Sorted;
use crate::sorted::in_order;
use std::collections::VecDeque;

/// A call of the body.
#[derive(Debug)]
pub(crate) struct Call {
    /// The calls that must be answered together: those of one message, or of one run of messages.
    pub group: usize,
    /// What a result names it by: its id, or where a dialect goes without ids, what stands for one.
    pub key: Option<String>,
    /// The id as it is written, where that is a string or number.
    pub id: Option<String>,
    /// The id is a string that is not empty.
    pub sound: bool,
    pub path: String,
    /// Its own text, from which a missing id is derived.
    pub raw: String,
    /// The result it ends up with.
    pub answer: Option<usize>,
    /// The id it ends up with.
    pub new_id: String,
    /// The provider wants a result for it.
    pub wants: bool,
    pub omitted: bool,
    /// Its place among the body's calls and results.
    pub order: usize,
    /// The tool, where a dialect without ids needs it.
    pub label: String,
}

/// A result of the body.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// The group in whose reply it stands, if it stands where a reply belongs.
    pub near: Option<usize>,
    pub key: Option<String>,
    pub id: Option<String>,
    pub sound: bool,
    pub path: String,
    /// Its content, to tell a double from another result.
    pub content: &'a str,
    /// Written by a repair, not by a tool: a real one goes before it.
    pub filler: bool,
    pub fate: Fate,
    /// Its place among the body's calls and results.
    pub order: usize,
    /// The tool, where a dialect without ids needs it.
    pub label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Orphan,
    Duplicate(usize),
    Answers(usize),
    /// Its call is not in the body, and need not be: the server holds it.
    Held,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Call(usize),
    Answer(usize),
}

/// The calls and results of a body, in its order.
#[derive(Debug, Default)]
pub(crate) struct Pairs<'a> {
    pub calls: Vec<Call>,
    pub answers: Vec<Answer<'a>>,
    pub events: Vec<Event>,
}

impl<'a> Pairs<'a> {
    pub fn call(&mut self, mut call: Call) -> usize {
        call.order = self.events.len();
        self.events.push(Event::Call(self.calls.len()));
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub fn answer(&mut self, mut answer: Answer<'a>) -> usize {
        answer.order = self.events.len();
        self.events.push(Event::Answer(self.answers.len()));
        self.answers.push(answer);
        self.answers.len() - 1
    }

    /// The calls of each group.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (c, call) in self.calls.iter().enumerate() {
            if groups.len() <= call.group {
                groups.resize(call.group + 1, Vec::new());
            }
            if let Some(group) = groups.get_mut(call.group) {
                group.push(c);
            }
        }
        groups
    }

    /// The call that a result answers.
    pub fn answered_by(&self, a: usize) -> Option<&Call> {
        match self.answers.get(a)?.fate {
            Fate::Answers(c) => self.calls.get(c),
            _ => None,
        }
    }

    /// Finds each call's result. A result belongs to the newest group before it that has an open call of its id, in the
    /// order of that group's calls, so an id that comes again in a later turn is matched turn by turn. Without any such
    /// call before it, it belongs to the first one after it. One without an id belongs first of all where it stands.
    pub fn pair(&mut self) {
        let mut found = Found::new();
        let mut deferred = Vec::new();
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Call(c) => {
                    let Some(call) = self.calls.get(c) else { continue };
                    let key = call.key.clone().unwrap_or_default();
                    let stack = found.open.get_or_insert(&key, Vec::new());
                    match stack.last_mut() {
                        Some((group, queue)) if *group == call.group => queue.push_back(c),
                        _ => stack.push((call.group, VecDeque::from([c]))),
                    }
                    found.newest.insert(key, call.group);
                }
                Event::Answer(a) => {
                    let Some(answer) = self.answers.get(a) else { continue };
                    let here = || {
                        found
                            .open
                            .get(answer.key.as_deref().unwrap_or_default())
                            .and_then(|stack| stack.last())
                            .map(|(group, _)| *group)
                    };
                    if answer.id.is_none() && answer.near.is_some() && here() != answer.near {
                        deferred.push(a);
                    } else {
                        self.pair_one(a, &mut found);
                    }
                }
            }
        }
        self.pair_by_place(true);
        for a in deferred {
            if self.answers.get(a).is_some_and(|answer| answer.fate == Fate::Orphan) {
                self.pair_one(a, &mut found);
            }
        }
        self.pair_early(&mut found.early);
        self.pair_by_place(false);
    }

    /// One result, by its key alone.
    fn pair_one(&mut self, a: usize, found: &mut Found) {
        let Some(answer) = self.answers.get(a) else { return };
        let key = answer.key.clone().unwrap_or_default();
        let last = found.answered.get(&key).copied();
        let stack = found.open.get_or_insert(&key, Vec::new());
        let next = loop {
            let Some((group, queue)) = stack.last_mut() else { break None };
            let Some(c) = queue.front().copied() else {
                stack.pop();
                continue;
            };
            if self.calls.get(c).is_some_and(|call| call.answer.is_some()) {
                queue.pop_front();
                continue;
            }
            // An older turn's open call of the same id takes a surplus result, unless that is a mere double.
            let older = Some(&*group) != found.newest.get(&key);
            if older && last.is_some_and(|c| self.content_of(c) == Some(answer.content)) {
                self.double(a, last);
                return;
            }
            queue.pop_front();
            break Some(c);
        };
        if stack.last().is_some_and(|(_, queue)| queue.is_empty()) {
            stack.pop();
        }
        if let Some(c) = next {
            self.join(c, a);
            found.answered.insert(key, c);
        } else if last.is_some() {
            self.double(a, last);
        } else {
            found.early.get_or_insert(&key, VecDeque::new()).push_back(a);
        }
    }

    fn content_of(&self, c: usize) -> Option<&'a str> {
        self.calls.get(c).and_then(|call| call.answer).and_then(|a| self.answers.get(a)).map(|answer| answer.content)
    }

    fn join(&mut self, c: usize, a: usize) {
        if let (Some(call), Some(answer)) = (self.calls.get_mut(c), self.answers.get_mut(a)) {
            call.answer = Some(a);
            answer.fate = Fate::Answers(c);
        }
    }

    /// A second result of an answered call: the first one stays, but a real one goes before what a repair wrote.
    fn double(&mut self, a: usize, call: Option<usize>) {
        let Some(c) = call else { return };
        let first = self.calls.get(c).and_then(|call| call.answer);
        let filler = |at: usize| self.answers.get(at).is_some_and(|answer| answer.filler);
        let loser = match first {
            Some(first) if filler(first) && !filler(a) => {
                self.join(c, a);
                first
            }
            _ => a,
        };
        if let Some(loser) = self.answers.get_mut(loser) {
            loser.fate = Fate::Duplicate(c);
        }
    }

    fn pair_early(&mut self, early: &mut IdMap<VecDeque<usize>>) {
        for queue in early.values_mut() {
            let filler = |a: &usize| self.answers.get(*a).is_some_and(|answer| answer.filler);
            *queue = in_order(std::mem::take(queue).into(), &|a, b| filler(a).cmp(&filler(b))).into();
        }
        let mut last: IdMap<usize> = IdMap::with_hasher(Seed::default());
        for c in 0..self.calls.len() {
            let Some(call) = self.calls.get(c) else { continue };
            let key = call.key.clone().unwrap_or_default();
            let Some(queue) = early.get_mut(&key) else { continue };
            if call.answer.is_none()
                && let Some(a) = queue.pop_front()
            {
                self.join(c, a);
            }
            last.get_or_insert(&key, c);
        }
        for queue in early.values_mut() {
            for a in std::mem::take(queue) {
                let key = self.answers.get(a).and_then(|answer| answer.key.as_deref()).unwrap_or_default();
                self.double(a, last.get(key).copied());
            }
        }
    }

    /// A result without an id, in the place of a reply, answers the first call there that has none; a result with a
    /// strange id answers the first call there that has no id. Where tools are named, only a call of the same tool.
    fn pair_by_place(&mut self, nameless: bool) {
        let mut open: Sorted<(usize, bool, String), VecDeque<usize>> = Sorted::new();
        for (c, call) in self.calls.iter().enumerate().filter(|(_, call)| call.answer.is_none()) {
            // A result that names no tool may answer any.
            let labels = [call.label.as_str(), ""];
            for label in labels.into_iter().take(if call.label.is_empty() { 1 } else { 2 }) {
                for (named, wanted) in [(true, true), (false, call.id.is_none())] {
                    let key = (call.group, named, label.to_owned());
                    if let Some(queue) = open.get_or_insert_with(key, VecDeque::new).filter(|_| wanted) {
                        queue.push_back(c);
                    }
                }
            }
        }
        let mut found: Vec<Option<usize>> = vec![None; self.calls.len()];
        for (a, answer) in self
            .answers
            .iter()
            .enumerate()
            .filter(|(_, answer)| answer.fate == Fate::Orphan && (answer.id.is_none() || !nameless))
        {
            let Some(group) = answer.near else { continue };
            let Some(queue) = open.get_mut(&(group, answer.id.is_none(), answer.label.clone())) else { continue };
            while let Some(c) = queue.pop_front() {
                if let Some(free) = found.get_mut(c).filter(|taken| taken.is_none()) {
                    *free = Some(a);
                    break;
                }
            }
        }
        for (c, a) in found.into_iter().enumerate() {
            if let Some(a) = a {
                self.join(c, a);
            }
        }
    }

    /// Gives every call the id it ends up with, reporting each that changes.
    pub fn assign_ids(&mut self, rule: &IdRule, report: &mut Report) {
        let kept = |call: &&Call| !call.omitted && call.sound && call.id.as_deref().is_some_and(rule.valid);
        let mut used: IdMap<usize> = IdMap::with_hasher(Seed::default());
        for call in self.calls.iter().filter(kept) {
            used.get_or_insert(call.id.as_deref().unwrap_or_default(), 0);
        }
        let mut turns: IdMap<usize> = IdMap::with_hasher(Seed::default());
        let mut counters: IdMap<usize> = IdMap::with_hasher(Seed::default());
        for place in 0..self.calls.len() {
            let (answers, Some(call)) = (&self.answers, self.calls.get_mut(place)) else { continue };
            if call.omitted {
                continue;
            }
            let own = call.id.clone().unwrap_or_default();
            if !call.wants || (rule.optional && (call.id.is_none() || call.sound)) {
                call.new_id = own;
                continue;
            }
            let (code, base, message) = if call.id.is_none() {
                let given = call
                    .answer
                    .and_then(|a| answers.get(a))
                    .filter(|a| a.sound)
                    .and_then(|a| a.id.clone())
                    .filter(|id| (rule.valid)(id) && !used.contains_key(id));
                let base = given.unwrap_or_else(|| (rule.derive)(&format!("{place}:{}", call.raw)));
                ("invalid_call_id", base, rule.missing.to_owned())
            } else if !call.sound || !(rule.valid)(&own) {
                ("invalid_call_id", (rule.fit)(&own), crate::text::replaced(rule.invalid, "{id}", &own))
            } else {
                let before = turns.insert(own.clone(), call.group);
                if before == Some(call.group) {
                    ("duplicate_call_id", own.clone(), crate::text::replaced(rule.double, "{id}", &own))
                } else {
                    if before.is_some() {
                        report.push(
                            Finding::warning(
                                "duplicate_call_id",
                                "This id was used in an earlier turn: accepted, and paired turn by turn.",
                            )
                            .at(&call.path)
                            .of_call(&own)
                            .did(Action::Kept),
                        );
                    }
                    call.new_id = own;
                    continue;
                }
            };
            let mut id = base.clone();
            while used.contains_key(&id) {
                let count = counters.get_or_insert(&base, 1);
                *count += 1;
                id = (rule.variant)(&base, *count);
            }
            used.insert(id.clone(), 0);
            report.push(Finding::error(code, message).at(&call.path).of_call(&own).did(Action::Renamed));
            call.new_id = id;
        }
    }
}

/// What has been seen of each key.
struct Found {
    /// Open calls, by group; the newest group last.
    open: IdMap<Vec<(usize, VecDeque<usize>)>>,
    /// The newest group that calls by it.
    newest: IdMap<usize>,
    /// The call that was answered last.
    answered: IdMap<usize>,
    /// Results that no call came before.
    early: IdMap<VecDeque<usize>>,
}

impl Found {
    fn new() -> Self {
        let seed = Seed::default();
        Self {
            open: IdMap::with_hasher(seed),
            newest: IdMap::with_hasher(seed),
            answered: IdMap::with_hasher(seed),
            early: IdMap::with_hasher(seed),
        }
    }
}

/// What a dialect asks of ids.
pub(crate) struct IdRule {
    /// Calls may go without, and then their order counts.
    pub optional: bool,
    pub valid: fn(&str) -> bool,
    /// A valid id for an invalid one.
    pub fit: fn(&str) -> String,
    /// A valid id from a call's place and text.
    pub derive: fn(&str) -> String,
    /// Another id for one that is taken.
    pub variant: fn(&str, usize) -> String,
    /// The provider's words; `{id}` stands for the id.
    pub missing: &'static str,
    pub invalid: &'static str,
    pub double: &'static str,
}
