//! Reads the messages of a body: reports what is wrong in each, and collects calls and results for pairing.

use super::assistant::PendingAssistant;
use super::call_form::fix_call;
use super::chat_rules::ChatRules;
use super::ids::MAX_ID;
use super::parts::{PartReader, text_part};
use crate::finding::{Action, FindingCode};
use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::{
    BodyPiece, Fields, FoundCall, FoundResult, ListMessage, ListMessageKind, Pairs, Plan, Violation, as_quoted,
    name_fit, name_valid, names_model, quoted, role_code,
};

/// Reads messages in their order.
pub(super) struct ChatMessageReader<'p, 'a, 'o, 'r> {
    pub plan: &'p mut Plan<'a, 'o>,
    rules: &'r ChatRules,
    model: String,
    pub messages: Vec<ListMessage>,
    pub pairs: Pairs<'a>,
    /// The number of assistant messages with calls so far.
    group: usize,
    /// The group that the current run of tool messages answers.
    reply_to: Option<usize>,
    pub assistants: Vec<PendingAssistant<'a>>,
}

/// What the repair leaves of a message's content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentState {
    /// It is valid, or was fixed.
    Valid,
    /// The message has none.
    Absent,
    /// It is an empty list.
    EmptyList,
    /// All parts of it are removed.
    Removed,
}

impl<'p, 'a, 'o, 'r> ChatMessageReader<'p, 'a, 'o, 'r> {
    /// Creates a reader. `result_text` is the content of synthetic results, as a JSON string.
    pub fn new(plan: &'p mut Plan<'a, 'o>, rules: &'r ChatRules, result_text: String) -> Self {
        Self {
            model: plan.body.owned_text("model"),
            plan,
            rules,
            messages: Vec::new(),
            pairs: Pairs::new(result_text),
            group: 0,
            reply_to: None,
            assistants: Vec::new(),
        }
    }

    /// Reads the item at that index of the list.
    pub fn read(&mut self, at: usize, value: JsonRef<'a>) {
        self.plan.at = at;
        let piece = self.plan.edits.source(value);
        let mut message = ListMessage { kind: ListMessageKind::Other, role: "", piece, moved_parts: Vec::new() };
        if value.is_object() {
            self.message(&Fields::of(value), &mut message);
        } else {
            self.non_object(value, &mut message);
        }
        self.messages.push(message);
    }

    /// Fixes an item that is no object: a string becomes a user message, anything else is removed.
    fn non_object(&mut self, value: JsonRef<'a>, message: &mut ListMessage) {
        self.reply_to = None;
        message.kind = ListMessageKind::Removed;
        if !self.plan.admits_bare(value) {
            return;
        }
        let sentence = "Invalid type for 'messages[{at}]': expected an object.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at(value);
        if value.kind() == JsonKind::String {
            self.plan.report(violation.rewritten());
            message.piece = self.plan.as_text("{\"role\":\"user\",\"content\":", value);
            message.kind = ListMessageKind::Other;
        } else {
            self.plan.report(violation.dropped());
        }
    }

    fn message(&mut self, fields: &Fields<'a>, message: &mut ListMessage) {
        if !self.plan.admits(fields) {
            message.kind = ListMessageKind::Removed;
            return;
        }
        message.role = self.role(fields);
        if message.role != "tool" {
            self.reply_to = None;
        }
        match message.role {
            "assistant" => self.assistant(fields, message),
            // The result of a deprecated `function_call`: its content may be null, and it is not paired.
            "function" => {}
            "tool" => self.tool(fields, message),
            _ => self.input(fields, message),
        }
    }

    /// Returns the role. One that the provider does not know is replaced.
    fn role(&mut self, fields: &Fields<'a>) -> &'static str {
        let role_name = fields.owned_text("role");
        let roles = ["user", "assistant", "tool", "function", "system", "developer"];
        let known_role = roles.into_iter().find(|role| role_name == *role);
        let is_instruction = matches!(known_role, Some("system" | "developer"));
        // Recorded: o1-mini accepts neither system nor developer messages.
        let rejected_by_model = is_instruction && self.model.starts_with("o1-mini");
        let is_accepted = !rejected_by_model && (known_role != Some("developer") || self.rules.developer_role);
        if let Some(role) = known_role.filter(|_| is_accepted) {
            return role;
        }
        let role = if is_instruction && !rejected_by_model { "system" } else { guess_role(fields, &role_name) };
        let sentence = if rejected_by_model {
            "Unsupported value: 'messages[{at}].role' does not support '{}' with this model."
        } else {
            "Invalid value: '{}' in 'messages[{at}].role'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        };
        let violation = Violation::error(role_code(&role_name), sentence);
        self.plan.rewrite(violation.at_member(fields.object, "role").quoting(&role_name), quoted(role));
        role
    }

    /// Reads a message's content. Parts that may not stay in the message are its moved_parts.
    fn content(&mut self, fields: &Fields<'a>, message: &mut ListMessage) -> ContentState {
        let Some(content) = fields.find("content") else { return ContentState::Absent };
        match content.kind() {
            JsonKind::String => {}
            JsonKind::Array if content.items().next().is_none() => {
                return if self.rules.lenient { ContentState::Valid } else { ContentState::EmptyList };
            }
            JsonKind::Array => {
                let mut parts = PartReader::new(message.role, |role| (self.rules.allowed_parts)(role, &self.model));
                parts.read(self.plan, content);
                message.moved_parts.append(&mut parts.moved_parts);
                match parts.into_new_list() {
                    Some(list) if list.is_empty() => return ContentState::Removed,
                    Some(list) => self.plan.edits.rebuild(content, list),
                    None => {}
                }
            }
            _ => {
                let sentence =
                    "Invalid type for 'messages[{at}].content': expected one of a string or array of objects.";
                let violation = Violation::error(FindingCode::Malformed, sentence);
                self.plan.rewrite(violation.at_member(fields.object, "content"), as_quoted(content));
            }
        }
        ContentState::Valid
    }

    /// Reads a message of the user or the system. One without content is removed.
    fn input(&mut self, fields: &Fields<'a>, message: &mut ListMessage) {
        match self.content(fields, message) {
            ContentState::Valid => {}
            ContentState::Removed => message.remove(),
            ContentState::Absent | ContentState::EmptyList => {
                self.report_missing_content(fields, Action::Dropped);
                message.kind = ListMessageKind::Removed;
            }
        }
    }

    /// Reads a result. One without content stays, since its call needs it.
    fn tool(&mut self, fields: &Fields<'a>, message: &mut ListMessage) {
        match self.content(fields, message) {
            ContentState::Valid => {}
            ContentState::Removed => {
                if let Some(content) = fields.get("content") {
                    let note = BodyPiece::New(text_part("See the next user message."));
                    self.plan.edits.rebuild(content, vec![note]);
                }
            }
            ContentState::Absent | ContentState::EmptyList => {
                self.report_missing_content(fields, Action::Rewritten);
                self.plan.edits.set(fields.object, "content", "\"\"".into());
            }
        }
        if self.rules.checks_result_names {
            self.tool_name(fields);
        }
        self.pairs.add_result(FoundResult {
            value: fields.object,
            id: fields.get("tool_call_id"),
            reply_to: self.reply_to,
            content: fields.get("content"),
            ..FoundResult::default()
        });
        message.kind = ListMessageKind::ToolResult;
    }

    fn report_missing_content(&mut self, fields: &Fields<'a>, action: Action) {
        let sentence = "Missing required parameter: 'messages[{at}].content': expected a string or a list of parts that is not empty.";
        let violation = Violation::error(FindingCode::EmptyContent, sentence);
        self.plan.report(violation.at_member(fields.object, "content").with_action(action));
    }

    /// Fixes the name of a tool message. Mistral checks its form; it may be absent.
    fn tool_name(&mut self, fields: &Fields<'a>) {
        let Some(value) = fields.find("name") else { return };
        let name = value.as_text().unwrap_or_default();
        if name_valid(&name, MAX_ID) {
            return;
        }
        let sentence = "Function name was {} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        let name_fitted = quoted(&name_fit(&name, MAX_ID));
        self.plan.rewrite(violation.at_member(fields.object, "name").quoting(&name), name_fitted);
    }

    fn assistant(&mut self, fields: &Fields<'a>, message: &mut ListMessage) {
        let value = fields.object;
        let content = self.content(fields, message);
        if content == ContentState::EmptyList {
            let sentence = "Invalid 'messages[{at}].content': empty array. Expected an array with minimum length 1.";
            let violation = Violation::error(FindingCode::EmptyContent, sentence);
            self.plan.report(violation.at_member(value, "content").rewritten());
        }
        let first_call = self.pairs.calls.len();
        let list = fields.get("tool_calls");
        let needs_new_list = list.is_some_and(|list| self.call_list(value, list));
        let calls = first_call..self.pairs.calls.len();
        if !calls.is_empty() {
            self.reply_to = Some(self.group);
            message.kind = ListMessageKind::ToolCalls(self.group);
            self.group += 1;
        }
        self.assistants.push(PendingAssistant {
            at: self.plan.at,
            value,
            list,
            calls,
            needs_new_list,
            content: fields.get("content"),
            content_removed: matches!(content, ContentState::EmptyList | ContentState::Removed),
            has_other_content: has_other_content(fields),
            has_extra_members: has_extra_members(fields),
        });
    }

    /// Reads `tool_calls`. Returns true if the list must be written anew.
    fn call_list(&mut self, message: JsonRef<'a>, list: JsonRef<'a>) -> bool {
        let mut needs_new_list = false;
        for (index, item) in list.items().enumerate() {
            if self.plan.is_over_budget() {
                break;
            }
            if item.is_object() {
                self.call(item);
                continue;
            }
            needs_new_list = true;
            let sentence = "Invalid type for 'messages[{at}].tool_calls[{}]': expected an object.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            self.plan.report(violation.at(item).quoting(&index.to_string()).dropped());
        }
        let is_list = list.kind() == JsonKind::Array;
        let has_items = list.items().next().is_some();
        if has_items || self.rules.lenient && (list.is_null() || is_list) {
            return needs_new_list;
        }
        let sentence = if is_list {
            "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1: leave the key out."
        } else {
            "Invalid type for 'messages[{at}].tool_calls': expected an array of objects."
        };
        let code = if is_list || list.is_null() { FindingCode::EmptyToolCalls } else { FindingCode::Malformed };
        self.plan.report(Violation::error(code, sentence).at_member(message, "tool_calls").rewritten());
        if list.is_object() {
            self.call(list);
        }
        true
    }

    fn call(&mut self, value: JsonRef<'a>) {
        let fields = Fields::of(value);
        fix_call(self.plan, &fields, self.rules.lenient);
        self.pairs.add_call(FoundCall { value, id: fields.get("id"), group: self.group, ..FoundCall::default() });
    }
}

/// Returns the role of a message whose own is unknown.
fn guess_role(fields: &Fields<'_>, role_name: &str) -> &'static str {
    let has_calls = fields.get("tool_calls").is_some_and(|calls| calls.items().next().is_some());
    if names_model(role_name) || has_calls {
        "assistant"
    } else if fields.find("tool_call_id").is_some() {
        "tool"
    } else {
        "user"
    }
}

/// Returns true if an answer has content beside `content` and `tool_calls`: a refusal, audio, a deprecated
/// `function_call`.
fn has_other_content(fields: &Fields<'_>) -> bool {
    fields.find("function_call").is_some()
        || fields.find("audio").is_some()
        || fields.find("refusal").is_some_and(|refusal| !refusal.is_text(""))
}

/// Returns true if an answer has members that OpenAI does not define, such as the reasoning of compatible servers.
fn has_extra_members(fields: &Fields<'_>) -> bool {
    const OWN: [&str; 5] = ["role", "content", "name", "tool_calls", "prefix"];
    fields.members().iter().any(|(key, value)| !value.is_null() && !OWN.iter().any(|own| key.is_text(own)))
}
