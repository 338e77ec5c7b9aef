//! Names of results.

use crate::json::JsonRef;
use crate::provider::gemini_interactions::step::StepKind;
use crate::provider::healing::Cure;
use crate::provider::rules::quoted;

/// The mark of a service that refuses results without a name.
pub(super) const UNNAMED_MARK: &str = "unnamed:results";

/// Gives each result without a name that of its call. The types of @google/genai 3.1.0 have an optional `name`, the
/// service required it (inspect-robots#380, 2026-08-14).
pub(super) fn name_results(cure: &mut Cure<'_>) {
    let steps: Vec<JsonRef<'_>> = cure.list.items().collect();
    let calls = || steps.iter().filter(|step| StepKind::of(**step) == StepKind::FunctionCall);
    let mut has_changed = false;
    for (at, step) in steps.iter().enumerate() {
        if StepKind::of(*step) != StepKind::FunctionResult || !step.string("name").is_empty() {
            continue;
        }
        let id = step.string("call_id");
        let name = calls().find(|call| call.string("id") == id).map(|call| call.string("name"));
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        cure.edits.set(*step, "name", quoted(&name));
        cure.changed(|| format!("/input/{at}/name"));
        has_changed = true;
    }
    if has_changed {
        cure.refused.push(UNNAMED_MARK.to_owned());
    }
}
