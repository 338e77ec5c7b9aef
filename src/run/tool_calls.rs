//! The transitions of a round of tool calls.

use super::context::RunContext;
use super::effect::{EffectReply, SaveKind};
use super::journal::JournalEntry;
use super::state::{Run, RunState};
use super::tool_round::{ToolRound, ends_run};
use crate::error::Result;
use crate::history::HistoryEntry;
use std::collections::BTreeMap;

impl Run {
    /// Offers the calls of the last answer. `attempts` are the started calls of a resumed run.
    pub(super) fn begin_tools(&mut self, attempts: Option<&BTreeMap<String, u32>>, context: &mut RunContext<'_>) {
        let mut round = ToolRound::new(&self.live, &self.setup, attempts, context.now);
        while let Some(effect) = round.next_effect() {
            let id = self.offer(effect);
            round.set_effect_id(id);
        }
        let results = round.take_known_results();
        if !results.is_empty() {
            let mut journal = Vec::new();
            for entry in results {
                self.live.apply(HistoryEntry::Result(entry.clone()));
                self.events.push(round.finished_event(&entry, &self.live));
                journal.push(JournalEntry::Finished(entry));
            }
            let save = self.save(SaveKind::Write(journal));
            round.add_save(save);
        }
        self.state = RunState::AwaitingTools(round);
        self.tools_done(context);
    }

    /// Handles the reply to a `run_tool` effect.
    pub(super) fn tool_reply(&mut self, effect: &str, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        let RunState::AwaitingTools(round) = &mut self.state else { return Ok(()) };
        let Some(transition) = round.reply(effect, reply, &mut self.live, context.now)? else { return Ok(()) };
        self.events.push(transition.event);
        if transition.is_answered {
            self.effects.close(effect);
        }
        let save = self.save(SaveKind::Write(transition.journal));
        if let RunState::AwaitingTools(round) = &mut self.state {
            round.add_save(save);
        }
        Ok(())
    }

    /// Calls the model again, or finishes, if every result is saved.
    pub(super) fn tools_done(&mut self, context: &mut RunContext<'_>) {
        let RunState::AwaitingTools(round) = &self.state else { return };
        if !round.all_done() {
            return;
        }
        if ends_run(&self.live, &self.setup) { self.finish() } else { self.call_model(context) }
    }
}
