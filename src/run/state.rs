//! All transitions of a run. What a state waits for, what ends it, and what comes next is here and nowhere else.

use super::answer::{cut_error, refusal_of, refused_request};
use super::credential_filter::CredentialFilter;
use super::effect::{EffectKind, EffectReply, RunInput, Save, SaveKind};
use super::event::RunEvent;
use super::journal::{JournalEntry, RecoveredRun};
use super::model_call::{ModelCall, ModelResponse};
use super::open_effects::OpenEffects;
use super::outcome::{RunOutcome, RunStatus};
use super::persistence::{stopped_entries, turn_entries, without_calls};
use super::redaction::Redactions;
use super::request::PendingRender;
use super::response::declared_length;
use super::retry::asked_wait;
use super::status::said;
use super::tools::{ToolRound, ends_run};
use super::{OnStop, RunContext, RunSetup};
use crate::error::{Code, Error, Result};
use crate::finding::{Finding, FindingCode, Report};
use crate::history::{History, HistoryEntry, Incoming, JoinBase, Origin, free_id, join};
use crate::json::{JsonStr, fits_memory};
use crate::message::{Message, MessageStatus, Role, Usage};
use crate::provider::{AnswerStatus, Assembled, Pause, StreamAssembler, StreamEvent, codec, read_whole};
use crate::replay::drop_uncited_sources;
use std::collections::VecDeque;
use std::rc::Rc;

/// One run.
pub struct Run {
    pub(super) setup: RunSetup,
    pub(super) live: History,
    pub(super) state: RunState,
    pub(super) effects: OpenEffects,
    pub(super) saves: VecDeque<Save>,
    pub(super) events: Vec<RunEvent>,
    /// Counts saves; an operation is named by it.
    pub(super) next: u64,
    pub(super) turns: u32,
    pub(super) usage: Option<Usage>,
    pub(super) report: Report,
    pub(super) text: JsonStr,
    pub(super) response_id: Option<String>,
    /// Of the newest answer.
    pub(super) container: Option<String>,
    /// Writes that failed, to be tried again in their order: what they hold is paid for (R58).
    pub(super) unsaved: VecDeque<Save>,
    /// Removes the request's credentials from a provider's error texts.
    pub(super) credential_filter: CredentialFilter,
    /// What is stored in the place of what was said (R12).
    pub(super) redactions: Redactions,
    /// The answer that was coming in when the run failed or was stopped.
    pub(super) cut_answer: Option<Message>,
}

/// What the run waits for.
pub(super) enum RunState {
    /// Its journal's first entry.
    Beginning { save: u64, cancelled: bool },
    /// What the application says to a reducer's question, before the model is called.
    Asking(Box<PendingRender>),
    /// The model's answer.
    Calling(Box<ModelCall>),
    /// The time to ask again.
    Waiting { call: Box<ModelCall> },
    /// The journal's entry of the answer.
    Recording { save: u64, then: AfterAnswer },
    /// The tools.
    Tools(ToolRound),
    /// The append of the turn, or the end of the journal.
    Ending { save: u64, status: RunStatus, error: Option<Error>, appends: bool },
    /// Nothing: it is over.
    Done(Box<RunOutcome>),
}

#[derive(Clone, Copy)]
pub(super) enum AfterAnswer {
    Tools,
    CallAgain,
}

impl Run {
    /// Begins a run with that input; without one it answers what history ends on.
    ///
    /// # Errors
    /// `config_invalid` and `invalid_input`; then nothing has happened.
    pub fn start(
        setup: RunSetup,
        input: Vec<Incoming>,
        input_id: Option<String>,
        context: &mut RunContext<'_>,
    ) -> Result<Self> {
        setup.check()?;
        if input.iter().any(|item| !matches!(item, Incoming::Message(_))) {
            return Err(Error::invalid(
                "the input of a run is messages; append tool results to the session first, then run without input",
            ));
        }
        if let Some(id) = input_id.as_deref().filter(|id| context.history.message(id).is_some()) {
            return Err(Error::invalid(format!(
                "a message with the id \"{id}\" is in history already; give the input another one, or run without input to answer it"
            )));
        }
        let mut live = History::new(context.seed);
        let origin = Origin {
            at: context.now,
            run_id: Some(setup.id.clone()),
            channel: setup.channel.clone(),
            message_ids: input_id.into_iter().collect(),
            ..Origin::default()
        };
        let joined = join(JoinBase::live(context.history, &live), input, &origin, context.ids);
        for entry in joined.entries {
            live.apply(entry);
        }
        let answered = context
            .history
            .messages()
            .last()
            .is_none_or(|last| last.role == Role::Assistant && !context.history.has_calls(last));
        if live.messages().is_empty() && answered {
            return Err(Error::invalid("there is nothing to answer: give `input`"));
        }
        let mut run = Self::new(setup, live);
        run.report = joined.report;
        let began =
            JournalEntry::beginning(&run.setup.id, context.now, &run.setup.provider, run.live.messages().to_vec());
        let save = run.save(SaveKind::Begin(began));
        run.state = RunState::Beginning { save, cancelled: false };
        Ok(run)
    }

    /// Goes on with a run that was cut off. The binding has taken it over before.
    ///
    /// # Errors
    /// `config_invalid`; then nothing has happened.
    pub fn resume(setup: RunSetup, recovered: RecoveredRun, context: &mut RunContext<'_>) -> Result<Self> {
        setup.check()?;
        recovered.check_credentials(&setup.provider)?;
        let mut run = Self::new(setup, recovered.live);
        run.turns = recovered.turns;
        run.usage = recovered.usage;
        let last = run.live.messages().last();
        if let Some(last) = last.filter(|last| last.role == Role::Assistant) {
            run.response_id = last.answer.as_ref().and_then(|answer| answer.response_id.clone());
            run.text = said(last);
            if run.live.has_calls(last) {
                run.begin_tools(&recovered.attempts, true, context);
                return Ok(run);
            }
        }
        run.call_model(context);
        Ok(run)
    }

    /// Takes what the host or the binding says. The only way in.
    ///
    /// # Errors
    /// Misuse (`unknown_effect`, `wrong_state`): the run stands as before.
    pub fn handle(&mut self, input: RunInput, context: &mut RunContext<'_>) -> Result<()> {
        match input {
            RunInput::Cancel => {
                self.cancel(context);
                Ok(())
            }
            RunInput::RetrySave => {
                if self.unsaved.is_empty() {
                    return Err(wrong("nothing waits to be stored"));
                }
                // Before what came later: a journal is read in its order.
                self.unsaved.append(&mut self.saves);
                std::mem::swap(&mut self.unsaved, &mut self.saves);
                Ok(())
            }
            RunInput::ReducerReply(given) => {
                self.told(given, context);
                Ok(())
            }
            RunInput::PersistReply(ask, said) => {
                self.persisted(&ask, said);
                Ok(())
            }
            RunInput::Saved { save, outcome } => {
                self.saved(save, outcome, context);
                Ok(())
            }
            RunInput::Bytes { effect, bytes } => self.take_bytes(&effect, &bytes, context),
            RunInput::ResponseTooLarge { effect } => self.take_oversize(&effect, context),
            RunInput::Answer { effect, reply } => self.answer(&effect, reply, context),
        }
    }

    fn answer(&mut self, effect: &str, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        if !self.is_open(effect)? {
            return Ok(());
        }
        match &mut self.state {
            RunState::Calling(_) => self.model_reply(reply, context),
            RunState::Waiting { .. } => match reply {
                EffectReply::Waited => {
                    self.ask_again(context);
                    Ok(())
                }
                _ => Err(wrong("a `wait` is answered by `waited`")),
            },
            RunState::Tools(_) => self.tool_reply(effect, reply, context),
            RunState::Beginning { .. }
            | RunState::Asking(_)
            | RunState::Recording { .. }
            | RunState::Ending { .. }
            | RunState::Done(_) => Ok(()),
        }
    }

    // ---- the model

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
        self.state = RunState::Calling(Box::new(ModelCall {
            attempt,
            message_id,
            body,
            asked_at: context.now,
            received: 0,
            response: ModelResponse::None,
        }));
    }

    fn ask_again(&mut self, context: &RunContext<'_>) {
        self.effects.clear();
        if let RunState::Waiting { call } = &self.state {
            let (attempt, body) = (call.attempt + 1, call.body.clone());
            self.offer_call(attempt, body, context);
        }
    }

    fn model_reply(&mut self, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        let RunState::Calling(call) = &mut self.state else { return Ok(()) };
        match reply {
            EffectReply::ResponseStarted { status, headers } => {
                if !matches!(call.response, ModelResponse::None) {
                    return Err(wrong("the response has started already"));
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
                self.message_started();
            }
            EffectReply::ResponseEnd => match std::mem::replace(&mut call.response, ModelResponse::None) {
                ModelResponse::None => return Err(wrong("`response_started` comes before `response_end`")),
                ModelResponse::Streaming(mut assembler) => {
                    let assembled = self.credential_filter.redact_answer(assembler.finish());
                    self.container = assembler.container();
                    self.answered(assembled, context);
                }
                ModelResponse::Whole { status, headers, body } => self.whole(status, &headers, &body, context),
            },
            EffectReply::Response { .. } if !matches!(call.response, ModelResponse::None) => {
                return Err(wrong("the response has started already; feed its bytes and say `response_end`"));
            }
            EffectReply::Response { body, .. } if body.len() as u64 > self.setup.max_response_bytes => {
                self.response_too_large(context);
            }
            EffectReply::Response { status, headers, body } => self.whole(status, &headers, &body, context),
            EffectReply::Failed { code, message, .. } => {
                let streaming = matches!(call.response, ModelResponse::Streaming(_));
                let (code, message) =
                    (code.map(|code| self.credential_filter.redact(&code)), self.credential_filter.redact(&message));
                let error = Error::new(Code::ModelError, format!("the model could not be reached: {message}")).with(
                    |details| {
                        details.text_or_null("hostCode", code.as_deref());
                    },
                );
                // A retry would be redirected again.
                let may_pass = !streaming && code.as_deref() != Some("redirect");
                self.call_failed(error, None, may_pass, context);
            }
            EffectReply::Started => {}
            EffectReply::ToolResult { .. } | EffectReply::Waited => {
                return Err(wrong("a `call_model` is answered by a response or by `failed`"));
            }
        }
        Ok(())
    }

    fn whole(&mut self, status: u16, headers: &[(String, String)], body: &[u8], context: &mut RunContext<'_>) {
        if !fits_memory(body) {
            return self.response_too_large(context);
        }
        let (assembled, container) = read_whole(self.setup.provider.dialect, body);
        let assembled = self.credential_filter.redact_answer(assembled);
        if (200..300).contains(&status) {
            self.message_started();
            if let RunState::Calling(call) = &self.state
                && !assembled.text.is_empty()
            {
                let event = StreamEvent::TextDelta(assembled.text.clone());
                self.events.push(RunEvent::Stream { message_id: call.message_id.clone(), event });
            }
            self.container = container;
            return self.answered(assembled, context);
        }
        let (error, may_pass) = refused_request(status, &assembled);
        self.call_failed(error, asked_wait(headers, context.now), may_pass, context);
    }

    pub(super) fn call_failed(
        &mut self,
        error: Error,
        asked: Option<u64>,
        may_pass: bool,
        context: &mut RunContext<'_>,
    ) {
        let attempt = if let RunState::Calling(call) = &self.state { call.attempt } else { return };
        let Some(ms) = self.setup.retry.wait_after(attempt, asked).filter(|_| may_pass) else {
            return self.end_early(RunStatus::Failed, error, context);
        };
        self.effects.clear();
        self.offer(EffectKind::Wait { ms });
        self.events.push(RunEvent::Retrying { attempt: attempt + 1, at: context.now.saturating_add(ms), error });
        let state = std::mem::replace(&mut self.state, RunState::Beginning { save: 0, cancelled: false });
        if let RunState::Calling(mut call) = state {
            call.response = ModelResponse::None;
            self.state = RunState::Waiting { call };
        }
    }

    fn answered(&mut self, assembled: Assembled, context: &mut RunContext<'_>) {
        let (message_id, asked_at) =
            if let RunState::Calling(call) = &self.state { (call.message_id.clone(), call.asked_at) } else { return };
        let provider = &self.setup.provider;
        let reason = assembled.finish_reason.as_deref().unwrap_or_default();
        let pause = codec(provider.dialect).pause_after(reason, provider.params.view());
        let (paused, goes_on) = (pause.is_some(), pause == Some(Pause::Resumes));
        let refusal = refusal_of(&assembled, paused);
        if let Some(why) = refusal {
            let error = cut_error(why, &assembled);
            let partial = self
                .message_of(&assembled, &message_id, MessageStatus::Failed, asked_at, context)
                .map(|(message, _)| message);
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
        let Some((message, invocations)) = self.message_of(&assembled, &message_id, status, asked_at, context) else {
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
        self.state = RunState::Recording { save, then };
    }

    // ---- the tools; what a task does is in `tools.rs`, where it leads is here

    fn begin_tools(
        &mut self,
        attempts: &crate::sorted::Sorted<String, u32>,
        resumed: bool,
        context: &mut RunContext<'_>,
    ) {
        let mut tasks = ToolRound::new(self, attempts, resumed, context.now);
        while let Some(task) = tasks.unoffered() {
            let effect = self.offer(task);
            tasks.offered(effect);
        }
        let closing = tasks.take_closing();
        if !closing.is_empty() {
            let mut journal = Vec::new();
            for entry in closing {
                self.live.apply(HistoryEntry::Result(entry.clone()));
                self.events.push(tasks.finished_event(&entry, &self.live));
                journal.push(JournalEntry::Finished(entry));
            }
            let save = self.save(SaveKind::Write(journal));
            tasks.wait_for(save);
        }
        self.state = RunState::Tools(tasks);
        self.tools_done(context);
    }

    fn tool_reply(&mut self, effect: &str, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        let RunState::Tools(tasks) = &mut self.state else { return Ok(()) };
        let Some(step) = tasks.reply(effect, reply, &mut self.live, context.now)? else { return Ok(()) };
        self.events.push(step.event);
        if step.over {
            self.effects.close(effect);
        }
        let save = self.save(SaveKind::Write(step.journal));
        if let RunState::Tools(tasks) = &mut self.state {
            tasks.wait_for(save);
        }
        Ok(())
    }

    fn tools_done(&mut self, context: &mut RunContext<'_>) {
        let RunState::Tools(tasks) = &self.state else { return };
        if !tasks.all_done() {
            return;
        }
        if ends_run(&self.live, &self.setup) { self.finish() } else { self.call_model(context) }
    }

    // ---- the end

    fn finish(&mut self) {
        self.effects.clear();
        let mut entries = turn_entries(&self.live);
        drop_uncited_sources(&mut entries, &self.setup.policy, &mut self.report);
        let save = self.save(SaveKind::Append(entries));
        self.state = RunState::Ending { save, status: RunStatus::Finished, error: None, appends: true };
    }

    fn cancel(&mut self, context: &mut RunContext<'_>) {
        match &mut self.state {
            // The answer cannot be stored, and the user gives it up. The journal stays, so the run can be resumed.
            RunState::Ending { .. } if !self.unsaved.is_empty() => {
                self.done(RunStatus::Cancelled, None, 0, false);
            }
            // Too late, or it is over: what is being written is whole.
            RunState::Ending { .. } | RunState::Done(_) => {}
            RunState::Beginning { cancelled, .. } => *cancelled = true,
            RunState::Asking(_)
            | RunState::Calling(_)
            | RunState::Waiting { .. }
            | RunState::Recording { .. }
            | RunState::Tools(_) => {
                let error = Error::new(Code::Aborted, "the run was cancelled");
                self.end_early(RunStatus::Cancelled, error, context);
            }
        }
    }

    pub(super) fn end_early(&mut self, status: RunStatus, error: Error, context: &mut RunContext<'_>) {
        let marked = if status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed };
        let mut partial = None;
        if let RunState::Calling(call) = &self.state
            && let ModelResponse::Streaming(assembler) = &call.response
        {
            let assembled = assembler.partial();
            partial = self
                .message_of(&assembled, &call.message_id, marked, call.asked_at, context)
                .map(|(message, _)| message);
            self.text = assembled.text;
        }
        self.end_with(status, error, partial);
    }

    fn end_with(&mut self, status: RunStatus, error: Error, partial: Option<Message>) {
        self.effects.clear();
        self.unsaved.clear();
        self.cut_answer = partial.clone().and_then(without_calls);
        let marked = if status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed };
        let keep = self.setup.on_stop == OnStop::Keep;
        let save = if keep {
            self.save(SaveKind::Append(stopped_entries(&self.live, partial, marked)))
        } else {
            if let Some(cut) = self.cut_answer.clone() {
                self.save(SaveKind::Write(vec![JournalEntry::Partial(cut)]));
            }
            let (code, message) = (error.code.as_str().to_owned(), error.message.clone());
            self.save(SaveKind::Fail(Box::new(JournalEntry::Failed { code, message })))
        };
        // A stop by the user is no error.
        let error = Some(error).filter(|_| status == RunStatus::Failed);
        self.state = RunState::Ending { save, status, error, appends: keep };
    }

    fn saved(&mut self, id: u64, outcome: Result<u64>, context: &mut RunContext<'_>) {
        let awaited = self.awaits(id);
        match (&mut self.state, outcome) {
            (RunState::Beginning { save, cancelled }, Ok(_)) if *save == id => {
                if *cancelled {
                    let error = Error::new(Code::Aborted, "the run was cancelled");
                    self.end_early(RunStatus::Cancelled, error, context);
                } else {
                    self.call_model(context);
                }
            }
            (RunState::Beginning { save, .. }, Err(error)) if *save == id => {
                self.done(RunStatus::Failed, Some(error), 0, false)
            }
            (RunState::Recording { save, then }, Ok(_)) if *save == id => match then {
                AfterAnswer::Tools => self.begin_tools(&crate::sorted::Sorted::new(), false, context),
                AfterAnswer::CallAgain => self.call_model(context),
            },
            (RunState::Tools(tasks), Ok(_)) => {
                tasks.written(id);
                self.tools_done(context);
            }
            (RunState::Ending { save, status, error, appends }, Ok(revision)) if *save == id => {
                let (status, error, appends) = (*status, error.take(), *appends);
                if appends {
                    self.events.push(RunEvent::Saved { revision });
                }
                self.done(status, error, revision, appends);
            }
            (RunState::Ending { save, status, error, appends }, Err(failure)) if *save == id && !*appends => {
                let (status, error) = (*status, error.take());
                // Nothing of the run is left elsewhere to clear away when another owner has it.
                if failure.code != Code::Conflict {
                    self.warn(Finding::warning(
                        FindingCode::Malformed,
                        format!("the run's journal could not be cleared away: {}", failure.message),
                    ));
                }
                self.done(status, error, 0, false);
            }
            (RunState::Ending { .. } | RunState::Recording { .. } | RunState::Tools(_), Err(error))
                if awaited && (error.code == Code::Conflict || error.code == Code::NotFound) =>
            {
                // Another owner took the run over: this one may do nothing more with it.
                self.done(RunStatus::Failed, Some(error), 0, false);
            }
            (RunState::Tools(tasks), Err(error)) if tasks.was_start(id) => {
                // A tool whose start is not written must not run.
                self.done(RunStatus::Failed, Some(error), 0, false);
            }
            (RunState::Ending { .. } | RunState::Recording { .. } | RunState::Tools(_), Err(error)) if awaited => {
                self.events.push(RunEvent::SaveFailed { error });
            }
            // A write that the run no longer waits for.
            (
                RunState::Beginning { .. }
                | RunState::Asking(_)
                | RunState::Calling(_)
                | RunState::Waiting { .. }
                | RunState::Recording { .. }
                | RunState::Tools(_)
                | RunState::Ending { .. }
                | RunState::Done(_),
                _,
            ) => {}
        }
    }

    /// Drops what the run holds in memory. It counts as running, and nothing comes of it any more.
    pub fn release(&mut self) {
        self.live = History::new(self.live.seed());
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        self.events.clear();
        self.state = RunState::Beginning { save: u64::MAX, cancelled: false };
    }

    fn done(&mut self, status: RunStatus, error: Option<Error>, revision: u64, saved: bool) {
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        let outcome = self.outcome_as(status, error, revision, saved);
        self.events.push(RunEvent::Finished(Box::new(outcome.clone())));
        self.state = RunState::Done(Box::new(outcome));
    }
}

pub(super) fn wrong(message: &str) -> Error {
    Error::new(Code::WrongState, message)
}
