//! An answer on which the service works in the background: where it is, and what was received of it.

use crate::clock::Ms;
use crate::error::Error;
use crate::finding::{Finding, FindingCode};
use crate::provider::{AnswerForm, ResumableAnswers, ResumedAnswer, StreamAssembler, spec};
use crate::run::background_answer::BackgroundAnswer;
use crate::run::journal::JournalEntry;
use crate::run::next_state::CallAttempt;
use crate::run::turn::RunData;

/// An answer on which the service works in the background, while the run waits for it.
pub struct BackgroundCall {
    pub answer: BackgroundAnswer,
    pub form: AnswerForm,
    /// True once the answer is picked up by `GET`: what is received is no response to the request.
    pub uses_get: bool,
    /// True once this process has received something by picking it up.
    pub was_reached: bool,
    /// The number of the attempt to pick it up, from 1. New events reset it.
    pub attempt: u32,
    /// The end of the pause, and whether it follows a failure; none while a response is awaited.
    pub pause: Option<(Ms, bool)>,
    /// What was received of a stream that broke off.
    pub kept: Option<StreamAssembler>,
    pub storage: IdStorage,
    /// True once a failed save of its id was reported.
    pub has_warned: bool,
}

/// Where the id of an answer is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdStorage {
    /// In the journal of an earlier process.
    Earlier,
    /// This save stores it, or has stored it.
    Saved(u64),
    /// Nowhere: its save failed.
    Unsaved,
}

impl BackgroundCall {
    /// Creates the call of an answer that the service has named.
    pub fn new(answer: BackgroundAnswer) -> Self {
        let form = if answer.is_streamed { AnswerForm::Stream { after: None } } else { AnswerForm::Whole };
        let attempt = CallAttempt::FIRST.number;
        Self {
            answer,
            form,
            uses_get: false,
            was_reached: false,
            attempt,
            pause: None,
            kept: None,
            storage: IdStorage::Earlier,
            has_warned: false,
        }
    }

    /// Returns the entry that stores the answer's id, if that has failed.
    pub fn unsaved_entry(&self) -> Option<JournalEntry> {
        let is_unsaved = self.storage == IdStorage::Unsaved;
        is_unsaved.then(|| JournalEntry::Background(Some(Box::new(self.answer.clone()))))
    }

    /// Notes that a save failed. That of the answer's id is repeated with the next attempt to pick the answer up.
    pub fn note_unsaved(&mut self, save: u64, turn: &mut RunData, failure: &Error) {
        if self.storage != IdStorage::Saved(save) {
            return;
        }
        self.storage = IdStorage::Unsaved;
        if std::mem::replace(&mut self.has_warned, true) {
            return;
        }
        let text = "the id of the answer could not be stored, so a run that is resumed before it is stored with the next attempt, or with the answer, \
                    asks again";
        turn.warn(Finding::warning(FindingCode::Interrupted, format!("{text}: {}", failure.message)));
    }

    /// Returns what was received of a stream that broke off.
    pub fn kept(&self) -> Option<&StreamAssembler> {
        self.kept.as_ref()
    }

    /// Takes what was received of a stream that broke off, to receive the rest.
    pub fn take_kept(&mut self) -> Option<StreamAssembler> {
        let mut kept = self.kept.take()?;
        kept.resume();
        Some(kept)
    }

    /// Returns true if the response that is awaited is a stream.
    pub fn is_streamed(&self) -> bool {
        self.form != AnswerForm::Whole
    }

    /// Returns true while the run pauses before it picks the answer up.
    pub fn is_pausing(&self) -> bool {
        self.pause.is_some()
    }

    /// Returns the end of a pause after a failure.
    pub fn retry_at(&self) -> Option<Ms> {
        self.pause.filter(|(_, is_retry)| *is_retry).map(|(end, _)| end)
    }
}

/// Returns how the answers of the turn's dialect are picked up.
pub fn resumable(turn: &RunData) -> Option<&'static ResumableAnswers> {
    spec(turn.setup().provider.dialect).resumable_answers.as_ref()
}

/// Returns true if the requests of the turn ask for an answer in the background that does not say so itself.
pub fn is_asked_for(turn: &RunData) -> bool {
    resumable(turn).is_some_and(|resumable| (resumable.is_asked_for)(turn.setup().provider.params.view()))
}

/// Returns the address of an answer; none if it cannot be picked up.
pub fn address_of(turn: &RunData, response: &str, form: AnswerForm) -> Option<String> {
    let provider = &turn.setup().provider;
    let (request_url, params) = (&provider.url, provider.params.view());
    resumable(turn).and_then(|resumable| (resumable.address)(&ResumedAnswer { request_url, params, response, form }))
}

/// Returns true if a run of this provider can pick an answer up.
pub fn can_pick_up(turn: &RunData, answer: &BackgroundAnswer) -> bool {
    answer.is_of(&turn.setup().provider) && address_of(turn, &answer.response, AnswerForm::Whole).is_some()
}

/// Returns true for the status of a service that does not stream an answer, though it may have it.
pub fn refuses_stream(status: u16) -> bool {
    is_answer_lost(status) || status == 409
}

/// Returns true for a status by which the service, or a gateway before it, gives no answer for this id: 404, and any
/// other 4xx except those that may give way to an answer: new credentials (401, 403, 407), a later request (408, 409,
/// 425) or a limit that ends (429).
pub fn is_answer_lost(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 401 | 403 | 407 | 408 | 409 | 425 | 429)
}

/// Returns true for the finish reason of an answer on which the service still works.
pub fn is_pending(turn: &RunData, reason: Option<&str>) -> bool {
    let is_pending = |reason: &str| resumable(turn).is_some_and(|resumable| (resumable.is_pending)(reason));
    reason.is_some_and(is_pending)
}
