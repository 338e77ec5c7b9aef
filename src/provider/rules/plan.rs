//! The plan of a repair: the violations that the rules report, and the edits that fix them.

use super::fields::{Fields, as_quoted};
use super::item_survey::Survey;
use super::options::RepairOptions;
use super::splice::{BodyPiece, Edits, Span};
use super::violation::{BodyLocation, Violation};
use crate::finding::{Finding, FindingCode, LimitedReport, Severity};
use crate::json::{JsonKind, JsonRef};
use std::borrow::Cow;

const NOT_A_LIST: &str = "Invalid type for '{}': expected an array of objects.";

/// How many errors a body may have before it is left as it is (R63). Each costs an edit and a finding, and an edit may
/// add a result that is read again: much more than it costs to read its bytes. Real chats that are broken have some
/// hundreds, and long ones at most one a message.
pub(super) struct EditBudget {
    pub errors: usize,
    pub most: usize,
}

/// The errors that are repaired in any body, however short it is.
const LEAST_BUDGET: usize = 2_000;
/// The most errors that are repaired, however long the body is.
const MOST_BUDGET: usize = 20_000;
/// The bytes of body for each further error: a short message has about as many.
const BYTES_PER_ERROR: usize = 96;

impl EditBudget {
    /// Returns the budget of a body by its length in bytes.
    pub fn of(length: usize) -> Self {
        Self { errors: 0, most: (LEAST_BUDGET + length / BYTES_PER_ERROR).min(MOST_BUDGET) }
    }
}

/// What a dialect's rules fill while they read a body.
pub(crate) struct Plan<'a, 'o> {
    pub edits: Edits<'a>,
    pub(super) report: LimitedReport,
    /// For each listed finding: the byte offset of the value that it is about, and the member of that value.
    pub(super) places: Vec<(usize, &'static str)>,
    pub(super) budget: EditBudget,
    pub options: &'o RepairOptions,
    /// The index of the item that is read; replaces `{at}` in a sentence.
    pub at: usize,
    /// The members of the body.
    pub body: Fields<'a>,
    /// The list of items.
    pub(super) list: JsonRef<'a>,
    /// True during the first pass, which collects results that lack their marker member; the second pass treats them as
    /// marked.
    pub(super) marks_results: bool,
    /// Results found without a mark: the object, the member that marks a result, and its value.
    pub(super) unmarked_results: Vec<(JsonRef<'a>, &'static str, &'static str)>,
    /// Values that are neither calls nor results. An id inside one of them is not a mention of a call.
    pub(super) spans_without_mentions: Vec<Span>,
    pub(super) survey: Survey<'a>,
}

impl<'a> Plan<'a, '_> {
    /// Reports a violation.
    pub fn report(&mut self, violation: Violation<'a, '_>) {
        let Violation { severity, code, sentence, quoted, location, call_id, action } = violation;
        if severity == Severity::Error {
            self.charge();
        }
        if self.report.is_full() {
            return self.report.count(severity, code, 1);
        }
        let sentence = match sentence {
            Cow::Owned(sentence) => sentence,
            Cow::Borrowed(template) => template.replace("{at}", &self.at.to_string()).replace("{}", quoted),
        };
        let mut finding = Finding::new(severity, code, sentence);
        finding.call_id = call_id.map(str::to_owned);
        finding.action = action;
        self.add_finding(finding, self.edits.span(location.value).start, location.member);
    }

    /// Adds a finding about a member of the value at a byte offset.
    pub(super) fn add_finding(&mut self, finding: Finding, start: usize, member: &'static str) {
        if self.report.push(finding) {
            self.places.push((start, member));
        }
    }

    /// Counts an error. No edit is recorded any more if there are too many.
    pub(super) fn charge(&mut self) {
        self.budget.errors += 1;
        if self.is_over_budget() {
            self.edits.stop();
        }
    }

    /// Returns true if the body has more errors than are repaired. The rules then stop reading it.
    pub fn is_over_budget(&self) -> bool {
        self.budget.errors > self.budget.most
    }

    /// Reports a violation of a member, and sets the member to another value.
    pub fn rewrite(&mut self, violation: Violation<'a, '_>, value: String) {
        let BodyLocation { value: object, member } = violation.location;
        self.report(violation.rewritten());
        self.edits.set(object, member, value);
    }

    /// Excludes a value from the search for mentions of calls: what looks like a call's id in it is none.
    pub fn pass(&mut self, value: JsonRef<'a>) {
        self.spans_without_mentions.push(self.edits.span(value));
    }

    /// Returns a text block that holds the value as text. `open` is the block up to its text: `{"type":"text","text":`.
    pub fn as_text(&self, open: &str, value: JsonRef<'a>) -> BodyPiece {
        let token =
            if value.kind() == JsonKind::String { self.edits.source(value) } else { BodyPiece::New(as_quoted(value)) };
        BodyPiece::wrapped(open, vec![token], "}")
    }

    /// Returns the list of items. Plans the edit that makes one if the body has none: an array is wrapped in an object,
    /// a single item in a list, and anything else becomes an empty list.
    pub(super) fn find_list(&mut self) -> Option<JsonRef<'a>> {
        let name = self.survey.formats.named.list;
        let body = self.body.object;
        let found = self.body.get(name);
        let (list, member) = match body.kind() {
            JsonKind::Object => (self.list_of_object(found), name),
            JsonKind::Array => {
                self.edits.wrap(body, &format!("{{\"{name}\":"), "}");
                let sentence = "Invalid body: expected a JSON object with '{}', but got an array.";
                self.report(Violation::error(FindingCode::Malformed, sentence).at(body).quoting(name).rewritten());
                (Some(body), "")
            }
            _ => {
                self.edits.replace(body, BodyPiece::New(format!("{{\"{name}\":[]}}")));
                let sentence = "Invalid body: expected a JSON object with '{}'.";
                self.report(Violation::error(FindingCode::Malformed, sentence).at(body).quoting(name).rewritten());
                (None, "")
            }
        };
        let is_empty_text = found.is_some_and(|found| found.is_text(""));
        if is_empty_text || list.is_some_and(|list| list.items().next().is_none()) {
            let sentence = "[] is too short - '{}': at least one message is required.";
            self.report(Violation::warning(FindingCode::Malformed, sentence).at_member(body, member).quoting(name));
        }
        list
    }

    /// Returns the list of a body that is an object; `found` is the member that should hold it.
    fn list_of_object(&mut self, found: Option<JsonRef<'a>>) -> Option<JsonRef<'a>> {
        let name = self.survey.formats.named.list;
        let body = self.body.object;
        match found.map(JsonRef::kind) {
            Some(JsonKind::Array) => {
                let Some((open, close)) =
                    found.and_then(|list| self.survey.formats.named.recognizer.around_parts(list))
                else {
                    return found;
                };
                let violation = Violation::error(FindingCode::Malformed, NOT_A_LIST).at_member(body, name);
                self.report(violation.quoting(name).rewritten());
                self.edits.wrap(found.unwrap_or_default(), open, close);
                return None;
            }
            Some(JsonKind::String) if self.survey.formats.named.decode_text.is_some() => return None,
            _ => {}
        }
        self.reject_other_format(found);
        match found.filter(|found| matches!(found.kind(), JsonKind::Object | JsonKind::String)) {
            // One item in place of the list. A text in it is fixed by the dialect's own rules in the next pass.
            Some(item) => {
                let piece = BodyPiece::wrapped("[", vec![self.edits.source(item)], "]");
                self.edits.replace(item, piece);
            }
            None => self.edits.set(body, name, "[]".into()),
        }
        let sentence = if found.is_some() { NOT_A_LIST } else { "Missing required parameter: '{}'." };
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(body, name);
        self.report(violation.quoting(name).rewritten());
        None
    }
}
