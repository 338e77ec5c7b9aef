//! OpenAI Chat Completions: its side of the door. Mistral goes through it too, with its own [`Ways`].

use super::{decode, encode, stream};
use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::message::{Dialect, Part, Role};
use crate::provider::assembler::Assembling;
use crate::provider::codec::{Codec, Wire, head_and_name};
use crate::provider::request::{ProviderRequest, ToolChoice, ToolDefinition};
use crate::provider::rules::{Fields, Mention};
use crate::provider::settings::Settings;
use crate::provider::withheld::MemberPath;
use crate::replay::DraftMessage;
use std::borrow::Cow;

/// OpenAI takes call ids of up to 64 characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// The codec of a dialect of that family.
pub(crate) struct Chat {
    /// Which one: what came in it goes out in its own shape.
    pub dialect: Dialect,
    /// Where they differ.
    pub ways: Ways,
}

/// Where two dialects of this family differ.
pub(crate) struct Ways {
    pub takes_id: fn(&str) -> bool,
    pub legal_id: fn(&str) -> String,
    pub foreign: &'static [&'static str],
    /// The word for "some tool, whichever".
    pub any: &'static str,
    /// Usage in a stream must be asked for.
    pub stream_options: bool,
    /// A body may end in an assistant's message, and a system message stand behind one.
    pub ends_anywhere: bool,
    /// The content of a message that has calls and no words.
    pub blank: &'static str,
    /// Content in chunks: reasoning is one of them, documents have addresses, a tool message holds any of them, a refusal is
    /// text; system messages have one role; a call's arguments may be an object, its list of calls empty.
    pub chunks: bool,
}

/// OpenAI, and the many servers that are nearly it.
pub(crate) static OPENAI: Chat = Chat {
    dialect: Dialect::OpenAiChat,
    ways: Ways {
        takes_id: |id| id.chars().count() <= MAX_CALL_ID,
        legal_id: head_and_name,
        foreign: &["anthropic_version", "anthropic_beta", "stop_sequences", "system", "context_management"],
        any: "required",
        stream_options: true,
        ends_anywhere: true,
        blank: "null",
        chunks: false,
    },
};

impl Codec for Chat {
    fn dialect(&self) -> Dialect {
        self.dialect
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

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        let calls = item.get("tool_calls").unwrap_or_default();
        if calls.items().any(|call| is(call.get("id"))) {
            return Mention::Call;
        }
        if is(item.get("tool_call_id")) { Mention::Result(item.object, "role", "tool") } else { Mention::Unread }
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&role.as_ref())
            || ["content", "tool_calls", "tool_call_id"].iter().any(|name| item.find(name).is_some())
    }

    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            items.push(decode::decode_message(self, *wire));
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(self, block)
    }

    fn write_block(&self, out: &mut String, part: &Part, own: bool) -> bool {
        encode::write_block(self, out, part, own);
        true
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

    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        self.ways.ends_anywhere || item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    fn may_follow(&self, before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        self.ways.ends_anywhere
            || before.message.role != Role::Assistant
            || !matches!(item.message.role, Role::System | Role::Developer)
    }

    fn takes_id(&self, id: &str) -> bool {
        (self.ways.takes_id)(id)
    }

    fn legal_id(&self, id: &str) -> String {
        (self.ways.legal_id)(id)
    }

    fn credential_members(&self) -> &'static [MemberPath] {
        &[
            &["tools", "*", "authorization"],
            &["tools", "*", "headers"],
            &["data_sources", "*", "parameters", "authentication"],
            &["data_sources", "*", "parameters", "embedding_dependency", "authentication"],
        ]
    }

    fn foreign(&self) -> &'static [&'static str] {
        self.ways.foreign
    }

    fn is_own_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            Kind::String => !choice.is_text("any") || self.ways.any == "any",
            _ => {
                let kinds = ["function", "custom", "allowed_tools"];
                kinds.iter().take(if self.ways.chunks { 1 } else { 3 }).any(|kind| choice.get(kind).is_some())
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

    fn write_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) {
        match choice {
            ToolChoice::Auto => object.text("tool_choice", "auto"),
            ToolChoice::None => object.text("tool_choice", "none"),
            ToolChoice::Any => object.text("tool_choice", self.ways.any),
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
        if self.ways.stream_options
            && !request.settings.no_stream_usage
            && !named.iter().any(|name| name == "stream_options")
        {
            object.raw("stream_options", r#"{"include_usage":true}"#);
        }
    }

    fn assembler(&self) -> Box<dyn Assembling> {
        Box::new(stream::ChatAnswer::new(self.ways.blank))
    }
}
