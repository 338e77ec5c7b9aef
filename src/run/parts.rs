//! The small moves that transitions are made of: a new run, an effect offered, a write asked for.

use super::credential_filter::CredentialFilter;
use super::effect::{EffectKind, Save, SaveKind};
use super::event::RunEvent;
use super::open_effects::OpenEffects;
use super::redaction::Redactions;
use super::state::RunState;
use super::{Run, RunSetup};
use crate::error::{Code, Error, Result};
use crate::finding::{Finding, Report};
use crate::history::History;
use crate::json::JsonStr;
use std::collections::VecDeque;

impl Run {
    pub(super) fn new(setup: RunSetup, live: History) -> Self {
        let redactions = Redactions::new(live.seed());
        Self {
            credential_filter: CredentialFilter::new(&setup.provider),
            setup,
            live,
            state: RunState::Beginning { save: 0, cancelled: false },
            effects: OpenEffects::default(),
            saves: VecDeque::new(),
            events: Vec::new(),
            next: 1,
            turns: 0,
            usage: None,
            report: Report::new(),
            text: JsonStr::new(""),
            response_id: None,
            container: None,
            unsaved: VecDeque::new(),
            redactions,
            cut_answer: None,
        }
    }

    pub(super) fn is_open(&self, effect: &str) -> Result<bool> {
        self.effects.is_open(effect).ok_or_else(|| {
            Error::new(Code::UnknownEffect, format!("no effect \"{effect}\" was ever given by this run"))
        })
    }

    pub(super) fn message_started(&mut self) {
        let RunState::Calling(call) = &self.state else { return };
        let position = self.live.position();
        self.events.push(RunEvent::MessageStarted {
            message_id: call.message_id.clone(),
            turn: self.turns.saturating_sub(1),
            round: position.rounds,
        });
    }

    pub(super) fn warn(&mut self, finding: Finding) {
        self.report.push(finding.clone());
        self.events.push(RunEvent::Warning(finding));
    }

    pub(super) fn offer(&mut self, kind: EffectKind) -> String {
        self.effects.offer(kind)
    }

    pub(super) fn save(&mut self, kind: SaveKind) -> u64 {
        let id = self.next;
        self.next += 1;
        let sources = self.live.highest_source();
        self.saves.push_back(Save { id, kind, sources });
        id
    }

    /// Whether the run can only go on when that write is there.
    pub(super) fn awaits(&self, id: u64) -> bool {
        match &self.state {
            RunState::Beginning { save, .. } | RunState::Recording { save, .. } | RunState::Ending { save, .. } => {
                *save == id
            }
            RunState::Tools(tasks) => tasks.awaits(id),
            RunState::Asking(_) | RunState::Calling(_) | RunState::Waiting { .. } | RunState::Done(_) => false,
        }
    }

    /// The binding could not write this: it waits for [`RunInput::RetrySave`].
    pub fn keep_unsaved(&mut self, save: Save) {
        if self.awaits(save.id) {
            self.unsaved.push_back(save);
        }
    }
}
