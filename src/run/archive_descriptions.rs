//! What an export shows a person of values that the store does not interpret (R37): the owner of the conversation and
//! the entries of journals.

use super::journal::{JournalEntry, RunStart};
use crate::history::{History, MessageFormat, MessageWriter, NO_ALTERNATIVES, write_invocation, write_result_entry};
use crate::id::Seed;
use crate::json::ObjectWriter;
use crate::message::Message;
use crate::owner::StateOwner;
use crate::session_head::StoredOwner;
use crate::store::{ArchiveDescriptions, RecordKind, open_record};
use crate::tool::ToolInvocation;
use bytes::Bytes;

/// The descriptions in the form of the public types.
pub const ARCHIVE_DESCRIPTIONS: ArchiveDescriptions =
    ArchiveDescriptions { owner: describe_owner, journal_entry: describe_entry };

/// Writes the member `owner`: `null` for an owner that this build does not know.
fn describe_owner(out: &mut ObjectWriter<'_>, stored: &StoredOwner) {
    match StateOwner::from_stored(stored) {
        Ok(owner) => out.object("owner", |out| owner.write(out)),
        Err(_) => out.raw("owner", "null"),
    };
}

/// Writes the member `entry`: `null` for an entry that is damaged, or that this build does not know.
fn describe_entry(out: &mut ObjectWriter<'_>, sealed: &Bytes, session: &str) {
    match open_record::<JournalEntry>(RecordKind::Journal, sealed) {
        Ok(entry) => out.object("entry", |out| entry.write(out, session)),
        Err(_) => out.raw("entry", "null"),
    };
}

impl JournalEntry {
    /// Writes the kind of the entry and what it contains.
    fn write(&self, out: &mut ObjectWriter<'_>, session: &str) {
        out.text("type", self.type_name());
        match self {
            Self::Began(start) | Self::Queued(start) => start.write(out, session),
            Self::Answered { message, invocations } => {
                write_message(out, message, session);
                write_calls(out, invocations, session);
            }
            Self::Completed(Some(message)) | Self::Partial(message) => write_message(out, message, session),
            Self::Completed(None) => {}
            Self::Started { invocation, at, attempt } => {
                out.text("invocation", invocation).number("at", *at).number("attempt", u64::from(*attempt));
            }
            Self::ApprovalNeeded { invocation, at } | Self::Approved { invocation, at } => {
                out.text("invocation", invocation).number("at", *at);
            }
            Self::Finished(result) => write_result_entry(out, result),
            Self::Redacted { invocation, arguments } => {
                let text = arguments.as_ref().map(|arguments| arguments.text());
                out.text("invocation", invocation).text_or_null("argumentsText", text.as_deref());
            }
            Self::Withheld { members } => {
                out.array("params", |list| members.iter().for_each(|member| list.text(member)));
            }
            Self::Failed { code, message, .. } => {
                out.text("code", code).text("message", message);
            }
            Self::Retrying { attempt, not_before, .. } => {
                out.number("attempt", u64::from(*attempt)).number("notBefore", *not_before);
            }
            Self::HandedOff { agent, at } => {
                out.text("agent", agent).number("at", *at);
            }
            Self::Healed { refused, restarts_chain } => {
                out.array("refused", |list| refused.iter().for_each(|mark| list.text(mark)));
                if *restarts_chain {
                    out.bool("restartsChain", true);
                }
            }
            Self::Background(answer) => {
                let response = answer.as_ref().map(|answer| answer.response.as_str());
                out.text_or_null("responseId", response);
            }
            Self::Selected(selection) => {
                out.array("ranges", |list| {
                    for range in &selection.ranges {
                        list.object(|out| match &range.message {
                            Some(message) => write_message(out, message, session),
                            None => {
                                out.text("first", &range.first).text("last", &range.last);
                            }
                        });
                    }
                });
            }
        }
    }

    /// Returns the name of the kind. Kinds that a run reports as events have the names of these.
    fn type_name(&self) -> &'static str {
        match self {
            Self::Began(_) => "began",
            Self::Queued(_) => "queued",
            Self::Answered { .. } => "answered",
            Self::Started { .. } => "tool_started",
            Self::Finished(_) => "tool_finished",
            Self::Failed { .. } => "failed",
            Self::Redacted { .. } => "redacted",
            Self::Withheld { .. } => "withheld",
            Self::Partial(_) => "partial_answer",
            Self::ApprovalNeeded { .. } => "approval_needed",
            Self::Approved { .. } => "approved",
            Self::Retrying { .. } => "retrying",
            Self::Completed(_) => "completed",
            Self::HandedOff { .. } => "handed_off",
            Self::Selected(_) => "history_selected",
            Self::Healed { .. } => "healed",
            Self::Background(_) => "background_answer",
        }
    }
}

impl RunStart {
    /// Writes what the run began with.
    fn write(&self, out: &mut ObjectWriter<'_>, session: &str) {
        out.number("at", self.at);
        self.provider.write(out);
        out.array("input", |list| {
            for message in &self.input {
                list.object(|out| write_message_members(out, message, session));
            }
        });
        write_calls(out, &self.calls, session);
    }
}

fn write_message(out: &mut ObjectWriter<'_>, message: &Message, session: &str) {
    out.object("message", |out| write_message_members(out, message, session));
}

fn write_message_members(out: &mut ObjectWriter<'_>, message: &Message, session: &str) {
    let history = History::new(Seed(0));
    MessageWriter { history: &history, session, format: MessageFormat::Stored, alternatives: &NO_ALTERNATIVES }
        .write(out, message, None);
}

fn write_calls(out: &mut ObjectWriter<'_>, calls: &[ToolInvocation], session: &str) {
    out.array("toolInvocations", |list| {
        for call in calls {
            list.object(|out| write_invocation(out, call, session, true));
        }
    });
}
