//! What is erased from the other sides of conflicts.
//!
//! A branch that has adopted a side may have its messages and calls under other ids. These stand for the side's own ids
//! in its appends, from the one on that has the message or call. In any other side such an id is another message's.

use super::items::ErasedItems;
use crate::error::Result;
use crate::history::{HistoryEntry, LogRecord};
use crate::store::branch_directory::{AdoptedSide, RenamedId};
use crate::store::record::{RecordKind, open_record};
use crate::store::segment::split_segment;
use crate::store::{LogStore, RetainedAppend, Table};
use std::collections::{BTreeMap, BTreeSet};

/// What is erased from the appends in which it has other ids, by the names of the appends.
pub(super) type ItemsOfSides = BTreeMap<String, ErasedItems>;

/// An append of a side.
struct SideAppend {
    parent: Option<String>,
    /// The ids of its messages and calls.
    ids: BTreeSet<String>,
}

/// Finds the appends of adopted sides in which what is erased has other ids than in history, or in which other messages
/// have its ids.
///
/// # Errors
/// The store's own.
pub(super) async fn items_of_sides(
    store: &dyn LogStore,
    session: &str,
    (items, adopted): (&ErasedItems, &[AdoptedSide]),
) -> Result<ItemsOfSides> {
    let is_erased = |id: &String| items.messages.contains(id) || items.invocations.contains(id);
    let mut renamed = adopted.iter().flat_map(|side| &side.renamed);
    if !renamed.any(|RenamedId { original, id }| is_erased(original) || is_erased(id)) {
        return Ok(BTreeMap::new());
    }
    // An append comes after the one that it follows.
    let mut appends: Vec<(String, SideAppend)> = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.retained(session, cursor.as_deref()).await?;
        let of_conflicts = page.items.into_iter().filter(|append| append.is_of_conflict);
        appends.extend(of_conflicts.map(|append| (append.id.clone(), SideAppend::of(append))));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(items_of_appends(items, adopted, &appends))
}

impl SideAppend {
    fn of(append: RetainedAppend) -> Self {
        let mut ids = BTreeSet::new();
        for record in append.records.iter().filter(|record| record.table == Table::Log) {
            for (_, value) in split_segment(record).map(|split| split.records).unwrap_or_default() {
                let log = open_record::<LogRecord>(RecordKind::Log, &value);
                ids.extend(log.map_or_else(|_| Vec::new(), |log| log.entries).into_iter().filter_map(id_of));
            }
        }
        Self { parent: append.parent, ids }
    }
}

fn id_of(entry: HistoryEntry) -> Option<String> {
    match entry {
        HistoryEntry::Message(message) => Some(message.id),
        HistoryEntry::Invocation(call) => Some(call.id),
        HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => None,
    }
}

fn items_of_appends(items: &ErasedItems, adopted: &[AdoptedSide], appends: &[(String, SideAppend)]) -> ItemsOfSides {
    let known: BTreeMap<&str, &SideAppend> = appends.iter().map(|(name, append)| (name.as_str(), append)).collect();
    // What begins to have another id with an append.
    let mut begins: BTreeMap<&str, Vec<&RenamedId>> = BTreeMap::new();
    for AdoptedSide { side, renamed } in adopted {
        let mut chain = Vec::new();
        let mut next = known.get_key_value(side.as_str());
        while let Some((name, append)) = next {
            chain.push((*name, *append));
            // A parent that is not older is damage, and must not lead in a circle.
            next =
                append.parent.as_deref().filter(|_| chain.len() < appends.len()).and_then(|id| known.get_key_value(id));
        }
        for item in renamed {
            let carrier = chain.iter().rfind(|(_, append)| append.ids.contains(&item.original));
            // One that an erasure which was cut off has rewritten already has it no more.
            if let Some((name, _)) = carrier.or(chain.last()) {
                begins.entry(name).or_default().push(item);
            }
        }
    }
    let mut scopes: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    let mut of_sides = BTreeMap::new();
    for (name, append) in appends {
        let of_parent = append.parent.as_deref().and_then(|parent| scopes.get(parent));
        let mut scope = of_parent.cloned().unwrap_or_default();
        let begun = begins.get(name.as_str()).into_iter().flatten();
        scope.extend(begun.map(|item| (item.original.as_str(), item.id.as_str())));
        if !scope.is_empty() {
            of_sides.insert(name.clone(), items.in_scope(&scope));
            scopes.insert(name, scope);
        }
    }
    of_sides
}

impl ErasedItems {
    /// Returns the items with the ids that they have where these ids stand for others.
    fn in_scope(&self, scope: &BTreeMap<&str, &str>) -> Self {
        let ids = |erased: &BTreeSet<String>| {
            let own = erased.iter().filter(|id| !scope.contains_key(id.as_str())).cloned();
            let renamed = scope.iter().filter(|(_, id)| erased.contains(**id));
            own.chain(renamed.map(|(original, _)| (*original).to_owned())).collect()
        };
        Self { messages: ids(&self.messages), invocations: ids(&self.invocations), first_seq: self.first_seq }
    }
}
