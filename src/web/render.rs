//! `Session.render`: the next request's body, without a run.

use super::convert::{object_to_js, set};
use super::option_reader::read_options;
use super::run_request::{RenderOptions, input_items};
use super::wire::report_to_js;
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::{Finding, PrefixChange};
use crate::history::{
    HeldConversation, History, Incoming, JoinBase, Origin, ProvidedMessages, check_one_loader, join, join_held,
    join_provided,
};
use crate::json::ObjectWriter;
use crate::owner::StateOwner;
use crate::render::{BodyBuffer, LastRequest, PrefixReuse, RenderInput, RenderRequest, RenderStep, Rendered};
use crate::replay::{Callback, Cut, HistoryScope, ReducerReplies};
use crate::session::{OpenSession, concerns_settings};
use js_sys::{Object, Uint8Array};
use wasm_bindgen::JsValue;

/// Renders the body of the next request.
pub async fn render(inner: &OpenSession, request: &JsValue, provide: Option<&Callback>) -> Result<JsValue> {
    inner.context.host.draw_ids();
    let now = inner.context.now();
    let mut options: RenderOptions = read_options("a render's request", request)?;
    let input = options.input.take();
    let parts = options.into_parts(inner)?;
    inner.read_readable().await?;
    let items = input_items(input.as_ref(), parts.provider.dialect)?;
    let provided = inner.ask_providers(provide, &items).await?;
    let owner = inner.owner()?;
    let live = live_history(inner, (items, provided), &owner, now)?;
    let request = RenderRequest {
        provider: &parts.provider,
        instructions: parts.instructions.as_deref(),
        tools: &parts.tools,
        policy: &parts.policy,
    };
    let last = inner.renderer.borrow().last_request(inner.log.borrow().head.last_request());
    let mut progress = ReducerReplies::default();
    let mut body = JsBodyBuffer::default();
    loop {
        let step = {
            let log = inner.log.borrow();
            let input = RenderInput {
                history: &log.history,
                live: Some(&live),
                owner: &owner,
                handoffs: &[],
                scope: HistoryScope::Whole,
                sent: last.as_ref().and_then(|last| last.sent.as_deref()),
                agent: None,
                now,
            };
            inner.renderer.borrow_mut().step_into(input, &request, &progress, &mut body)?
        };
        match step {
            RenderStep::Done(rendered) => {
                if request.lets_service_drop() && !inner.log.borrow().head.has_dropped {
                    inner.renderer.borrow_mut().note_drop();
                }
                if rendered.sent.is_some() || last.is_some() {
                    let (request, log) = (LastRequest { sent: rendered.sent.clone() }, inner.log.borrow());
                    inner.renderer.borrow_mut().keep_last_request(request, log.head.last_request());
                }
                let out = rendered_to_js(inner, &rendered, &body.bytes);
                set_headers(&out, &request);
                return Ok(out.into());
            }
            RenderStep::Question(ask) => {
                let asked = inner.context.host.reduce(&ask);
                let given = inner.context.callbacks.answered(asked).await?;
                inner.renderer.borrow_mut().take_reply(ask, given, &mut progress);
            }
        }
    }
}

/// What the request has after the stored history: the messages that providers add, and its input.
fn live_history(
    inner: &OpenSession,
    (items, provided): (Vec<Incoming>, Vec<ProvidedMessages>),
    owner: &StateOwner,
    now: Ms,
) -> Result<History> {
    let mut live = History::new(inner.context.settings.seed);
    let origin = Origin { at: now, ..Origin::default() };
    if *owner == StateOwner::Caller {
        check_one_loader(&provided, &HeldConversation::split(items.clone()).earlier)?;
    }
    join_provided(&inner.log.borrow().history, &mut live, provided, &origin, inner.context.ids())?;
    if *owner == StateOwner::Caller {
        join_held(&mut live, items, &origin, inner.context.ids());
    } else {
        let late_results = inner.log.borrow().history.late_results().unplaced_ids();
        let origin = Origin { late_results, ..origin };
        let joined = join(JoinBase::live(&inner.log.borrow().history, &live), items, &origin, inner.context.ids());
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
    }
    Ok(live)
}

/// Sets `headers` where the request needs some.
fn set_headers(out: &Object, request: &RenderRequest<'_>) {
    let headers = request.added_headers();
    if headers.is_empty() {
        return;
    }
    let write = |out: &mut ObjectWriter<'_>| headers.iter().for_each(|(name, value)| _ = out.text(name, value));
    set(out, "headers", &object_to_js(&write));
}

/// A body in JavaScript's memory.
#[derive(Default)]
struct JsBodyBuffer {
    bytes: Uint8Array,
    length: u32,
}

impl BodyBuffer for JsBodyBuffer {
    fn reserve(&mut self, length: usize) {
        // Memory of wasm has at most 4 GB.
        self.bytes = Uint8Array::new_with_length(u32::try_from(length).unwrap_or(u32::MAX));
        self.length = 0;
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes.subarray(self.length, end).copy_from(bytes);
        self.length = end;
    }
}

fn sources_to_js(inner: &OpenSession) -> JsValue {
    object_to_js(&|out| {
        // Of a number that is there twice JavaScript takes the last.
        inner.log.borrow().history.each_source(&mut |number, source| {
            out.json(&number.to_string(), source.view());
        });
    })
}

/// Returns a prefix as the public type `PrefixReuse`, without JSON, which each render would parse.
fn prefix_to_js(prefix: &PrefixReuse) -> Object {
    let text = |name: Option<&str>| name.map_or(JsValue::NULL, JsValue::from_str);
    let out = Object::new();
    #[allow(clippy::cast_precision_loss)]
    set(&out, "reusedBytes", &JsValue::from_f64(prefix.reused_bytes as f64));
    set(&out, "changedBy", &text(prefix.changed_by.map(PrefixChange::as_str)));
    set(&out, "cut", &text(prefix.cut.map(Cut::as_str)));
    out
}

fn rendered_to_js(inner: &OpenSession, rendered: &Rendered, body: &Uint8Array) -> Object {
    let warnings: Vec<Finding> = rendered.report.iter().filter(|finding| concerns_settings(finding)).cloned().collect();
    inner.context.warn(&warnings);
    let out = Object::new();
    #[allow(clippy::cast_precision_loss)]
    let max_source = rendered.max_source.map_or(-1.0, |number| number as f64);
    let sources = if rendered.max_source.is_some() { sources_to_js(inner) } else { Object::new().into() };
    set(&out, "body", body);
    let mut report = rendered.report.clone();
    report.extend(inner.read_failure.borrow().iter().map(|failure| failure.finding.clone()));
    set(&out, "report", &report_to_js(&report));
    set(&out, "maxSourceNumber", &JsValue::from_f64(max_source));
    set(&out, "sources", &sources);
    set(&out, "stablePrefix", &JsValue::from_f64(f64::from(rendered.stable_prefix)));
    set(&out, "prefix", &prefix_to_js(&rendered.prefix));
    out
}
