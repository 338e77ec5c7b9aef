//! Results of commands, as JSON in the shapes of the JavaScript package.

use crate::error::Error;
use crate::json::{ArrayWriter, Json, ObjectWriter};
use crate::session::{Branch, CompactionOutcome, Pruned};
use crate::session_head::SessionHead;
use crate::store::{ErasureReceipt, Excerpt, SearchHit};

/// Writes the branches of a session: `Branch`.
pub fn branches_json(branches: &[Branch]) -> String {
    let mut text = String::new();
    let mut list = ArrayWriter::new(&mut text);
    for branch in branches {
        list.object(|out| write_branch(out, branch));
    }
    list.end();
    text
}

fn write_branch(out: &mut ObjectWriter<'_>, branch: &Branch) {
    out.text("branch", &branch.id)
        .text("kind", branch.kind.as_str())
        .text_or_null("parent", branch.parent.as_deref())
        .text_or_null("forkedAfter", branch.forked_after.as_deref())
        .number("createdAt", branch.created_at)
        .number("messageCount", branch.message_count);
    if let Some(adopted) = &branch.adopted {
        out.text("adopted", adopted);
    }
    if branch.is_damaged {
        out.bool("damaged", true);
    }
}

/// Writes how a compaction ended: `{ compacted, reason }`.
pub fn compaction_json(outcome: CompactionOutcome) -> Json {
    let (compacted, reason) = outcome.described();
    ObjectWriter::build(|out| {
        out.bool("compacted", compacted).text("reason", reason);
    })
}

/// Writes what an erasure did: `ErasureReceipt`.
pub fn erasure_json(receipt: &ErasureReceipt) -> Json {
    ObjectWriter::build(|out| {
        out.array("messages", |list| receipt.messages.iter().for_each(|id| list.text(id)))
            .number("invocations", receipt.invocations)
            .array("records", |list| {
                for (table, count) in &receipt.records {
                    list.object(|out| {
                        out.text("table", table).number("count", *count);
                    });
                }
            })
            .number("bytes", receipt.bytes)
            .array("unreached", |list| {
                for place in &receipt.unreached {
                    list.object(|out| {
                        out.text("what", place.what).text("why", &place.why);
                    });
                }
            });
    })
}

/// Writes what `prune` did: `PruneResult`.
pub fn pruned_json(pruned: &Pruned) -> Json {
    ObjectWriter::build(|out| {
        out.number("removed", pruned.sessions.iter().map(|session| session.removed).sum())
            .array("sessions", |list| {
                for session in &pruned.sessions {
                    list.object(|out| {
                        out.text("session", &session.id)
                            .number("removed", session.removed)
                            .number("left", session.left);
                    });
                }
            })
            .array("failed", |list| {
                pruned.failed.iter().for_each(|(id, error)| list.object(|out| write_failed(out, id, error)));
            });
    })
}

fn write_failed(out: &mut ObjectWriter<'_>, session: &str, error: &Error) {
    out.text("session", session).text("code", error.code.as_str()).text("message", &error.message);
}

/// Writes a session that was found, as `SearchHit` has it.
pub fn write_hit(out: &mut ObjectWriter<'_>, hit: &SearchHit) {
    out.object("session", |out| write_summary(out, &hit.head.id, &hit.head));
    match &hit.title {
        Some(title) => out.object("title", |out| write_excerpt(out, title)),
        None => out.raw("title", "null"),
    };
    out.array("messages", |list| {
        for message in &hit.messages {
            list.object(|out| {
                out.text("messageId", &message.id).text("role", message.role.as_str());
                write_excerpt(out, &message.excerpt);
            });
        }
    });
}

fn write_excerpt(out: &mut ObjectWriter<'_>, excerpt: &Excerpt) {
    let ranges: Vec<String> = excerpt.ranges.iter().map(|(start, end)| format!("[{start},{end}]")).collect();
    out.text("text", &excerpt.text).raw("ranges", &format!("[{}]", ranges.join(",")));
}

/// Writes a session of a list, as `SessionSummary` has it.
pub fn write_summary(out: &mut ObjectWriter<'_>, id: &str, head: &SessionHead) {
    out.text("id", id).text_or_null("channel", head.channel.as_deref()).text_or_null("title", head.title.as_deref());
    out.number("createdAt", head.created_at)
        .number("updatedAt", head.updated_at)
        .number("revision", head.history_revision)
        .number("messageCount", head.message_count())
        .number("unread", head.known_overview().map_or(0, |overview| overview.unread))
        .number("pendingRuns", head.pending_runs().count() as u64)
        .number("pendingApprovals", head.pending_approvals())
        .bool("archived", head.is_archived);
    match head.known_overview().and_then(|overview| overview.preview.as_ref()) {
        Some(preview) => out.object("preview", |out| {
            out.text("role", preview.role()).text("text", &preview.text);
        }),
        None => out.raw("preview", "null"),
    };
    match &head.metadata {
        Some(metadata) => out.json("metadata", metadata.view()),
        None => out.raw("metadata", "null"),
    };
}
