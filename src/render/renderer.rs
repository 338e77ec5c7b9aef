//! The renderer of a session. It keeps the encodings of messages and the replies of reducers from one body to the next.

use super::body::{BodyComposer, ComposedBody};
use super::body_buffer::BodyBuffer;
use super::body_filter::ComposedItem;
use super::composed_head::ComposedHead;
use super::encoded_text::EncodedText;
use super::encoding_cache::EncodingCache;
use super::joined_message::JoinedMessage;
use super::last_request::{LastRequest, OwnRequest, RequestRepetition};
use super::message_encoder::MessageEncoder;
use super::prefix_reuse::PrefixReuse;
use super::reasoning_choice::{ReasoningChoice, ReasoningContext};
use super::request::{RenderInput, RenderRequest};
use super::service_reference::ServiceReference;
use super::settled_body::BodyLedger;
use super::summary_body::summary_body;
use super::system_placement::SystemPlacement;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, Report, limit_report};
use crate::history::{History, StoredSummary};
use crate::json::Json;
use crate::message::{Dialect, KeptHead, Message, Part, PrefixMark};
use crate::owner::{Delta, StateOwner, transfer_findings, unsent_system_findings};
use crate::provider::{check_owner, extra_content, spec};
use crate::replay::{
    DraftOrigin, HistoryScope, PendingQuestion, QuestionKind, ReducerCache, ReducerQuestion, ReducerReplies,
    ReducerReply, ReplayChoice, ReplayInput, SentRequest, TrimmedResults, choice_of, replay,
};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A request body and its report.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// UTF-8 JSON; empty if [`Renderer::step_into`] wrote it to another buffer.
    pub body: Vec<u8>,
    /// Every message or call that was dropped, moved, renamed or synthesized.
    pub report: Report,
    /// The number of leading messages that are byte-identical to the last body of this dialect.
    pub stable_prefix: u32,
    /// How many bytes of the last body of this dialect are repeated, and what changed the rest (R72); both as they were
    /// composed.
    pub prefix: PrefixReuse,
    /// What the request contains, for its answer; `None` if no provider of the dialect binds reasoning to it, or a
    /// service keeps the rest.
    pub mark: Option<PrefixMark>,
    /// The highest source number so far. The next tool continues numbering after it (R9).
    pub max_source: Option<u64>,
    /// What the service keeps of the request that began the chain, besides its messages, if a service keeps that.
    pub kept_head: Option<KeptHead>,
    /// What of history the request contains, if this is its run's first choice, or another one than before.
    pub choice: Option<Box<ReplayChoice>>,
    /// What the next request of the session repeats, if the policy asks for that.
    pub sent: Option<Rc<SentRequest>>,
}

/// The result of a step of a render.
#[derive(Clone, Debug)]
pub enum RenderStep {
    /// The body is complete.
    Done(Rendered),
    /// The service keeps other instructions or tools with the chain of responses: the request would not contain those
    /// of this one. A request that begins the chain again does.
    HeadChanged,
    /// The application must be asked first; then [`Renderer::take_reply`], and the render continues.
    Question(ReducerQuestion),
}

/// The renderer of a session.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    /// The encodings of messages, by the name of the dialect.
    encodings: BTreeMap<String, Box<EncodingCache>>,
    /// Results without the sources that no answer cites.
    trimmed: TrimmedResults,
    /// Token counts and summaries.
    reducer_cache: ReducerCache,
    /// The last request of the session, if this process has sent it.
    last_request: Option<OwnRequest>,
    /// True if a request of this process let the service drop reasoning, and no head says so.
    is_drop_unsaved: bool,
    /// True if an earlier report had the warning about the built-in freshness window.
    warned_of_default: bool,
}

impl Renderer {
    /// Clears all caches, when the history was replaced.
    pub fn clear(&mut self) {
        self.encodings.clear();
        self.trimmed = TrimmedResults::default();
        self.reducer_cache.clear();
        self.last_request = None;
        self.is_drop_unsaved = false;
    }

    /// Returns the last request of the session: that of this process, of which it knows more than the head, or the one
    /// that another process has stored since. `head` is what the session's head has.
    #[must_use]
    pub fn last_request(&self, head: Option<&[u8]>) -> Option<LastRequest> {
        let own = self.last_request.as_ref().and_then(|own| own.newest(head)).cloned();
        own.or_else(|| LastRequest::stored(head))
    }

    /// Keeps the last request of the session, which its head does not have yet. `head` is what it has.
    pub fn keep_last_request(&mut self, request: LastRequest, head: Option<&[u8]>) {
        self.last_request = Some(OwnRequest::unstored(request, head));
    }

    /// Keeps the last request of the session, which its head has.
    pub fn keep_stored_request(&mut self, request: LastRequest) {
        self.last_request = Some(OwnRequest::stored(request));
    }

    /// Returns the last request, to write it with the next append, if neither it nor a newer one is in the session's
    /// head, which has this.
    #[must_use]
    pub fn unsaved_last_request(&self, head: Option<&[u8]>) -> Option<LastRequest> {
        self.last_request.as_ref()?.newest_unstored(head).cloned()
    }

    /// Notes that the session's head has this request.
    pub fn on_last_request_saved(&mut self, saved: &LastRequest) {
        if let Some(own) = &mut self.last_request {
            own.on_stored(saved);
        }
    }

    /// Notes that a request that no run sends lets the service drop reasoning: later requests of the session do so,
    /// too.
    pub fn note_drop(&mut self) {
        self.is_drop_unsaved = true;
    }

    /// Returns true if the session's head is to be told so with the next append.
    #[must_use]
    pub fn has_unsaved_drop(&self) -> bool {
        self.is_drop_unsaved
    }

    /// Notes that the session's head says so.
    pub fn on_drop_saved(&mut self) {
        self.is_drop_unsaved = false;
    }

    /// Takes the application's reply to a question of this render.
    pub fn take_reply(&mut self, question: ReducerQuestion, reply: ReducerReply, replies: &mut ReducerReplies) {
        self.reducer_cache.take_reply(question, reply, replies);
    }

    /// Returns the summaries of reducers that are not stored yet.
    #[must_use]
    pub fn unsaved_summaries(&self) -> Vec<StoredSummary> {
        self.reducer_cache.unsaved_summaries().to_vec()
    }

    /// Removes summaries that are stored from those to store.
    pub fn on_summaries_saved(&mut self, stored: &[StoredSummary]) {
        self.reducer_cache.on_saved(stored);
    }

    /// Builds the next body of a history that the session owns, without asking the application: a reducer that has a
    /// question is skipped.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn render(
        &mut self,
        history: &History,
        live: Option<&History>,
        request: &RenderRequest<'_>,
        now: Ms,
    ) -> Result<Rendered> {
        let mut replies = ReducerReplies::default();
        loop {
            match self.step(
                RenderInput {
                    history,
                    live,
                    owner: &StateOwner::Session,
                    begins_chain: false,
                    handoffs: &[],
                    agent: None,
                    scope: HistoryScope::Whole,
                    sent: None,
                    now,
                },
                request,
                &replies,
            )? {
                RenderStep::Done(rendered) => return Ok(rendered),
                // Not reached: no service keeps a head for the owner `session`.
                RenderStep::HeadChanged => return Err(unexpected_head()),
                RenderStep::Question(question) => {
                    let reply = ReducerReply::Failed("nobody is there to be asked".into());
                    self.take_reply(question, reply, &mut replies);
                }
            }
        }
    }

    /// Builds the next body, or returns the question of a reducer. After [`take_reply`](Self::take_reply) the same step
    /// continues, with the same input.
    ///
    /// # Errors `config_invalid` if the request's parameters or tools are invalid; `conflict` if another run closed the
    /// calls of the live turn in the service's conversation.
    pub fn step(
        &mut self,
        input: RenderInput<'_>,
        request: &RenderRequest<'_>,
        replies: &ReducerReplies,
    ) -> Result<RenderStep> {
        let mut body = Vec::new();
        let mut step = self.step_into(input, request, replies, &mut body)?;
        if let RenderStep::Done(rendered) = &mut step {
            rendered.body = body;
        }
        Ok(step)
    }

    /// As [`step`](Self::step), for a body that is changed before it is sent, by a filter or since something was
    /// refused before: it has all reasoning, and the ledger leaves out what the provider does not accept in the changed
    /// body.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn step_before_changes(
        &mut self,
        input: RenderInput<'_>,
        request: &RenderRequest<'_>,
        replies: &ReducerReplies,
    ) -> Result<(RenderStep, Option<Box<BodyLedger>>)> {
        let mut body = Vec::new();
        let build = BodyBuild { replies, is_changed: true };
        let (mut step, ledger) = self.build(input, request, build, &mut body)?;
        if let RenderStep::Done(rendered) = &mut step {
            rendered.body = body;
        }
        Ok((step, ledger))
    }

    /// As [`step`](Self::step), with the body written to `body`.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn step_into(
        &mut self,
        input: RenderInput<'_>,
        request: &RenderRequest<'_>,
        replies: &ReducerReplies,
        body: &mut dyn BodyBuffer,
    ) -> Result<RenderStep> {
        self.build(input, request, BodyBuild { replies, is_changed: false }, body).map(|(step, _)| step)
    }

    fn build(
        &mut self,
        input: RenderInput<'_>,
        request: &RenderRequest<'_>,
        BodyBuild { replies, is_changed }: BodyBuild<'_>,
        body: &mut dyn BodyBuffer,
    ) -> Result<(RenderStep, Option<Box<BodyLedger>>)> {
        let highest_stored = input.history.highest_source();
        let nothing = History::new(input.history.seed());
        let input = input.without_stored_messages(&nothing);
        let RenderInput { history, live, owner, .. } = input;
        let delta = unacknowledged(&input, request)?;
        let is_reference = |message: &Message, part: &Part| {
            message.dialect.is_some_and(|dialect| spec(dialect).is_kept_by_service(part))
        };
        let mut report: Report = transfer_findings((owner, request.provider.dialect), history, live, &is_reference);
        let stored_count = history.messages().len();
        self.trimmed.update(history, request.policy);
        let caches = ReplayCaches { trimmed: &self.trimmed, cache: &self.reducer_cache, replies };
        let repeat = RequestRepetition::of(&input, request, delta.is_some())?;
        let replay_input = replay_input(&repeat.apply(input), request, delta.as_ref(), caches);
        let before = report.len();
        let draft = match replay(&replay_input, &mut report) {
            Ok(draft) => draft,
            Err(pending) => {
                return Ok((RenderStep::Question(complete(*pending, stored_count, request)?), None));
            }
        };
        let of_replay = report.get(before..).unwrap_or_default();
        let is_choice = !matches!(input.scope, HistoryScope::Whole) && !draft.is_repeated;
        let choice = is_choice.then(|| Box::new(choice_of(&draft, &replay_input, of_replay)));
        let sent = repeat.sent(|| SentRequest::of(&draft, &replay_input, of_replay));
        let reference = ServiceReference::of(&input, delta.as_ref(), request);
        let provider = request.provider_of_body(owner.is_stateful() || input.begins_chain);
        let request = &RenderRequest { provider: &provider, ..*request };
        let cache = self.encodings.entry(request.provider.dialect.as_str().to_owned()).or_default();
        let head = ComposedHead::new(&draft, request, cache, &mut report)?;
        let kept_head = head.kept(reference.as_ref(), (request, input.agent), cache);
        if reference.as_ref().is_some_and(|reference| reference.keeps_other_than(kept_head)) {
            return Ok((RenderStep::HeadChanged, None));
        }
        report.extend(unsent_system(provider.dialect, delta.as_ref(), reference.as_ref()));
        let is_kept_by_service = delta.is_some() && reference.as_ref().is_none_or(|reference| reference.continues);
        let context = ReasoningContext { history: Some(history), is_kept_by_service, agent: input.agent };
        let reasoning =
            if is_changed { ReasoningChoice::AfterChanges(context) } else { ReasoningChoice::Accepted(context) };
        let reference = reference.as_ref();
        let composer = BodyComposer { cache, stored_count, request, reference, is_continued: false, reasoning };
        let ComposedBody { stable_prefix, mut prefix, mark, ledger } =
            composer.compose_after(&head, &draft, &mut report, body);
        prefix.cut = repeat.cut(draft.cut);
        self.warn_of_default_once(&mut report);
        limit_report(&mut report);
        let max_source = highest_stored.max(live.and_then(History::highest_source));
        let rendered =
            Rendered { body: Vec::new(), report, stable_prefix, prefix, mark, kept_head, max_source, choice, sent };
        Ok((RenderStep::Done(rendered), ledger))
    }

    /// Returns the items in the list of the body that [`step`](Self::step) has composed of this input, with the
    /// messages that they are of.
    ///
    /// # Errors
    /// As [`step`](Self::step); `internal` if a reducer has a question, which a composed body has not.
    pub fn composed_items(
        &self,
        input: RenderInput<'_>,
        request: &RenderRequest<'_>,
        replies: &ReducerReplies,
    ) -> Result<Vec<ComposedItem>> {
        let delta = unacknowledged(&input, request)?;
        let caches = ReplayCaches { trimmed: &self.trimmed, cache: &self.reducer_cache, replies };
        let repeat = RequestRepetition::of(&input, request, delta.is_some())?;
        let draft = replay(&replay_input(&repeat.apply(input), request, delta.as_ref(), caches), &mut Report::new())
            .map_err(|_| Error::new(ErrorCode::Internal, "a composed body has an open question of a reducer"))?;
        let encoder = MessageEncoder::new(request.provider);
        let system = SystemPlacement::of(encoder.spec, &draft, request.instructions, &mut Report::new());
        let mut items = Vec::new();
        for index in (0..draft.messages.len()).filter(|index| !system.is_in_member(*index)) {
            let Some(message) = JoinedMessage::at(&draft, index) else { continue };
            let mut encoded = EncodedText::default();
            encoder.encode(&mut encoded, message, &mut Report::new());
            let is_stored = matches!(message.item.origin, DraftOrigin::Stored(_) | DraftOrigin::Live(_));
            items.extend(Json::trusted(format!("[{}]", encoded.text)).view().items().map(|item| ComposedItem {
                json: item.to_owned(),
                message: is_stored.then(|| message.item.message.id.clone()),
                is_result_of_acknowledged_call: message.item.is_acknowledged,
            }));
        }
        Ok(items)
    }

    /// Removes the warning about the built-in freshness window from all reports of a session but the first.
    fn warn_of_default_once(&mut self, report: &mut Report) {
        let was_warned = self.warned_of_default;
        self.warned_of_default |= report.iter().any(|finding| finding.code == FindingCode::StaleDefault);
        if was_warned {
            report.retain(|finding| finding.code != FindingCode::StaleDefault);
        }
    }
}

/// How a body is built.
struct BodyBuild<'r> {
    replies: &'r ReducerReplies,
    /// True if the body is changed before it is sent.
    is_changed: bool,
}

/// What a replay reads besides the conversation.
struct ReplayCaches<'r> {
    trimmed: &'r TrimmedResults,
    cache: &'r ReducerCache,
    replies: &'r ReducerReplies,
}

fn replay_input<'r>(
    input: &RenderInput<'r>,
    request: &RenderRequest<'r>,
    delta: Option<&'r Delta<'r>>,
    caches: ReplayCaches<'r>,
) -> ReplayInput<'r, 'r> {
    // What a service has is not sent, whatever stands for it.
    let end = if delta.is_some() { 0 } else { input.scope.end_of(input.history) };
    let compacted_before = request.compacted_before(input.history, end);
    ReplayInput {
        history: input.history,
        live: input.live,
        trimmed: Some(caches.trimmed),
        delta,
        dialect: Some(request.provider.dialect),
        compaction: request.compaction(input.history).filter(|_| compacted_before == 0),
        compacted_before,
        extra_content,
        policy: request.policy,
        handoffs: input.handoffs,
        scope: input.scope,
        sent: input.sent,
        now: input.now,
        cache: caches.cache,
        replies: caches.replies,
    }
}

/// Returns what the owner's service has not acknowledged; `None` if no service owns the conversation.
///
/// # Errors
/// As [`check_owner`] and [`Delta::check_calls_are_open`].
fn unacknowledged<'r>(input: &RenderInput<'r>, request: &RenderRequest<'_>) -> Result<Option<Delta<'r>>> {
    let RenderInput { history, live, owner, .. } = *input;
    if !owner.is_stateful() {
        return Ok(None);
    }
    check_owner(request.provider, owner)?;
    let delta = Delta::with_compaction(owner, request.provider.dialect, (history, live), request.compaction(history));
    delta.check_calls_are_open()?;
    let spec = spec(request.provider.dialect);
    Ok(Some(delta.repeating(&|message, is_leading| spec.is_outside_list(message, is_leading))))
}

/// Reports the system messages that a request does not have, since the service keeps the instructions.
fn unsent_system(dialect: Dialect, delta: Option<&Delta<'_>>, reference: Option<&ServiceReference>) -> Vec<Finding> {
    let system = spec(dialect).system.as_ref().map(|system| system.name);
    let is_left_out = reference.zip(system).is_some_and(|(reference, system)| reference.leaves_out(system));
    delta.filter(|_| is_left_out).map(unsent_system_findings).unwrap_or_default()
}

fn unexpected_head() -> Error {
    Error::new(ErrorCode::Internal, "a request that contains the history cannot have what only a chain keeps")
}

/// Completes a reducer's question. The messages that a summary covers become a body for the same provider.
fn complete(pending: PendingQuestion<'_>, stored_count: usize, request: &RenderRequest<'_>) -> Result<ReducerQuestion> {
    let PendingQuestion { mut question, covered } = pending;
    if let Some(draft) = covered {
        question.question = QuestionKind::Summarize(summary_body(draft, stored_count, request)?);
    }
    Ok(question)
}
