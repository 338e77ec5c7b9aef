//! What Gemini's generateContent refuses, and the edit that mends it.
//!
//! Sources: the sentences that its API answers with (gemini-cli#26486, #16415, #11814, langchain#27799, 5ire#405,
//! crewAI#6973), corrected by recorded exchanges: model contents in a row are one turn, so are the responses to it; text
//! and data may stand beside responses; users may speak twice; ids may be absent, and then order and name pair.

mod parts;

use super::model_version::{GEMINI_3, GEMINI_3_6, model_version};
use super::part::{CALL_NAMES, RESPONSE_NAMES, SIGNATURE_NAMES, split_part};
use crate::finding::FindingCode;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{
    Block, BlockKind, BodyLocation, BodyPiece, ErrorTemplates, Fields, IdRule, Plan, Speaker, Turn, TurnGrammar,
    TurnReader, Violation, WireCall, object_text, place_blocks, quoted, write_turns,
};

/// Google's stand-in for the signature of a call that another model made: `skip_thought_signature_validator`, in base64 as
/// recorded requests have it. Gemini 3 rejects the first call of a step without a signature.
pub(crate) const PLACEHOLDER_SIGNATURE: &str = "\"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=\"";

const IDS: IdRule = IdRule {
    optional: true,
    valid: |id| !id.is_empty(),
    fit: str::to_owned,
    derive: str::to_owned,
    variant: |base, count| format!("{base}_{count}"),
    missing: "functionCall.id: a string was expected.",
    invalid: "Invalid value at 'functionCall.id' (TYPE_STRING), {}",
    double: "functionCall.id: '{}' is doubled.",
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
    text: TEXT,
    role: "model",
    roles: &[("user", Speaker::User), ("function", Speaker::User), ("", Speaker::User), ("model", Speaker::Model)],
    lax: true,
    joined: false,
    no_role: "Please use a valid role: user, model.",
    no_turn: "Invalid value at 'contents[{at}]': an object was expected.",
    misplaced: "Please ensure that function call parts stand in a model turn.",
    only_model: |fields, _| object(fields, CALL_NAMES).is_some(),
    content,
    stays: parts::stays,
    block,
};

/// How a text part begins.
const TEXT: &str = "{\"text\":";
/// What a user turn says that stands only where a provider wants one.
const GO_ON: &str = "{\"text\":\"Continue.\"}";

/// Plans the repair of a Gemini body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let filler = format!("{{\"error\":{}}}", quoted(plan.options.text()));
    let TurnReader { plan, mut pairs, turns, .. } = TurnReader::read(plan, list, filler.clone(), &GRAMMAR);
    let version = version_of(plan);
    pairs.settle(plan, &IDS);
    for call in &pairs.calls {
        if !call.omitted && call.id.is_some() && (!call.has_valid_id || call.id.as_ref() != Some(&call.new_id)) {
            plan.edits.set(call.value, "id", quoted(&call.new_id));
        }
    }
    for answer in &pairs.results {
        let Some(call) = pairs.call_of(answer) else { continue };
        // The id of the call, if that has one.
        let id = if call.id.is_some() { Some(&call.new_id) } else { answer.id.as_ref() };
        if let Some(id) = id.filter(|id| !answer.has_valid_id || answer.id.as_ref() != Some(*id)) {
            let sentence = "functionResponse.id: the id of its call was expected.";
            if answer.id.is_none() && answer.label == call.label && version < GEMINI_3_6 {
                plan.report(Violation::warning(FindingCode::InvalidCallId, sentence).at(answer.location));
            } else {
                plan.edits.set(answer.value, "id", quoted(id));
                // Else it was reported at the call.
                if !answer.has_valid_id || answer.id != call.id {
                    plan.report(
                        Violation::error(FindingCode::InvalidCallId, sentence)
                            .at(answer.location)
                            .of_call(&call.new_id)
                            .renamed(),
                    );
                }
            }
        }
        if answer.label != call.label {
            let sentence = "functionResponse.name: the name of its call was expected.";
            let place = BodyLocation { value: answer.location.value, member: "functionResponse/name" };
            plan.report(Violation::error(FindingCode::Malformed, sentence).at(place).of_call(&call.new_id).rewritten());
            plan.edits.set(answer.value, "name", quoted(&call.label));
        }
    }
    let made = |call: &WireCall<'_>| {
        let id = &call.new_id;
        let id = if id.is_empty() { String::new() } else { format!("\"id\":{},", quoted(id)) };
        format!("{{\"functionResponse\":{{{id}\"name\":{},\"response\":{filler}}}}}", quoted(&call.label))
    };
    let mut turns = place_blocks(plan, list, turns, &pairs, &ERROR_TEMPLATES, &made, true);
    sign(plan, &turns, version);
    frame(plan, list, &mut turns);
    part(plan, list, &mut turns, version);
    write_turns(plan, list, &mut turns, &GRAMMAR);
}

/// A user turn before a call that would come first, and after a model turn that would come last.
fn frame<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &mut Vec<Turn<'a>>) {
    let made = || Turn::made(Speaker::User, list, vec![Block::made(GO_ON.into())]);
    let mut calls = false;
    for turn in turns.iter().filter(|turn| !turn.removed) {
        if turn.speaker != Speaker::Model {
            break;
        }
        calls |= turn.blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolCall(_)));
    }
    if calls {
        plan.report(Violation::error(FindingCode::RoleOrder, "Please ensure that function call turn comes immediately after a user turn or after a function response turn.").at(list).synthesized());
        turns.insert(0, made());
    }
    if turns.iter().rev().find(|turn| !turn.removed).is_some_and(|turn| turn.speaker == Speaker::Model) {
        plan.report(
            Violation::error(
                FindingCode::RoleOrder,
                "Please ensure that multiturn requests end with a user role or a function response.",
            )
            .at(list)
            .synthesized(),
        );
        turns.push(made());
    }
}

/// The version of the model, where the body names it: as a rule only the address does.
fn version_of(plan: &Plan<'_, '_>) -> u16 {
    model_version(&plan.body.text("model").unwrap_or_default())
}

/// Words behind a response in the last content: 2.5 took them (recorded), 3.6 and 3.7 take the content for the model's.
fn part<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &mut Vec<Turn<'a>>, version: u16) {
    let Some(last) = turns.iter_mut().rev().find(|turn| !turn.removed) else { return };
    let answer = last.blocks.iter().position(|block| matches!(block.kind, BlockKind::ToolResult(_)));
    if last.blocks.iter().skip(answer.unwrap_or(usize::MAX)).all(|block| block.kind != BlockKind::Other) {
        return;
    }
    let sentence =
        "Requests ending with a model turn are not supported: newer models say so of words behind a functionResponse.";
    if version < GEMINI_3_6 {
        return plan.report(Violation::warning(FindingCode::RoleOrder, sentence).at(last.about));
    }
    plan.report(Violation::error(FindingCode::RoleOrder, sentence).at(last.about).moved());
    let rest = last.split_after_results();
    turns.push(Turn::made(Speaker::User, list, rest));
}

/// Gemini 3 wants the signature of the first call of each step in the current turn, which begins at the last user content
/// that says something. Where the model is not named, this can but warn.
fn sign<'a>(plan: &mut Plan<'a, '_>, turns: &[Turn<'a>], version: u16) {
    let third = version >= GEMINI_3;
    let signature =
        |part: JsonRef<'_>| SIGNATURE_NAMES.iter().any(|key| part.find(key).is_some_and(|value| !value.is_text("")));
    // The current turn begins behind the last user content that says something.
    let (mut signing, mut current) = (third, 0);
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| !turn.removed) {
        for block in &turn.blocks {
            match (block.kind, block.value) {
                (BlockKind::ToolCall(_), Some(part)) => signing |= signature(part),
                (BlockKind::Other, Some(_)) if turn.speaker == Speaker::User => current = at + 1,
                _ => {}
            }
        }
    }
    if !signing {
        return;
    }
    let mut seen = None;
    for turn in turns.iter().skip(current) {
        if turn.removed || turn.speaker != Speaker::Model || turn.run == seen {
            continue;
        }
        let mut calls = turn.blocks.iter().filter(|block| matches!(block.kind, BlockKind::ToolCall(_)));
        let Some(part) = calls.next().and_then(|block| block.value) else { continue };
        seen = turn.run;
        if signature(part) {
            continue;
        }
        let sentence = "Function call is missing a thought_signature in functionCall parts.";
        if !third {
            plan.report(Violation::warning(FindingCode::UnsignedThinking, sentence).at(turn.about));
            continue;
        }
        plan.report(Violation::error(FindingCode::UnsignedThinking, sentence).at(turn.about).rewritten());
        let [camel, snake] = SIGNATURE_NAMES;
        let key = if part.get(camel).is_none() && part.get(snake).is_some() { snake } else { camel };
        plan.edits.set(part, key, PLACEHOLDER_SIGNATURE.into());
    }
}

fn object<'a>(fields: &Fields<'a>, names: [&str; 2]) -> Option<JsonRef<'a>> {
    let named = |name| fields.get(name).filter(|value| value.is_object());
    let [camel, snake] = names;
    named(camel).or_else(|| named(snake))
}

/// A content's parts.
fn content<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>) {
    let value = fields.object;
    if fields.text("role").is_some_and(|role| role.eq_ignore_ascii_case("function")) {
        // Newer models refuse it.
        reader.plan.report(Violation::warning(FindingCode::RoleOrder, GRAMMAR.no_role).at_member(value, "role"));
    }
    let parts = fields.get("parts");
    match parts.map(|parts| (parts, parts.kind())) {
        Some((parts, Kind::Array)) if parts.items().next().is_some() => reader.blocks(fields, parts),
        Some((parts, kind @ (Kind::Object | Kind::String))) => {
            let sentence = "Invalid value at 'contents[{at}].parts': a list was expected.";
            if kind == Kind::Object {
                // Google's own examples have one part so.
                reader.plan.report(Violation::warning(FindingCode::Malformed, sentence).at_member(value, "parts"));
            } else {
                reader
                    .plan
                    .report(Violation::error(FindingCode::Malformed, sentence).at_member(value, "parts").rewritten());
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

fn block<'a>(reader: &mut TurnReader<'_, 'a, '_>, fields: &Fields<'a>, _: &str, _: Speaker) -> Option<Block<'a>> {
    let part = fields.object;
    let mut pieces = split_part(part);
    let last = pieces.pop();
    let kind = if let Some(inner) = object(fields, CALL_NAMES) {
        BlockKind::ToolCall(call(reader, part, inner))
    } else if let Some(inner) = object(fields, RESPONSE_NAMES) {
        BlockKind::ToolResult(response(reader, part, inner))
    } else {
        BlockKind::Other
    };
    let Some(last) = last else {
        let other = kind == BlockKind::Other;
        let piece = if other { parts::read(reader.plan, fields) } else { reader.plan.edits.source(part) };
        return Some(Block { kind, value: Some(part), piece });
    };
    reader
        .plan
        .report(Violation::error(FindingCode::Malformed, "oneof field 'data' is already set").at(part).rewritten());
    pieces.push(last);
    let names = if matches!(kind, BlockKind::ToolCall(_)) { CALL_NAMES } else { RESPONSE_NAMES };
    let mut made = None;
    for piece in pieces {
        // What is said beside a call or response; the next round looks into it.
        let own = object(&Fields::of(piece.view()), names).is_some();
        let kind = if own { kind } else { BlockKind::Other };
        let block = Block { kind, value: Some(part), piece: BodyPiece::New(piece.as_str().to_owned()) };
        if let (Some(before), Some(turn)) = (made.replace(block), reader.turns.last_mut()) {
            turn.blocks.push(before);
        }
    }
    made
}

/// Takes the id from a call or response where it is none.
fn mend_id<'a>(plan: &mut Plan<'a, '_>, part: JsonRef<'a>, inner: &Fields<'a>, member: &'static str) {
    if inner.find("id").is_some_and(|id| !matches!(id.kind(), Kind::String | Kind::Number)) {
        plan.report(
            Violation::error(FindingCode::InvalidCallId, "Invalid value at 'id' (TYPE_STRING)")
                .at_member(part, member)
                .dropped(),
        );
        plan.edits.remove(inner.object, "id");
    }
}

/// What pairs a call or response that has no id.
fn alias(name: &str) -> String {
    format!("\u{1}{name}")
}

fn call<'a>(reader: &mut TurnReader<'_, 'a, '_>, part: JsonRef<'a>, call: JsonRef<'a>) -> usize {
    let fields = Fields::of(call);
    let plan = &mut *reader.plan;
    mend_id(plan, part, &fields, "functionCall/id");
    let mut name = fields.owned_text("name");
    let alias = alias(&name);
    if name.is_empty() {
        name = "unknown".into();
        let sentence = "functionCall.name: Name cannot be empty.";
        plan.report(
            Violation::error(FindingCode::Malformed, sentence).at_member(part, "functionCall/name").rewritten(),
        );
        plan.edits.set(call, "name", quoted(&name));
    }
    let arguments = fields.find("args");
    if arguments.is_some_and(|arguments| !arguments.is_object()) {
        let sentence = "Invalid value at 'functionCall.args' (type.googleapis.com/google.protobuf.Struct)";
        plan.report(
            Violation::error(FindingCode::InvalidArguments, sentence).at_member(part, "functionCall/args").rewritten(),
        );
        plan.edits.set(call, "args", object_text(arguments));
    }
    let c = reader.pairs.add_call(call, fields.find("id"), &alias, reader.run, name);
    if let Some(call) = reader.pairs.calls.last_mut() {
        call.location = BodyLocation { value: part, member: "functionCall" };
    }
    c
}

fn response<'a>(reader: &mut TurnReader<'_, 'a, '_>, part: JsonRef<'a>, response: JsonRef<'a>) -> usize {
    let fields = Fields::of(response);
    let plan = &mut *reader.plan;
    mend_id(plan, part, &fields, "functionResponse/id");
    let name = fields.owned_text("name");
    let given = fields.get("response");
    if !given.is_some_and(JsonRef::is_object) {
        let sentence = "Invalid value at 'functionResponse.response' (type.googleapis.com/google.protobuf.Struct)";
        plan.report(
            Violation::error(FindingCode::Malformed, sentence).at_member(part, "functionResponse/response").rewritten(),
        );
        let text = match given.filter(|value| !value.is_null()) {
            Some(value) => format!("{{\"result\":{}}}", value.as_raw()),
            None => "{}".into(),
        };
        plan.edits.set(response, "response", text);
    }
    let a = reader.pairs.add_result(response, fields.find("id"), &alias(&name), reader.reply_to, name, given);
    if let Some(answer) = reader.pairs.results.last_mut() {
        answer.location = BodyLocation { value: part, member: "functionResponse" };
    }
    a
}
