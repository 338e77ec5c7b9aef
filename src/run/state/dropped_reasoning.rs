//! Reports what a provider did with reasoning of a request (R70).

use crate::finding::{Action, Finding, FindingCode, LimitedReport, Severity};
use crate::json::JsonRef;
use crate::provider::{Assembled, InputTransformation, TransformationEffect, TransformedPlace, spec};
use crate::run::turn::RunData;
use std::collections::BTreeMap;

/// Reports the transformations that an answer lists. A loss that nobody asked for is a warning, and an event.
pub(super) fn report_transformations(turn: &mut RunData, assembled: &Assembled, body: &[u8]) {
    if assembled.transformations.is_empty() {
        return;
    }
    let is_asked_for = turn.setup().drops_unbound();
    let mut report = LimitedReport::default();
    let mut unplaced = BTreeMap::<&str, Vec<usize>>::new();
    for transformation in &assembled.transformations {
        let at = report.findings().len();
        if report.push(finding_of(transformation, is_asked_for))
            && let TransformedPlace::Item(id) = &transformation.place
        {
            unplaced.entry(id).or_default().push(at);
        }
    }
    place_items(&mut report, unplaced, body, spec(turn.setup().provider.dialect).items.list);
    for finding in report.into_report() {
        if finding.severity == Severity::Info {
            turn.add_to_report(&[finding]);
        } else {
            turn.warn(finding);
        }
    }
}

/// Sets the paths of the findings about items, which are given by the items' ids, in one pass over the body's list.
fn place_items(report: &mut LimitedReport, mut unplaced: BTreeMap<&str, Vec<usize>>, body: &[u8], list: &str) {
    if unplaced.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(body);
    let items = JsonRef::parse(&text).ok().and_then(|body| body.get(list)).unwrap_or_default();
    for (index, item) in items.items().enumerate() {
        let placed = item.text("id").and_then(|id| unplaced.remove(&*id));
        for at in placed.into_iter().flatten() {
            if let Some(finding) = report.findings_mut().get_mut(at) {
                finding.path = Some(format!("/{list}/{index}"));
            }
        }
        if unplaced.is_empty() {
            return;
        }
    }
}

fn finding_of(transformation: &InputTransformation, is_asked_for: bool) -> Finding {
    let (done, action) = match transformation.effect {
        TransformationEffect::Dropped if is_asked_for => {
            ("left the reasoning out, as it was asked to", Action::Dropped)
        }
        TransformationEffect::Dropped => ("left the reasoning out, so the model did not see it", Action::Dropped),
        TransformationEffect::DroppedByDesign => {
            ("left the reasoning of an earlier turn out, as it always does", Action::Dropped)
        }
        TransformationEffect::Kept => ("would have left the reasoning out if it enforced its check", Action::Kept),
    };
    let message = format!("the provider {done} (\"{}\")", transformation.reason);
    let is_loss = transformation.effect == TransformationEffect::Dropped && !is_asked_for;
    let new = if is_loss { Finding::warning } else { Finding::info };
    let mut finding = new(FindingCode::ReasoningDropped, message).with_action(action);
    finding.reason = Some(transformation.reason.clone());
    if let TransformedPlace::Path(path) = &transformation.place {
        finding.path = Some(path.clone());
    }
    finding
}
