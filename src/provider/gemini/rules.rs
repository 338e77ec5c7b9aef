//! What Gemini's generateContent rejects, and the edit that fixes each violation.
//!
//! Sources: the error messages of the API (gemini-cli#26486, #16415, #11814, langchain#27799, 5ire#405, crewAI#6973),
//! corrected by recorded exchanges. Those show that Gemini treats consecutive model contents as one turn, and the
//! responses after them too, and accepts text and data beside responses, consecutive user contents, and calls without
//! ids.

mod call_parts;
mod parts;
mod signatures;
mod turn_order;

pub(crate) use signatures::PLACEHOLDER_SIGNATURE;

use super::model_version::model_version;
use super::part::CALL_NAMES;
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::{
    ErrorTemplates, Fields, IdRule, PlacementRules, Plan, Speaker, TurnGrammar, TurnReader, Violation, WireCall,
    place_blocks, quoted, write_turns,
};

const IDS: IdRule = IdRule {
    optional: true,
    valid: |id| !id.is_empty(),
    fit: str::to_owned,
    derive: str::to_owned,
    variant: |base, count| format!("{base}_{count}"),
    missing: "functionCall.id: a string was expected.",
    invalid: "Invalid value at 'functionCall.id' (TYPE_STRING), {}",
    duplicate: "functionCall.id: '{}' is doubled.",
};

const ERROR_TEMPLATES: ErrorTemplates = ErrorTemplates {
    dangling: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. No response: {}.",
    orphan: "Please ensure that function response turn comes immediately after a function call turn. No such call: {}.",
    duplicate: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. More than one response: {}.",
};

const GRAMMAR: TurnGrammar = TurnGrammar {
    user: "{\"role\":\"user\",\"parts\":[",
    model: "{\"role\":\"model\",\"parts\":[",
    close: "]}",
    text: parts::TEXT_PART_START,
    role: "model",
    roles: &[("user", Speaker::User), ("function", Speaker::User), ("", Speaker::User), ("model", Speaker::Model)],
    has_loose_roles: true,
    merges_user_turns: false,
    unknown_role: "Please use a valid role: user, model.",
    not_a_turn: "Invalid value at 'contents[{at}]': an object was expected.",
    misplaced: "Please ensure that function call parts stand in a model turn.",
    only_model: |fields, _| call_parts::object_field(fields, CALL_NAMES).is_some(),
    content: read_content,
    keeps_block: parts::is_kept,
    block: call_parts::read_part,
};

/// Plans the repair of a Gemini body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let closing_response = format!("{{\"error\":{}}}", quoted(plan.options.text()));
    let TurnReader { plan, mut pairs, turns, .. } = TurnReader::read(plan, list, closing_response.clone(), &GRAMMAR);
    if plan.is_over_budget() {
        return;
    }
    // Some clients name the model in the body. As a rule only the URL does, which the rules do not see.
    let version = model_version(&plan.body.text("model").unwrap_or_default());
    pairs.resolve(plan, &IDS);
    call_parts::write_ids_and_names(plan, &pairs, version);
    let synthesize = |call: &WireCall<'_>| call_parts::synthesize_response(call, &closing_response);
    let placement = PlacementRules { templates: &ERROR_TEMPLATES, synthesize: &synthesize, separate: true };
    let mut turns = place_blocks(plan, turns, &pairs, &placement);
    if plan.is_over_budget() {
        return;
    }
    signatures::add_signatures(plan, &turns, version);
    turn_order::add_user_turns(plan, list, &mut turns);
    turn_order::split_last_content(plan, list, &mut turns, version);
    write_turns(plan, list, &mut turns, &GRAMMAR);
}

/// Reads the parts of a content into the last turn.
fn read_content<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let value = fields.object;
    if fields.text("role").is_some_and(|role| role.eq_ignore_ascii_case("function")) {
        // Newer models reject this role.
        reader.plan.report(Violation::warning(FindingCode::RoleOrder, GRAMMAR.unknown_role).at_member(value, "role"));
    }
    let parts = fields.get("parts");
    match parts.map(|parts| (parts, parts.kind())) {
        Some((parts, JsonKind::Array)) if parts.items().next().is_some() => reader.blocks(fields, parts),
        Some((parts, kind @ (JsonKind::Object | JsonKind::String))) => {
            let sentence = "Invalid value at 'contents[{at}].parts': a list was expected.";
            if kind == JsonKind::Object {
                // Gemini accepts a single part: examples in Google's documentation have it.
                reader.plan.report(Violation::warning(FindingCode::Malformed, sentence).at_member(value, "parts"));
            } else {
                let violation = Violation::error(FindingCode::Malformed, sentence).at_member(value, "parts");
                reader.plan.report(violation.rewritten());
                reader.plan.edits.wrap(parts, "[", "]");
            }
            reader.blocks(fields, parts);
        }
        _ => {
            let sentence = "contents[{at}].parts: contents.parts must not be empty.";
            reader.plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(value).dropped());
            reader.drop_turn();
        }
    }
}
