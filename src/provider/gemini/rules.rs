//! What Gemini's generateContent refuses, and the edit that mends it.
//!
//! Sources: the sentences that its API answers with (gemini-cli#26486, #16415, #11814, langchain#27799, 5ire#405,
//! crewAI#6973), corrected by recorded exchanges: model contents in a row are one turn, so are the responses to it; text
//! and data may stand beside responses; users may speak twice; ids may be absent, and then order and name pair.

mod parts;

use crate::finding::Action;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{
    Answer, Block, BlockKind, Call, Fate, Fields, IdRule, Pairs, Piece, Plan, Runs, Shape, Speaker, Turn, Words, id_of,
    object_text, omit_open, place_blocks, quoted, write_turns,
};
use crate::sorted::Sorted;

const IDS: IdRule = IdRule {
    optional: true,
    valid: |id| !id.is_empty(),
    fit: str::to_owned,
    derive: str::to_owned,
    variant: |base, count| format!("{base}_{count}"),
    missing: "functionCall.id: a string was expected.",
    invalid: "Invalid value at 'functionCall.id' (TYPE_STRING), {id}",
    double: "functionCall.id: '{id}' is doubled.",
};

const WORDS: Words = Words {
    dangling: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. No response: {id}.",
    orphan: "Please ensure that function response turn comes immediately after a function call turn. No such call: {id}.",
    duplicate: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. More than one response: {id}.",
};

const SHAPE: Shape =
    Shape { user: "{\"role\":\"user\",\"parts\":[", model: "{\"role\":\"model\",\"parts\":[", close: "]}" };

/// What a user turn says that stands only where a provider wants one.
const GO_ON: &str = "{\"text\":\"Continue.\"}";
/// Google's own stand-in for a signature that another model never gave (gsd-pi#155); a last resort.
const UNSIGNED: &str = "\"skip_thought_signature_validator\"";

/// Plans the repair of a Gemini body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, _body: JsonRef<'a>, list: JsonRef<'a>) {
    let failed = |text: &str| {
        ObjectWriter::build(|o| {
            o.text("error", text);
        })
        .as_str()
        .to_owned()
    };
    let filler = failed(plan.options.text());
    let mut reader = Reader {
        plan,
        filler,
        pairs: Pairs::default(),
        turns: Vec::new(),
        runs: Runs::default(),
        calls: Vec::new(),
        results: Vec::new(),
    };
    for (at, value) in list.items().enumerate() {
        reader.content(at, value);
    }
    let Reader { plan, filler, mut pairs, turns, calls, results, .. } = reader;
    pairs.pair();
    omit_open(plan, &mut pairs);
    pairs.assign_ids(&IDS, &mut plan.report);
    for (value, call) in calls.iter().zip(&pairs.calls) {
        if !call.omitted && call.id.is_some() && !call.sound {
            plan.edits.set(*value, value.get("id"), "id", quoted(&call.new_id));
        }
    }
    for (value, answer) in results.iter().zip(&pairs.answers) {
        let Fate::Answers(c) = answer.fate else { continue };
        let Some(call) = pairs.calls.get(c) else { continue };
        if answer.id.is_some() && !answer.sound {
            plan.call_error(
                "invalid_call_id",
                &answer.path,
                &call.new_id,
                Action::Renamed,
                "Invalid value at 'functionResponse.id' (TYPE_STRING)",
            );
            plan.edits.set(*value, value.get("id"), "id", quoted(answer.id.as_deref().unwrap_or_default()));
        }
        if answer.label.is_empty() {
            plan.call_error(
                "malformed",
                format!("{}/name", answer.path),
                &call.new_id,
                Action::Rewritten,
                "functionResponse.name: Name cannot be empty: it is the name of the call.",
            );
            plan.edits.set(*value, value.get("name"), "name", quoted(&call.label));
        }
    }
    let mut seen: Sorted<(usize, &str), ()> = Sorted::new();
    let ids = pairs.calls.iter().map(|call| ((call.group, call.new_id.as_str()), ()));
    let doubled: Sorted<(usize, &str), ()> = ids.filter(|(id, ())| !seen.insert(*id, ())).collect();
    let made = |c: usize| {
        let Some(call) = pairs.calls.get(c) else { return String::new() };
        ObjectWriter::build(|o| {
            o.object("functionResponse", |o| {
                // Where parallel calls share an id, the name tells them apart.
                if !call.new_id.is_empty() && !doubled.contains(&(call.group, call.new_id.as_str())) {
                    o.text("id", &call.new_id);
                }
                o.text("name", &call.label).raw("response", &filler);
            });
        })
        .as_str()
        .to_owned()
    };
    let mut turns = place_blocks(plan, turns, &pairs, &WORDS, made);
    sign(plan, &turns);
    frame(plan, &mut turns);
    write_turns(plan, list, turns, &SHAPE);
}

/// A user turn before a call that would come first, and after a model turn that would come last.
fn frame<'a>(plan: &mut Plan<'a, '_>, turns: &mut Vec<Turn<'a>>) {
    let made = || Turn {
        speaker: Speaker::User,
        value: None,
        content: None,
        piece: None,
        path: String::new(),
        run: None,
        touched: true,
        gone: false,
        blocks: vec![Block { kind: BlockKind::Other, value: None, piece: Piece::New(GO_ON.into()) }],
    };
    let opening = turns.iter().filter(|turn| !turn.gone).take_while(|turn| turn.speaker == Speaker::Model);
    if opening.flat_map(|turn| &turn.blocks).any(|block| matches!(block.kind, BlockKind::Call(_))) {
        plan.error("role_order", plan.base.clone(), Action::Synthesized, "Please ensure that function call turn comes immediately after a user turn or after a function response turn.");
        turns.insert(0, made());
    }
    if turns.iter().rev().find(|turn| !turn.gone).is_some_and(|turn| turn.speaker == Speaker::Model) {
        plan.error(
            "role_order",
            plan.base.clone(),
            Action::Synthesized,
            "Please ensure that multiturn requests end with a user role or a function response.",
        );
        turns.push(made());
    }
}

/// Gemini 3 wants the signature of the first call of each step in the current turn, which begins at the last user content
/// that says something. Only the address names the model as a rule, so mostly this can but warn.
fn sign<'a>(plan: &mut Plan<'a, '_>, turns: &[Turn<'a>]) {
    let third = plan.body.text("model").is_some_and(|model| crate::text::has(&model, "gemini-3"));
    let signature = |part: JsonRef<'_>| {
        ["thoughtSignature", "thought_signature"]
            .iter()
            .any(|key| part.find(key).is_some_and(|value| !value.is_text("")))
    };
    let call = |block: &&Block<'a>| matches!(block.kind, BlockKind::Call(_));
    let all = || turns.iter().filter(|turn| !turn.gone);
    let signing =
        all().flat_map(|turn| turn.blocks.iter().filter(call)).any(|block| block.value.is_some_and(signature));
    if !third && !signing {
        return;
    }
    let says = |turn: &Turn<'_>| {
        turn.speaker == Speaker::User
            && turn.blocks.iter().any(|block| block.kind == BlockKind::Other && block.value.is_some())
    };
    let current = turns.iter().rposition(|turn| !turn.gone && says(turn)).map_or(0, |at| at + 1);
    let mut seen = None;
    for turn in
        turns.iter().skip(current).filter(|turn| !turn.gone && turn.speaker == Speaker::Model && turn.run.is_some())
    {
        let Some(part) = turn.blocks.iter().find(call).and_then(|block| block.value).filter(|_| seen != turn.run)
        else {
            continue;
        };
        seen = turn.run;
        if signature(part) {
            continue;
        }
        let message = "Function call is missing a thought_signature in functionCall parts.";
        if third {
            plan.error("unsigned_thinking", turn.path.clone(), Action::Rewritten, message);
            let old = part.get("thoughtSignature").or_else(|| part.get("thought_signature"));
            plan.edits.set(part, old, "thoughtSignature", UNSIGNED.into());
        } else {
            plan.warn("unsigned_thinking", turn.path.clone(), message);
        }
    }
}

struct Reader<'p, 'a, 'o> {
    plan: &'p mut Plan<'a, 'o>,
    filler: String,
    pairs: Pairs<'a>,
    turns: Vec<Turn<'a>>,
    runs: Runs,
    /// By call and by result: the inner object.
    calls: Vec<JsonRef<'a>>,
    results: Vec<JsonRef<'a>>,
}

/// A member under its own name or its name in snake case: both are read.
fn either<'a>(fields: &Fields<'a>, camel: &str, snake: &str) -> Option<JsonRef<'a>> {
    fields.find(camel).or_else(|| fields.find(snake))
}

fn object<'a>(fields: &Fields<'a>, camel: &str, snake: &str) -> Option<JsonRef<'a>> {
    [camel, snake].into_iter().filter_map(|name| fields.get(name)).find(|value| value.is_object())
}

impl<'a> Reader<'_, 'a, '_> {
    fn content(&mut self, at: usize, value: JsonRef<'a>) {
        let path = format!("{}/{at}", self.plan.base);
        let mut turn = Turn {
            speaker: Speaker::User,
            value: Some(value),
            content: None,
            piece: None,
            path: path.clone(),
            blocks: Vec::new(),
            run: None,
            touched: false,
            gone: false,
        };
        if !value.is_object() {
            let text = value.kind() == Kind::String && !value.is_text("");
            let action = if text { Action::Rewritten } else { Action::Dropped };
            self.plan.error(
                "malformed",
                path,
                action,
                format!("Invalid value at 'contents[{at}]': an object was expected."),
            );
            turn.gone = !text;
            if text {
                self.runs.begin(&mut turn);
                turn.value = None;
                turn.blocks.push(parts::text(self.plan, value));
            }
            self.turns.push(turn);
            return;
        }
        let fields = Fields::of(value);
        turn.speaker = self.role(&path, value, &fields);
        let given = fields.get("parts");
        turn.content = given;
        let here = format!("{path}/parts");
        match given.map(|list| (list, list.kind())) {
            Some((list, Kind::Array)) if list.items().next().is_some() => {
                self.parts(
                    list.items().enumerate().map(|(k, part)| (format!("{here}/{k}"), part)),
                    value,
                    &fields,
                    turn,
                );
            }
            Some((one, Kind::Object | Kind::String)) => {
                self.plan.error(
                    "malformed",
                    here.clone(),
                    Action::Rewritten,
                    format!("Invalid value at 'contents[{at}].parts': a list was expected."),
                );
                self.plan.edits.wrap(one, "[".into(), "]");
                self.parts(std::iter::once((here, one)), value, &fields, turn);
            }
            _ => {
                self.plan.error(
                    "empty_content",
                    path,
                    Action::Dropped,
                    format!("contents[{at}].parts: contents.parts must not be empty."),
                );
                turn.gone = true;
                self.turns.push(turn);
            }
        }
    }

    fn role(&mut self, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) -> Speaker {
        let Some(given) = fields.find("role") else { return Speaker::User };
        let (speaker, role) = match given.as_text().as_deref() {
            Some("user" | "function" | "") => return Speaker::User,
            Some("model") => return Speaker::Model,
            Some("assistant" | "ai" | "bot" | "agent") => (Speaker::Model, "\"model\""),
            _ => (Speaker::User, "\"user\""),
        };
        self.plan.error(
            "role_order",
            format!("{path}/role"),
            Action::Rewritten,
            "Please use a valid role: user, model.",
        );
        self.plan.edits.set(value, Some(given), "role", role.into());
        speaker
    }

    fn parts(
        &mut self,
        list: impl Iterator<Item = (String, JsonRef<'a>)>,
        value: JsonRef<'a>,
        fields: &Fields<'a>,
        turn: Turn<'a>,
    ) {
        let (own, start) = (turn.speaker, self.turns.len());
        let (mut first, mut current, mut changed) = (Some(turn), None::<Turn<'a>>, false);
        for (path, part) in list {
            let inner = Fields::of(part);
            if !parts::stays(self.plan, part, &inner, &path) {
                changed = true;
                continue;
            }
            let call = object(&inner, "functionCall", "function_call");
            let speaker = if call.is_some() { Speaker::Model } else { own };
            if speaker != own {
                self.plan.error(
                    "role_order",
                    path.clone(),
                    Action::Moved,
                    "Please ensure that function call parts stand in a model turn.",
                );
            }
            if current.as_ref().is_none_or(|turn| turn.speaker != speaker) {
                changed |= current.is_some();
                self.turns.extend(current.take());
                let mut next = match first.take() {
                    Some(mut turn) => {
                        if speaker != own {
                            self.plan.edits.set(value, fields.get("role"), "role", "\"model\"".into());
                            turn.speaker = speaker;
                        }
                        turn
                    }
                    None => Turn {
                        speaker,
                        value: None,
                        content: None,
                        piece: None,
                        path: path.clone(),
                        blocks: Vec::new(),
                        run: None,
                        touched: true,
                        gone: false,
                    },
                };
                self.runs.begin(&mut next);
                current = Some(next);
            }
            let block = match (call, object(&inner, "functionResponse", "function_response")) {
                (Some(call), _) => self.call(part, call, path),
                (None, Some(response)) => self.response(part, response, path),
                _ => parts::read(self.plan, part, &inner, &path),
            };
            changed |= !matches!(block.piece, Piece::Source(_));
            if let Some(turn) = &mut current {
                turn.blocks.push(block);
            }
        }
        if let Some(mut turn) = first {
            turn.gone = true;
            self.turns.push(turn);
        }
        self.turns.extend(current);
        for turn in self.turns.iter_mut().skip(start) {
            turn.touched |= changed;
        }
    }

    /// The id of a call or response, and what pairs it: the id, or the name where there is none.
    fn key(
        &mut self,
        inner: JsonRef<'a>,
        fields: &Fields<'a>,
        path: &str,
    ) -> (Option<String>, bool, Option<String>, String) {
        let given = fields.find("id");
        let (id, sound) = id_of(given);
        if given.is_some_and(|id| !matches!(id.kind(), Kind::String | Kind::Number)) {
            self.plan.error(
                "invalid_call_id",
                format!("{path}/id"),
                Action::Dropped,
                "Invalid value at 'id' (TYPE_STRING)",
            );
            self.plan.edits.remove(inner, "id");
        }
        let name = fields.text("name").unwrap_or_default().into_owned();
        let key = id.clone().or_else(|| Some(format!("\u{1}{name}")));
        (id, sound, key, name)
    }

    fn call(&mut self, part: JsonRef<'a>, call: JsonRef<'a>, path: String) -> Block<'a> {
        let path = format!("{path}/functionCall");
        let fields = Fields::of(call);
        let (id, sound, key, mut label) = self.key(call, &fields, &path);
        if label.is_empty() {
            label = "unknown".into();
            self.plan.error(
                "malformed",
                format!("{path}/name"),
                Action::Rewritten,
                "functionCall.name: Name cannot be empty.",
            );
            self.plan.edits.set(call, fields.get("name"), "name", quoted(&label));
        }
        let arguments = fields.find("args");
        if arguments.is_some_and(|arguments| !arguments.is_object()) {
            self.plan.error(
                "invalid_arguments",
                format!("{path}/args"),
                Action::Rewritten,
                "Invalid value at 'functionCall.args' (type.googleapis.com/google.protobuf.Struct)",
            );
            self.plan.edits.set(call, arguments, "args", object_text(arguments));
        }
        let c = self.pairs.call(Call {
            group: self.runs.run,
            key,
            id,
            sound,
            path,
            raw: String::new(),
            answer: None,
            new_id: String::new(),
            wants: true,
            omitted: false,
            order: 0,
            label,
        });
        self.calls.push(call);
        Block { kind: BlockKind::Call(c), value: Some(part), piece: self.plan.edits.source(part) }
    }

    fn response(&mut self, part: JsonRef<'a>, response: JsonRef<'a>, path: String) -> Block<'a> {
        let path = format!("{path}/functionResponse");
        let fields = Fields::of(response);
        let (id, sound, key, label) = self.key(response, &fields, &path);
        let given = fields.get("response");
        if !given.is_some_and(JsonRef::is_object) {
            self.plan.error(
                "malformed",
                format!("{path}/response"),
                Action::Rewritten,
                "Invalid value at 'functionResponse.response' (type.googleapis.com/google.protobuf.Struct)",
            );
            let text = given
                .filter(|value| !value.is_null())
                .map_or_else(|| "{}".into(), |value| format!("{{\"result\":{}}}", value.as_raw()));
            self.plan.edits.set(response, given, "response", text);
        }
        let content = given.map_or("", JsonRef::as_raw);
        let filler = content == self.filler;
        let a = self.pairs.answer(Answer {
            near: self.runs.near,
            key,
            id,
            sound,
            path,
            content,
            filler,
            fate: Fate::Orphan,
            order: 0,
            label,
        });
        self.results.push(response);
        Block { kind: BlockKind::Answer(a), value: Some(part), piece: self.plan.edits.source(part) }
    }
}
