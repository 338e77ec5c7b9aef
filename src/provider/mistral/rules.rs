//! What Mistral's chat endpoint refuses: OpenAI's format with ids of nine letters and digits (gptel#1203), as many results
//! as calls (client-ts#106), and a last message that is not a finished answer; `prefix` in no other message and a tool
//! message's name in `[a-zA-Z0-9_-]` (mistral-common, which is its own validator). Recorded: a user message after a tool
//! message, `tool_calls: []` and `content: []` are accepted.

use super::codec::{ID, is_legal_id};
use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::openai_chat::rules::{ChatRules, plan_as};
use crate::provider::rules::{ErrorTemplates, IdRule, Plan};

/// Its content chunks, whatever the role.
const CHUNKS: &[&str] = &["text", "image_url", "document_url", "file", "thinking", "reference", "input_audio"];

const MISTRAL: ChatRules = ChatRules {
    ids: IdRule {
        optional: false,
        valid: is_legal_id,
        fit: |id| short_name(id, ID),
        derive: |seed| short_name(seed, ID),
        variant: |base, count| short_name(&format!("{base}#{count}"), ID),
        missing: "Tool call id has to be defined: it must be a-z, A-Z, 0-9, with a length of 9.",
        invalid: "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9.",
        double: "Duplicate tool call id {} in assistant message.",
    },
    words: ErrorTemplates {
        dangling: "Not the same number of function calls and responses: no response to {}.",
        orphan: "Unexpected tool call id {} in tool results: a tool message must answer a call of the assistant message before it.",
        duplicate: "Not the same number of function calls and responses: more than one response to {}.",
    },
    lenient: true,
    allowed_parts: |_, _| Some(CHUNKS),
    developer_role: false,
    strict_order: true,
};

/// Plans the repair of a Mistral body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    plan_as(plan, list, &MISTRAL);
}
