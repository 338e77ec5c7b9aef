//! Signatures that the service refuses or misses.
//!
//! In the current turn, a run of the model's steps with a call needs a signature: of a thought before its first call,
//! or of that call itself. `skip_thought_signature_validator`, Google's stand-in for the signature of a thought that
//! another model had, is accepted as that of a thought at the beginning of the run. Sources: the tests of AgentHub
//! ("the Interactions API takes an unfinished model turn back only when it holds a signed thought (verified live
//! 2026-09-16)"), earendil-works/pi#2172 (2026-03-15), obsidian-gemini (2026-07-28: the signature of the call
//! itself).

use crate::json::JsonRef;
use crate::provider::gemini::model_version::{GEMINI_3, model_version};
use crate::provider::gemini_interactions::step::{FUNCTION_RESULT, SIGNATURE, StepKind, signature_of};
use crate::provider::healing::{Cure, signature_mark};
use crate::provider::rules::BodyPiece;

/// Google's stand-in for the signature of a thought.
const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";
const PLACEHOLDER_THOUGHT: &str = r#"{"type":"thought","signature":"skip_thought_signature_validator"}"#;

/// The mark of a model that refuses calls without a signature. generateContent has another one: its cure differs.
pub(super) fn unsigned_mark(body: JsonRef<'_>) -> String {
    format!("unsignedsteps:{}", body.string("model"))
}

/// Removes the selected signatures, and the thoughts that have them. A run of the current turn that loses the signature
/// of its first call by that begins with the placeholder; with `are_required` also one that had none, and thoughts
/// without a signature are removed.
pub(super) fn replace_signatures(cure: &mut Cure<'_>, is_refused: &dyn Fn(JsonRef<'_>) -> bool, are_required: bool) {
    let steps: Vec<JsonRef<'_>> = cure.list.items().collect();
    let current = steps.iter().rposition(|step| starts_turn(*step)).map_or(0, |at| at + 1);
    let is_old = (1..GEMINI_3).contains(&model_version(&cure.body.string("model")));
    let (mut pieces, mut run, mut is_unsigned) = (Vec::with_capacity(steps.len()), Run::default(), false);
    for (at, step) in steps.iter().copied().enumerate() {
        let kind = StepKind::of(step);
        if !kind.is_of_model() {
            run = Run { start: pieces.len() + 1, ..Run::default() };
        }
        let signature = signature_of(step);
        let refused = signature.filter(|value| !value.is_text(PLACEHOLDER_SIGNATURE) && is_refused(*value));
        if let Some(refused) = refused {
            cure.refused.push(signature_mark(refused.as_raw()));
            cure.changed(|| format!("/input/{at}"));
            run.has_lost = true;
        }
        let is_signed = signature.is_some() && refused.is_none();
        if kind == StepKind::Thought && !is_signed && (refused.is_some() || are_required) {
            cure.changed(|| format!("/input/{at}"));
            is_unsigned |= refused.is_none();
            continue;
        }
        if refused.is_some() {
            cure.edits.remove(step, SIGNATURE);
        }
        let is_first_call = run.read(kind, is_signed);
        if is_first_call && !is_signed && at >= current && !is_old && (run.has_lost || are_required) {
            pieces.insert(run.start, BodyPiece::New(PLACEHOLDER_THOUGHT.into()));
            cure.changed(|| format!("/input/{at}"));
            is_unsigned |= !run.has_lost;
        }
        pieces.push(cure.edits.source(step));
    }
    if cure.place.is_some() {
        cure.edits.rebuild(cure.list, pieces);
    }
    if are_required && is_unsigned {
        cure.refused.push(unsigned_mark(cure.body));
    }
}

/// Returns true for a step of the user that has more than results.
fn starts_turn(step: JsonRef<'_>) -> bool {
    let has_results_alone = || {
        let mut contents = step.get("content").unwrap_or_default().items().peekable();
        contents.peek().is_some() && contents.all(|content| content.has_text("type", FUNCTION_RESULT))
    };
    match StepKind::of(step) {
        StepKind::UserInput | StepKind::UserTurn => !has_results_alone(),
        StepKind::Content => true,
        _ => false,
    }
}

/// A run of the model's steps.
#[derive(Default)]
struct Run {
    /// The index of its first step in the new list.
    start: usize,
    /// A signature of the run was refused.
    has_lost: bool,
    /// A signature or a call was read, after which no call of the run needs one.
    is_settled: bool,
}

impl Run {
    /// Reads a step of the run. Returns true for the call that needs a signature.
    fn read(&mut self, kind: StepKind, is_signed: bool) -> bool {
        let is_call = kind == StepKind::FunctionCall;
        let is_first = is_call && !self.is_settled;
        self.is_settled |= is_call || kind == StepKind::Thought && is_signed;
        is_first
    }
}
