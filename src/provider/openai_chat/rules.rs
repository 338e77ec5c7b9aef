//! What OpenAI's chat completions refuse, and the edit that mends it. Mistral's format is read by the same code, with
//! its own [`ChatRules`].
//!
//! Sources: OpenAI's schema and the sentences that its API answers with (cai#111, litellm#10083, smarter#264,
//! agentao#321, dify#32222), corrected by recorded exchanges: `content` may be absent, null or empty beside calls, an id
//! may come again in a later turn, results may stand in any order.

pub(crate) mod calls;
pub(crate) mod parts;

use crate::finding::{Action, FindingCode};
use crate::id::short_name;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{
    BodyPiece, ErrorTemplates, Fields, IdRule, ListMessage, ListMessageKind, Pairs, Plan, Violation, WireCall,
    as_quoted, name_fit, name_valid, names_model, place_messages, quoted, role_code,
};
use std::ops::Range;

/// Where two providers of this format differ.
pub(crate) struct ChatRules {
    pub ids: IdRule,
    pub words: ErrorTemplates,
    /// `tool_calls` and `content` may be empty lists, and a call may leave out its type or hold its arguments as an object.
    pub lenient: bool,
    /// Part types that each role may hold; anything goes where there is none.
    pub allowed_parts: fn(role: &str, model: &str) -> Option<&'static [&'static str]>,
    pub developer_role: bool,
    /// Mistral's order: a final assistant message must say that it is one to go on with, any must say something, and no system
    /// message comes behind one.
    pub strict_order: bool,
}

pub(crate) const MAX_ID: usize = 64;

/// The ids of OpenAI's calls.
pub(crate) const IDS: IdRule = IdRule {
    optional: false,
    // The live error names 64; clients that say 40 are out of date (agentao#321).
    valid: |id| id.chars().count() <= MAX_ID,
    fit: |id| if (IDS.valid)(id) { id.to_owned() } else { shortened(id) },
    derive: |seed| format!("call_{}", short_name(seed, 24)),
    variant: |base, count| {
        let tail = format!("_{count}");
        head(base, MAX_ID - tail.len()) + &tail
    },
    missing: "Missing required parameter: the id of a call in 'tool_calls'.",
    invalid: "Invalid call id '{}': expected a string with maximum length 64 (string_above_max_length).",
    double: "Invalid parameter: Duplicate value for 'id' of '{}' in 'tool_calls' of one message.",
};

/// An id of legal length for one that is too long.
pub(crate) fn shortened(id: &str) -> String {
    head(id, MAX_ID - 11) + "_" + &short_name(id, 10)
}

fn head(id: &str, length: usize) -> String {
    id.chars().take(length).collect()
}

const OPENAI: ChatRules = ChatRules {
    ids: IDS,
    words: ErrorTemplates {
        dangling: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        orphan: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. No such call: '{}'.",
        duplicate: "Invalid parameter: Duplicate value for 'tool_call_id' of '{}': each call has exactly one tool message.",
    },
    lenient: false,
    allowed_parts: parts::allowed,
    developer_role: true,
    strict_order: false,
};

/// Plans the repair of an OpenAI chat body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    plan_as(plan, list, &OPENAI);
}

/// Plans the repair of a body of this format.
pub(crate) fn plan_as<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, rules: &ChatRules) {
    let text = quoted(plan.options.text());
    let mut messages = Vec::new();
    let mut reader = Reader {
        model: plan.body.owned_text("model"),
        plan,
        rules,
        pairs: Pairs::new(text.clone()),
        group: 0,
        reply_to: None,
        talks: Vec::new(),
    };
    for (at, value) in list.items().enumerate() {
        reader.plan.at = at;
        let piece = reader.plan.edits.source(value);
        messages.push(ListMessage { kind: ListMessageKind::Other, role: "", piece, spill: Vec::new() });
        if let Some(message) = messages.last_mut() {
            reader.message(value, message);
        }
    }
    let Reader { plan, mut pairs, talks, .. } = reader;
    pairs.settle(plan, &rules.ids);
    for talk in &talks {
        if let Some(message) = messages.get_mut(talk.at) {
            settle(plan, talk, &pairs, message, rules.strict_order);
        }
    }
    if rules.strict_order {
        mark_prefix(plan, &talks, &pairs, &messages);
        turn_systems(plan, list, &messages);
    }
    let sentence = "Missing or invalid parameter: 'tool_call_id' must be the id of its call.";
    pairs.write_ids(plan, &|_, calls| if calls { "id" } else { "tool_call_id" }, sentence);
    let made = |call: &WireCall<'_>| {
        format!("{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{text}}}", quoted(&call.new_id))
    };
    place_messages(plan, list, messages, &pairs, &rules.words, &made);
}

/// An assistant message whose calls and content are settled once the calls are paired.
struct Talk<'a> {
    at: usize,
    value: JsonRef<'a>,
    /// The member `tool_calls`.
    list: Option<JsonRef<'a>>,
    /// Its calls.
    calls: Range<usize>,
    /// Items went, or the list itself is no list.
    rebuilt: bool,
    content: Option<JsonRef<'a>>,
    content_gone: bool,
    /// Something besides calls and content that says something: a refusal, audio, an old `function_call`.
    says: bool,
    /// Keys worth keeping the message for: reasoning, say.
    extra: bool,
}

struct Reader<'p, 'a, 'o, 'f> {
    plan: &'p mut Plan<'a, 'o>,
    rules: &'f ChatRules,
    model: String,
    pairs: Pairs<'a>,
    /// Groups so far.
    group: usize,
    /// The group whose reply is read now.
    reply_to: Option<usize>,
    talks: Vec<Talk<'a>>,
}

/// What a message's content comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// It stays, or was mended.
    Fine,
    /// There is none.
    Absent,
    /// It is an empty list.
    Empty,
    /// No part of it stays.
    Gone,
}

const NO_CONTENT: &str = "Invalid type for 'messages[{at}].content': expected one of a string or array of objects.";

impl<'a> Reader<'_, 'a, '_, '_> {
    fn message(&mut self, value: JsonRef<'a>, message: &mut ListMessage) {
        if !value.is_object() {
            self.reply_to = None;
            if !self.plan.admits_bare(value) {
                message.kind = ListMessageKind::Removed;
                return;
            }
            let text = value.kind() == Kind::String;
            let action = if text { Action::Rewritten } else { Action::Dropped };
            let sentence = "Invalid type for 'messages[{at}]': expected an object.";
            self.plan.report(Violation::error(FindingCode::Malformed, sentence).at(value).with_action(action));
            if text {
                message.piece = self.plan.as_text("{\"role\":\"user\",\"content\":", value);
            } else {
                message.kind = ListMessageKind::Removed;
            }
            return;
        }
        let fields = Fields::of(value);
        if !self.plan.admits(&fields) {
            message.kind = ListMessageKind::Removed;
            return;
        }
        let role = self.role(&fields);
        message.role = role;
        if role != "tool" {
            self.reply_to = None;
        }
        match role {
            "assistant" => self.assistant(&fields, message),
            // A function message of the time before tools: `content` may be null, and nothing is paired.
            "function" => {}
            _ => self.other(&fields, role, message),
        }
        if role == "tool" {
            self.tool_name(&fields);
            let (id, content) = (fields.get("tool_call_id"), fields.get("content"));
            self.pairs.add_result(value, id, "", self.reply_to, String::new(), content);
            message.kind = ListMessageKind::ToolResult;
        }
    }

    /// Mistral: a tool message may name its tool, and then by a name.
    fn tool_name(&mut self, fields: &Fields<'a>) {
        let Some(given) = fields.find("name").filter(|_| self.rules.strict_order) else { return };
        let name = given.as_text().unwrap_or_default();
        if !name_valid(&name, MAX_ID) {
            let sentence = "Function name was {} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.";
            self.plan.rewrite(
                Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "name").quoting(&name),
                quoted(&name_fit(&name, MAX_ID)),
            );
        }
    }

    /// The role, mended where the provider knows no such role.
    fn role(&mut self, fields: &Fields<'a>) -> &'static str {
        let given = fields.owned_text("role");
        let known = ["user", "assistant", "tool", "function", "system", "developer"];
        let known = known.into_iter().find(|role| given == *role);
        // Recorded: o1-mini takes neither system nor developer messages.
        let of_system = matches!(known, Some("system" | "developer"));
        let no_system = of_system && self.model.starts_with("o1-mini");
        if let Some(role) = known
            && !no_system
            && (role != "developer" || self.rules.developer_role)
        {
            return role;
        }
        let role = if of_system && !no_system {
            "system"
        } else if names_model(&given) || fields.get("tool_calls").is_some_and(|calls| calls.items().next().is_some()) {
            "assistant"
        } else if fields.find("tool_call_id").is_some() {
            "tool"
        } else {
            "user"
        };
        let sentence = if no_system {
            "Unsupported value: 'messages[{at}].role' does not support '{}' with this model."
        } else {
            "Invalid value: '{}' in 'messages[{at}].role'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        };
        self.plan.rewrite(
            Violation::error(role_code(&given), sentence).at_member(fields.object, "role").quoting(&given),
            quoted(role),
        );
        role
    }

    /// Reads a message's content; parts that may not stay in it are its spill.
    fn content(&mut self, fields: &Fields<'a>, role: &str, message: &mut ListMessage) -> Content {
        let Some(content) = fields.find("content") else { return Content::Absent };
        match content.kind() {
            Kind::String => {}
            Kind::Array if content.items().next().is_none() => {
                return if self.rules.lenient { Content::Fine } else { Content::Empty };
            }
            Kind::Array => {
                let allowed = (self.rules.allowed_parts)(role, &self.model);
                let at_user = (self.rules.allowed_parts)("user", &self.model);
                let stay = parts::read(self.plan, content, role, allowed, at_user, &mut message.spill);
                match stay {
                    Some(stay) if stay.is_empty() => return Content::Gone,
                    Some(stay) => self.plan.edits.rebuild(content, stay),
                    None => {}
                }
            }
            _ => self.plan.rewrite(
                Violation::error(FindingCode::Malformed, NO_CONTENT).at_member(fields.object, "content"),
                as_quoted(content),
            ),
        }
        Content::Fine
    }

    /// A message that must have content.
    fn other(&mut self, fields: &Fields<'a>, role: &str, message: &mut ListMessage) {
        let tool = role == "tool";
        match self.content(fields, role, message) {
            Content::Fine => {}
            Content::Gone if tool => {
                if let Some(content) = fields.get("content") {
                    let note = BodyPiece::New(parts::note("See the next user message."));
                    self.plan.edits.rebuild(content, vec![note]);
                }
            }
            Content::Gone => message.leave(),
            Content::Absent | Content::Empty => {
                let action = if tool { Action::Rewritten } else { Action::Dropped };
                let sentence = "Missing required parameter: 'messages[{at}].content': expected a string or a list of parts that is not empty.";
                self.plan.report(
                    Violation::error(FindingCode::EmptyContent, sentence)
                        .at_member(fields.object, "content")
                        .with_action(action),
                );
                if tool {
                    self.plan.edits.set(fields.object, "content", "\"\"".into());
                } else {
                    message.kind = ListMessageKind::Removed;
                }
            }
        }
    }

    fn assistant(&mut self, fields: &Fields<'a>, message: &mut ListMessage) {
        let value = fields.object;
        let says = fields.find("function_call").is_some()
            || fields.find("audio").is_some()
            || fields.find("refusal").is_some_and(|refusal| !refusal.is_text(""));
        let plain = ["role", "content", "name", "tool_calls", "prefix"];
        let extra = fields
            .members()
            .iter()
            .any(|(key, value)| !value.is_null() && !plain.iter().any(|known| key.is_text(known)));
        let content = self.content(fields, "assistant", message);
        if content == Content::Empty {
            let sentence = "Invalid 'messages[{at}].content': empty array. Expected an array with minimum length 1.";
            self.plan
                .report(Violation::error(FindingCode::EmptyContent, sentence).at_member(value, "content").rewritten());
        }
        let first = self.pairs.calls.len();
        let list = fields.get("tool_calls");
        let rebuilt = list.is_some_and(|list| self.calls(value, list));
        let calls = first..self.pairs.calls.len();
        if !calls.is_empty() {
            self.reply_to = Some(self.group);
            message.kind = ListMessageKind::ToolCalls(self.group);
            self.group += 1;
        }
        self.talks.push(Talk {
            at: self.plan.at,
            value,
            list,
            calls,
            rebuilt,
            content: fields.get("content"),
            content_gone: matches!(content, Content::Empty | Content::Gone),
            says,
            extra,
        });
    }

    /// Reads the calls. Whether the list needs to be made anew.
    fn calls(&mut self, message: JsonRef<'a>, list: JsonRef<'a>) -> bool {
        let (mut empty, mut rebuilt) = (true, false);
        for (place, item) in list.items().enumerate() {
            empty = false;
            if item.is_object() {
                self.call(item);
                continue;
            }
            rebuilt = true;
            let sentence = "Invalid type for 'messages[{at}].tool_calls[{}]': expected an object.";
            self.plan.report(
                Violation::error(FindingCode::Malformed, sentence).at(item).quoting(&place.to_string()).dropped(),
            );
        }
        let none = list.is_null();
        if !empty || self.rules.lenient && (none || list.kind() == Kind::Array) {
            return rebuilt;
        }
        let (code, sentence) = if list.kind() == Kind::Array {
            (
                FindingCode::EmptyToolCalls,
                "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1: leave the key out.",
            )
        } else {
            let code = if none { FindingCode::EmptyToolCalls } else { FindingCode::Malformed };
            (code, "Invalid type for 'messages[{at}].tool_calls': expected an array of objects.")
        };
        self.plan.report(Violation::error(code, sentence).at_member(message, "tool_calls").rewritten());
        if list.is_object() {
            self.call(list);
        }
        true
    }

    fn call(&mut self, value: JsonRef<'a>) {
        let fields = Fields::of(value);
        calls::mend(self.plan, &fields, self.rules.lenient);
        self.pairs.add_call(value, fields.get("id"), "", self.group, String::new());
    }
}

/// Mistral: "Unexpected role 'system' after role 'assistant'", and after 'tool' (hosted, 2024-08 and 2025-08). What such a message
/// says stays in its place.
fn turn_systems<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, messages: &[ListMessage]) {
    let mut before = "";
    for (value, message) in list.items().zip(messages) {
        // A result that stays follows its call.
        before = match message.kind {
            ListMessageKind::ToolCalls(_) => "tool",
            ListMessageKind::ToolResult | ListMessageKind::Removed => continue,
            ListMessageKind::Other => {
                if message.role == "system" && matches!(before, "assistant" | "tool") {
                    let sentence = "Unexpected role 'system' after role '{}'";
                    plan.rewrite(
                        Violation::error(FindingCode::RoleOrder, sentence).at_member(value, "role").quoting(before),
                        quoted("user"),
                    );
                }
                message.role
            }
        };
    }
}

/// Mistral: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", and
/// "Assistant message with prefix True must be last message".
fn mark_prefix<'a>(plan: &mut Plan<'a, '_>, talks: &[Talk<'a>], pairs: &Pairs<'_>, messages: &[ListMessage]) {
    let last = messages
        .iter()
        .rposition(|message| matches!(message.kind, ListMessageKind::Other | ListMessageKind::ToolCalls(_)));
    for talk in talks.iter().filter(|talk| Some(talk.at) != last) {
        let stays = |message: &ListMessage| message.kind != ListMessageKind::Removed && message.piece.is_source();
        let stays = messages.get(talk.at).is_some_and(stays);
        if stays && talk.value.get("prefix").and_then(JsonRef::as_bool) == Some(true) {
            let sentence = "Assistant message with prefix True must be last message";
            plan.rewrite(
                Violation::error(FindingCode::RoleOrder, sentence).at_member(talk.value, "prefix"),
                "false".into(),
            );
        }
    }
    let Some(talk) = talks.iter().rev().find(|talk| Some(talk.at) == last) else { return };
    let calls = pairs.calls.get(talk.calls.clone()).unwrap_or_default().iter().any(|call| !call.omitted);
    let whole = messages.get(talk.at).is_some_and(|message| message.spill.is_empty() && message.piece.is_source());
    if !calls && whole && talk.value.get("prefix").and_then(JsonRef::as_bool) != Some(true) {
        let sentence = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
        plan.report(Violation::error(FindingCode::RoleOrder, sentence).at(talk.value).rewritten());
        plan.edits.set(talk.value, "prefix", "true".into());
    }
}

/// Writes the calls' ids, takes out those that go, and drops a message that says nothing then.
fn settle<'a>(plan: &mut Plan<'a, '_>, talk: &Talk<'a>, pairs: &Pairs<'_>, message: &mut ListMessage, strict: bool) {
    let mut items = Vec::new();
    for call in pairs.calls.get(talk.calls.clone()).unwrap_or_default() {
        if !call.omitted {
            items.push(plan.edits.source(call.value));
        }
    }
    let omitted = items.len() < talk.calls.len();
    let calls = !items.is_empty();
    if let Some(list) = talk.list.filter(|_| talk.rebuilt || omitted) {
        if !calls {
            plan.edits.remove(talk.value, "tool_calls");
        } else if list.is_object() {
            plan.edits.wrap(list, "[", "]");
        } else {
            plan.edits.rebuild(list, items);
        }
    }
    let empty = talk.content.is_some_and(|content| content.is_text(""));
    let silent = |content: JsonRef<'_>| {
        content.is_null() || strict && (empty || content.kind() == Kind::Array && content.items().next().is_none())
    };
    let none = talk.content_gone || talk.content.is_none_or(silent);
    if let Some(content) = talk.content.filter(|_| talk.content_gone && (calls || talk.says)) {
        plan.edits.replace(content, BodyPiece::New("null".into()));
    }
    if calls || talk.says || !(none || empty && omitted) {
        if empty && !calls && !talk.says {
            let sentence = "An assistant message with neither text nor calls: accepted, yet it says nothing.";
            plan.report(Violation::warning(FindingCode::EmptyContent, sentence).at_member(talk.value, "content"));
        }
        return;
    }
    let reported = omitted || talk.content_gone;
    let extra = talk.extra && !strict;
    if extra {
        // It may hold reasoning that a compatible server wants back.
        plan.edits.set(talk.value, "content", "\"\"".into());
    } else {
        message.leave();
    }
    if !reported || extra {
        let action = if extra { Action::Rewritten } else { Action::Dropped };
        plan.at = talk.at;
        let sentence = if strict {
            "Assistant message must have either content or tool_calls, but not none."
        } else {
            "Invalid value for 'messages[{at}].content': expected a string, got null. Only a message with 'tool_calls' may go without."
        };
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(talk.value).with_action(action));
    }
}
