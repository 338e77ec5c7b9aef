//! Handoffs: from the next model call on, the run belongs to another agent (R31).
//!
//! A handoff is accepted while the run is under way, and takes effect when the tools of the round are answered. The
//! journal has the agent's name only: instructions, tools and functions are passed to a resumed run again.

use super::setup::{RunSetup, ToolSettings};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode};
use crate::provider::{ToolDefinition, drop_unavailable_tool_choice};
use crate::replay::{Callback, HandoffView, ReducerReplies};
use std::collections::BTreeMap;

/// The agent that a run is handed off to, and what it sees of the conversation so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handoff {
    /// The agent's name.
    pub name: String,
    /// The system message of its model calls.
    pub instructions: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// Settings of its tools, by name.
    pub tool_settings: BTreeMap<String, ToolSettings>,
    /// The `persist` functions of its tools.
    pub persist: BTreeMap<String, Callback>,
    /// The `needsApproval` functions of its tools.
    pub approval_callbacks: BTreeMap<String, Callback>,
    /// Selects the messages that the agent sees.
    pub input_filter: Option<Callback>,
    /// True if the agent sees the conversation so far as one message.
    pub nests_history: bool,
}

impl Handoff {
    /// Checks that a run of this setup can be handed off.
    ///
    /// # Errors `config_invalid` for an agent without a name and for tools that the request cannot have;
    /// `handoff_filter_not_supported` if a service keeps the conversation, of which no message can be taken back.
    pub(super) fn check(&self, setup: &RunSetup) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::config("`name` of a handoff is empty; it names the agent in history"));
        }
        if self.input_filter.is_some() && setup.owner.is_stateful() {
            return Err(Error::new(
                ErrorCode::HandoffFilterNotSupported,
                format!(
                    "`inputFilter` of the handoff to \"{}\" has nothing to filter: the service keeps the conversation; leave it out, or let \
                     the session own the conversation",
                    self.name
                ),
            ));
        }
        let mut next = setup.clone();
        next.apply_handoff(self);
        next.check()
    }

    /// Turns nesting off if a service keeps the conversation, and returns the warning about it.
    pub(super) fn without_unsupported_nesting(&mut self, setup: &RunSetup) -> Option<Finding> {
        if !setup.owner.is_stateful() || !std::mem::replace(&mut self.nests_history, false) {
            return None;
        }
        let text =
            format!("`nestHistory` of the handoff to \"{}\" is ignored: the service keeps the conversation", self.name);
        Some(Finding::warning(FindingCode::UnsupportedKey, text).with_action(Action::Dropped))
    }
}

impl RunSetup {
    /// Replaces the instructions and the tools by those of another agent.
    fn apply_handoff(&mut self, handoff: &Handoff) {
        // Tools of `params` remain: the application answers them, whoever calls.
        let is_of_params = |name: &String| !self.tools.iter().any(|tool| tool.name == *name);
        let mut tool_settings = std::mem::take(&mut self.tool_settings);
        tool_settings.retain(|name, _| is_of_params(name));
        tool_settings.extend(handoff.tool_settings.clone());
        self.tool_settings = tool_settings;
        self.instructions.clone_from(&handoff.instructions);
        self.tools.clone_from(&handoff.tools);
        self.approval_callbacks.clone_from(&handoff.approval_callbacks);
        // Earlier calls of the turn are stored later, by the functions of their agents.
        self.persist.extend(handoff.persist.clone());
        let windows = handoff.tool_settings.iter().filter_map(|(name, tool)| Some((name.clone(), tool.freshness?)));
        self.policy.tools.extend(windows);
        let has_tool = |name: &str| self.tool_settings.contains_key(name);
        if let Some(params) = drop_unavailable_tool_choice(self.provider.params.view(), &has_tool) {
            self.provider.params = params;
        }
    }
}

/// The handoffs of a run.
#[derive(Debug, Default)]
pub(super) struct RunHandoffs {
    /// The one that takes effect with the next model call.
    pending: Option<Handoff>,
    /// True if the journal has the pending one, or a save of it is queued.
    is_journaled: bool,
    /// The names of the agents of those in effect.
    agents: Vec<String>,
    /// What the newest agent sees of the messages before each handoff.
    views: Vec<HandoffView>,
    /// What the filters returned.
    replies: ReducerReplies,
}

impl RunHandoffs {
    /// Accepts a handoff.
    ///
    /// # Errors
    /// `wrong_state` if another one waits for the next model call: the first one wins.
    pub fn accept(&mut self, handoff: Handoff, is_journaled: bool) -> Result<()> {
        if let Some(first) = &self.pending {
            let message = format!(
                "the run is handed off to \"{}\" already, which gets the next model call; the handoff to \"{}\" is ignored",
                first.name, handoff.name
            );
            return Err(Error::new(ErrorCode::WrongState, message));
        }
        (self.pending, self.is_journaled) = (Some(handoff), is_journaled);
        Ok(())
    }

    /// Returns the name of the pending agent, once, if the journal does not have it.
    pub fn take_unjournaled(&mut self) -> Option<String> {
        let pending = self.pending.as_ref().filter(|_| !self.is_journaled)?;
        self.is_journaled = true;
        Some(pending.name.clone())
    }

    /// Activates the pending handoff and changes the setup. `view` has the ends of the messages before it.
    pub fn activate_pending(&mut self, setup: &mut RunSetup, view: HandoffView) {
        // An answer that the model continues is continued by the same agent, and no tool of it runs: the journal has no
        // entry yet.
        if self.is_journaled
            && let Some(handoff) = self.pending.take()
        {
            self.activate(&handoff, setup, view);
        }
    }

    /// Activates a handoff and changes the setup.
    pub fn activate(&mut self, handoff: &Handoff, setup: &mut RunSetup, mut view: HandoffView) {
        setup.apply_handoff(handoff);
        self.agents.push(handoff.name.clone());
        if handoff.input_filter.is_some() || handoff.nests_history {
            view.filter.clone_from(&handoff.input_filter);
            view.nests_history = handoff.nests_history;
            self.views.push(view);
        }
    }

    /// Returns the agent that the run belongs to; `None` for the one that it began with.
    pub fn agent(&self) -> Option<&String> {
        self.agents.last()
    }

    /// Returns the number of handoffs in effect.
    pub fn count(&self) -> usize {
        self.agents.len()
    }

    /// Returns true if there was any handoff.
    pub fn has_any(&self) -> bool {
        self.pending.is_some() || !self.agents.is_empty()
    }

    /// Returns what the agent sees of the messages before each handoff.
    pub fn views(&self) -> &[HandoffView] {
        &self.views
    }

    /// Returns what the filters returned before earlier model calls.
    pub fn replies(&self) -> ReducerReplies {
        self.replies.clone()
    }

    /// Keeps what the filters returned, for the next model calls.
    pub fn keep_replies(&mut self, replies: &ReducerReplies) {
        if !self.views.is_empty() {
            self.replies = replies.handoff_replies();
        }
    }
}

/// A handoff in the journal of an unfinished run.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHandoff {
    /// The agent's name.
    pub agent: String,
    /// The number of messages of the live turn before it; `None` if the agent has not answered yet.
    pub live_end: Option<usize>,
    /// What a resume passed again; see [`StoredRun::attach_handoffs`](super::StoredRun::attach_handoffs).
    pub handoff: Option<Handoff>,
}

/// Returns the error of a resume whose handoffs are not those of the journal.
pub(super) fn handoffs_mismatch(stored: &[StoredHandoff]) -> Error {
    let names: Vec<String> = stored.iter().map(|handoff| format!("\"{}\"", handoff.agent)).collect();
    if names.is_empty() {
        return Error::config("the run was not handed off to another agent; leave `handoffs` out");
    }
    let names = names.join(", then to ");
    Error::config(format!(
        "the run was handed off to {names}; pass exactly these handoffs in `handoffs`, in this order: instructions, tools and filters are \
         not stored"
    ))
}
