//! A backup: all sessions of a store as one text, which is written and read in parts (R59).
//!
//! ```text
//! {"rethread":"backup","version":1,"after":null}
//! {"rethread":"backup_session","number":1,"id":"chat-1"}
//! …the lines of the session, see archive_lines.rs, which have checksums…
//! {"rethread":"backup_session","number":2,"id":"chat-2","error":{"code":…,"message":…}}
//! {"rethread":"backup_end","sessions":2}
//! ```
//!
//! A backup that was cut off is continued by one that begins `after` a session: its text follows the incomplete one.
//! The sessions of each part are numbered, so that lines which are missing or damaged cost those sessions that they
//! belong to, and these are named.

use crate::error::{Error, ErrorCode, Result};
use crate::finding::Report;
use crate::json::{JsonRef, ObjectWriter};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The version of the format. A reader rejects any other.
const VERSION: u64 = 1;

const BEGIN: &str = "backup";
const SESSION: &str = "backup_session";
const END: &str = "backup_end";

/// Writes the lines around the sessions.
#[derive(Debug, Default)]
pub struct BackupWriter {
    sessions: u64,
}

impl BackupWriter {
    /// The first line. Of a part that continues another, it follows whatever that one ended with.
    #[must_use]
    pub fn begin(after: Option<&str>) -> String {
        let text = line(|out| {
            out.text("rethread", BEGIN).number("version", VERSION).text_or_null("after", after);
        });
        if after.is_some() { format!("\n{text}") } else { text }
    }

    /// A session: its exported lines with what is damaged in it, or why it cannot be exported.
    pub fn session(&mut self, id: &str, exported: &Result<(String, Report)>) -> String {
        self.sessions += 1;
        let mut text = line(|out| {
            out.text("rethread", SESSION).number("number", self.sessions).text("id", id);
            match exported {
                Ok((_, damage)) if damage.is_empty() => {}
                Ok((_, damage)) => {
                    let sentences: Vec<_> = damage.iter().map(|finding| &*finding.message).collect();
                    out.text("damage", &sentences.join("; "));
                }
                Err(error) => {
                    out.object("error", |out| {
                        out.text("code", error.code.as_str()).text("message", &error.message);
                    });
                }
            }
        });
        if let Ok((lines, _)) = exported {
            text.push_str(lines);
        }
        text
    }

    /// The last line.
    #[must_use]
    pub fn end(&self) -> String {
        line(|out| {
            out.text("rethread", END).number("sessions", self.sessions);
        })
    }
}

fn line(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut text = ObjectWriter::build(fill).as_str().to_owned();
    text.push('\n');
    text
}

/// What a part of a backup contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupItem {
    /// A session.
    Session {
        /// Its id.
        id: String,
        /// Its exported lines.
        lines: String,
        /// What could not be read when it was exported, in a sentence.
        damage: Option<String>,
    },
    /// Sessions that are not there. The sentence names them, and says why.
    Missing(String),
}

/// A session whose lines are read.
#[derive(Debug)]
struct OpenSession {
    id: String,
    lines: String,
    damage: Option<String>,
}

/// Reads a backup from parts of its text, wherever they end.
#[derive(Debug, Default)]
pub struct BackupReader {
    /// The beginning of a line whose end has not come yet.
    rest: String,
    /// The number of lines that were read.
    lines: u64,
    has_begun: bool,
    has_ended: bool,
    /// The number of the last session in this part of the backup.
    number: u64,
    /// The session whose lines are read.
    open: Option<OpenSession>,
    /// The ids of all sessions that are whole, or have an error in their place.
    read: BTreeSet<String>,
    /// The first of the lines read last that belong to no session.
    stray: Option<u64>,
}

impl BackupReader {
    /// Reads the next part of the text, and adds the sessions that are complete now to `items`.
    ///
    /// # Errors
    /// `invalid_input` if the text is no backup; `unsupported_version` for another version of the format. What was read
    /// before is among the items.
    pub fn push(&mut self, text: &str, items: &mut Vec<BackupItem>) -> Result<()> {
        let mut text = text;
        while let Some((line, rest)) = text.split_once('\n') {
            text = rest;
            if self.rest.is_empty() {
                self.read_line(line, items)?;
            } else {
                let mut begun = std::mem::take(&mut self.rest);
                begun.push_str(line);
                self.read_line(&begun, items)?;
            }
        }
        self.rest.push_str(text);
        Ok(())
    }

    /// Reads the end of the text, and adds what is in it and what is missing to `items`.
    ///
    /// # Errors
    /// `invalid_input` if the backup ends before its last line. What was read is as good as that of a whole backup.
    pub fn end(mut self, items: &mut Vec<BackupItem>) -> Result<()> {
        let last = std::mem::take(&mut self.rest);
        self.read_line(&last, items)?;
        if !self.has_begun {
            return Err(not_a_backup());
        }
        if self.has_ended {
            self.drop_incomplete(items);
            return Ok(());
        }
        Err(Error::invalid(
            "the backup ends before its last line: it was cut off, and later sessions are missing. The sessions before are restored; continue the backup with `backup({ after })`, or restore the whole one, which skips what is restored",
        ))
    }

    fn read_line(&mut self, line: &str, items: &mut Vec<BackupItem>) -> Result<()> {
        self.lines += 1;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        let parsed = JsonRef::parse(line).ok();
        let kind = parsed.and_then(|parsed| parsed.text("rethread"));
        match (kind.as_deref(), parsed) {
            (Some(BEGIN), Some(parsed)) => self.begin(parsed, items)?,
            _ if !self.has_begun => return Err(not_a_backup()),
            (Some(SESSION), Some(parsed)) => self.begin_session(parsed, items),
            (Some(END), Some(parsed)) => {
                self.drop_incomplete(items);
                let sessions = parsed.get("sessions").and_then(JsonRef::as_u64);
                self.expect_number(sessions.map(|sessions| sessions.saturating_add(1)), items);
                self.has_ended = true;
            }
            (_, parsed) => self.read_session_line(line, parsed, items),
        }
        Ok(())
    }

    fn begin(&mut self, parsed: JsonRef<'_>, items: &mut Vec<BackupItem>) -> Result<()> {
        let version = parsed.get("version").and_then(JsonRef::as_u64);
        if version != Some(VERSION) {
            let version = version.map_or_else(|| "of no number".into(), |version| version.to_string());
            return Err(Error::new(
                ErrorCode::UnsupportedVersion,
                format!(
                    "the backup has format version {version}, and this build reads version {VERSION}; update rethread"
                ),
            ));
        }
        match parsed.text("after") {
            // It has the session again that was cut off.
            Some(after) if self.read.contains(&*after) => {}
            Some(after) => {
                self.drop_incomplete(items);
                items.push(BackupItem::Missing(format!(
                    "the backup goes on after session \"{after}\" in line {}, which is not whole before that line: it and others are missing",
                    self.lines
                )));
            }
            None => self.drop_incomplete(items),
        }
        let read = std::mem::take(&mut self.read);
        *self = Self { has_begun: true, lines: self.lines, read, ..Self::default() };
        Ok(())
    }

    fn begin_session(&mut self, parsed: JsonRef<'_>, items: &mut Vec<BackupItem>) {
        self.drop_incomplete(items);
        let id = parsed.text("id").unwrap_or_default().into_owned();
        self.expect_number(parsed.get("number").and_then(JsonRef::as_u64), items);
        self.has_ended = false;
        if let Some(error) = parsed.get("error") {
            let reason = error.text("message").unwrap_or_default();
            items.push(BackupItem::Missing(format!(
                "session \"{id}\" is not in the backup, since it could not be read when that was made: {reason}"
            )));
            self.read.insert(id);
        } else {
            let damage = parsed.text("damage").map(Cow::into_owned);
            self.open = Some(OpenSession { id, lines: String::new(), damage });
        }
    }

    /// Notes that the next session of the part has this number.
    fn expect_number(&mut self, number: Option<u64>, items: &mut Vec<BackupItem>) {
        let first = self.number.saturating_add(1);
        let number = number.unwrap_or(first);
        if number > first {
            let last = number - 1;
            let which = if first == last { format!("session {first}") } else { format!("sessions {first} to {last}") };
            items.push(BackupItem::Missing(format!(
                "{which} of the backup is missing before line {}: lines were removed or damaged",
                self.lines
            )));
        }
        self.number = number.max(self.number);
    }

    fn read_session_line(&mut self, line: &str, parsed: Option<JsonRef<'_>>, items: &mut Vec<BackupItem>) {
        let Some(OpenSession { lines, .. }) = &mut self.open else {
            self.stray.get_or_insert(self.lines);
            return;
        };
        lines.push_str(line);
        lines.push('\n');
        if parsed.is_some_and(|parsed| parsed.get("end").is_some())
            && let Some(OpenSession { id, lines, damage }) = self.open.take()
        {
            self.read.insert(id.clone());
            items.push(BackupItem::Session { id, lines, damage });
        }
    }

    /// Reports a session that ends in the middle, and lines outside of sessions.
    fn drop_incomplete(&mut self, items: &mut Vec<BackupItem>) {
        let at = self.lines;
        if let Some(OpenSession { id, .. }) = self.open.take() {
            items.push(BackupItem::Missing(format!("session \"{id}\" ends before its last line, at line {at}")));
        }
        if let Some(first) = self.stray.take() {
            items.push(BackupItem::Missing(format!("the backup's lines from {first} to {at} belong to no session")));
        }
    }
}

fn not_a_backup() -> Error {
    Error::invalid("the text does not begin as a backup; pass what `backup()` returned. Nothing was stored")
}
