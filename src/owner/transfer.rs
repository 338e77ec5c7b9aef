//! Findings about a change of the owner: what the new owner does not get.

use super::delta::Delta;
use super::state_owner::StateOwner;
use crate::finding::{Action, Finding, FindingCode};
use crate::history::History;
use crate::message::{Dialect, Message, MessageStatus, Part};

/// Returns `not_transferred` warnings for content that is not stored here: what preceded a chain, the rest of answers
/// that broke off, and parts for which `is_reference` returns true. Empty unless the newest answer, apart from ones that
/// no service will continue, is of a service that is not the owner in this dialect, and this run has no answer yet.
#[must_use]
pub fn transfer_findings(
    (owner, dialect): (&StateOwner, Dialect),
    history: &History,
    live: Option<&History>,
    is_reference: &dyn Fn(&Message, &Part) -> bool,
) -> Vec<Finding> {
    let has_new_answer = live.is_some_and(|live| live.messages().iter().any(|message| message.answer.is_some()));
    let is_whole = |message: &Message| message.status == MessageStatus::Complete && !message.is_unfinished();
    let is_link = |message: &&Message| is_whole(message) || is_of_service(message);
    let newest = history.messages().iter().rev().filter(|message| message.answer.is_some()).find(is_link);
    let marked = newest.and_then(|newest| Some((newest, newest.answer.as_ref()?.service_mark.as_deref()?)));
    let Some((newest, mark)) = marked else { return Vec::new() };
    let is_of_owner = newest.dialect == Some(dialect) && owner.mark_of(newest).is_some();
    if has_new_answer || is_of_owner {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if let Some(start) = &mark.chain_start {
        findings.push(not_transferred(format!(
            "only the service has what came before the response \"{start}\": it is not stored here, so requests do not contain it"
        )));
    }
    for message in history.messages().iter().filter(|message| message.answer.is_some()) {
        if message.status != MessageStatus::Complete && is_of_service(message) {
            let text = "this answer broke off; the service may have more of it than is stored here";
            findings.push(not_transferred(text).of_message(&message.id));
        }
        if message.parts.iter().any(|part| is_reference(message, part)) {
            let text = "the service that gave this answer has the content of an item of it; another service does not know the item";
            findings.push(not_transferred(text).of_message(&message.id).with_action(Action::Kept));
        }
    }
    findings
}

/// Returns `not_transferred` warnings for new system messages that a request does not have, since the service keeps the
/// instructions of what the request continues.
#[must_use]
pub fn unsent_system_findings(delta: &Delta<'_>) -> Vec<Finding> {
    let text = "the service keeps the instructions of the conversation, which the session did not begin, so this system message is not sent; \
                say it in a message of the user, or open the session with another `owner`";
    let finding = |message: &Message| not_transferred(text).of_message(&message.id).with_action(Action::Dropped);
    delta.new_repeated().map(finding).collect()
}

/// Returns true for an answer of any service that kept the conversation.
fn is_of_service(message: &Message) -> bool {
    message.answer.as_ref().is_some_and(|answer| answer.service_mark.is_some())
}

fn not_transferred(text: impl Into<std::borrow::Cow<'static, str>>) -> Finding {
    Finding::warning(FindingCode::NotTransferred, text)
}
