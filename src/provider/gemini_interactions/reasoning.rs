//! Thoughts and their signatures: who can read them, and steps without them.

use super::Interactions;
use super::step::{SIGNATURE, StepKind, signature_of};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::gemini::signature_service::signature_service;
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningFormat, bare_model};

impl ReasoningFormat for Interactions {
    /// A result with a signature is checked with the answer that it belongs to.
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        let kind = StepKind::of(item);
        kind.is_of_model() || kind == StepKind::FunctionResult && signature_of(item).is_some()
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        match StepKind::of(item) {
            StepKind::Thought => Some(item.as_raw()),
            // Calls had a signature before Google's SDK 3. Results have one in its SDK for Python.
            StepKind::FunctionCall | StepKind::FunctionResult | StepKind::Other => {
                signature_of(item).map(JsonRef::as_raw)
            }
            _ => None,
        }
    }

    fn has_inner_reasoning(&self, items: &[JsonRef<'_>]) -> bool {
        let is_reasoning = |item: &&JsonRef<'_>| self.reasoning_of(**item).is_some();
        items.iter().skip_while(is_reasoning).any(|item| is_reasoning(&item))
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        let write = |item: &JsonRef<'_>| match StepKind::of(*item) {
            StepKind::Thought => None,
            StepKind::FunctionCall | StepKind::FunctionResult | StepKind::Other if signature_of(*item).is_some() => {
                let mut out = String::new();
                let mut object = ObjectWriter::new(&mut out);
                object.copy_all(*item, SIGNATURE);
                object.end();
                Some(out)
            }
            _ => Some(item.as_raw().to_owned()),
        };
        items.iter().map(write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        signature_service(host)
    }

    /// A signature is "corrupted or invalid" for another model (2026-11-25).
    fn reads_reasoning(&self, made_by: &str, model: &str) -> bool {
        bare_model(made_by) == bare_model(model)
    }
}
