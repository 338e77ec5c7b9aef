//! What a response means for its run: the message it makes, or why it makes none.

use super::retry::is_passing;
use super::{Run, RunContext};
use crate::error::{Code, Error};
use crate::history::{HistoryEntry, Incoming, IncomingCall, IncomingMessage, IncomingPart, JoinBase, Origin, join};
use crate::message::{AnswerFacts, Message, MessageStatus, Role};
use crate::provider::{AnswerStatus, Assembled, AssembledCall, ProviderRequest, codec, decode_answer};
use crate::tool::{Arguments, ToolInvocation};
use std::borrow::Cow;

impl Run {
    /// Where the next call goes. Code that called a tool waits in its container: without the name the call is refused.
    pub(super) fn next_provider(&self) -> Cow<'_, ProviderRequest> {
        let provider = &self.setup.provider;
        let mut answers = self.live.messages().iter().rev().filter_map(|message| message.answer.as_ref());
        let container = answers.find_map(|answer| answer.container.as_ref());
        let params = container
            .and_then(|container| codec(provider.dialect).params_in_container(provider.params.view(), container));
        match params {
            Some(params) => Cow::Owned(ProviderRequest { params, ..provider.clone() }),
            None => Cow::Borrowed(provider),
        }
    }

    /// The message that an answer makes, and its calls.
    pub(super) fn message_of(
        &self,
        assembled: &Assembled,
        id: &str,
        status: MessageStatus,
        asked_at: u64,
        context: &RunContext<'_>,
    ) -> Option<(Message, Vec<ToolInvocation>)> {
        let dialect = self.setup.provider.dialect;
        let incoming = assembled.wire.as_ref().and_then(|wire| decode_answer(dialect, wire.view()));
        let mut incoming = with_broken_calls(incoming, assembled)?;
        incoming.dialect.get_or_insert(dialect);
        let origin = Origin {
            at: context.now,
            run_id: Some(self.setup.id.clone()),
            channel: self.setup.channel.clone(),
            message_ids: vec![id.to_owned()],
            ..Origin::default()
        };
        let (mut found, mut calls) = (None, Vec::new());
        for entry in
            join(JoinBase::live(context.history, &self.live), vec![Incoming::Message(incoming)], &origin, context.ids)
                .entries
        {
            match entry {
                HistoryEntry::Message(mut message) => {
                    message.status = status;
                    message.answer = Some(Box::new(AnswerFacts {
                        model: assembled.model.clone(),
                        usage: assembled.usage,
                        finish_reason: assembled.finish_reason.clone(),
                        duration_ms: Some(context.now.saturating_sub(asked_at)),
                        response_id: assembled.response_id.clone(),
                        container: self.container.clone(),
                    }));
                    found = Some(message);
                }
                HistoryEntry::Invocation(mut call) => {
                    // To Gemini a name that begins with a digit was told with a `_` in front.
                    let known = &self.setup.tool_settings;
                    if let Some(own) = call.name.strip_prefix('_').filter(|own| known.contains(*own))
                        && !known.contains(&call.name)
                    {
                        call.name = own.to_owned();
                    }
                    call.freshness =
                        self.setup.tool_settings.get(&call.name).and_then(|tool_settings| tool_settings.freshness);
                    calls.push(call);
                }
                HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
            }
        }
        Some((found?, calls))
    }
}

/// A whole answer may hold calls that its wire cannot carry: arguments that are no object. They are the model's all the
/// same, and it is told what is wrong with them; to that end they stand in the message as it wrote them.
fn with_broken_calls(message: Option<IncomingMessage>, assembled: &Assembled) -> Option<IncomingMessage> {
    let broken = |call: &AssembledCall| !call.executable && !call.name.is_empty();
    if assembled.status != AnswerStatus::Complete || !assembled.calls.iter().any(broken) {
        return message;
    }
    let mut message =
        message.unwrap_or(IncomingMessage { role: Role::Assistant, parts: Vec::new(), dialect: None, template: None });
    let mut given = std::mem::take(&mut message.parts).into_iter().peekable();
    for call in &assembled.calls {
        let is_call = |part: &IncomingPart| matches!(part, IncomingPart::Call(_));
        while let Some(part) = given.next_if(|part| !is_call(part)) {
            message.parts.push(part);
        }
        if broken(call) {
            message.parts.push(IncomingPart::Call(IncomingCall {
                call_id: call.call_id.clone(),
                name: call.name.clone(),
                arguments: Arguments::Text(call.arguments.clone()),
                template: None,
            }));
        } else {
            message.parts.extend(given.next());
        }
    }
    message.parts.extend(given);
    Some(message)
}

/// Why an answer ends the run; none where it goes on.
pub(super) fn refusal_of(assembled: &Assembled, paused: bool) -> Option<String> {
    let cut_call = !paused && !assembled.calls.is_empty();
    match assembled.status {
        // Without it the answer would read as finished, and the call would be lost in silence.
        AnswerStatus::Complete => (assembled.calls.iter())
            .any(|call| call.name.is_empty())
            .then(|| "a tool call of the answer is broken: it has no name".to_owned()),
        // What it had begun to call before it refused is not its answer.
        AnswerStatus::Refused => None,
        AnswerStatus::Incomplete => {
            cut_call.then(|| "the answer was cut in the middle of a tool call; raise the token limit".to_owned())
        }
        AnswerStatus::Truncated => Some("the stream ended before the answer was whole".to_owned()),
        AnswerStatus::Blocked => Some("the provider's filter withheld the answer".to_owned()),
        AnswerStatus::Failed => Some(
            assembled
                .error
                .as_ref()
                .map_or_else(|| "what the provider sent is no answer".into(), |said| said.message.clone()),
        ),
    }
}

/// The error of an answer that ends the run.
pub(super) fn cut_error(why: String, assembled: &Assembled) -> Error {
    Error::new(Code::ModelError, why).with(|details| {
        details
            .text("answerStatus", assembled.status.as_str())
            .text_or_null("finishReason", assembled.finish_reason.as_deref())
            .text_or_null("providerCode", assembled.error.as_ref().and_then(|said| said.code.as_deref()));
    })
}

/// The error of a request that was refused, and whether the same request may succeed later.
pub(super) fn refused_request(status: u16, assembled: &Assembled) -> (Error, bool) {
    let said = assembled.error.as_ref();
    let words = said.map_or_else(String::new, |said| format!(": {}", said.message));
    let code = said.and_then(|said| said.code.as_deref());
    let error = Error::new(Code::ModelError, format!("the provider answered {status}{words}")).with(|details| {
        details.number("status", u64::from(status)).text_or_null("providerCode", code);
    });
    // A spent quota does not come back by waiting.
    (error, is_passing(status) && code != Some("insufficient_quota"))
}
