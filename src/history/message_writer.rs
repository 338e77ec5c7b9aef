//! JSON of messages and invocations, in the form of the TypeScript types.

use super::alternatives::Alternatives;
use super::dialect_data::{write_call_data, write_message_data, write_part_data};
use super::entry::ResultEntry;
use super::fold::History;
use crate::json::{ArrayWriter, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Dialect, Media, Message, Part, PartBody, Phase, Usage};
use crate::tool::ToolInvocation;

/// The JSON form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// `Message`: calls are the ids of their invocations.
    Stored,
    /// `Message` as `append` takes it: calls have their arguments and results, and the data of the dialect is there.
    WithCalls,
    /// `ViewMessage`: calls contain their invocations.
    View {
        /// True if history contains the message.
        saved: bool,
        /// True while the message is being streamed.
        streaming: bool,
    },
}

/// Writes messages as JSON.
#[derive(Clone, Copy, Debug)]
pub struct MessageWriter<'h> {
    /// The history that contains the messages' invocations.
    pub history: &'h History,
    /// The session's id.
    pub session: &'h str,
    /// The form to write.
    pub format: MessageFormat,
    /// The messages in other branches of the session.
    pub alternatives: &'h Alternatives,
}

impl MessageWriter<'_> {
    /// Writes the members of a message. `previous` is the id of the message before it, its parent unless it has
    /// another.
    pub fn write(&self, out: &mut ObjectWriter<'_>, message: &Message, previous: Option<&str>) {
        let write_parts = |parts: &mut ArrayWriter<'_>| {
            for part in &message.parts {
                parts.object(|out| self.write_part(out, part, message.dialect));
            }
        };
        self.write_with_parts(out, message, previous, &write_parts);
    }

    /// Writes the members of a message with the parts that `write_parts` writes.
    pub fn write_with_parts(
        &self,
        out: &mut ObjectWriter<'_>,
        message: &Message,
        previous: Option<&str>,
        write_parts: &dyn Fn(&mut ArrayWriter<'_>),
    ) {
        out.text("id", &message.id)
            .number("seq", message.seq)
            .number("turn", u64::from(message.turn))
            .text("role", message.role.as_str());
        out.array("parts", write_parts);
        out.number("createdAt", message.created_at).object("source", |source| {
            source.text("type", message.source.kind.as_str());
            if let Some(id) = &message.source.id {
                source.text("id", id);
            }
        });
        let streaming = matches!(self.format, MessageFormat::View { streaming: true, .. });
        out.text_or_null("runId", message.run_id.as_deref())
            .text("status", if streaming { "streaming" } else { message.status.as_str() })
            .text_or_null("parentId", message.parent_id.as_deref().or(previous));
        let (ids, index) = self.alternatives.of(previous, &message.id);
        out.object("siblings", |out| {
            out.array("ids", |list| ids.iter().for_each(|id| list.text(id))).number("index", index as u64);
        });
        match &message.metadata {
            Some(metadata) => out.json("metadata", metadata.view()),
            None => out.raw("metadata", "null"),
        };
        let answer = message.answer.as_deref();
        out.text_or_null("model", answer.and_then(|answer| answer.model.as_deref()));
        write_usage(out, "usage", answer.and_then(|answer| answer.usage));
        out.text_or_null("finishReason", answer.and_then(|answer| answer.finish_reason.as_deref()))
            .number_or_null("durationMs", answer.and_then(|answer| answer.duration_ms));
        if let Some(agent) = answer.and_then(|answer| answer.agent.as_deref()) {
            out.text("agent", agent);
        }
        if self.has_data() {
            write_message_data(out, message);
        }
        if let MessageFormat::View { saved, .. } = self.format {
            out.bool("saved", saved);
        }
    }

    /// Returns true if the data of the dialect is written.
    fn has_data(&self) -> bool {
        match self.format {
            MessageFormat::WithCalls => true,
            MessageFormat::View { streaming, .. } => !streaming,
            MessageFormat::Stored => false,
        }
    }

    /// Writes the members of a part. `dialect` is that of its message.
    pub fn write_part(&self, out: &mut ObjectWriter<'_>, part: &Part, dialect: Option<Dialect>) {
        match &part.body {
            PartBody::Text(text) => write_text(out, "text", text, part.phase),
            PartBody::Reasoning(text) => out.text("type", "reasoning").token("text", text),
            PartBody::Refusal(text) => write_text(out, "refusal", text, part.phase),
            PartBody::Image(media) => write_media(out.text("type", "image"), media),
            PartBody::File(media) => write_media(out.text("type", "file"), media),
            PartBody::Data { name, value } => out.text("type", "data").text("name", name).json("value", value.view()),
            PartBody::Opaque(value) => out
                .text("type", "opaque")
                .text_or_null("dialect", dialect.map(Dialect::as_str))
                .json("value", value.view()),
            PartBody::ToolCall { invocation, round, place } => match (self.format, self.history.invocation(invocation))
            {
                (MessageFormat::View { .. }, Some(call)) => {
                    let awaits_approval = self.history.awaits_approval(invocation);
                    out.text("type", "tool")
                        .object("call", |out| write_invocation(out, call, self.session, true))
                        .bool("awaitingApproval", awaits_approval)
                        .bool("awaitingResult", call.awaits_result());
                    if self.has_data() {
                        write_call_data(out, call);
                    }
                    &mut *out
                }
                (format, call) => {
                    out.text("type", "tool_call")
                        .text("invocation", invocation)
                        .number("round", u64::from(*round))
                        .number("place", u64::from(*place));
                    if let Some(call) = call.filter(|_| format == MessageFormat::WithCalls) {
                        out.text("callId", &call.call_id)
                            .text("name", &call.name)
                            .text("status", call.status.as_str())
                            .number_or_null("startedAt", call.started_at)
                            .number_or_null("finishedAt", call.finished_at)
                            .bool("redacted", call.is_redacted());
                        write_payload(out, call);
                        write_call_data(out, call);
                    }
                    &mut *out
                }
            },
        };
        if self.has_data() && !matches!(part.body, PartBody::ToolCall { .. }) {
            write_part_data(out, part);
        }
    }
}

fn write_text<'o, 'm>(
    out: &'m mut ObjectWriter<'o>,
    kind: &str,
    text: &JsonStr,
    phase: Option<Phase>,
) -> &'m mut ObjectWriter<'o> {
    out.text("type", kind).token("text", text);
    if let Some(phase) = phase {
        out.text("phase", phase.as_str());
    }
    out
}

fn write_media<'o, 'm>(out: &'m mut ObjectWriter<'o>, media: &Media) -> &'m mut ObjectWriter<'o> {
    for (key, value) in [("url", &media.url), ("data", &media.data), ("fileId", &media.file_id)] {
        if let Some(value) = value {
            out.token(key, value);
        }
    }
    for (key, value) in [("mediaType", &media.media_type), ("name", &media.name)] {
        if let Some(value) = value {
            out.text(key, value);
        }
    }
    out
}

/// Writes the members of an invocation; with arguments and result if `payload`.
pub fn write_invocation(out: &mut ObjectWriter<'_>, call: &ToolInvocation, session: &str, payload: bool) {
    out.text("id", &call.id)
        .text("sessionId", session)
        .text("messageId", &call.message_id)
        .number("turn", u64::from(call.turn))
        .text("callId", &call.call_id)
        .text("name", &call.name)
        .number("roundIndex", u64::from(call.round))
        .number("sequenceIndex", u64::from(call.place))
        .text("status", call.status.as_str())
        .number_or_null("startedAt", call.started_at)
        .number_or_null("finishedAt", call.finished_at)
        .bool("redacted", call.is_redacted())
        .text_or_null("channel", call.channel.as_deref());
    if payload {
        write_payload(out, call);
    }
}

/// Writes an invocation's arguments and result. Arguments that are not JSON are written as a string.
pub fn write_payload(out: &mut ObjectWriter<'_>, call: &ToolInvocation) {
    let text = call.arguments.text();
    match JsonRef::parse(&text) {
        Ok(value) => out.json("arguments", value),
        Err(_) if text.trim().is_empty() => out.raw("arguments", "{}"),
        Err(_) => out.text("arguments", &text),
    };
    out.text("argumentsText", &text);
    match &call.result {
        Some(result) => out.object("result", |out| {
            out.json("content", result.content.view()).bool("isError", result.is_error);
        }),
        None => out.raw("result", "null"),
    };
}

/// Writes the members of a result that was stored after its call.
pub fn write_result_entry(out: &mut ObjectWriter<'_>, entry: &ResultEntry) {
    out.text("invocation", &entry.invocation).text("status", entry.status.as_str());
    if let Some(result) = &entry.result {
        out.json("content", result.content.view());
    }
    if entry.is_replacement {
        out.raw("replaces", "true");
    }
}

/// Writes the token usage as the member `key`, or `null`.
pub fn write_usage(out: &mut ObjectWriter<'_>, key: &str, usage: Option<Usage>) {
    let Some(usage) = usage else {
        out.raw(key, "null");
        return;
    };
    out.object(key, |out| {
        out.number("inputTokens", usage.input).number("outputTokens", usage.output);
        for (key, value) in [
            ("cachedInputTokens", usage.cached_input),
            ("cacheWriteInputTokens", usage.cache_write),
            ("reasoningTokens", usage.reasoning),
        ] {
            if let Some(value) = value {
                out.number(key, value);
            }
        }
    });
}
