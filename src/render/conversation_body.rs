//! The conversation that an application holds, as the input of its next run (R22).

use super::body::BodyComposer;
use super::encoding_cache::EncodingCache;
use super::reasoning_choice::ReasoningChoice;
use super::request::RenderRequest;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::Report;
use crate::history::History;
use crate::json::{Json, ObjectWriter};
use crate::message::SourceKind;
use crate::provider::extra_content;
use crate::replay::{HistoryScope, Policy, ReducerCache, ReducerReplies, ReplayInput, replay};

/// Returns the members of a body that contain a live turn (its list of messages, and its system messages), without the
/// context of history providers. The list may end in an answer, since the application adds a question.
///
/// # Errors
/// `config_invalid` if the request's parameters are invalid.
pub fn conversation_body(live: &History, request: &RenderRequest<'_>, now: Ms) -> Result<Json> {
    let (cache, replies, policy) = (ReducerCache::default(), ReducerReplies::default(), Policy::default());
    let nothing = History::new(live.seed());
    let input = ReplayInput {
        history: &nothing,
        live: Some(live),
        trimmed: None,
        delta: None,
        dialect: Some(request.provider.dialect),
        compaction: None,
        compacted_before: 0,
        handoffs: &[],
        scope: HistoryScope::Whole,
        sent: None,
        extra_content,
        policy: &policy,
        now,
        cache: &cache,
        replies: &replies,
    };
    // Without reducers there is no question.
    let mut draft = replay(&input, &mut Report::new()).unwrap_or_default();
    // The next run asks the history providers again.
    draft.messages.retain(|draft| draft.message.source.kind != SourceKind::Context);
    let composer = BodyComposer {
        cache: &mut EncodingCache::default(),
        stored_count: 0,
        request,
        reference: None,
        is_continued: true,
        reasoning: ReasoningChoice::All,
    };
    let mut body = Vec::new();
    composer.compose(&draft, &mut Report::new(), &mut body)?;
    let text = std::str::from_utf8(&body).ok().and_then(|text| Json::parse(text).ok());
    let body = text.ok_or_else(|| Error::new(ErrorCode::Internal, "the composed body is not JSON"))?;
    let mut head = String::new();
    let mut object = ObjectWriter::new(&mut head);
    request.provider.write_head(&mut object, request.tools, &mut Report::new())?;
    object.end();
    let head = Json::trusted(head);
    Ok(ObjectWriter::build(|out| {
        for (key, value) in body.view().entries() {
            if head.view().get(&key.as_text().unwrap_or_default()).is_none() {
                out.copy(key, value);
            }
        }
    }))
}
