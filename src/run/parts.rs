//! The small moves that transitions are made of: a new run, an effect offered, a write asked for.

use super::effect::{Effect, EffectKind, Save, SaveKind};
use super::error_text::ErrorText;
use super::event::RunEvent;
use super::redaction::Redactions;
use super::state::State;
use super::{Run, Setup};
use crate::error::{Code, Error, Result};
use crate::finding::{Finding, Report};
use crate::history::History;
use crate::json::JsonStr;

impl Run {
    pub(super) fn new(setup: Setup, live: History) -> Self {
        Self {
            error_text: ErrorText::new(&setup.provider),
            setup,
            live,
            state: State::Beginning { save: 0, cancelled: false },
            effects: Vec::new(),
            saves: Vec::new(),
            events: Vec::new(),
            next: 1,
            offered: 0,
            turns: 0,
            usage: None,
            report: Report::new(),
            text: JsonStr::new(""),
            response_id: None,
            container: None,
            unsaved: Vec::new(),
            redactions: Redactions::default(),
        }
    }

    pub(super) fn is_open(&self, effect: &str) -> Result<bool> {
        if self.effects.iter().any(|open| open.id == effect) {
            return Ok(true);
        }
        let known =
            effect.strip_prefix('e').and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > 0 && n <= self.offered);
        if known {
            Ok(false)
        } else {
            Err(Error::new(Code::UnknownEffect, format!("no effect \"{effect}\" was ever given by this run")))
        }
    }

    pub(super) fn message_started(&mut self) {
        let State::Calling(call) = &self.state else { return };
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
        self.offered += 1;
        let id = format!("e{}", self.offered);
        self.effects.push(Effect { id: id.clone(), kind });
        id
    }

    pub(super) fn save(&mut self, kind: SaveKind) -> u64 {
        let id = self.next;
        self.next += 1;
        let sources = self.live.highest_source();
        self.saves.push(Save { id, kind, sources });
        id
    }
}
