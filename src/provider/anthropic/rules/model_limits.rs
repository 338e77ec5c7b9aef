//! Values of parameters that only some models accept.

use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::models::{ModelFacts, ThinkingKind};
use crate::provider::rules::{BodyPiece, Plan, Violation};

const KINDS: [(&str, ThinkingKind); 4] = [
    ("enabled", ThinkingKind::Budget),
    ("disabled", ThinkingKind::Disabled),
    ("adaptive", ThinkingKind::Adaptive),
    ("between_tools", ThinkingKind::BetweenTools),
];

const KIND_MISSING: &str = "thinking.type: Field required";
const BUDGET_REJECTED: &str = "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
const DISABLED_REJECTED: &str = "\"thinking.type.disabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
const DISABLED_REJECTED_BETWEEN_TOOLS: &str = "\"thinking.type.disabled\" is not supported for this model. Use \"thinking.type.between_tools\" for the lowest thinking setting, or \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
const ADAPTIVE_REJECTED: &str = "adaptive thinking is not supported on this model";
const BETWEEN_TOOLS_REJECTED: &str = "\"thinking.type.between_tools\" is not supported for this model.";
const FORCED_TOOL_REJECTED: &str = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";

/// Repairs the configuration of thinking and the choice of a tool. Returns the kind of thinking that the repaired body
/// asks for; `None` if it names none.
pub(super) fn repair(plan: &mut Plan<'_, '_>, facts: &ModelFacts) -> Option<ThinkingKind> {
    repair_tool_choice(plan, facts);
    let thinking = plan.body.find("thinking").filter(|thinking| thinking.is_object())?;
    let accepted = accepted_kind(thinking, facts)?;
    let Some(kind) = named_kind(thinking) else {
        let violation = Violation::error(FindingCode::Malformed, KIND_MISSING).at_member(thinking, "type");
        plan.rewrite(violation, "\"adaptive\"".into());
        return None;
    };
    if kind == accepted {
        return Some(kind);
    }
    let sentence = match kind {
        ThinkingKind::Budget => BUDGET_REJECTED,
        ThinkingKind::Disabled if facts.allows_thinking(ThinkingKind::BetweenTools) => DISABLED_REJECTED_BETWEEN_TOOLS,
        ThinkingKind::Disabled => DISABLED_REJECTED,
        ThinkingKind::Adaptive => ADAPTIVE_REJECTED,
        ThinkingKind::BetweenTools => BETWEEN_TOOLS_REJECTED,
    };
    let violation = Violation::error(FindingCode::UnsupportedKey, sentence).at_member(thinking, "type");
    plan.report(violation.rewritten());
    write_kind(plan, thinking, accepted);
    Some(accepted)
}

/// Returns the kind of thinking that a body asks for when it is repaired; `None` if it names none and need not, or one
/// that is not known here.
pub(in crate::provider::anthropic) fn accepted_kind(thinking: JsonRef<'_>, facts: &ModelFacts) -> Option<ThinkingKind> {
    if facts.requires_thinking_kind && thinking.find("type").is_none() {
        return Some(ThinkingKind::Adaptive);
    }
    let kind = named_kind(thinking)?;
    Some(if facts.allows_thinking(kind) { kind } else { nearest(kind, facts) })
}

fn named_kind(thinking: JsonRef<'_>) -> Option<ThinkingKind> {
    let named = thinking.text("type")?;
    KINDS.into_iter().find(|(name, _)| *name == named).map(|(_, kind)| kind)
}

/// Writes a kind of thinking. How thinking is displayed and bound stays where the kind has that.
pub(super) fn write_kind<'a>(plan: &mut Plan<'a, '_>, thinking: JsonRef<'a>, kind: ThinkingKind) {
    let name = KINDS.into_iter().find(|(_, named)| *named == kind).map_or("adaptive", |(name, _)| name);
    if kind == ThinkingKind::Adaptive {
        plan.edits.set(thinking, "type", format!("\"{name}\""));
        plan.edits.remove(thinking, "budget_tokens");
    } else {
        plan.edits.replace(thinking, BodyPiece::New(format!("{{\"type\":\"{name}\"}}")));
    }
}

/// Returns a kind without thinking that the model accepts, or else the one that is nearest to it.
pub(super) fn without_thinking(facts: &ModelFacts) -> ThinkingKind {
    nearest(ThinkingKind::Disabled, facts)
}

/// Returns the accepted kind that is nearest to another one. A budget cannot be synthesized.
fn nearest(kind: ThinkingKind, facts: &ModelFacts) -> ThinkingKind {
    let preferred = match kind {
        ThinkingKind::Budget => [ThinkingKind::Adaptive, ThinkingKind::Disabled],
        ThinkingKind::Disabled => [ThinkingKind::Disabled, ThinkingKind::BetweenTools],
        ThinkingKind::Adaptive => [ThinkingKind::Adaptive, ThinkingKind::Disabled],
        ThinkingKind::BetweenTools => [ThinkingKind::BetweenTools, ThinkingKind::Disabled],
    };
    preferred.into_iter().find(|kind| facts.allows_thinking(*kind)).unwrap_or(ThinkingKind::Adaptive)
}

/// Leaves the choice to a model that cannot be forced to call a tool.
fn repair_tool_choice(plan: &mut Plan<'_, '_>, facts: &ModelFacts) {
    let Some(choice) = plan.body.find("tool_choice").filter(|_| !facts.allows_forced_tool_choice) else { return };
    if choice.has_text("type", "any") || choice.has_text("type", "tool") {
        let violation = Violation::error(FindingCode::UnsupportedKey, FORCED_TOOL_REJECTED).at_member(choice, "type");
        plan.rewrite(violation, "\"auto\"".into());
        plan.edits.remove(choice, "name");
    }
}
