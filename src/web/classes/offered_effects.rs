//! The effects of a run as JavaScript objects. Each object is made once, and is dropped when its effect is closed.

use crate::run::{Effect, EffectKind, Method, Run};
use crate::web::conversion::convert::{object_to_js, set};
use crate::web::conversion::untrusted_value::member;
use js_sys::{Array, Object, Uint8Array};
use std::collections::BTreeMap;
use wasm_bindgen::prelude::*;

/// The objects of open effects, by number.
#[derive(Default)]
pub struct OfferedEffects {
    objects: BTreeMap<u64, JsValue>,
    /// The newest effect that [`take`](Self::take) has returned.
    taken: u64,
    /// Effects that [`take`](Self::take) has returned and that were closed since.
    closed: Vec<u64>,
}

impl OfferedEffects {
    /// Returns all open effects of the run.
    pub fn all(&mut self, run: &Run) -> Array {
        run.effects_after(0).into_iter().map(|(number, effect)| self.object(number, effect)).collect()
    }

    /// Returns what changed since the last call: `{ opened, closed }`.
    pub fn take(&mut self, run: &Run) -> JsValue {
        let opened = Array::new();
        for (number, effect) in run.effects_after(self.taken) {
            opened.push(&self.object(number, effect));
            self.taken = number;
        }
        let closed: Array =
            self.closed.drain(..).map(|number| JsValue::from_str(&crate::run::effect_id(number))).collect();
        let changes: JsValue = Object::new().into();
        set(&changes, "opened", &opened);
        set(&changes, "closed", &closed);
        changes
    }

    /// Removes closed effects.
    pub fn close(&mut self, numbers: Vec<u64>) {
        for number in numbers {
            self.objects.remove(&number);
            if number <= self.taken {
                self.closed.push(number);
            }
        }
    }

    fn object(&mut self, number: u64, effect: &Effect) -> JsValue {
        self.objects.entry(number).or_insert_with(|| effect_to_js(effect)).clone()
    }
}

fn effect_to_js(effect: &Effect) -> JsValue {
    match &effect.kind {
        EffectKind::Wait { ms } => object_to_js(&|out| {
            out.text("type", "wait").text("id", &effect.id).number("ms", *ms);
        }),
        EffectKind::RunTool { call_id, invocation, attempt, name, arguments, arguments_text } => object_to_js(&|out| {
            out.text("type", "run_tool")
                .text("id", &effect.id)
                .text("callId", call_id)
                .text("invocationId", invocation);
            out.number("attempt", u64::from(*attempt))
                .text("name", name)
                .json("arguments", arguments.view())
                .text("argumentsText", arguments_text);
        }),
        EffectKind::CallModel { dialect, method, url, headers, body, stream, repeatable, not_before } => {
            let value = object_to_js(&|out| {
                out.text("type", "call_model").text("id", &effect.id).text("dialect", dialect.as_str());
                out.object("request", |request| {
                    request.text("method", method.as_str()).text("url", url).object("headers", |out| {
                        for (name, value) in headers {
                            out.text(name, value);
                        }
                    });
                });
                out.bool("stream", *stream).bool("repeatable", *repeatable);
                if let Some(time) = not_before {
                    out.number("notBefore", *time);
                }
            });
            let body = match method {
                Method::Post => Uint8Array::from(body.as_slice()).into(),
                Method::Get => JsValue::NULL,
            };
            set(&member(&value, "request"), "body", &body);
            value
        }
    }
}
