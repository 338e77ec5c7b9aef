//! Signatures that the service refuses or misses.
//!
//! A call needs a thought with a signature before it, among the steps of its run. Nothing is known to stand for a
//! signature here: generateContent has `skip_thought_signature_validator`, and no source shows it in a step
//! (2026-11-28). So a call without a signature is carried as text, as is its result, which the service accepts
//! (aiden-firmware#699, 2026-09-17).

use crate::json::{ArrayWriter, JsonKind, JsonRef, ObjectWriter};
use crate::provider::gemini_interactions::step::{MODEL_OUTPUT, SIGNATURE, StepKind, USER_INPUT, signature_of};
use crate::provider::healing::{Cure, signature_mark};
use crate::provider::rules::BodyPiece;
use std::collections::BTreeMap;

/// The mark of a model that refuses calls without a signature.
pub(super) fn unsigned_mark(body: JsonRef<'_>) -> String {
    format!("unsigned:{}", body.string("model"))
}

/// Removes the selected signatures, and the thoughts that have them. A call that then has no signature becomes a text;
/// with `refuses_unsigned` also one that had none, and a thought without a signature is removed.
pub(super) fn leave_out_signatures(
    cure: &mut Cure<'_>,
    is_refused: &dyn Fn(JsonRef<'_>) -> bool,
    refuses_unsigned: bool,
) {
    let list = cure.list;
    let (mut thoughts, mut names) = (Vec::new(), BTreeMap::new());
    let (mut run, mut has_unsigned) = (RunSignatures::default(), false);
    for (at, step) in list.items().enumerate() {
        let kind = StepKind::of(step);
        if !kind.is_of_model() {
            run = RunSignatures::default();
        }
        let signature = signature_of(step);
        let refused = signature.filter(|signature| is_refused(*signature));
        if let Some(refused) = refused {
            cure.refused.push(signature_mark(refused.as_raw()));
            cure.changed(|| format!("/input/{at}"));
        }
        run.read(kind, signature.is_some() && refused.is_none(), refused.is_some());
        match kind {
            StepKind::Thought if refused.is_some() || refuses_unsigned && signature.is_none() => thoughts.push(at),
            StepKind::FunctionCall if !run.is_call_signed && (run.has_lost || refuses_unsigned) => {
                names.insert(step.string("id"), step.string("name"));
                cure.edits.replace(step, BodyPiece::New(call_as_text(step)));
                cure.changed(|| format!("/input/{at}"));
                has_unsigned |= !run.has_lost;
            }
            StepKind::FunctionResult => {
                if let Some(name) = names.get(&step.string("call_id")) {
                    cure.edits.replace(step, BodyPiece::New(result_as_text(step, name)));
                }
            }
            _ if refused.is_some() => cure.edits.remove(step, SIGNATURE),
            _ => {}
        }
    }
    if let Some(at) = thoughts.first() {
        cure.changed(|| format!("/input/{at}"));
    }
    cure.remove_items(list, &mut |at, _| thoughts.binary_search(&at).is_ok());
    if refuses_unsigned && (has_unsigned || !thoughts.is_empty()) {
        cure.refused.push(unsigned_mark(cure.body));
    }
}

/// What is known of the signatures in a run of the model's steps.
#[derive(Default)]
struct RunSignatures {
    has_thought: bool,
    /// A signature of the run was refused.
    has_lost: bool,
    /// The last call has a signature, its own or that of a thought before it.
    is_call_signed: bool,
}

impl RunSignatures {
    fn read(&mut self, kind: StepKind, is_signed: bool, is_lost: bool) {
        match kind {
            StepKind::Thought => {
                self.has_thought |= is_signed;
                self.has_lost |= is_lost;
            }
            StepKind::FunctionCall => {
                self.has_lost |= is_lost;
                self.is_call_signed = self.has_thought || is_signed;
            }
            _ => {}
        }
    }
}

/// Writes a step with contents.
fn step_of(step_type: &str, write: impl FnOnce(&mut ArrayWriter<'_>)) -> String {
    let mut out = String::new();
    let mut step = ObjectWriter::new(&mut out);
    step.text("type", step_type).array("content", write);
    step.end();
    out
}

fn write_text(list: &mut ArrayWriter<'_>, text: &str) {
    let mut content = ObjectWriter::new(list.item());
    content.text("type", "text").text("text", text);
    content.end();
}

/// Returns what the model called as a text: `Called get_weather({"city":"Lisbon"}).`
fn call_as_text(call: JsonRef<'_>) -> String {
    let arguments = call.get("arguments").map_or("{}", JsonRef::as_raw);
    let text = format!("Called {}({arguments}).", call.string("name"));
    step_of(MODEL_OUTPUT, |list| write_text(list, &text))
}

/// Returns a result as what the user says: `Result of get_weather: 21 °C`. Contents are kept as they are.
fn result_as_text(step: JsonRef<'_>, name: &str) -> String {
    let result = step.get("result").unwrap_or_default();
    let is_error = step.get("is_error").and_then(JsonRef::as_bool) == Some(true);
    let head = format!("{} of {name}:", if is_error { "Error" } else { "Result" });
    step_of(USER_INPUT, |list| {
        if result.kind() != JsonKind::Array {
            let text = result.as_text().unwrap_or_else(|| result.as_raw().into());
            return write_text(list, &format!("{head} {text}"));
        }
        write_text(list, &head);
        result.items().for_each(|content| list.item().push_str(content.as_raw()));
    })
}
