//! `Session.compact`: the application's model writes a summary of the turns that are over, which requests then contain instead of them (R30).

use super::compaction_state::{CompactionMode, CompactionRequest};
use super::journals::journal_of;
use super::option_reader::{BoundFunction, UnreadObject, read_options, words};
use super::promise::in_background;
use super::reducers::call_summarize;
use super::results::CompactResult;
use super::run_lock::{LiveOwners, lock_name};
use super::run_request::{DialectOption, provider_of_render};
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{Compactable, StoredSummary};
use crate::json::{Json, ObjectWriter};
use crate::owner::{Delta, StateOwner};
use crate::provider::{ProviderRequest, Settings, compacted_items, compaction_request};
use crate::render::{RenderRequest, compaction_body};
use crate::replay::PolicyLayer;
use crate::store::{Change, HeadEdit};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// The number of answers, calls and results from which a history is compacted.
const MIN_ITEMS: usize = 10;

words!(
    /// `mode`.
    CompactionModeOption: CompactionMode {
        "auto" => CompactionMode::Auto,
        "input" => CompactionMode::Input,
        "previous_response_id" => CompactionMode::Chain,
    }
);

/// The options of `Session.compact`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactOptions {
    mode: Option<CompactionModeOption>,
    force: Option<bool>,
    summarize: BoundFunction,
    dialect: Option<DialectOption>,
    params: Option<UnreadObject>,
}

impl CompactOptions {
    /// # Errors
    /// `config_invalid`.
    pub fn read(options: &JsValue) -> Result<Rc<CompactionRequest>> {
        let Self { mode, force, summarize, dialect, params } = read_options("the options of `compact`", options)?;
        if params.is_some() && dialect.is_none() {
            return Err(Error::config("`params` of `compact` belong to a `dialect`; pass both, or neither"));
        }
        let mode = mode.map_or(CompactionMode::Auto, |option| option.0);
        let provider = dialect.map(|dialect| provider_of_render(dialect, params)).transpose()?;
        Ok(Rc::new(CompactionRequest { mode, is_forced: force.unwrap_or(false), summarize, provider }))
    }
}

/// How a call of `compact` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// It was made: there was enough to compact.
    Threshold,
    /// It was made because of `force`.
    Forced,
    /// It was made because an earlier one could not be.
    WasDeferred,
    /// There is less than the threshold.
    BelowThreshold,
    /// No turn is over that is not compacted already.
    NothingNew,
    /// A run is under way, or a turn waits for results of tools.
    Deferred,
    /// Another call of this session is under way.
    UnderWay,
    /// Another writer compacted meanwhile, or changed what the summary covers, or a run continued the chain of responses.
    Superseded,
}

impl From<CompactionOutcome> for CompactResult {
    fn from(outcome: CompactionOutcome) -> Self {
        let (compacted, reason) = match outcome {
            CompactionOutcome::Threshold => (true, "threshold"),
            CompactionOutcome::Forced => (true, "forced"),
            CompactionOutcome::WasDeferred => (true, "was_deferred"),
            CompactionOutcome::BelowThreshold => (false, "below_threshold"),
            CompactionOutcome::NothingNew => (false, "nothing_new"),
            CompactionOutcome::Deferred => (false, "deferred"),
            CompactionOutcome::UnderWay => (false, "under_way"),
            CompactionOutcome::Superseded => (false, "superseded"),
        };
        Self { compacted, reason }
    }
}

/// Compacts a session, or remembers to.
///
/// # Errors
/// `state_owner_conflict`, `config_invalid`, `callback_failed`, and the store's own. Nothing is stored then.
pub async fn compact(session: &Rc<SessionInner>, request: Rc<CompactionRequest>) -> Result<CompactionOutcome> {
    if session.compaction.is_under_way.replace(true) {
        return Ok(CompactionOutcome::UnderWay);
    }
    let outcome = compact_now(session, &request).await;
    session.compaction.is_under_way.set(false);
    if outcome == Ok(CompactionOutcome::Deferred) {
        defer(session, request).await?;
    }
    outcome
}

async fn compact_now(session: &Rc<SessionInner>, request: &CompactionRequest) -> Result<CompactionOutcome> {
    if session.has_or_starts_run() {
        resolve_mode(session, request.mode)?;
        return Ok(CompactionOutcome::Deferred);
    }
    session.refresh().await?;
    let mode = resolve_mode(session, request.mode)?;
    if has_run_under_way(session).await? {
        return Ok(CompactionOutcome::Deferred);
    }
    let was_deferred = session.log.borrow().head.has_deferred_compaction;
    let (end, candidates) = match compactable(session) {
        Compactable::Nothing => return Ok(CompactionOutcome::NothingNew),
        Compactable::Unfinished => return Ok(CompactionOutcome::Deferred),
        Compactable::Turns { end, candidates } => (end, candidates),
    };
    let outcome = match candidates {
        _ if request.is_forced => CompactionOutcome::Forced,
        _ if was_deferred => CompactionOutcome::WasDeferred,
        MIN_ITEMS.. => CompactionOutcome::Threshold,
        _ => return Ok(CompactionOutcome::BelowThreshold),
    };
    let provider = provider_of(session, request)?;
    let (end, body) = match mode {
        CompactionMode::Chain => match chain_request(session, &provider, end)? {
            Some(asked) => asked,
            None => return Ok(CompactionOutcome::NothingNew),
        },
        CompactionMode::Auto | CompactionMode::Input => (end, summary_request(session, &provider, end)?),
    };
    let Some(coverage) = session.log.borrow().history.coverage(end) else { return Ok(CompactionOutcome::NothingNew) };
    let chain_start = chain_start(session)?;
    let continued = newest_response(session)?;
    let text = call_summarize(&request.summarize, (&body, mode.as_str())).await?;
    let is_continued = newest_response(session)? != continued;
    if matches!(session.owner()?, StateOwner::Response { .. }) && (is_continued || session.has_or_starts_run()) {
        // The answer meanwhile belongs to the old chain, which the next request would continue.
        return Ok(CompactionOutcome::Superseded);
    }
    let summary = match mode {
        CompactionMode::Chain => {
            StoredSummary::of_items(coverage, (provider.dialect, read_items(&provider, &text)?), chain_start)
        }
        CompactionMode::Auto | CompactionMode::Input => StoredSummary::compaction(coverage, &text, chain_start),
    };
    store(session, summary, outcome).await
}

/// Returns who shortens the conversation: the application or the service.
///
/// # Errors
/// `state_owner_conflict` if the session's owner cannot have its conversation shortened like this.
fn resolve_mode(session: &SessionInner, mode: CompactionMode) -> Result<CompactionMode> {
    let owner = session.owner()?;
    let log = session.log.borrow();
    // A chain after a response of the application's has content that is not stored here, unless a compaction has it.
    let is_held = log.history.compaction().is_some_and(|compaction| owner.replaces_chain(compaction));
    let problem = match (&owner, mode) {
        (StateOwner::Session, CompactionMode::Auto | CompactionMode::Input) => return Ok(CompactionMode::Input),
        (StateOwner::Response { .. }, CompactionMode::Chain) => return Ok(CompactionMode::Chain),
        (StateOwner::Response { previous }, _) if previous.is_none() || is_held => return Ok(CompactionMode::Input),
        (StateOwner::Response { .. }, CompactionMode::Auto) => return Ok(CompactionMode::Chain),
        (StateOwner::Session, CompactionMode::Chain) => {
            "the history is kept here, and every request contains it; use `mode: \"input\"`"
        }
        (StateOwner::Caller, _) => {
            "the application holds the conversation, so no request contains what a summary would stand for"
        }
        (StateOwner::Response { .. }, CompactionMode::Input) => {
            "the chain of responses begins with one whose content is not stored here; use `mode: \"previous_response_id\"`"
        }
        _ => {
            "the service keeps the conversation and shortens it itself; to compact it here, open the session with `owner: { kind: \"session\" }`"
        }
    };
    Err(Error::new(ErrorCode::StateOwnerConflict, format!("the session cannot be compacted like this: {problem}")))
}

/// Returns what a compaction may cover now.
fn compactable(session: &SessionInner) -> Compactable {
    let log = session.log.borrow();
    log.history.compactable(&|run| log.head.run(run).is_some())
}

/// Returns true if a run of the session lives in another tab, or waits for an approval.
async fn has_run_under_way(session: &SessionInner) -> Result<bool> {
    let head = session.log.borrow().head.clone();
    if head.runs.is_empty() {
        return Ok(false);
    }
    let context = &session.context;
    let owners = LiveOwners::query(context).await;
    for run in head.pending_runs() {
        let name = lock_name(context, &session.id, &run.id);
        if context.live.borrow().contains(&name) || owners.owns(&name, run) {
            return Ok(true);
        }
        // A journal that cannot be read is reported where pending runs are listed.
        let waits = run.failed.is_none()
            && journal_of(context, &session.id, run).await.is_ok_and(|recovered| recovered.waits_for_approval());
        if waits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns where the summary is asked for.
fn provider_of(session: &SessionInner, request: &CompactionRequest) -> Result<ProviderRequest> {
    match request.provider.clone().or_else(|| session.last_provider.borrow().clone()) {
        Some(provider) => Ok(provider),
        None => provider_of_history(session),
    }
}

/// Returns the body that asks for the summary of the messages before the index `end`.
fn summary_request(session: &SessionInner, provider: &ProviderRequest, end: usize) -> Result<Vec<u8>> {
    let policy = session.policy(PolicyLayer::default(), BTreeMap::new());
    let request = RenderRequest { provider, instructions: None, tools: &[], policy: &policy };
    compaction_body(&session.log.borrow().history, end, &request, session.context.now())
}

/// Returns the body that has the service shorten its chain of responses, and the index after the last message in the chain. None if the chain
/// has nothing new, or more than the turns before the index `end`.
///
/// # Errors
/// `state_owner_conflict` if the dialect's service does not shorten chains.
fn chain_request(session: &SessionInner, provider: &ProviderRequest, end: usize) -> Result<Option<(usize, Vec<u8>)>> {
    let owner = session.owner()?;
    let log = session.log.borrow();
    let delta = Delta::new(&owner, &log.history, None);
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
fn chain_start(session: &SessionInner) -> Result<Option<String>> {
    Ok(match session.owner()? {
        StateOwner::Response { previous } => previous,
        _ => session.log.borrow().history.compaction().and_then(|compaction| compaction.stored.chain_start.clone()),
    })
}

/// Returns the id of the response that the next request continues.
fn newest_response(session: &SessionInner) -> Result<Option<String>> {
    let log = session.log.borrow();
    Ok(Delta::new(&session.owner()?, &log.history, None).response_id().map(ToOwned::to_owned))
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

/// Returns a request to the model that gave the newest stored answer; without an answer, in the dialect of the newest message.
fn provider_of_history(session: &SessionInner) -> Result<ProviderRequest> {
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
    session: &Rc<SessionInner>,
    summary: StoredSummary,
    outcome: CompactionOutcome,
) -> Result<CompactionOutcome> {
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
    session.compaction.drop_deferred();
    session.update_hold();
    session.notify();
    Ok(outcome)
}

/// Defers a compaction: here with its function, and in the head, for when this tab is gone.
async fn defer(session: &Rc<SessionInner>, request: Rc<CompactionRequest>) -> Result<()> {
    session.compaction.deferred.replace(Some(request));
    let stored = store_deferral(session).await;
    if stored.is_err() {
        session.compaction.drop_deferred();
    }
    session.update_hold();
    // The run may have ended meanwhile.
    session.run_deferred_compaction();
    stored
}

/// Stores that a compaction is deferred.
async fn store_deferral(session: &SessionInner) -> Result<()> {
    if session.log.borrow().head.has_deferred_compaction {
        return Ok(());
    }
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    let edit: HeadEdit = Box::new(|head| head.has_deferred_compaction = true);
    session.commit(Change { edit: Some(edit), ..session.new_change() }).await?;
    Ok(())
}

impl SessionInner {
    /// Makes the compaction that waits for a turn to be over, if it is. A failure is a warning: nobody waits for it.
    pub fn run_deferred_compaction(&self) {
        let is_busy = self.has_or_starts_run() || self.compaction.is_under_way.get();
        if is_busy || !self.compaction.is_deferred() || self.context.check_open().is_err() {
            return;
        }
        if !matches!(compactable(self), Compactable::Turns { .. }) {
            return;
        }
        let Some(session) = self.weak_self.upgrade() else { return };
        in_background(async move {
            let Some(request) = session.compaction.deferred.take() else { return };
            let outcome = compact(&session, request.clone()).await;
            if outcome == Ok(CompactionOutcome::UnderWay) {
                session.compaction.deferred.borrow_mut().get_or_insert(request);
            }
            session.update_hold();
            if let Err(error) = outcome
                && session.context.check_open().is_ok()
            {
                let message =
                    format!("the deferred compaction of session \"{}\" failed: {}", session.id, error.message);
                session.context.warn(&[Finding::warning(FindingCode::CallbackFailed, message)]);
            }
        });
    }
}
