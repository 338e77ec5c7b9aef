//! OpenAI Responses: from drafts to items, the outputs of a message's calls behind it.

use super::Responses;
use super::decode::raw;
use super::kinds::{CallKind, FUNCTION};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::IncomingPart;
use crate::json::{ArrayWriter, JsonStr, Kind, ObjectWriter, push_text};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{MessageText, result_text, text_of};
use crate::provider::neutral::{default_name, refused};
use crate::provider::template::{is_shape, write_filled, write_part, write_shape};
use crate::provider::{Wire, call_id, tool_name};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{Arguments, ToolInvocation};

/// Writes a message and the outputs of its calls. Nothing is written for one that has nothing to say.
pub fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, report: &mut Report) {
    let own = item.message.dialect == Some(Dialect::OpenAiResponses);
    match item.message.role {
        Role::Assistant if own => encode_own(wire, item, report),
        Role::Assistant => encode_foreign(wire, item, report),
        _ => encode_input(wire, item.message, own, report),
    }
    for call in item.calls.iter().filter(|call| can_go(call, own)) {
        write_result(wire.begin(), call, own, report);
    }
}

fn encode_input(wire: &mut Wire<'_>, message: &Message, own: bool, report: &mut Report) {
    if let Some(template) = message.template.as_ref().filter(|_| own) {
        let mut blocks = String::new();
        write_blocks(&mut blocks, message, own);
        let values = match message.parts.first().and_then(text_of) {
            Some(text) => &[(TemplateSlot::Parts, &*blocks), (TemplateSlot::Part(0), text.token())][..],
            None => &[(TemplateSlot::Parts, &*blocks)],
        };
        return write_filled(wire.begin(), template, values);
    }
    let words = MessageText::of(message, Dialect::OpenAiResponses, report);
    if words.is_empty() {
        return;
    }
    let mut object = ObjectWriter::new(wire.begin());
    object.text("role", message.role.as_str());
    match words.single() {
        Some(text) => _ = object.token("content", text),
        // A system message holds text alone.
        None if own || message.role == Role::User => write_blocks(object.key("content"), message, own),
        None => _ = object.token("content", &words.joined()),
    }
    object.end();
}

fn write_blocks(out: &mut String, message: &Message, own: bool) {
    let mut list = ArrayWriter::new(out);
    for part in &message.parts {
        let goes = match &part.body {
            PartBody::Text(text) | PartBody::Refusal(text) => own || !text.is_empty(),
            PartBody::Image(_) | PartBody::File(_) => {
                refused(part, message.dialect, Dialect::OpenAiResponses).is_none()
            }
            PartBody::Opaque(_) => own,
            PartBody::Data { .. } | PartBody::Reasoning(_) | PartBody::ToolCall { .. } => false,
        };
        if goes {
            write_block(list.item(), part, own);
        }
    }
    list.end();
}

/// Writes a part of a user's message or of an output, in its own shape if `own`.
pub fn write_block(out: &mut String, part: &Part, own: bool) {
    if let Some(template) = part.template.as_ref().filter(|_| own) {
        return write_part(out, part, template);
    }
    if let PartBody::Opaque(value) = &part.body {
        return out.push_str(value.as_str());
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => {
            block.text("type", "input_text").token("text", text);
        }
        PartBody::Image(media) => {
            block.text("type", "input_image");
            match &media.file_id {
                Some(id) if media.url.is_none() && media.data.is_none() => block.token("file_id", id),
                _ => block.raw("image_url", &media.address()),
            };
        }
        PartBody::File(media) => write_file(block.text("type", "input_file"), media),
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

fn write_file(block: &mut ObjectWriter<'_>, media: &Media) {
    let address = media.address();
    if let Some(id) = media.file_id.as_ref().filter(|_| media.url.is_none() && media.data.is_none()) {
        block.token("file_id", id);
    } else if address.starts_with("\"data:") {
        // Data needs a name: it says what is in it.
        block.text("filename", media.name.as_deref().unwrap_or(default_name(&address)));
        block.raw("file_data", &address);
    } else {
        block.raw("file_url", &address);
    }
}

/// What an item of an answer is to its neighbours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// Words; whether they have an item id.
    Said(bool),
    /// Whether the server knows it by its id.
    Reasoning(bool),
    Call,
    Other,
    /// It does not go out.
    Gone,
}

/// An item in the making: a range of the message's parts.
struct Item {
    is: Is,
    from: usize,
    to: usize,
    /// Its reasoning is gone, so its id goes too: call and output pair by `call_id` (laravel/ai#1052).
    without_id: bool,
}

fn encode_own(wire: &mut Wire<'_>, item: &DraftMessage<'_>, report: &mut Report) {
    let message = item.message;
    let mut items: Vec<Item> = Vec::with_capacity(message.parts.len());
    for (at, part) in message.parts.iter().enumerate() {
        if matches!(part.body, PartBody::Data { .. }) {
            continue;
        }
        if continues(part)
            && let Some(last) = items.last_mut().filter(|last| last.to == at && last.is != Is::Call)
        {
            last.to = at + 1;
            continue;
        }
        items.push(Item { is: what(part, item, report), from: at, to: at + 1, without_id: false });
    }
    keep_reasoning_with_what_follows(&mut items, message, report);
    for planned in &items {
        let parts = message.parts.get(planned.from..planned.to).unwrap_or_default();
        let Some(first) = parts.first().filter(|_| planned.is != Is::Gone) else { continue };
        match &first.body {
            PartBody::ToolCall { .. } => {
                if let Some(call) = item.call(&first.body) {
                    write_call(wire.begin(), call.invocation, true, planned.without_id);
                }
            }
            PartBody::Opaque(value) if first.template.is_none() => wire.begin().push_str(value.as_str()),
            _ => match first.template.as_ref().filter(|_| !continues(first)) {
                Some(template) => write_item(wire.begin(), parts, template, planned.without_id),
                None => {
                    if let Some(text) = text_of(first).filter(|text| !text.is_empty()) {
                        write_said(wire, text, matches!(first.body, PartBody::Refusal(_)));
                    }
                }
            },
        }
    }
}

/// Whether a part goes on with the item of the part before it.
fn continues(part: &Part) -> bool {
    part.template.as_ref().is_some_and(|template| matches!(template.0.first(), Some((_, TemplateSlot::Parts))))
}

fn what(part: &Part, item: &DraftMessage<'_>, report: &mut Report) -> Is {
    let id = part.template.as_ref().and_then(|template| raw(template, "id"));
    match &part.body {
        PartBody::ToolCall { .. } => match item.call(&part.body) {
            Some(call) if can_go(call, true) => Is::Call,
            Some(call) => {
                report.push(
                    Finding::info(
                        FindingCode::UnsupportedPart,
                        "no output of this kind of call can be made from text; call and result are left out",
                    )
                    .of_message(&item.message.id)
                    .of_call(&call.invocation.call_id)
                    .with_action(Action::Dropped),
                );
                Is::Gone
            }
            None => Is::Gone,
        },
        PartBody::Text(text) | PartBody::Refusal(text) if part.template.is_none() && text.is_empty() => Is::Gone,
        PartBody::Text(_) | PartBody::Refusal(_) => Is::Said(id.is_some()),
        PartBody::Reasoning(_) => match &part.template {
            // An answer that nobody stored, without what it takes to read it again: the provider knows nothing of it.
            Some(template) if item.message.run_id.is_some() && is_bare(template) => Is::Gone,
            Some(_) => Is::Reasoning(id.is_some_and(|id| id.as_str().starts_with("\"rs_"))),
            None => Is::Gone,
        },
        PartBody::Opaque(_) => Is::Other,
        PartBody::Image(_) | PartBody::File(_) | PartBody::Data { .. } => Is::Gone,
    }
}

fn is_bare(template: &WireTemplate) -> bool {
    let says = |name| {
        template.0.iter().any(|(key, slot)| {
            key.inside() == name
                && !matches!(slot, TemplateSlot::Raw(value) if matches!(value.as_str(), "null" | "\"\"" | "[]"))
        })
    };
    !["id", "encrypted_content", "content"].into_iter().any(says)
}

/// Reasoning and the items up to the next one belong together: "provided without its required following item"
/// (continue#8933), also where that has lost its own id (recorded).
fn keep_reasoning_with_what_follows(items: &mut [Item], message: &Message, report: &mut Report) {
    let (mut follower, mut in_reasoning) = (None, false);
    for item in items.iter_mut().rev() {
        if let Is::Reasoning(known) = item.is {
            in_reasoning = true;
            if follower.is_none() || known && follower == Some(Is::Said(false)) {
                item.is = Is::Gone;
                item.without_id = true;
                report.push(
                    Finding::info(
                        FindingCode::OrphanReasoning,
                        "reasoning is refused without what follows it; it is left out",
                    )
                    .of_message(&message.id)
                    .with_action(Action::Dropped),
                );
            }
            continue;
        }
        if std::mem::take(&mut in_reasoning) {
            follower = None;
        }
        if item.is != Is::Gone {
            follower = Some(item.is);
        }
    }
    let mut orphaned = false;
    for item in items {
        match item.is {
            Is::Reasoning(_) => orphaned = false,
            Is::Gone => orphaned |= item.without_id,
            _ => item.without_id = orphaned,
        }
    }
}

/// An item in its shape; `parts` are the entries of its list.
fn write_item(out: &mut String, parts: &[Part], template: &WireTemplate, without_id: bool) {
    let mut object = ObjectWriter::new(out);
    for (key, slot) in &template.0 {
        if without_id && key.inside() == "id" {
            continue;
        }
        let out = object.key_token(key.token());
        match slot {
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            TemplateSlot::Object(_) | TemplateSlot::Content => {
                let mut slot = slot;
                let mut list = ArrayWriter::new(out);
                for (at, part) in parts.iter().enumerate() {
                    if at > 0
                        && let Some((_, own)) = part.template.as_ref().and_then(|template| template.0.get(1))
                    {
                        slot = own;
                    }
                    let out = list.item();
                    match (slot, &part.body) {
                        (TemplateSlot::Object(template), _) => write_part(out, part, template),
                        (_, PartBody::Opaque(value)) => out.push_str(value.as_str()),
                        _ => out.push_str("null"),
                    }
                }
                list.end();
            }
            _ => out.push_str(parts.first().and_then(text_of).map_or("\"\"", JsonStr::token)),
        }
    }
    object.end();
}

/// Words of the model, in the form that needs no id.
fn write_said(wire: &mut Wire<'_>, text: &JsonStr, refusal: bool) {
    let mut object = ObjectWriter::new(wire.begin());
    object.text("role", "assistant");
    if refusal {
        object.array("content", |list| {
            list.object(|part| _ = part.text("type", "refusal").token("refusal", text));
        });
    } else {
        object.token("content", text);
    }
    object.end();
}

/// An answer of another dialect: its words and its calls. Words between calls go before them: DeepSeek refuses a
/// message there (recorded).
fn encode_foreign(wire: &mut Wire<'_>, item: &DraftMessage<'_>, report: &mut Report) {
    let message = item.message;
    let is_call = |part: &Part| item.call(&part.body).is_some();
    let last = message.parts.iter().rposition(is_call).unwrap_or(message.parts.len());
    let (before, after) = message.parts.split_at_checked(last).unwrap_or_default();
    foreign_words(wire, before, message, report);
    for call in &item.calls {
        write_call(wire.begin(), call.invocation, false, false);
    }
    foreign_words(wire, after, message, report);
}

/// Words side by side belong together, words apart become paragraphs.
fn foreign_words(wire: &mut Wire<'_>, parts: &[Part], message: &Message, report: &mut Report) {
    let (mut inside, mut apart) = (String::new(), false);
    for part in parts {
        match &part.body {
            PartBody::Text(text) if !text.is_empty() => {
                if std::mem::take(&mut apart) && !inside.is_empty() {
                    inside.push_str("\\n\\n");
                }
                inside.push_str(text.inside());
                continue;
            }
            PartBody::Refusal(text) if !text.is_empty() => {
                if !inside.is_empty() {
                    write_said(wire, &JsonStr::from_inside(&std::mem::take(&mut inside)), false);
                }
                write_said(wire, text, true);
            }
            PartBody::Image(_) | PartBody::File(_) => report.push(
                Finding::info(
                    FindingCode::UnsupportedPart,
                    "an assistant message of this dialect holds no image or file",
                )
                .of_message(&message.id)
                .with_action(Action::Dropped),
            ),
            _ => {}
        }
        apart = true;
    }
    if !inside.is_empty() {
        write_said(wire, &JsonStr::from_inside(&inside), false);
    }
}

/// The kind that a call goes out as.
fn kind_of_call(call: &ToolInvocation, own: bool) -> &'static CallKind {
    let template = call.template.as_ref().filter(|_| own);
    template.and_then(|template| CallKind::of(&raw(template, "type")?.view().as_text()?)).unwrap_or(FUNCTION)
}

/// Whether there is an output for the call, of the kind that answers it.
fn can_go(call: &DraftCall<'_>, own: bool) -> bool {
    kind_of_call(call.invocation, own).takes_text
        || matches!(call.result, Some(DraftResult::Stored(result)) if result.dialect == Some(Dialect::OpenAiResponses) && result.template.is_some())
}

fn write_call(out: &mut String, call: &ToolInvocation, own: bool, without_id: bool) {
    let id = call_id(&Responses, call);
    let tool = JsonStr::new(&tool_name(call));
    let Some(template) = call.template.as_ref().filter(|_| own) else {
        let mut object = ObjectWriter::new(out);
        object.text("type", FUNCTION.kind).token("call_id", &id).token("name", &tool);
        push_arguments(object.key(FUNCTION.arguments), FUNCTION.arguments, &call.arguments);
        return object.end();
    };
    write_shape(out, template, &mut |name, slot, out| {
        match slot {
            // A call id is no item id (nodetool#4252).
            TemplateSlot::Raw(value) if name == "id" && (without_id || value.as_str().starts_with("\"call_")) => {
                return false;
            }
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            TemplateSlot::Id => out.push_str(id.token()),
            TemplateSlot::Name => out.push_str(tool.token()),
            TemplateSlot::Arguments => push_arguments(out, name, &call.arguments),
            _ => return false,
        }
        true
    });
}

/// A function's arguments are a string of JSON text, and nothing written reads as none: `{}`. A custom tool's input is
/// a string, other calls hold a value.
fn push_arguments(out: &mut String, member: &str, arguments: &Arguments) {
    let function = member == FUNCTION.arguments;
    match arguments {
        Arguments::Text(text) if text.is_empty() && function => out.push_str("\"{}\""),
        Arguments::Text(text) => out.push_str(text.token()),
        Arguments::Value(value) if function || member == "input" && value.view().kind() != Kind::String => {
            push_text(out, value.as_str());
        }
        Arguments::Value(value) => out.push_str(value.as_str()),
    }
}

fn write_result(out: &mut String, call: &DraftCall<'_>, own: bool, report: &mut Report) {
    let id = call_id(&Responses, call.invocation);
    let kind = kind_of_call(call.invocation, own);
    let output = format!("\"{}_output\"", kind.kind);
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::OpenAiResponses)
        && (!kind.takes_parts() || matches!(result.content.view().kind(), Kind::String | Kind::Array))
    {
        if let Some(template) = &result.template {
            write_shape(out, template, &mut |name, slot, out| {
                out.push_str(match slot {
                    // One of another kind than its call goes as it came: they pair by their id.
                    TemplateSlot::Raw(_) if name == "type" && !own => &output,
                    TemplateSlot::Raw(value) => value.as_str(),
                    TemplateSlot::Id => id.token(),
                    TemplateSlot::Content => result.content.as_str(),
                    _ => return false,
                });
                true
            });
            return;
        }
        let mut object = ObjectWriter::new(out);
        object.text("type", "function_call_output").token("call_id", &id).json("output", result.content.view());
        return object.end();
    }
    let words = result_text(Dialect::OpenAiResponses, call, report);
    let mut object = ObjectWriter::new(out);
    object.raw("type", &output).token("call_id", &id);
    if kind.kind == "apply_patch_call" {
        object.text("status", if words.is_error { "failed" } else { "completed" });
    }
    match words.texts.as_slice() {
        [] if words.media.is_empty() => _ = object.text("output", ""),
        [text] if words.media.is_empty() => _ = object.token("output", text),
        texts if kind.takes_parts() => {
            let mut list = ArrayWriter::new(object.key("output"));
            for text in texts {
                write_block(list.item(), &PartBody::Text(text.clone()).into(), false);
            }
            for part in &words.media {
                write_block(list.item(), part, false);
            }
            list.end();
        }
        texts => _ = object.token("output", &JsonStr::joined(&mut texts.iter(), "\\n")),
    }
    object.end();
}

// What is plain needs no shape of its own.

/// Whether a message of that shape, not the model's, is written the same without it.
pub fn is_plain_message(role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let one_text = matches!(parts, [IncomingPart::Part(Part { body: PartBody::Text(_), .. })]);
    let says = parts
        .iter()
        .any(|part| matches!(part, IncomingPart::Part(part) if text_of(part).is_none_or(|text| !text.is_empty())));
    let slot = if one_text { "part" } else { "parts" };
    (one_text || says) && is_shape(template, &format!(r##"{{"role":"{}","content":#{slot}}}"##, role.as_str()))
}
