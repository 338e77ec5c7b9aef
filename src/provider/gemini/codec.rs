//! Gemini generateContent as a [`Codec`].

use super::Gemini;
use super::encode::{GeminiEncoder, function_name};
use super::model_version::model_version;
use super::part::is_part;
use super::tools::{self, DECLARATIONS};
use super::{config, decode, encode, parameters, remedies, rules, sdk_request, stream};
use crate::finding::{Finding, FindingCode, Report};
use crate::history::Incoming;
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Dialect, Message, Part, Role};
use crate::provider::dialect::{Codec, EncodeContext, Wire};
use crate::provider::healing::{Cure, Remedy};
use crate::provider::item_format::ItemFormat;
use crate::provider::neutral::text_or_json;
use crate::provider::request::MemberPath;
use crate::provider::request::Settings;
use crate::provider::request::{Parameter, ProviderRequest, ToolChoice, ToolDefinition, nested_schema, stop_list};
use crate::provider::rules::{Fields, Plan};
use crate::provider::stream::AnswerReader;
use crate::replay::DraftMessage;
use crate::tool::ToolResult;
use std::borrow::Cow;

impl ItemFormat for Gemini {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn list(&self) -> &'static str {
        "contents"
    }

    fn around_parts(&self, list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        sdk_request::are_parts(list).then_some(("[{\"role\":\"user\",\"parts\":", "}]"))
    }

    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let Some(parts) = item.find("parts").filter(|_| item.find("content").is_none()) else { return false };
        parts.items().any(is_part) || is_part(parts)
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default().to_ascii_lowercase();
        let known = ["user", "model", "function"].contains(&role.as_str());
        item.find("parts").is_some() || known && item.find("content").is_none()
    }
}

impl Codec for Gemini {
    fn api_request(&self, body: JsonRef<'_>) -> Option<Json> {
        sdk_request::api_request(body)
    }

    fn decode_head(&self, body: JsonRef<'_>, items: &mut Vec<Incoming>) {
        decode::decode_system(body, items);
    }

    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            decode::decode_content(*wire, items);
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_part(block)
    }

    fn write_block(&self, out: &mut String, part: &Part, native: bool) -> bool {
        encode::write_part(out, part, native)
    }

    /// Reads the model's version from `params.model`, or else from the URL (`…/models/gemini-3.6-pro:generateContent`).
    fn settings(&self, request: &ProviderRequest) -> Settings {
        let version = match model_version(&request.params.view().text("model").unwrap_or_default()) {
            0 => model_version(&request.url),
            version => version,
        };
        Settings { version, ..request.settings }
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        let EncodeContext { deferred, settings, codec_of, report } = context;
        GeminiEncoder { codec: self, settings, codec_of: *codec_of, report }.encode(wire, item, deferred);
    }

    fn placeholder_message(&self) -> &'static str {
        r#"{"role":"user","parts":[{"text":"."}]}"#
    }

    /// Gemini rejects a call that does not follow a user turn (gemini-cli#11814).
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        item.calls.is_empty()
    }

    /// Gemini rejects a request that ends with a model turn (crewAI#6973).
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    fn is_outside_list(&self, message: &Message, _leading: bool) -> bool {
        matches!(message.role, Role::System | Role::Developer)
    }

    fn system_member(&self, messages: &[&Message], report: &mut Report) -> Option<(&'static str, Json)> {
        Some(("systemInstruction", encode::system_instruction(messages, report)?))
    }

    fn accepts_call_id(&self, id: &str) -> bool {
        !id.is_empty()
    }

    fn reserved_members(&self) -> &'static [&'static str] {
        &["contents", "systemInstruction", "system_instruction"]
    }

    fn credential_members(&self) -> &'static [MemberPath] {
        &[
            &["tools", "*", "mcpServers", "*", "streamableHttpTransport", "headers"],
            &["tools", "*", "retrieval", "externalApi", "apiAuth"],
            &["tools", "*", "retrieval", "externalApi", "authConfig"],
            &["tools", "*", "googleMaps", "authConfig"],
            &["tools", "*", "parallelAiSearch", "apiKey"],
            &["tools", "*", "exaAiSearch", "apiKey"],
        ]
    }

    /// Gemini rejects any unknown key: "Invalid JSON payload received. Unknown name".
    fn rejected_members(&self) -> &'static [&'static str] {
        &[
            "anthropic_version",
            "anthropic_beta",
            "context_management",
            "include",
            "instructions",
            "input",
            "logit_bias",
            "logprobs",
            "max_tool_calls",
            "messages",
            "metadata",
            "modalities",
            "parallel_tool_calls",
            "prediction",
            "previous_response_id",
            "prompt_cache_key",
            "prompt_mode",
            "reasoning",
            "reasoning_effort",
            "response_format",
            "safe_prompt",
            "safety_identifier",
            "service_tier",
            "store",
            "stream_options",
            "system",
            "text",
            "thinking",
            "top_logprobs",
            "truncation",
            "user",
            "verbosity",
        ]
    }

    fn moves_parameter(&self, name: &str) -> bool {
        // The model is named in the URL.
        name == "model" || config::contains_parameter(name)
    }

    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        tools::read_tools(entry)
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        tools::declarations(entry).unwrap_or_default().items().map(|tool| tool.string("name")).collect()
    }

    fn has_callable_tool(&self, entry: JsonRef<'_>) -> bool {
        tools::declarations(entry).is_some()
    }

    fn tool_entries(&self, definitions: String) -> String {
        format!("{{\"{DECLARATIONS}\":[{definitions}]}}")
    }

    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        function_name(name)
    }

    fn name_before_change<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix('_')
    }

    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        tools::read_tool_choice(choice)
    }

    fn is_native_tool_choice(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// Writes the schema as `parametersJsonSchema`, which accepts any JSON Schema; `parameters` accepts a subset of OpenAPI's.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("name", &self.tool_name(&tool.name));
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        if let Some(schema) = &tool.parameters {
            out.json("parametersJsonSchema", schema.view());
        }
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let mode = match choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::None => "NONE",
            ToolChoice::Any | ToolChoice::Named(_) => "ANY",
            ToolChoice::Among { .. } => return false,
        };
        object.object("toolConfig", |config| {
            config.object("functionCallingConfig", |config| {
                config.text("mode", mode);
                if let ToolChoice::Named(name) = choice {
                    config.array("allowedFunctionNames", |names| names.text(&self.tool_name(name)));
                }
            });
        });
        true
    }

    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        _named: &[Cow<'_, str>],
        report: &mut Report,
    ) {
        config::write(request.params.view(), object);
        if request.stream && !request.url.contains(":streamGenerateContent") && request.url.contains(":generateContent")
        {
            report.push(Finding::info(
                FindingCode::UnsupportedKey,
                "Gemini streams if the URL ends with `:streamGenerateContent?alt=sse` instead of `:generateContent`",
            ));
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

    /// Names in snake case are read, too.
    fn parameter_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Owned(config::camel_case(name))
    }

    fn parameter_value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    fn has_strict_tools(&self) -> bool {
        false
    }

    fn names_tool_choice(&self, member: &str) -> bool {
        matches!(member, "toolConfig" | "tool_config")
    }

    fn has_other_tool_choice(&self, params: JsonRef<'_>) -> bool {
        ["toolConfig", "tool_config"].iter().any(|name| params.get(name).is_some())
    }

    /// As in Google's own examples: `"contents":{"parts":[{"text":"hi"}]}`.
    fn takes_single_item(&self) -> bool {
        true
    }

    fn flags_errors(&self) -> bool {
        true
    }

    /// A response is data: only its `parts` are images and files.
    fn decode_result(&self, result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
        (vec![text_or_json(&result.content)], decode::media_of_result(result))
    }

    fn assembler(&self) -> Box<dyn AnswerReader> {
        Box::new(stream::GeminiAssembler::default())
    }
}
