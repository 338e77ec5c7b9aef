//! OpenAI Chat Completions: its side of the door. Mistral goes through it too.

use super::{decode, encode, stream};
use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::message::{Dialect, Part};
use crate::provider::assembler::Assembling;
use crate::provider::codec::{Codec, Wire};
use crate::provider::request::{ProviderRequest, ToolChoice, ToolDefinition};
use crate::provider::settings::Settings;
use crate::replay::DraftMessage;
use std::borrow::Cow;

/// OpenAI takes call ids of up to 64 characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// The codec of a dialect of that family.
pub(crate) struct Chat {
    /// Which one: what came in it goes out in its own shape.
    pub dialect: Dialect,
}

impl Codec for Chat {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn decode(&self, wires: &mut dyn Iterator<Item = JsonRef<'_>>, items: &mut Vec<Incoming>) {
        items.extend(wires.map(|wire| decode::decode_message(wire, self.dialect)));
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn encode(
        &self,
        wire: &mut Wire<'_>,
        item: &DraftMessage<'_>,
        _before: &[DraftMessage<'_>],
        settings: &Settings,
        report: &mut Report,
    ) {
        encode::encode(self, wire, item, settings, report);
    }

    fn takes_id(&self, id: &str) -> bool {
        id.chars().count() <= MAX_CALL_ID
    }

    fn foreign(&self) -> &'static [&'static str] {
        &["anthropic_version", "anthropic_beta", "stop_sequences", "system", "context_management"]
    }

    fn is_own_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            Kind::String => !choice.is_text("any"),
            _ => ["function", "custom", "allowed_tools"].iter().any(|kind| choice.get(kind).is_some()),
        }
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").object("function", |function| {
            function.text("name", &tool.name);
            if let Some(description) = &tool.description {
                function.text("description", description);
            }
            function.json("parameters", tool.schema().view());
        });
    }

    fn write_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) {
        match choice {
            ToolChoice::Auto => object.text("tool_choice", "auto"),
            ToolChoice::None => object.text("tool_choice", "none"),
            ToolChoice::Any => object.text("tool_choice", "required"),
            ToolChoice::Named(name) => object.object("tool_choice", |out| {
                out.text("type", "function").object("function", |function| {
                    function.text("name", name);
                });
            }),
            ToolChoice::Other(_) => object,
        };
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
        if !request.settings.no_stream_usage && !named.iter().any(|name| name == "stream_options") {
            object.raw("stream_options", r#"{"include_usage":true}"#);
        }
    }

    fn assembler(&self) -> Box<dyn Assembling> {
        Box::new(stream::ChatAnswer::default())
    }
}
