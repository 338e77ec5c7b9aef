//! What the Interactions API rejects, and the edit that fixes each violation. As of 2026-11-28.
//!
//! Sources: the types of @google/genai 3.1.0 ("Required." members; `InteractionsInput`: contents or steps), Google's
//! pages "Interactions API: breaking changes" (turns were removed on 2026-06-08) and "Function calling", the recorded
//! exchanges of vercel/ai (2026-05), and the errors that `remedies.rs` quotes. Few sentences are quoted, so most are
//! rethread's own. Calls and results are paired as the same service demands of generateContent.
//!
//! Where the types and a report differ, a body that the types allow is kept with a warning, and the refusal is cured: a
//! result without a name, a call without a signature.

mod contents;
mod names;
mod order;
mod step_reader;

use super::service_state::PREVIOUS_INTERACTION;
use super::step::StepKind;
use crate::finding::FindingCode;
use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::gemini::model_version::{GEMINI_3, model_version};
use crate::provider::rules::{
    ErrorTemplates, Fields, IdRule, Pairing, Pairs, Plan, Violation, WireCall, quoted, report_pairs,
};
use names::fitting_name;
use order::ResultPlacement;
use std::collections::BTreeSet;
use step_reader::StepReader;

const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| !id.is_empty(),
    fit: str::to_owned,
    derive: |seed| format!("call_{}", short_name(seed, 16)),
    variant: |base, count| format!("{base}_{count}"),
    missing: "function_call.id: a unique id is required.",
    invalid: "function_call.id: '{}' is no valid id.",
    duplicate: "function_call.id: '{}' is the id of another call; ids are unique.",
};

const ERRORS: ErrorTemplates = ErrorTemplates {
    dangling: "The number of function_result steps must equal that of the function_call steps before them. No result: {}.",
    orphan: "A function_result must follow the function_call with its id. No such call: {}.",
    duplicate: "The number of function_result steps must equal that of the function_call steps before them. More than one result: {}.",
};

/// Plans the repair of a body.
pub(super) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let result_text = quoted(plan.options.text());
    let has_steps = list.items().any(|item| !matches!(StepKind::of(item), StepKind::Content));
    let mut reader = StepReader::new(plan, result_text.clone(), has_steps);
    for (at, value) in list.items().enumerate() {
        reader.plan.at = at;
        reader.read(value);
        if reader.plan.is_over_budget() {
            return;
        }
    }
    let StepReader { plan, mut pairs, steps, is_rebuilt, unsigned, .. } = reader;
    report_unsigned(plan, &unsigned);
    pairs.pair();
    if has_stored_history(&plan.body) {
        hold_orphans(&mut pairs);
    }
    pairs.choose_ids(plan, &IDS);
    if plan.is_over_budget() {
        return;
    }
    let sentence = "function_result.call_id: the id of the function_call is required.";
    pairs.write_ids(plan, &|_, is_call| if is_call { "id" } else { "call_id" }, sentence);
    report_pairs(plan, &pairs, &ERRORS);
    if plan.is_over_budget() {
        return;
    }
    let synthetic_result = |call: &WireCall<'a>| {
        let (id, name) = (quoted(&call.new_id), quoted(&fitting_name(&call.value.string("name"))));
        let head = format!("{{\"type\":\"function_result\",\"call_id\":{id},\"name\":{name}");
        format!("{head},\"result\":{result_text},\"is_error\":true}}")
    };
    ResultPlacement { pairs: &pairs, synthetic_result: &synthetic_result, is_rebuilt }.apply(plan, list, steps);
}

/// Reports the calls of the current turn that no signature precedes. Gemini 3 refuses them (obsidian-gemini#1269,
/// aiden-firmware#699); the types do not require one.
fn report_unsigned<'a>(plan: &mut Plan<'a, '_>, unsigned: &[JsonRef<'a>]) {
    if model_version(&plan.body.text("model").unwrap_or_default()) < GEMINI_3 {
        return;
    }
    for call in unsigned {
        let sentence = "function_call: Gemini 3 refuses a call without a thought and its signature before it.";
        plan.report(Violation::warning(FindingCode::UnsignedThinking, sentence).at(*call));
    }
}

/// With stored history, a result may answer a call that Google has. Each call has one.
fn hold_orphans(pairs: &mut Pairs<'_>) {
    let mut held = BTreeSet::new();
    for result in pairs.results.iter_mut().filter(|result| result.has_valid_id) {
        if result.pairing == Pairing::Orphan {
            let is_first = held.insert(result.id.clone());
            result.pairing = if is_first { Pairing::HeldByServer } else { Pairing::Duplicate };
        }
    }
}

/// Returns true if a body continues an interaction that Google stores, whose calls its results may answer.
fn has_stored_history(body: &Fields<'_>) -> bool {
    body.find(PREVIOUS_INTERACTION).is_some()
}
