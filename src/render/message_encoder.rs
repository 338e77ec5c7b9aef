//! Encodes draft messages in a dialect, and finds those that its rules may reject.

use super::encoded_text::{EncodedText, item_hash};
use super::encoding_cache::WireEncoding;
use super::joined_message::JoinedMessage;
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::{Part, PartBody, Role};
use crate::provider::{
    DialectSpec, EncodeContext, ProviderRequest, ReasoningField, Settings, Wire, decode_result, spec, validate,
};
use crate::replay::{DraftMessage, DraftOrigin, DraftResult};
use crate::tool::ToolResult;

/// The model of a probe body, where rules depend on no vendor.
const ANY_MODEL: &str = "m";

/// The id of the response before a probe body, which the calls of its outputs are in.
const EARLIER_RESPONSE: &str = "resp";

/// The sentence about parts and members that only the dialect of a message has.
pub const LEFT_OUT_PARTS: &str = "what only another dialect has a form for is left out";

/// The sentence about reasoning of another dialect.
pub const LEFT_OUT_REASONING: &str = "reasoning stays with the provider that it came from; it is left out";

/// Encodes messages in the dialect of a request.
pub struct MessageEncoder {
    pub spec: &'static DialectSpec,
    settings: Settings,
}

impl MessageEncoder {
    /// Creates an encoder.
    pub fn new(provider: &ProviderRequest) -> Self {
        let spec = spec(provider.dialect);
        Self { spec, settings: (spec.models.settings)(provider) }
    }

    /// Returns a hash of the settings on which encodings depend.
    pub fn settings_signature(&self) -> u64 {
        self.settings.signature()
    }

    /// Encodes a message at the end of `out`, and reports what the dialect cannot express.
    pub fn encode(&self, out: &mut EncodedText, message: JoinedMessage<'_, '_>, report: &mut Report) -> WireEncoding {
        let (start, findings) = (out.text.len(), report.len());
        let mut wire = Wire::new(&mut out.text);
        let mut context = EncodeContext { deferred: message.before, settings: &self.settings, decode_result, report };
        self.spec.messages.encode(&mut wire, message.item, &mut context);
        let count = wire.count();
        let later_starts = wire.into_later_starts();
        if !self.is_native(message) {
            self.report_unsupported(message, count, report.len() > findings, report);
        }
        self.push_hashes(out, start, count, &later_starts);
        let text = out.text.get(start..).unwrap_or("");
        // A message without a wire form is valid, but it may hold the results of the messages before it.
        let is_empty = count == 0 && message.before.is_empty();
        let is_valid = is_empty || self.is_valid(text, message);
        let has_reasoning = self.may_have_reasoning(message)
            && in_list(text).view().items().any(|item| self.spec.reasoning.reasoning_of(item).is_some());
        let (cache_breakpoints, unique_names) = (self.cache_breakpoints_in(text), self.unique_names_in(text));
        WireEncoding { count, is_valid, cache_breakpoints, unique_names, has_reasoning }
    }

    /// Encodes an answer without its reasoning at the end of `out`. `encoded` is its text with reasoning.
    pub fn encode_bare(&self, out: &mut EncodedText, message: JoinedMessage<'_, '_>, encoded: &str) -> WireEncoding {
        let (start, list) = (out.text.len(), in_list(encoded));
        let items: Vec<JsonRef<'_>> = list.view().items().collect();
        let mut wire = Wire::new(&mut out.text);
        for item in self.spec.reasoning.without_reasoning(&items, &self.settings).into_iter().flatten() {
            wire.begin().push_str(&item);
        }
        let count = wire.count();
        let later_starts = wire.into_later_starts();
        self.push_hashes(out, start, count, &later_starts);
        let text = out.text.get(start..).unwrap_or("");
        let is_valid = count == 0 || self.is_valid(text, message);
        let (cache_breakpoints, unique_names) = (self.cache_breakpoints_in(text), self.unique_names_in(text));
        WireEncoding { count, is_valid, cache_breakpoints, unique_names, has_reasoning: false }
    }

    /// Adds the hashes of the wire messages in the text from `start` on.
    fn push_hashes(&self, out: &mut EncodedText, start: usize, count: u32, later_starts: &[usize]) {
        let mut from = start;
        for next in later_starts {
            let item = out.text.get(from..next.saturating_sub(1)).unwrap_or_default();
            out.hashes.push(item_hash(self.spec, item));
            from = *next;
        }
        if count > 0 {
            out.hashes.push(item_hash(self.spec, out.text.get(from..).unwrap_or_default()));
        }
    }

    /// Returns true if a message was received in the dialect of the request.
    fn is_native(&self, message: JoinedMessage<'_, '_>) -> bool {
        message.item.message.dialect == Some(self.spec.dialect())
    }

    /// Returns false if a message cannot have reasoning of its own dialect: it has none and nothing in its received
    /// form.
    fn may_have_reasoning(&self, message: JoinedMessage<'_, '_>) -> bool {
        let item = message.item;
        let is_kept =
            |part: &Part| matches!(part.body, PartBody::Reasoning(_) | PartBody::Opaque(_)) || part.template.is_some();
        item.message.role == Role::Assistant
            && self.is_native(message)
            && (item.message.template.is_some()
                || item.message.parts.iter().any(is_kept)
                || item.calls.iter().any(|call| {
                    let has_template = |result: &ToolResult| result.template.is_some();
                    call.invocation.template.is_some()
                        || matches!(call.result, Some(DraftResult::Stored(result)) if has_template(result))
                }))
    }

    /// Returns the number of cache breakpoints in a text, or more: a string may contain the words, too. Returns 0 if
    /// there is no limit.
    pub fn cache_breakpoints_in(&self, text: &str) -> usize {
        self.spec.prompt_cache.breakpoints.map_or(0, |breakpoints| text.matches(breakpoints.member).count())
    }

    /// Returns the number of names in a text that are unique in a body, or more.
    fn unique_names_in(&self, text: &str) -> usize {
        self.spec.rules.unique_names.as_ref().map_or(0, |names| text.matches(names.mark).count())
    }

    /// Reports the content of another dialect's message that is not in the wire form: reasoning, and parts and members
    /// that this dialect does not have. `is_reported` is true if the encoder reported something itself.
    fn report_unsupported(
        &self,
        message: JoinedMessage<'_, '_>,
        count: u32,
        mut is_reported: bool,
        report: &mut Report,
    ) {
        let item = message.item;
        let parts = &item.message.parts;
        let mut left_out = |what| {
            let finding = Finding::info(FindingCode::UnsupportedPart, what).of_message(&item.message.id);
            report.push(finding.with_action(Action::Dropped));
        };
        let sends_reasoning = count > 0 && matches!(self.settings.reasoning, ReasoningField::Named(_));
        if !sends_reasoning && parts.iter().any(is_reasoning) {
            left_out(LEFT_OUT_REASONING);
            is_reported = true;
        }
        let has_opaque = parts.iter().any(|part| matches!(part.body, PartBody::Opaque(_)));
        if has_opaque || !is_reported && item.has_extra_content(!sends_reasoning) {
            left_out(LEFT_OUT_PARTS);
        }
    }

    /// Returns true if the dialect's rules accept an encoded message.
    ///
    /// Content that was encoded from neutral values is valid by construction. Content in its received form is checked
    /// once, between two messages that no provider rejects.
    fn is_valid(&self, text: &str, message: JoinedMessage<'_, '_>) -> bool {
        // The first half of a round is checked together with the message that holds its results.
        if message.item.results_go_on || !message.is_as_received(self.spec.dialect()) {
            return true;
        }
        let findings = validate(self.probe(text, message).as_bytes(), self.spec.dialect());
        findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Returns true for a message that begins with what its provider accepts at the beginning of the list only.
    pub fn begins_list(&self, item: &DraftMessage<'_>) -> bool {
        let begins_list = self.spec.provider_compaction.as_ref().is_some_and(|compaction| compaction.begins_list);
        begins_list && self.spec.begins_with_compaction(item.message)
    }

    /// Returns a body with an encoded message and the messages before it, between two messages that no provider
    /// rejects; before the second one only, if it begins the list.
    fn probe(&self, text: &str, message: JoinedMessage<'_, '_>) -> String {
        let plain = self.spec.body.placeholder_message;
        let model = if self.settings.model.is_empty() { ANY_MODEL } else { self.settings.model };
        let mut probe = String::new();
        let mut object = ObjectWriter::new(&mut probe);
        object.text("model", model);
        // The call of a late result is in an earlier message.
        let has_earlier_call = message.item.is_acknowledged || message.item.origin == DraftOrigin::LateResult;
        if let Some(service) = self.spec.service_state.as_ref().filter(|_| has_earlier_call) {
            object.json(service.chain.member, (service.chain.continued)(EARLIER_RESPONSE).view());
        }
        if let Some((member, value)) = self.spec.body.required_with_calls {
            object.raw(member, value);
        }
        let list = object.key(self.spec.items.list);
        list.push('[');
        if !self.begins_list(message.item) {
            list.push_str(plain);
            list.push(',');
        }
        for (at, item) in message.before.iter().enumerate() {
            let deferred = message.before.get(..at).unwrap_or(&[]);
            let mut context =
                EncodeContext { deferred, settings: &self.settings, decode_result, report: &mut Report::new() };
            self.spec.messages.encode(&mut Wire::new(list), item, &mut context);
            list.push(',');
        }
        if !text.is_empty() {
            list.push_str(text);
            list.push(',');
        }
        list.push_str(plain);
        list.push(']');
        object.end();
        probe
    }
}

fn is_reasoning(part: &Part) -> bool {
    matches!(&part.body, PartBody::Reasoning(text) if !text.is_empty())
}

/// Returns wire messages, separated by commas, as a list.
fn in_list(text: &str) -> Json {
    Json::trusted(format!("[{text}]"))
}
