//! What Mistral's chat endpoint rejects, in addition to OpenAI's rules.
//!
//! Call ids must have nine letters and digits (gptel#1203), there must be as many results as calls (client-ts#106), and
//! the last message must not be a finished answer. `prefix` is accepted in the last message only, and the name of a
//! tool message must match `[a-zA-Z0-9_-]` (mistral-common, which validates requests itself). Recorded exchanges show
//! that Mistral accepts a user message after a tool message, `"tool_calls":[]` and `"content":[]`.

mod order;

use super::ids::{ID_LENGTH, is_valid_id};
use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::openai_chat::rules::{ChatRules, plan_as};
use crate::provider::rules::{ErrorTemplates, IdRule, Plan};

pub(crate) const DANGLING: &str = "Not the same number of function calls and responses: no response to {}.";
pub(crate) const DUPLICATE_RESULT: &str =
    "Not the same number of function calls and responses: more than one response to {}.";

/// The types of Mistral's content chunks, for every role.
const CHUNK_TYPES: &[&str] = &["text", "image_url", "document_url", "file", "thinking", "reference", "input_audio"];

/// The rule of call ids.
pub(crate) const IDS: IdRule = IdRule {
    optional: false,
    valid: is_valid_id,
    fit: |id| short_name(id, ID_LENGTH),
    derive: |seed| short_name(seed, ID_LENGTH),
    variant: |base, count| short_name(&format!("{base}#{count}"), ID_LENGTH),
    missing: "Tool call id has to be defined: it must be a-z, A-Z, 0-9, with a length of 9.",
    invalid: "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9.",
    duplicate: "Duplicate tool call id {} in assistant message.",
};

const MISTRAL: ChatRules = ChatRules {
    ids: IDS,
    errors: ErrorTemplates {
        dangling: DANGLING,
        orphan: "Unexpected tool call id {} in tool results: a tool message must answer a call of the assistant message before it.",
        duplicate: DUPLICATE_RESULT,
    },
    lenient: true,
    allowed_parts: |_, _| Some(CHUNK_TYPES),
    developer_role: false,
    empty_answer: Some("Assistant message must have either content or tool_calls, but not none."),
    checks_result_names: true,
    check_order: order::check_order,
};

/// Plans the repair of a Mistral body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    plan_as(plan, list, &MISTRAL);
}
