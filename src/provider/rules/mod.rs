//! Validate and repair, one mechanism for both. A dialect's `rules` reads a body into calls, results and the rest, names
//! what its provider refuses, and plans for each such problem the edit that mends it; the common passes pair and place.
//! `validate` gives the problems, `repair` makes the edits: a body without errors has no edits and comes back as it came.

mod blocks;
mod fields;
mod locate;
mod mentions;
mod pair;
mod place;
mod splice;
mod survey;
mod violation;

pub(crate) use blocks::{Block, BlockKind, Speaker, Turn, TurnGrammar, TurnReader, place_blocks, write_turns};
pub(crate) use fields::{Fields, as_quoted, id_of, name_fit, name_valid, names_model, object_text, role_code};
pub(crate) use mentions::Mention;
pub(crate) use pair::{IdRule, Pairing, Pairs, WireCall, WireResult};
pub(crate) use place::{ErrorTemplates, ListItem, ListMessage, ListMessageKind, place_messages, report_pairs};
pub(crate) use splice::{BodyPiece, Edits, quoted};

use super::foreign_format::{ForeignFormat, body_shape, fit_of};
use crate::error::Result;
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::json::{JsonRef, Kind};
use crate::message::Dialect;
pub(crate) use violation::{BodyLocation, Violation};

use crate::provider::registry::codec;
use crate::text::replaced;
use splice::Span;
use std::borrow::Cow;
use survey::{Survey, refusal};

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

/// What is wrong with a request's body. No finding of severity error means that the provider accepts the sequence. Of a body in
/// another shape as a whole, `unknown_shape` is all that is reported.
#[must_use]
pub fn validate(body: &[u8], dialect: Dialect) -> Report {
    let mut report = round(body, dialect, &RepairOptions::default()).report;
    for finding in &mut report {
        finding.action = None;
    }
    report
}

/// The nearest valid body, with a report of what was wrong and what was done. A body without errors comes back byte for
/// byte, and so does text that is no JSON. A JSON value that is no object becomes one with an empty list; an empty list
/// is a warning only, for nothing can mend it.
///
/// # Errors
/// `invalid_input` for a body of another shape: its items are those of another dialect or SDK, or none of any, or a call's
/// result stands in it in another shape.
pub fn repair(body: &[u8], dialect: Dialect, options: &RepairOptions) -> Result<(Vec<u8>, Report)> {
    let first = round(body, dialect, options);
    if let Some(shape) = first.refused {
        return Err(refusal(&first.report, shape));
    }
    let unknown = first.unknown;
    let (text, report) = settle(body, first, dialect, options);
    if unknown && is_empty(&text, dialect) {
        return Err(refusal(&report, ForeignFormat::Unknown));
    }
    Ok((text, report))
}

/// As [`repair`], and never refused: what cannot be read is left out. For bodies that were rendered here.
#[must_use]
pub(crate) fn repair_rendered(body: &[u8], dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    settle(body, round(body, dialect, options), dialect, options)
}

/// Repeats the rounds until one makes no edit. One mends a body; the others are a guard, so that a rule whose edit wakes
/// another rule still ends valid.
fn settle(body: &[u8], first: Round, dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    let mut report = first.report;
    let Some(mut text) = first.text else { return (body.to_vec(), report) };
    for _ in 0..GUARD {
        let more = round(text.as_bytes(), dialect, options);
        let Some(again) = more.text else { break };
        for finding in more.report {
            if finding.severity == Severity::Error {
                report.push(finding.without_path());
            }
        }
        text = again;
    }
    (text.into_bytes(), report)
}

const GUARD: usize = 4;

/// Whether a body's list holds nothing.
fn is_empty(body: &[u8], dialect: Dialect) -> bool {
    let body = std::str::from_utf8(body).ok().and_then(|text| JsonRef::parse(text).ok()).unwrap_or_default();
    body.get(codec(dialect).list()).is_some_and(|list| list.kind() == Kind::Array && list.items().next().is_none())
}

/// The edits and findings of a body.
struct Round {
    /// The body with its edits made, if there are any.
    text: Option<String>,
    report: Report,
    /// The shape for which `repair` refuses the body.
    refused: Option<ForeignFormat>,
    /// Items that are none of the dialect's were left out.
    unknown: bool,
}

fn malformed(message: String) -> Round {
    let report = vec![Finding::error(FindingCode::Malformed, message).at("").with_action(Action::Kept)];
    Round { text: None, report, refused: None, unknown: false }
}

/// Reads a body and makes the edits that its rules plan. Results that lack the mark of one are marked first.
fn round(body: &[u8], dialect: Dialect, options: &RepairOptions) -> Round {
    match reading(body, dialect, options, true) {
        Reading::Done(round) => round,
        Reading::Adopted(text, mut report) => match reading(text.as_bytes(), dialect, options, false) {
            Reading::Done(round) => {
                report.extend(round.report);
                Round { text: round.text.or(Some(text)), report, ..round }
            }
            Reading::Adopted(text, report) => Round { text: Some(text), report, refused: None, unknown: false },
        },
    }
}

/// What one reading of a body comes to.
enum Reading {
    Done(Round),
    /// The body is to be read again with these results marked.
    Adopted(String, Report),
}

fn reading(body: &[u8], dialect: Dialect, options: &RepairOptions, adopts: bool) -> Reading {
    let Ok(text) = std::str::from_utf8(body) else {
        return Reading::Done(malformed("We could not parse the JSON body of your request: it is not UTF-8.".into()));
    };
    let value = match JsonRef::parse(text) {
        Ok(value) => value,
        Err(error) => {
            return Reading::Done(malformed(format!(
                "We could not parse the JSON body of your request: it stops being JSON at byte {}.",
                error.at
            )));
        }
    };
    let codec = codec(dialect);
    let list = codec.list();
    let mut plan = Plan {
        edits: Edits::new(text),
        report: Report::new(),
        places: Vec::new(),
        options,
        at: 0,
        body: Fields::of(value),
        list: JsonRef::default(),
        adopts,
        adopted: Vec::new(),
        read: Vec::new(),
        survey: Survey::new(codec),
    };
    if let Some(items) = plan.list(list) {
        plan.list = items;
        codec.plan_repairs(&mut plan, items);
    }
    let refused = plan.refused();
    if refused.is_none() && !plan.adopted.is_empty() {
        let (text, report) = plan.with_adopted();
        return Reading::Adopted(text, report);
    }
    plan.locate();
    let Plan { edits, mut report, survey, .. } = plan;
    debug_assert_eq!(
        edits.is_empty(),
        report.iter().all(|f| f.severity != Severity::Error),
        "edits without an error, or an error without edits: {report:?}"
    );
    let mut mended = if edits.is_empty() { None } else { Some(edits.apply()) };
    // One item may stand in place of the list if a list of it would be accepted.
    if codec.takes_single_item()
        && refused.is_none()
        && value.get(list).is_some_and(JsonRef::is_object)
        && mended.as_ref().is_some_and(|text| round(text.as_bytes(), dialect, options).text.is_none())
    {
        mended = None;
        for finding in &mut report {
            finding.severity = Severity::Warning;
            finding.action = Some(Action::Kept);
        }
    }
    Reading::Done(Round { text: mended, report, refused, unknown: survey.unknown })
}

const NO_LIST: &str = "Invalid type for '{}': expected an array of objects.";

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
    /// The dialect's list.
    list: JsonRef<'a>,
    /// Whether results are looked for that lack the mark of one, and those found: an object, and the member that marks it.
    adopts: bool,
    adopted: Vec<(JsonRef<'a>, &'static str, &'static str)>,
    /// Values that are neither calls nor results, and may hold the id of one.
    read: Vec<Span>,
    survey: Survey<'a>,
}

impl<'a> Plan<'a, '_> {
    /// Reports a violation.
    pub fn report(&mut self, violation: Violation<'a>) {
        let Violation { severity, code, sentence, quoted, location, call_id, action } = violation;
        let sentence = match sentence {
            Cow::Owned(sentence) => sentence,
            Cow::Borrowed(template) => self.fill(template, &quoted),
        };
        let mut finding = Finding::new(severity, code, sentence);
        finding.call_id = call_id;
        finding.action = action;
        self.report.push(finding);
        self.places.push((self.edits.span(location.value).start, location.member));
    }

    /// Reports a violation of a member, and gives the member another value.
    pub fn rewrite(&mut self, violation: Violation<'a>, value: String) {
        let BodyLocation { value: object, member } = violation.location;
        self.report(violation.rewritten());
        self.edits.set(object, member, value);
    }

    /// Keeps a value that holds the id of neither a call nor a result here, though it may read the same.
    pub fn pass(&mut self, value: JsonRef<'a>) {
        self.read.push(self.edits.span(value));
    }

    /// A sentence with the item's number for `{at}` and `given` for `{}`.
    fn fill(&self, sentence: &str, given: &str) -> String {
        replaced(&replaced(sentence, "{at}", &self.at.to_string()), "{}", given)
    }

    /// A value as a text of a new object, which `open` begins.
    pub fn as_text(&self, open: &str, value: JsonRef<'a>) -> BodyPiece {
        let token =
            if value.kind() == Kind::String { self.edits.source(value) } else { BodyPiece::New(as_quoted(value)) };
        BodyPiece::wrapped(open, vec![token], "}")
    }

    /// The other shape of a value that stands for a whole list.
    fn shape_of(&self, item: JsonRef<'a>) -> Option<ForeignFormat> {
        item.entries().next()?;
        if self.survey.named.around_parts(item).is_some() {
            return None;
        }
        fit_of(self.survey.named, &Fields::of(item)).foreign
    }

    /// The conversation's list, or an edit that makes one: a bare list is wrapped, anything else gets an empty one.
    fn list(&mut self, name: &'static str) -> Option<JsonRef<'a>> {
        let value = self.body.object;
        let found = self.body.get(name);
        let (list, member) = match (value.kind(), found.map(JsonRef::kind)) {
            (Kind::Object, Some(Kind::Array)) => match found.and_then(|list| self.survey.named.around_parts(list)) {
                Some((open, close)) => {
                    self.report(
                        Violation::error(FindingCode::Malformed, NO_LIST)
                            .at_member(value, name)
                            .quoting(name)
                            .rewritten(),
                    );
                    self.edits.wrap(found.unwrap_or_default(), open, close);
                    (None, name)
                }
                None => (found, name),
            },
            (Kind::Object, Some(Kind::String)) if self.survey.named.takes_text_list() => (None, name),
            (Kind::Object, kind) => {
                if let Some(shape) = found.filter(|one| one.is_object()).and_then(|one| self.shape_of(one)) {
                    self.refuse_body(shape);
                } else if let Some(shape) = body_shape(self.survey.named, &self.body) {
                    self.refuse_body(shape);
                }
                match found {
                    // One message where a list of them is due; a dialect's own rules mend a bare text in it.
                    Some(one) if matches!(kind, Some(Kind::Object | Kind::String)) => {
                        let piece = BodyPiece::wrapped("[", vec![self.edits.source(one)], "]");
                        self.edits.replace(one, piece);
                    }
                    _ => self.edits.set(value, name, "[]".into()),
                }
                let sentence = if found.is_some() { NO_LIST } else { "Missing required parameter: '{}'." };
                self.report(
                    Violation::error(FindingCode::Malformed, sentence).at_member(value, name).quoting(name).rewritten(),
                );
                (None, name)
            }
            (Kind::Array, _) => {
                self.edits.wrap(value, &format!("{{\"{name}\":"), "}");
                let sentence = "Invalid body: expected a JSON object with '{}', but got an array.";
                self.report(Violation::error(FindingCode::Malformed, sentence).at(value).quoting(name).rewritten());
                (Some(value), "")
            }
            _ => {
                self.edits.replace(value, BodyPiece::New(format!("{{\"{name}\":[]}}")));
                let sentence = "Invalid body: expected a JSON object with '{}'.";
                self.report(Violation::error(FindingCode::Malformed, sentence).at(value).quoting(name).rewritten());
                (None, "")
            }
        };
        let silent = found.is_some_and(|found| found.is_text(""));
        if silent || list.is_some_and(|list| list.items().next().is_none()) {
            let sentence = "[] is too short - '{}': at least one message is required.";
            self.report(Violation::warning(FindingCode::Malformed, sentence).at_member(value, member).quoting(name));
        }
        list
    }
}
