//! Validate and repair, one mechanism for both. A dialect's `rules` reads a body into calls, results and the rest, names
//! what its provider refuses, and plans for each such problem the edit that mends it; the common passes pair and place.
//! `validate` gives the problems, `repair` makes the edits: a body without errors has no edits and comes back as it came.

mod blocks;
mod fields;
mod locate;
mod pair;
mod place;
mod splice;

pub(crate) use blocks::{Block, BlockKind, Reader, Shape, Speaker, Turn, place_blocks, write_turns};
pub(crate) use fields::{Fields, as_quoted, id_of, name_fit, name_valid, names_model, object_text};
pub(crate) use pair::{Call, Fate, IdRule, Pairs};
pub(crate) use place::{Message, MessageKind, Slot, Words, place_messages, report_pairs};
pub(crate) use splice::{Edits, Piece, quoted};

use crate::finding::{Action, Finding, Report, Severity};
use crate::json::{JsonRef, Kind};
use crate::message::Dialect;
use crate::text::replaced;

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
        for finding in more {
            if finding.severity == Severity::Error {
                report.push(finding.nowhere());
            }
        }
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
        places: Vec::new(),
        options,
        at: 0,
        body: Fields::of(value),
    };
    if let Some(items) = plan.list(list) {
        match dialect {
            Dialect::OpenAiChat => super::openai_chat::rules::plan(&mut plan, items),
            Dialect::Anthropic => super::anthropic::rules::plan(&mut plan, items),
            Dialect::Mistral => super::mistral::rules::plan(&mut plan, items),
            Dialect::Gemini => super::gemini::rules::plan(&mut plan, items),
            Dialect::OpenAiResponses => super::openai_responses::rules::plan(&mut plan, items),
        }
    }
    plan.locate();
    let Plan { edits, mut report, .. } = plan;
    debug_assert_eq!(
        edits.is_empty(),
        report.iter().all(|f| f.severity != Severity::Error),
        "edits without an error, or an error without edits: {report:?}"
    );
    let mut mended = if edits.is_empty() { None } else { Some(edits.apply()) };
    // One content may stand without its list, as in Google's own examples, if a list of it would be taken.
    if dialect == Dialect::Gemini
        && value.get(list).is_some_and(JsonRef::is_object)
        && mended.as_ref().is_some_and(|text| round(text.as_bytes(), dialect, options).0.is_none())
    {
        mended = None;
        for finding in &mut report {
            finding.severity = Severity::Warning;
            finding.action = Some(Action::Kept);
        }
    }
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
    report: Report,
    /// By finding: where the value that it is about begins, and the member of it.
    places: Vec<(usize, &'static str)>,
    pub options: &'o RepairOptions,
    /// The item of the list that is looked at, `{at}` in a sentence.
    pub at: usize,
    /// The members of the body.
    pub body: Fields<'a>,
}

impl<'a> Plan<'a, '_> {
    /// Takes a finding about a value, or about a member of it, which need not be there.
    pub fn note(&mut self, finding: Finding, about: JsonRef<'a>, member: &'static str) {
        self.report.push(finding);
        self.places.push((self.edits.span(about).start, member));
    }

    /// A sentence with the item's number for `{at}` and `given` for `{}`.
    fn fill(&self, sentence: &str, given: &str) -> String {
        replaced(&replaced(sentence, "{at}", &self.at.to_string()), "{}", given)
    }

    pub fn error(
        &mut self,
        code: &'static str,
        about: JsonRef<'a>,
        member: &'static str,
        action: Action,
        sentence: &'static str,
    ) {
        self.error_with(code, about, member, action, sentence, "");
    }

    pub fn error_with(
        &mut self,
        code: &'static str,
        about: JsonRef<'a>,
        member: &'static str,
        action: Action,
        sentence: &'static str,
        given: &str,
    ) {
        self.note(Finding::error(code, self.fill(sentence, given)).did(action), about, member);
    }

    pub fn call_error(
        &mut self,
        code: &'static str,
        (about, member): (JsonRef<'a>, &'static str),
        call: &str,
        action: Action,
        sentence: &'static str,
    ) {
        self.note(Finding::error(code, self.fill(sentence, call)).of_call(call).did(action), about, member);
    }

    pub fn warn(
        &mut self,
        code: &'static str,
        about: JsonRef<'a>,
        member: &'static str,
        sentence: &'static str,
        given: &str,
    ) {
        self.note(Finding::warning(code, self.fill(sentence, given)).did(Action::Kept), about, member);
    }

    /// An error that another value of a member mends.
    pub fn rewrite(
        &mut self,
        code: &'static str,
        object: JsonRef<'a>,
        key: &'static str,
        value: String,
        sentence: &'static str,
        given: &str,
    ) {
        self.error_with(code, object, key, Action::Rewritten, sentence, given);
        self.edits.set(object, key, value);
    }

    /// A value as a text of a new object, which `open` begins.
    pub fn as_text(&self, open: &str, value: JsonRef<'a>) -> Piece {
        let token = if value.kind() == Kind::String { self.edits.source(value) } else { Piece::New(as_quoted(value)) };
        Piece::wrapped(open, vec![token], "}")
    }

    /// The conversation's list, or an edit that makes one: a bare list is wrapped, anything else gets an empty one.
    fn list(&mut self, name: &'static str) -> Option<JsonRef<'a>> {
        let value = self.body.object;
        let found = self.body.get(name);
        let (list, member) = match (value.kind(), found.map(JsonRef::kind)) {
            (Kind::Object, Some(Kind::Array)) => (found, name),
            (Kind::Object, Some(Kind::String)) if name == "input" => (None, name),
            (Kind::Object, kind) => {
                match found {
                    // One message where a list of them is due; a dialect's own rules mend a bare text in it.
                    Some(one) if matches!(kind, Some(Kind::Object | Kind::String)) => {
                        let piece = Piece::wrapped("[", vec![self.edits.source(one)], "]");
                        self.edits.replace(one, piece);
                    }
                    _ => self.edits.set(value, name, "[]".into()),
                }
                let sentence = if found.is_some() {
                    "Invalid type for '{}': expected an array of objects."
                } else {
                    "Missing required parameter: '{}'."
                };
                self.error_with("malformed", value, name, Action::Rewritten, sentence, name);
                (None, name)
            }
            (Kind::Array, _) => {
                self.edits.wrap(value, &format!("{{\"{name}\":"), "}");
                let sentence = "Invalid body: expected a JSON object with '{}', but got an array.";
                self.error_with("malformed", value, "", Action::Rewritten, sentence, name);
                (Some(value), "")
            }
            _ => {
                self.edits.replace(value, Piece::New(format!("{{\"{name}\":[]}}")));
                let sentence = "Invalid body: expected a JSON object with '{}'.";
                self.error_with("malformed", value, "", Action::Rewritten, sentence, name);
                (None, "")
            }
        };
        let silent = found.is_some_and(|found| found.is_text(""));
        if silent || list.is_some_and(|list| list.items().next().is_none()) {
            let sentence = "[] is too short - '{}': at least one message is required.";
            self.warn("malformed", value, member, sentence, name);
        }
        list
    }
}
