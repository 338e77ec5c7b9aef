//! Reads the entries of a body: reports what is wrong in each, and collects calls and results for pairing.

use crate::finding::{Action, FindingCode};
use crate::json::{JsonKind, JsonRef};
use crate::provider::mistral_conversations::entry::{
    CALL, CALL_ID, EXECUTION, HANDOFF, HANDOFF_MEMBERS, INPUT, OUTPUT, RESULT, TYPES, answered_confirmations, is_type,
    needs_confirmation, type_of,
};
use crate::provider::mistral_conversations::sent_form::REFERENCE;
use crate::provider::openai_chat::rules::call_form::{CalledTool, fix_arguments};
use crate::provider::openai_chat::rules::parts::PartReader;
use crate::provider::rules::{
    Fields, FoundCall, FoundResult, ListMessage, ListMessageKind, Pairs, Plan, Violation, as_quoted, name_fit,
    name_valid, names_model, quoted, role_code,
};

const MAX_NAME: usize = 64;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The types of chunks in a message of the user, and in one of the model (client-python, `MessageInputContentChunks`
/// and `MessageOutputContentChunks`).
const INPUT_CHUNKS: &[&str] = &["text", "image_url", "document_url", "tool_file", "thinking"];
const OUTPUT_CHUNKS: &[&str] = &["text", "image_url", "document_url", "tool_file", "thinking", REFERENCE];

const UNKNOWN_CHUNK: &str =
    "Content chunks of type '{}' are not in the schema of conversations that these rules know; it may be a newer one.";

/// Returns a member that a chunk must have and lacks (client-python, `DocumentURLChunk`, `ImageURLChunk`, `ThinkChunk`,
/// `ToolFileChunk` and `ToolReferenceChunk`).
fn missing_member(chunk: &Fields<'_>) -> Option<&'static str> {
    let required: &[&str] = match &*chunk.owned_text("type") {
        "document_url" => &["document_url"],
        "image_url" => &["image_url"],
        "thinking" => &["thinking"],
        "tool_file" => &["tool", "file_id"],
        REFERENCE => &["tool", "title"],
        _ => &[],
    };
    required.iter().copied().find(|name| chunk.find(name).is_none())
}

/// An entry, as it was read.
pub(super) struct ReadEntry {
    pub message: ListMessage,
    /// The index of the call that it is.
    pub call: Option<usize>,
    /// The number of the answer that it belongs to. Calls have it as their group.
    pub answer: Option<usize>,
}

/// Reads entries in their order.
pub(super) struct EntryReader<'p, 'a, 'o> {
    pub plan: &'p mut Plan<'a, 'o>,
    pub entries: Vec<ReadEntry>,
    pub pairs: Pairs<'a>,
    /// The ids of calls with a confirmation that have results.
    answered: BTreeSet<Cow<'a, str>>,
    /// The number of answers so far.
    answers: usize,
    /// The entry before is part of an answer.
    in_answer: bool,
    /// Only results came since the last answer.
    in_reply: bool,
}

/// Which part of the conversation an entry belongs to.
enum EntryClass {
    /// An answer of the model.
    Answer {
        call: Option<usize>,
    },
    Result,
    Other,
    Removed,
}

impl<'p, 'a, 'o> EntryReader<'p, 'a, 'o> {
    /// Creates a reader of a list. `result_text` is the content of synthetic results, as a JSON string.
    pub fn new(plan: &'p mut Plan<'a, 'o>, list: JsonRef<'a>, result_text: String) -> Self {
        let entries: Vec<_> = list.items().collect();
        Self {
            plan,
            entries: Vec::new(),
            pairs: Pairs::new(result_text),
            answered: answered_confirmations(&entries),
            answers: 0,
            in_answer: false,
            in_reply: false,
        }
    }

    /// Reads the entry at that index of the list.
    pub fn read(&mut self, at: usize, value: JsonRef<'a>) {
        self.plan.at = at;
        let piece = self.plan.edits.source(value);
        let mut message = ListMessage { kind: ListMessageKind::Other, role: "", piece, moved_parts: Vec::new() };
        let class =
            if value.is_object() { self.entry(&Fields::of(value)) } else { self.non_object(value, &mut message) };
        let mut entry = ReadEntry { message, call: None, answer: None };
        match class {
            EntryClass::Answer { call } => {
                self.begin_answer();
                (entry.call, entry.answer) = (call, Some(self.answers));
            }
            EntryClass::Result => {
                (self.in_answer, entry.message.kind) = (false, ListMessageKind::ToolResult);
            }
            EntryClass::Other => (self.in_answer, self.in_reply) = (false, false),
            EntryClass::Removed => entry.message.kind = ListMessageKind::Removed,
        }
        self.entries.push(entry);
    }

    /// Begins an answer, unless the entry before is part of one.
    fn begin_answer(&mut self) {
        if !self.in_answer {
            self.answers += 1;
            (self.in_answer, self.in_reply) = (true, true);
        }
    }

    /// Fixes an item that is no object: a string becomes a message of the user, anything else is removed.
    fn non_object(&mut self, value: JsonRef<'a>, message: &mut ListMessage) -> EntryClass {
        if !self.plan.admits_bare(value) {
            return EntryClass::Removed;
        }
        let sentence = "Invalid type for 'inputs[{at}]': expected an object.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at(value);
        if value.kind() != JsonKind::String {
            self.plan.report(violation.dropped());
            return EntryClass::Removed;
        }
        self.plan.report(violation.rewritten());
        message.piece = self.plan.as_text("{\"type\":\"message.input\",\"role\":\"user\",\"content\":", value);
        EntryClass::Other
    }

    fn entry(&mut self, fields: &Fields<'a>) -> EntryClass {
        if !self.plan.admits(fields) {
            return EntryClass::Removed;
        }
        match self.entry_type(fields) {
            INPUT => self.input(fields),
            OUTPUT => self.output(fields),
            CALL => self.call(fields),
            RESULT => self.result(fields),
            EXECUTION => self.execution(fields),
            HANDOFF => self.handoff(fields),
            // A type that is newer than these rules.
            _ => EntryClass::Answer { call: None },
        }
    }

    /// Returns an entry's type; empty for one that these rules do not read. A type that no entry has is replaced.
    fn entry_type(&mut self, fields: &Fields<'a>) -> &'static str {
        let given = fields.owned_text("type");
        let known = |name: &str| TYPES.into_iter().find(|own| *own == name);
        if let Some(entry_type) = known(&given) {
            return entry_type;
        }
        if is_type(&given) {
            return "";
        }
        let has_type = fields.get("type").is_some();
        let guess = if given.is_empty() { known(&type_of(fields.object)) } else { None }.unwrap_or(INPUT);
        // The schema gives each type a default.
        if has_type {
            let sentence = "inputs.{at}: Input tag '{}' found using 'type' does not match any of the expected tags";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "type");
            self.plan.rewrite(violation.quoting(&given), quoted(guess));
        }
        guess
    }

    fn input(&mut self, fields: &Fields<'a>) -> EntryClass {
        let role = fields.owned_text("role");
        let is_model = names_model(&role);
        if !["user", "assistant"].contains(&role.as_str()) {
            let sentence = "inputs.{at}.message.input.role: Input should be 'assistant' or 'user', but was '{}'";
            let violation = Violation::error(role_code(&role), sentence).at_member(fields.object, "role");
            self.plan.rewrite(violation.quoting(&role), quoted(if is_model { "assistant" } else { "user" }));
        }
        let mut chunks = fields.get("content").unwrap_or_default().items();
        if is_model && fields.find("prefix").is_none() && chunks.any(|chunk| chunk.has_text("type", REFERENCE)) {
            let sentence = "inputs.{at}.message.input.content: Input tag 'tool_reference' found using 'type' does not match any of the expected tags";
            let violation = Violation::error(FindingCode::UnsupportedPart, sentence).at_member(fields.object, "type");
            self.plan.rewrite(violation, quoted(OUTPUT));
            return self.output(fields);
        }
        let role = if is_model { "assistant" } else { "user" };
        match self.has_content(fields, role, INPUT_CHUNKS) {
            false => EntryClass::Removed,
            true if is_model => EntryClass::Answer { call: None },
            true => EntryClass::Other,
        }
    }

    fn output(&mut self, fields: &Fields<'a>) -> EntryClass {
        if fields.find("role").is_some_and(|role| !role.is_text("assistant")) {
            let sentence = "inputs.{at}.message.output.role: Input should be 'assistant'";
            let violation = Violation::error(FindingCode::RoleOrder, sentence).at_member(fields.object, "role");
            self.plan.rewrite(violation, quoted("assistant"));
        }
        if self.has_content(fields, "assistant", OUTPUT_CHUNKS) {
            EntryClass::Answer { call: None }
        } else {
            EntryClass::Removed
        }
    }

    /// Fixes the content of a message. Returns false if the message has none, and is removed.
    fn has_content(&mut self, fields: &Fields<'a>, role: &'static str, chunks: &'static [&'static str]) -> bool {
        let Some(content) = fields.find("content") else {
            let sentence = "inputs.{at}.content: Field required";
            let violation = Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "content");
            self.plan.report(violation.with_action(Action::Dropped));
            return false;
        };
        match content.kind() {
            JsonKind::String => {}
            JsonKind::Array => {
                self.list_reasoning(content);
                let reader = PartReader::new(role, |_| Some(chunks)).with_unknown_part(UNKNOWN_CHUNK);
                let mut reader = reader.with_rejected(REFERENCE).with_required(missing_member);
                reader.read(self.plan, content);
                match reader.into_new_list() {
                    Some(list) if list.is_empty() => return false,
                    Some(list) => self.plan.edits.rebuild(content, list),
                    None => {}
                }
            }
            _ => {
                let sentence = "inputs.{at}.content: Input should be a valid string or a valid list";
                let violation = Violation::error(FindingCode::Malformed, sentence);
                self.plan.rewrite(violation.at_member(fields.object, "content"), as_quoted(content));
            }
        }
        true
    }

    /// Wraps reasoning that is a text, as in the blocks of other providers: the schema has a list.
    fn list_reasoning(&mut self, content: JsonRef<'a>) {
        for chunk in content.items().filter(|chunk| chunk.has_text("type", "thinking")) {
            let Some(text) = chunk.find("thinking").filter(|text| text.kind() == JsonKind::String) else { continue };
            let sentence = "inputs.{at}.content.thinking: Input should be a valid list";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(chunk, "thinking");
            self.plan.rewrite(violation, format!(r#"[{{"type":"text","text":{}}}]"#, text.as_raw()));
        }
    }

    fn call(&mut self, fields: &Fields<'a>) -> EntryClass {
        let name = fields.owned_text("name");
        if !name_valid(&name, MAX_NAME) {
            let sentence = "Function name was {} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(fields.object, "name");
            self.plan.rewrite(violation.quoting(&name), quoted(&name_fit(&name, MAX_NAME)));
        }
        fix_arguments(self.plan, fields, CalledTool::Function, true);
        self.begin_answer();
        // Mistral runs it after a confirmation, for which the application has another member of a body.
        let is_confirmable = needs_confirmation(fields.object);
        let id = fields.owned_text(CALL_ID);
        if is_confirmable && !id.is_empty() && !self.answered.contains(&*id) {
            return EntryClass::Answer { call: None };
        }
        let found = FoundCall {
            value: fields.object,
            id: fields.get(CALL_ID),
            group: self.answers,
            may_stay_open: is_confirmable,
            ..FoundCall::default()
        };
        EntryClass::Answer { call: Some(self.pairs.add_call(found)) }
    }

    /// Fixes a call of a tool that Mistral runs. One without a name is removed.
    fn execution(&mut self, fields: &Fields<'a>) -> EntryClass {
        if fields.owned_text("name").is_empty() {
            return self.without_member(EXECUTION, "name", fields);
        }
        let arguments = fields.get("arguments");
        if arguments.is_none_or(|arguments| arguments.kind() != JsonKind::String) {
            let sentence = "inputs.{at}.tool.execution.arguments: Input should be a valid string";
            let violation = Violation::error(FindingCode::InvalidArguments, sentence);
            let given = arguments.filter(|arguments| !arguments.is_null());
            let text = given.map_or_else(|| quoted("{}"), as_quoted);
            self.plan.rewrite(violation.at_member(fields.object, "arguments"), text);
        }
        // Recorded answers have it, and no schema of a request.
        if fields.get("function").is_some() {
            let sentence = "inputs.{at}.tool.execution.function: Extra inputs are not permitted";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            self.plan.report(violation.at_member(fields.object, "function").dropped());
            self.plan.edits.remove(fields.object, "function");
        }
        EntryClass::Answer { call: None }
    }

    /// Removes a handoff that does not say from which agent to which.
    fn handoff(&mut self, fields: &Fields<'a>) -> EntryClass {
        match HANDOFF_MEMBERS.into_iter().find(|name| fields.owned_text(name).is_empty()) {
            Some(missing) => self.without_member(HANDOFF, missing, fields),
            None => EntryClass::Answer { call: None },
        }
    }

    fn without_member(&mut self, entry_type: &str, missing: &str, fields: &Fields<'a>) -> EntryClass {
        let sentence = format!("inputs.{}.{entry_type}.{missing}: Field required", self.plan.at);
        self.plan.report(Violation::error(FindingCode::Malformed, sentence).at(fields.object).dropped());
        EntryClass::Removed
    }

    fn result(&mut self, fields: &Fields<'a>) -> EntryClass {
        let result = fields.get("result");
        if result.is_none_or(|result| result.kind() != JsonKind::String) {
            let sentence = "inputs.{at}.function.result.result: Input should be a valid string";
            let violation = Violation::error(FindingCode::EmptyContent, sentence).at_member(fields.object, "result");
            let text = result.filter(|result| !result.is_null()).map_or_else(|| "\"\"".to_owned(), as_quoted);
            self.plan.rewrite(violation, text);
        }
        self.pairs.add_result(FoundResult {
            value: fields.object,
            id: fields.get(CALL_ID),
            reply_to: self.in_reply.then_some(self.answers),
            content: result,
            ..FoundResult::default()
        });
        EntryClass::Result
    }
}
