//! Validate and repair, one mechanism for both. A dialect's `rules` reads a body into calls, results and the rest, names
//! what its provider refuses, and plans for each such problem the edit that mends it; the common passes pair and place.
//! `validate` gives the problems, `repair` makes the edits: a body without errors has no edits and comes back as it came.

mod blocks;
mod fields;
mod pair;
mod place;
mod splice;

pub(crate) use blocks::{Block, BlockKind, Runs, Shape, Speaker, Turn, place_blocks, write_turns};
pub(crate) use fields::{Fields, as_quoted, id_of, name_fit, name_valid, object_text};
pub(crate) use pair::{Answer, Call, Fate, IdRule, Pairs};
pub(crate) use place::{Message, MessageKind, Words, omit_open, place_messages, report_pairs};
pub(crate) use splice::{Edits, Piece, quoted};

use crate::finding::{Action, Finding, Report, Severity};
use crate::json::{JsonRef, Kind};
use crate::message::Dialect;

/// What becomes of a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// It is closed with a synthetic error result: the evidence that it may have run stays.
    #[default]
    Synthesize,
    /// It is left out.
    Omit,
}

/// The text that closes an open call.
pub const INTERRUPTED: &str = "Interrupted: this call has no recorded result; it may or may not have run.";

/// Choices of [`repair`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// What becomes of a call without a result.
    pub dangling: Dangling,
    /// The text of a synthetic result; none stands for [`INTERRUPTED`].
    pub dangling_text: Option<String>,
}

impl RepairOptions {
    /// The text of a synthetic result. Never empty: an error result without content is refused by some.
    #[must_use]
    pub fn text(&self) -> &str {
        self.dangling_text.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(INTERRUPTED)
    }
}

/// What is wrong with a request's body. No finding of severity error means that the provider accepts the sequence.
#[must_use]
pub fn validate(body: &[u8], dialect: Dialect) -> Report {
    let (_, mut report) = round(body, dialect, &RepairOptions::default());
    for finding in &mut report {
        finding.action = None;
    }
    report
}

/// The nearest valid body, with a report of what was wrong and what was done. A body without errors comes back byte for
/// byte, and so does text that is no JSON. A JSON value that is no object becomes one with an empty list; an empty list
/// is a warning only, for nothing can mend it.
#[must_use]
pub fn repair(body: &[u8], dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    let (mended, mut report) = round(body, dialect, options);
    let Some(mut text) = mended else { return (body.to_vec(), report) };
    // One round mends a body; the others are a guard, so that a rule whose edit wakes another rule still ends valid.
    for _ in 0..GUARD {
        let (again, more) = round(text.as_bytes(), dialect, options);
        let Some(again) = again else { break };
        report.extend(more.into_iter().filter(|f| f.severity == Severity::Error).map(Finding::nowhere));
        text = again;
    }
    (text.into_bytes(), report)
}

const GUARD: usize = 4;

/// One plan, and the body with its edits made, if there are any.
fn round(body: &[u8], dialect: Dialect, options: &RepairOptions) -> (Option<String>, Report) {
    let malformed = |message: String| (None, vec![Finding::error("malformed", message).at("").did(Action::Kept)]);
    let Ok(text) = std::str::from_utf8(body) else {
        return malformed("We could not parse the JSON body of your request: it is not UTF-8.".into());
    };
    let value = match JsonRef::parse(text) {
        Ok(value) => value,
        Err(error) => {
            return malformed(format!(
                "We could not parse the JSON body of your request: it stops being JSON at byte {}.",
                error.at
            ));
        }
    };
    let list = list_name(dialect);
    let mut plan = Plan {
        edits: Edits::new(text),
        report: Report::new(),
        options,
        base: format!("/{list}"),
        body: Fields::of(value),
    };
    let items = plan.list(value, list);
    if let Some(items) = items {
        match dialect {
            Dialect::OpenAiChat => super::openai_chat::rules::plan(&mut plan, value, items),
            Dialect::Anthropic => super::anthropic::rules::plan(&mut plan, value, items),
            Dialect::Mistral => super::mistral::rules::plan(&mut plan, value, items),
            Dialect::Gemini => super::gemini::rules::plan(&mut plan, value, items),
            Dialect::OpenAiResponses => super::openai_responses::rules::plan(&mut plan, value, items),
        }
    }
    let Plan { edits, report, .. } = plan;
    debug_assert_eq!(
        edits.is_empty(),
        report.iter().all(|f| f.severity != Severity::Error),
        "edits without an error, or an error without edits: {report:?}"
    );
    let mended = if edits.is_empty() { None } else { Some(edits.apply()) };
    (mended, report)
}

/// The key that holds a dialect's conversation.
fn list_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiChat | Dialect::Anthropic | Dialect::Mistral => "messages",
        Dialect::Gemini => "contents",
        Dialect::OpenAiResponses => "input",
    }
}

/// What a dialect's rules fill: the problems, and the edits that mend them.
pub(crate) struct Plan<'a, 'o> {
    pub edits: Edits<'a>,
    pub report: Report,
    pub options: &'o RepairOptions,
    /// The pointer of the list.
    pub base: String,
    /// The members of the body.
    pub body: Fields<'a>,
}

impl<'a> Plan<'a, '_> {
    pub fn error(&mut self, code: &'static str, path: impl Into<String>, action: Action, message: impl Into<String>) {
        self.report.push(Finding::error(code, message.into()).at(path).did(action));
    }

    pub fn call_error(
        &mut self,
        code: &'static str,
        path: impl Into<String>,
        call: &str,
        action: Action,
        message: impl Into<String>,
    ) {
        self.report.push(Finding::error(code, message.into()).at(path).of_call(call).did(action));
    }

    pub fn warn(&mut self, code: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.report.push(Finding::warning(code, message.into()).at(path).did(Action::Kept));
    }

    /// The conversation's list, or an edit that makes one: a bare list is wrapped, anything else gets an empty one.
    fn list(&mut self, value: JsonRef<'a>, name: &'static str) -> Option<JsonRef<'a>> {
        let found = self.body.get(name);
        let list = match (value.kind(), found.map(JsonRef::kind)) {
            (Kind::Object, Some(Kind::Array)) => found,
            (Kind::Object, Some(Kind::String)) if name == "input" => None,
            (Kind::Object, _) => {
                let (item, text) =
                    (found.filter(|item| item.is_object()), found.filter(|text| text.kind() == Kind::String));
                match (found, item.or(text)) {
                    // One message where a list of them is due; a dialect's own rules mend a bare text in it.
                    (Some(old), Some(one)) => {
                        let piece = Piece::Wrapped("[".into(), vec![self.edits.source(one)], "]".into());
                        self.edits.replace(old, piece);
                    }
                    (old, _) => self.edits.set(value, old, name, "[]".into()),
                }
                let what = if found.is_some() {
                    format!("Invalid type for '{name}': expected an array of objects.")
                } else {
                    format!("Missing required parameter: '{name}'.")
                };
                self.error("malformed", self.base.clone(), Action::Rewritten, what);
                None
            }
            (Kind::Array, _) => {
                self.edits.wrap(value, format!("{{\"{name}\":"), "}");
                self.base = String::new();
                self.error(
                    "malformed",
                    "",
                    Action::Rewritten,
                    format!("Invalid body: expected a JSON object with '{name}', but got an array."),
                );
                Some(value)
            }
            _ => {
                self.edits.replace(value, Piece::New(format!("{{\"{name}\":[]}}")));
                self.error(
                    "malformed",
                    "",
                    Action::Rewritten,
                    format!("Invalid body: expected a JSON object with '{name}'."),
                );
                None
            }
        };
        if list.is_some_and(|list| list.items().next().is_none()) {
            self.warn(
                "malformed",
                self.base.clone(),
                format!("[] is too short - '{name}': at least one message is required."),
            );
        }
        list
    }
}
