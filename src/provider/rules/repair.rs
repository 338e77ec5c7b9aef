//! The entry points: validate a body, and repair it.

use super::fields::Fields;
use super::item_survey::Survey;
use super::options::RepairOptions;
use super::plan::{EditBudget, Plan};
use super::recognition::{emptied, refusal};
use super::splice::Edits;
use crate::error::Result;
use crate::finding::{Action, Finding, FindingCode, LimitedReport, Report, Severity};
use crate::json::{Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::foreign_format::ForeignFormat;
use crate::provider::spec::NamedDialect;

/// Returns the violations in a request's body. If none has the severity error, the provider accepts the messages. If
/// the body as a whole has a foreign format, only `unknown_shape` is reported. After
/// [`MAX_FINDINGS`](crate::finding::MAX_FINDINGS) findings the others are counted (`findings_omitted`), and a body with
/// too many errors is not read to its end (`too_many_edits`).
#[must_use]
pub(crate) fn validate(body: &[u8], dialect: NamedDialect) -> Report {
    let pass = run_pass(body, dialect, &RepairOptions::default());
    let mut report = pass.report.into_report();
    report.extend(pass.excess);
    for finding in &mut report {
        finding.action = None;
    }
    report
}

/// Repairs a request's body. Returns the valid body and a report of the violations and their repairs. A body without
/// errors is returned byte for byte, as is text that is not JSON. A JSON value that is not an object becomes an object
/// with an empty list. An empty list is only a warning, since no edit can fix it. A body with too many errors is
/// returned byte for byte, with the finding `too_many_edits` alone.
///
/// # Errors `invalid_input` for a body in a foreign format: its items are those of another dialect or SDK, or of no
/// known one, or lists, or it may hold the result of a call in a form that cannot be read. Also for a body of which
/// nothing would be left, one of calls and results that were all removed.
pub(crate) fn repair(body: &[u8], dialect: NamedDialect, options: &RepairOptions) -> Result<(Vec<u8>, Report)> {
    let first = run_pass(body, dialect, options);
    if let Some(format) = first.refused {
        return Err(refusal(first.report.findings(), format));
    }
    let dropped_unknown = first.dropped_unknown;
    let (text, report) = repeat_passes(body, first, dialect, options);
    // The text is only read again if its list may have been emptied.
    let error = if dropped_unknown { Some(refusal(&report, ForeignFormat::Unknown)) } else { emptied(&report) };
    match error.filter(|_| has_empty_list(&text, dialect)) {
        Some(error) => Err(error),
        None => Ok((text, report)),
    }
}

/// Repairs a body that this crate rendered. Like [`repair`], but never refuses: items that cannot be read are dropped.
#[must_use]
pub(crate) fn repair_rendered(body: &[u8], dialect: NamedDialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    repeat_passes(body, run_pass(body, dialect, options), dialect, options)
}

/// Repairs the members of a body beside its list, which the rules of some models limit. `model` is the one that the
/// request names elsewhere. Returns `None` if the rules accept them.
pub(crate) fn repair_head(head: JsonRef<'_>, dialect: NamedDialect, model: Option<&str>) -> Option<(Json, Report)> {
    const MODEL: &str = "model";
    let list = dialect.spec.items.list;
    let model = model.filter(|_| head.get(MODEL).is_none());
    let body = ObjectWriter::build(|out| {
        out.copy_all(head, list);
        if let Some(model) = model {
            out.text(MODEL, model);
        }
        out.raw(list, "[]");
    });
    let options = RepairOptions::default();
    let first = run_pass(body.as_str().as_bytes(), dialect, &options);
    if first.text.is_none() || first.refused.is_some() {
        return None;
    }
    let (text, mut report) = repeat_passes(body.as_str().as_bytes(), first, dialect, &options);
    let repaired = String::from_utf8(text).ok().and_then(|text| Json::parse(&text).ok())?;
    let head = ObjectWriter::build(|out| {
        let added = |key: JsonRef<'_>| key.is_text(list) || model.is_some() && key.is_text(MODEL);
        repaired.view().entries().filter(|(key, _)| !added(*key)).for_each(|(key, value)| out.copy(key, value));
    });
    // The empty list is not that of the request.
    report.retain(|finding| finding.severity == Severity::Error);
    Some((head, report))
}

/// Repeats passes until one makes no edit. One pass is enough by design; the others are a safeguard against an edit
/// that violates another rule.
fn repeat_passes(body: &[u8], first: Pass, dialect: NamedDialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    if let Some(excess) = first.excess {
        return (body.to_vec(), vec![excess]);
    }
    let mut report = first.report;
    let Some(mut text) = first.text else { return (body.to_vec(), report.into_report()) };
    for _ in 0..MAX_EXTRA_PASSES {
        let next = run_pass(text.as_bytes(), dialect, options);
        if let Some(excess) = next.excess {
            return (body.to_vec(), vec![excess]);
        }
        let Some(repaired) = next.text else { break };
        report.append(next.report.into_errors());
        text = repaired;
    }
    (text.into_bytes(), report.into_report())
}

/// How many passes follow the first one at most.
const MAX_EXTRA_PASSES: usize = 4;

/// Returns true if a body's list of items is empty.
fn has_empty_list(body: &[u8], dialect: NamedDialect) -> bool {
    let body = std::str::from_utf8(body).ok().and_then(|text| JsonRef::parse(text).ok()).unwrap_or_default();
    body.get(dialect.spec.items.list)
        .is_some_and(|list| list.kind() == JsonKind::Array && list.items().next().is_none())
}

/// The outcome of one pass of the rules over a body.
struct Pass {
    /// The body with the edits applied, if there are any.
    text: Option<String>,
    report: LimitedReport,
    /// The finding about a body with too many errors, which has no edits.
    excess: Option<Finding>,
    /// The format for which `repair` refuses the body.
    refused: Option<ForeignFormat>,
    /// True if items of no known format were dropped.
    dropped_unknown: bool,
}

/// Returns the pass of a body that cannot be parsed.
fn malformed(message: String) -> Pass {
    let mut report = LimitedReport::default();
    report.push(Finding::error(FindingCode::Malformed, message).at("").with_action(Action::Kept));
    Pass { text: None, report, excess: None, refused: None, dropped_unknown: false }
}

/// Runs the rules over a body, and applies their edits. Results that lack their mark are marked before.
fn run_pass(body: &[u8], dialect: NamedDialect, options: &RepairOptions) -> Pass {
    match read_body(body, dialect, options, true) {
        PassOutcome::Done(pass) => pass,
        PassOutcome::ResultsMarked(text, mut report) => match read_body(text.as_bytes(), dialect, options, false) {
            PassOutcome::Done(pass) => {
                report.append(pass.report);
                Pass { text: pass.text.or(Some(text)), report, ..pass }
            }
            PassOutcome::ResultsMarked(text, report) => {
                Pass { text: Some(text), report, excess: None, refused: None, dropped_unknown: false }
            }
        },
    }
}

/// The outcome of [`read_body`].
enum PassOutcome {
    Done(Pass),
    /// The body with results marked that lacked their mark. It must be read again.
    ResultsMarked(String, LimitedReport),
}

/// Returns the text of a body and its value, or the provider's sentence about a body that is not JSON.
fn parse_body(body: &[u8]) -> std::result::Result<(&str, JsonRef<'_>), String> {
    let text = std::str::from_utf8(body)
        .map_err(|_| "We could not parse the JSON body of your request: it is not UTF-8.".to_owned())?;
    let value = JsonRef::parse(text).map_err(|error| {
        format!("We could not parse the JSON body of your request: it stops being JSON at byte {}.", error.at)
    })?;
    Ok((text, value))
}

/// Runs the rules over a body. `marks_results`: results that lack their mark are marked, instead of being reported.
fn read_body(body: &[u8], dialect: NamedDialect, options: &RepairOptions, marks_results: bool) -> PassOutcome {
    let (text, value) = match parse_body(body) {
        Ok(parsed) => parsed,
        Err(problem) => return PassOutcome::Done(malformed(problem)),
    };
    let spec = dialect.spec;
    let mut plan = Plan {
        edits: Edits::new(text),
        report: LimitedReport::default(),
        places: Vec::new(),
        budget: EditBudget::of(text.len()),
        options,
        at: 0,
        body: Fields::of(value),
        list: JsonRef::default(),
        marks_results,
        unmarked_results: Vec::new(),
        spans_without_mentions: Vec::new(),
        survey: Survey::new(dialect.formats),
    };
    let lacks_list = value.is_object() && value.get(spec.items.list).is_none() && (spec.body.may_lack_list)(value);
    if !lacks_list && let Some(items) = plan.find_list() {
        plan.list = items;
        (spec.rules.plan)(&mut plan, items);
    }
    let refused = plan.end_survey();
    if plan.is_over_budget() {
        return PassOutcome::Done(plan.into_excessive(refused));
    }
    if refused.is_none() && !plan.unmarked_results.is_empty() {
        let (text, report) = plan.with_marked_results();
        return PassOutcome::ResultsMarked(text, report);
    }
    plan.locate();
    let Plan { edits, mut report, survey, .. } = plan;
    debug_assert_eq!(
        edits.is_empty(),
        !report.has_error(),
        "edits without an error, or an error without edits: {report:?}"
    );
    let mut repaired = if edits.is_empty() { None } else { Some(edits.apply()) };
    // Some dialects accept one item in place of the list, if they accept a list of that item.
    if spec.items.takes_single_item
        && refused.is_none()
        && value.get(spec.items.list).is_some_and(JsonRef::is_object)
        && repaired.as_ref().is_some_and(|text| run_pass(text.as_bytes(), dialect, options).text.is_none())
    {
        repaired = None;
        report.lower_severity(Severity::Warning);
        for finding in report.findings_mut() {
            finding.action = Some(Action::Kept);
        }
    }
    PassOutcome::Done(Pass { text: repaired, report, excess: None, refused, dropped_unknown: survey.dropped_unknown })
}

impl Plan<'_, '_> {
    /// Returns the outcome for a body with too many errors.
    fn into_excessive(mut self, refused: Option<ForeignFormat>) -> Pass {
        self.locate();
        let sentence = format!(
            "The body has more than {} errors, the most that are repaired in one of its length: it is unchanged, and was read to {}[{}].",
            self.budget.most, self.survey.formats.named.list, self.at
        );
        let excess = Finding::error(FindingCode::TooManyEdits, sentence).at("").with_action(Action::Kept);
        let dropped_unknown = self.survey.dropped_unknown;
        Pass { text: None, report: self.report, excess: Some(excess), refused, dropped_unknown }
    }
}
