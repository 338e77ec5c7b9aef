//! The run pauses before it repeats a model call.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::run::context::RunContext;
use crate::run::effect::{EffectKind, EffectReply, SaveKind};
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{
    CallAttempt, EarlyStop, FinalResult, ModelRequest, NextState, RetryPause, is_permanent, wrong_state,
};
use crate::run::retry::ReplayQuestion;
use crate::run::state_behavior::{AnsweredEffect, DoneSave, StateBehavior};
use crate::run::turn::RunData;

/// The run pauses before it repeats a model call, or waits for the application's permission to do so.
pub struct AwaitingRetry {
    pause: RetryPause,
    /// The application is asked whether the request may be repeated; no effect is open.
    question: Option<ReplayQuestion>,
    /// True if the binding has taken the question.
    question_taken: bool,
    /// True if the `wait` was answered before the pause was saved.
    has_waited: bool,
}

impl AwaitingRetry {
    /// Offers a `wait` until the end of the pause.
    pub fn enter(turn: &mut RunData, pause: RetryPause, now: Ms) -> Self {
        turn.close_effects();
        turn.offer(EffectKind::Wait { ms: pause.not_before.saturating_sub(now) });
        Self { pause, question: None, question_taken: false, has_waited: false }
    }

    /// Asks the application, whether the request may be sent again.
    pub fn ask(turn: &mut RunData, pause: RetryPause, question: ReplayQuestion) -> Self {
        turn.close_effects();
        Self { pause, question: Some(question), question_taken: false, has_waited: false }
    }

    /// Returns the end of the pause; `None` while the application is asked whether there is one.
    pub fn retry_at(&self) -> Option<Ms> {
        self.question.is_none().then_some(self.pause.not_before)
    }

    /// Takes the question, for the binding. It is returned once.
    pub fn take_question(&mut self) -> Option<ReplayQuestion> {
        if std::mem::replace(&mut self.question_taken, true) { None } else { self.question.clone() }
    }

    /// Handles the application's reply.
    pub fn reply_to_question(&mut self, turn: &mut RunData, approved: bool) -> Option<NextState> {
        let ReplayQuestion { error, .. } = self.question.take()?;
        if !approved {
            return Some(EarlyStop::failed(unsafe_replay(&error)).into());
        }
        let pause = RetryPause { request: self.pause.request.clone(), ..self.pause };
        Some(begin_pause(turn, pause, error))
    }

    /// Returns the next attempt, if the `wait` was answered and the pause is saved.
    fn next_call(&mut self, turn: &mut RunData, now: Ms) -> Option<NextState> {
        if !self.has_waited || self.pause.save.is_some() {
            return None;
        }
        let number = self.pause.attempt;
        if std::mem::take(&mut self.pause.is_before_sending) && turn.setup().owner.is_conversation() {
            self.pause.save = Some(save_retry(turn, number, SENT_AT_ONCE));
            return None;
        }
        let attempt = CallAttempt { number, not_before: Some(self.pause.not_before).filter(|end| *end > now) };
        Some(match &self.pause.request {
            Some(request) => NextState::Send(ModelRequest { attempt, ..request.clone() }),
            None => NextState::ResumeCall(attempt),
        })
    }
}

impl StateBehavior for AwaitingRetry {
    /// Handles the reply to the `wait`. The host need not have waited: the request says then when it may be sent.
    fn reply(
        &mut self,
        turn: &mut RunData,
        answered: AnsweredEffect<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        let EffectReply::Waited = answered.reply else {
            return Err(wrong_state("a `wait` must be answered by `waited`"));
        };
        turn.close_effects();
        self.has_waited = true;
        Ok(self.next_call(turn, context.now))
    }

    fn awaits(&self, save: u64) -> bool {
        // Only the holder of the run can save, so nothing is sent before it is done.
        self.pause.save == Some(save)
    }

    fn saved(&mut self, _done: DoneSave, turn: &mut RunData, context: &RunContext<'_>) -> Option<NextState> {
        self.pause.save = None;
        self.next_call(turn, context.now)
    }

    fn save_failed(&self, _save: u64, turn: &mut RunData, failure: Error) -> Option<NextState> {
        if is_permanent(&failure) {
            return Some(NextState::Done(FinalResult::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}

/// The stored end of a pause that is none. A process whose clock is behind must not wait for it: the request may have
/// been sent.
const SENT_AT_ONCE: Ms = 0;

/// Announces a pause, and stores its end: after a kill the run waits for it too.
pub fn begin_pause(turn: &mut RunData, pause: RetryPause, error: Error) -> NextState {
    let RetryPause { attempt, not_before: at, .. } = pause;
    // What an earlier process may have sent, and an approval repeats, is sent at once.
    let is_before_sending = pause.request.is_some();
    let save = save_retry(turn, attempt, if is_before_sending { at } else { SENT_AT_ONCE });
    turn.emit(RunEvent::Retrying { attempt, at, error });
    NextState::Pause(RetryPause { save: Some(save), is_before_sending, ..pause })
}

fn save_retry(turn: &mut RunData, attempt: u32, not_before: Ms) -> u64 {
    turn.save(SaveKind::Write(vec![JournalEntry::Retrying { attempt, not_before, is_pick_up: false }]))
}

/// Repeats a request that a conversation does not have. The `Retrying` entry is written first: if this process dies
/// after that, the request may have been sent.
pub fn repeat_undelivered(turn: &mut RunData, now: Ms) -> NextState {
    let attempt = CallAttempt::FIRST.number;
    let save = Some(save_retry(turn, attempt, SENT_AT_ONCE));
    NextState::Pause(RetryPause { attempt, not_before: now, request: None, save, is_before_sending: false })
}

/// Repeats a request of a conversation that an earlier process may have sent, if the application approves.
pub fn repeat_unconfirmed(turn: &RunData, now: Ms) -> NextState {
    let message = "the run was interrupted when its request may have been sent, and its answer was not stored";
    let error = Error::new(ErrorCode::ModelError, message);
    match turn.setup().retry.approve_unsafe_replay.clone() {
        Some(callback) => {
            let pause = RetryPause { attempt: 2, not_before: now, request: None, save: None, is_before_sending: false };
            NextState::AskReplay(pause, ReplayQuestion { callback, status: None, error })
        }
        None => EarlyStop::failed(unsafe_replay(&error)).into(),
    }
}

/// Returns the error of a request that is not sent again because the service might process it twice.
pub fn unsafe_replay(failure: &Error) -> Error {
    let message = format!(
        "the service may have processed the request, which changes a conversation that it keeps, so it is not sent again: {}; look at the \
         conversation before you run again, or approve the repetition by `retry.approveUnsafeReplay`",
        failure.message
    );
    Error::new(ErrorCode::ReplayUnsafe, message).with(|details| {
        if let Some(known) = &failure.details {
            known.view().entries().for_each(|(key, value)| details.copy(key, value));
        }
    })
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::history::History;
    use crate::id::{IdSource, Seed};
    use crate::json::Json;
    use crate::message::Dialect;
    use crate::owner::{OnConflict, StateOwner};
    use crate::provider::{ProviderRequest, Settings};
    use crate::render::Renderer;
    use crate::replay::{Callback, Policy};
    use crate::run::context::RunContext;
    use crate::run::retry::RetryPolicy;
    use crate::run::setup::{OnStop, Persistence, RunSetup};
    use crate::run::state::AwaitingModel;
    use crate::run::stored_turn::StoredTurn;
    use std::rc::Rc;

    struct OneId;

    impl IdSource for OneId {
        fn new_id(&self) -> String {
            "id".into()
        }
    }

    fn turn(owner: StateOwner, approval: Option<Callback>) -> RunData {
        let provider = ProviderRequest {
            dialect: Dialect::OpenAiResponses,
            url: "https://model.example/v1".into(),
            params: Json::parse("{}").unwrap(),
            stream: true,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let setup = RunSetup {
            id: "run".into(),
            provider,
            instructions: None,
            tools: Vec::new(),
            tool_settings: std::iter::empty().collect(),
            persist: std::iter::empty().collect(),
            approval_callbacks: std::iter::empty().collect(),
            max_turns: 10,
            max_response_bytes: 1_000_000,
            persistence: Persistence::Run,
            trim_trailing_results: false,
            on_stop: OnStop::Discard,
            input_filter: None,
            retry: RetryPolicy { approve_unsafe_replay: approval, ..RetryPolicy::default() },
            policy: Policy::default(),
            channel: None,
            owner,
            on_conflict: OnConflict::Throw,
        };
        RunData::new(setup, History::new(Seed(7)), StoredTurn::default(), Vec::new())
    }

    /// Returns what follows a failure of a request in attempt `number`.
    fn after(turn: &mut RunData, number: u32, reply: EffectReply) -> NextState {
        after_all(turn, number, [reply])
    }

    fn after_all<const N: usize>(turn: &mut RunData, number: u32, replies: [EffectReply; N]) -> NextState {
        let (history, mut renderer) = (History::new(Seed(7)), Renderer::default());
        let context = RunContext {
            history: &history,
            renderer: &mut renderer,
            now: 1_000,
            ids: &OneId,
            seed: Seed(7),
            refused: &[],
            last_request: None,
            branch: 0,
        };
        let is_stateful = turn.setup().owner.is_stateful();
        let attempt = CallAttempt { number, not_before: None };
        let request = ModelRequest { attempt, body: Rc::new(Vec::new()), is_stateful };
        let mut state = AwaitingModel::enter(turn, request, &context).unwrap();
        replies
            .into_iter()
            .find_map(|reply| state.reply(turn, AnsweredEffect { effect: "e", reply }, &context).unwrap())
            .unwrap()
    }

    fn stateful() -> [StateOwner; 2] {
        let conversation = StateOwner::Conversation { id: "conv_1".into() };
        [conversation, StateOwner::response(Some("resp_1".into()))]
    }

    fn failed(sent: Option<bool>) -> EffectReply {
        EffectReply::Failed { code: None, message: "reset".into(), sent }
    }

    fn status(status: u16, code: &str) -> EffectReply {
        let body = format!(r#"{{"error":{{"message":"no","code":"{code}"}}}}"#);
        EffectReply::Response { status, headers: Vec::new(), body: body.into() }
    }

    /// Returns the pause that follows, or the code of the error that the run fails with.
    fn outcome(next: NextState) -> std::result::Result<u64, &'static str> {
        match next {
            NextState::Pause(pause) => Ok(pause.not_before - 1_000),
            NextState::StopEarly(stop) => Err(stop.error.code.as_str()),
            _ => panic!("neither a pause nor a failure"),
        }
    }

    #[test]
    fn r27_a_stateful_request_without_evidence_is_not_sent_again() {
        for owner in stateful() {
            for reply in [failed(None), failed(Some(true)), status(500, ""), status(502, ""), status(529, "")] {
                assert_eq!(outcome(after(&mut turn(owner.clone(), None), 1, reply.clone())), Err("replay_unsafe"));
                // Of a request that has no effect at the service the same failure is repeated.
                assert_eq!(outcome(after(&mut turn(StateOwner::Session, None), 1, reply)), Ok(500));
            }
            assert_eq!(outcome(after(&mut turn(owner.clone(), None), 1, failed(Some(false)))), Ok(500));
            assert_eq!(outcome(after(&mut turn(owner, None), 1, status(429, ""))), Ok(500));
        }
    }

    #[test]
    fn r27_an_error_status_is_known_even_if_its_body_breaks_off() {
        let broken = |status, failure| {
            let headers = vec![("retry-after".to_owned(), "7".to_owned())];
            [EffectReply::ResponseStarted { status, headers }, failure]
        };
        let aborted = EffectReply::Failed { code: Some("AbortError".into()), message: "no".into(), sent: None };
        for owner in stateful() {
            let next = |status, failure| after_all(&mut turn(owner.clone(), None), 1, broken(status, failure));
            assert_eq!(outcome(next(429, failed(None))), Ok(7_000));
            assert_eq!(outcome(next(503, failed(None))), Err("replay_unsafe"));
            assert_eq!(outcome(next(400, failed(None))), Err("model_error"));
            assert_eq!(outcome(next(429, aborted.clone())), Err("model_error"));
        }
    }

    #[test]
    fn r27_the_application_may_approve_an_unsafe_replay() {
        for approved in [true, false] {
            let callback = Callback { id: 1, hook: Rc::new(()) };
            let [conversation, _] = stateful();
            let mut turn = turn(conversation, Some(callback));
            let NextState::AskReplay(pause, question) = after(&mut turn, 1, status(500, "oops")) else {
                panic!("nobody is asked")
            };
            assert_eq!((question.status, question.error.code), (Some(500), ErrorCode::ModelError));
            let mut state = AwaitingRetry::ask(&mut turn, pause, question);
            assert!(turn.effects().all().is_empty());
            assert!(state.take_question().is_some() && state.take_question().is_none());
            let next = state.reply_to_question(&mut turn, approved).unwrap();
            assert_eq!(outcome(next), if approved { Ok(500) } else { Err("replay_unsafe") });
            // A second reply changes nothing.
            assert!(state.reply_to_question(&mut turn, true).is_none());
        }
    }

    #[test]
    fn r27_a_locked_conversation_is_tried_again_after_1_2_and_4_seconds() {
        let [conversation, _] = stateful();
        let locked =
            |number| outcome(after(&mut turn(conversation.clone(), None), number, status(400, "conversation_locked")));
        assert_eq!([1, 2, 3, 4].map(locked), [Ok(1_000), Ok(2_000), Ok(4_000), Err("model_error")]);
        assert_eq!(outcome(after(&mut turn(StateOwner::Session, None), 1, status(400, "other"))), Err("model_error"));
    }
}
