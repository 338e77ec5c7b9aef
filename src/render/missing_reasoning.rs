//! Reports answers of the running tool loop that go back without the reasoning that their model demands (R73). Only the newest messages are
//! read, up to the user's: what precedes them is not demanded.

use super::body_builder::BodyBuilder;
use crate::finding::{Finding, FindingCode, Report};
use crate::json::JsonRef;
use crate::message::Role;
use crate::provider::ProviderRequest;
use crate::replay::RequestDraft;

/// Adds a warning for each answer with calls, after the last message of the user, that the body contains without reasoning.
pub(super) fn report_missing(
    body: &BodyBuilder<'_, '_, '_>,
    draft: &RequestDraft<'_>,
    request: &ProviderRequest,
    report: &mut Report,
) {
    let Some(lacks_reasoning) = body.encoder.codec.lacks_reasoning(request) else { return };
    let mut findings = Vec::new();
    for body_span in body.spans.iter().rev() {
        let Some(item) = body_span.index.and_then(|index| draft.messages.get(index)) else { continue };
        if item.message.role == Role::User {
            break;
        }
        let (start, end) = (body_span.span.start, body_span.span.end);
        let encoded = body.encoded(body_span).text.get(start..end).unwrap_or_default();
        let list = format!("[{encoded}]");
        let Ok(items) = JsonRef::parse(&list) else { continue };
        if items.items().any(lacks_reasoning) {
            let sentence = "the model rejects an answer with calls without its reasoning (`reasoning_content`), which is not stored or may not be \
                            sent to this provider; turn thinking off for this request if it is refused";
            findings.push(Finding::warning(FindingCode::MissingReasoning, sentence).of_message(&item.message.id));
        }
    }
    report.extend(findings.into_iter().rev());
}
