//! What Mistral's chat endpoint refuses: OpenAI's format with ids of nine letters and digits (gptel#1203), as many results
//! as calls (client-ts#106), and a last message that is not a finished answer. Recorded: a user message after a tool message,
//! `tool_calls: []` and `content: []` are accepted.

use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::openai_chat::rules::{Flavour, plan_as};
use crate::provider::rules::{IdRule, Plan, Words};

const ID: usize = 9;

const MISTRAL: Flavour = Flavour {
    ids: IdRule {
        optional: false,
        valid: |id| id.len() == ID && id.bytes().all(|b| b.is_ascii_alphanumeric()),
        fit: |id| short_name(id, ID),
        derive: |seed| short_name(seed, ID),
        variant: |base, count| short_name(&format!("{base}#{count}"), ID),
        missing: "Tool call id has to be defined: it must be a-z, A-Z, 0-9, with a length of 9.",
        invalid: "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.",
        double: "Duplicate tool call id {id} in assistant message.",
    },
    words: Words {
        dangling: "Not the same number of function calls and responses: no response to {id}.",
        orphan: "Unexpected tool call id {id} in tool results: a tool message must answer a call of the assistant message before it.",
        duplicate: "Not the same number of function calls and responses: more than one response to {id}.",
    },
    loose: true,
    parts: |_, _| None,
    developer: false,
    prefix: true,
};

/// Plans the repair of a Mistral body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, _body: JsonRef<'a>, list: JsonRef<'a>) {
    plan_as(plan, list, &MISTRAL);
}
