//! Gemini's calls and responses: their members, and the id and name that pair them.
//!
//! Ids are optional in Gemini. Calls and responses without one are paired by name, and those of one name in their
//! order.

use super::parts::repair_part;
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::gemini::model_version::GEMINI_3_6;
use crate::provider::gemini::part::{CALL_NAMES, NamedPart, RESPONSE_NAMES, split_part};
use crate::provider::rules::{
    Block, BlockKind, BodyLocation, BodyPiece, Fields, FoundCall, FoundResult, Pairs, Plan, Speaker, TurnReader,
    Violation, WireCall, WireResult, object_text, quoted,
};

/// Returns the member that is an object under either name; if both are, the one in camel case.
pub(super) fn object_field<'a>(fields: &Fields<'a>, names: [&str; 2]) -> Option<JsonRef<'a>> {
    names.iter().find_map(|name| fields.get(name).filter(|value| value.is_object()))
}

/// Reads a part that is kept. One with several data members becomes several parts.
pub(super) fn read_part<'a>(
    reader: &mut TurnReader<'_, 'a, '_>,
    fields: &Fields<'a>,
    _: &str,
    _: Speaker,
) -> Option<Block<'a>> {
    let part = fields.object;
    let kind = if let Some(named) = object_field(fields, CALL_NAMES) {
        BlockKind::ToolCall(read_call(reader, NamedPart { part, named }))
    } else if let Some(named) = object_field(fields, RESPONSE_NAMES) {
        BlockKind::ToolResult(read_response(reader, NamedPart { part, named }))
    } else {
        BlockKind::Other
    };
    let new_parts = split_part(part);
    if new_parts.is_empty() {
        let is_other = kind == BlockKind::Other;
        let piece = if is_other { repair_part(reader.plan, fields) } else { reader.plan.edits.source(part) };
        return Some(Block { kind, value: Some(part), piece });
    }
    let sentence = "oneof field 'data' is already set";
    reader.plan.report(Violation::error(FindingCode::Malformed, sentence).at(part).rewritten());
    let names = if matches!(kind, BlockKind::ToolCall(_)) { CALL_NAMES } else { RESPONSE_NAMES };
    let mut blocks = new_parts.iter().map(|new_part| {
        // The next round of the repair reads the other parts.
        let has_kind = object_field(&Fields::of(new_part.view()), names).is_some();
        let kind = if has_kind { kind } else { BlockKind::Other };
        Block { kind, value: Some(part), piece: BodyPiece::New(new_part.as_str().to_owned()) }
    });
    let last = blocks.next_back();
    if let Some(turn) = reader.turns.last_mut() {
        turn.blocks.extend(blocks);
    }
    last
}

/// Removes an `id` that is neither a string nor a number.
fn remove_invalid_id<'a>(plan: &mut Plan<'a, '_>, location: BodyLocation<'a>, named: &Fields<'a>) {
    if named.find("id").is_some_and(|id| !matches!(id.kind(), JsonKind::String | JsonKind::Number)) {
        let sentence = "Invalid value at 'id' (TYPE_STRING)";
        plan.report(Violation::error(FindingCode::InvalidCallId, sentence).at(location).dropped());
        plan.edits.remove(named.object, "id");
    }
}

/// Returns what pairs a call or response without an id. No id starts with U+0001.
fn alias(name: &str) -> String {
    format!("\u{1}{name}")
}

/// Reads a call and repairs its members. Returns its number.
fn read_call<'a>(reader: &mut TurnReader<'_, 'a, '_>, NamedPart { part, named: call }: NamedPart<'a>) -> usize {
    let fields = Fields::of(call);
    let plan = &mut *reader.plan;
    remove_invalid_id(plan, BodyLocation { value: part, member: "functionCall/id" }, &fields);
    let mut name = fields.owned_text("name");
    let alias = alias(&name);
    if name.is_empty() {
        name = "unknown".into();
        let sentence = "functionCall.name: Name cannot be empty.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(part, "functionCall/name");
        plan.report(violation.rewritten());
        plan.edits.set(call, "name", quoted(&name));
    }
    let arguments = fields.find("args");
    if arguments.is_some_and(|arguments| !arguments.is_object()) {
        let sentence = "Invalid value at 'functionCall.args' (type.googleapis.com/google.protobuf.Struct)";
        let violation = Violation::error(FindingCode::InvalidArguments, sentence).at_member(part, "functionCall/args");
        plan.report(violation.rewritten());
        plan.edits.set(call, "args", object_text(arguments));
    }
    let number = reader.pairs.add_call(FoundCall {
        value: call,
        id: fields.find("id"),
        alias: &alias,
        group: reader.run,
        label: name,
        ..FoundCall::default()
    });
    if let Some(call) = reader.pairs.calls.last_mut() {
        call.location = BodyLocation { value: part, member: "functionCall" };
    }
    number
}

/// Reads a response and repairs its members. Returns its number.
fn read_response<'a>(reader: &mut TurnReader<'_, 'a, '_>, NamedPart { part, named: response }: NamedPart<'a>) -> usize {
    let fields = Fields::of(response);
    let plan = &mut *reader.plan;
    remove_invalid_id(plan, BodyLocation { value: part, member: "functionResponse/id" }, &fields);
    let name = fields.owned_text("name");
    let content = fields.get("response");
    if !content.is_some_and(JsonRef::is_object) {
        let sentence = "Invalid value at 'functionResponse.response' (type.googleapis.com/google.protobuf.Struct)";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(part, "functionResponse/response");
        plan.report(violation.rewritten());
        let text = match content.filter(|value| !value.is_null()) {
            Some(value) => format!("{{\"result\":{}}}", value.as_raw()),
            None => "{}".into(),
        };
        plan.edits.set(response, "response", text);
    }
    let number = reader.pairs.add_result(FoundResult {
        value: response,
        id: fields.find("id"),
        alias: &alias(&name),
        reply_to: reader.reply_to,
        label: name,
        content,
    });
    if let Some(result) = reader.pairs.results.last_mut() {
        result.location = BodyLocation { value: part, member: "functionResponse" };
    }
    number
}

/// Writes the ids that pairing chose, and gives each response the id and name of its call. `version` is the model's.
pub(super) fn write_ids_and_names<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, version: u16) {
    for call in &pairs.calls {
        if !call.omitted && call.id.is_some() && (!call.has_valid_id || call.id.as_ref() != Some(&call.new_id)) {
            plan.edits.set(call.value, "id", quoted(&call.new_id));
        }
    }
    for result in &pairs.results {
        let Some(call) = pairs.call_of(result) else { continue };
        write_response_id(plan, call, result, version);
        if result.label != call.label {
            let sentence = "functionResponse.name: the name of its call was expected.";
            let violation = Violation::error(FindingCode::Malformed, sentence)
                .at_member(result.location.value, "functionResponse/name");
            plan.report(violation.of_call(&call.new_id).rewritten());
            plan.edits.set(result.value, "name", quoted(&call.label));
        }
    }
}

/// Gives a response the id of its call. If only the response has an id, it keeps it. A missing id is a warning for
/// models before Gemini 3.6, which pair by name.
fn write_response_id<'a>(plan: &mut Plan<'a, '_>, call: &WireCall<'a>, result: &WireResult<'a>, version: u16) {
    let id = if call.id.is_some() { Some(&call.new_id) } else { result.id.as_ref() };
    let Some(id) = id.filter(|id| !result.has_valid_id || result.id.as_ref() != Some(*id)) else { return };
    let sentence = "functionResponse.id: the id of its call was expected.";
    if result.id.is_none() && result.label == call.label && version < GEMINI_3_6 {
        return plan.report(Violation::warning(FindingCode::InvalidCallId, sentence).at(result.location));
    }
    plan.edits.set(result.value, "id", quoted(id));
    // A valid id that the call had, too, was reported at the call.
    if !result.has_valid_id || result.id != call.id {
        let violation = Violation::error(FindingCode::InvalidCallId, sentence).at(result.location);
        plan.report(violation.of_call(&call.new_id).renamed());
    }
}

/// Returns an error response for a call without a response. `response` is the JSON of its content.
pub(super) fn synthesize_response(call: &WireCall<'_>, response: &str) -> String {
    let id = match call.new_id.as_str() {
        "" => String::new(),
        id => format!("\"id\":{},", quoted(id)),
    };
    format!("{{\"functionResponse\":{{{id}\"name\":{},\"response\":{response}}}}}", quoted(&call.label))
}
