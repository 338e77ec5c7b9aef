//! `Session.compact`: the application's model writes a summary of the turns that are over (R30), or their provider does
//! (R78). Requests then contain it instead of them.

use super::compaction_state::{CompactionMode, CompactionOutcome, CompactionRequest, RequestSetup};
use super::journals::journal_of;
use super::open_session::OpenSession;
use super::run_lock::{LiveHolders, lock_name};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{Compactable, History, StoredSummary};
use crate::json::{Json, ObjectWriter};
use crate::message::{AnswerMeta, Dialect, Message};
use crate::owner::{Delta, StateOwner};
use crate::provider::{
    ProviderRequest, ProviderSummary, Settings, can_compact, compacted_items, compaction_request, read_provider_summary,
};
use crate::render::{
    ProviderCompactionBody, RenderRequest, compaction_body, estimated_tokens, provider_compaction_body,
};
use crate::replay::PolicyLayer;
use crate::store::{Change, HeadEdit};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of answers, calls and results from which a history is compacted.
const MIN_ITEMS: usize = 10;

/// Compacts a session, or defers the compaction.
///
/// # Errors
/// `state_owner_conflict`, `config_invalid`, `callback_failed`, and the store's own. Nothing is stored then.
pub async fn compact(session: &Rc<OpenSession>, request: Rc<CompactionRequest>) -> Result<CompactionOutcome> {
    let outcome = compact_exclusively(session, &request).await;
    if outcome == Ok(CompactionOutcome::Deferred) {
        defer(session, request).await?;
    }
    outcome
}

/// Compacts a session, unless another call does. Then makes the compaction that an earlier call deferred, if it is
/// possible now.
async fn compact_exclusively(session: &Rc<OpenSession>, request: &CompactionRequest) -> Result<CompactionOutcome> {
    let state = &session.compaction;
    if state.is_under_way.replace(true) {
        state.must_check_again.set(true);
        return Ok(CompactionOutcome::UnderWay);
    }
    state.must_check_again.set(false);
    let outcome = compact_now(session, request).await;
    state.is_under_way.set(false);
    // The caller defers this one first, and checks then.
    if outcome != Ok(CompactionOutcome::Deferred) && state.must_check_again.take() {
        session.run_deferred_compaction();
    }
    outcome
}

async fn compact_now(session: &Rc<OpenSession>, request: &CompactionRequest) -> Result<CompactionOutcome> {
    if session.is_run_active() {
        resolve_mode(session, request)?;
        return Ok(CompactionOutcome::Deferred);
    }
    session.refresh().await?;
    let mode = resolve_mode(session, request)?;
    if has_run_under_way(session).await? {
        return Ok(CompactionOutcome::Deferred);
    }
    let was_deferred = session.log.borrow().head.has_deferred_compaction;
    let (end, item_count) = match compactable(session) {
        Compactable::Nothing => return Ok(CompactionOutcome::NothingNew),
        Compactable::Unfinished => return Ok(CompactionOutcome::Deferred),
        Compactable::Turns { end, item_count } => (end, item_count),
    };
    let outcome = if request.is_forced {
        CompactionOutcome::Forced
    } else if request.tokens.is_none() && was_deferred {
        CompactionOutcome::WasDeferred
    } else if request.tokens.map_or(item_count >= MIN_ITEMS, |_| has_reached(session, request)) {
        CompactionOutcome::Threshold
    } else {
        return Ok(CompactionOutcome::BelowThreshold);
    };
    let setup = request_setup(session, request)?;
    let provider = &setup.provider;
    let Some((end, ProviderCompactionBody { body, mark })) = question(session, &setup, mode, end)? else {
        return Ok(CompactionOutcome::NothingNew);
    };
    let Some(coverage) = session.log.borrow().history.coverage(end) else { return Ok(CompactionOutcome::NothingNew) };
    let chain_start = chain_start(session)?;
    let continued = newest_response(session)?;
    let context = &session.context;
    let answer = context.host.summarize(&request.summarize, &body, mode.as_str());
    let text = context.callbacks.answered(answer).await??;
    let is_continued = newest_response(session)? != continued;
    let is_of_service = matches!(session.owner()?, StateOwner::Response { .. } | StateOwner::BegunConversation { .. });
    if is_of_service && (is_continued || session.is_run_active()) {
        // The answer meanwhile belongs to the old chain or conversation, which the next request would continue.
        return Ok(CompactionOutcome::Superseded);
    }
    let summary = match mode {
        CompactionMode::PreviousResponseId => {
            StoredSummary::of_items(coverage, provider.dialect, read_items(provider, &text)?, chain_start)
        }
        CompactionMode::Provider => {
            let Some(items) = read_provider_items(provider, &text)? else { return Ok(CompactionOutcome::NoSummary) };
            StoredSummary::of_items(coverage, provider.dialect, items, chain_start).made_by(AnswerMeta {
                maker: Some(provider.maker()),
                prefix: mark,
                ..AnswerMeta::default()
            })
        }
        CompactionMode::Auto | CompactionMode::Input => StoredSummary::compaction(coverage, &text, chain_start),
    };
    store(session, summary, outcome).await
}

/// Returns what `summarize` gets, and the index after the last message that it covers: `end`, or less. None if there is
/// nothing to ask for.
fn question(
    session: &OpenSession,
    setup: &RequestSetup,
    mode: CompactionMode,
    end: usize,
) -> Result<Option<(usize, ProviderCompactionBody)>> {
    let unmarked = |body| ProviderCompactionBody { body, mark: None };
    Ok(match mode {
        CompactionMode::PreviousResponseId => {
            chain_request(session, &setup.provider, end)?.map(|(end, body)| (end, unmarked(body)))
        }
        CompactionMode::Provider => Some((end, provider_request(session, setup, end)?)),
        CompactionMode::Auto | CompactionMode::Input => {
            Some((end, unmarked(summary_request(session, &setup.provider, end)?)))
        }
    })
}

/// Returns who shortens the conversation: the application, the provider or the service that keeps it.
///
/// # Errors
/// `state_owner_conflict` if the session's owner cannot have its conversation shortened like this; `config_invalid` if
/// the provider cannot.
pub(super) fn resolve_mode(session: &OpenSession, request: &CompactionRequest) -> Result<CompactionMode> {
    let mode = mode_for_owner(session, request.mode)?;
    if mode == CompactionMode::Provider {
        check_can_compact(request_setup(session, request)?.provider.dialect)?;
    }
    Ok(mode)
}

fn mode_for_owner(session: &OpenSession, mode: CompactionMode) -> Result<CompactionMode> {
    let owner = session.owner()?;
    let log = session.log.borrow();
    // A chain after a response of the application's has content that is not stored here, unless a compaction has it.
    let is_held = log.history.compaction().is_some_and(|compaction| owner.replaces_chain(compaction));
    let problem = match (&owner, mode) {
        (StateOwner::Session, CompactionMode::Auto | CompactionMode::Input) => return Ok(CompactionMode::Input),
        (StateOwner::Response { .. }, CompactionMode::PreviousResponseId) => {
            return Ok(CompactionMode::PreviousResponseId);
        }
        (StateOwner::BegunConversation { .. }, CompactionMode::Auto | CompactionMode::Input) => {
            return Ok(CompactionMode::Input);
        }
        (StateOwner::BegunConversation { .. }, _) => {
            "the service does not shorten the conversations that the session begins; use `mode: \"input\"`, which begins another one with the summary"
        }
        (StateOwner::Session, CompactionMode::Provider) => return Ok(CompactionMode::Provider),
        (StateOwner::Response { previous, .. }, mode) if previous.is_none() || is_held => {
            let is_by_provider = mode == CompactionMode::Provider;
            return Ok(if is_by_provider { CompactionMode::Provider } else { CompactionMode::Input });
        }
        (StateOwner::Response { .. }, CompactionMode::Auto) => return Ok(CompactionMode::PreviousResponseId),
        (StateOwner::Session, CompactionMode::PreviousResponseId) => {
            "the history is kept here, and every request contains it; use `mode: \"input\"`"
        }
        (StateOwner::Caller, _) => {
            "the application holds the conversation, so no request contains what a summary would replace"
        }
        (StateOwner::Response { .. }, CompactionMode::Input | CompactionMode::Provider) => {
            "the chain of responses begins with one whose content is not stored here; use `mode: \"previous_response_id\"`"
        }
        _ => {
            "the service keeps the conversation and shortens it itself; to compact it here, open the session with `owner: { kind: \"session\" }`"
        }
    };
    Err(Error::new(ErrorCode::StateOwnerConflict, format!("the session cannot be compacted like this: {problem}")))
}

/// Returns true if the newest request was as large as a compaction of so many tokens needs, and had the messages that
/// are not compacted yet.
pub(super) fn has_reached(session: &OpenSession, request: &CompactionRequest) -> bool {
    request.tokens.is_some_and(|tokens| newest_tokens(session, request).is_some_and(|newest| newest >= tokens))
}

/// Returns the tokens of the newest request and its answer: as the provider reported them, else estimated, as for a
/// request without the compaction that the next one begins with. `None` if there is no answer after the last compaction.
fn newest_tokens(session: &OpenSession, request: &CompactionRequest) -> Option<u64> {
    let RequestSetup { provider, instructions, tools } = request_setup(session, request).ok()?;
    let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
    let now = session.context.now();
    let log = session.log.borrow();
    let start = log.history.compaction().map_or(0, |compaction| compaction.end);
    let since = log.history.messages().get(start..).unwrap_or_default();
    let newest = since.iter().rev().find(|message| message.answer.is_some())?;
    let request =
        RenderRequest { provider: &provider, instructions: instructions.as_deref(), tools: &tools, policy: &policy };
    let usage = newest.answer.as_ref().and_then(|answer| answer.usage);
    let reported = usage.map(|usage| usage.input.saturating_add(usage.output)).filter(|tokens| *tokens > 0);
    let reported = reported.filter(|_| began_with_compaction(&log.history, newest, &request));
    Some(reported.unwrap_or_else(|| estimated_tokens(&log.history, &request, now)))
}

/// Returns true if the request of an answer began with the compaction that the next request begins with, if there is
/// one: a run keeps the history that it began with.
fn began_with_compaction(history: &History, answer: &Message, request: &RenderRequest<'_>) -> bool {
    let of_run = |message: &&Message| message.run_id.is_some() && message.run_id == answer.run_id;
    let own = Some(request.compacted_before(history, usize::MAX)).filter(|own| *own > 0);
    if let Some(own) = own.and_then(|own| history.messages().get(own)) {
        return !of_run(&own);
    }
    let Some(compaction) = request.compaction(history) else { return true };
    let since = history.messages().get(compaction.end..).unwrap_or_default();
    let first = since.iter().find(of_run).unwrap_or(answer);
    first.created_at > compaction.stored.message.created_at
}

/// Returns what a compaction may cover now.
fn compactable(session: &OpenSession) -> Compactable {
    let log = session.log.borrow();
    log.history.compactable(&|run| log.head.run(run).is_some())
}

/// Returns true if a run of the session lives in another tab, or waits for an approval.
async fn has_run_under_way(session: &OpenSession) -> Result<bool> {
    let head = session.log.borrow().head.clone();
    if head.runs.is_empty() {
        return Ok(false);
    }
    let context = &session.context;
    let holders = LiveHolders::query(context).await;
    // Of a question that waits there is nothing to compact.
    for run in head.pending_runs().filter(|run| !run.is_queued()) {
        let name = lock_name(context, &session.id, &run.id);
        if context.live.borrow().contains(&name) || holders.has_holder(&name, run) {
            return Ok(true);
        }
        // A journal that cannot be read is reported where pending runs are listed.
        let waits = run.failed.is_none()
            && journal_of(context, &session.id, run).await.is_ok_and(|stored| stored.waits_for_approval());
        if waits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns what the summary's request is made for: the dialect and params of the call, or what the last run or render
/// was made for, or what the stored history names.
fn request_setup(session: &OpenSession, request: &CompactionRequest) -> Result<RequestSetup> {
    let last = session.last_request_setup.borrow();
    let Some(given) = &request.provider else {
        return match &*last {
            Some(last) => Ok(last.clone()),
            None => Ok(RequestSetup { provider: provider_of_history(session)?, instructions: None, tools: Vec::new() }),
        };
    };
    // The call names no URL, instructions and tools. Those of the conversation's requests in this dialect are meant.
    match last.as_ref().filter(|last| last.provider.dialect == given.dialect) {
        Some(last) => {
            let provider = ProviderRequest { url: last.provider.url.clone(), ..given.clone() };
            Ok(RequestSetup { provider, ..last.clone() })
        }
        None => Ok(RequestSetup { provider: given.clone(), instructions: None, tools: Vec::new() }),
    }
}

/// Returns the body that asks for the summary of the messages before the index `end`.
fn summary_request(session: &OpenSession, provider: &ProviderRequest, end: usize) -> Result<Vec<u8>> {
    let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
    let request = RenderRequest { provider, instructions: None, tools: &[], policy: &policy };
    let now = session.context.now();
    compaction_body(&session.log.borrow().history, end, &request, now)
}

/// Returns the request that has the provider compact the messages before the index `end`.
///
/// # Errors
/// As [`check_can_compact`], and if the request's parameters or tools are invalid.
fn provider_request(session: &OpenSession, setup: &RequestSetup, end: usize) -> Result<ProviderCompactionBody> {
    let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
    let RequestSetup { provider, instructions, tools } = setup;
    let request = RenderRequest { provider, instructions: instructions.as_deref(), tools, policy: &policy };
    let now = session.context.now();
    provider_compaction_body(&session.log.borrow().history, end, &request, now)?
        .ok_or_else(|| cannot_compact(provider.dialect))
}

/// Rejects a dialect whose providers do not compact a conversation.
///
/// # Errors
/// `config_invalid`.
fn check_can_compact(dialect: Dialect) -> Result<()> {
    if can_compact(dialect) { Ok(()) } else { Err(cannot_compact(dialect)) }
}

fn cannot_compact(dialect: Dialect) -> Error {
    let name = dialect.as_str();
    Error::config(format!("providers of the dialect \"{name}\" do not compact a conversation; use `mode: \"input\"`"))
}

/// Returns the body that has the service shorten its chain of responses, and the index after the last message in the
/// chain. None if the chain has nothing new, or more than the turns before the index `end`.
///
/// # Errors
/// `state_owner_conflict` if the dialect's service does not shorten chains.
fn chain_request(session: &OpenSession, provider: &ProviderRequest, end: usize) -> Result<Option<(usize, Vec<u8>)>> {
    let owner = session.owner()?;
    let log = session.log.borrow();
    let delta = Delta::new(&owner, provider.dialect, &log.history, None);
    let (Some(response), Some(chain_end)) = (delta.response_id(), delta.chain_end()) else { return Ok(None) };
    let model = provider.params.view().text("model");
    let body = compaction_request(provider.dialect, model.as_deref(), response).ok_or_else(|| {
        let name = provider.dialect.as_str();
        let sentence =
            format!("services of the dialect \"{name}\" shorten no chain of responses; use `mode: \"input\"`");
        Error::new(ErrorCode::StateOwnerConflict, sentence)
    })?;
    Ok((chain_end <= end).then_some((chain_end, body)))
}

/// Returns the response before the chain that a compaction made now contains.
fn chain_start(session: &OpenSession) -> Result<Option<String>> {
    Ok(match session.owner()? {
        StateOwner::Response { previous, .. } => previous,
        _ => session.log.borrow().history.compaction().and_then(|compaction| compaction.stored.chain_start.clone()),
    })
}

/// Returns the ids of the response or conversation that the next request continues, and of its newest answer. The
/// summary may be of another dialect.
fn newest_response(session: &OpenSession) -> Result<Option<(String, String)>> {
    let (owner, log) = (session.owner()?, session.log.borrow());
    let newest = log.history.messages().iter().rev().find(|message| owner.mark_of(message).is_some());
    let Some((answer, dialect)) = newest.and_then(|answer| Some((answer, answer.dialect?))) else { return Ok(None) };
    let continued = Delta::new(&owner, dialect, &log.history, None).response_id().map(ToOwned::to_owned);
    Ok(continued.map(|id| (id, answer.id.clone())))
}

/// Reads the service's answer to a [`chain_request`].
///
/// # Errors
/// `callback_failed` for anything else.
fn read_items(provider: &ProviderRequest, text: &str) -> Result<Vec<Json>> {
    compacted_items(provider.dialect, text).ok_or_else(|| {
        let sentence = "in the mode \"previous_response_id\" `summarize` returns the body of the service's answer as text; nothing was compacted";
        Error::new(ErrorCode::CallbackFailed, sentence)
    })
}

/// Reads a provider's answer to a [`provider_request`]; `None` if it has no summary.
///
/// # Errors
/// `callback_failed` for anything else.
fn read_provider_items(provider: &ProviderRequest, text: &str) -> Result<Option<Vec<Json>>> {
    match read_provider_summary(provider.dialect, text) {
        ProviderSummary::Items(items) => Ok(Some(items)),
        ProviderSummary::Nothing => Ok(None),
        ProviderSummary::Unknown => {
            let sentence = "in the mode \"provider\" `summarize` returns the body of the provider's answer as text, and this one has no compaction; nothing was compacted";
            Err(Error::new(ErrorCode::CallbackFailed, sentence))
        }
    }
}

/// Returns a request to the model that gave the newest stored answer; without an answer, in the dialect of the newest
/// message.
fn provider_of_history(session: &OpenSession) -> Result<ProviderRequest> {
    let log = session.log.borrow();
    let newest = || log.history.messages().iter().rev();
    let answered = newest().find_map(|message| Some((message.dialect?, message.answer.as_ref()?.model.as_deref())));
    let Some((dialect, model)) = answered.or_else(|| newest().find_map(|message| Some((message.dialect?, None))))
    else {
        return Err(Error::config("`dialect` of `compact` is missing, and no stored message says which one it is"));
    };
    let params: Json = ObjectWriter::build(|out| {
        if let Some(model) = model {
            out.text("model", model);
        }
    });
    let settings = Settings::default();
    Ok(ProviderRequest { dialect, url: String::new(), params, stream: false, headers: Vec::new(), settings })
}

/// Stores a summary, unless it does not apply any more.
async fn store(
    session: &Rc<OpenSession>,
    mut summary: StoredSummary,
    outcome: CompactionOutcome,
) -> Result<CompactionOutcome> {
    // Tells which runs began with it.
    summary.message.created_at = session.context.now();
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    let was_deferred = session.log.borrow().head.has_deferred_compaction;
    let change = Change {
        summaries: vec![summary],
        edit: if was_deferred { Some(Box::new(|head| head.has_deferred_compaction = false)) } else { None },
        ..session.new_change()
    };
    match session.commit(change).await {
        Err(error) if error.code == ErrorCode::Conflict => return Ok(CompactionOutcome::Superseded),
        committed => committed?,
    };
    session.compaction.overtaken.clear();
    session.compaction.drop_deferred();
    session.update_hold();
    session.notify();
    Ok(outcome)
}

/// Defers a compaction: here with its function, and in the head, for when this tab is gone. One that has to reach a
/// number of tokens is due only then, and is here alone; it takes the place of no other.
async fn defer(session: &Rc<OpenSession>, request: Rc<CompactionRequest>) -> Result<()> {
    let is_conditional = request.is_conditional();
    session.compaction.deferred.borrow_mut().take_if(|waiting| waiting.is_conditional() || !is_conditional);
    session.compaction.deferred.borrow_mut().get_or_insert(request);
    let stored = if is_conditional { Ok(()) } else { store_deferral(session).await };
    if stored.is_err() {
        session.compaction.drop_deferred();
    }
    session.update_hold();
    // The run may have ended meanwhile.
    session.run_deferred_compaction();
    stored
}

/// Stores that a compaction is deferred.
async fn store_deferral(session: &OpenSession) -> Result<()> {
    if session.log.borrow().head.has_deferred_compaction {
        return Ok(());
    }
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    let edit: HeadEdit = Box::new(|head| head.has_deferred_compaction = true);
    session.commit(Change { edit: Some(edit), ..session.new_change() }).await?;
    Ok(())
}

impl OpenSession {
    /// Makes the compaction that waits for a turn to be over, if it is. A failure is a warning: nobody waits for it.
    pub fn run_deferred_compaction(&self) {
        if self.compaction.is_under_way.get() {
            self.compaction.must_check_again.set(true);
            return;
        }
        if self.is_run_active() || !self.compaction.is_deferred() || self.context.check_open().is_err() {
            return;
        }
        if !matches!(compactable(self), Compactable::Turns { .. }) {
            return;
        }
        let Some(session) = self.weak_self.upgrade() else { return };
        self.context.spawn(async move {
            let Some(request) = session.compaction.deferred.take() else { return };
            let outcome = compact_exclusively(&session, &request).await;
            session.compaction.note_outcome(&outcome);
            if matches!(outcome, Ok(CompactionOutcome::UnderWay | CompactionOutcome::Deferred)) {
                session.compaction.deferred.borrow_mut().get_or_insert(request);
            }
            session.update_hold();
            // What it waits for may have happened meanwhile.
            if outcome == Ok(CompactionOutcome::Deferred) && session.compaction.must_check_again.take() {
                session.run_deferred_compaction();
            }
            if let Err(error) = outcome
                && session.context.check_open().is_ok()
            {
                let message =
                    format!("the deferred compaction of session \"{}\" failed: {}", session.id, error.message);
                let code = match error.code {
                    ErrorCode::CallbackFailed => FindingCode::CallbackFailed,
                    _ => FindingCode::CompactionFailed,
                };
                session.context.warn(&[Finding::warning(code, message)]);
            }
        });
    }
}
