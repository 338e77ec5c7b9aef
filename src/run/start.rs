//! The messages that a run begins with.

use super::context::RunContext;
use super::setup::RunSetup;
use crate::error::{Error, Result};
use crate::finding::Report;
use crate::history::{
    HeldConversation, History, Incoming, JoinBase, Origin, ProvidedMessages, check_one_loader, join, join_held,
    join_provided,
};
use crate::message::{Message, Role, SourceKind};
use crate::owner::StateOwner;

/// What a turn begins with.
#[derive(Debug, Default)]
pub struct TurnInput {
    /// The messages of the input. Without any the run answers the last message in history.
    pub input: Vec<Incoming>,
    /// The id of the first one.
    pub input_id: Option<String>,
    /// Messages that history providers add before them.
    pub provided: Vec<ProvidedMessages>,
}

/// Returns the live turn of a run's input, and the report of joining it.
///
/// # Errors `invalid_input` if the input is not messages, has an id that is in use, or leaves nothing to answer;
/// `two_loaders` if it has a conversation that a provider has loaded.
pub(super) fn join_input(setup: &RunSetup, input: TurnInput, context: &RunContext<'_>) -> Result<(History, Report)> {
    let TurnInput { input, input_id, provided } = input;
    let is_held = setup.owner == StateOwner::Caller;
    let held = if is_held { HeldConversation::split(input) } else { HeldConversation { input, ..Default::default() } };
    let is_answered = is_held && held.is_answered() || !is_held && is_history_answered(context.history);
    let HeldConversation { earlier, input } = held;
    check_one_loader(&provided, &earlier)?;
    let has_loaded = provided.iter().any(|one| one.loader().is_some());
    let has_input = !input.is_empty();
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
    let mut report = join_held(&mut live, earlier, &origin, context.ids);
    join_provided(context.history, &mut live, provided, &origin, context.ids)?;
    // Without input they end the request.
    let late_results = if is_held { Vec::new() } else { context.history.late_results().unplaced_ids() };
    let origin = Origin { late_results, ..origin };
    let joined = join(JoinBase::live(context.history, &live), input, &origin, context.ids);
    for entry in joined.entries {
        live.apply(entry);
    }
    let is_answered = if has_loaded { is_loaded_answered(&live) } else { is_answered };
    // Results without calls are dropped, so the turn may be empty although the body is not.
    let is_empty = || is_held && live.messages().iter().all(Message::is_system);
    if !has_input && (is_answered || is_empty()) {
        return Err(Error::invalid("there is no message to answer; pass `input`"));
    }
    report.extend(joined.report);
    Ok((live, report))
}

/// Returns true if the last message that a provider has loaded is an answer, or there is none.
fn is_loaded_answered(live: &History) -> bool {
    let loaded = live.messages().iter().rfind(|message| message.source.kind == SourceKind::History);
    loaded.is_none_or(|last| last.role == Role::Assistant && !live.has_calls(last))
}

/// Returns true if the last message of history is an answer, or there is none, and no late result came since.
fn is_history_answered(history: &History) -> bool {
    history.late_results().unplaced().next().is_none()
        && history.messages().last().is_none_or(|last| last.role == Role::Assistant && !history.has_calls(last))
}
