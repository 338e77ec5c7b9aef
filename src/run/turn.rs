//! The turn that a run builds, with what all its states share: configuration, effects, saves, events and totals.

use super::credential_filter::CredentialFilter;
use super::effect::{EffectKind, Save, SaveKind};
use super::event::RunEvent;
use super::handoff::{Handoff, RunHandoffs, StoredHandoff, handoffs_mismatch};
use super::healing::RunHealing;
use super::history_choice::HistoryChoice;
use super::journal::JournalEntry;
use super::open_effects::OpenEffects;
use super::persist_question::{PersistQuestion, PersistReply};
use super::redaction::Redactions;
use super::replay_safety::RequestDelivery;
use super::run_writes::unstored_of_stopped_turn;
use super::save_queue::SaveQueue;
use super::setup::{Persistence, RunSetup};
use super::stored_turn::StoredTurn;
use super::turn_totals::TurnTotals;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, Report};
use crate::history::{History, HistoryEntry, ResultEntry};
use crate::json::JsonStr;
use crate::message::{KeptHead, Message, MessageStatus, PrefixMark, ServiceMark};
use crate::owner::StateOwner;
use crate::provider::Assembled;
use crate::replay::HandoffView;
use crate::store::{RecordKind, open_whole_record};
use crate::tool::{InvocationStatus, ToolInvocation};
use bytes::Bytes;
use std::collections::BTreeMap;

mod background;
mod chain;
mod continuation;
mod drop_mark;
mod outcome;
mod second_results;

pub(super) use continuation::{TOKEN_REFUSED, text_of_last_answer};

/// The data of a run, with its turn. The run's states change it, and own what only they need.
pub(super) struct RunData {
    setup: RunSetup,
    /// The messages and calls so far.
    live: History,
    /// What was handed to a save of it.
    stored: StoredTurn,
    effects: OpenEffects,
    saves: SaveQueue,
    events: Vec<RunEvent>,
    totals: TurnTotals,
    report: Report,
    /// Removes the request's credentials from the provider's error texts.
    credential_filter: CredentialFilter,
    /// What is stored instead of arguments and results (R12).
    redactions: Redactions,
    /// The incomplete answer of a run that failed or was stopped.
    cut_answer: Option<Message>,
    /// The sealed journal entries by the save that they were taken with, redacted, for snapshots. Those of a resumed
    /// run are at 0.
    journal: BTreeMap<u64, Vec<Bytes>>,
    /// The `seq` after the last stored message when the newest body was built.
    history_end: u64,
    /// The ids of the messages that the application's filter held back from the newest request.
    held_back: Vec<String>,
    /// The late results that ended the newest body.
    late_results: Vec<String>,
    /// What the newest request contained, for its answer.
    prefix_mark: Option<PrefixMark>,
    /// What the service keeps with the chain that the newest body is of, besides messages.
    kept_head: Option<KeptHead>,
    /// True if the run changed the owner.
    new_owner: bool,
    /// What is known of the newest request to a service that keeps the conversation.
    request_delivery: RequestDelivery,
    /// The conversation that the newest request continues at an address of its own.
    addressed: Option<String>,
    /// True if the service does not continue the chain of responses any more, until it gives another response with an
    /// id.
    chain_is_restarted: bool,
    /// The handoffs so far: those in effect, and the one that the next model call waits for.
    handoffs: RunHandoffs,
    /// What the requests contain of history.
    history_choice: HistoryChoice,
    /// What was refused, and is not sent again.
    healing: RunHealing,
    /// The newest save that tells the session that requests let the service drop reasoning.
    drop_mark: Option<u64>,
}

impl RunData {
    /// Creates a turn of these messages.
    pub fn new(setup: RunSetup, live: History, stored: StoredTurn, report: Report) -> Self {
        Self {
            credential_filter: CredentialFilter::new(&setup.provider),
            redactions: Redactions::new(live.seed()),
            setup,
            live,
            stored,
            effects: OpenEffects::default(),
            saves: SaveQueue::default(),
            events: Vec::new(),
            totals: TurnTotals::default(),
            report,
            cut_answer: None,
            journal: BTreeMap::new(),
            history_end: 0,
            held_back: Vec::new(),
            late_results: Vec::new(),
            prefix_mark: None,
            kept_head: None,
            new_owner: false,
            request_delivery: RequestDelivery::Answered,
            addressed: None,
            chain_is_restarted: false,
            handoffs: RunHandoffs::default(),
            history_choice: HistoryChoice::default(),
            healing: RunHealing::default(),
            drop_mark: None,
        }
    }

    /// Returns the configuration.
    pub fn setup(&self) -> &RunSetup {
        &self.setup
    }

    /// Returns the messages and calls so far.
    pub fn live(&self) -> &History {
        &self.live
    }

    /// Iterates over the messages of the turn, without those that providers added to the request.
    pub fn own_messages(&self) -> impl Iterator<Item = &Message> {
        self.live.messages().iter().filter(|message| !message.source.is_of_provider())
    }

    /// Returns true if a provider added the call to the request.
    pub fn is_provided(&self, call: &ToolInvocation) -> bool {
        self.live.message(&call.message_id).is_some_and(|message| message.source.is_of_provider())
    }

    /// Adds a finding to the report of a run that is over, before its last event.
    pub fn warn_before_end(&mut self, finding: Finding) {
        let at = self.events.len().saturating_sub(1);
        if let Some(RunEvent::Finished(outcome)) = self.events.last_mut() {
            outcome.report.push(finding.clone());
            self.events.insert(at, RunEvent::Warning(finding));
        }
    }

    /// Returns a call of the turn for modification.
    pub fn call_mut(&mut self, invocation: &str) -> Option<&mut ToolInvocation> {
        self.live.invocation_mut(invocation)
    }

    /// Sets whether a call of the turn waits for an approval.
    pub fn set_awaits_approval(&mut self, invocation: &str, awaits: bool) {
        self.live.set_awaits_approval(invocation, awaits);
    }

    /// Adds a message, a call or a result to the turn.
    pub fn apply(&mut self, entry: HistoryEntry) {
        self.live.apply(entry);
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> &TurnTotals {
        &self.totals
    }

    /// Sets the totals of a resumed run.
    pub fn set_totals(&mut self, totals: TurnTotals) {
        self.totals = totals;
    }

    /// Counts a model call, and returns its number, from 0.
    pub fn count_model_call(&mut self) -> u32 {
        self.totals.model_calls += 1;
        self.totals.model_calls - 1
    }

    /// Adds the usage, the text and the response id of an answer to the totals.
    pub fn add_answer(&mut self, assembled: &Assembled) {
        if let Some(usage) = assembled.usage {
            self.totals.usage = Some(self.totals.usage.map_or(usage, |sum| sum.plus(usage)));
        }
        if assembled.response_id.is_some() {
            self.chain_is_restarted = false;
            self.totals.response_id.clone_from(&assembled.response_id);
        }
        if assembled.conversation_id.is_some() {
            self.totals.conversation_id.clone_from(&assembled.conversation_id);
        }
        self.totals.text = self.with_open_text(assembled.text.clone());
    }

    /// Sets the text of an answer that is incomplete.
    pub fn set_text(&mut self, text: JsonStr) {
        self.totals.text = self.with_open_text(text);
    }

    /// Keeps the incomplete answer of a run that failed or was stopped.
    pub fn keep_cut_answer(&mut self, answer: Option<Message>) {
        self.cut_answer = answer;
    }

    /// Returns the incomplete answer of a run that failed or was stopped.
    pub fn cut_answer(&self) -> Option<&Message> {
        self.cut_answer.as_ref()
    }

    /// Returns the filter for the provider's texts.
    pub fn credential_filter(&self) -> &CredentialFilter {
        &self.credential_filter
    }

    /// Emits an event.
    pub fn emit(&mut self, event: RunEvent) {
        self.events.push(event);
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns what is known of refused requests.
    pub fn healing(&self) -> &RunHealing {
        &self.healing
    }

    /// Returns what is known of refused requests for modification.
    pub fn healing_mut(&mut self) -> &mut RunHealing {
        &mut self.healing
    }

    /// Adds findings to the report.
    pub fn add_to_report(&mut self, findings: &[Finding]) {
        self.report.extend_from_slice(findings);
    }

    /// Adds a finding to the report and emits it as a warning event.
    pub fn warn(&mut self, finding: Finding) {
        self.report.push(finding.clone());
        self.events.push(RunEvent::Warning(finding));
    }

    /// Offers an effect; returns its id.
    pub fn offer(&mut self, kind: EffectKind) -> String {
        self.effects.offer(kind)
    }

    /// Closes one effect.
    pub fn close_effect(&mut self, effect: &str) {
        self.effects.close(effect);
    }

    /// Closes all effects.
    pub fn close_effects(&mut self) {
        self.effects.clear();
    }

    /// Returns true if the effect waits for a reply.
    ///
    /// # Errors
    /// `unknown_effect` for an id that was never offered.
    pub fn is_open(&self, effect: &str) -> Result<bool> {
        self.effects.is_open(effect).ok_or_else(|| {
            Error::new(
                ErrorCode::UnknownEffect,
                format!("this run offered no effect \"{effect}\"; use the id of one of its effects"),
            )
        })
    }

    /// Returns the open effects.
    pub fn effects(&self) -> &OpenEffects {
        &self.effects
    }

    /// Takes the numbers of the effects that were closed since the last call.
    pub fn take_closed_effects(&mut self) -> Vec<u64> {
        self.effects.take_closed()
    }

    /// Queues a save for the binding to write, and returns its id.
    pub fn save(&mut self, mut kind: SaveKind) -> u64 {
        if let SaveKind::Write(entries) | SaveKind::Store { journal: entries, .. } = &mut kind
            && !entries.is_empty()
            && let Some(selected) = self.history_choice.take_unjournaled()
        {
            entries.insert(0, selected);
        }
        self.saves.push(kind, &self.live)
    }

    /// Takes the entries that no save has yet, for the last save.
    pub fn take_unstored(&mut self) -> Vec<HistoryEntry> {
        self.stored.take_unstored(&self.live, false)
    }

    /// Takes the entries that no save has yet, of a run that stops; a message at their end has this status.
    pub fn take_stopped(&mut self, partial: Option<Message>, status: MessageStatus) -> Vec<HistoryEntry> {
        unstored_of_stopped_turn(&mut self.stored, &self.live, partial, status)
    }

    /// Returns what the requests contain of history.
    pub fn history_choice(&self) -> &HistoryChoice {
        &self.history_choice
    }

    /// Returns what the requests contain of history, for modification.
    pub fn history_choice_mut(&mut self) -> &mut HistoryChoice {
        &mut self.history_choice
    }

    /// Returns true if the turn has calls of which `persist` keeps something from the store.
    pub fn has_redactable_calls(&self) -> bool {
        self.live.invocations().iter().any(|call| self.setup.persist.contains_key(&call.name))
    }

    /// Queues a save of the choice that the journal does not have yet; returns its id.
    pub fn save_history_choice(&mut self) -> Option<u64> {
        let selected = self.history_choice.take_unjournaled()?;
        Some(self.save(SaveKind::Write(vec![selected])))
    }

    /// Queues a save of the messages that the model was sent and history has not, if this mode writes history before
    /// the run ends.
    pub fn save_inputs(&mut self) {
        if self.setup.persistence == Persistence::Run {
            return;
        }
        let history = self.stored.take_unstored(&self.live, true);
        if !history.is_empty() {
            self.save(SaveKind::Store { journal: Vec::new(), history });
        }
    }

    /// Queues a save that notes in history which of its calls were started and have no result, if there are any.
    pub fn save_interruptions(&mut self, status: InvocationStatus) {
        let history = self.stored.mark_started_calls(&self.live, status);
        if !history.is_empty() {
            self.save(SaveKind::Store { journal: Vec::new(), history });
        }
    }

    /// Queues a save of journal entries and, in the modes that write history at this point, the entries that no save
    /// has yet.
    pub fn save_answer(&mut self, entry: JournalEntry) -> u64 {
        let kind = match self.setup.persistence {
            Persistence::Run => SaveKind::Write(vec![entry]),
            Persistence::Call | Persistence::Result => {
                SaveKind::Store { journal: vec![entry], history: self.stored.take_unstored(&self.live, true) }
            }
        };
        self.save(kind)
    }

    /// Queues a save of journal entries and, in mode `result`, of these results in history. In mode `call` history gets
    /// those that come later.
    pub fn save_results(&mut self, journal: Vec<JournalEntry>, results: Vec<ResultEntry>) -> u64 {
        let kind = match self.setup.persistence {
            Persistence::Run => SaveKind::Write(journal),
            // The requests of other runs contain the calls, and must not close them.
            Persistence::Call if !results.iter().all(|result| result.is_deferral) => SaveKind::Write(journal),
            Persistence::Call | Persistence::Result => {
                SaveKind::Store { journal, history: self.stored.take_results(&self.live, results) }
            }
        };
        self.save(kind)
    }

    /// Takes the next save, redacted.
    pub fn take_save(&mut self) -> Option<Save> {
        let mut save = self.saves.take()?;
        save.owner = self.new_owner.then(|| self.setup.owner.to_stored());
        save.last_request = self.history_choice.last_request_in(&save);
        save.has_dropped = self.marks_drop(&save);
        save.has_async_result = self.has_async_result(&save);
        self.redact(&mut save.kind);
        let entries = save.kind.journal();
        if !entries.is_empty() {
            self.journal.insert(save.id, entries.iter().map(JournalEntry::seal).collect());
        }
        Some(save)
    }

    /// Keeps the journal of a resumed run.
    pub fn keep_journal(&mut self, records: Vec<Bytes>) {
        self.journal.insert(0, records);
    }

    /// Returns the journal: what was written, and what waits to be written.
    ///
    /// # Errors
    /// `corrupt_record`, never in practice.
    pub fn journal(&self) -> Result<Vec<JournalEntry>> {
        let records = self.journal.values().flatten();
        let mut entries: Vec<JournalEntry> =
            records.map(|record| open_whole_record(RecordKind::Journal, record)).collect::<Result<_>>()?;
        for save in self.saves.waiting() {
            let mut kind = save.kind.clone();
            self.redact(&mut kind);
            // A save that is repeated was taken before.
            if !self.journal.contains_key(&save.id) {
                entries.extend_from_slice(kind.journal());
            }
        }
        // Another store does not have them.
        entries.extend(self.stored.results_elsewhere(&self.live).into_iter().map(JournalEntry::Finished));
        entries.extend(self.history_choice.unjournaled().cloned());
        Ok(entries)
    }

    /// Keeps these entries as the journal of snapshots, whatever becomes of the saves that have them.
    pub fn replace_journal(&mut self, entries: &[JournalEntry]) {
        self.journal = BTreeMap::from([(0, entries.iter().map(JournalEntry::seal).collect())]);
    }

    /// Takes the next question about the next save.
    pub fn take_persist_question(&mut self) -> Option<PersistQuestion> {
        self.redactions.take_question(self.saves.front()?, &self.setup.persist, &self.live)
    }

    /// Keeps the reply to a question about a save.
    pub fn take_persist_reply(&mut self, question: &PersistQuestion, reply: PersistReply) {
        if let Some(finding) = self.redactions.take_reply(question, reply) {
            self.warn(finding);
        }
    }

    /// Keeps a save that failed, for a retry.
    pub fn keep_failed_save(&mut self, save: Save) {
        self.saves.keep_failed(save);
    }

    /// Returns true if a save failed and was not retried.
    pub fn has_failed_save(&self) -> bool {
        self.saves.has_failed()
    }

    /// Returns true if one of the failed saves has entries of history.
    pub fn has_failed_history(&self) -> bool {
        self.saves.failed().any(|save| matches!(save.kind, SaveKind::Store { .. }))
    }

    /// Queues the failed saves again.
    pub fn retry_failed_saves(&mut self) {
        self.saves.retry_failed();
    }

    /// Drops the saves that failed. History does not have their calls.
    pub fn drop_failed_saves(&mut self) {
        let calls = self.saves.drop_failed();
        self.stored.forget_calls(&calls);
    }

    /// Drops the effects and the saves of a run that is over.
    pub fn end(&mut self) {
        self.effects.clear();
        self.saves.clear();
    }

    /// Drops the messages, effects, saves and events.
    pub fn release(&mut self) {
        self.live = History::new(self.live.seed());
        self.events.clear();
        self.end();
    }

    /// Records what the body that was built contains of the history.
    pub fn prepare_mark(&mut self, history: &History, kept_head: Option<KeptHead>) {
        self.history_end = self.continued_mark().map_or_else(|| next_seq_of(history), |mark| mark.until);
        self.kept_head = kept_head;
    }

    /// Returns the handoffs.
    pub fn handoffs(&self) -> &RunHandoffs {
        &self.handoffs
    }

    /// Returns the handoffs for modification.
    pub fn handoffs_mut(&mut self) -> &mut RunHandoffs {
        &mut self.handoffs
    }

    /// Accepts a handoff, which takes effect with the next model call.
    ///
    /// # Errors
    /// Those of [`Handoff::check`], and `wrong_state` if another handoff waits for that call; nothing has changed then.
    pub fn accept_handoff(&mut self, mut handoff: Handoff) -> Result<()> {
        handoff.check(&self.setup)?;
        let warning = handoff.without_unsupported_nesting(&self.setup);
        self.handoffs.accept(handoff, false)?;
        warning.into_iter().for_each(|warning| self.warn(warning));
        Ok(())
    }

    /// Lets the pending handoff take effect, if there is one.
    pub fn activate_handoff(&mut self, history: &History) {
        let view = HandoffView::new(self.live.messages().len(), next_seq_of(history));
        self.handoffs.activate_pending(&mut self.setup, view);
    }

    /// Restores the handoffs of a resumed run.
    ///
    /// # Errors
    /// `config_invalid` if the resume does not pass them.
    pub fn restore_handoffs(&mut self, stored: Vec<StoredHandoff>, history: &History) -> Result<()> {
        if stored.iter().any(|handoff| handoff.handoff.is_none()) {
            return Err(handoffs_mismatch(&stored));
        }
        for StoredHandoff { live_end, handoff, .. } in stored {
            let Some(mut handoff) = handoff else { continue };
            let warning = handoff.without_unsupported_nesting(&self.setup);
            warning.into_iter().for_each(|warning| self.warn(warning));
            match live_end {
                Some(live_end) => {
                    let view = HandoffView::new(live_end, next_seq_of(history));
                    self.handoffs.activate(&handoff, &mut self.setup, view);
                }
                None => self.handoffs.accept(handoff, true)?,
            }
        }
        Ok(())
    }

    /// Records which messages the application's filter held back from the newest request.
    pub fn set_held_back(&mut self, held_back: Vec<String>) {
        self.held_back = held_back;
    }

    /// Records what the newest request contained.
    pub fn set_prefix_mark(&mut self, mark: Option<PrefixMark>) {
        self.prefix_mark = mark;
    }

    /// Returns what the newest request contained.
    pub fn prefix_mark(&self) -> Option<PrefixMark> {
        self.prefix_mark
    }

    /// Returns the mark of an answer to the newest body: what the service has when it gives that answer.
    pub fn service_mark(&self, response_id: Option<&str>) -> Option<Box<ServiceMark>> {
        // Another conversation than that of the request does not have what precedes it.
        if self.addressed.as_deref().is_some_and(|asked| response_id != Some(asked)) {
            return None;
        }
        let mark = self.setup.owner.mark(response_id)?;
        let (until, pending, kept_head) = (self.history_end, self.held_back.clone(), self.kept_head);
        Some(Box::new(ServiceMark { until, pending, kept_head, ..mark }))
    }

    /// Sets what is known of the newest request to a service that keeps the conversation.
    pub fn set_request_delivery(&mut self, request_delivery: RequestDelivery) {
        self.request_delivery = request_delivery;
    }

    /// Returns what is known of the newest request to a service that keeps the conversation.
    pub fn request_delivery(&self) -> RequestDelivery {
        self.request_delivery
    }

    /// Changes the owner of the conversation's state.
    pub fn change_owner(&mut self, owner: StateOwner) {
        self.setup.owner = owner;
        self.setup = self.setup.clone().for_owner();
        self.new_owner = true;
    }

    /// Sets the late results that end the body that was built. They are sent before the answer from now on.
    pub fn set_late_results(&mut self, invocations: Vec<String>) {
        self.late_results = invocations;
    }

    /// Adds the result of an open call that another writer has stored.
    pub fn add_stored_result(&mut self, result: ResultEntry) {
        self.stored.note_answered_elsewhere(result.invocation.clone());
        self.live.apply(HistoryEntry::Result(result));
    }

    /// Returns the ids of the invocations of the late results that ended the newest body.
    pub fn late_results(&self) -> &[String] {
        &self.late_results
    }
}

/// Returns the `seq` after the last stored message.
fn next_seq_of(history: &History) -> u64 {
    history.messages().last().map_or(0, |last| last.seq + 1)
}
