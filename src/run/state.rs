//! All transitions of a run. What a state waits for, what ends it, and what comes next is here and nowhere else.

use super::answer::{cut_error, refusal_of, refused_request};
use super::call::{Call, Response};
use super::credential_filter::CredentialFilter;
use super::effect::{EffectKind, Input, Reply, Save, SaveKind};
use super::event::RunEvent;
use super::journal::{JournalEntry, Recovered};
use super::open_effects::OpenEffects;
use super::outcome::{Outcome, RunStatus};
use super::persistence::{stopped_entries, turn_entries, without_calls};
use super::redaction::Redactions;
use super::request::Asking;
use super::response::declared_length;
use super::retry::asked_wait;
use super::told::said;
use super::tools::{Tasks, ends_run};
use super::{Desk, OnStop, Setup};
use crate::error::{Code, Error, Result};
use crate::finding::{Finding, Report};
use crate::history::{Entry, History, Incoming, Origin, free_id, join};
use crate::json::{JsonStr, fits_memory};
use crate::message::{Message, MessageStatus, Role, Usage};
use crate::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_whole};
use crate::replay::drop_uncited;
use std::collections::VecDeque;
use std::rc::Rc;

/// One run.
pub struct Run {
    pub(super) setup: Setup,
    pub(super) live: History,
    pub(super) state: State,
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
pub(super) enum State {
    /// Its journal's first entry.
    Beginning { save: u64, cancelled: bool },
    /// What the application says to a reducer's question, before the model is called.
    Asking(Box<Asking>),
    /// The model's answer.
    Calling(Box<Call>),
    /// The time to ask again.
    Waiting { call: Box<Call> },
    /// The journal's entry of the answer.
    Recording { save: u64, then: Then },
    /// The tools.
    Tools(Tasks),
    /// The append of the turn, or the end of the journal.
    Ending { save: u64, status: RunStatus, error: Option<Error>, appends: bool },
    /// Nothing: it is over.
    Done(Box<Outcome>),
}

#[derive(Clone, Copy)]
pub(super) enum Then {
    Tools,
    CallAgain,
}

impl Run {
    /// Begins a run with that input; without one it answers what history ends on.
    ///
    /// # Errors
    /// `config_invalid` and `invalid_input`; then nothing has happened.
    pub fn start(setup: Setup, input: Vec<Incoming>, input_id: Option<String>, desk: &mut Desk<'_>) -> Result<Self> {
        setup.check()?;
        if input.iter().any(|item| !matches!(item, Incoming::Message(_))) {
            return Err(Error::invalid(
                "the input of a run is messages; append tool results to the session first, then run without input",
            ));
        }
        if let Some(id) = input_id.as_deref().filter(|id| desk.history.message(id).is_some()) {
            return Err(Error::invalid(format!(
                "a message with the id \"{id}\" is in history already; give the input another one, or run without input to answer it"
            )));
        }
        let mut live = History::new(desk.seed);
        let origin = Origin {
            at: desk.now,
            run_id: Some(setup.id.clone()),
            channel: setup.channel.clone(),
            message_ids: input_id.into_iter().collect(),
            ..Origin::default()
        };
        let joined = join(Some(desk.history), &live, input, &origin, desk.ids);
        for entry in joined.entries {
            live.apply(entry);
        }
        let answered = desk
            .history
            .messages()
            .last()
            .is_none_or(|last| last.role == Role::Assistant && !desk.history.has_calls(last));
        if live.messages().is_empty() && answered {
            return Err(Error::invalid("there is nothing to answer: give `input`"));
        }
        let mut run = Self::new(setup, live);
        run.report = joined.report;
        let began = JournalEntry::beginning(&run.setup.id, desk.now, &run.setup.provider, run.live.messages().to_vec());
        let save = run.save(SaveKind::Begin(began));
        run.state = State::Beginning { save, cancelled: false };
        Ok(run)
    }

    /// Goes on with a run that was cut off. The binding has taken it over before.
    ///
    /// # Errors
    /// `config_invalid`; then nothing has happened.
    pub fn resume(setup: Setup, recovered: Recovered, desk: &mut Desk<'_>) -> Result<Self> {
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
                run.begin_tools(&recovered.attempts, true, desk);
                return Ok(run);
            }
        }
        run.call_model(desk);
        Ok(run)
    }

    /// Takes what the host or the binding says. The only way in.
    ///
    /// # Errors
    /// Misuse (`unknown_effect`, `wrong_state`): the run stands as before.
    pub fn handle(&mut self, input: Input, desk: &mut Desk<'_>) -> Result<()> {
        match input {
            Input::Cancel => {
                self.cancel(desk);
                Ok(())
            }
            Input::SaveAgain => {
                if self.unsaved.is_empty() {
                    return Err(wrong("nothing waits to be stored"));
                }
                // Before what came later: a journal is read in its order.
                self.unsaved.append(&mut self.saves);
                std::mem::swap(&mut self.unsaved, &mut self.saves);
                Ok(())
            }
            Input::Told(given) => {
                self.told(given, desk);
                Ok(())
            }
            Input::Persisted(ask, said) => {
                self.persisted(&ask, said);
                Ok(())
            }
            Input::Saved { save, outcome } => {
                self.saved(save, outcome, desk);
                Ok(())
            }
            Input::Bytes { effect, bytes } => self.take_bytes(&effect, &bytes, desk),
            Input::ResponseTooLarge { effect } => self.take_oversize(&effect, desk),
            Input::Answer { effect, reply } => self.answer(&effect, reply, desk),
        }
    }

    fn answer(&mut self, effect: &str, reply: Reply, desk: &mut Desk<'_>) -> Result<()> {
        if !self.is_open(effect)? {
            return Ok(());
        }
        match &mut self.state {
            State::Calling(_) => self.model_reply(reply, desk),
            State::Waiting { .. } => match reply {
                Reply::Waited => {
                    self.ask_again(desk);
                    Ok(())
                }
                _ => Err(wrong("a `wait` is answered by `waited`")),
            },
            State::Tools(_) => self.tool_reply(effect, reply, desk),
            State::Beginning { .. }
            | State::Asking(_)
            | State::Recording { .. }
            | State::Ending { .. }
            | State::Done(_) => Ok(()),
        }
    }

    // ---- the model

    pub(super) fn offer_call(&mut self, attempt: u32, body: Rc<Vec<u8>>, desk: &Desk<'_>) {
        let provider = &self.setup.provider;
        let kind = EffectKind::CallModel {
            dialect: provider.dialect,
            url: provider.url.clone(),
            headers: provider.wire_headers(),
            body: body.clone(),
            stream: provider.stream,
        };
        self.offer(kind);
        let count = desk.history.id_count() + self.live.id_count();
        let message_id = free_id(desk.ids.new_id(), count, &|id| desk.history.has_id(id) || self.live.has_id(id));
        self.state = State::Calling(Box::new(Call {
            attempt,
            message_id,
            body,
            asked_at: desk.now,
            received: 0,
            response: Response::None,
        }));
    }

    fn ask_again(&mut self, desk: &Desk<'_>) {
        self.effects.clear();
        if let State::Waiting { call } = &self.state {
            let (attempt, body) = (call.attempt + 1, call.body.clone());
            self.offer_call(attempt, body, desk);
        }
    }

    fn model_reply(&mut self, reply: Reply, desk: &mut Desk<'_>) -> Result<()> {
        let State::Calling(call) = &mut self.state else { return Ok(()) };
        match reply {
            Reply::ResponseStarted { status, headers } => {
                if !matches!(call.response, Response::None) {
                    return Err(wrong("the response has started already"));
                }
                if declared_length(&headers).is_some_and(|length| length > self.setup.max_response_bytes) {
                    self.response_too_large(desk);
                    return Ok(());
                }
                if !(200..300).contains(&status) || !self.setup.provider.stream {
                    call.response = Response::Whole { status, headers, body: Vec::new() };
                    return Ok(());
                }
                call.response = Response::Streaming(StreamAssembler::new(self.setup.provider.dialect));
                self.message_started();
            }
            Reply::ResponseEnd => match std::mem::replace(&mut call.response, Response::None) {
                Response::None => return Err(wrong("`response_started` comes before `response_end`")),
                Response::Streaming(mut assembler) => {
                    let assembled = self.credential_filter.redact_answer(assembler.finish());
                    self.container = assembler.container();
                    self.answered(assembled, desk);
                }
                Response::Whole { status, headers, body } => self.whole(status, &headers, &body, desk),
            },
            Reply::Response { .. } if !matches!(call.response, Response::None) => {
                return Err(wrong("the response has started already; feed its bytes and say `response_end`"));
            }
            Reply::Response { body, .. } if body.len() as u64 > self.setup.max_response_bytes => {
                self.response_too_large(desk);
            }
            Reply::Response { status, headers, body } => self.whole(status, &headers, &body, desk),
            Reply::Failed { code, message, .. } => {
                let streaming = matches!(call.response, Response::Streaming(_));
                let (code, message) =
                    (code.map(|code| self.credential_filter.redact(&code)), self.credential_filter.redact(&message));
                let error = Error::new(Code::ModelError, format!("the model could not be reached: {message}")).with(
                    |details| {
                        details.text_or_null("hostCode", code.as_deref());
                    },
                );
                // A retry would be redirected again.
                let may_pass = !streaming && code.as_deref() != Some("redirect");
                self.call_failed(error, None, may_pass, desk);
            }
            Reply::Started => {}
            Reply::ToolResult { .. } | Reply::Waited => {
                return Err(wrong("a `call_model` is answered by a response or by `failed`"));
            }
        }
        Ok(())
    }

    fn whole(&mut self, status: u16, headers: &[(String, String)], body: &[u8], desk: &mut Desk<'_>) {
        if !fits_memory(body) {
            return self.response_too_large(desk);
        }
        let (assembled, container) = read_whole(self.setup.provider.dialect, body);
        let assembled = self.credential_filter.redact_answer(assembled);
        if (200..300).contains(&status) {
            self.message_started();
            if let State::Calling(call) = &self.state
                && !assembled.text.is_empty()
            {
                let event = StreamEvent::TextDelta(assembled.text.clone());
                self.events.push(RunEvent::Stream { message_id: call.message_id.clone(), event });
            }
            self.container = container;
            return self.answered(assembled, desk);
        }
        let (error, may_pass) = refused_request(status, &assembled);
        self.call_failed(error, asked_wait(headers, desk.now), may_pass, desk);
    }

    pub(super) fn call_failed(&mut self, error: Error, asked: Option<u64>, may_pass: bool, desk: &mut Desk<'_>) {
        let attempt = if let State::Calling(call) = &self.state { call.attempt } else { return };
        let Some(ms) = self.setup.retry.wait_after(attempt, asked).filter(|_| may_pass) else {
            return self.end_early(RunStatus::Failed, error, desk);
        };
        self.effects.clear();
        self.offer(EffectKind::Wait { ms });
        self.events.push(RunEvent::Retrying { attempt: attempt + 1, at: desk.now.saturating_add(ms), error });
        let state = std::mem::replace(&mut self.state, State::Beginning { save: 0, cancelled: false });
        if let State::Calling(mut call) = state {
            call.response = Response::None;
            self.state = State::Waiting { call };
        }
    }

    fn answered(&mut self, assembled: Assembled, desk: &mut Desk<'_>) {
        let (message_id, asked_at) =
            if let State::Calling(call) = &self.state { (call.message_id.clone(), call.asked_at) } else { return };
        // A server pauses in its own loop, or behind a summary; where the summary was asked for, it is the whole answer.
        let reason = assembled.finish_reason.as_deref();
        let paused = matches!(reason, Some("pause_turn" | "compaction"));
        let goes_on =
            paused && (reason == Some("pause_turn") || self.setup.provider.params.view().find("compaction").is_none());
        let refusal = refusal_of(&assembled, paused);
        if let Some(why) = refusal {
            let error = cut_error(why, &assembled);
            let partial = self
                .message_of(&assembled, &message_id, MessageStatus::Failed, asked_at, desk)
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
                    "interrupted",
                    "the provider cut the answer (its length limit, usually); it is stored as truncated",
                )
                .of_message(&message_id),
            );
        }
        let Some((message, invocations)) = self.message_of(&assembled, &message_id, status, asked_at, desk) else {
            return self.finish();
        };
        self.live.apply(Entry::Message(message.clone()));
        for invocation in &invocations {
            self.live.apply(Entry::Invocation(invocation.clone()));
        }
        if invocations.is_empty() && !goes_on {
            return self.finish();
        }
        let then = if invocations.is_empty() { Then::CallAgain } else { Then::Tools };
        let save = self.save(SaveKind::Write(vec![JournalEntry::Answered { message, invocations }]));
        self.state = State::Recording { save, then };
    }

    // ---- the tools; what a task does is in `tools.rs`, where it leads is here

    fn begin_tools(&mut self, attempts: &crate::sorted::Sorted<String, u32>, resumed: bool, desk: &mut Desk<'_>) {
        let mut tasks = Tasks::new(self, attempts, resumed, desk.now);
        while let Some(task) = tasks.unoffered() {
            let effect = self.offer(task);
            tasks.offered(effect);
        }
        let closing = tasks.take_closing();
        if !closing.is_empty() {
            let mut journal = Vec::new();
            for entry in closing {
                self.live.apply(Entry::Result(entry.clone()));
                self.events.push(tasks.finished_event(&entry, &self.live));
                journal.push(JournalEntry::Finished(entry));
            }
            let save = self.save(SaveKind::Write(journal));
            tasks.wait_for(save);
        }
        self.state = State::Tools(tasks);
        self.tools_done(desk);
    }

    fn tool_reply(&mut self, effect: &str, reply: Reply, desk: &mut Desk<'_>) -> Result<()> {
        let State::Tools(tasks) = &mut self.state else { return Ok(()) };
        let Some(step) = tasks.reply(effect, reply, &mut self.live, desk.now)? else { return Ok(()) };
        self.events.push(step.event);
        if step.over {
            self.effects.close(effect);
        }
        let save = self.save(SaveKind::Write(step.journal));
        if let State::Tools(tasks) = &mut self.state {
            tasks.wait_for(save);
        }
        Ok(())
    }

    fn tools_done(&mut self, desk: &mut Desk<'_>) {
        let State::Tools(tasks) = &self.state else { return };
        if !tasks.all_done() {
            return;
        }
        if ends_run(&self.live, &self.setup) { self.finish() } else { self.call_model(desk) }
    }

    // ---- the end

    fn finish(&mut self) {
        self.effects.clear();
        let mut entries = turn_entries(&self.live);
        drop_uncited(&mut entries, &self.setup.policy, &mut self.report);
        let save = self.save(SaveKind::Append(entries));
        self.state = State::Ending { save, status: RunStatus::Finished, error: None, appends: true };
    }

    fn cancel(&mut self, desk: &mut Desk<'_>) {
        match &mut self.state {
            // The answer cannot be stored, and the user gives it up. The journal stays, so the run can be resumed.
            State::Ending { .. } if !self.unsaved.is_empty() => {
                self.done(RunStatus::Cancelled, None, 0, false);
            }
            // Too late, or it is over: what is being written is whole.
            State::Ending { .. } | State::Done(_) => {}
            State::Beginning { cancelled, .. } => *cancelled = true,
            State::Asking(_)
            | State::Calling(_)
            | State::Waiting { .. }
            | State::Recording { .. }
            | State::Tools(_) => {
                let error = Error::new(Code::Aborted, "the run was cancelled");
                self.end_early(RunStatus::Cancelled, error, desk);
            }
        }
    }

    pub(super) fn end_early(&mut self, status: RunStatus, error: Error, desk: &mut Desk<'_>) {
        let marked = if status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed };
        let mut partial = None;
        if let State::Calling(call) = &self.state
            && let Response::Streaming(assembler) = &call.response
        {
            let assembled = assembler.partial();
            partial =
                self.message_of(&assembled, &call.message_id, marked, call.asked_at, desk).map(|(message, _)| message);
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
        self.state = State::Ending { save, status, error, appends: keep };
    }

    fn saved(&mut self, id: u64, outcome: Result<u64>, desk: &mut Desk<'_>) {
        let awaited = self.awaits(id);
        match (&mut self.state, outcome) {
            (State::Beginning { save, cancelled }, Ok(_)) if *save == id => {
                if *cancelled {
                    let error = Error::new(Code::Aborted, "the run was cancelled");
                    self.end_early(RunStatus::Cancelled, error, desk);
                } else {
                    self.call_model(desk);
                }
            }
            (State::Beginning { save, .. }, Err(error)) if *save == id => {
                self.done(RunStatus::Failed, Some(error), 0, false)
            }
            (State::Recording { save, then }, Ok(_)) if *save == id => match then {
                Then::Tools => self.begin_tools(&crate::sorted::Sorted::new(), false, desk),
                Then::CallAgain => self.call_model(desk),
            },
            (State::Tools(tasks), Ok(_)) => {
                tasks.written(id);
                self.tools_done(desk);
            }
            (State::Ending { save, status, error, appends }, Ok(revision)) if *save == id => {
                let (status, error, appends) = (*status, error.take(), *appends);
                if appends {
                    self.events.push(RunEvent::Saved { revision });
                }
                self.done(status, error, revision, appends);
            }
            (State::Ending { save, status, error, appends }, Err(failure)) if *save == id && !*appends => {
                let (status, error) = (*status, error.take());
                // Nothing of the run is left elsewhere to clear away when another owner has it.
                if failure.code != Code::Conflict {
                    self.warn(Finding::warning(
                        "malformed",
                        format!("the run's journal could not be cleared away: {}", failure.message),
                    ));
                }
                self.done(status, error, 0, false);
            }
            (State::Ending { .. } | State::Recording { .. } | State::Tools(_), Err(error))
                if awaited && (error.code == Code::Conflict || error.code == Code::NotFound) =>
            {
                // Another owner took the run over: this one may do nothing more with it.
                self.done(RunStatus::Failed, Some(error), 0, false);
            }
            (State::Tools(tasks), Err(error)) if tasks.was_start(id) => {
                // A tool whose start is not written must not run.
                self.done(RunStatus::Failed, Some(error), 0, false);
            }
            (State::Ending { .. } | State::Recording { .. } | State::Tools(_), Err(error)) if awaited => {
                self.events.push(RunEvent::SaveFailed { error });
            }
            // A write that the run no longer waits for.
            (
                State::Beginning { .. }
                | State::Asking(_)
                | State::Calling(_)
                | State::Waiting { .. }
                | State::Recording { .. }
                | State::Tools(_)
                | State::Ending { .. }
                | State::Done(_),
                _,
            ) => {}
        }
    }

    /// Whether the run can only go on when that write is there.
    fn awaits(&self, id: u64) -> bool {
        match &self.state {
            State::Beginning { save, .. } | State::Recording { save, .. } | State::Ending { save, .. } => *save == id,
            State::Tools(tasks) => tasks.awaits(id),
            State::Asking(_) | State::Calling(_) | State::Waiting { .. } | State::Done(_) => false,
        }
    }

    /// The binding could not write this: it waits for [`Input::SaveAgain`].
    pub fn keep_unsaved(&mut self, save: Save) {
        if self.awaits(save.id) {
            self.unsaved.push_back(save);
        }
    }

    /// Drops what the run holds in memory. It counts as running, and nothing comes of it any more.
    pub fn release(&mut self) {
        self.live = History::new(self.live.seed());
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        self.events.clear();
        self.state = State::Beginning { save: u64::MAX, cancelled: false };
    }

    fn done(&mut self, status: RunStatus, error: Option<Error>, revision: u64, saved: bool) {
        self.effects.clear();
        self.saves.clear();
        self.unsaved.clear();
        let outcome = self.outcome_as(status, error, revision, saved);
        self.events.push(RunEvent::Finished(Box::new(outcome.clone())));
        self.state = State::Done(Box::new(outcome));
    }
}

pub(super) fn wrong(message: &str) -> Error {
    Error::new(Code::WrongState, message)
}
