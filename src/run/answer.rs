//! The answer in a response: the message that it becomes, or the error that it is.

use super::context::RunContext;
use super::retry::is_transient;
use super::setup::{RunSetup, ToolTiming};
use super::turn::RunData;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode};
use crate::history::{HistoryEntry, Incoming, IncomingCall, IncomingMessage, IncomingPart, JoinBase, Origin, join};
use crate::json::JsonStr;
use crate::message::{AnswerMeta, Continuation, Message, MessageStatus, PartBody, Role, ServiceMark};
use crate::provider::{AnswerStatus, Assembled, AssembledCall, ProviderRequest, decode_answer, spec};
use crate::tool::{Arguments, ToolInvocation};
use std::borrow::Cow;

/// What an answer's message takes from its model call.
pub(super) struct AnsweredCall<'c> {
    /// The id of the message.
    pub message_id: &'c str,
    /// When the call was offered.
    pub asked_at: Ms,
    /// The status of the message.
    pub status: MessageStatus,
    /// The server's container, in which its code runs.
    pub container: Option<String>,
    /// The token by which the next request continues the answer.
    pub continuation: Option<String>,
}

/// Returns the provider of the next call. Code that called a tool waits in its container, which the request must name.
pub(super) fn next_provider(turn: &RunData) -> Cow<'_, ProviderRequest> {
    let provider = &turn.setup().provider;
    let mut answers = turn.live().messages().iter().rev().filter_map(|message| message.answer.as_ref());
    let container = answers.find_map(|answer| answer.container.as_ref());
    let paused_turns = spec(provider.dialect).paused_turns.as_ref();
    let params = paused_turns
        .zip(container)
        .and_then(|(paused, container)| (paused.params_in_container)(provider.params.view(), container));
    if params.is_none() && !turn.restarts_chain() {
        return Cow::Borrowed(provider);
    }
    let mut request = provider.clone();
    request.settings.omits_kept_items = turn.restarts_chain();
    if let Some(params) = params {
        request.params = params;
    }
    Cow::Owned(request)
}

/// Returns the message of an answer, and its calls; `None` if the answer has no content.
pub(super) fn answer_message(
    turn: &RunData,
    assembled: &Assembled,
    call: &AnsweredCall<'_>,
    context: &RunContext<'_>,
) -> Option<(Message, Vec<ToolInvocation>)> {
    let setup = turn.setup();
    let dialect = setup.provider.dialect;
    let is_needed = setup.owner.is_stateful() || call.continuation.is_some();
    let incoming = assembled.wire.as_ref().and_then(|wire| decode_answer(dialect, wire.view()));
    let incoming = with_broken_calls(incoming, assembled).or_else(|| is_needed.then(empty_answer))?;
    stamped_answer(turn, incoming, (assembled, call), context)
}

/// Returns the message of an answer without its content.
pub(super) fn message_without_parts(
    turn: &RunData,
    assembled: &Assembled,
    call: &AnsweredCall<'_>,
    context: &RunContext<'_>,
) -> Option<Message> {
    stamped_answer(turn, empty_answer(), (assembled, call), context).map(|(message, _)| message)
}

/// Gives a decoded answer its ids, its place in the turn, and its metadata.
fn stamped_answer(
    turn: &RunData,
    mut incoming: IncomingMessage,
    (assembled, call): (&Assembled, &AnsweredCall<'_>),
    context: &RunContext<'_>,
) -> Option<(Message, Vec<ToolInvocation>)> {
    let setup = turn.setup();
    incoming.dialect.get_or_insert(setup.provider.dialect);
    let origin = Origin {
        at: context.now,
        run_id: Some(setup.id.clone()),
        channel: setup.channel.clone(),
        message_ids: vec![call.message_id.to_owned()],
        late_results: turn.late_results().to_vec(),
        ..Origin::default()
    };
    let (mut answer, mut calls) = (None, Vec::new());
    let continuation = call.continuation.as_ref().map(|token| {
        let mark = turn.service_mark(assembled.response_id.as_deref());
        Box::new(Continuation { token: token.clone(), mark })
    });
    let base = JoinBase::live(context.history, turn.live());
    for entry in join(base, vec![Incoming::Message(incoming)], &origin, context.ids).entries {
        match entry {
            HistoryEntry::Message(mut message) => {
                message.status = call.status;
                let is_compacted = spec(setup.provider.dialect).begins_with_compaction(&message);
                message.answer = Some(Box::new(AnswerMeta {
                    model: assembled.model.clone(),
                    usage: assembled.usage,
                    finish_reason: assembled.finish_reason.clone(),
                    duration_ms: Some(context.now.saturating_sub(call.asked_at)),
                    response_id: assembled.response_id.clone(),
                    container: call.container.clone(),
                    service_mark: service_mark(turn, assembled, call),
                    agent: turn.handoffs().agent().cloned(),
                    maker: Some(setup.provider.maker()),
                    prefix: turn.prefix_mark().filter(|_| has_reasoning(&message)),
                    known_results: if is_compacted { turn.history_choice().known_results() } else { 0 },
                    continuation: continuation.clone(),
                }));
                answer = Some(message);
            }
            HistoryEntry::Invocation(invocation) => calls.push(with_tool_settings(invocation, setup)),
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
        }
    }
    Some((answer?, calls))
}

/// Returns true if an answer may have reasoning that its provider binds to what precedes it.
fn has_reasoning(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part.body, PartBody::Reasoning(_) | PartBody::Opaque(_)))
}

/// Returns an answer without content. It gets the mark of a service that keeps the conversation, or the token of an
/// answer that is not finished.
fn empty_answer() -> IncomingMessage {
    IncomingMessage { role: Role::Assistant, parts: Vec::new(), dialect: None, template: None }
}

/// Returns the mark of an answer. A response that did not end as it should, or that the service has not finished, is no
/// part of a chain; a conversation has its request.
fn service_mark(turn: &RunData, assembled: &Assembled, call: &AnsweredCall<'_>) -> Option<Box<ServiceMark>> {
    let is_whole = matches!(call.status, MessageStatus::Complete | MessageStatus::Truncated);
    let service = spec(turn.setup().provider.dialect).service_state.as_ref();
    let reason = assembled.finish_reason.as_deref().unwrap_or_default();
    let is_link = service.is_none_or(|service| (service.continues_after)(reason));
    let mut mark = turn.service_mark(assembled.response_id.as_deref());
    if let Some(mark) = mark.as_mut().filter(|_| assembled.status == AnswerStatus::Refused) {
        mark.ends_chain =
            turn.setup().owner.restarts_if_lost() && service.is_some_and(|service| service.ends_when_refused);
    }
    // The conversation may have calls of the part that did not arrive, and then refuses what is added.
    if let Some(mark) = mark.as_mut().filter(|_| !is_whole && turn.setup().owner.restarts_if_lost()) {
        mark.ends_chain = true;
    }
    mark.filter(|mark| is_whole && is_link || mark.conversation.is_some())
}

/// Gives a call the name and the settings of its tool in the setup.
fn with_tool_settings(mut call: ToolInvocation, setup: &RunSetup) -> ToolInvocation {
    // The host decides whether the run goes on without the result.
    call.is_deferred = false;
    let tools = &setup.tool_settings;
    // The model calls a tool by the name that it has in the request.
    let name = spec(setup.provider.dialect).tools.name_before_change(&call.name);
    if let Some(name) = name.filter(|name| tools.contains_key(*name))
        && !tools.contains_key(&call.name)
    {
        call.name = name.to_owned();
    }
    call.has_persist = setup.persist.contains_key(&call.name);
    let settings = tools.get(&call.name);
    call.is_async = settings.is_some_and(|settings| settings.timing != ToolTiming::InRun);
    call.freshness = settings.and_then(|settings| settings.freshness);
    call
}

/// Adds the calls that the decoder could not represent: their arguments are no JSON object. The model is told what is
/// wrong with them, so they are in the message as it wrote them.
fn with_broken_calls(message: Option<IncomingMessage>, assembled: &Assembled) -> Option<IncomingMessage> {
    let is_broken = |call: &AssembledCall| !call.executable && !call.name.is_empty();
    if assembled.status != AnswerStatus::Complete || !assembled.calls.iter().any(is_broken) {
        return message;
    }
    let mut message = message.unwrap_or_else(empty_answer);
    let mut decoded = std::mem::take(&mut message.parts).into_iter().peekable();
    for call in &assembled.calls {
        let is_call = |part: &IncomingPart| matches!(part, IncomingPart::Call(_));
        while let Some(part) = decoded.next_if(|part| !is_call(part)) {
            message.parts.push(part);
        }
        if is_broken(call) {
            message.parts.push(IncomingPart::Call(IncomingCall {
                id: None,
                is_async: false,
                call_id: call.call_id.clone(),
                name: call.name.clone(),
                arguments: Arguments::Text(call.arguments.clone()),
                template: None,
            }));
        } else {
            message.parts.extend(decoded.next());
        }
    }
    message.parts.extend(decoded);
    Some(message)
}

/// Returns why an answer fails the run, if it does.
pub(super) fn refusal_of(assembled: &Assembled, paused: bool) -> Option<String> {
    let cut_call = !paused && !assembled.calls.is_empty();
    match assembled.status {
        // A call without a name cannot run; without this error it would be lost silently.
        AnswerStatus::Complete => (assembled.calls.iter())
            .any(|call| call.name.is_empty())
            .then(|| "a tool call of the answer is broken: it has no name".to_owned()),
        // Calls that precede a refusal are not part of the answer.
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
                .map_or_else(|| "what the provider sent is no answer".into(), |error| error.message.clone()),
        ),
    }
}

/// Returns the error of an answer that fails the run.
pub(super) fn cut_error(why: String, assembled: &Assembled) -> Error {
    Error::new(ErrorCode::ModelError, why).with(|details| {
        details
            .text("answerStatus", assembled.status.as_str())
            .text_or_null("finishReason", assembled.finish_reason.as_deref())
            .text_or_null("providerCode", assembled.error.as_ref().and_then(|error| error.code.as_deref()));
    })
}

/// Returns the error of a request that the provider rejected, and whether the same request may succeed later.
pub(super) fn refused_request(status: u16, assembled: &Assembled) -> (Error, bool) {
    let provider_error = assembled.error.as_ref();
    let text = provider_error.map_or_else(String::new, |error| format!(": {}", error.message));
    let code = provider_error.and_then(|error| error.code.as_deref());
    let error = Error::new(ErrorCode::ModelError, format!("the provider answered {status}{text}")).with(|details| {
        details.number("status", u64::from(status)).text_or_null("providerCode", code);
    });
    // A pause does not restore a spent quota.
    (error, is_transient(status) && code != Some("insufficient_quota"))
}

/// Returns all text of an answer.
pub(super) fn answer_text(message: &Message) -> JsonStr {
    let mut inside = String::new();
    for part in &message.parts {
        if let PartBody::Text(text) = &part.body {
            inside.push_str(text.inside());
        }
    }
    JsonStr::from_inside(&inside)
}
