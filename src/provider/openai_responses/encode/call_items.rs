//! Calls and their outputs.

use super::blocks::write_block;
use crate::json::{ArrayWriter, JsonKind, JsonStr, ObjectWriter, push_text};
use crate::message::{Dialect, PartBody, TemplateSlot};
use crate::provider::neutral::{ResultText, result_text};
use crate::provider::openai_responses::content::CONTENT;
use crate::provider::openai_responses::decode::raw_member;
use crate::provider::openai_responses::kinds::{ASYNC, CallKind, FUNCTION};
use crate::provider::spec::{EncodeContext, call_id, tool_name};
use crate::provider::wire_template::write_template;
use crate::replay::{DraftCall, DraftResult};
use crate::tool::{Arguments, ToolInvocation, ToolResult};

/// Returns the kind of call that an invocation is sent as. `own`: its message is one of this dialect.
fn kind_of_call(call: &ToolInvocation, own: bool) -> &'static CallKind {
    let template = call.template.as_ref().filter(|_| own);
    template.and_then(|template| CallKind::of(&raw_member(template, "type")?.view().as_text()?)).unwrap_or(FUNCTION)
}

/// Returns true if an output of the kind that answers the call can be written. An output of text cannot answer every
/// call.
pub(super) fn has_output(call: &DraftCall<'_>, own: bool) -> bool {
    let is_original =
        |result: &ToolResult| result.dialect == Some(Dialect::OpenAiResponses) && result.template.is_some();
    kind_of_call(call.invocation, own).takes_text
        || matches!(call.result, Some(DraftResult::Stored(result)) if is_original(result))
}

/// Writes a call as a `function_call`.
pub(super) fn write_function_call(out: &mut String, call: &ToolInvocation) {
    let mut object = ObjectWriter::new(out);
    object.text("type", FUNCTION.kind);
    object.token("call_id", &call_id(&CONTENT, call)).token("name", &JsonStr::new(&tool_name(call)));
    write_arguments(object.key(FUNCTION.arguments), FUNCTION.arguments, &call.arguments);
    if call.is_deferred {
        object.bool(ASYNC, true);
    }
    object.end();
}

/// Writes a call of this dialect in its original form.
pub(super) fn write_own_call(out: &mut String, call: &ToolInvocation, without_id: bool) {
    let Some(template) = &call.template else { return write_function_call(out, call) };
    let id = call_id(&CONTENT, call);
    let tool = JsonStr::new(&tool_name(call));
    let start = out.len();
    write_template(out, template, &mut |name, slot, out| {
        match slot {
            // The id of an item begins with `fc_`; some clients put the call id there (nodetool#4252).
            TemplateSlot::Raw(value) if name == "id" && (without_id || value.as_str().starts_with("\"call_")) => {
                return false;
            }
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            TemplateSlot::Id => out.push_str(id.token()),
            TemplateSlot::Name => out.push_str(tool.token()),
            TemplateSlot::Arguments => write_arguments(out, name, &call.arguments),
            _ => return false,
        }
        true
    });
    let lacks_mark = call.is_deferred && raw_member(template, ASYNC).is_none();
    if lacks_mark && out.len() > start + 1 && out.pop().is_some() {
        out.push_str(&format!(",\"{ASYNC}\":true}}"));
    }
}

/// Writes the arguments of a call as the value of `member`. A function's `arguments` are a string of JSON text, `"{}"`
/// if empty. A custom tool's `input` is a string. Other calls hold a JSON value.
fn write_arguments(out: &mut String, member: &str, arguments: &Arguments) {
    let is_function = member == FUNCTION.arguments;
    match arguments {
        Arguments::Text(text) if text.is_empty() && is_function => out.push_str("\"{}\""),
        Arguments::Text(text) => out.push_str(text.token()),
        Arguments::Value(value) if is_function || member == "input" && value.view().kind() != JsonKind::String => {
            push_text(out, value.as_str());
        }
        Arguments::Value(value) => out.push_str(value.as_str()),
    }
}

/// Writes the output of a call with the call's `id`. `own`: the message of the call is one of this dialect.
pub(super) fn write_output(
    out: &mut String,
    call: &DraftCall<'_>,
    (own, id): (bool, &JsonStr),
    context: &mut EncodeContext<'_>,
) {
    let kind = kind_of_call(call.invocation, own);
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::OpenAiResponses)
        && (!kind.takes_parts() || matches!(result.content.view().kind(), JsonKind::String | JsonKind::Array))
    {
        // Sent beside a call of another dialect, the output must be that of a function.
        let new_type = (!own).then(|| output_type(kind));
        return write_own_output(out, result, id, new_type.as_deref());
    }
    let text = result_text(&CONTENT, call, context.decode_result, context.report);
    let mut object = ObjectWriter::new(out);
    object.text("type", &output_type(kind)).token("call_id", id);
    if kind.kind == "apply_patch_call" {
        object.text("status", if text.is_error { "failed" } else { "completed" });
    }
    write_result_text(&mut object, &text, kind);
    object.end();
}

fn output_type(kind: &CallKind) -> String {
    format!("{}_output", kind.kind)
}

/// Writes an output of this dialect in its original form, with `new_type` as its type if there is one.
fn write_own_output(out: &mut String, result: &ToolResult, id: &JsonStr, new_type: Option<&str>) {
    let Some(template) = &result.template else {
        let mut object = ObjectWriter::new(out);
        object.text("type", "function_call_output").token("call_id", id).json("output", result.content.view());
        return object.end();
    };
    write_template(out, template, &mut |name, slot, out| {
        match (slot, new_type) {
            (TemplateSlot::Raw(_), Some(new_type)) if name == "type" => out.push_str(JsonStr::new(new_type).token()),
            (TemplateSlot::Raw(value), _) => out.push_str(value.as_str()),
            (TemplateSlot::Id, _) => out.push_str(id.token()),
            (TemplateSlot::Content, _) => out.push_str(result.content.as_str()),
            _ => return false,
        }
        true
    });
}

/// Writes `output`: a string, or a list of parts if the result has several texts, images or files and the kind allows
/// it.
fn write_result_text(object: &mut ObjectWriter<'_>, result: &ResultText, kind: &CallKind) {
    match result.texts.as_slice() {
        [] if result.media.is_empty() => _ = object.text("output", ""),
        [text] if result.media.is_empty() => _ = object.token("output", text),
        texts if kind.takes_parts() => {
            let mut list = ArrayWriter::new(object.key("output"));
            for text in texts {
                write_block(list.item(), &PartBody::Text(text.clone()).into(), false);
            }
            for part in &result.media {
                write_block(list.item(), part, false);
            }
            list.end();
        }
        texts => _ = object.token("output", &JsonStr::joined(&mut texts.iter(), "\\n")),
    }
}
