//! The class `Run`.

use super::offered_effects::OfferedEffects;
use crate::error::{Error, Result};
use crate::options::HandoffOptions;
use crate::provider::is_error_response;
use crate::run::{ApprovalDecision, EffectReply, RunInput};
use crate::session::RunDriver;
use crate::web::conversion::convert::{list_to_js, object_to_js, settled_content, to_json};
use crate::web::conversion::option_reader::read_options;
use crate::web::conversion::run_input::JsOptions;
use crate::web::conversion::untrusted_value::{self, callback_failed, get, member};
use crate::web::promise::{done, promise};
use js_sys::{Promise, Uint8Array};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A run. It does no I/O: its host does what `effects` lists and reports back with `answer`.
#[wasm_bindgen(js_name = Run, skip_typescript)]
pub struct JsRun {
    inner: Rc<RunDriver>,
    /// The objects of its effects.
    effects: RefCell<OfferedEffects>,
}

impl JsRun {
    pub fn of(inner: Rc<RunDriver>) -> Self {
        Self { inner, effects: RefCell::default() }
    }

    /// Returns the objects of its effects, without those that were closed.
    fn open_effects(&self) -> RefMut<'_, OfferedEffects> {
        let mut effects = self.effects.borrow_mut();
        effects.close(self.inner.take_closed_effects());
        effects
    }

    fn decide(&self, id: String, decision: ApprovalDecision) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(async move {
            inner.decide(id, decision).await?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

#[wasm_bindgen(js_class = Run)]
impl JsRun {
    /// The run's id.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.inner.id.clone()
    }

    /// The run's status.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> String {
        self.inner.machine.borrow().status().as_str().to_owned()
    }

    /// Returns the open effects: what the host must do now. An effect is the same object at each call.
    pub fn effects(&self) -> js_sys::Array {
        self.open_effects().all(&self.inner.machine.borrow())
    }

    /// Returns the effects `opened` and the ids of the effects `closed` since the last call. For a host that drives
    /// thousands of effects: listing all at each step costs their square.
    #[wasm_bindgen(js_name = takeEffects)]
    pub fn take_effects(&self) -> JsValue {
        self.open_effects().take(&self.inner.machine.borrow())
    }

    /// Takes the events so far.
    pub fn events(&self) -> JsValue {
        let events = self.inner.events.take();
        list_to_js(&|list| {
            for event in &events {
                list.object(|out| event.write(out));
            }
        })
    }

    /// Resolves at the next change of effects, events or status. Throws `closed` for a running run whose store was
    /// closed.
    pub fn changed(&self) -> std::result::Result<Promise, JsValue> {
        let inner = &self.inner;
        if !inner.machine.borrow().status().is_over() {
            inner.session.context.check_open()?;
        }
        let changed = inner.next_change();
        Ok(promise(async move {
            changed.given().await;
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// Answers an effect. Resolves when everything is stored that must be stored before the next effect.
    pub fn answer(&self, effect: String, answer: JsValue) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(async move {
            if let Some(input) = oversized(&inner, &effect, &answer) {
                return inner.handle(input).await.map(|()| JsValue::UNDEFINED);
            }
            let reply = reply_of(&answer)?;
            inner.answer(effect, reply).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Passes bytes of a streamed response, after its `response_started`.
    pub fn feed(&self, effect: String, bytes: &JsValue) -> Promise {
        let inner = self.inner.clone();
        // Copied at the call, since the host may reuse its buffer; too many are not copied at all.
        let input = match untrusted_value::size(bytes) {
            Some(size) if u64::from(size) > inner.machine.borrow().max_response_bytes() => {
                Ok(RunInput::ResponseTooLarge { effect })
            }
            _ => match untrusted_value::bytes("the argument of `feed`", bytes) {
                Ok(Some(bytes)) => Ok(RunInput::Bytes { effect, bytes }),
                Ok(None) => Err(Error::invalid("the argument of `feed` must be a Uint8Array")),
                Err(error) => Err(error),
            },
        };
        self.inner.session.context.promise(async move {
            inner.feed(input?).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Returns true if the bytes, one event of a response stream or a whole response body, report a failure. Does not
    /// change the run.
    #[wasm_bindgen(js_name = isErrorResponse)]
    pub fn is_error_response(&self, bytes: &JsValue) -> std::result::Result<bool, JsValue> {
        let bytes = untrusted_value::bytes("a response", bytes)?.unwrap_or_default();
        Ok(is_error_response(self.inner.machine.borrow().dialect(), &bytes))
    }

    /// Maximum size of one response in bytes.
    #[wasm_bindgen(getter, js_name = maxResponseBytes)]
    pub fn max_response_bytes(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let bytes = self.inner.machine.borrow().max_response_bytes() as f64;
        bytes
    }

    /// Releases the run. One that is under way can be resumed.
    #[wasm_bindgen(js_name = giveUp)]
    pub fn give_up(&self) {
        self.inner.give_up();
    }

    /// Returns the calls that wait for an approval.
    pub fn approvals(&self) -> JsValue {
        let calls = self.inner.machine.borrow().approvals();
        list_to_js(&|list| {
            for call in &calls {
                list.object(|out| {
                    out.text("callId", &call.call_id).text("invocationId", &call.invocation).text("name", &call.name);
                    out.json("arguments", call.arguments.view());
                });
            }
        })
    }

    /// Approves a call that waits, by its invocation id or its call id. Resolves when the approval is stored; then its
    /// tool may run.
    pub fn approve(&self, id: String) -> Promise {
        self.decide(id, ApprovalDecision::Approve)
    }

    /// Rejects a call that waits. Its error result tells the model the reason.
    pub fn reject(&self, id: String, reason: Option<String>) -> Promise {
        self.decide(id, ApprovalDecision::Reject(reason))
    }

    /// Hands the run off to another agent. Throws if the handoff is rejected. The promise resolves when the write was
    /// attempted; the event `save_failed` reports a failure.
    #[wasm_bindgen(js_name = handOff)]
    pub fn hand_off(&self, handoff: &JsValue) -> std::result::Result<Promise, JsValue> {
        let options: HandoffOptions<JsOptions> = read_options("a handoff", handoff)?;
        let stored = self.inner.hand_off(options.into_handoff()?)?;
        Ok(self.inner.session.context.promise(async move {
            // An event reports what cannot be written yet.
            let _ = stored.await;
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// Returns the number of handoffs in effect.
    #[wasm_bindgen(getter, js_name = handoffCount)]
    pub fn handoff_count(&self) -> usize {
        self.inner.machine.borrow().handoff_count()
    }

    /// Returns a snapshot, from which `Session.resume` continues the run on any machine.
    pub fn snapshot(&self) -> std::result::Result<Uint8Array, JsValue> {
        Ok(Uint8Array::from(self.inner.snapshot()?.as_ref()))
    }

    /// Cancels the run.
    pub fn cancel(&self) -> Promise {
        done(self.inner.clone().cancel())
    }

    /// Retries a failed save.
    pub fn save(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(async move {
            inner.handle(RunInput::RetrySave).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Ends the run "failed" because its saves fail; it can be resumed. Changes nothing if no save failed.
    #[wasm_bindgen(js_name = abandonSaves)]
    pub fn abandon_saves(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.session.context.promise(async move {
            inner.abandon_saves().await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Returns the result, or the state so far while the run is under way.
    pub fn result(&self) -> JsValue {
        // Frees the objects of closed effects: a host asks for none after the end.
        drop(self.open_effects());
        let outcome = self.inner.machine.borrow().outcome();
        object_to_js(&|out| outcome.write(out))
    }
}

/// Returns the input for a whole response that is larger than the run allows. Its body is not read.
fn oversized(run: &RunDriver, effect: &str, answer: &JsValue) -> Option<RunInput> {
    let size = untrusted_value::size(&member(answer, "body"))?;
    (u64::from(size) > run.machine.borrow().max_response_bytes())
        .then(|| RunInput::ResponseTooLarge { effect: effect.to_owned() })
}

fn reply_of(answer: &JsValue) -> Result<EffectReply> {
    let kind = text(answer, "type")?;
    Ok(match kind.as_deref() {
        Some("response_started") => EffectReply::ResponseStarted { status: status(answer)?, headers: headers(answer)? },
        Some("response_end") => EffectReply::ResponseEnd,
        Some("response") => {
            EffectReply::Response { status: status(answer)?, headers: headers(answer)?, body: response_body(answer)? }
        }
        Some("started") => EffectReply::Started,
        Some("tool_result") => {
            settled_content(answer)?;
            EffectReply::ToolResult {
                content: to_json(&member(answer, "content"))?,
                is_error: member(answer, "isError").is_truthy(),
            }
        }
        Some("pending") => EffectReply::Pending,
        Some("waited") => EffectReply::Waited,
        Some("failed") => failed_reply(answer),
        other => return Err(Error::invalid(format!("\"{}\" is no answer to an effect", other.unwrap_or("nothing")))),
    })
}

/// Reads a text of an answer; none if it is absent or null.
fn text(answer: &JsValue, key: &str) -> Result<Option<String>> {
    let value = get(answer, key)?;
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let text = untrusted_value::string(key, &value)?;
    text.map(Some).ok_or_else(|| Error::invalid(format!("`{key}` must be a string")))
}

fn status(answer: &JsValue) -> Result<u16> {
    let status =
        get(answer, "status")?.as_f64().filter(|status| status.fract() == 0.0 && (0.0..=999.0).contains(status));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    status.map(|status| status as u16).ok_or_else(|| Error::invalid("`status` is the HTTP status"))
}

fn headers(answer: &JsValue) -> Result<Vec<(String, String)>> {
    let members = untrusted_value::members("`headers`", &member(answer, "headers"))?;
    let header = |(name, value): (String, JsValue)| Some((name.to_ascii_lowercase(), value.as_string()?));
    Ok(members.into_iter().filter_map(header).collect())
}

fn response_body(answer: &JsValue) -> Result<Vec<u8>> {
    let body = member(answer, "body");
    if let Some(text) = untrusted_value::string("`body`", &body)? {
        return Ok(text.into_bytes());
    }
    untrusted_value::bytes("`body`", &body)?.ok_or_else(|| Error::invalid("`body` must be a string or bytes"))
}

/// Reads a failure of the host. Whatever the host threw, this does not fail.
fn failed_reply(answer: &JsValue) -> EffectReply {
    let error = member(answer, "error");
    let given = |key: &str| text(&error, key).ok().flatten();
    EffectReply::Failed {
        code: given("code"),
        message: given("message").unwrap_or_else(|| callback_failed("the host failed", &error).into_message()),
        sent: member(answer, "sent").as_bool(),
    }
}
