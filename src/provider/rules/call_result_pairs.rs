//! Pairing, which all dialects share: finds the result of each call, and chooses the id that both get in the repaired
//! body.

use super::{BodyLocation, Dangling, FoundCall, FoundResult, IdRule, Plan, Violation, id_of, quoted};
use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::synthetic_result::is_placeholder;
use std::ops::Range;

/// A call of the body.
#[derive(Debug)]
pub(crate) struct WireCall<'a> {
    /// The object that holds its id.
    pub value: JsonRef<'a>,
    /// What findings about the call point to.
    pub location: BodyLocation<'a>,
    /// The calls that must be answered together: those of one message, or of one run of messages.
    pub group: usize,
    /// The index of its id in [`Pairs::keys`], or of its alias if it has no id.
    key: usize,
    /// The id in the body, if it is a string or a number.
    pub id: Option<String>,
    /// True if the id is a string that is not empty.
    pub has_valid_id: bool,
    /// The index of its result in [`Pairs::results`], once it is paired.
    pub result: Option<usize>,
    /// The id in the repaired body.
    pub new_id: String,
    /// True if the repair removes the call, because it has no result.
    pub omitted: bool,
    /// Its index among the calls and results of the body.
    pub order: usize,
    /// As in [`FoundCall`].
    pub label: String,
    /// As in [`FoundCall`].
    pub may_stay_open: bool,
}

impl WireCall<'_> {
    /// Returns true if the call has no result and needs one.
    pub fn lacks_result(&self) -> bool {
        self.result.is_none() && !self.may_stay_open
    }
}

/// A result of the body.
#[derive(Debug)]
pub(crate) struct WireResult<'a> {
    /// The object that holds the id of its call.
    pub value: JsonRef<'a>,
    /// What findings about the result point to.
    pub location: BodyLocation<'a>,
    /// The group that it replies to by its place; none if it is not in the place of a reply.
    pub reply_to: Option<usize>,
    /// The index of its id in [`Pairs::keys`], or of its alias if it has no id.
    key: usize,
    /// The id in the body, if it is a string or a number.
    pub id: Option<String>,
    /// True if the id is a string that is not empty.
    pub has_valid_id: bool,
    /// Its content. An equal second result of a call is a duplicate and cannot answer an older call.
    content: Option<JsonRef<'a>>,
    pub pairing: Pairing,
    /// Its index among the calls and results of the body.
    pub order: usize,
    /// As in [`FoundCall`].
    pub label: String,
}

/// How a result was paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// With no call.
    Orphan,
    /// With a call that has another result.
    Duplicate,
    /// With a call, by its index in [`Pairs::calls`].
    Paired(usize),
    /// With a call that is not in the body: the server stores it.
    HeldByServer,
}

/// A call or a result of the body, by its index in [`Pairs::calls`] or [`Pairs::results`].
#[derive(Clone, Copy, Debug)]
enum PairEvent {
    Call(usize),
    Result(usize),
}

/// The calls and results of a body, each in the body's order.
#[derive(Debug)]
pub(crate) struct Pairs<'a> {
    pub calls: Vec<WireCall<'a>>,
    pub results: Vec<WireResult<'a>>,
    /// Calls and results together, in the body's order.
    events: Vec<PairEvent>,
    /// The index of each id or alias.
    keys: IdMap<usize>,
    /// The namespace of the ids of the calls and results that are added next. Equal ids of two namespaces do not pair:
    /// the output of a custom tool does not answer a function call.
    pub space: &'static str,
    /// The JSON of the content of a synthetic result.
    synthetic_content: String,
}

impl<'a> Pairs<'a> {
    /// `synthetic_content` is the JSON of the content of a synthetic result.
    pub fn new(synthetic_content: String) -> Self {
        Self {
            calls: Vec::new(),
            results: Vec::new(),
            events: Vec::new(),
            keys: IdMap::with_seed(Seed::default()),
            space: "",
            synthetic_content,
        }
    }

    /// Adds a call, and returns its index in [`calls`](Self::calls).
    pub fn add_call(&mut self, found: FoundCall<'a, '_>) -> usize {
        let FoundCall { value, id, alias, group, label, may_stay_open } = found;
        let (id, has_valid_id) = id_of(id);
        let key = self.key(id.as_deref().unwrap_or(alias));
        self.calls.push(WireCall {
            value,
            location: value.into(),
            group,
            key,
            id,
            has_valid_id,
            result: None,
            new_id: String::new(),
            omitted: false,
            order: self.events.len(),
            label,
            may_stay_open,
        });
        self.events.push(PairEvent::Call(self.calls.len() - 1));
        self.calls.len() - 1
    }

    /// Adds a result, and returns its index in [`results`](Self::results).
    pub fn add_result(&mut self, found: FoundResult<'a, '_>) -> usize {
        let FoundResult { value, id, alias, reply_to, label, content } = found;
        let (id, has_valid_id) = id_of(id);
        let key = self.key(id.as_deref().unwrap_or(alias));
        self.results.push(WireResult {
            value,
            location: value.into(),
            reply_to,
            key,
            id,
            has_valid_id,
            content,
            pairing: Pairing::Orphan,
            order: self.events.len(),
            label,
        });
        self.events.push(PairEvent::Result(self.results.len() - 1));
        self.results.len() - 1
    }

    /// Returns the index of an id in the current namespace.
    fn key(&mut self, id: &str) -> usize {
        match self.space {
            "" => key_index(&mut self.keys, id),
            space => key_index(&mut self.keys, &[space, " ", id].concat()),
        }
    }

    /// Returns the indices of a group's calls.
    pub fn calls_of(&self, group: usize) -> Range<usize> {
        self.calls.partition_point(|call| call.group < group)..self.calls.partition_point(|call| call.group <= group)
    }

    /// Returns the indices of the results that are paired with a group's calls, in the body's order.
    pub fn results_of(&self, group: usize) -> Vec<usize> {
        let mut results = Vec::new();
        for call in self.calls.get(self.calls_of(group)).unwrap_or_default() {
            results.extend(call.result);
        }
        results.sort_unstable();
        results
    }

    /// Returns the calls of a group that get a synthetic result.
    pub fn open_calls(&self, group: usize) -> impl Iterator<Item = &WireCall<'a>> {
        let members = self.calls.get(self.calls_of(group)).unwrap_or_default();
        members.iter().filter(|call| call.lacks_result() && !call.omitted)
    }

    /// Pairs the calls and results, omits calls without a result if the options say so, and chooses the id of every
    /// call.
    pub fn resolve(&mut self, plan: &mut Plan<'a, '_>, rule: &IdRule) {
        self.pair();
        if rule.optional {
            self.pair_by_count();
        }
        self.choose_ids(plan, rule);
    }

    /// Omits calls without a result if the options say so, and chooses the id of every call that stays.
    pub fn choose_ids(&mut self, plan: &mut Plan<'a, '_>, rule: &IdRule) {
        // Before ids are chosen, so that an omitted call does not take one.
        for call in &mut self.calls {
            call.omitted = plan.options.dangling == Dangling::Omit && call.lacks_result();
        }
        self.assign_ids(plan, rule);
    }

    /// Plans the edits that write the chosen ids. `name` returns the member that holds the id, given the label of a
    /// call (true) or a result (false). `sentence` is the provider's sentence about a result that does not name its
    /// call.
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
            // If both had the same valid id, the change was reported at the call.
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

    /// Returns the call that a result is paired with.
    pub fn call_of(&self, answer: &WireResult<'a>) -> Option<&WireCall<'a>> {
        match answer.pairing {
            Pairing::Paired(c) => self.calls.get(c),
            _ => None,
        }
    }

    /// Pairs each result with a call. A result answers an open call of its id in the newest group before it that has
    /// one, in the order of that group's calls; so an id that is used again in a later turn is paired turn by turn. If
    /// there is no such call before the result, the first one after it is answered. A result without an id first
    /// answers a call of the group that it replies to.
    pub fn pair(&mut self) {
        let mut by_key: Vec<KeyedPairs> = Vec::new();
        by_key.resize_with(self.keys.count(), KeyedPairs::default);
        let mut deferred = Vec::new();
        for event in std::mem::take(&mut self.events) {
            match event {
                PairEvent::Call(c) => {
                    let Some(call) = self.calls.get(c) else { continue };
                    let Some(keyed) = by_key.get_mut(call.key) else { continue };
                    keyed.calls.push(c);
                    let end = keyed.calls.len();
                    match keyed.open.last_mut() {
                        Some(open) if open.group == call.group => open.end = end,
                        _ => keyed.open.push(OpenCallRange { group: call.group, next: end - 1, end }),
                    }
                    keyed.newest = call.group;
                }
                PairEvent::Result(a) => {
                    let Some(answer) = self.results.get(a) else { continue };
                    let Some(keyed) = by_key.get_mut(answer.key) else { continue };
                    let here = keyed.open.last().map(|open| open.group);
                    if answer.id.is_none() && answer.reply_to.is_some() && here != answer.reply_to {
                        deferred.push(a);
                    } else {
                        self.pair_one(a, keyed);
                    }
                }
            }
        }
        // Results that name their calls are paired first, wherever they stand. The others are paired with the calls
        // that are left.
        self.pair_early(&mut by_key, true);
        self.pair_by_place(true);
        for a in deferred {
            let Some(answer) = self.results.get(a).filter(|answer| answer.pairing == Pairing::Orphan) else { continue };
            if let Some(keyed) = by_key.get_mut(answer.key) {
                self.pair_one(a, keyed);
            }
        }
        self.pair_early(&mut by_key, false);
        self.pair_by_place(false);
    }

    /// Pairs one result by its key alone.
    fn pair_one(&mut self, a: usize, keyed: &mut KeyedPairs) {
        let (mut next, content) = (None, self.content(a));
        while let Some(open) = keyed.open.last_mut() {
            if open.next == open.end {
                keyed.open.pop();
                continue;
            }
            let Some(c) = keyed.calls.get(open.next).copied() else { break };
            if self.calls.get(c).is_none_or(|call| call.result.is_none()) {
                // A second result with this id answers an open call of an older group, unless it repeats the first
                // one's content: then it is a duplicate.
                if open.group != keyed.newest && keyed.answered.is_some_and(|c| self.content_of(c) == Some(content)) {
                    break;
                }
                // Calls of one turn that share an id are distinguished by their tool.
                let candidates = keyed.calls.get(open.next..open.end).unwrap_or_default();
                let same = |c: &&usize| self.is_open_call_of(**c, a);
                next = candidates.iter().take(MAX_CALLS_WITH_ONE_ID).find(same).or(Some(&c)).copied();
                if next != Some(c) {
                    break;
                }
            }
            open.next += 1;
            if next.is_some() {
                break;
            }
        }
        if keyed.open.last().is_some_and(|open| open.next == open.end) {
            keyed.open.pop();
        }
        if let Some(c) = next {
            self.pair_with(c, a);
            keyed.answered = Some(c);
        } else if let Some(c) = keyed.answered {
            self.add_duplicate(a, c);
        } else {
            keyed.early.push(a);
        }
    }

    /// Returns true if a call is open and has the label of a result.
    fn is_open_call_of(&self, c: usize, a: usize) -> bool {
        let (call, answer) = (self.calls.get(c), self.results.get(a));
        call.zip(answer).is_some_and(|(call, answer)| call.result.is_none() && call.label == answer.label)
    }

    /// Returns the content of the result that a call is paired with.
    fn content_of(&self, c: usize) -> Option<&'a str> {
        Some(self.content(self.calls.get(c)?.result?))
    }

    /// Returns the JSON of a result's content.
    fn content(&self, a: usize) -> &'a str {
        self.results.get(a).and_then(|answer| answer.content).map_or("", JsonRef::as_raw)
    }

    fn pair_with(&mut self, c: usize, a: usize) {
        if let (Some(call), Some(answer)) = (self.calls.get_mut(c), self.results.get_mut(a)) {
            call.result = Some(a);
            answer.pairing = Pairing::Paired(c);
        }
    }

    /// Returns true if a render or an earlier repair wrote the result. A result of the tool itself takes its place.
    fn is_synthetic(&self, a: usize) -> bool {
        let is_one = |content: JsonRef<'_>| content.as_raw() == self.synthetic_content || is_placeholder(content);
        self.results.get(a).and_then(|answer| answer.content).is_some_and(is_one)
    }

    /// Handles a second result of a call: the first one is kept, unless it is synthetic and the second one is not.
    fn add_duplicate(&mut self, a: usize, c: usize) {
        let first = self.calls.get(c).and_then(|call| call.result);
        let duplicate = match first {
            Some(first) if self.is_synthetic(first) && !self.is_synthetic(a) => {
                self.pair_with(c, a);
                first
            }
            _ => a,
        };
        if let Some(duplicate) = self.results.get_mut(duplicate) {
            duplicate.pairing = Pairing::Duplicate;
        }
    }

    /// Pairs results that precede their calls: those with a call id if `with_id`, else those without.
    fn pair_early(&mut self, all: &mut [KeyedPairs], with_id: bool) {
        for keyed in &mut *all {
            let has_id = |a: &usize| self.results.get(*a).is_some_and(|answer| answer.id.is_some());
            let (early, later) = std::mem::take(&mut keyed.early).into_iter().partition(|a| has_id(a) == with_id);
            keyed.early = later;
            let early: Vec<usize> = early;
            if early.is_empty() {
                continue;
            }
            let (synthetic, real): (Vec<_>, Vec<_>) = early.into_iter().partition(|result| self.is_synthetic(*result));
            let mut early = real.into_iter().chain(synthetic);
            for c in keyed.calls.iter().copied() {
                if self.calls.get(c).is_some_and(|call| call.result.is_none())
                    && let Some(a) = early.next()
                {
                    self.pair_with(c, a);
                }
            }
            if let Some(c) = keyed.calls.first().copied() {
                early.for_each(|a| self.add_duplicate(a, c));
            }
        }
    }

    /// Pairs results by the group that they reply to. A result without an id answers the first open call of the group;
    /// a result with an id that no call has answers the first open call without an id, unless `without_id_only`. If
    /// results have labels, the call must have the same label.
    fn pair_by_place(&mut self, without_id_only: bool) {
        let mut unpaired = Vec::new();
        for (a, answer) in self.results.iter().enumerate() {
            if answer.pairing == Pairing::Orphan
                && (answer.id.is_none() || !without_id_only)
                && answer.reply_to.is_some()
            {
                unpaired.push(a);
            }
        }
        if unpaired.is_empty() {
            return;
        }
        let key = |group: usize, any_call: bool, label: &str| format!("{group} {any_call} {label}");
        let mut keys: IdMap<usize> = IdMap::with_seed(Seed::default());
        // The open calls of each key, the last one first.
        let mut open: Vec<Vec<usize>> = Vec::new();
        for (c, call) in self.calls.iter().enumerate().rev().filter(|(_, call)| call.result.is_none()) {
            for any_call in [true, false] {
                // A result without a label may answer any call.
                for label in [call.label.as_str(), ""] {
                    let at = key_index(&mut keys, &key(call.group, any_call, label));
                    open.resize(keys.count(), Vec::new());
                    if let Some(queue) = open.get_mut(at).filter(|_| any_call || call.id.is_none()) {
                        queue.push(c);
                    }
                }
            }
        }
        for a in unpaired {
            let Some(answer) = self.results.get(a) else { continue };
            let key = key(answer.reply_to.unwrap_or_default(), answer.id.is_none(), &answer.label);
            let Some(queue) = keys.get(key.as_str()).and_then(|at| open.get_mut(*at)) else { continue };
            while let Some(c) = queue.pop() {
                if self.calls.get(c).is_some_and(|call| call.result.is_none()) {
                    self.pair_with(c, a);
                    break;
                }
            }
        }
    }

    /// Pairs unpaired results with the open calls of the group that they reply to, in order, if there are equally many
    /// of both. The labels must be equal, or the call or the result must have no id.
    fn pair_by_count(&mut self) {
        let mut unpaired = Vec::new();
        for (a, answer) in self.results.iter().enumerate() {
            if let Some(group) = answer.reply_to.filter(|_| answer.pairing == Pairing::Orphan) {
                unpaired.push((group, a));
            }
        }
        for unpaired in unpaired.chunk_by(|(one, _), (next, _)| one == next) {
            let mut open = Vec::new();
            for c in unpaired.first().map_or(0..0, |(group, _)| self.calls_of(*group)) {
                if self.calls.get(c).is_some_and(|call| call.result.is_none()) {
                    open.push(c);
                }
            }
            for (c, (_, a)) in open.iter().zip(unpaired).filter(|_| open.len() == unpaired.len()) {
                let (call, answer) = (self.calls.get(*c), self.results.get(*a));
                if call.zip(answer).is_some_and(|(call, answer)| {
                    call.label == answer.label || call.id.is_none() || answer.id.is_none()
                }) {
                    self.pair_with(*c, *a);
                }
            }
        }
    }

    /// Chooses the id of every call, and reports each that changes.
    fn assign_ids(&mut self, plan: &mut Plan<'a, '_>, rule: &IdRule) {
        // Only a call that gets another id needs them: most bodies have none.
        let mut used: Option<UsedIds> = None;
        // The last group that used each key.
        let mut last_groups: Vec<Option<usize>> = vec![None; self.keys.count()];
        let mut new_ids: Vec<String> = Vec::with_capacity(self.calls.len());
        for (place, call) in self.calls.iter().enumerate() {
            if call.omitted || rule.optional && call.id.is_none() {
                new_ids.push(String::new());
                continue;
            }
            let old_id = call.id.as_deref().unwrap_or_default();
            let is_valid = call.has_valid_id && (rule.valid)(old_id);
            let before =
                if is_valid { last_groups.get_mut(call.key).and_then(|group| group.replace(call.group)) } else { None };
            if is_valid && before != Some(call.group) {
                if before.is_some() && !rule.optional {
                    let sentence = "This id was used in an earlier turn: accepted, and paired turn by turn.";
                    let violation = Violation::warning(FindingCode::DuplicateCallId, sentence);
                    plan.report(violation.at(call.location).of_call(old_id));
                }
                new_ids.push(old_id.to_owned());
                continue;
            }
            let used = used.get_or_insert_with(|| UsedIds::of(&self.calls, rule));
            let (code, base, sentence) = if call.id.is_none() {
                let result = call.result.and_then(|a| self.results.get(a)).filter(|answer| answer.has_valid_id);
                let base = match result.and_then(|answer| answer.id.clone()) {
                    Some(id) if (rule.valid)(&id) && !used.0.contains_key(&id) => id,
                    _ => (rule.derive)(&format!("{place}:{}", call.value.as_raw())),
                };
                (FindingCode::InvalidCallId, base, rule.missing)
            } else if is_valid {
                (FindingCode::DuplicateCallId, old_id.to_owned(), rule.duplicate)
            } else {
                (FindingCode::InvalidCallId, (rule.fit)(old_id), rule.invalid)
            };
            plan.report(Violation::error(code, sentence).at(call.location).of_call(old_id).renamed());
            new_ids.push(used.take(base, rule));
        }
        for (call, new_id) in self.calls.iter_mut().zip(new_ids) {
            call.new_id = new_id;
        }
    }
}

/// Ids in use, with the number of variants that were derived from each.
struct UsedIds(IdMap<usize>);

impl UsedIds {
    /// Returns the ids that calls keep.
    fn of(calls: &[WireCall<'_>], rule: &IdRule) -> Self {
        let mut used: IdMap<usize> = IdMap::with_seed(Seed::default());
        for call in calls {
            if let Some(id) = call.id.as_deref().filter(|id| !call.omitted && call.has_valid_id && (rule.valid)(id)) {
                used.insert_new(id, 0);
            }
        }
        Self(used)
    }

    /// Returns an id that is not in use, and takes it: `base`, or a variant of it.
    fn take(&mut self, base: String, rule: &IdRule) -> String {
        if self.0.insert_new(&base, 0) {
            return base;
        }
        let mut count = self.0.get(&base).copied().unwrap_or_default();
        let id = loop {
            count += 1;
            let id = (rule.variant)(&base, count + 1);
            if self.0.insert_new(&id, 0) {
                break id;
            }
        };
        self.0.insert(base, count);
        id
    }
}

/// How many calls with one id are compared with a result by their labels. After these, only the order counts, so that
/// the cost is linear.
const MAX_CALLS_WITH_ONE_ID: usize = 64;

/// Returns the index of a key, which is a new one if the key is new.
fn key_index(keys: &mut IdMap<usize>, key: &str) -> usize {
    let next = keys.count();
    *keys.get_or_insert(key, next)
}

/// The calls and results of one key, read so far.
#[derive(Default)]
struct KeyedPairs {
    /// Indices in [`Pairs::calls`].
    calls: Vec<usize>,
    /// The calls that may be open, one range per group; the newest group last.
    open: Vec<OpenCallRange>,
    /// The newest group that has a call of this key.
    newest: usize,
    /// The call that was paired last.
    answered: Option<usize>,
    /// Results that precede every call of this key.
    early: Vec<usize>,
}

/// The calls of one group and key that may be open: indices in [`KeyedPairs::calls`].
struct OpenCallRange {
    group: usize,
    /// The first call that may be open.
    next: usize,
    end: usize,
}
