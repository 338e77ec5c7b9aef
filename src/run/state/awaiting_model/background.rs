//! An answer on which the service works in the background: it is picked up where it is, instead of being asked for
//! again (R18).

use super::{AwaitingModel, FailedCall, ReceivedResponse};
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::free_id;
use crate::message::MessageStatus;
use crate::provider::{AnswerForm, AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_whole};
use crate::run::answer::{cut_error, refusal_of, refused_request};
use crate::run::background_answer::BackgroundAnswer;
use crate::run::context::RunContext;
use crate::run::effect::{EffectKind, EffectReply, Method, SaveKind};
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{CallAttempt, EarlyStop, ModelRequest, NextState, wrong_state};
use crate::run::replay_safety::{RequestDelivery, RequestEvidence};
use crate::run::retry::{is_transient, requested_wait};
use crate::run::state::background_call::{
    BackgroundCall, IdStorage, address_of, can_pick_up, is_answer_lost, is_asked_for, is_pending, refuses_stream,
    resumable,
};
use crate::run::state::settled_request::request_headers;
use crate::run::turn::RunData;
use std::rc::Rc;

impl AwaitingModel {
    /// Picks up an answer to a request of an earlier process, after the pause that ends at `not_before`.
    pub fn pick_up(
        turn: &mut RunData,
        answer: BackgroundAnswer,
        not_before: Option<Ms>,
        context: &RunContext<'_>,
    ) -> Self {
        turn.count_model_call();
        turn.restore_request(&answer);
        let is_stateful = turn.setup().owner.is_stateful();
        if is_stateful {
            turn.set_request_delivery(RequestDelivery::Unconfirmed);
        }
        let (history, live) = (context.history, turn.live());
        let count = history.id_count() + live.id_count();
        let message_id = free_id(context.ids.new_id(), count, &|id| history.has_id(id) || live.has_id(id));
        let mut background = BackgroundCall::new(answer);
        // A whole answer has no events on the way.
        if !turn.setup().provider.stream {
            background.form = AnswerForm::Whole;
        }
        let mut state = Self {
            request: ModelRequest { attempt: CallAttempt::FIRST, body: Rc::default(), is_stateful },
            message_id,
            asked_at: background.answer.asked_at,
            received: 0,
            response: ReceivedResponse::None,
            shown: None,
            background: Some(Box::new(background)),
        };
        match not_before {
            Some(end) => state.pause(turn, end.saturating_sub(context.now), true, context.now),
            None => state.fetch(turn, context),
        }
        state
    }

    /// Offers the request that picks the answer up.
    fn fetch(&mut self, turn: &mut RunData, context: &RunContext<'_>) {
        self.save_id(turn, None);
        self.response = ReceivedResponse::None;
        let Some(background) = &mut self.background else { return };
        self.received = 0;
        background.uses_get = true;
        let not_before = background.pause.take().map(|(end, _)| end).filter(|end| *end > context.now);
        if let (AnswerForm::Stream { after }, Some(kept)) = (&mut background.form, &background.kept) {
            *after = kept.meta().last_event;
        }
        let is_streamed = background.is_streamed();
        let Some(url) = address_of(turn, &background.answer.response, background.form) else { return };
        turn.close_effects();
        let mut headers = request_headers(turn, context);
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        turn.offer(EffectKind::CallModel {
            dialect: turn.setup().provider.dialect,
            method: Method::Get,
            url,
            headers,
            body: Rc::default(),
            stream: is_streamed,
            repeatable: true,
            not_before,
        });
    }

    /// Offers a `wait` before the answer is picked up.
    fn pause(&mut self, turn: &mut RunData, ms: Ms, is_retry: bool, now: Ms) {
        self.response = ReceivedResponse::None;
        if let Some(background) = &mut self.background {
            background.pause = Some((now.saturating_add(ms), is_retry));
            turn.close_effects();
            turn.offer(EffectKind::Wait { ms });
        }
    }

    /// Handles the reply to a `wait`.
    ///
    /// # Errors
    /// `wrong_state` for any other reply.
    pub(super) fn end_pause(
        &mut self,
        turn: &mut RunData,
        reply: &EffectReply,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        if *reply != EffectReply::Waited {
            return Err(wrong_state("a `wait` must be answered by `waited`"));
        }
        self.fetch(turn, context);
        Ok(None)
    }

    /// Stores the id of an answer on which the service works in the background, as soon as the service has named it.
    pub(super) fn note_background(&mut self, turn: &mut RunData) {
        let ReceivedResponse::Streaming(assembler) = &self.response else { return };
        if self.background.is_none() && (assembler.meta().is_background || is_asked_for(turn)) {
            let response = assembler.meta().id.clone();
            self.keep_background(turn, response);
        }
    }

    /// As [`note_background`](Self::note_background), of an answer that came as one value.
    fn keep_background(&mut self, turn: &mut RunData, response: Option<String>) {
        let Some(response) = response.filter(|_| self.background.is_none()) else { return };
        // A server may repeat a key (R68).
        if turn.credential_filter().redact(&response) != response {
            return;
        }
        let answer = turn.background_answer(response, self.asked_at);
        if can_pick_up(turn, &answer) {
            let call = BackgroundCall { storage: IdStorage::Unsaved, ..BackgroundCall::new(answer) };
            self.background = Some(Box::new(call));
            self.save_id(turn, None);
        }
    }

    /// Queues a save of the answer's id, if it is not stored, and of this entry after it.
    fn save_id(&mut self, turn: &mut RunData, then: Option<JournalEntry>) {
        let Some(background) = &mut self.background else { return };
        let id = background.unsaved_entry();
        let has_id = id.is_some();
        let entries: Vec<JournalEntry> = id.into_iter().chain(then).collect();
        if entries.is_empty() {
            return;
        }
        let save = turn.save(SaveKind::Write(entries));
        if has_id {
            background.storage = IdStorage::Saved(save);
        }
    }

    /// Notes that an attempt to pick the answer up has brought something, if this event is new.
    pub(super) fn note_progress(&mut self, event_before: Option<u64>) {
        if let (ReceivedResponse::Streaming(assembler), Some(background)) = (&self.response, &mut self.background)
            && assembler.meta().last_event > event_before
        {
            background.attempt = CallAttempt::FIRST.number;
            background.was_reached |= background.uses_get;
        }
    }

    /// Notes that the service gives the answer to be picked up.
    fn note_reached(&mut self) {
        if let Some(background) = &mut self.background {
            background.was_reached = true;
        }
    }

    /// Notes in the journal that the service gives no answer any more: a resume asks for another one.
    pub(super) fn end_background(&mut self, turn: &mut RunData) {
        if self.background.take().is_some() {
            turn.save(SaveKind::Write(vec![JournalEntry::Background(None)]));
        }
    }

    /// Handles the end of a stream of an answer in the background. `failure`: why it broke off, if the host says that.
    pub(super) fn on_background_end(
        &mut self,
        turn: &mut RunData,
        (assembler, assembled): (StreamAssembler, Assembled),
        failure: Option<Error>,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let reason = assembled.finish_reason.as_deref();
        if is_pending(turn, reason) {
            self.keep(assembler);
            self.poll(turn, context);
            return None;
        }
        match assembled.status {
            AnswerStatus::Truncated => {
                let why = refusal_of(&assembled, false).unwrap_or_default();
                let error = failure.unwrap_or_else(|| cut_error(why, &assembled));
                self.reconnect(turn, assembler, error, context)
            }
            // The stream has failed; whether the answer has, the service says.
            AnswerStatus::Failed if reason.is_none() => {
                self.keep(assembler);
                self.fetch_whole(turn, context);
                None
            }
            _ => Some(self.finish_answer(turn, assembled, assembler.container(), context)),
        }
    }

    pub(super) fn emit_events(&self, turn: &mut RunData, events: Vec<StreamEvent>) {
        for event in events {
            let event = turn.credential_filter().redact_event(event);
            turn.emit(RunEvent::Stream { message_id: self.message_id.clone(), event });
        }
    }

    fn keep(&mut self, assembler: StreamAssembler) {
        if let Some(background) = &mut self.background {
            background.kept = Some(assembler);
        }
    }

    /// Picks up the rest of a stream that broke off, after the usual pause.
    fn reconnect(
        &mut self,
        turn: &mut RunData,
        assembler: StreamAssembler,
        error: Error,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let can_continue = assembler.meta().last_event.is_some() || !assembler.has_content();
        self.keep(assembler);
        let attempt = self.background.as_ref().map_or(u32::MAX, |background| background.attempt);
        if !can_continue {
            self.fetch_whole(turn, context);
            return None;
        }
        match turn.setup().retry.wait_after(attempt, None) {
            Some(ms) => self.retry(turn, ms, error, context.now),
            // The service streams nothing more; it may have the answer all the same.
            None => self.poll(turn, context),
        }
        None
    }

    /// Pauses after a failure, and stores the end of the pause: after a kill the run waits for it too.
    fn retry(&mut self, turn: &mut RunData, ms: Ms, error: Error, now: Ms) {
        let Some(background) = &mut self.background else { return };
        background.attempt += 1;
        let (attempt, at) = (background.attempt, now.saturating_add(ms));
        self.save_id(turn, Some(JournalEntry::Retrying { attempt, not_before: at, is_pick_up: true }));
        turn.emit(RunEvent::Retrying { attempt, at, error });
        self.pause(turn, ms, true, now);
    }

    /// Asks for the whole answer after the pause of a service that is not ready.
    fn poll(&mut self, turn: &mut RunData, context: &RunContext<'_>) {
        let poll_ms = resumable(turn).map_or(0, |resumable| resumable.poll_ms);
        if let Some(background) = &mut self.background {
            background.form = AnswerForm::Whole;
            background.attempt = CallAttempt::FIRST.number;
        }
        self.pause(turn, poll_ms, false, context.now);
    }

    fn fetch_whole(&mut self, turn: &mut RunData, context: &RunContext<'_>) {
        if let Some(background) = &mut self.background {
            background.form = AnswerForm::Whole;
        }
        self.fetch(turn, context);
    }

    /// Stores the id of an answer in the background, if this response names one. Returns true for an answer that can be
    /// picked up.
    pub(super) fn note_if_background(&mut self, turn: &mut RunData, assembled: &Assembled) -> bool {
        // A server that was asked for a stream may answer with one value.
        let is_background = assembled.is_background || is_asked_for(turn);
        if is_background && is_pending(turn, assembled.finish_reason.as_deref()) {
            self.keep_background(turn, assembled.response_id.clone());
        }
        self.background.is_some()
    }

    /// Begins the pause before the next poll, if a whole response says that its answer is not ready. Returns false if
    /// it is ready.
    pub(super) fn poll_if_pending(
        &mut self,
        turn: &mut RunData,
        assembled: &Assembled,
        context: &RunContext<'_>,
    ) -> bool {
        let waits = self.note_if_background(turn, assembled) && is_pending(turn, assembled.finish_reason.as_deref());
        if waits {
            self.poll(turn, context);
        }
        waits
    }

    /// Returns true if the next response is no response to the request.
    pub(super) fn uses_get(&self) -> bool {
        self.background.as_ref().is_some_and(|background| background.uses_get)
    }

    /// Handles a complete response with which the answer is picked up.
    pub(super) fn on_fetched(
        &mut self,
        turn: &mut RunData,
        (status, headers, body): (u16, &[(String, String)], &[u8]),
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        if !(200..300).contains(&status) {
            return self.on_refused_fetch(turn, (status, headers, body), context);
        }
        let dialect = turn.setup().provider.dialect;
        let (assembled, container, rest) = match self.background.as_mut().and_then(|background| background.kept.take())
        {
            Some(mut assembler) => {
                let mut events = Vec::new();
                let assembled = assembler.read_rest(body, &mut events);
                let container = assembler.container();
                self.keep(assembler);
                (assembled, container, Some(events))
            }
            None => {
                let (assembled, container) = read_whole(dialect, body);
                (assembled, container, None)
            }
        };
        let assembled = turn.credential_filter().redact_answer(assembled);
        // A response names its status. A body that broke off, or a proxy's page, says nothing of the answer.
        if assembled.finish_reason.is_none() {
            let why = refusal_of(&assembled, false).unwrap_or_default();
            return self.retry_or_fail(turn, cut_error(why, &assembled), None, context);
        }
        self.note_reached();
        if is_pending(turn, assembled.finish_reason.as_deref()) {
            self.emit_events(turn, rest.unwrap_or_default());
            self.poll(turn, context);
            return None;
        }
        match rest.filter(|_| self.shown.is_some()) {
            Some(events) => self.emit_events(turn, events),
            None => self.report_whole(turn, &assembled),
        }
        Some(self.finish_answer(turn, assembled, container, context))
    }

    /// Asks for the answer again after a pause. After the last attempt the run fails; the answer stays where it is.
    fn retry_or_fail(
        &mut self,
        turn: &mut RunData,
        error: Error,
        requested: Option<Ms>,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let attempt = self.background.as_ref().map_or(u32::MAX, |background| background.attempt);
        match turn.setup().retry.wait_after(attempt, requested) {
            Some(ms) => {
                self.retry(turn, ms, error, context.now);
                None
            }
            None => Some(self.stop(turn, EarlyStop::failed(error), context)),
        }
    }

    fn on_refused_fetch(
        &mut self,
        turn: &mut RunData,
        (status, headers, body): (u16, &[(String, String)], &[u8]),
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let background = self.background.as_ref()?;
        if background.is_streamed() && refuses_stream(status) {
            self.fetch_whole(turn, context);
            return None;
        }
        let (assembled, _) = read_whole(turn.setup().provider.dialect, body);
        let assembled = turn.credential_filter().redact_answer(assembled);
        let (error, may_pass) = refused_request(status, &assembled);
        if is_answer_lost(status) {
            return self.on_lost_answer(turn, (status, error), context);
        }
        let requested = requested_wait(headers, context.now);
        if !(may_pass && is_transient(status)) {
            return Some(self.stop(turn, EarlyStop::failed(error), context));
        }
        self.retry_or_fail(turn, error, requested, context)
    }

    /// Handles the status of a service that does not have the answer, or gives none to be picked up.
    fn on_lost_answer(
        &mut self,
        turn: &mut RunData,
        (status, error): (u16, Error),
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        let background = self.background.as_ref()?;
        // Another answer of such an address could not be picked up either.
        if background.storage != IdStorage::Earlier && !background.was_reached && matches!(status, 400 | 405) {
            let error = error.clone().with_message(format!(
                "the service works on the answer in the background, and the address takes no `GET` for it, as of a gateway that passes \
                 `POST` only; let it pass `GET` to the same path with the id of the response, or leave `background` out of `params`; the \
                 answer is kept for a `resume` through an address that takes it: {}",
                error.message
            ));
            return Some(self.stop(turn, EarlyStop::failed(error), context));
        }
        // It may be found a moment later, and another one costs as much again.
        match turn.setup().retry.wait_after(background.attempt, None) {
            Some(ms) => {
                self.retry(turn, ms, error, context.now);
                None
            }
            None => Some(self.ask_again(turn, (status, error), context)),
        }
    }

    /// Handles the host's report that the answer could not be picked up. `is_final`: another attempt fails too.
    pub(super) fn on_fetch_failure(
        &mut self,
        turn: &mut RunData,
        error: Error,
        is_final: bool,
        context: &RunContext<'_>,
    ) -> Option<NextState> {
        match std::mem::replace(&mut self.response, ReceivedResponse::None) {
            ReceivedResponse::Streaming(mut assembler) if !is_final => {
                // An event whose end was received is complete.
                let mut events = Vec::new();
                let assembled = turn.credential_filter().redact_answer(assembler.finish_into(&mut events));
                self.emit_events(turn, events);
                return self.on_background_end(turn, (assembler, assembled), Some(error), context);
            }
            response => self.response = response,
        }
        if is_final {
            return Some(self.stop(turn, EarlyStop::failed(error), context));
        }
        self.retry_or_fail(turn, error, None, context)
    }

    /// Asks the model again, since the service does not have the answer, by the rules of a request without an answer
    /// (R27). An answer of which a part was shown is not asked for again by the run itself.
    fn ask_again(&mut self, turn: &mut RunData, (status, error): (u16, Error), context: &RunContext<'_>) -> NextState {
        let text = "the service does not have the answer any more on which it worked in the background";
        turn.warn(Finding::warning(FindingCode::Interrupted, text).of_message(&self.message_id));
        let error = error.clone().with_message(format!("{text}: {}", error.message));
        if self.assembler().is_some_and(has_blocks) {
            let partial = self.cut_answer(turn, MessageStatus::Failed, context);
            self.end_background(turn);
            return EarlyStop::failed(error).with(partial).into();
        }
        self.end_background(turn);
        let pause = turn.setup().retry.wait_after(self.request.attempt.number, None);
        // A conversation may have the request; a response can be continued again.
        let is_conversation = turn.setup().owner.is_conversation();
        let evidence =
            if is_conversation { RequestEvidence::MaybeProcessed } else { RequestEvidence::ErrorStatus(status) };
        let failed = FailedCall { error, status: Some(status), evidence, pause };
        self.after_failure(turn, failed, context)
    }
}

/// Returns true if something of an answer was received.
fn has_blocks(assembler: &StreamAssembler) -> bool {
    let mut has_any = false;
    assembler.visit_blocks(&mut |_| has_any = true);
    has_any
}
