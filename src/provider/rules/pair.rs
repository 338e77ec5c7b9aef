//! The common pairing: which result answers which call, and which id both end up with. Knows no dialect.

use super::{BodyLocation, Dangling, Plan, Violation, id_of, quoted};
use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::sorted::in_order;
use std::ops::Range;

/// A call that a dialect's rules found, for [`Pairs::add_call`].
#[derive(Debug, Default)]
pub(crate) struct FoundCall<'a, 's> {
    /// The object that holds its id.
    pub value: JsonRef<'a>,
    /// The member that holds its id, whatever its type.
    pub id: Option<JsonRef<'a>>,
    /// Pairs the call if it has no id. Empty in a dialect where every call has one.
    pub alias: &'s str,
    /// The group of calls that are answered together. Groups are numbered in the order of the body.
    pub group: usize,
    /// The name of the tool, or the type of the call, where results name it too; otherwise empty.
    pub label: String,
}

/// A result that a dialect's rules found, for [`Pairs::add_result`].
#[derive(Debug, Default)]
pub(crate) struct FoundResult<'a, 's> {
    /// The object that holds the id of its call.
    pub value: JsonRef<'a>,
    /// The member that holds the id of its call, whatever its type.
    pub id: Option<JsonRef<'a>>,
    /// Pairs the result if it has no id, as in [`FoundCall`].
    pub alias: &'s str,
    /// The group that it replies to by its place; none if it is not in the place of a reply.
    pub reply_to: Option<usize>,
    /// As in [`FoundCall`].
    pub label: String,
    /// The member that holds its content.
    pub content: Option<JsonRef<'a>>,
}

/// A call of the body.
#[derive(Debug)]
pub(crate) struct WireCall<'a> {
    /// The object that holds its id.
    pub value: JsonRef<'a>,
    /// Where findings about it stand: a value, and the member of it.
    pub location: BodyLocation<'a>,
    /// The calls that must be answered together: those of one message, or of one run of messages.
    pub group: usize,
    /// The number of what a result names it by: its id, or where a dialect goes without ids, what stands for one.
    key: usize,
    /// The id as it is written, where that is a string or number.
    pub id: Option<String>,
    /// The id is a string that is not empty.
    pub has_valid_id: bool,
    /// The result it ends up with.
    pub answer: Option<usize>,
    /// The id it ends up with.
    pub new_id: String,
    pub omitted: bool,
    /// Its place among the body's calls and results.
    pub order: usize,
    /// The tool, where a dialect without ids needs it.
    pub label: String,
}

/// A result of the body.
#[derive(Debug)]
pub(crate) struct WireResult<'a> {
    pub value: JsonRef<'a>,
    pub location: BodyLocation<'a>,
    /// The group in whose reply it stands, if it stands where a reply belongs.
    pub reply_to: Option<usize>,
    key: usize,
    pub id: Option<String>,
    pub has_valid_id: bool,
    /// Its content, to tell a double from another result.
    content: &'a str,
    /// Written by a repair, not by a tool: a real one goes before it.
    filler: bool,
    pub pairing: Pairing,
    /// Its place among the body's calls and results.
    pub order: usize,
    /// The tool, where a dialect without ids needs it.
    pub label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    Orphan,
    Duplicate,
    Paired(usize),
    /// Its call is not in the body, and need not be: the server holds it.
    HeldByServer,
}

/// A call or a result, by its number.
#[derive(Clone, Copy, Debug)]
enum PairEvent {
    Call(usize),
    Result(usize),
}

/// The calls and results of a body, in its order.
#[derive(Debug)]
pub(crate) struct Pairs<'a> {
    pub calls: Vec<WireCall<'a>>,
    pub results: Vec<WireResult<'a>>,
    events: Vec<PairEvent>,
    keys: IdMap<usize>,
    /// Ids of different spaces are different ones, though they read the same: the space of what comes next.
    pub space: &'static str,
    /// What a repair writes as a result's content.
    filler: String,
}

impl<'a> Pairs<'a> {
    pub fn new(filler: String) -> Self {
        Self {
            calls: Vec::new(),
            results: Vec::new(),
            events: Vec::new(),
            keys: IdMap::with_seed(Seed::default()),
            space: "",
            filler,
        }
    }

    /// Adds a call, and returns its index in [`calls`](Self::calls).
    pub fn add_call(&mut self, FoundCall { value, id, alias, group, label }: FoundCall<'a, '_>) -> usize {
        let (id, has_valid_id) = id_of(id);
        let key = self.key(id.as_deref().unwrap_or(alias));
        self.calls.push(WireCall {
            value,
            location: value.into(),
            group,
            key,
            id,
            has_valid_id,
            answer: None,
            new_id: String::new(),
            omitted: false,
            order: self.events.len(),
            label,
        });
        self.events.push(PairEvent::Call(self.calls.len() - 1));
        self.calls.len() - 1
    }

    /// Adds a result, and returns its index in [`results`](Self::results).
    pub fn add_result(&mut self, found: FoundResult<'a, '_>) -> usize {
        let FoundResult { value, id, alias, reply_to, label, content } = found;
        let (id, has_valid_id) = id_of(id);
        let content = content.map_or("", JsonRef::as_raw);
        let key = self.key(id.as_deref().unwrap_or(alias));
        self.results.push(WireResult {
            value,
            location: value.into(),
            reply_to,
            key,
            id,
            has_valid_id,
            content,
            filler: content == self.filler,
            pairing: Pairing::Orphan,
            order: self.events.len(),
            label,
        });
        self.events.push(PairEvent::Result(self.results.len() - 1));
        self.results.len() - 1
    }

    fn key(&mut self, id: &str) -> usize {
        match self.space {
            "" => key_index(&mut self.keys, id),
            space => key_index(&mut self.keys, &format!("{space} {id}")),
        }
    }

    /// The calls of a group: groups come in order.
    pub fn calls_of(&self, group: usize) -> Range<usize> {
        self.calls.partition_point(|call| call.group < group)..self.calls.partition_point(|call| call.group <= group)
    }

    /// The results that a group's calls end up with, in the order in which they stand.
    pub fn results_of(&self, group: usize) -> Vec<usize> {
        let mut given = Vec::new();
        for call in self.calls.get(self.calls_of(group)).unwrap_or_default() {
            given.extend(call.answer);
        }
        in_order(given, &Ord::cmp)
    }

    /// The calls of a group that are to get a synthetic result.
    pub fn open_calls(&self, group: usize) -> impl Iterator<Item = &WireCall<'a>> {
        let members = self.calls.get(self.calls_of(group)).unwrap_or_default();
        members.iter().filter(|call| call.answer.is_none() && !call.omitted)
    }

    /// Pairs calls and results, leaves out open calls where that was asked for, and gives every call its id.
    pub fn resolve(&mut self, plan: &mut Plan<'a, '_>, rule: &IdRule) {
        self.pair();
        if rule.optional {
            self.pair_by_count();
        }
        // Before ids are given, so that none is lost to a call that goes.
        for call in &mut self.calls {
            call.omitted = plan.options.dangling == Dangling::Omit && call.answer.is_none();
        }
        self.assign_ids(plan, rule);
    }

    /// Writes the ids of calls and results; `name` says under which name, by the label of a call (true) or of a result.
    /// `sentence` tells of a result that names no call.
    pub fn write_ids(
        &self,
        plan: &mut Plan<'a, '_>,
        name: &dyn Fn(&str, bool) -> &'static str,
        sentence: &'static str,
    ) {
        for call in self.calls.iter().filter(|call| !call.omitted) {
            if call.id.as_ref() != Some(&call.new_id) || !call.has_valid_id {
                plan.edits.set(call.value, name(&call.label, true), quoted(&call.new_id));
            }
        }
        for answer in &self.results {
            let Some(call) = self.call_of(answer) else { continue };
            if answer.id.as_ref() == Some(&call.new_id) && answer.has_valid_id {
                continue;
            }
            plan.edits.set(answer.value, name(&answer.label, false), quoted(&call.new_id));
            // Else it was reported at the call.
            if !answer.has_valid_id || call.id != answer.id {
                plan.report(
                    Violation::error(FindingCode::InvalidCallId, sentence)
                        .at(answer.location)
                        .of_call(&call.new_id)
                        .renamed(),
                );
            }
        }
    }

    /// The call that a result answers.
    pub fn call_of(&self, answer: &WireResult<'a>) -> Option<&WireCall<'a>> {
        match answer.pairing {
            Pairing::Paired(c) => self.calls.get(c),
            _ => None,
        }
    }

    /// Finds each call's result. A result belongs to the newest group before it that has an open call of its id, in the
    /// order of that group's calls, so an id that comes again in a later turn is matched turn by turn. Without any such
    /// call before it, it belongs to the first one after it. One without an id belongs first of all where it stands.
    fn pair(&mut self) {
        let mut seen: Vec<KeyedPairs> = Vec::new();
        seen.resize_with(self.keys.count(), KeyedPairs::default);
        let mut deferred = Vec::new();
        for event in std::mem::take(&mut self.events) {
            match event {
                PairEvent::Call(c) => {
                    let Some(call) = self.calls.get(c) else { continue };
                    let Some(seen) = seen.get_mut(call.key) else { continue };
                    seen.calls.push(c);
                    let end = seen.calls.len();
                    match seen.open.last_mut() {
                        Some(open) if open.group == call.group => open.end = end,
                        _ => seen.open.push(OpenCallRange { group: call.group, next: end - 1, end }),
                    }
                    seen.newest = call.group;
                }
                PairEvent::Result(a) => {
                    let Some(answer) = self.results.get(a) else { continue };
                    let Some(seen) = seen.get_mut(answer.key) else { continue };
                    let here = seen.open.last().map(|open| open.group);
                    if answer.id.is_none() && answer.reply_to.is_some() && here != answer.reply_to {
                        deferred.push(a);
                    } else {
                        self.pair_one(a, answer.content, seen);
                    }
                }
            }
        }
        // Results that name their calls are paired first, wherever they stand. The others are paired with the calls that are left.
        self.pair_early(&mut seen, true);
        self.pair_by_place(true);
        for a in deferred {
            let Some(answer) = self.results.get(a).filter(|answer| answer.pairing == Pairing::Orphan) else { continue };
            if let Some(seen) = seen.get_mut(answer.key) {
                self.pair_one(a, answer.content, seen);
            }
        }
        self.pair_early(&mut seen, false);
        self.pair_by_place(false);
    }

    /// One result, by its key alone.
    fn pair_one(&mut self, a: usize, content: &str, seen: &mut KeyedPairs) {
        let mut next = None;
        while let Some(open) = seen.open.last_mut() {
            if open.next == open.end {
                seen.open.pop();
                continue;
            }
            let Some(c) = seen.calls.get(open.next).copied() else { break };
            if self.calls.get(c).is_none_or(|call| call.answer.is_none()) {
                // An older turn's open call of the same id takes a surplus result, unless that is a mere double.
                if open.group != seen.newest && seen.answered.is_some_and(|c| self.content_of(c) == Some(content)) {
                    break;
                }
                // Where calls of one turn share an id, the tool tells them apart.
                let twins = seen.calls.get(open.next..open.end).unwrap_or_default();
                let same = |c: &&usize| self.is_open_call_of(**c, a);
                next = twins.iter().take(MAX_CALLS_WITH_ONE_ID).find(same).or(Some(&c)).copied();
                if next != Some(c) {
                    break;
                }
            }
            open.next += 1;
            if next.is_some() {
                break;
            }
        }
        if seen.open.last().is_some_and(|open| open.next == open.end) {
            seen.open.pop();
        }
        if let Some(c) = next {
            self.join(c, a);
            seen.answered = Some(c);
        } else if let Some(c) = seen.answered {
            self.add_duplicate(a, c);
        } else {
            seen.early.push(a);
        }
    }

    /// Whether a call is open and of the tool that a result names.
    fn is_open_call_of(&self, c: usize, a: usize) -> bool {
        let (call, answer) = (self.calls.get(c), self.results.get(a));
        call.zip(answer).is_some_and(|(call, answer)| call.answer.is_none() && call.label == answer.label)
    }

    fn content_of(&self, c: usize) -> Option<&'a str> {
        Some(self.results.get(self.calls.get(c)?.answer?)?.content)
    }

    fn join(&mut self, c: usize, a: usize) {
        if let (Some(call), Some(answer)) = (self.calls.get_mut(c), self.results.get_mut(a)) {
            call.answer = Some(a);
            answer.pairing = Pairing::Paired(c);
        }
    }

    fn is_filler(&self, a: usize) -> bool {
        self.results.get(a).is_some_and(|answer| answer.filler)
    }

    /// A second result of an answered call: the first one stays, but a real one goes before what a repair wrote.
    fn add_duplicate(&mut self, a: usize, c: usize) {
        let first = self.calls.get(c).and_then(|call| call.answer);
        let loser = match first {
            Some(first) if self.is_filler(first) && !self.is_filler(a) => {
                self.join(c, a);
                first
            }
            _ => a,
        };
        if let Some(loser) = self.results.get_mut(loser) {
            loser.pairing = Pairing::Duplicate;
        }
    }

    /// Pairs results that stand before their calls: those with a call id if `named`, else those without.
    fn pair_early(&mut self, all: &mut [KeyedPairs], named: bool) {
        for seen in &mut *all {
            let names = |a: &usize| self.results.get(*a).is_some_and(|answer| answer.id.is_some());
            let (early, later) = std::mem::take(&mut seen.early).into_iter().partition(|a| names(a) == named);
            seen.early = later;
            let early: Vec<usize> = early;
            if early.is_empty() {
                continue;
            }
            let early = in_order(early, &|a, b| self.is_filler(*a).cmp(&self.is_filler(*b)));
            let mut early = early.into_iter();
            for c in seen.calls.iter().copied() {
                if self.calls.get(c).is_some_and(|call| call.answer.is_none())
                    && let Some(a) = early.next()
                {
                    self.join(c, a);
                }
            }
            if let Some(c) = seen.calls.first().copied() {
                early.for_each(|a| self.add_duplicate(a, c));
            }
        }
    }

    /// A result without an id, in the place of a reply, answers the first call there that has none; a result with a
    /// strange id answers the first call there that has no id. Where tools are named, only a call of the same tool.
    fn pair_by_place(&mut self, nameless: bool) {
        let mut waiting = Vec::new();
        for (a, answer) in self.results.iter().enumerate() {
            if answer.pairing == Pairing::Orphan && (answer.id.is_none() || !nameless) && answer.reply_to.is_some() {
                waiting.push(a);
            }
        }
        if waiting.is_empty() {
            return;
        }
        let key = |group: usize, named: bool, label: &str| format!("{group} {named} {label}");
        let mut keys: IdMap<usize> = IdMap::with_seed(Seed::default());
        // By key: the open calls, the last one first.
        let mut open: Vec<Vec<usize>> = Vec::new();
        for (c, call) in self.calls.iter().enumerate().rev().filter(|(_, call)| call.answer.is_none()) {
            for named in [true, false] {
                // A result that names no tool may answer any.
                for label in [call.label.as_str(), ""] {
                    let at = key_index(&mut keys, &key(call.group, named, label));
                    open.resize(keys.count(), Vec::new());
                    if let Some(queue) = open.get_mut(at).filter(|_| named || call.id.is_none()) {
                        queue.push(c);
                    }
                }
            }
        }
        for a in waiting {
            let Some(answer) = self.results.get(a) else { continue };
            let key = key(answer.reply_to.unwrap_or_default(), answer.id.is_none(), &answer.label);
            let Some(queue) = keys.get(key.as_str()).and_then(|at| open.get_mut(*at)) else { continue };
            while let Some(c) = queue.pop() {
                if self.calls.get(c).is_some_and(|call| call.answer.is_none()) {
                    self.join(c, a);
                    break;
                }
            }
        }
    }

    /// Results that name no call answer, in their order, the calls that are open where they stand, if these are as many. Of id
    /// and tool, one must not be wrong.
    fn pair_by_count(&mut self) {
        let mut stray = Vec::new();
        for (a, answer) in self.results.iter().enumerate() {
            if let Some(group) = answer.reply_to.filter(|_| answer.pairing == Pairing::Orphan) {
                stray.push((group, a));
            }
        }
        for stray in stray.chunk_by(|(one, _), (next, _)| one == next) {
            let mut open = Vec::new();
            for c in stray.first().map_or(0..0, |(group, _)| self.calls_of(*group)) {
                if self.calls.get(c).is_some_and(|call| call.answer.is_none()) {
                    open.push(c);
                }
            }
            for (c, (_, a)) in open.iter().zip(stray).filter(|_| open.len() == stray.len()) {
                let (call, answer) = (self.calls.get(*c), self.results.get(*a));
                if call.zip(answer).is_some_and(|(call, answer)| {
                    call.label == answer.label || call.id.is_none() || answer.id.is_none()
                }) {
                    self.join(*c, *a);
                }
            }
        }
    }

    /// Gives every call the id it ends up with, reporting each that changes.
    fn assign_ids(&mut self, plan: &mut Plan<'a, '_>, rule: &IdRule) {
        // Each id that is taken, and how many variants of it were made.
        let mut used: IdMap<usize> = IdMap::with_seed(Seed::default());
        for call in &self.calls {
            if let Some(id) = call.id.as_deref().filter(|id| !call.omitted && call.has_valid_id && (rule.valid)(id)) {
                used.insert(id.to_owned(), 0);
            }
        }
        // By key: the last group that has it.
        let mut turns: Vec<Option<usize>> = vec![None; self.keys.count()];
        for (place, call) in self.calls.iter_mut().enumerate() {
            if call.omitted {
                continue;
            }
            let own = call.id.clone().unwrap_or_default();
            if rule.optional && call.id.is_none() {
                continue;
            }
            let (code, base, sentence) = if call.id.is_none() {
                let given = call.answer.and_then(|a| self.results.get(a)).filter(|answer| answer.has_valid_id);
                let given = given.and_then(|answer| answer.id.clone());
                let base = match given {
                    Some(id) if (rule.valid)(&id) && !used.contains_key(&id) => id,
                    _ => (rule.derive)(&format!("{place}:{}", call.value.as_raw())),
                };
                (FindingCode::InvalidCallId, base, rule.missing)
            } else if !call.has_valid_id || !(rule.valid)(&own) {
                (FindingCode::InvalidCallId, (rule.fit)(&own), rule.invalid)
            } else {
                let before = turns.get_mut(call.key).and_then(|turn| turn.replace(call.group));
                if before != Some(call.group) {
                    if before.is_some() && !rule.optional {
                        let sentence = "This id was used in an earlier turn: accepted, and paired turn by turn.";
                        plan.report(
                            Violation::warning(FindingCode::DuplicateCallId, sentence).at(call.location).of_call(&own),
                        );
                    }
                    call.new_id = own;
                    continue;
                }
                (FindingCode::DuplicateCallId, own.clone(), rule.duplicate)
            };
            let mut id = base.clone();
            while used.contains_key(&id) {
                let count = used.get_or_insert(&base, 0);
                *count += 1;
                id = (rule.variant)(&base, *count + 1);
            }
            used.insert(id.clone(), 0);
            plan.report(Violation::error(code, sentence).at(call.location).of_call(&own).renamed());
            call.new_id = id;
        }
    }
}

/// So many calls of one id are told apart by their tools; beyond, their order counts, so that the cost stays linear.
const MAX_CALLS_WITH_ONE_ID: usize = 64;

/// The number of a key, a new one if it is new.
fn key_index(keys: &mut IdMap<usize>, key: &str) -> usize {
    let next = keys.count();
    *keys.get_or_insert(key, next)
}

/// What has been seen of a key.
#[derive(Default)]
struct KeyedPairs {
    calls: Vec<usize>,
    /// Stretches of these calls that are open, by group; the newest group last.
    open: Vec<OpenCallRange>,
    /// The newest group that calls by it.
    newest: usize,
    /// The call that was answered last.
    answered: Option<usize>,
    /// Results that no call came before.
    early: Vec<usize>,
}

struct OpenCallRange {
    group: usize,
    next: usize,
    end: usize,
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
    /// The provider's words; `{}` stands for the id.
    pub missing: &'static str,
    pub invalid: &'static str,
    pub duplicate: &'static str,
}
