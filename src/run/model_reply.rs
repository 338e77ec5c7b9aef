//! The transitions of a model call: offered, answered, failed, repeated.

use super::answer::{cut_error, refusal_of, refused_request};
use super::context::RunContext;
use super::effect::{EffectKind, EffectReply, SaveKind};
use super::event::RunEvent;
use super::journal::JournalEntry;
use super::model_call::{AnsweredCall, ModelCall, ModelResponse};
use super::outcome::RunStatus;
use super::response::declared_length;
use super::retry::requested_wait;
use super::state::{AfterAnswer, Run, RunState, wrong_state};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{HistoryEntry, free_id};
use crate::json::fits_memory;
use crate::message::MessageStatus;
use crate::provider::{AnswerStatus, Assembled, Pause, StreamAssembler, StreamEvent, codec, read_whole};
use std::rc::Rc;

impl Run {
    /// Offers a model call with this body.
    pub(super) fn offer_call(&mut self, attempt: u32, body: Rc<Vec<u8>>, context: &RunContext<'_>) {
        let provider = &self.setup.provider;
        let kind = EffectKind::CallModel {
            dialect: provider.dialect,
            url: provider.url.clone(),
            headers: provider.wire_headers(),
            body: body.clone(),
            stream: provider.stream,
        };
        self.offer(kind);
        let count = context.history.id_count() + self.live.id_count();
        let message_id = free_id(context.ids.new_id(), count, &|id| context.history.has_id(id) || self.live.has_id(id));
        self.state = RunState::AwaitingModel(Box::new(ModelCall {
            attempt,
            message_id,
            body,
            asked_at: context.now,
            received: 0,
            response: ModelResponse::None,
        }));
    }

    /// Repeats the model call after a pause.
    pub(super) fn ask_again(&mut self, context: &RunContext<'_>) {
        self.effects.clear();
        if let RunState::AwaitingRetry { call } = &self.state {
            let (attempt, body) = (call.attempt + 1, call.body.clone());
            self.offer_call(attempt, body, context);
        }
    }

    /// Handles the reply to a `call_model` effect.
    pub(super) fn model_reply(&mut self, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        let RunState::AwaitingModel(call) = &mut self.state else { return Ok(()) };
        match reply {
            EffectReply::ResponseStarted { status, headers } => {
                if !matches!(call.response, ModelResponse::None) {
                    return Err(wrong_state("the response has started already; feed its bytes"));
                }
                if declared_length(&headers).is_some_and(|length| length > self.setup.max_response_bytes) {
                    self.response_too_large(context);
                    return Ok(());
                }
                if !(200..300).contains(&status) || !self.setup.provider.stream {
                    call.response = ModelResponse::Whole { status, headers, body: Vec::new() };
                    return Ok(());
                }
                call.response = ModelResponse::Streaming(StreamAssembler::new(self.setup.provider.dialect));
                self.report_message_started();
            }
            EffectReply::ResponseEnd => match std::mem::replace(&mut call.response, ModelResponse::None) {
                ModelResponse::None => return Err(wrong_state("`response_started` must come before `response_end`")),
                ModelResponse::Streaming(mut assembler) => {
                    let assembled = self.credential_filter.redact_answer(assembler.finish());
                    self.container = assembler.container();
                    self.answered(assembled, context);
                }
                ModelResponse::Whole { status, headers, body } => self.whole(status, &headers, &body, context),
            },
            EffectReply::Response { .. } if !matches!(call.response, ModelResponse::None) => {
                return Err(wrong_state(
                    "the response has started already; feed its bytes and end it with `response_end`",
                ));
            }
            EffectReply::Response { body, .. } if body.len() as u64 > self.setup.max_response_bytes => {
                self.response_too_large(context);
            }
            EffectReply::Response { status, headers, body } => self.whole(status, &headers, &body, context),
            EffectReply::Failed { code, message, .. } => self.host_failed(code.as_deref(), &message, context),
            EffectReply::Started => {}
            EffectReply::ToolResult { .. } | EffectReply::Waited => {
                return Err(wrong_state("a `call_model` must be answered by a response or by `failed`"));
            }
        }
        Ok(())
    }

    /// Handles the host's report that the request failed.
    fn host_failed(&mut self, code: Option<&str>, message: &str, context: &mut RunContext<'_>) {
        let RunState::AwaitingModel(call) = &self.state else { return };
        let is_streaming = matches!(call.response, ModelResponse::Streaming(_));
        let code = code.map(|code| self.credential_filter.redact(code));
        let message = self.credential_filter.redact(message);
        let error =
            Error::new(ErrorCode::ModelError, format!("the model could not be reached: {message}")).with(|details| {
                details.text_or_null("hostCode", code.as_deref());
            });
        // A retry would be redirected again.
        let may_pass = !is_streaming && code.as_deref() != Some("redirect");
        self.call_failed(error, None, may_pass, context);
    }

    /// Handles a complete response that was not streamed.
    pub(super) fn whole(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        context: &mut RunContext<'_>,
    ) {
        if !fits_memory(body) {
            return self.response_too_large(context);
        }
        let (assembled, container) = read_whole(self.setup.provider.dialect, body);
        let assembled = self.credential_filter.redact_answer(assembled);
        if (200..300).contains(&status) {
            self.report_message_started();
            if let RunState::AwaitingModel(call) = &self.state
                && !assembled.text.is_empty()
            {
                let event = StreamEvent::TextDelta(assembled.text.clone());
                self.events.push(RunEvent::Stream { message_id: call.message_id.clone(), event });
            }
            self.container = container;
            return self.answered(assembled, context);
        }
        let (error, may_pass) = refused_request(status, &assembled);
        self.call_failed(error, requested_wait(headers, context.now), may_pass, context);
    }

    /// Repeats a failed call after a pause if `may_pass` and attempts are left; otherwise fails the run.
    pub(super) fn call_failed(
        &mut self,
        error: Error,
        requested_wait: Option<u64>,
        may_pass: bool,
        context: &mut RunContext<'_>,
    ) {
        let attempt = if let RunState::AwaitingModel(call) = &self.state { call.attempt } else { return };
        let Some(ms) = self.setup.retry.wait_after(attempt, requested_wait).filter(|_| may_pass) else {
            return self.end_early(RunStatus::Failed, error, context);
        };
        self.effects.clear();
        self.offer(EffectKind::Wait { ms });
        self.events.push(RunEvent::Retrying { attempt: attempt + 1, at: context.now.saturating_add(ms), error });
        let state = std::mem::replace(&mut self.state, RunState::AwaitingJournal { save: 0, cancelled: false });
        if let RunState::AwaitingModel(mut call) = state {
            call.response = ModelResponse::None;
            self.state = RunState::AwaitingRetry { call };
        }
    }

    /// Handles a complete answer.
    pub(super) fn answered(&mut self, assembled: Assembled, context: &mut RunContext<'_>) {
        let (message_id, asked_at) = if let RunState::AwaitingModel(call) = &self.state {
            (call.message_id.clone(), call.asked_at)
        } else {
            return;
        };
        let call = AnsweredCall { message_id: &message_id, asked_at };
        let provider = &self.setup.provider;
        let reason = assembled.finish_reason.as_deref().unwrap_or_default();
        let pause = codec(provider.dialect).pause_after(reason, provider.params.view());
        let (paused, goes_on) = (pause.is_some(), pause == Some(Pause::Resumes));
        let refusal = refusal_of(&assembled, paused);
        if let Some(why) = refusal {
            let error = cut_error(why, &assembled);
            let partial = self.message_of(&assembled, call, MessageStatus::Failed, context).map(|(message, _)| message);
            self.text = assembled.text;
            return self.end_with(RunStatus::Failed, error, partial);
        }
        self.effects.clear();
        if let Some(usage) = assembled.usage {
            self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
        }
        self.response_id = assembled.response_id.clone().or(self.response_id.take());
        self.text = assembled.text.clone();
        let whole = assembled.status != AnswerStatus::Incomplete || paused;
        let status = if whole { MessageStatus::Complete } else { MessageStatus::Truncated };
        if !whole {
            self.warn(
                Finding::warning(
                    FindingCode::Interrupted,
                    "the provider cut the answer (its length limit, usually); it is stored as truncated",
                )
                .of_message(&message_id),
            );
        }
        let Some((message, invocations)) = self.message_of(&assembled, call, status, context) else {
            return self.finish();
        };
        self.live.apply(HistoryEntry::Message(message.clone()));
        for invocation in &invocations {
            self.live.apply(HistoryEntry::Invocation(invocation.clone()));
        }
        if invocations.is_empty() && !goes_on {
            return self.finish();
        }
        let then = if invocations.is_empty() { AfterAnswer::CallAgain } else { AfterAnswer::Tools };
        let save = self.save(SaveKind::Write(vec![JournalEntry::Answered { message, invocations }]));
        self.state = RunState::AwaitingAnswerSave { save, then };
    }
}
