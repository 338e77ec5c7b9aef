//! The names and ids of calls in requests.

use super::content_profile::ContentProfile;
use crate::id::{IdMap, Seed, short_name};
use crate::json::JsonStr;
use crate::provider::name_charset::{is_plain_id, plain};
use crate::replay::DraftCall;
use crate::tool::ToolInvocation;
use std::borrow::Cow;

/// Returns the name of a call in a request. A model can invent a name that its own provider rejects in the next
/// request.
#[must_use]
pub fn tool_name(call: &ToolInvocation) -> Cow<'_, str> {
    if !call.name.is_empty() && is_plain_id(&call.name) {
        return Cow::Borrowed(&call.name);
    }
    let name = plain(&call.name, 64);
    if name.is_empty() { Cow::Borrowed("unnamed") } else { Cow::Owned(name) }
}

/// Returns the id of a call and its result in a request: valid in the dialect, and always the same for the same call.
#[must_use]
pub(crate) fn call_id(content: &ContentProfile, call: &ToolInvocation) -> JsonStr {
    JsonStr::new(&plain_id(content, call))
}

/// Returns the id of a call in a result for a service that has the call: the one that it gave.
#[must_use]
pub(crate) fn id_of_service(content: &ContentProfile, call: &ToolInvocation) -> JsonStr {
    if call.call_id.is_empty() { call_id(content, call) } else { JsonStr::new(&call.call_id) }
}

fn plain_id(content: &ContentProfile, call: &ToolInvocation) -> String {
    let id = match call.wire_id() {
        "" => format!("call_{}", short_name(&call.id, 20)),
        id => id.to_owned(),
    };
    if (content.accepts_call_id)(&id) { id } else { (content.valid_call_id)(&id) }
}

/// Returns the ids of a message's calls, which are all different: ids that became equal by being made valid get a
/// suffix.
#[must_use]
pub(crate) fn call_ids(content: &ContentProfile, calls: &[DraftCall<'_>]) -> Vec<JsonStr> {
    // Ids in use, with the number of suffixed ids that were derived from each.
    let mut used: IdMap<usize> = IdMap::with_seed(Seed::default());
    let mut ids = Vec::new();
    for call in calls {
        let plain = plain_id(content, call.invocation);
        let mut id = plain.clone();
        while used.contains_key(&id) {
            let derived = used.get_or_insert(&plain, 0);
            *derived += 1;
            let suffix = if *derived == 1 { "#".to_owned() } else { format!("#{derived}") };
            id = (content.valid_call_id)(&(plain.clone() + &suffix));
        }
        used.insert(id.clone(), 0);
        ids.push(JsonStr::new(&id));
    }
    ids
}
