//! `Session.render`: the next request's body, without a run.

use crate::error::Result;
use crate::finding::{Finding, PrefixChange};
use crate::json::ObjectWriter;
use crate::options::{OptionTypes, RenderOptions};
use crate::render::{BodyBuffer, PrefixReuse, RenderRequest, Rendered};
use crate::replay::{Callback, Cut};
use crate::session::{OpenSession, concerns_settings};
use crate::web::conversion::convert::{object_to_js, set};
use crate::web::conversion::option_reader::read_options;
use crate::web::conversion::run_input::JsOptions;
use crate::web::wire::report_to_js;
use js_sys::{Object, Uint8Array};
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Renders the body of the next request.
pub async fn render(shown: &Rc<OpenSession>, request: &JsValue, provide: Option<&Callback>) -> Result<JsValue> {
    shown.context.host.draw_ids();
    let now = shown.context.now();
    let mut options: RenderOptions<JsOptions> = read_options("a render's request", request)?;
    let input = options.input.take();
    let branch = options.branch.take();
    let parts = options.into_parts(shown)?;
    let inner = &*shown.at_branch(branch.as_deref()).await?;
    inner.read_readable().await?;
    let items = JsOptions::input_items(input.as_ref(), parts.provider.dialect)?;
    let provided = inner.ask_providers(provide, &items).await?;
    let request = RenderRequest {
        provider: &parts.provider,
        instructions: parts.instructions.as_deref(),
        tools: &parts.tools,
        policy: &parts.policy,
    };
    let mut body = JsBodyBuffer::default();
    let rendered = inner.render(&request, (items, provided, now), &mut body).await?;
    shown.note_drop_of(inner);
    let out = rendered_to_js(inner, &rendered, &body.bytes);
    let headers = request.added_headers(&inner.owner()?, &inner.log.borrow().history);
    set_headers(&out, &headers);
    Ok(out.into())
}

/// Sets `headers` where the request needs some.
fn set_headers(out: &Object, headers: &[(String, String)]) {
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
