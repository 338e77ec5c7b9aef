//! The members of a body before its messages, which the rules of the dialect have checked.

use super::encoding_cache::EncodingCache;
use crate::finding::{Report, Severity};
use crate::id::hash_words;
use crate::json::{Json, JsonRef};
use crate::provider::{ProviderRequest, repair_head};
use std::rc::Rc;

/// Checks a head, an object that is not closed, unless it is the one of the last body (R70, R73): the application's
/// parameters may be ones that the model rejects. Returns the members of the repaired head, which replaces it; `None`
/// if the rules accept it. What is repaired is reported as a warning, unless the last repair of a head was the same.
pub fn check_head(
    head: &mut String,
    provider: &ProviderRequest,
    cache: &mut EncodingCache,
    report: &mut Report,
) -> Option<Rc<Json>> {
    let model = provider.maker().model;
    let hash = hash_words(hash_words(1, model.as_deref().unwrap_or_default().as_bytes()), head.as_bytes());
    let repaired = cache.checked_head(hash, report, &mut || {
        let closed = Json::trusted(format!("{head}}}"));
        let (repaired, findings) = repair_head(closed.view(), provider.dialect, model.as_deref())?;
        let findings = findings.into_iter().map(|finding| finding.with_severity(Severity::Warning)).collect();
        Some((Rc::new(repaired), findings))
    });
    if let Some(repaired) = &repaired {
        head.clear();
        head.push_str(repaired.as_str().strip_suffix('}').unwrap_or_default());
    }
    repaired
}

/// Returns a member of a head as it is sent: that of the repaired head, if it was repaired.
pub fn sent_member<'b>(name: &str, written: &'b Json, repaired: Option<JsonRef<'b>>) -> Option<JsonRef<'b>> {
    match repaired {
        Some(repaired) => repaired.get(name),
        None => Some(written.view()),
    }
}
