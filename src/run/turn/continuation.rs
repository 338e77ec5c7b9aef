//! An answer that its provider has not finished, and continues by a token: the messages of its parts end the turn.

use super::RunData;
use crate::error::{Error, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::History;
use crate::json::{JsonRef, JsonStr};
use crate::message::{AnswerMeta, Message, MessageStatus, ServiceMark};
use crate::provider::{ContinuedAnswer, ProviderRequest, spec};
use crate::run::StoredRun;
use crate::run::answer::answer_text;
use std::borrow::Cow;

/// What is reported of the last part of an answer whose token the service has refused.
pub const TOKEN_REFUSED: &str =
    "the service does not continue the answer by its token any more; what has arrived of it is stored as truncated";

impl RunData {
    /// Returns the parts of the answer that the next request continues; none if it continues no answer.
    pub fn open_parts(&self) -> &[Message] {
        let (provider, owner) = (&self.setup.provider, &self.setup.owner);
        let has_tokens = spec(provider.dialect).paused_turns.as_ref().is_some_and(|paused| paused.tokens.is_some());
        if !has_tokens || self.chain_is_restarted {
            return &[];
        }
        let is_part = |message: &Message| {
            let part = message.answer.as_ref().and_then(|answer| answer.continuation.as_ref());
            let Some(part) = part.filter(|part| !part.token.is_empty()) else { return false };
            // With another owner the next request would not be the one that the token is for.
            let is_of_owner =
                if owner.is_stateful() { owner.mark_of_part(message).is_some() } else { part.mark.is_none() };
            message.dialect == Some(provider.dialect) && is_of_owner
        };
        let messages = self.live.messages();
        let first = messages.iter().rposition(|message| !is_part(message)).map_or(0, |last| last + 1);
        messages.get(first..).unwrap_or_default()
    }

    /// Returns the turn as the next request contains it: as that of the first part of an answer that it continues.
    pub fn live_of_request(&self) -> Cow<'_, History> {
        let open = self.open_parts().len();
        if open == 0 || self.setup.owner.is_stateful() {
            return Cow::Borrowed(&self.live);
        }
        Cow::Owned(self.live.beginning(self.live.messages().len() - open))
    }

    /// Returns the mark of the part that the next request continues: the service gets nothing new with it.
    pub fn continued_mark(&self) -> Option<&ServiceMark> {
        self.open_parts().last()?.answer.as_ref()?.continuation.as_ref()?.mark.as_deref()
    }

    /// Returns the body that continues the answer, if the next request does, from the composed one.
    ///
    /// # Errors
    /// `config_invalid` if the parameters do not let it.
    pub fn continued_body(&self, composed: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(answer) = self.open_parts().last().and_then(|last| last.answer.as_deref()) else { return Ok(None) };
        check_maker(answer, &self.setup.provider)?;
        let tokens = spec(self.setup.provider.dialect).paused_turns.as_ref().and_then(|paused| paused.tokens.as_ref());
        let body = std::str::from_utf8(composed).ok().and_then(|text| JsonRef::parse(text).ok());
        let body = tokens.zip(answer.continuation.as_deref()).zip(body).and_then(|((tokens, part), body)| {
            let token = &part.token;
            (tokens.continued)(&ContinuedAnswer { body, token, response: answer.response_id.as_deref() })
        });
        let text = "the last answer is not finished, and these parameters do not let the service go on with it; resume the run with those that it \
                    began with, or discard it";
        body.map(|body| Some(body.as_str().as_bytes().to_vec())).ok_or_else(|| Error::config(text))
    }

    /// Returns a text of the answer with that of its parts before.
    pub fn with_open_text(&self, text: JsonStr) -> JsonStr {
        let parts: Vec<JsonStr> = self.open_parts().iter().map(answer_text).collect();
        if parts.is_empty() { text } else { JsonStr::joined(&mut parts.iter().chain([&text]), "") }
    }

    /// Lets a part of an answer that nothing continues be truncated. A part that history has stays `complete` there.
    pub fn truncate_part(&mut self, message: &str) {
        self.live.set_status(message, MessageStatus::Truncated);
    }

    /// Reports that the turn ends with such a part, in a run that is resumed to store it.
    pub fn report_truncated_part(&mut self) {
        let last = self.live.messages().last();
        let part = last.filter(|last| last.is_unfinished() && last.status == MessageStatus::Truncated);
        if let Some(id) = part.map(|part| part.id.clone()) {
            self.warn(Finding::warning(FindingCode::Interrupted, TOKEN_REFUSED).of_message(&id));
        }
    }
}

impl StoredRun {
    /// Checks that a run goes on with its unfinished answer where it began it.
    ///
    /// # Errors
    /// `config_invalid` for another host or model than the one that gave the token.
    pub fn check_continuation(&self, provider: &ProviderRequest) -> Result<()> {
        let last = self.live.messages().last().filter(|last| !self.is_complete && last.is_unfinished());
        match last.filter(|last| last.dialect == Some(provider.dialect)).and_then(|last| last.answer.as_deref()) {
            Some(answer) => check_maker(answer, provider),
            None => Ok(()),
        }
    }
}

/// A token is sent only to the host and the model that gave it.
fn check_maker(answer: &AnswerMeta, provider: &ProviderRequest) -> Result<()> {
    if answer.maker.as_ref() == Some(&provider.maker()) {
        return Ok(());
    }
    let text = "the last answer is not finished, and another service or model than the one that gave its token would get it; resume the run \
                with the URL and the model that it began with, or discard it";
    Err(Error::config(text))
}

/// Returns the text of the last answer, with that of its parts before, of which this is the turn.
pub fn text_of_last_answer(live: &History) -> JsonStr {
    let messages = live.messages();
    let before = messages.len().saturating_sub(1);
    let first = messages.get(..before).unwrap_or_default().iter().rposition(|message| !message.is_unfinished());
    let parts = messages.get(first.map_or(0, |last| last + 1)..).unwrap_or_default();
    JsonStr::joined(&mut parts.iter().map(answer_text).collect::<Vec<_>>().iter(), "")
}
