//! JSON of events, outcomes and unfinished runs, in the form of the TypeScript types.

use super::event::RunEvent;
use super::journal::{RecoveredRun, StoredProvider};
use super::outcome::{OpenCall, RunOutcome};
use crate::error::Error;
use crate::finding::Finding;
use crate::history::{MessageFormat, MessageWriter, write_usage};
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::{PartBody, Role};
use crate::provider::is_plain_header;
use crate::tool::InvocationStatus;

fn write_error(out: &mut ObjectWriter<'_>, key: &str, error: &Error) {
    out.object(key, |out| {
        out.text("code", error.code.as_str()).text("message", &error.message);
        if let Some(details) = &error.details {
            out.json("details", details.view());
        }
    });
}

fn write_report(out: &mut ObjectWriter<'_>, report: &[Finding]) {
    out.array("report", |items| {
        for finding in report {
            items.object(|out| finding.write(out));
        }
    });
}

impl RunEvent {
    /// Writes the members of a `RunEvent`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Self::Stream { message_id, event } => {
                event.write(out);
                out.text("messageId", message_id);
            }
            Self::ModelCalled { turn, report, prefix } => {
                out.text("type", "model_called").number("turn", u64::from(*turn));
                write_report(out, report);
                out.object("prefix", |out| prefix.write(out));
            }
            Self::MessageStarted { message_id, turn, round } => {
                out.text("type", "message_started")
                    .text("messageId", message_id)
                    .number("turn", u64::from(*turn))
                    .number("round", u64::from(*round));
            }
            Self::ToolStarted { call_id, name } => {
                out.text("type", "tool_started").text("callId", call_id).text("name", name);
            }
            Self::ToolFinished { call_id, is_error, result, duration_ms } => {
                out.text("type", "tool_finished")
                    .text("callId", call_id)
                    .bool("isError", *is_error)
                    .json("result", result.view())
                    .number("durationMs", *duration_ms);
            }
            Self::ToolPending { call_id, invocation, name } => {
                out.text("type", "tool_pending")
                    .text("callId", call_id)
                    .text("invocationId", invocation)
                    .text("name", name);
            }
            Self::ApprovalNeeded { call_id, invocation, name, arguments } => {
                out.text("type", "approval_needed")
                    .text("callId", call_id)
                    .text("invocationId", invocation)
                    .text("name", name)
                    .json("arguments", arguments.view());
            }
            Self::Saved { revision } => {
                out.text("type", "saved").number("revision", *revision);
            }
            Self::SaveFailed { error } => write_error(out.text("type", "save_failed"), "error", error),
            Self::Retrying { attempt, at, error } => {
                out.text("type", "retrying").number("attempt", u64::from(*attempt)).number("at", *at);
                write_error(out, "error", error);
            }
            Self::Warning(finding) => {
                out.text("type", "warning").object("finding", |out| finding.write(out));
            }
            Self::Finished(outcome) => {
                out.text("type", "finished").object("result", |out| outcome.write(out));
            }
        }
    }
}

impl RunOutcome {
    /// Writes the members of a `RunResult`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("status", self.status.as_str());
        match &self.error {
            Some(error) => write_error(out, "error", error),
            None => {
                out.raw("error", "null");
            }
        }
        out.token("text", &self.text).number("turns", u64::from(self.model_calls));
        write_usage(out, "usage", self.usage);
        write_report(out, &self.report);
        out.number("revision", self.revision).text("branch", "main").bool("saved", self.saved).array(
            "messageIds",
            |ids| {
                for id in &self.message_ids {
                    ids.text(id);
                }
            },
        );
        out.text_or_null("conversationId", self.conversation_id.as_deref())
            .text_or_null("responseId", self.response_id.as_deref())
            .array("openCalls", |calls| {
                for OpenCall { call_id, invocation, name } in &self.open_calls {
                    calls.object(|out| {
                        _ = out.text("callId", call_id).text("invocationId", invocation).text("name", name)
                    });
                }
            })
            .raw("replay", self.replay.as_ref().map_or("null", Json::as_str));
    }
}

impl StoredProvider {
    /// Writes the member `provider` of a `PendingRun`.
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        out.object("provider", |out| {
            out.text("dialect", self.dialect.as_str())
                .text("url", &self.url)
                .json("params", self.params.view())
                .bool("stream", self.stream);
            out.object("headers", |out| {
                for (name, value) in &self.headers {
                    out.text(name, value);
                }
            });
            let other: Vec<&str> =
                self.headers.iter().map(|(name, _)| name.as_str()).filter(|name| !is_plain_header(name)).collect();
            if !other.is_empty() {
                out.array("allowHeaders", |names| other.iter().for_each(|name| names.text(name)));
            }
            out.object("compat", |out| {
                if let Some(role) = self.system_role {
                    out.text("systemRole", role.as_str());
                }
                if let Some(field) = &self.reasoning_field {
                    out.text("reasoningField", field);
                }
                if self.no_stream_usage {
                    out.bool("streamUsage", false);
                }
            });
        });
    }
}

impl RecoveredRun {
    /// Writes the members of a `PendingRun`; `state` is `live`, `interrupted`, `waiting_approval` or `failed`.
    pub fn write(&self, out: &mut ObjectWriter<'_>, session: &str, state: &str) {
        out.text("id", &self.began.run)
            .text("session", session)
            .number("startedAt", self.began.at)
            .number("turn", u64::from(self.model_calls))
            .text("state", state);
        if let Some(pause) = self.pause.filter(|pause| pause.not_before > 0) {
            out.number("notBefore", pause.not_before);
        }
        self.began.provider.write(out);
        out.array("withheld", |paths| self.withheld.iter().for_each(|path| paths.text(&format!("params.{path}"))));
        out.array("input", |input| {
            for message in self.began.input.iter().filter(|message| !message.source.is_of_provider()) {
                let writer = MessageWriter { history: &self.live, session, format: MessageFormat::Stored };
                input.object(|out| writer.write(out, message, None));
            }
        });
        out.array("handoffs", |names| self.handoffs.iter().for_each(|handoff| names.text(&handoff.agent)));
        self.write_text(out);
        if let Some((code, message)) = &self.failed {
            out.object("error", |out| {
                out.text("code", code).text("message", message);
            });
        }
        self.write_open_calls(out);
    }

    /// Writes the text of all answers, as one JSON string.
    fn write_text(&self, out: &mut ObjectWriter<'_>) {
        let mut text = String::from("\"");
        let mut separator = "";
        let answers = self.live.messages().iter().filter(|message| message.role == Role::Assistant);
        for message in answers.chain(&self.partial) {
            for part in &message.parts {
                if let PartBody::Text(part_text) = &part.body {
                    text.push_str(separator);
                    text.push_str(part_text.inside());
                    separator = "\\n\\n";
                }
            }
        }
        text.push('"');
        out.raw("text", &text);
    }

    fn write_open_calls(&self, out: &mut ObjectWriter<'_>) {
        out.array("openCalls", |calls| {
            let Some(last) = self.live.last_answer() else { return };
            for call in self.live.calls_of(last) {
                let answered = call.result.is_some() || call.status != InvocationStatus::Pending;
                let state = if call.awaits_result() {
                    "awaiting_result"
                } else if answered {
                    "answered"
                } else if self.live.awaits_approval(&call.id) {
                    "awaiting_approval"
                } else if self.calls.attempts.contains_key(&call.id) {
                    "started"
                } else {
                    "not_started"
                };
                calls.object(|out| {
                    out.text("callId", call.wire_id()).text("invocationId", &call.id).text("name", &call.name);
                    let text = call.arguments.text();
                    match JsonRef::parse(&text) {
                        Ok(value) => out.json("arguments", value),
                        Err(_) => out.text("arguments", &text),
                    };
                    out.text("state", state);
                });
            }
        });
    }
}
