//! Reports answers of the running tool loop that go back without the reasoning that their model demands (R73). Only the
//! newest messages are read, up to the user's: what precedes them is not demanded.

use super::body_builder::{BodyBuilder, BodySpan};
use super::encoded_text::item_hash;
use crate::finding::{Finding, FindingCode, Report};
use crate::json::{Json, JsonRef};
use crate::message::Role;
use crate::provider::{DialectSpec, ProviderRequest};
use crate::replay::{DraftMessage, RequestDraft};
use std::collections::BTreeMap;

/// Adds a warning for each answer with calls, after the last message of the user, that a body, as it is composed, has
/// without reasoning.
pub(super) fn report_missing(
    body: &BodyBuilder<'_, '_, '_>,
    draft: &RequestDraft<'_>,
    request: &ProviderRequest,
    report: &mut Report,
) {
    let Some(find) = body.encoder.spec.rules.find_missing_reasoning(request.params.view()) else { return };
    let mut findings = Vec::new();
    for (body_span, item) in running_loop(body, draft) {
        if !find(items_of(body, body_span).view()).is_empty() {
            findings.push(missing().of_message(&item.message.id));
        }
    }
    report.extend(findings.into_iter().rev());
}

/// The messages of the running tool loop in a body that is changed after it was composed.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopMessages {
    /// Their ids by the hashes of their items without reasoning; none if the model of the composed body demands no
    /// reasoning.
    ids: BTreeMap<u64, String>,
}

impl LoopMessages {
    /// Returns the messages of a composed body.
    pub fn new(body: &BodyBuilder<'_, '_, '_>, draft: &RequestDraft<'_>, request: &ProviderRequest) -> Self {
        let spec = body.encoder.spec;
        let mut ids = BTreeMap::new();
        if spec.rules.find_missing_reasoning(request.params.view()).is_none() {
            return Self { ids };
        }
        let settings = (spec.models.settings)(request);
        for (body_span, item) in running_loop(body, draft) {
            let list = items_of(body, body_span);
            let items: Vec<JsonRef<'_>> = list.view().items().collect();
            for bare in spec.reasoning.without_reasoning(&items, &settings).iter().flatten() {
                ids.insert(item_hash(spec, bare), item.message.id.clone());
            }
        }
        Self { ids }
    }

    /// As [`report_missing`](report_missing()), for the body that is sent. An answer that is no message of the composed
    /// body has its place.
    pub fn report_missing(&self, spec: &DialectSpec, body: JsonRef<'_>, report: &mut Report) {
        let Some(find) = spec.rules.find_missing_reasoning(body) else { return };
        let list = body.get(spec.items.list).unwrap_or_default();
        let missing_at = find(list);
        let Some(first) = missing_at.first() else { return };
        for (at, item) in list.items().enumerate().skip(*first).filter(|(at, _)| missing_at.binary_search(at).is_ok()) {
            report.push(match self.ids.get(&item_hash(spec, item.as_raw())) {
                Some(id) => missing().of_message(id),
                None => missing().at(format!("/{}/{at}", spec.items.list)),
            });
        }
    }
}

/// Iterates over the messages after the last one of the user, the newest first.
fn running_loop<'b, 'h>(
    body: &'b BodyBuilder<'_, '_, '_>,
    draft: &'b RequestDraft<'h>,
) -> impl Iterator<Item = (&'b BodySpan, &'b DraftMessage<'h>)> {
    let messages = body.spans.iter().rev().filter_map(|span| Some((span, draft.messages.get(span.index?)?)));
    messages.take_while(|(_, item)| item.message.role != Role::User)
}

fn items_of(body: &BodyBuilder<'_, '_, '_>, body_span: &BodySpan) -> Json {
    let range = body_span.span.start..body_span.span.end;
    Json::trusted(format!("[{}]", body.encoded(body_span).text.get(range).unwrap_or_default()))
}

fn missing() -> Finding {
    let sentence = "the model rejects an answer with calls without its reasoning (`reasoning_content`), which is not stored or may not be \
                    sent to this provider; turn thinking off for this request if it is refused";
    Finding::warning(FindingCode::MissingReasoning, sentence)
}
