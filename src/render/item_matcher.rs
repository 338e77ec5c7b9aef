//! Maps each item that a filter returned to its original in the composed body.

use crate::error::{Error, Result};
use crate::history::{Incoming, IncomingPart};
use crate::json::{Json, JsonRef};
use crate::message::{Dialect, Role};
use crate::provider::{decode_body, spec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The original of a returned item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemOrigin {
    /// Its index in the composed body.
    pub index: usize,
    /// True if it was not changed.
    pub is_unchanged: bool,
}

/// The key by which a changed item is matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ItemIdentity {
    /// The result of the call of this id.
    Result(String),
    /// The call of this id.
    Call(String),
    /// A message of this role.
    Message(&'static str),
    /// Any item, if no exact match is required.
    Any,
}

/// Matches the items that a filter returned with those that it got.
#[derive(Clone, Copy)]
pub(super) struct ItemMatcher {
    pub dialect: Dialect,
    /// True if each returned item must be traced to one item of the input, since a service keeps what is sent.
    pub requires_exact_match: bool,
}

impl ItemMatcher {
    /// Returns the origin of each returned item.
    ///
    /// # Errors
    /// `invalid_input` for an item that is no item of the input.
    pub fn origins(self, input: &[JsonRef<'_>], output: &[JsonRef<'_>]) -> Result<Vec<ItemOrigin>> {
        let equal = match_equal(input, output);
        let mut is_free = vec![true; input.len()];
        for index in equal.iter().flatten() {
            if let Some(is_free) = is_free.get_mut(*index) {
                *is_free = false;
            }
        }
        let mut unmatched = UnmatchedItems::default();
        for (index, item) in input.iter().enumerate().filter(|(index, _)| is_free.get(*index) == Some(&true)) {
            unmatched.add(self.identity(*item)?, index);
        }
        let changed = equal.iter().zip(output).enumerate().filter(|(_, (equal, _))| equal.is_none());
        let changed: Vec<(usize, JsonRef<'_>)> = changed.map(|(at, (_, item))| (at, *item)).collect();
        let fingerprints: BTreeSet<u64> = match changed.as_slice() {
            [] => BTreeSet::new(),
            _ => input.iter().map(|item| item.fingerprint()).collect(),
        };
        let mut rewritten = BTreeMap::new();
        for (at, item) in &changed {
            let path = format!("/{}/{at}", spec(self.dialect).items.list);
            let is_duplicate = fingerprints.contains(&item.fingerprint());
            if is_duplicate && self.requires_exact_match {
                return Err(duplicate_item(&path));
            }
            let identity = self.identity(*item).map_err(|error| invalid_item(&path, &error.message))?;
            let Some(index) = unmatched.take(&identity) else {
                return Err(if is_duplicate { duplicate_item(&path) } else { added_item(&path) });
            };
            rewritten.insert(*at, (index, identity));
        }
        if let Some((at, _)) =
            rewritten.iter().find(|(_, (_, identity))| self.requires_exact_match && unmatched.has(identity))
        {
            let path = format!("/{}/{at}", spec(self.dialect).items.list);
            let message = "`inputFilter` changed one item and held back another of the same kind, so it is ambiguous which one this is; leave \
                the items unchanged that are sent, or hold back nothing";
            return Err(invalid_item(&path, message));
        }
        let origin = |(at, equal): (usize, &Option<usize>)| match equal {
            Some(index) => Some(ItemOrigin { index: *index, is_unchanged: true }),
            None => rewritten.get(&at).map(|(index, _)| ItemOrigin { index: *index, is_unchanged: false }),
        };
        Ok(equal.iter().enumerate().filter_map(origin).collect())
    }

    /// Returns the key of an item.
    fn identity(self, item: JsonRef<'_>) -> Result<ItemIdentity> {
        if !self.requires_exact_match {
            return Ok(ItemIdentity::Any);
        }
        identity_of(self.dialect, item)
    }
}

fn duplicate_item(path: &str) -> Error {
    invalid_item(path, "`inputFilter` returned an item twice; return each item once")
}

fn added_item(path: &str) -> Error {
    let message = "`inputFilter` added an item; it may drop, move and change the items that it gets. Use `instructions`, or `provide` of a \
        history provider, to add something to a request";
    invalid_item(path, message)
}

/// Input items without an equal output item, by key.
#[derive(Default)]
struct UnmatchedItems(BTreeMap<ItemIdentity, VecDeque<usize>>);

impl UnmatchedItems {
    fn add(&mut self, identity: ItemIdentity, index: usize) {
        self.0.entry(identity).or_default().push_back(index);
    }

    fn take(&mut self, identity: &ItemIdentity) -> Option<usize> {
        self.0.get_mut(identity)?.pop_front()
    }

    fn has(&self, identity: &ItemIdentity) -> bool {
        self.0.get(identity).is_some_and(|indexes| !indexes.is_empty())
    }
}

/// Returns for each of `items` the index of an equal one in `candidates`, which is used once: the first that is written
/// alike, else the first that differs in the order of its members only.
pub(super) fn match_equal(candidates: &[JsonRef<'_>], items: &[JsonRef<'_>]) -> Vec<Option<usize>> {
    let mut by_text: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        by_text.entry(candidate.as_raw()).or_default().push_back(index);
    }
    let mut take = |item: &JsonRef<'_>| by_text.get_mut(item.as_raw())?.pop_front();
    let mut matches: Vec<Option<usize>> = items.iter().map(&mut take).collect();
    let mut by_fingerprint: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    if matches.iter().any(Option::is_none) {
        let mut rest: Vec<usize> = by_text.into_values().flatten().collect();
        rest.sort_unstable();
        for index in rest {
            let fingerprint = candidates.get(index).map_or(0, |candidate| candidate.fingerprint());
            by_fingerprint.entry(fingerprint).or_default().push_back(index);
        }
    }
    for (found, item) in matches.iter_mut().zip(items).filter(|(found, _)| found.is_none()) {
        *found = by_fingerprint.get_mut(&item.fingerprint()).and_then(VecDeque::pop_front);
    }
    matches
}

/// Returns true for a call and for the result of one.
pub(super) fn belongs_to_call(dialect: Dialect, item: JsonRef<'_>) -> bool {
    !matches!(identity_of(dialect, item), Ok(ItemIdentity::Message(_)))
}

fn identity_of(dialect: Dialect, item: JsonRef<'_>) -> Result<ItemIdentity> {
    let list = Json::trusted(format!("[{}]", item.as_raw()));
    for decoded in decode_body(dialect, list.view())? {
        match decoded {
            Incoming::Result(result) => return Ok(ItemIdentity::Result(result.call_id)),
            Incoming::Message(message) => {
                let call = message.parts.into_iter().find_map(|part| match part {
                    IncomingPart::Call(call) => Some(call.call_id),
                    IncomingPart::Part(_) => None,
                });
                return Ok(call.map_or(ItemIdentity::Message(message.role.as_str()), ItemIdentity::Call));
            }
            Incoming::LateResult(_) | Incoming::Unknown(_) => {}
        }
    }
    // An item that decodes to no message, such as an `item_reference`, is matched like a system message.
    Ok(ItemIdentity::Message(Role::System.as_str()))
}

/// Creates the error of a wrong item or member. `path` is its JSON pointer.
pub(super) fn invalid_item(path: &str, message: &str) -> Error {
    Error::invalid(format!("{message} (at {path})")).with(|details| {
        details.text("path", path);
    })
}
