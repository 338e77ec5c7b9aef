//! The run waits for the model's response.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{HistoryEntry, free_id};
use crate::json::fits_memory;
use crate::message::{Message, MessageStatus};
use crate::owner::{ConversationCheck, check_continued, check_conversation};
use crate::provider::{AnswerStatus, Assembled, Pause, StateRefusal, StreamAssembler, StreamEvent, read_whole, spec};
use crate::run::answer::{AnsweredCall, answer_message, cut_error, message_without_parts, refusal_of, refused_request};
use crate::run::context::RunContext;
use crate::run::effect::{EffectKind, EffectReply, Method, SaveKind};
use crate::run::event::RunEvent;
use crate::run::incoming_answer::IncomingAnswer;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{EarlyStop, ModelRequest, NextState, RetryPause, TurnEnd, wrong_state};
use crate::run::outcome::RunStatus;
use crate::run::replay_safety::{ReplaySafety, RequestDelivery, RequestEvidence, evidence_of_failure};
use crate::run::response_limit::{declared_length, response_too_large};
use crate::run::retry::{ReplayQuestion, requested_wait};
use crate::run::setup::OnStop;
use crate::run::state::addressed_request::AddressedRequest;
use crate::run::state::awaiting_retry::{begin_pause, unsafe_replay};
use crate::run::state::background_call::BackgroundCall;
use crate::run::state::chain_restart::restart_refused_chain;
use crate::run::state::dropped_reasoning::report_transformations;
use crate::run::state::settled_request::{request_headers, settle_healed};
use crate::run::state_behavior::{AnsweredEffect, StateBehavior};
use crate::run::turn::RunData;
use std::rc::Rc;

mod background;
mod continuation;

/// The run waits for the model's response.
pub struct AwaitingModel {
    request: ModelRequest,
    /// The id of the answer's message.
    message_id: String,
    /// When the call was offered.
    asked_at: Ms,
    /// The number of bytes received by the present connection.
    received: u64,
    response: ReceivedResponse,
    /// The message of a streamed answer, without parts, as it is shown while it comes in.
    shown: Option<Box<Message>>,
    /// The answer, if the service works on it in the background.
    background: Option<Box<BackgroundCall>>,
}

/// A failure that the host reports.
struct HostFailure {
    code: Option<String>,
    message: String,
    sent: Option<bool>,
}

/// A model call that failed.
struct FailedCall {
    error: Error,
    /// The status of the response, if there was one.
    status: Option<u16>,
    evidence: RequestEvidence,
    /// The pause before the next attempt, in milliseconds; `None` if the call is not repeated.
    pause: Option<Ms>,
}

/// The received part of a response.
enum ReceivedResponse {
    /// The response has not started.
    None,
    /// A stream that is read as it comes.
    Streaming(StreamAssembler),
    /// A response that is not a stream or not a success. Its body is read when it is complete.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
}

impl AwaitingModel {
    /// Offers a `call_model`.
    ///
    /// # Errors
    /// `config_invalid` for a conversation whose id cannot be a part of the address.
    pub fn enter(turn: &mut RunData, request: ModelRequest, context: &RunContext<'_>) -> Result<Self> {
        let AddressedRequest { url, body, conversation } = AddressedRequest::new(turn, &request)?;
        turn.set_addressed(conversation);
        let provider = &turn.setup().provider;
        let kind = EffectKind::CallModel {
            dialect: provider.dialect,
            method: Method::Post,
            url,
            headers: request_headers(turn, context),
            body,
            stream: provider.stream,
            repeatable: !request.is_stateful,
            not_before: request.attempt.not_before,
        };
        turn.offer(kind);
        if request.is_stateful {
            turn.set_request_delivery(RequestDelivery::Unconfirmed);
        }
        let (history, live) = (context.history, turn.live());
        let count = history.id_count() + live.id_count();
        let message_id = free_id(context.ids.new_id(), count, &|id| history.has_id(id) || live.has_id(id));
        let (asked_at, response) = (context.now, ReceivedResponse::None);
        Ok(Self { request, message_id, asked_at, received: 0, response, shown: None, background: None })
    }

    /// Returns the answer that is coming in, as it is shown.
    pub fn incoming(&self, now: Ms) -> Option<IncomingAnswer<'_>> {
        IncomingAnswer::new(self.shown.as_ref()?, self.assembler()?, now.saturating_sub(self.asked_at))
    }

    /// Returns the end of a pause before the answer is picked up.
    pub fn retry_at(&self) -> Option<Ms> {
        self.background.as_ref()?.retry_at()
    }

    /// Returns the stream that is received, or of which the rest is picked up.
    fn assembler(&self) -> Option<&StreamAssembler> {
        match &self.response {
            ReceivedResponse::Streaming(assembler) => Some(assembler),
            ReceivedResponse::None | ReceivedResponse::Whole { .. } => self.background.as_ref()?.kept(),
        }
    }

    /// Returns the received part of a streamed answer as it is kept, with this status.
    fn cut_answer(&self, turn: &RunData, status: MessageStatus, context: &RunContext<'_>) -> Option<Message> {
        let call = self.answered_call(status, None);
        answer_message(turn, &self.assembler()?.partial(), &call, context).map(|(message, _)| message)
    }

    fn answered_call(&self, status: MessageStatus, container: Option<String>) -> AnsweredCall<'_> {
        let (message_id, asked_at) = (&*self.message_id, self.asked_at);
        AnsweredCall { message_id, asked_at, status, container, continuation: None }
    }

    /// Stops the run. An incomplete streamed answer is kept.
    fn stop(&self, turn: &mut RunData, stop: EarlyStop, context: &RunContext<'_>) -> NextState {
        let mut partial = self.cut_answer(turn, stop.message_status(), context);
        let is_cancelled = stop.status == RunStatus::Cancelled;
        if !is_cancelled && self.background.is_some() && turn.setup().on_stop == OnStop::Discard {
            // A resume picks the answer up: history gets nothing of the turn before, whoever has its request.
            partial
                .iter_mut()
                .filter_map(|partial| partial.answer.as_mut())
                .for_each(|answer| answer.service_mark = None);
        }
        if let Some(assembler) = self.assembler() {
            turn.set_text(assembler.partial().text);
            // A provider that stores conversations keeps the inputs of a cancelled call; history keeps them too.
            // With a conversation the end of the run keeps them, with the mark of the service.
            if is_cancelled && turn.setup().on_stop == OnStop::Discard && !turn.setup().owner.is_conversation() {
                turn.save_inputs();
            }
        }
        stop.with(partial).into()
    }

    /// Handles the reply to the `call_model`.
    ///
    /// # Errors
    /// `wrong_state` for a reply that does not fit; nothing has changed then.
    fn take_reply(
        &mut self,
        turn: &mut RunData,
        reply: EffectReply,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        if self.background.as_ref().is_some_and(|background| background.is_pausing()) {
            return self.end_pause(turn, &reply, context);
        }
        match (reply, &self.response) {
            (EffectReply::ResponseStarted { status, headers }, ReceivedResponse::None) => {
                Ok(self.on_start(turn, status, headers, context))
            }
            (EffectReply::ResponseStarted { .. }, _) => {
                Err(wrong_state("the response has started already; feed its bytes"))
            }
            (EffectReply::ResponseEnd, ReceivedResponse::None) => {
                Err(wrong_state("`response_started` must come before `response_end`"))
            }
            (EffectReply::ResponseEnd, _) => Ok(self.on_end(turn, context)),
            (EffectReply::Response { status, headers, body }, ReceivedResponse::None) => {
                Ok(self.on_response(turn, (status, &headers, &body), context))
            }
            (EffectReply::Response { .. }, _) => {
                Err(wrong_state("the response has started already; feed its bytes and end it with `response_end`"))
            }
            (EffectReply::Failed { code, message, sent }, _) => {
                let failure = HostFailure { code, message, sent };
                Ok(self.on_failure(turn, failure, context))
            }
            (EffectReply::Started | EffectReply::ToolResult { .. } | EffectReply::Pending | EffectReply::Waited, _) => {
                Err(wrong_state("a `call_model` must be answered by a response or by `failed`"))
            }
        }
    }

    /// Handles the status and the headers of a response.
    fn on_start(
        &mut self,
        turn: &mut RunData,
        status: u16,
        headers: Vec<(String, String)>,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let setup = turn.setup();
        if declared_length(&headers).is_some_and(|length| length > setup.max_response_bytes) {
            return Some(self.too_large(turn, context));
        }
        let is_streamed = self.background.as_ref().map_or(setup.provider.stream, |background| background.is_streamed());
        if !(200..300).contains(&status) || !is_streamed {
            self.response = ReceivedResponse::Whole { status, headers, body: Vec::new() };
            return None;
        }
        let kept = self.background.as_mut().and_then(|background| background.take_kept());
        let assembler = kept.unwrap_or_else(|| StreamAssembler::new(setup.provider.dialect));
        if self.shown.is_none() {
            let call = self.answered_call(MessageStatus::Complete, None);
            self.shown = message_without_parts(turn, &assembler.partial(), &call, context).map(Box::new);
            self.report_message_started(turn);
        }
        self.response = ReceivedResponse::Streaming(assembler);
        None
    }

    fn report_message_started(&self, turn: &mut RunData) {
        turn.emit(RunEvent::MessageStarted {
            message_id: self.message_id.clone(),
            turn: turn.totals().model_calls.saturating_sub(1),
            round: turn.live().position().rounds,
        });
    }

    /// Handles bytes of the response.
    ///
    /// # Errors
    /// `wrong_state` if the response has not started; nothing has changed then.
    pub fn receive(&mut self, turn: &mut RunData, bytes: &[u8], context: &RunContext<'_>) -> Result<Option<NextState>> {
        if matches!(self.response, ReceivedResponse::None) {
            return Err(wrong_state("`response_started` must come before the bytes"));
        }
        self.received = self.received.saturating_add(bytes.len() as u64);
        if self.received > turn.setup().max_response_bytes {
            return Ok(Some(self.too_large(turn, context)));
        }
        match &mut self.response {
            ReceivedResponse::None => {}
            ReceivedResponse::Whole { body, .. } => body.extend_from_slice(bytes),
            ReceivedResponse::Streaming(assembler) => {
                let (mut events, last_event) = (Vec::new(), assembler.meta().last_event);
                assembler.push(bytes, &mut events);
                self.emit_events(turn, events);
                self.note_background(turn);
                self.note_progress(last_event);
            }
        }
        Ok(None)
    }

    /// Handles the end of a response whose bytes were received.
    fn on_end(&mut self, turn: &mut RunData, context: &RunContext<'_>) -> Option<NextState> {
        match std::mem::replace(&mut self.response, ReceivedResponse::None) {
            ReceivedResponse::None => None,
            ReceivedResponse::Streaming(assembler) => self.on_stream_end(turn, assembler, context),
            ReceivedResponse::Whole { status, headers, body } => {
                self.on_response(turn, (status, &headers, &body), context)
            }
        }
    }

    /// Handles the end of a stream.
    fn on_stream_end(
        &mut self,
        turn: &mut RunData,
        mut assembler: StreamAssembler,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let mut events = Vec::new();
        let assembled = turn.credential_filter().redact_answer(assembler.finish_into(&mut events));
        if self.note_if_background(turn, &assembled) {
            self.emit_events(turn, events);
            return self.on_background_end(turn, (assembler, assembled), None, context);
        }
        Some(self.finish_answer(turn, assembled, assembler.container(), context))
    }

    /// Reports a complete answer that was not streamed.
    fn report_whole(&self, turn: &mut RunData, assembled: &Assembled) {
        self.report_message_started(turn);
        if !assembled.text.is_empty() {
            let event = StreamEvent::TextDelta(assembled.text.clone());
            turn.emit(RunEvent::Stream { message_id: self.message_id.clone(), event });
        }
    }

    /// Handles a complete response that was not streamed.
    fn on_response(
        &mut self,
        turn: &mut RunData,
        (status, headers, body): (u16, &[(String, String)], &[u8]),
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        if body.len() as u64 > turn.setup().max_response_bytes || !fits_memory(body) {
            return Some(self.too_large(turn, context));
        }
        if self.uses_get() {
            return self.on_fetched(turn, (status, headers, body), context);
        }
        let (assembled, container) = read_whole(turn.setup().provider.dialect, body);
        let assembled = turn.credential_filter().redact_answer(assembled);
        if (200..300).contains(&status) {
            if self.poll_if_pending(turn, &assembled, context) {
                return None;
            }
            self.report_whole(turn, &assembled);
            return Some(self.finish_answer(turn, assembled, container, context));
        }
        Some(self.on_refusal(turn, (status, headers, body), &assembled, context))
    }

    /// Handles a refused request.
    fn on_refusal(
        &self,
        turn: &mut RunData,
        (status, headers, body): (u16, &[(String, String)], &[u8]),
        assembled: &Assembled,
        context: &RunContext<'_>,
    ) -> NextState {
        let (error, may_pass) = refused_request(status, assembled);
        let requested = requested_wait(headers, context.now);
        let service = spec(turn.setup().provider.dialect).service_state.as_ref();
        let refusal = service
            .zip(assembled.error.as_ref())
            .and_then(|(service, error)| service.refusal_of(&self.request.body, status, error));
        let attempt = self.request.attempt.number;
        let retry = &turn.setup().retry;
        let pause = if refusal == Some(StateRefusal::Locked) {
            retry.for_locked_conversation().wait_after(attempt, requested)
        } else if may_pass {
            retry.wait_after(attempt, requested)
        } else {
            None
        };
        if pause.is_none()
            && let Some(next) = Self::end_refused_continuation(turn, status, assembled, refusal.is_some())
        {
            return next;
        }
        if let (Some(refusal), None) = (refusal, pause)
            && let Some(next) = restart_refused_chain(turn, refusal, context.now)
        {
            return next;
        }
        if spec(turn.setup().provider.dialect).rules.refusal_statuses.contains(&status)
            && refusal.is_none()
            && let Some(next) = self.heal(turn, body, context.now)
        {
            return next;
        }
        let error = match refusal {
            Some(refusal) => refusal.explain(error, &turn.setup().owner),
            None => error,
        };
        let failed = FailedCall { error, status: Some(status), evidence: RequestEvidence::ErrorStatus(status), pause };
        self.after_failure(turn, failed, context)
    }

    /// Repairs a request that the provider refused with a known error, and sends it once more. A refused request was
    /// not processed, so this is safe with a service that keeps the conversation (R27).
    fn heal(&self, turn: &mut RunData, answer: &[u8], now: Ms) -> Option<NextState> {
        let (call, dialect) = (turn.totals().model_calls, turn.setup().provider.dialect);
        let healed = turn.healing_mut().heal(call, (&self.request.body, dialect), answer)?;
        turn.close_effects();
        if self.request.is_stateful {
            turn.set_request_delivery(RequestDelivery::NotDelivered);
        }
        let refused = healed.refused.clone();
        let body = settle_healed(turn, &self.request.body, healed);
        let save = turn.save(SaveKind::Write(vec![JournalEntry::Healed { refused, restarts_chain: false }]));
        let request = ModelRequest { body: Rc::new(body), ..self.request.clone() };
        let attempt = request.attempt.number;
        let (request, save) = (Some(request), Some(save));
        Some(NextState::Pause(RetryPause { attempt, not_before: now, request, save, is_before_sending: false }))
    }

    /// Handles the host's report that the request failed.
    fn on_failure(&mut self, turn: &mut RunData, failure: HostFailure, context: &RunContext<'_>) -> Option<NextState> {
        let code = failure.code.map(|code| turn.credential_filter().redact(&code));
        let message = turn.credential_filter().redact(&failure.message);
        let error =
            Error::new(ErrorCode::ModelError, format!("the model could not be reached: {message}")).with(|details| {
                details.text_or_null("hostCode", code.as_deref());
            });
        let reported = evidence_of_failure(code.as_deref(), failure.sent);
        let (evidence, status) = match (&self.response, reported) {
            (ReceivedResponse::None, evidence) => (evidence, None),
            (ReceivedResponse::Streaming(_), _) => (RequestEvidence::AnswerBegan, None),
            (ReceivedResponse::Whole { status, .. }, RequestEvidence::Aborted) => {
                (RequestEvidence::Aborted, Some(*status))
            }
            // The status is an error, whatever else the body would have said.
            (ReceivedResponse::Whole { status, .. }, _) if !(200..300).contains(status) => {
                return self.on_end(turn, context);
            }
            (ReceivedResponse::Whole { status, .. }, _) => (RequestEvidence::MaybeProcessed, Some(*status)),
        };
        if self.background.is_some() {
            let is_final = code.as_deref() == Some("redirect") || reported == RequestEvidence::Aborted;
            return self.on_fetch_failure(turn, error, is_final, context);
        }
        // A retry would be redirected again.
        let pause = turn.setup().retry.wait_after(self.request.attempt.number, None);
        let pause = pause.filter(|_| code.as_deref() != Some("redirect"));
        Some(self.after_failure(turn, FailedCall { error, status, evidence, pause }, context))
    }

    /// Repeats a request that failed, or fails the run.
    fn after_failure(&self, turn: &mut RunData, failed: FailedCall, context: &RunContext<'_>) -> NextState {
        let FailedCall { error, status, evidence, pause } = failed;
        let safety = ReplaySafety::of(evidence, self.request.is_stateful);
        if self.request.is_stateful && safety == ReplaySafety::Safe {
            turn.set_request_delivery(RequestDelivery::NotDelivered);
        }
        let (Some(ms), ReplaySafety::Safe | ReplaySafety::NeedsApproval) = (pause, safety) else {
            return self.stop(turn, EarlyStop::failed(error), context);
        };
        // The request of an earlier process is built anew.
        let request = Some(self.request.clone()).filter(|request| !request.body.is_empty());
        if request.is_none() {
            turn.uncount_model_call();
        }
        let (attempt, not_before) = (self.request.attempt.number + 1, context.now.saturating_add(ms));
        let pause = RetryPause { attempt, not_before, request, save: None, is_before_sending: false };
        if safety == ReplaySafety::Safe {
            return begin_pause(turn, pause, error);
        }
        match turn.setup().retry.approve_unsafe_replay.clone() {
            Some(callback) => NextState::AskReplay(pause, ReplayQuestion { callback, status, error }),
            None => self.stop(turn, EarlyStop::failed(unsafe_replay(&error)), context),
        }
    }

    /// Fails the run without a retry, since the response to the same request would be too large again. An answer in the
    /// background stays where it is, for a resume with a higher limit.
    pub fn too_large(&mut self, turn: &mut RunData, context: &RunContext<'_>) -> NextState {
        let error = response_too_large(turn.setup().max_response_bytes);
        self.stop(turn, EarlyStop::failed(error), context)
    }

    /// Handles a complete answer.
    fn finish_answer(
        &mut self,
        turn: &mut RunData,
        assembled: Assembled,
        container: Option<String>,
        context: &RunContext<'_>,
    ) -> NextState {
        let assembled = turn.with_conversation(assembled);
        let pause = self.pause_after(turn, &assembled);
        let (is_paused, model_continues) = (pause.is_some(), pause == Some(Pause::Resumes));
        if let Some(why) = refusal_of(&assembled, is_paused) {
            self.end_background(turn);
            let error = cut_error(why, &assembled);
            let call = self.answered_call(MessageStatus::Failed, container);
            let partial = answer_message(turn, &assembled, &call, context).map(|(message, _)| message);
            turn.set_text(assembled.text);
            return EarlyStop::failed(error).with(partial).into();
        }
        if let Some(error) = check_owner_of_answer(turn, &assembled) {
            self.end_background(turn);
            return EarlyStop::failed(error).into();
        }
        turn.close_effects();
        report_transformations(turn, &assembled, &self.request.body);
        turn.add_answer(&assembled);
        let is_whole = assembled.status != AnswerStatus::Incomplete || is_paused;
        let status = if is_whole { MessageStatus::Complete } else { MessageStatus::Truncated };
        if !is_whole {
            let text = "the provider cut the answer (its length limit, usually); it is stored as truncated";
            turn.warn(Finding::warning(FindingCode::Interrupted, text).of_message(&self.message_id));
        }
        let continuation = assembled.continuation.clone().filter(|_| is_paused);
        let call = AnsweredCall { continuation, ..self.answered_call(status, container) };
        let Some((message, invocations)) = answer_message(turn, &assembled, &call, context) else {
            return NextState::SaveTurn(TurnEnd::Answer);
        };
        turn.apply(HistoryEntry::Message(message.clone()));
        for invocation in &invocations {
            turn.apply(HistoryEntry::Invocation(invocation.clone()));
        }
        if invocations.is_empty() && !model_continues {
            return NextState::SaveTurn(TurnEnd::Answer);
        }
        NextState::SaveAnswer(message, invocations)
    }
}

impl StateBehavior for AwaitingModel {
    fn reply(
        &mut self,
        turn: &mut RunData,
        answered: AnsweredEffect<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        self.take_reply(turn, answered.reply, context)
    }

    fn note_unsaved(&mut self, save: u64, turn: &mut RunData, failure: &Error) {
        if let Some(background) = &mut self.background {
            background.note_unsaved(save, turn, failure);
        }
    }

    fn cancel(&mut self, turn: &mut RunData, context: &RunContext<'_>) -> Option<NextState> {
        Some(self.stop(turn, EarlyStop::cancelled(), context))
    }
}

/// Compares the conversation of an answer with the owner of the state; returns the error that fails the run, before
/// anything of the answer is stored.
fn check_owner_of_answer(turn: &mut RunData, assembled: &Assembled) -> Option<Error> {
    let (setup, returned) = (turn.setup(), assembled.conversation_id.as_deref());
    if let Some(error) = turn.addressed().and_then(|asked| check_continued(asked, returned)) {
        return Some(error);
    }
    if let (Some(service), Some(id)) = (&spec(setup.provider.dialect).service_state, returned)
        && service.begun_conversation.is_some()
        && let Err(error) = service.address_of(&setup.provider.url, id)
    {
        return Some(error);
    }
    match check_conversation(&setup.owner, returned, setup.on_conflict) {
        ConversationCheck::Consistent => {}
        ConversationCheck::Warn(text) => turn.warn(Finding::warning(FindingCode::ConversationConflict, text)),
        ConversationCheck::ChangeOwner(owner) => turn.change_owner(owner),
        ConversationCheck::Fail(error) => return Some(error),
    }
    None
}
