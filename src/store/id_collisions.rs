//! Replaces ids of new entries that history has already, when they are written.
//!
//! An application's id source may return the same ids after a reload or in another tab. `History::apply` ignores an
//! entry whose id is in use, so without this the content would be lost.

use crate::error::{Error, Result};
use crate::history::{History, HistoryEntry, free_id};
use crate::id::IdMap;
use crate::message::PartBody;

/// Replaces the ids of messages and invocations that are in use: `a` becomes `a-2`, `a-3` and so on.
///
/// # Errors
/// `invalid_input` if history has one of `caller_ids`, which must not be replaced.
pub(super) fn replace_ids_in_use(history: &History, entries: &mut [HistoryEntry], caller_ids: &[String]) -> Result<()> {
    if !entries.iter().any(|entry| own_id(entry).is_some_and(|id| history.has_id(id))) {
        return Ok(());
    }
    let replaced = replacements(history, entries, caller_ids)?;
    let rename = |id: &mut String| {
        if let Some(new) = replaced.get(id.as_str()) {
            id.clone_from(new);
        }
    };
    // A result before the new invocation of its id belongs to the stored invocation.
    let mut added = IdMap::with_seed(history.seed());
    for entry in entries {
        match entry {
            HistoryEntry::Message(message) => {
                rename(&mut message.id);
                for part in &mut message.parts {
                    if let PartBody::ToolCall { invocation, .. } = &mut part.body {
                        rename(invocation);
                    }
                }
            }
            HistoryEntry::Invocation(call) => {
                added.insert(call.id.clone(), ());
                rename(&mut call.id);
                rename(&mut call.message_id);
            }
            HistoryEntry::Result(result) if added.contains_key(&result.invocation) => rename(&mut result.invocation),
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
        }
    }
    Ok(())
}

/// Returns a map from each id that history has already to the new id of that entry.
fn replacements(history: &History, entries: &[HistoryEntry], caller_ids: &[String]) -> Result<IdMap<String>> {
    let mut taken = IdMap::with_seed(history.seed());
    for id in entries.iter().filter_map(own_id) {
        taken.insert(id.clone(), ());
    }
    let mut fixed = IdMap::with_seed(history.seed());
    for id in caller_ids {
        fixed.insert(id.clone(), ());
    }
    let mut replaced = IdMap::with_seed(history.seed());
    for entry in entries {
        let Some(id) = own_id(entry).filter(|id| history.has_id(id)) else { continue };
        if fixed.contains_key(id) {
            return Err(Error::invalid(format!(
                "another tab or process has stored a message or a call with the id \"{id}\"; nothing was appended: pass another id, or start the run again"
            )));
        }
        let count = history.id_count() + taken.count();
        let new = free_id(id.clone(), count, &|id| history.has_id(id) || taken.contains_key(id));
        taken.insert(new.clone(), ());
        replaced.insert(id.clone(), new);
    }
    Ok(replaced)
}

fn own_id(entry: &HistoryEntry) -> Option<&String> {
    match entry {
        HistoryEntry::Message(message) => Some(&message.id),
        HistoryEntry::Invocation(call) => Some(&call.id),
        HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => None,
    }
}
