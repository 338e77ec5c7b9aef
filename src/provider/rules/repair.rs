//! The entry points: validate a body, and repair it.

use super::fields::Fields;
use super::options::RepairOptions;
use super::plan::Plan;
use super::recognition::refusal;
use super::splice::Edits;
use super::survey::Survey;
use crate::error::Result;
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::json::{JsonKind, JsonRef};
use crate::message::Dialect;
use crate::provider::foreign_format::ForeignFormat;
use crate::provider::registry::{codec, item_formats};

/// What is wrong with a request's body. No finding of severity error means that the provider accepts the sequence. Of a body in
/// another shape as a whole, `unknown_shape` is all that is reported.
#[must_use]
pub fn validate(body: &[u8], dialect: Dialect) -> Report {
    let mut report = run_pass(body, dialect, &RepairOptions::default()).report;
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
    let first = run_pass(body, dialect, options);
    if let Some(shape) = first.refused {
        return Err(refusal(&first.report, shape));
    }
    let unknown = first.unknown;
    let (text, report) = repeat_passes(body, first, dialect, options);
    if unknown && is_empty(&text, dialect) {
        return Err(refusal(&report, ForeignFormat::Unknown));
    }
    Ok((text, report))
}

/// As [`repair`], and never refused: what cannot be read is left out. For bodies that were rendered here.
#[must_use]
pub(crate) fn repair_rendered(body: &[u8], dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    repeat_passes(body, run_pass(body, dialect, options), dialect, options)
}

/// Repeats the rounds until one makes no edit. One mends a body; the others are a guard, so that a rule whose edit wakes
/// another rule still ends valid.
fn repeat_passes(body: &[u8], first: Pass, dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    let mut report = first.report;
    let Some(mut text) = first.text else { return (body.to_vec(), report) };
    for _ in 0..MAX_EXTRA_PASSES {
        let more = run_pass(text.as_bytes(), dialect, options);
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

const MAX_EXTRA_PASSES: usize = 4;

/// Whether a body's list holds nothing.
fn is_empty(body: &[u8], dialect: Dialect) -> bool {
    let body = std::str::from_utf8(body).ok().and_then(|text| JsonRef::parse(text).ok()).unwrap_or_default();
    body.get(codec(dialect).list()).is_some_and(|list| list.kind() == JsonKind::Array && list.items().next().is_none())
}

/// The edits and findings of a body.
struct Pass {
    /// The body with its edits made, if there are any.
    text: Option<String>,
    report: Report,
    /// The shape for which `repair` refuses the body.
    refused: Option<ForeignFormat>,
    /// Items that are none of the dialect's were left out.
    unknown: bool,
}

fn malformed(message: String) -> Pass {
    let report = vec![Finding::error(FindingCode::Malformed, message).at("").with_action(Action::Kept)];
    Pass { text: None, report, refused: None, unknown: false }
}

/// Reads a body and makes the edits that its rules plan. Results that lack the mark of one are marked first.
fn run_pass(body: &[u8], dialect: Dialect, options: &RepairOptions) -> Pass {
    match read_body(body, dialect, options, true) {
        PassOutcome::Done(pass) => pass,
        PassOutcome::ResultsMarked(text, mut report) => match read_body(text.as_bytes(), dialect, options, false) {
            PassOutcome::Done(pass) => {
                report.extend(pass.report);
                Pass { text: pass.text.or(Some(text)), report, ..pass }
            }
            PassOutcome::ResultsMarked(text, report) => {
                Pass { text: Some(text), report, refused: None, unknown: false }
            }
        },
    }
}

/// What one reading of a body comes to.
enum PassOutcome {
    Done(Pass),
    /// The body is to be read again with these results marked.
    ResultsMarked(String, Report),
}

fn read_body(body: &[u8], dialect: Dialect, options: &RepairOptions, marks_results: bool) -> PassOutcome {
    let Ok(text) = std::str::from_utf8(body) else {
        return PassOutcome::Done(malformed(
            "We could not parse the JSON body of your request: it is not UTF-8.".into(),
        ));
    };
    let value = match JsonRef::parse(text) {
        Ok(value) => value,
        Err(error) => {
            return PassOutcome::Done(malformed(format!(
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
        marks_results,
        unmarked_results: Vec::new(),
        spans_without_mentions: Vec::new(),
        survey: Survey::new(item_formats(dialect)),
    };
    if let Some(items) = plan.find_list() {
        plan.list = items;
        codec.plan_repairs(&mut plan, items);
    }
    let refused = plan.refused();
    if refused.is_none() && !plan.unmarked_results.is_empty() {
        let (text, report) = plan.with_marked_results();
        return PassOutcome::ResultsMarked(text, report);
    }
    plan.locate();
    let Plan { edits, mut report, survey, .. } = plan;
    debug_assert_eq!(
        edits.is_empty(),
        report.iter().all(|f| f.severity != Severity::Error),
        "edits without an error, or an error without edits: {report:?}"
    );
    let mut repaired = if edits.is_empty() { None } else { Some(edits.apply()) };
    // One item may stand in place of the list if a list of it would be accepted.
    if codec.takes_single_item()
        && refused.is_none()
        && value.get(list).is_some_and(JsonRef::is_object)
        && repaired.as_ref().is_some_and(|text| run_pass(text.as_bytes(), dialect, options).text.is_none())
    {
        repaired = None;
        for finding in &mut report {
            finding.severity = Severity::Warning;
            finding.action = Some(Action::Kept);
        }
    }
    PassOutcome::Done(Pass { text: repaired, report, refused, unknown: survey.dropped_unknown })
}
