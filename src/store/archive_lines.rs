//! An archive as JSON Lines that a person can read (R37).
//!
//! ```text
//! {"line":1,"rethread":"session","version":1,"id":…,"title":…,…,"owner":{…},…,"head":…,"crc":…}
//! {"line":2,"table":"log","key":0,"at":…,"messages":[…],"toolInvocations":[…],"results":[…],"value":…,"crc":…}
//! {"line":3,"table":"tool_invocations","key":0,"index":{…},"value":…,"crc":…}
//! {"line":4,"table":"runs","key":0,"run":…,"entry":{"type":"tool_started",…},"value":…,"crc":…}
//! {"line":5,"end":true,"crc":…}
//! ```
//!
//! `head` and `value` are the stored bytes in base64. An import reads these, the session's `revision`, and where a
//! record belongs: `table`, keys and `index`. The other members say for people what is in the bytes. `crc` is the
//! CRC-32 of the `crc` of the line above and of this line up to its own, so that a line that was edited, or is of
//! another export, is found and named.

use super::archive::SessionArchive;
use super::branch_directory::BranchRow;
use super::journal::{JournalMark, split_record};
use super::record::{RecordKind, crc32, open_record, seal_record};
use super::segment::split_segment;
use super::{AuditIndex, Record, Table};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{
    Annotation, History, HistoryEntry, LogRecord, MessageFormat, MessageWriter, NO_ALTERNATIVES, write_invocation,
    write_result_entry,
};
use crate::id::Seed;
use crate::json::{JsonRef, ObjectWriter};
use crate::session_head::StoredOwner;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

/// The version of the format. A reader rejects any other.
const VERSION: u64 = 1;

/// The value of `rethread` in the first line.
const SESSION: &str = "session";

/// Precedes the checksum at the end of a line.
const CRC_KEY: &str = ",\"crc\":\"";

/// The functions that describe for people those stored values that the store does not interpret.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveDescriptions {
    /// Writes the owner of the conversation as the member `owner`.
    pub owner: fn(&mut ObjectWriter<'_>, &StoredOwner),
    /// Writes a sealed journal entry of the session with this id as the member `entry`.
    pub journal_entry: fn(&mut ObjectWriter<'_>, &Bytes, &str),
}

impl SessionArchive {
    /// Writes the archive as JSON Lines.
    #[must_use]
    pub fn to_json_lines(&self, descriptions: &ArchiveDescriptions) -> String {
        let mut lines = Lines { descriptions, text: String::new(), count: 0, crc: String::new() };
        // Segments are written as the records in them.
        let mut head = self.head.clone();
        head.merged_until = 0;
        lines.push(|out| {
            out.text("rethread", SESSION)
                .number("version", VERSION)
                .text("id", &head.id)
                .text_or_null("title", head.title.as_deref())
                .text_or_null("channel", head.channel.as_deref())
                .number("createdAt", head.created_at)
                .number("updatedAt", head.updated_at)
                .number("revision", self.revision);
            (descriptions.owner)(out, &head.owner);
            if let Some(metadata) = &head.metadata {
                out.json("metadata", metadata.view());
            }
            out.object("state", |out| {
                for (key, value) in &head.state {
                    out.json(key, value.view());
                }
            })
            .array("runs", |list| head.runs.iter().for_each(|run| list.text(&run.id)))
            .text("head", &BASE64.encode(seal_record(RecordKind::Head, &head)));
        });
        for record in &self.records {
            match split_segment(record) {
                Ok(split) if record.last_key.is_some() => {
                    for (key, value) in split.records {
                        lines.push_record(&Record { key, last_key: None, value, ..record.clone() }, &head.id);
                    }
                }
                // A damaged segment stays as it is.
                Ok(_) | Err(_) => lines.push_record(record, &head.id),
            }
        }
        lines.push(|out| {
            out.bool("end", true);
        });
        lines.text
    }

    /// Reads what [`to_json_lines`](Self::to_json_lines) wrote.
    ///
    /// # Errors `invalid_input` for a text that is no export, that ends too early, or has a line that was changed, with
    /// the line's number in `details.line`; `unsupported_version` for another version of the format.
    pub fn from_json_lines(text: &str) -> Result<Self> {
        let mut archive: Option<Self> = None;
        let mut has_ended = false;
        let mut previous_crc = String::new();
        for (at, line) in text.lines().enumerate() {
            let number = at as u64 + 1;
            if line.trim().is_empty() && has_ended {
                continue;
            }
            let parsed = JsonRef::parse(line).map_err(|_| at_line(number, "is not JSON"))?;
            match &mut archive {
                None => {
                    archive = Some(read_first_line(parsed)?);
                    previous_crc = check_line(line, parsed, 1, &previous_crc)?;
                }
                Some(_) if has_ended => return Err(at_line(number, "follows the end of the session")),
                Some(archive) => {
                    previous_crc = check_line(line, parsed, number, &previous_crc)?;
                    if parsed.get("end").is_some() {
                        has_ended = true;
                    } else {
                        archive
                            .records
                            .push(read_record(parsed).ok_or_else(|| at_line(number, "is no stored record"))?);
                    }
                }
            }
        }
        let count = text.lines().count() as u64;
        archive.filter(|_| has_ended).ok_or_else(|| at_line(count.max(1), "is the last one, but not the session's end"))
    }
}

/// The lines that were written.
struct Lines<'d> {
    descriptions: &'d ArchiveDescriptions,
    text: String,
    count: u64,
    /// The checksum of the last line.
    crc: String,
}

impl Lines<'_> {
    fn push(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.count += 1;
        let start = self.text.len();
        let mut out = ObjectWriter::new(&mut self.text);
        out.number("line", self.count);
        fill(&mut out);
        out.end();
        self.text.pop();
        let line = self.text.get(start..).unwrap_or_default();
        self.crc = checksum(&self.crc, line);
        self.text.push_str(&format!("{CRC_KEY}{}\"}}\n", self.crc));
    }

    fn push_record(&mut self, record: &Record, session: &str) {
        let descriptions = self.descriptions;
        self.push(|out| {
            out.text("table", record.table.as_str()).number("key", record.key);
            if let Some(last) = record.last_key {
                out.number("lastKey", last);
            }
            if let Some(index) = &record.index {
                out.object("index", |out| {
                    out.text("tool", &index.tool)
                        .text("status", &index.status)
                        .text_or_null("channel", index.channel.as_deref())
                        .number("at", index.at);
                });
            }
            if record.table == Table::Runs {
                describe_journal_record(out, &record.value, (descriptions, session));
            }
            if record.table == Table::Log
                && let Ok(log) = open_record::<LogRecord>(RecordKind::Log, &record.value)
            {
                describe_append(out, &log, session);
            }
            if record.table == Table::Log
                && let Ok(row) = open_record::<BranchRow>(RecordKind::Branch, &record.value)
            {
                out.object("branch", |out| {
                    out.text("name", &row.name())
                        .number("createdAt", row.created_at)
                        .text_or_null("forkedAfter", row.forked_after.as_deref());
                });
            }
            out.text("value", &BASE64.encode(&record.value));
        });
    }
}

/// Writes the run and the entry of a journal record.
fn describe_journal_record(
    out: &mut ObjectWriter<'_>,
    record: &Bytes,
    (descriptions, session): (&ArchiveDescriptions, &str),
) {
    if let Ok(mark) = JournalMark::open(record) {
        out.text("run", &mark.run);
    }
    match split_record(record) {
        Some((_, entry)) if entry.is_empty() => {
            out.object("entry", |out| {
                out.text("type", "taken_over");
            });
        }
        Some((_, entry)) => (descriptions.journal_entry)(out, &entry, session),
        None => {
            out.raw("entry", "null");
        }
    }
}

/// Writes what an append has in it.
fn describe_append(out: &mut ObjectWriter<'_>, append: &LogRecord, session: &str) {
    let calls = History::new(Seed(0));
    let writer =
        MessageWriter { history: &calls, session, format: MessageFormat::Stored, alternatives: &NO_ALTERNATIVES };
    out.number("at", append.at);
    out.array("messages", |list| {
        for entry in &append.entries {
            if let HistoryEntry::Message(message) = entry {
                list.object(|out| writer.write(out, message, None));
            }
        }
    });
    out.array("toolInvocations", |list| {
        for entry in &append.entries {
            if let HistoryEntry::Invocation(call) = entry {
                list.object(|out| write_invocation(out, call, session, true));
            }
        }
    });
    if !append.summaries.is_empty() {
        out.array("summaries", |list| {
            for summary in &append.summaries {
                list.object(|out| {
                    out.text("until", &summary.coverage.last_message_id);
                    out.object("message", |out| {
                        writer.write(out, &summary.message, None);
                    });
                });
            }
        });
    }
    if !append.annotations.is_empty() {
        out.array("annotations", |list| {
            for Annotation { message, metadata } in &append.annotations {
                list.object(|out| {
                    out.text("messageId", message);
                    match metadata {
                        Some(metadata) => out.json("metadata", metadata.view()),
                        None => out.raw("metadata", "null"),
                    };
                });
            }
        });
    }
    out.array("results", |list| {
        for entry in &append.entries {
            if let HistoryEntry::Result(result) = entry {
                list.object(|out| write_result_entry(out, result));
            }
        }
    });
}

/// Reads the session's head from the first line.
fn read_first_line(parsed: JsonRef<'_>) -> Result<SessionArchive> {
    if !parsed.has_text("rethread", SESSION) {
        return Err(at_line(1, "is not the beginning of an exported session"));
    }
    let version = parsed.get("version").and_then(JsonRef::as_u64);
    let version = version.ok_or_else(|| at_line(1, "has no format version"))?;
    if version != VERSION {
        let sentence = format!(
            "line 1 of the export says format version {version}, and this build reads version {VERSION}; update rethread"
        );
        return Err(Error::new(ErrorCode::UnsupportedVersion, sentence).with(|details| {
            details.number("line", 1);
        }));
    }
    let value = read_bytes(parsed, "head").ok_or_else(|| at_line(1, "has no head"))?;
    let revision = parsed.get("revision").and_then(JsonRef::as_u64);
    let revision = revision.ok_or_else(|| at_line(1, "has no revision"))?;
    let head = open_record(RecordKind::Head, &value).map_err(|error| match error.code {
        ErrorCode::CorruptRecord => at_line(1, "has a damaged head"),
        _ => error,
    })?;
    Ok(SessionArchive { revision, head, records: Vec::new() })
}

/// Checks that a line is the one with this number, as it was written after the line with the checksum `previous_crc`.
/// Returns its checksum.
fn check_line(line: &str, parsed: JsonRef<'_>, number: u64, previous_crc: &str) -> Result<String> {
    if parsed.get("line").and_then(JsonRef::as_u64) != Some(number) {
        return Err(at_line(number, "is in the wrong place: lines were removed, added or moved"));
    }
    let (text, sum) = line.rsplit_once(CRC_KEY).ok_or_else(|| at_line(number, "has no checksum"))?;
    let crc = checksum(previous_crc, text);
    if sum.strip_suffix("\"}") != Some(&crc) {
        return Err(at_line(number, "was changed after the export, or is of another export"));
    }
    Ok(crc)
}

/// Returns the checksum of a line after the line with the checksum `previous_crc`.
fn checksum(previous_crc: &str, line: &str) -> String {
    format!("{:08x}", crc32([previous_crc.as_bytes(), line.as_bytes()]))
}

fn read_record(line: JsonRef<'_>) -> Option<Record> {
    let number = |object: JsonRef<'_>, key: &str| object.get(key).and_then(JsonRef::as_u64);
    let index = line.get("index").map(|index| {
        Some(AuditIndex {
            tool: index.text("tool")?.into_owned(),
            status: index.text("status")?.into_owned(),
            channel: index.text("channel").map(Into::into),
            at: number(index, "at")?,
        })
    });
    let index = match index {
        Some(read) => Some(read?),
        None => None,
    };
    Some(Record {
        table: Table::from_name(&line.text("table")?)?,
        key: number(line, "key")?,
        last_key: number(line, "lastKey"),
        index,
        value: read_bytes(line, "value")?,
    })
}

fn read_bytes(line: JsonRef<'_>, key: &str) -> Option<Bytes> {
    let text = line.text(key)?;
    BASE64.decode(text.as_bytes()).ok().map(Into::into)
}

/// Creates the error of a line.
fn at_line(number: u64, problem: &str) -> Error {
    let sentence =
        format!("line {number} of the export {problem}; nothing was stored. Import the text as it was exported");
    Error::invalid(sentence).with(|details| {
        details.number("line", number);
    })
}
