//! Gemini generateContent: its side of the door.

use super::{config, decode, encode, is_part, sdk, stream, version};
use crate::finding::{Finding, Report};
use crate::history::Incoming;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::{Dialect, Message, Part, Role};
use crate::provider::dialect::{Codec, Wire};
use crate::provider::request::MemberPath;
use crate::provider::request::Settings;
use crate::provider::request::{ProviderRequest, ToolChoice, ToolDefinition};
use crate::provider::rules::Fields;
use crate::provider::stream::AnswerReader;
use crate::replay::DraftMessage;
use crate::text::has;
use std::borrow::Cow;

/// The codec.
pub(crate) struct Gemini;

impl Codec for Gemini {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn list(&self) -> &'static str {
        "contents"
    }

    fn api_request(&self, body: JsonRef<'_>) -> Option<Json> {
        sdk::api_request(body)
    }

    fn around_parts(&self, list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        sdk::are_parts(list).then_some(("[{\"role\":\"user\",\"parts\":", "}]"))
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

    fn write_block(&self, out: &mut String, part: &Part, own: bool) -> bool {
        encode::write_part(out, part, own)
    }

    /// The model's name, where it is known, says which version it is.
    fn settings(&self, request: &ProviderRequest) -> Settings {
        let named = version(&request.params.view().text("model").unwrap_or_default());
        Settings { version: if named > 0 { named } else { version(&request.url) }, ..request.settings }
    }

    fn encode(
        &self,
        wire: &mut Wire<'_>,
        item: &DraftMessage<'_>,
        before: &[DraftMessage<'_>],
        settings: &Settings,
        report: &mut Report,
    ) {
        encode::encode(wire, item, before, settings, report);
    }

    fn plain(&self) -> &'static str {
        r#"{"role":"user","parts":[{"text":"."}]}"#
    }

    /// A call comes after a user's turn (gemini-cli#11814).
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        item.calls.is_empty()
    }

    /// A body ends in a user's turn or in results (crewAI#6973).
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    fn stands_apart(&self, message: &Message, _leading: bool) -> bool {
        matches!(message.role, Role::System | Role::Developer)
    }

    fn system(&self, messages: &[&Message]) -> Option<(&'static str, Json)> {
        Some(("systemInstruction", encode::system(messages)?))
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty()
    }

    fn reserved(&self) -> &'static [&'static str] {
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

    /// "Invalid JSON payload received. Unknown name", says the API of any key that it does not know.
    fn foreign(&self) -> &'static [&'static str] {
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

    fn gathers(&self, name: &str) -> bool {
        // The model stands in the address.
        name == "model" || config::gathers(name)
    }

    fn tools_in(&self) -> Option<&'static str> {
        Some("functionDeclarations")
    }

    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        encode::taken_name(name)
    }

    fn is_own_choice(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// `parametersJsonSchema` takes any JSON Schema, `parameters` a part of OpenAPI's only.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("name", &self.tool_name(&tool.name));
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        if let Some(schema) = &tool.parameters {
            out.json("parametersJsonSchema", schema.view());
        }
    }

    fn write_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) {
        let mode = match choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::None => "NONE",
            ToolChoice::Any | ToolChoice::Named(_) => "ANY",
            ToolChoice::Other(_) => return,
        };
        object.object("toolConfig", |config| {
            config.object("functionCallingConfig", |config| {
                config.text("mode", mode);
                if let ToolChoice::Named(name) = choice {
                    config.array("allowedFunctionNames", |names| names.text(&self.tool_name(name)));
                }
            });
        });
    }

    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        _named: &[Cow<'_, str>],
        report: &mut Report,
    ) {
        config::write(request.params.view(), object);
        if request.stream && !has(&request.url, ":streamGenerateContent") && has(&request.url, ":generateContent") {
            report.push(Finding::info(
                "unsupported_key",
                "Gemini streams by its address: `:streamGenerateContent?alt=sse` instead of `:generateContent`",
            ));
        }
    }

    fn assembler(&self) -> Box<dyn AnswerReader> {
        Box::new(stream::GeminiAssembler::default())
    }
}
