//! The runs that were started or resumed in an engine.

use super::effects::{Effects, RunEffect};
use super::wit;
use crate::error::{Error, ErrorCode, Result};
use crate::json::{ArrayWriter, ObjectWriter};
use crate::run::{EffectReply, RunInput};
use crate::session::RunDriver;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::json_bytes::json_of_text;

/// Number of runs that are over whose state can still be asked for.
const MAX_ENDED_RUNS: usize = 64;

/// A run, and which of its effects the host has.
struct RunSlot {
    driver: Rc<RunDriver>,
    /// The number of its newest effect that was opened.
    opened: u64,
    /// The open effects: its number in the run, and in the engine.
    effects: BTreeMap<u64, u64>,
    is_over: bool,
}

/// The runs of an engine, in the order in which they were started.
#[derive(Default)]
pub struct Runs(RefCell<Vec<RunSlot>>);

impl Runs {
    /// Adds a run. One that is resumed replaces what was known of it.
    pub fn add(&self, driver: Rc<RunDriver>, effects: &Effects) {
        let mut slots = self.0.borrow_mut();
        for slot in slots.extract_if(.., |slot| slot.driver.id == driver.id) {
            slot.effects.values().for_each(|id| effects.close(*id));
        }
        slots.push(RunSlot { driver, opened: 0, effects: BTreeMap::new(), is_over: false });
    }

    /// Returns the run of this id.
    ///
    /// # Errors
    /// `not_found`.
    pub fn get(&self, run: &str) -> Result<Rc<RunDriver>> {
        let slots = self.0.borrow();
        let slot = slots.iter().find(|slot| slot.driver.id == run);
        slot.map(|slot| slot.driver.clone()).ok_or_else(|| {
            Error::new(ErrorCode::NotFound, "no run of this id was started or resumed by this engine; resume it first")
        })
    }

    /// Opens and closes the effects that runs have opened and closed, and takes their events.
    pub fn update(&self, effects: &Effects) -> Vec<wit::Event> {
        let mut events = Vec::new();
        let mut slots = self.0.borrow_mut();
        for slot in slots.iter_mut().filter(|slot| !slot.is_over) {
            for event in slot.driver.events.take() {
                let event = ObjectWriter::build(|out| event.write(out));
                events.push(wit::Event { run: slot.driver.id.clone(), event: event.as_str().to_owned() });
            }
            for number in slot.driver.take_closed_effects() {
                if let Some(id) = slot.effects.remove(&number) {
                    effects.close(id);
                }
            }
            let machine = slot.driver.machine.borrow();
            for (number, effect) in machine.effects_after(slot.opened) {
                slot.effects.insert(number, effects.open_run_effect(&slot.driver, number, &effect.kind));
                slot.opened = number;
            }
            slot.is_over = machine.status().is_over();
        }
        let over = slots.iter().filter(|slot| slot.is_over).count();
        let mut surplus = over.saturating_sub(MAX_ENDED_RUNS);
        slots.retain(|slot| {
            let is_removed = slot.is_over && surplus > 0;
            surplus -= usize::from(is_removed);
            !is_removed
        });
        events
    }

    /// Forgets all runs.
    pub fn clear(&self) {
        let slots = self.0.take();
        drop(slots);
    }
}

/// Returns the state of a run.
pub fn run_state(run: &RunDriver) -> wit::RunState {
    let machine = run.machine.borrow();
    let mut approvals = String::new();
    let mut list = ArrayWriter::new(&mut approvals);
    for call in machine.approvals() {
        list.object(|out| {
            out.text("callId", &call.call_id).text("invocationId", &call.invocation).text("name", &call.name);
            out.json("arguments", call.arguments.view());
        });
    }
    list.end();
    let outcome = machine.outcome();
    wit::RunState {
        session: run.session.id.clone(),
        status: machine.status().as_str().to_owned(),
        result: ObjectWriter::build(|out| outcome.write(out)).as_str().to_owned(),
        approvals,
    }
}

/// Converts an answer to an effect of a run.
///
/// # Errors
/// `invalid_input` for a result that is not JSON.
pub fn run_input(effect: &RunEffect, answer: wit::Answer) -> Result<RunInput> {
    let lower_case = |headers: Vec<(String, String)>| -> Vec<_> {
        headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
    };
    let id = effect.id();
    let reply = match answer {
        wit::Answer::ResponseStarted(head) => {
            EffectReply::ResponseStarted { status: head.status, headers: lower_case(head.headers) }
        }
        wit::Answer::ResponseEnd => EffectReply::ResponseEnd,
        wit::Answer::Response(response) => {
            if response.body.len() as u64 > effect.run.machine.borrow().max_response_bytes() {
                return Ok(RunInput::ResponseTooLarge { effect: id });
            }
            EffectReply::Response {
                status: response.status,
                headers: lower_case(response.headers),
                body: response.body,
            }
        }
        wit::Answer::Started => EffectReply::Started,
        wit::Answer::ToolResult(result) => EffectReply::ToolResult {
            content: json_of_text("the content of a tool's result", &result.content)?,
            is_error: result.is_error,
        },
        wit::Answer::Pending => EffectReply::Pending,
        wit::Answer::Waited => EffectReply::Waited,
        wit::Answer::Failed(failure) => {
            EffectReply::Failed { code: failure.code, message: failure.message, sent: failure.sent }
        }
        wit::Answer::Store(_) | wit::Answer::Returned(_) => {
            return Err(Error::invalid("a reply of a store or of a function is no answer to an effect of a run"));
        }
    };
    Ok(RunInput::Answer { effect: id, reply })
}
