//! Reports what a provider did with reasoning of a request (R70).

use crate::finding::{Action, Finding, FindingCode, Report, Severity, limit_report};
use crate::json::JsonRef;
use crate::provider::{Assembled, InputTransformation, TransformationEffect, TransformedPlace, codec};
use crate::run::turn::RunData;

/// Reports the transformations that an answer lists. A loss that nobody asked for is a warning, and an event.
pub(super) fn report_transformations(turn: &mut RunData, assembled: &Assembled, body: &[u8]) {
    if assembled.transformations.is_empty() {
        return;
    }
    let list = codec(turn.setup().provider.dialect).list();
    let is_asked_for = turn.setup().drops_unbound();
    let text = String::from_utf8_lossy(body);
    let items = JsonRef::parse(&text).ok().and_then(|body| body.get(list)).unwrap_or_default();
    let finding = |transformation: &InputTransformation| {
        let path = match &transformation.place {
            TransformedPlace::Path(path) => Some(path.clone()),
            TransformedPlace::Item(id) => {
                items.items().position(|item| item.has_text("id", id)).map(|at| format!("/{list}/{at}"))
            }
        };
        let mut finding = finding_of(transformation, is_asked_for);
        finding.path = path;
        finding.reason = Some(transformation.reason.clone());
        finding
    };
    let mut report: Report = assembled.transformations.iter().map(finding).collect();
    limit_report(&mut report);
    for finding in report {
        if finding.severity == Severity::Info {
            turn.add_to_report(&[finding]);
        } else {
            turn.warn(finding);
        }
    }
}

fn finding_of(transformation: &InputTransformation, is_asked_for: bool) -> Finding {
    let (done, action) = match transformation.effect {
        TransformationEffect::Dropped if is_asked_for => {
            ("left the reasoning out, as it was asked to", Action::Dropped)
        }
        TransformationEffect::Dropped => ("left the reasoning out, so the model did not see it", Action::Dropped),
        TransformationEffect::DroppedByDesign => ("left the reasoning out, as in each conversation", Action::Dropped),
        TransformationEffect::Kept => ("would have left the reasoning out if it enforced its check", Action::Kept),
    };
    let message = format!("the provider {done} (\"{}\")", transformation.reason);
    let is_loss = transformation.effect == TransformationEffect::Dropped && !is_asked_for;
    let new = if is_loss { Finding::warning } else { Finding::info };
    new(FindingCode::ReasoningDropped, message).with_action(action)
}
