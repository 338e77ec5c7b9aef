//! OpenAI Chat Completions as a dialect. Mistral uses the same implementation with its own [`ChatVariant`].

use super::OpenAiChat;
use super::variant::{ChatDialect, ChatVariant};
use super::{decode, encode, models, parameters, remedies, rules, stream, tools};
use crate::clock::Ms;
use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{JsonKind, JsonRef, ObjectWriter};
use crate::message::{Dialect, Message, Part, Role};
use crate::provider::dialect::{Codec, EncodeContext, FindMissingReasoning, Wire, plain_id_of, retained_cache_life};
use crate::provider::healing::{Cure, Remedy};
use crate::provider::item_format::{ItemFormat, Mention};
use crate::provider::neutral::OfferedMedia;
use crate::provider::reasoning_format::is_within;
use crate::provider::request::{MemberPath, Parameter, ProviderRequest, ToolChoice, ToolDefinition};
use crate::provider::rules::{Fields, Plan};
use crate::provider::stream::AnswerReader;
use crate::replay::{DraftMessage, ExtraContent};
use std::borrow::Cow;

/// The length limit of OpenAI's call ids, in characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// The member with the options of a stream, which is rejected in any other request.
const STREAM_OPTIONS: &str = "stream_options";

/// Hosts that serve OpenAI's models: its own, and Azure's (2026-11-25). Others that speak its format are services of their own.
const HOSTS: [&str; 4] = ["openai.com", "openai.azure.com", "openai.azure.us", "cognitiveservices.azure.com"];

/// OpenAI's Chat Completions, which many servers implement nearly completely.
static OPENAI: ChatVariant = ChatVariant {
    dialect: Dialect::OpenAiChat,
    accepts_call_id: |id| id.chars().count() <= MAX_CALL_ID,
    legal_call_id: plain_id_of,
    plan_repairs: rules::plan,
    demands_reasoning: models::demands_reasoning,
    parameter: parameters::parameter,
    remedies: remedies::REMEDIES,
    has_allowed_tools: true,
    shares_files_with: Some(Dialect::OpenAiResponses),
    unknown_params: &["anthropic_version", "anthropic_beta", "stop_sequences", "system", "context_management"],
    any_tool_choice: "required",
    usage_on_request: true,
    free_order: true,
    empty_content: "null",
    content_chunks: false,
    service_of: |host| HOSTS.into_iter().any(|domain| is_within(host, domain)).then_some("openai"),
};

impl ChatDialect for OpenAiChat {
    fn variant(&self) -> &ChatVariant {
        &OPENAI
    }
}

impl<T: ChatDialect> ItemFormat for T {
    fn dialect(&self) -> Dialect {
        self.variant().dialect
    }

    fn family(&self) -> Dialect {
        Dialect::OpenAiChat
    }

    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        let calls = item.get("tool_calls").into_iter().flat_map(JsonRef::items);
        let is_call = |call: JsonRef<'_>| ["function", "custom"].iter().any(|inner| call.find(inner).is_some());
        calls.into_iter().any(is_call)
            || item.find("function_call").is_some_and(JsonRef::is_object)
            || role == "tool" && item.find("tool_call_id").is_some()
            || role == "function" && item.find("name").is_some()
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&role.as_ref())
            || ["content", "tool_calls", "tool_call_id"].iter().any(|name| item.find(name).is_some())
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        let calls = item.get("tool_calls").unwrap_or_default();
        if calls.items().any(|call| is_id(call.get("id"))) {
            return Mention::Call;
        }
        if is_id(item.get("tool_call_id")) { Mention::Result(item.object, "role", "tool") } else { Mention::Unread }
    }
}

impl<T: ChatDialect> Codec for T {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            items.push(decode::decode_message(self.variant(), *wire));
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(self.variant(), block)
    }

    fn write_block(&self, out: &mut String, part: &Part, own: bool) -> bool {
        encode::write_block(self.variant(), out, part, own);
        true
    }

    fn extra_content(&self, answer: &Message) -> ExtraContent {
        decode::extra_content(answer)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::ChatEncoder::new(self.variant(), item, context).encode(wire, context.report);
    }

    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        self.variant().free_order || item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    fn may_follow(&self, before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        self.variant().free_order
            || before.message.role != Role::Assistant
            || !matches!(item.message.role, Role::System | Role::Developer)
    }

    fn cache_life(&self, params: JsonRef<'_>) -> Ms {
        retained_cache_life(params)
    }

    fn accepts_call_id(&self, id: &str) -> bool {
        (self.variant().accepts_call_id)(id)
    }

    fn valid_call_id(&self, id: &str) -> String {
        (self.variant().legal_call_id)(id)
    }

    fn credential_members(&self) -> &'static [MemberPath] {
        &[
            &["tools", "*", "authorization"],
            &["tools", "*", "headers"],
            &["data_sources", "*", "parameters", "authentication"],
            &["data_sources", "*", "parameters", "embedding_dependency", "authentication"],
        ]
    }

    fn rejected_members(&self) -> &'static [&'static str] {
        self.variant().unknown_params
    }

    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        tools::read_tool(entry).into_iter().collect()
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        vec![tools::tool_name(entry)]
    }

    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        tools::read_tool_choice(choice)
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            JsonKind::String => !choice.is_text("any") || self.variant().any_tool_choice == "any",
            _ => {
                let kinds = ["function", "custom", "allowed_tools"];
                kinds
                    .iter()
                    .take(if self.variant().content_chunks { 1 } else { 3 })
                    .any(|kind| choice.get(kind).is_some())
            }
        }
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").object("function", |function| {
            function.text("name", &tool.name);
            if let Some(description) = &tool.description {
                function.text("description", description);
            }
            function.json("parameters", tool.schema().view());
            if tool.strict {
                function.bool("strict", true);
            }
        });
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        tools::write_tool_choice(self.variant(), object, choice)
    }

    fn stream_members(&self) -> &'static [&'static str] {
        &[STREAM_OPTIONS]
    }

    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        named: &[Cow<'_, str>],
        _report: &mut Report,
    ) {
        if !request.stream {
            return;
        }
        object.bool("stream", true);
        if self.variant().usage_on_request
            && !request.settings.no_stream_usage
            && !named.iter().any(|name| name == STREAM_OPTIONS)
        {
            object.raw(STREAM_OPTIONS, r#"{"include_usage":true}"#);
        }
    }

    fn find_missing_reasoning(&self, params: JsonRef<'_>) -> Option<FindMissingReasoning> {
        (self.variant().demands_reasoning)(params).then_some(rules::find_missing_reasoning)
    }

    fn remedies(&self) -> &'static [Remedy] {
        self.variant().remedies
    }

    fn leave_out_refused(&self, cure: &mut Cure<'_>, refused: &[String]) {
        remedies::leave_out_refused(cure, refused);
    }

    fn plan_repairs<'a>(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
        (self.variant().plan_repairs)(plan, list);
    }

    fn parameter(&self, parameter: Parameter) -> Option<&'static str> {
        (self.variant().parameter)(parameter)
    }

    fn has_refusals(&self) -> bool {
        !self.variant().content_chunks
    }

    fn shares_files_with(&self, other: Dialect) -> bool {
        self.variant().shares_files_with == Some(other)
    }

    /// An image needs its bytes or a URL. OpenAI takes other files by their bytes alone (`ChatCompletionContentPart.File`).
    fn accepts_media(&self, media: &OfferedMedia<'_>) -> bool {
        let by_bytes =
            media.has_bytes_or_url && (media.is_image || self.variant().content_chunks || media.inline_type.is_some());
        by_bytes || media.has_known_file_id && !media.is_image
    }

    fn assembler(&self) -> Box<dyn AnswerReader> {
        Box::new(stream::ChatAssembler::new(self.variant().empty_content))
    }
}
