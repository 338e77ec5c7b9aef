//! What OpenAI's chat completions refuse, and the edit that mends it. Mistral's format is read by the same code, with
//! its own [`Flavour`].
//!
//! Sources: OpenAI's schema and the sentences that its API answers with (cai#111, litellm#10083, smarter#264,
//! agentao#321, dify#32222), corrected by recorded exchanges: `content` may be absent, null or empty beside calls, an id
//! may come again in a later turn, results may stand in any order.

mod calls;
pub(crate) mod parts;

use self::parts::Spilled;
use crate::finding::Action;
use crate::id::short_name;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{
    Answer, Call, Fate, Fields, IdRule, Message, MessageKind, Pairs, Piece, Plan, Words, as_quoted, id_of, name_fit,
    name_valid, omit_open, place_messages, quoted,
};

/// Where two providers of this format differ.
pub(crate) struct Flavour {
    pub ids: IdRule,
    pub words: Words,
    /// `tool_calls` and `content` may be empty lists, and a call may leave out its type or hold its arguments as an object.
    pub loose: bool,
    /// Part types that each role may hold; anything goes where there is none.
    pub parts: fn(role: &str, model: &str) -> Option<&'static [&'static str]>,
    pub developer: bool,
    /// A final assistant message must say that it is one to go on with.
    pub prefix: bool,
}

pub(crate) const MAX_ID: usize = 64;

const OPENAI: Flavour = Flavour {
    ids: IdRule {
        optional: false,
        // The live error names 64; clients that say 40 are out of date (agentao#321).
        valid: |id| id.chars().count() <= MAX_ID,
        fit: |id| {
            let head: String = id.chars().take(MAX_ID - 11).collect();
            if id.chars().count() <= MAX_ID { id.to_owned() } else { format!("{head}_{}", short_name(id, 10)) }
        },
        derive: |seed| format!("call_{}", short_name(seed, 24)),
        variant: |base, count| {
            let tail = format!("_{count}");
            let head: String = base.chars().take(MAX_ID - tail.len()).collect();
            head + &tail
        },
        missing: "Missing required parameter: the id of a call in 'tool_calls'.",
        invalid: "Invalid call id '{id}': expected a string with maximum length 64 (string_above_max_length).",
        double: "Invalid parameter: Duplicate value for 'id' of '{id}' in 'tool_calls' of one message.",
    },
    words: Words {
        dangling: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}",
        orphan: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. No such call: '{id}'.",
        duplicate: "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}': each call has exactly one tool message.",
    },
    loose: false,
    parts: parts::allowed,
    developer: true,
    prefix: false,
};

/// Plans the repair of an OpenAI chat body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, _body: JsonRef<'a>, list: JsonRef<'a>) {
    plan_as(plan, list, &OPENAI);
}

/// Plans the repair of a body of this format.
pub(crate) fn plan_as<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, flavour: &Flavour) {
    let model = plan.body.text("model").unwrap_or_default().into_owned();
    let filler = quoted(plan.options.text());
    let mut reader = Reader {
        plan,
        flavour,
        model,
        filler,
        pairs: Pairs::default(),
        group: 0,
        near: None,
        talks: Vec::new(),
        results: Vec::new(),
    };
    let messages: Vec<Message> = list.items().enumerate().map(|(at, value)| reader.message(at, value)).collect();
    let Reader { plan, mut pairs, talks, results, .. } = reader;
    pairs.pair();
    omit_open(plan, &mut pairs);
    pairs.assign_ids(&flavour.ids, &mut plan.report);
    let mut messages = messages;
    for talk in &talks {
        if let Some(message) = messages.get_mut(talk.at) {
            settle(plan, talk, &pairs, message);
        }
    }
    if flavour.prefix {
        mark_prefix(plan, &talks, &pairs, &messages);
    }
    for (result, answer) in results.iter().zip(&pairs.answers) {
        let Fate::Answers(c) = answer.fate else { continue };
        let Some(call) = pairs.calls.get(c) else { continue };
        if answer.id.as_deref() != Some(&call.new_id) || !answer.sound {
            plan.edits.set(result.0, result.1, "tool_call_id", quoted(&call.new_id));
            if answer.sound && call.id == answer.id {
                continue; // Reported at the call.
            }
            plan.call_error(
                "invalid_call_id",
                &answer.path,
                &call.new_id,
                Action::Renamed,
                "Missing or invalid parameter: 'tool_call_id' must be the id of its call.",
            );
        }
    }
    let text = plan.options.text().to_owned();
    let made = |id: &str| {
        ObjectWriter::build(|o| {
            o.text("role", "tool").text("tool_call_id", id).text("content", &text);
        })
        .as_str()
        .to_owned()
    };
    let user = |parts: Vec<Piece>| Piece::Wrapped("{\"role\":\"user\",\"content\":[".into(), parts, "]}".into());
    if let Some(pieces) = place_messages(plan, messages, &pairs, &flavour.words, made, user) {
        plan.edits.rebuild(list, pieces);
    }
}

/// An assistant message whose calls and content are settled once the calls are paired.
struct Talk<'a> {
    at: usize,
    value: JsonRef<'a>,
    path: String,
    /// The member `tool_calls`.
    list: Option<JsonRef<'a>>,
    /// Its calls.
    items: Vec<Asked<'a>>,
    /// Items went, or the list itself is no list.
    rebuilt: bool,
    content: Option<JsonRef<'a>>,
    content_gone: bool,
    /// Something besides calls and content that says something: a refusal, audio, an old `function_call`.
    says: bool,
    /// Keys worth keeping the message for: reasoning, say.
    extra: bool,
}

struct Asked<'a> {
    call: usize,
    value: JsonRef<'a>,
    id: Option<JsonRef<'a>>,
}

struct Reader<'p, 'a, 'o, 'f> {
    plan: &'p mut Plan<'a, 'o>,
    flavour: &'f Flavour,
    model: String,
    filler: String,
    pairs: Pairs<'a>,
    /// Groups so far.
    group: usize,
    /// The group whose reply is read now.
    near: Option<usize>,
    talks: Vec<Talk<'a>>,
    /// By result: its message and its id.
    results: Vec<(JsonRef<'a>, Option<JsonRef<'a>>)>,
}

impl<'a> Reader<'_, 'a, '_, '_> {
    fn message(&mut self, at: usize, value: JsonRef<'a>) -> Message {
        let path = format!("{}/{at}", self.plan.base);
        let mut message = Message { kind: MessageKind::Other, piece: self.plan.edits.source(value), spill: Vec::new() };
        if !value.is_object() {
            self.near = None;
            let text = value.kind() == Kind::String;
            let action = if text { Action::Rewritten } else { Action::Dropped };
            self.plan.error(
                "malformed",
                path,
                action,
                format!("Invalid type for 'messages[{at}]': expected an object."),
            );
            if text {
                message.piece =
                    Piece::Wrapped("{\"role\":\"user\",\"content\":".into(), vec![message.piece], "}".into());
            } else {
                message.kind = MessageKind::Gone;
            }
            return message;
        }
        let fields = Fields::of(value);
        let role = self.role(at, &path, value, &fields);
        if role != "tool" {
            self.near = None;
        }
        match role.as_str() {
            "assistant" => self.assistant(at, path.clone(), value, &fields, &mut message),
            // A function message of the time before tools: `content` may be null, and nothing is paired.
            "function" => {}
            _ => self.content(at, &path, value, &fields, &role, &mut message),
        }
        if role == "tool" {
            self.tool_name(value, &fields, &path);
            let given = fields.get("tool_call_id");
            let (id, sound) = id_of(given);
            let content = fields.get("content").map_or("", JsonRef::as_raw);
            let filler = content == self.filler;
            let answer = Answer {
                near: self.near,
                key: id.clone(),
                id,
                sound,
                path,
                content,
                filler,
                fate: Fate::Orphan,
                order: 0,
                label: String::new(),
            };
            message.kind = MessageKind::Answer(self.pairs.answer(answer));
            self.results.push((value, given));
        }
        message
    }

    /// Mistral: a tool message may name its tool, and then by a name.
    fn tool_name(&mut self, value: JsonRef<'a>, fields: &Fields<'a>, path: &str) {
        let Some(given) = fields.find("name").filter(|_| self.flavour.prefix) else { return };
        let name = given.as_text().unwrap_or_default();
        if !name_valid(&name, MAX_ID) {
            self.plan.error("malformed", format!("{path}/name"), Action::Rewritten, format!("Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."));
            self.plan.edits.set(value, Some(given), "name", quoted(&name_fit(&name, MAX_ID)));
        }
    }

    /// The role, mended where the provider knows no such role.
    fn role(&mut self, at: usize, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) -> String {
        let given = fields.text("role").unwrap_or_default();
        // Recorded: o1-mini takes neither system nor developer messages.
        let no_system = self.model.starts_with("o1-mini") && matches!(&*given, "system" | "developer");
        let known = matches!(&*given, "system" | "user" | "assistant" | "tool" | "function")
            || (given == "developer" && self.flavour.developer);
        if known && !no_system {
            return given.into_owned();
        }
        let calls = fields.get("tool_calls").is_some_and(|calls| calls.items().next().is_some());
        let role = match &*given {
            "developer" if !no_system => "system",
            "model" | "ai" | "bot" | "agent" => "assistant",
            _ if calls => "assistant",
            _ if fields.find("tool_call_id").is_some() => "tool",
            _ => "user",
        };
        let message = if no_system {
            format!("Unsupported value: 'messages[{at}].role' does not support '{given}' with this model.")
        } else {
            format!(
                "Invalid value: '{given}' in 'messages[{at}].role'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            )
        };
        self.plan.error("role_order", format!("{path}/role"), Action::Rewritten, message);
        self.plan.edits.set(value, fields.get("role"), "role", format!("\"{role}\""));
        role.to_owned()
    }

    /// The content of a message that must have one.
    fn content(
        &mut self,
        at: usize,
        path: &str,
        value: JsonRef<'a>,
        fields: &Fields<'a>,
        role: &str,
        message: &mut Message,
    ) {
        let here = format!("{path}/content");
        let given = fields.get("content");
        let nothing = match given.map(|content| (content, content.kind())) {
            None | Some((_, Kind::Null)) => true,
            Some((_, Kind::String)) => return,
            Some((content, Kind::Array)) => match self.parts(content, role, &here) {
                Spilled::Same => return,
                Spilled::Empty if self.flavour.loose => return,
                Spilled::Empty => true,
                Spilled::Parts { stay, spill } => {
                    message.spill = spill;
                    let stay = if stay.is_empty() && role == "tool" {
                        vec![Piece::New(parts::note("See the next user message."))]
                    } else {
                        stay
                    };
                    if stay.is_empty() {
                        message.kind = MessageKind::Gone;
                        // What it held stands in the message that takes its place.
                        let spill = std::mem::take(&mut message.spill);
                        if !spill.is_empty() {
                            message.kind = MessageKind::Other;
                            message.piece =
                                Piece::Wrapped("{\"role\":\"user\",\"content\":[".into(), spill, "]}".into());
                        }
                        return;
                    }
                    self.plan.edits.rebuild(content, stay);
                    return;
                }
            },
            Some((content, _)) => {
                self.plan.error(
                    "malformed",
                    here,
                    Action::Rewritten,
                    format!("Invalid type for 'messages[{at}].content': expected one of a string or array of objects."),
                );
                self.plan.edits.replace(content, Piece::New(as_quoted(content)));
                return;
            }
        };
        if nothing {
            let tool = role == "tool";
            let action = if tool { Action::Rewritten } else { Action::Dropped };
            self.plan.error("empty_content", here, action, format!("Missing required parameter: 'messages[{at}].content': expected a string or a list of parts that is not empty."));
            if tool {
                self.plan.edits.set(value, given, "content", "\"\"".into());
            } else {
                message.kind = MessageKind::Gone;
            }
        }
    }

    fn parts(&mut self, content: JsonRef<'a>, role: &str, path: &str) -> Spilled {
        let allowed = (self.flavour.parts)(role, &self.model);
        let at_user = (self.flavour.parts)("user", &self.model);
        parts::read(self.plan, content, role, path, allowed, at_user)
    }

    fn assistant(&mut self, at: usize, path: String, value: JsonRef<'a>, fields: &Fields<'a>, message: &mut Message) {
        let says = ["function_call", "audio"].iter().any(|key| fields.find(key).is_some())
            || fields.find("refusal").is_some_and(|refusal| !refusal.is_text(""));
        let extra = fields.iter().any(|(key, value)| {
            !["role", "content", "name", "tool_calls", "prefix"].iter().any(|known| key.is_text(known))
                && !value.is_null()
        });
        let content = fields.get("content");
        let mut content_gone = false;
        let here = format!("{path}/content");
        match content.map(|content| (content, content.kind())) {
            None | Some((_, Kind::Null | Kind::String)) => {}
            Some((content, Kind::Array)) => {
                match self.parts(content, "assistant", &here) {
                    Spilled::Same => {}
                    Spilled::Empty if self.flavour.loose => {}
                    Spilled::Empty => {
                        content_gone = true;
                        self.plan.error("empty_content", here, Action::Rewritten, format!("Invalid 'messages[{at}].content': empty array. Expected an array with minimum length 1."));
                    }
                    Spilled::Parts { stay, spill } => {
                        message.spill = spill;
                        content_gone = stay.is_empty();
                        if !content_gone {
                            self.plan.edits.rebuild(content, stay);
                        }
                    }
                }
            }
            Some((content, _)) => {
                self.plan.error(
                    "malformed",
                    here,
                    Action::Rewritten,
                    format!("Invalid type for 'messages[{at}].content': expected one of a string or array of objects."),
                );
                self.plan.edits.replace(content, Piece::New(as_quoted(content)));
            }
        }
        let mut talk = Talk {
            at,
            value,
            path,
            list: fields.get("tool_calls"),
            items: Vec::new(),
            rebuilt: false,
            content,
            content_gone,
            says,
            extra,
        };
        self.calls(&mut talk);
        if !talk.items.is_empty() {
            self.near = Some(self.group);
            message.kind = MessageKind::Calls(self.group);
            self.group += 1;
        }
        self.talks.push(talk);
    }

    fn calls(&mut self, talk: &mut Talk<'a>) {
        let Some(list) = talk.list else { return };
        let path = format!("{}/tool_calls", talk.path);
        if list.kind() != Kind::Array {
            if list.is_null() && self.flavour.loose {
                return;
            }
            talk.rebuilt = true;
            let code = if list.is_null() { "empty_tool_calls" } else { "malformed" };
            self.plan.error(
                code,
                path.clone(),
                Action::Rewritten,
                format!("Invalid type for 'messages[{}].tool_calls': expected an array of objects.", talk.at),
            );
            if list.is_object() {
                let piece = self.call(list, path);
                talk.items.push(piece);
            }
            return;
        }
        let mut empty = true;
        for (place, item) in list.items().enumerate() {
            empty = false;
            let here = format!("{path}/{place}");
            if item.is_object() {
                let piece = self.call(item, here);
                talk.items.push(piece);
            } else {
                talk.rebuilt = true;
                self.plan.error(
                    "malformed",
                    here,
                    Action::Dropped,
                    format!("Invalid type for 'messages[{}].tool_calls[{place}]': expected an object.", talk.at),
                );
            }
        }
        if empty && !self.flavour.loose {
            talk.rebuilt = true;
            self.plan.error("empty_tool_calls", path, Action::Rewritten, format!(
                "Invalid 'messages[{}].tool_calls': empty array. Expected an array with minimum length 1: leave the key out.", talk.at));
        }
    }

    fn call(&mut self, value: JsonRef<'a>, path: String) -> Asked<'a> {
        let fields = Fields::of(value);
        let given = fields.get("id");
        let (id, sound) = id_of(given);
        calls::mend(self.plan, value, &fields, &path, self.flavour.loose);
        let raw = if id.is_none() { value.as_raw().to_owned() } else { String::new() };
        let call = Call {
            group: self.group,
            key: id.clone(),
            id,
            sound,
            path,
            raw,
            answer: None,
            new_id: String::new(),
            wants: true,
            omitted: false,
            order: 0,
            label: String::new(),
        };
        Asked { call: self.pairs.call(call), value, id: given }
    }
}

/// Mistral: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", and
/// "Assistant message with prefix True must be last message".
fn mark_prefix<'a>(plan: &mut Plan<'a, '_>, talks: &[Talk<'a>], pairs: &Pairs<'_>, messages: &[Message]) {
    let last = messages.iter().rposition(|message| matches!(message.kind, MessageKind::Other | MessageKind::Calls(_)));
    for talk in talks.iter().filter(|talk| Some(talk.at) != last) {
        let stays = messages.get(talk.at).is_some_and(|message| matches!(message.piece, Piece::Source(_)));
        if stays && talk.value.get("prefix").and_then(JsonRef::as_bool) == Some(true) {
            let here = format!("{}/prefix", talk.path);
            plan.error(
                "role_order",
                here,
                Action::Rewritten,
                "Assistant message with prefix True must be last message",
            );
            plan.edits.set(talk.value, talk.value.get("prefix"), "prefix", "false".into());
        }
    }
    let Some(talk) = talks.iter().rev().find(|talk| Some(talk.at) == last) else { return };
    let calls = talk.items.iter().any(|asked| pairs.calls.get(asked.call).is_some_and(|call| !call.omitted));
    let spills = messages
        .get(talk.at)
        .is_none_or(|message| !message.spill.is_empty() || !matches!(message.piece, Piece::Source(_)));
    let prefix = talk.value.get("prefix");
    if calls || spills || prefix.and_then(JsonRef::as_bool) == Some(true) {
        return;
    }
    plan.error(
        "role_order",
        talk.path.clone(),
        Action::Rewritten,
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    );
    plan.edits.set(talk.value, prefix, "prefix", "true".into());
}

/// Writes the calls' ids, takes out those that go, and drops a message that says nothing then.
fn settle<'a>(plan: &mut Plan<'a, '_>, talk: &Talk<'a>, pairs: &Pairs<'_>, message: &mut Message) {
    let mut items = Vec::new();
    for asked in &talk.items {
        let Some(call) = pairs.calls.get(asked.call).filter(|call| !call.omitted) else { continue };
        items.push(plan.edits.source(asked.value));
        if call.id.as_deref() != Some(&call.new_id) || !call.sound {
            plan.edits.set(asked.value, asked.id, "id", quoted(&call.new_id));
        }
    }
    let omitted = items.len() < talk.items.len();
    let calls = !items.is_empty();
    if let Some(list) = talk.list.filter(|_| talk.rebuilt || omitted) {
        if !calls {
            plan.edits.remove(talk.value, "tool_calls");
        } else if list.is_object() {
            plan.edits.wrap(list, "[".into(), "]");
        } else {
            plan.edits.rebuild(list, items);
        }
    }
    let empty = talk.content.is_some_and(|content| content.is_text(""));
    let none = talk.content_gone || talk.content.is_none_or(JsonRef::is_null);
    if let Some(content) = talk.content.filter(|_| talk.content_gone && (calls || talk.says)) {
        plan.edits.replace(content, Piece::New("null".into()));
    }
    if calls || talk.says || !(none || empty && omitted) {
        if empty && !calls && !talk.says {
            plan.warn(
                "empty_content",
                format!("{}/content", talk.path),
                "An assistant message with neither text nor calls: accepted, yet it says nothing.",
            );
        }
        return;
    }
    let reported = omitted || talk.content_gone;
    if talk.extra {
        // It may hold reasoning that a compatible server wants back.
        plan.edits.set(talk.value, talk.content, "content", "\"\"".into());
    } else if message.spill.is_empty() {
        message.kind = MessageKind::Gone;
    } else {
        message.kind = MessageKind::Other;
        message.piece =
            Piece::Wrapped("{\"role\":\"user\",\"content\":[".into(), std::mem::take(&mut message.spill), "]}".into());
    }
    if !reported || talk.extra {
        let action = if talk.extra { Action::Rewritten } else { Action::Dropped };
        plan.error("empty_content", talk.path.clone(), action, format!(
            "Invalid value for 'messages[{}].content': expected a string, got null. Only a message with 'tool_calls' may go without.", talk.at));
    }
}
