//! OpenAI Responses as a dialect.

use super::kinds::{ASYNC, is_known, kind_of};
use super::unknown_params::UNKNOWN_PARAMS;
use super::{Responses, decode, encode, models, parameters, remedies, rules, stream, tools};
use crate::clock::Ms;
use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Dialect, Message, Part, PartBody, Role};
use crate::provider::dialect::{Codec, EncodeContext, ServiceMembers, Wire, retained_cache_life};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::healing::{Cure, Remedy};
use crate::provider::item_format::{ItemFormat, Mention};
use crate::provider::models::ModelFacts;
use crate::provider::neutral::{MessageText, is_system_text};
use crate::provider::request::{
    MemberPath, Parameter, ProviderRequest, Settings, ToolChoice, ToolDefinition, flat_schema, nested_schema,
};
use crate::provider::rules::{Fields, Plan};
use crate::provider::stream::AnswerReader;
use crate::replay::DraftMessage;
use std::borrow::Cow;

/// The length limit of OpenAI's call ids, in characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// The member with the options of a stream, which is rejected in any other request.
const STREAM_OPTIONS: &str = "stream_options";

/// Parts of model names: these models are not OpenAI's and have item ids and rules of their own (recorded).
const FOREIGN_MODELS: [&str; 2] = ["deepseek", "grok"];

/// Returns true if an item holds only ids, a type and a status.
fn has_no_content(item: &Fields<'_>) -> bool {
    let is_content = |key: JsonRef<'_>| !["type", "id", "call_id", "status"].iter().any(|name| key.is_text(name));
    !item.members().iter().any(|(key, value)| !value.is_null() && is_content(*key))
}

impl ItemFormat for Responses {
    fn dialect(&self) -> Dialect {
        Dialect::OpenAiResponses
    }

    fn list(&self) -> &'static str {
        "input"
    }

    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").unwrap_or_default();
        item.find("role").is_none() && kind != "message" && is_known(&kind)
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").filter(|kind| !kind.is_empty()).unwrap_or_else(|| kind_of(item.object));
        is_provider_type(&kind) || kind.is_empty() && item.find("content").is_some()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let has = |name: &str| item.find(name).is_some();
        match item.get("call_id") {
            Some(value) if !value.is_same(id) => Mention::Unread,
            Some(_) if has("output") || has_no_content(item) => {
                Mention::Result(item.object, "type", "function_call_output")
            }
            Some(_) if has("name") || has("arguments") => Mention::Call,
            _ => Mention::Unread,
        }
    }

    fn takes_text_list(&self) -> bool {
        true
    }
}

impl Codec for Responses {
    fn decode_head(&self, body: JsonRef<'_>, items: &mut Vec<Incoming>) {
        items.extend(body.get("instructions").and_then(decode::decode_instructions));
    }

    fn decode_text(&self, text: JsonStr, items: &mut Vec<Incoming>) -> bool {
        items.push(decode::decode_text(text));
        true
    }

    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        decode::decode(wires, items);
    }

    fn has_phases(&self) -> bool {
        true
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn write_block(&self, out: &mut String, part: &Part, own: bool) -> bool {
        encode::write_block(out, part, own);
        true
    }

    fn model_facts(&self, name: &str) -> ModelFacts {
        models::model_facts(name)
    }

    fn settings(&self, request: &ProviderRequest) -> Settings {
        let named = request.params.view().text("model").unwrap_or_default();
        let model = FOREIGN_MODELS.into_iter().find(|own| named.contains(own)).unwrap_or_default();
        Settings { model, ..request.settings }
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::encode(wire, item, context);
    }

    /// A reference stands for an item that the server stores, which an output may answer: what may follow is left to the rules.
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        has_no_part_of_others(item)
    }

    fn may_follow(&self, _before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        has_no_part_of_others(item)
    }

    /// Messages that were decoded from `instructions`, and those that a render receives under that name, are sent as
    /// `instructions`. Any other system message keeps its place: the endpoint accepts it there.
    fn is_outside_list(&self, message: &Message, _leading: bool) -> bool {
        matches!(message.role, Role::System | Role::Developer)
            && (message.id.is_empty() || decode::is_instructions(message))
    }

    fn system_member(&self, messages: &[&Message], report: &mut Report) -> Option<(&'static str, Json)> {
        let mut inside = String::new();
        for message in messages {
            for part in &message.parts {
                is_system_text(part, message, report);
            }
            // What this drops is reported.
            let text = MessageText::of(message, self, &mut Report::new()).joined();
            if !inside.is_empty() && !text.is_empty() {
                inside.push_str("\\n\\n");
            }
            inside.push_str(text.inside());
        }
        (!inside.is_empty()).then(|| ("instructions", JsonStr::from_inside(&inside).to_json()))
    }

    fn cache_life(&self, params: JsonRef<'_>) -> Ms {
        retained_cache_life(params)
    }

    fn accepts_call_id(&self, id: &str) -> bool {
        id.chars().count() <= MAX_CALL_ID
    }

    /// The last two refer to a history that the server stores. Beside the one in `input`, every message would be sent twice.
    fn reserved_members(&self) -> &'static [&'static str] {
        &["input", "instructions", "previous_response_id", "conversation"]
    }

    fn credential_members(&self) -> &'static [MemberPath] {
        &[
            &["tools", "*", "authorization"],
            &["tools", "*", "headers"],
            &["tools", "*", "container", "network_policy", "domain_secrets"],
            &["tools", "*", "environment", "network_policy", "domain_secrets"],
        ]
    }

    fn rejected_members(&self) -> &'static [&'static str] {
        &UNKNOWN_PARAMS
    }

    fn rejects_member(&self, name: &str, value: JsonRef<'_>) -> bool {
        // The endpoint has `stream_options`, but without `include_usage`.
        self.rejected_members().contains(&name) || name == STREAM_OPTIONS && value.get("include_usage").is_some()
    }

    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        tools::read_tool(entry).into_iter().collect()
    }

    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        tools::read_tool_choice(choice)
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            JsonKind::String => !choice.is_text("any"),
            _ => choice.text("type").is_some_and(|kind| match &*kind {
                "auto" | "any" | "none" | "tool" => false,
                // Chat Completions nest the choice: `{"type":"function","function":{"name":"…"}}`.
                kind => choice.get(kind).is_none(),
            }),
        }
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").text("name", &tool.name);
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        // The default is `true`, unlike in every other dialect, and makes every parameter required.
        out.json("parameters", tool.schema().view()).bool("strict", tool.strict);
        if tool.is_async {
            out.bool(ASYNC, true);
        }
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        tools::write_tool_choice(object, choice);
        true
    }

    fn stream_members(&self) -> &'static [&'static str] {
        &[STREAM_OPTIONS]
    }

    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        _named: &[Cow<'_, str>],
        _report: &mut Report,
    ) {
        if request.stream {
            object.bool("stream", true);
        }
    }

    fn remedies(&self) -> &'static [Remedy] {
        remedies::REMEDIES
    }

    fn leave_out_refused(&self, cure: &mut Cure<'_>, refused: &[String]) {
        remedies::leave_out_refused(cure, refused);
    }

    fn plan_repairs<'a>(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
        rules::plan(plan, list);
    }

    fn parameter(&self, parameter: Parameter) -> Option<&'static str> {
        parameters::parameter(parameter)
    }

    fn parameter_value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::ResponseFormat { flat_schema(value) } else { nested_schema(value) }
    }

    fn server_state_members(&self) -> &'static [&'static str] {
        &["previous_response_id", "conversation"]
    }

    fn is_conversation_locked(&self, status: u16, error_code: &str) -> bool {
        status == 400 && error_code == "conversation_locked"
    }

    fn is_previous_response_missing(&self, status: u16, error_code: &str) -> bool {
        matches!(status, 400 | 404) && error_code == "previous_response_not_found"
    }

    fn is_kept_by_service(&self, part: &Part) -> bool {
        encode::is_kept_by_service(part)
    }

    fn service_members(&self) -> Option<ServiceMembers> {
        Some(ServiceMembers { conversation: "conversation", previous_response: "previous_response_id" })
    }

    /// `POST /responses/compact` takes the chain by its newest response.
    fn compaction_request(&self, model: Option<&str>, previous: &str) -> Option<Vec<u8>> {
        let body: Json = ObjectWriter::build(|out| {
            out.text_or_null("model", model).text("previous_response_id", previous);
        });
        Some(body.as_str().as_bytes().to_vec())
    }

    fn compacted_items(&self, answer: JsonRef<'_>) -> Option<Vec<Json>> {
        let output = answer.find("output").filter(|_| answer.has_text("object", "response.compaction"))?;
        let items: Vec<Json> = output.items().map(|item| item.to_owned()).collect();
        let is_object = |item: &Json| item.view().kind() == JsonKind::Object;
        (!items.is_empty() && items.iter().all(is_object)).then_some(items)
    }

    /// Chat Completions is of the same provider.
    fn shares_files_with(&self, other: Dialect) -> bool {
        other == Dialect::OpenAiChat
    }

    fn assembler(&self) -> Box<dyn AnswerReader> {
        Box::new(stream::ResponsesAssembler::default())
    }
}

/// Returns true if a message has no item that the rules may count to an item of another message: calls may share an id.
fn has_no_part_of_others(item: &DraftMessage<'_>) -> bool {
    item.message.parts.iter().all(|part| match &part.body {
        PartBody::Opaque(value) => {
            let kind = kind_of(value.view());
            kind != "item_reference" && !kind.ends_with("_output")
        }
        _ => true,
    })
}
