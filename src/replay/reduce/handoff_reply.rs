//! Checks what the filter of a handoff returned, before anything is sent (R31). A reducer that fails is skipped; a
//! filter that fails fails the run, since the next agent would see what it is not meant to see.

use super::question::{QuestionKind, QuestionSource, ReducerQuestion, ReducerReply, role_of};
use crate::error::{Error, ErrorCode, Result};
use crate::history::read_part;
use crate::id::IdMap;
use crate::json::{JsonKind, JsonRef};
use crate::message::Role;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl ReducerQuestion {
    /// Checks the reply of a handoff's filter. Any reply to a reducer's question passes.
    ///
    /// # Errors `callback_failed` if the filter threw or did not return messages, `invalid_input` for a message that
    /// occurs twice, and for a call or a result that the message does not have, and if every message of the user that
    /// it returned is empty.
    pub fn check_handoff_reply(&self, reply: &ReducerReply) -> Result<()> {
        if matches!(self.source, QuestionSource::Reducer(_)) {
            return Ok(());
        }
        let failed =
            |why: &str| Error::new(ErrorCode::CallbackFailed, format!("the handoff's `inputFilter` failed: {why}"));
        match (&self.question, reply) {
            (QuestionKind::Reduce(messages), ReducerReply::Messages(selected)) => {
                if selected.view().kind() != JsonKind::Array {
                    return Err(failed("it returned no list of messages"));
                }
                self.check_selected(messages.view(), selected.view())
            }
            (_, ReducerReply::Failed(reason)) => Err(failed(reason)),
            _ => Err(failed("it returned something else than messages")),
        }
    }

    fn check_selected(&self, messages: JsonRef<'_>, selected: JsonRef<'_>) -> Result<()> {
        let mut originals: IdMap<JsonRef<'_>> = IdMap::with_seed(self.seed);
        for message in messages.items() {
            originals.get_or_insert(&message.string("id"), message);
        }
        let mut used: IdMap<()> = IdMap::with_seed(self.seed);
        for (index, message) in selected.items().enumerate() {
            let invalid =
                |why: &str| Err(Error::invalid(format!("`inputFilter` of the handoff: message {index} {why}")));
            let parts = message.get("parts").filter(|parts| parts.kind() == JsonKind::Array);
            let (Some(role), Some(parts)) = (role_of(message), parts) else {
                return invalid("has no known `role`, or no `parts`");
            };
            let id = message.string("id");
            let original = originals.get(&id).filter(|_| !id.is_empty()).copied();
            if original.is_some() && used.get(&id).is_some() {
                return invalid("occurs twice; return each message once");
            }
            used.get_or_insert(&id, ());
            if original.is_some_and(|original| role_of(original) != Some(role)) {
                return invalid("has another role than before; return a new message, without `id`");
            }
            for part in parts.items() {
                if part.has_text("type", "tool_call") {
                    if !original.is_some_and(|original| has_equal_call(original, part)) {
                        return invalid(
                            "has a call, or a result, that it did not have; leave a call out or return it unchanged",
                        );
                    }
                } else if original.is_none() && read_part(part).is_err() {
                    return invalid("is new and has a part that is no text, image or file");
                }
            }
        }
        let of_user = |message: &JsonRef<'_>| role_of(*message) == Some(Role::User);
        if selected.items().any(|message| of_user(&message)) && !selected.items().filter(of_user).any(has_user_content)
        {
            return Err(Error::invalid(
                "`inputFilter` of the handoff empties every message of the user, so the agent has nothing to answer; replace the text of one, or \
                 leave them out: then the newest one stays",
            ));
        }
        Ok(())
    }
}

/// Returns true if a message has a part that is sent: a text that is not empty, an image, a file, or an item of its
/// dialect.
fn has_user_content(message: JsonRef<'_>) -> bool {
    let is_sent = |part: JsonRef<'_>| match part.text("type").as_deref() {
        Some("text" | "refusal") => part.text("text").is_some_and(|text| !text.is_empty()),
        Some("image" | "file" | "opaque") => true,
        _ => false,
    };
    message.get("parts").is_some_and(|parts| parts.items().any(is_sent))
}

/// Returns true if a message has a call that is equal in all members.
fn has_equal_call(original: JsonRef<'_>, part: JsonRef<'_>) -> bool {
    let invocation = part.get("invocation");
    let is_same_invocation = |candidate: &JsonRef<'_>| {
        invocation.is_some_and(|id| candidate.get("invocation").is_some_and(|other| is_same_js_value(other, id)))
    };
    let is_equal = |candidate| is_same_js_value(candidate, part);
    original.get("parts").is_some_and(|parts| parts.items().filter(is_same_invocation).any(is_equal))
}

/// Returns the members of an object, of which the last counts if a name occurs twice.
fn members(object: JsonRef<'_>) -> BTreeMap<Cow<'_, str>, JsonRef<'_>> {
    object.entries().filter_map(|(key, value)| Some((key.as_text()?, value))).collect()
}

/// Compares two values as JavaScript sees them: numbers by value, objects without the order of their members.
fn is_same_js_value(left: JsonRef<'_>, right: JsonRef<'_>) -> bool {
    let mut pairs = vec![(left, right)];
    while let Some((left, right)) = pairs.pop() {
        let is_same = left.as_raw() == right.as_raw()
            || left.kind() == right.kind()
                && match left.kind() {
                    JsonKind::Number => left.as_raw().parse::<f64>().ok() == right.as_raw().parse().ok(),
                    JsonKind::String => left.as_text() == right.as_text(),
                    JsonKind::Array => {
                        pairs.extend(left.items().zip(right.items()));
                        left.items().count() == right.items().count()
                    }
                    JsonKind::Object => {
                        let (left, right) = (members(left), members(right));
                        pairs.extend(left.iter().filter_map(|(name, value)| Some((*value, *right.get(name)?))));
                        left.len() == right.len() && left.keys().all(|name| right.contains_key(name))
                    }
                    JsonKind::Null | JsonKind::Bool => false,
                };
        if !is_same {
            return false;
        }
    }
    true
}
