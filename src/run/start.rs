//! The beginning of a run, and its continuation after an interruption.

use super::answer::answer_text;
use super::context::RunContext;
use super::effect::SaveKind;
use super::journal::{JournalEntry, RecoveredRun};
use super::setup::RunSetup;
use super::state::{Run, RunState};
use crate::error::{Error, Result};
use crate::history::{History, Incoming, JoinBase, Origin, join};
use crate::message::Role;

impl Run {
    /// Starts a run with an input. Without messages in `input` the run answers the last message in history.
    ///
    /// # Errors
    /// `config_invalid` and `invalid_input`; nothing has happened then.
    pub fn start(
        setup: RunSetup,
        input: Vec<Incoming>,
        input_id: Option<String>,
        context: &mut RunContext<'_>,
    ) -> Result<Self> {
        setup.check()?;
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
        let joined = join(JoinBase::live(context.history, &live), input, &origin, context.ids);
        for entry in joined.entries {
            live.apply(entry);
        }
        let is_answered = context
            .history
            .messages()
            .last()
            .is_none_or(|last| last.role == Role::Assistant && !context.history.has_calls(last));
        if live.messages().is_empty() && is_answered {
            return Err(Error::invalid("there is no message to answer; pass `input`"));
        }
        let mut run = Self::new(setup, live);
        run.report = joined.report;
        let began =
            JournalEntry::beginning(&run.setup.id, context.now, &run.setup.provider, run.live.messages().to_vec());
        let save = run.save(SaveKind::Begin(began));
        run.state = RunState::AwaitingJournal { save, cancelled: false };
        Ok(run)
    }

    /// Continues an interrupted run, which the binding has taken over before.
    ///
    /// # Errors
    /// `config_invalid`; nothing has happened then.
    pub fn resume(setup: RunSetup, recovered: RecoveredRun, context: &mut RunContext<'_>) -> Result<Self> {
        setup.check()?;
        recovered.check_credentials(&setup.provider)?;
        let mut run = Self::new(setup, recovered.live);
        run.model_calls = recovered.model_calls;
        run.usage = recovered.usage;
        let last = run.live.messages().last();
        if let Some(last) = last.filter(|last| last.role == Role::Assistant) {
            run.response_id = last.answer.as_ref().and_then(|answer| answer.response_id.clone());
            run.text = answer_text(last);
            if run.live.has_calls(last) {
                run.begin_tools(Some(&recovered.attempts), context);
                return Ok(run);
            }
        }
        run.call_model(context);
        Ok(run)
    }
}
