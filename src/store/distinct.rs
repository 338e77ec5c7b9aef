//! Distinct ids: what is appended gets ids that history does not have yet, at the moment it is written.
//!
//! Ids may come from an application whose source repeats itself after a reload or in another tab. A message under an id that is
//! stored already would be folded into nothing, so it is renamed, unless the caller named it: then the append is refused.

use crate::error::{Error, Result};
use crate::history::{Entry, History, free_id};
use crate::id::IdMap;
use crate::message::PartBody;

/// Gives messages and invocations ids of their own: `a` becomes `a-2`, `a-3` and so on.
///
/// # Errors
/// `invalid_input` for a message id in `named` that history has already.
pub(super) fn make_distinct(history: &History, entries: &mut [Entry], named: &[String]) -> Result<()> {
    if !entries.iter().any(|entry| own_id(entry).is_some_and(|id| history.has_id(id))) {
        return Ok(());
    }
    let renamed = new_names(history, entries, named)?;
    let rename = |id: &mut String| {
        if let Some(new) = renamed.get(id.as_str()) {
            id.clone_from(new);
        }
    };
    // A result may answer a stored call of the same id as a new one: it names a new one only after that.
    let mut begun = IdMap::with_hasher(history.seed());
    for entry in entries {
        match entry {
            Entry::Message(message) => {
                rename(&mut message.id);
                for part in &mut message.parts {
                    if let PartBody::ToolCall { invocation, .. } = &mut part.body {
                        rename(invocation);
                    }
                }
            }
            Entry::Invocation(call) => {
                begun.insert(call.id.clone(), ());
                rename(&mut call.id);
                rename(&mut call.message_id);
            }
            Entry::Result(result) if begun.contains_key(&result.invocation) => rename(&mut result.invocation),
            Entry::Result(_) | Entry::SetAside(_) => {}
        }
    }
    Ok(())
}

/// The new id of each entry whose own is stored already.
fn new_names(history: &History, entries: &[Entry], named: &[String]) -> Result<IdMap<String>> {
    let mut taken = IdMap::with_hasher(history.seed());
    for id in entries.iter().filter_map(own_id) {
        taken.insert(id.clone(), ());
    }
    let mut refused = IdMap::with_hasher(history.seed());
    for id in named {
        refused.insert(id.clone(), ());
    }
    let mut renamed = IdMap::with_hasher(history.seed());
    for entry in entries {
        let Some(id) = own_id(entry).filter(|id| history.has_id(id)) else { continue };
        if matches!(entry, Entry::Message(_)) && refused.contains_key(id) {
            return Err(Error::invalid(format!(
                "another tab or process stored a message of the id \"{id}\" in the meantime; nothing was appended"
            )));
        }
        let count = history.id_count() + taken.count();
        let new = free_id(id.clone(), count, &|id| history.has_id(id) || taken.contains_key(id));
        taken.insert(new.clone(), ());
        renamed.insert(id.clone(), new);
    }
    Ok(renamed)
}

fn own_id(entry: &Entry) -> Option<&String> {
    match entry {
        Entry::Message(message) => Some(&message.id),
        Entry::Invocation(call) => Some(&call.id),
        Entry::Result(_) | Entry::SetAside(_) => None,
    }
}
