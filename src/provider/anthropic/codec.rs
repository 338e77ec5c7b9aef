//! Anthropic Messages as a [`Codec`].

use super::Anthropic;
use super::encode::AnthropicEncoder;
use super::rules::MAX_CACHE_MARKS;
use super::{decode, encode, models, parameters, remedies, rules, stream};
use crate::clock::Ms;
use crate::finding::{Finding, FindingCode, Report};
use crate::history::Incoming;
use crate::json::{Json, JsonRef, ObjectWriter, list_of};
use crate::message::{Dialect, Message, Part, Role};
use crate::provider::dialect::{CacheBreakpoints, Codec, EncodeContext, Pause, SHORT_CACHE_LIFE, Wire, is_plain_id};
use crate::provider::healing::{Cure, Remedy};
use crate::provider::item_format::{ItemFormat, Mention};
use crate::provider::models::ModelFacts;
use crate::provider::neutral::OfferedMedia;
use crate::provider::request::MemberPath;
use crate::provider::request::{Parameter, ProviderRequest, ToolChoice, ToolDefinition, nested_schema, stop_list};
use crate::provider::rules::{Fields, Plan};
use crate::provider::stream::AnswerReader;
use crate::replay::DraftMessage;
use std::borrow::Cow;

/// The value of `max_tokens`, which Anthropic requires, in a request whose parameters have none.
const DEFAULT_MAX_TOKENS: u64 = 4096;

/// Returns true if the type of a block does not distinguish it: it is missing, empty, or `text`.
fn has_unspecific_type(block: JsonRef<'_>) -> bool {
    let kind = block.text("type").unwrap_or_default();
    kind.is_empty() || kind == "text"
}

impl ItemFormat for Anthropic {
    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn marks_item(&self, _item: &Fields<'_>) -> bool {
        false
    }

    /// Returns true for calls and results. Text, images and documents can be converted to other dialects.
    fn marks_block(&self, block: &Fields<'_>) -> bool {
        let kind = block.text("type").unwrap_or_default();
        matches!(kind.as_ref(), "tool_use" | "server_tool_use" | "mcp_tool_use")
            || kind.ends_with("tool_result") && block.find("tool_use_id").is_some()
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["user", "assistant", "system"].contains(&role.as_ref()) || item.find("content").is_some()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        for block in item.get("content").unwrap_or_default().items() {
            if is_id(block.get("tool_use_id")) && has_unspecific_type(block) {
                return Mention::Result(block, "type", "tool_result");
            }
            if is_id(block.get("id")) && block.find("input").is_some() {
                return Mention::Call;
            }
        }
        Mention::Unread
    }
}

impl Codec for Anthropic {
    fn decode_head(&self, body: JsonRef<'_>, items: &mut Vec<Incoming>) {
        items.extend(body.find("system").and_then(decode::decode_system));
    }

    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            decode::decode_message(*wire, items);
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn write_block(&self, out: &mut String, part: &Part, native: bool) -> bool {
        encode::write_block(out, part, native)
    }

    fn model_facts(&self, name: &str) -> ModelFacts {
        models::model_facts(name)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        AnthropicEncoder { codec: self, codec_of: context.codec_of, report: context.report }.encode(
            wire,
            item,
            context.deferred,
        );
    }

    /// Returns false for an answer without calls: the rules decide whether the model may continue it.
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    /// Newer Anthropic models accept system messages among the others, so those of Anthropic's own format keep their place.
    fn is_outside_list(&self, message: &Message, leading: bool) -> bool {
        matches!(message.role, Role::System | Role::Developer)
            && (leading && !message.parts.is_empty() || message.dialect != Some(Dialect::Anthropic))
    }

    fn system_member(&self, messages: &[&Message], report: &mut Report) -> Option<(&'static str, Json)> {
        let blocks: Vec<String> = messages.iter().flat_map(|message| encode::system_blocks(message, report)).collect();
        let system = match blocks.as_slice() {
            [] => return None,
            // A single text block without further members is written as a string.
            [only] => {
                let block = Json::parse(only).ok()?;
                match (block.view().entries().count(), block.view().json_str("text")) {
                    (2, Some(text)) => text.to_json(),
                    _ => Json::trusted(list_of(&blocks)),
                }
            }
            blocks => Json::trusted(list_of(blocks)),
        };
        Some(("system", system))
    }

    /// Anthropic's pattern is `^[a-zA-Z0-9_-]+$`. It sets no limit, but all dialects accept an id of 64 characters.
    fn accepts_call_id(&self, id: &str) -> bool {
        is_plain_id(id)
    }

    fn cache_breakpoints(&self) -> Option<CacheBreakpoints> {
        Some(CacheBreakpoints { member: "\"cache_control\"", limit: MAX_CACHE_MARKS })
    }

    fn cache_life(&self, params: JsonRef<'_>) -> Ms {
        let ttl = params.get("cache_control").and_then(|control| control.text("ttl"));
        if ttl.is_some_and(|ttl| ttl == "1h") { 3_600_000 } else { SHORT_CACHE_LIFE }
    }

    fn reserved_members(&self) -> &'static [&'static str] {
        &["messages", "system"]
    }

    fn credential_members(&self) -> &'static [MemberPath] {
        &[&["mcp_servers", "*", "authorization_token"], &["mcp_servers", "*", "headers"]]
    }

    fn rejected_members(&self) -> &'static [&'static str] {
        &[
            "stream_options",
            "n",
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "response_format",
            "seed",
            "parallel_tool_calls",
            "user",
            "store",
            "max_completion_tokens",
            "reasoning_effort",
            "stop",
            "modalities",
            "prediction",
        ]
    }

    /// Reads `{"name":"search","description":"…","input_schema":{…}}`. The tools that Anthropic runs have a type with a version.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        let is_custom = entry.text("type").is_none_or(|kind| kind == "custom");
        ToolDefinition::from_object(entry, "input_schema").filter(|_| is_custom).into_iter().collect()
    }

    /// Reads `{"type":"tool","name":"search"}`.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        match &*choice.text("type")? {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "any" => Some(ToolChoice::Any),
            "tool" => Some(ToolChoice::Named(choice.text("name")?)),
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        choice.text("type").is_some_and(|kind| matches!(&*kind, "auto" | "any" | "none" | "tool"))
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("name", &tool.name);
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        let schema = tool.schema();
        // Anthropic rejects a schema without `type`.
        if schema.view().get("type").is_some() {
            out.json("input_schema", schema.view());
            return;
        }
        out.object("input_schema", |inner| {
            inner.text("type", "object");
            inner.copy_all(schema.view(), "");
        });
    }

    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let kind = match choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
            ToolChoice::Any => "any",
            ToolChoice::Named(_) => "tool",
            ToolChoice::Among { .. } => return false,
        };
        object.object("tool_choice", |out| {
            out.text("type", kind);
            if let ToolChoice::Named(name) = choice {
                out.text("name", name);
            }
        });
        true
    }

    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        named: &[Cow<'_, str>],
        report: &mut Report,
    ) {
        if request.stream {
            object.bool("stream", true);
        }
        if !named.iter().any(|name| name == "max_tokens") {
            object.number("max_tokens", DEFAULT_MAX_TOKENS);
            report.push(Finding::info(
                FindingCode::UnsupportedKey,
                "Anthropic requires `max_tokens`; the request has none, so it is set to 4096",
            ));
        }
    }

    fn required_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn remedies(&self) -> &'static [Remedy] {
        remedies::REMEDIES
    }

    fn leave_out_refused(&self, cure: &mut Cure<'_>, refused: &[String]) {
        remedies::leave_out_refused(cure, refused);
    }

    fn plan_repairs<'a>(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
        let facts = self.model_facts(&plan.body.text("model").unwrap_or_default());
        rules::plan(plan, list, &facts);
    }

    fn parameter(&self, parameter: Parameter) -> Option<&'static str> {
        parameters::parameter(parameter)
    }

    fn parameter_value(&self, parameter: Parameter, value: JsonRef<'_>) -> String {
        if parameter == Parameter::Stop { stop_list(value) } else { nested_schema(value) }
    }

    fn forbids_parallel_calls(&self, choice: JsonRef<'_>) -> bool {
        choice.get("disable_parallel_tool_use").and_then(JsonRef::as_bool) == Some(true)
    }

    fn has_strict_tools(&self) -> bool {
        false
    }

    fn flags_errors(&self) -> bool {
        true
    }

    /// Four types of images (`Base64ImageSource`) and PDF files (`Base64PDFSource`).
    fn accepts_media(&self, media: &OfferedMedia<'_>) -> bool {
        match media.inline_type {
            Some(kind) if media.is_image => matches!(kind, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
            Some(kind) => kind == "application/pdf",
            None => media.has_bytes_or_url || media.has_known_file_id,
        }
    }

    /// `pause_turn` stops the loop of server tools; `compaction` follows a summary, which is the whole answer if it was asked for.
    fn pause_after(&self, finish_reason: &str, params: JsonRef<'_>) -> Option<Pause> {
        match finish_reason {
            "pause_turn" => Some(Pause::Resumes),
            "compaction" if params.find("compaction").is_some() => Some(Pause::Ends),
            "compaction" => Some(Pause::Resumes),
            _ => None,
        }
    }

    /// Code that called a tool waits in its container, and the API rejects a request that does not name it.
    fn params_in_container(&self, params: JsonRef<'_>, container: &str) -> Option<Json> {
        params.get("container").is_none().then(|| {
            ObjectWriter::build(|object| {
                object.copy_all(params, "");
                object.text("container", container);
            })
        })
    }

    fn assembler(&self) -> Box<dyn AnswerReader> {
        Box::new(stream::AnthropicAssembler::default())
    }
}
