//! The items of an answer.

use super::call_items::{has_output, write_function_call, write_own_call};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonRef, JsonStr, ObjectWriter};
use crate::message::{Message, Part, PartBody, Phase, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::{continues_item, write_item};
use crate::provider::neutral::{NO_ASSISTANT_MEDIA, text_of};
use crate::provider::openai_responses::decode::raw_member;
use crate::provider::spec::{EncodeContext, Wire};
use crate::replay::DraftMessage;

/// What an item of an answer is to the items beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemClass {
    /// A message with or without an item id.
    Message {
        has_id: bool,
    },
    /// Reasoning with or without an id of OpenAI's (`rs_…`).
    Reasoning {
        has_id: bool,
    },
    Call,
    Other,
    /// The item is not sent.
    Omitted,
}

/// An item that is to be written, with the range of the message's parts that it consists of.
struct PlannedItem {
    class: ItemClass,
    from: usize,
    to: usize,
    /// The item is written without its id, because its reasoning is omitted. Call and output still pair by `call_id`
    /// (laravel/ai#1052).
    without_id: bool,
}

/// Writes the items of an answer of this dialect.
pub(super) fn encode_native(wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
    let message = item.message;
    let mut planned = plan_items(item, context.report);
    if context.settings.omits_kept_items {
        omit_kept_items(&mut planned, message, context.report);
    }
    omit_orphaned_reasoning(&mut planned, message, context.report);
    for PlannedItem { class, from, to, without_id } in planned {
        let parts = message.parts.get(from..to).unwrap_or_default();
        let Some(first) = parts.first().filter(|_| class != ItemClass::Omitted) else { continue };
        match (&first.body, first.template.as_ref().filter(|_| !continues_item(first))) {
            (PartBody::ToolCall { .. }, _) => {
                if let Some(call) = item.call(&first.body) {
                    write_own_call(wire.begin(), call.invocation, without_id);
                }
            }
            (_, Some(template)) => write_item(wire.begin(), parts, template, without_id),
            (PartBody::Opaque(value), None) if first.template.is_none() => wire.begin().push_str(value.as_str()),
            (_, None) => {
                if let Some(text) = text_of(first).filter(|text| !text.is_empty()) {
                    write_message(wire, text, MessageKind::of(first));
                }
            }
        }
    }
}

/// Groups the parts of an answer into items.
fn plan_items(item: &DraftMessage<'_>, report: &mut Report) -> Vec<PlannedItem> {
    let parts = &item.message.parts;
    let mut planned: Vec<PlannedItem> = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        if matches!(part.body, PartBody::Data { .. }) {
            continue;
        }
        if continues_item(part)
            && let Some(last) = planned.last_mut().filter(|last| last.to == at && last.class != ItemClass::Call)
        {
            last.to = at + 1;
            continue;
        }
        planned.push(PlannedItem { class: class_of(part, item, report), from: at, to: at + 1, without_id: false });
    }
    planned
}

fn class_of(part: &Part, item: &DraftMessage<'_>, report: &mut Report) -> ItemClass {
    let id = part.template.as_ref().and_then(|template| raw_member(template, "id"));
    match &part.body {
        PartBody::ToolCall { .. } => match item.call(&part.body) {
            Some(call) if has_output(call, true) => ItemClass::Call,
            Some(call) => {
                report.push(
                    Finding::info(
                        FindingCode::UnsupportedPart,
                        "text cannot answer this kind of call; the call and its result were removed",
                    )
                    .of_message(&item.message.id)
                    .of_call(&call.invocation.call_id)
                    .with_action(Action::Dropped),
                );
                ItemClass::Omitted
            }
            None => ItemClass::Omitted,
        },
        PartBody::Text(text) | PartBody::Refusal(text) if part.template.is_none() && text.is_empty() => {
            ItemClass::Omitted
        }
        PartBody::Text(_) | PartBody::Refusal(_) => ItemClass::Message { has_id: id.is_some() },
        PartBody::Reasoning(_) => match &part.template {
            // The provider did not store the answer, and the item holds nothing that it could read.
            Some(template) if item.message.run_id.is_some() && is_unreadable(template) => ItemClass::Omitted,
            Some(_) => ItemClass::Reasoning { has_id: id.is_some_and(|id| id.as_str().starts_with("\"rs_")) },
            None => ItemClass::Omitted,
        },
        PartBody::Opaque(_) => ItemClass::Other,
        PartBody::Image(_) | PartBody::File(_) | PartBody::Data { .. } => ItemClass::Omitted,
    }
}

/// Returns true for reasoning without id, `encrypted_content` and `content`.
fn is_unreadable(template: &WireTemplate) -> bool {
    !has_any(template, &["id", "encrypted_content", "content"])
}

/// Returns true if a template has one of these members, and it is not empty.
fn has_any(template: &WireTemplate, members: &[&str]) -> bool {
    let is_blank = |slot: &TemplateSlot| matches!(slot, TemplateSlot::Raw(value) if matches!(value.as_str(), "null" | "\"\"" | "[]"));
    template.0.iter().any(|(key, slot)| members.contains(&key.inside()) && !is_blank(slot))
}

/// Returns true for an item that names what the service stored: reasoning that is not encrypted in it, a reference, or
/// a call of a tool that the service ran, whose results the item does not contain.
pub fn is_kept_by_service(part: &Part) -> bool {
    match (&part.body, &part.template) {
        (PartBody::Reasoning(_), Some(template)) => {
            has_any(template, &["id"]) && !has_any(template, &["encrypted_content", "content"])
        }
        (PartBody::Opaque(item), _) => {
            let item_type = item.view().find("type").and_then(JsonRef::as_text).unwrap_or_default();
            item_type == "item_reference" || item_type.ends_with("_call")
        }
        _ => false,
    }
}

/// Omits reasoning and references that name what the service does not have any more, and the ids of the items that
/// belonged to it. OpenAI rejects them: "Item with id 'rs_…' not found" (openai-agents-python#2020).
fn omit_kept_items(items: &mut [PlannedItem], message: &Message, report: &mut Report) {
    for item in items {
        let Some(part) = message.parts.get(item.from).filter(|part| is_kept_by_service(part)) else { continue };
        let is_reference =
            matches!(&part.body, PartBody::Opaque(item) if item.view().has_text("type", "item_reference"));
        if is_reference || matches!(part.body, PartBody::Reasoning(_)) {
            (item.class, item.without_id) = (ItemClass::Omitted, true);
            let finding = Finding::info(
                FindingCode::UnsupportedPart,
                "only the service had this item, and it does not have it any more",
            );
            report.push(finding.of_message(&message.id).with_action(Action::Dropped));
        }
    }
}

/// Omits reasoning that nothing follows, and the ids of the items that belonged to it. OpenAI rejects it: "Item 'rs_…'
/// of type 'reasoning' was provided without its required following item" (continue#8933), also if the message that
/// follows has lost its own id (recorded).
fn omit_orphaned_reasoning(items: &mut [PlannedItem], message: &Message, report: &mut Report) {
    let (mut follower, mut in_reasoning) = (None, false);
    for item in items.iter_mut().rev() {
        if let ItemClass::Reasoning { has_id } = item.class {
            in_reasoning = true;
            if follower.is_none() || has_id && follower == Some(ItemClass::Message { has_id: false }) {
                item.class = ItemClass::Omitted;
                item.without_id = true;
                report.push(
                    Finding::info(
                        FindingCode::OrphanReasoning,
                        "reasoning is rejected without the item that follows it; it was removed",
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
        if item.class != ItemClass::Omitted {
            follower = Some(item.class);
        }
    }
    let mut lost_reasoning = false;
    for item in items {
        match item.class {
            ItemClass::Reasoning { .. } => lost_reasoning = false,
            ItemClass::Omitted => lost_reasoning |= item.without_id,
            _ => item.without_id = lost_reasoning,
        }
    }
}

/// What a message of the model is, beside its text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct MessageKind {
    is_refusal: bool,
    phase: Option<Phase>,
}

impl MessageKind {
    fn of(part: &Part) -> Self {
        Self { is_refusal: matches!(part.body, PartBody::Refusal(_)), phase: part.phase }
    }
}

/// Writes a message of the model without an id: `{"role":"assistant","content":"…"}`, with its phase if it has one.
fn write_message(wire: &mut Wire<'_>, text: &JsonStr, kind: MessageKind) {
    let mut object = ObjectWriter::new(wire.begin());
    object.text("role", "assistant");
    if let Some(phase) = kind.phase {
        object.text("phase", phase.as_str());
    }
    if kind.is_refusal {
        object.array("content", |list| {
            list.object(|part| _ = part.text("type", "refusal").token("refusal", text));
        });
    } else {
        object.token("content", text);
    }
    object.end();
}

/// Writes the text and calls of an answer of another dialect. Text between calls is placed before them: DeepSeek
/// rejects a message there (recorded).
pub(super) fn encode_foreign(wire: &mut Wire<'_>, item: &DraftMessage<'_>, report: &mut Report) {
    let message = item.message;
    let is_call = |part: &Part| item.call(&part.body).is_some();
    let last = message.parts.iter().rposition(is_call).unwrap_or(message.parts.len());
    let (before, after) = message.parts.split_at_checked(last).unwrap_or_default();
    write_foreign_text(wire, before, message, report);
    for call in &item.calls {
        write_function_call(wire.begin(), call.invocation);
    }
    write_foreign_text(wire, after, message, report);
}

/// Writes the text of some parts as messages, one for each phase. Adjacent texts are concatenated; others become
/// paragraphs.
fn write_foreign_text(wire: &mut Wire<'_>, parts: &[Part], message: &Message, report: &mut Report) {
    let (mut inside, mut is_interrupted) = (String::new(), false);
    let mut kind = MessageKind::default();
    for part in parts {
        match &part.body {
            PartBody::Text(text) if !text.is_empty() => {
                if kind != MessageKind::of(part) {
                    end_message(wire, &mut inside, kind);
                    kind = MessageKind::of(part);
                }
                if std::mem::take(&mut is_interrupted) && !inside.is_empty() {
                    inside.push_str("\\n\\n");
                }
                inside.push_str(text.inside());
                continue;
            }
            PartBody::Refusal(text) if !text.is_empty() => {
                end_message(wire, &mut inside, kind);
                write_message(wire, text, MessageKind::of(part));
            }
            PartBody::Image(_) | PartBody::File(_) => report.push(
                Finding::info(FindingCode::UnsupportedPart, NO_ASSISTANT_MEDIA)
                    .of_message(&message.id)
                    .with_action(Action::Dropped),
            ),
            _ => {}
        }
        is_interrupted = true;
    }
    end_message(wire, &mut inside, kind);
}

/// Writes the text so far, if there is any, as a message.
fn end_message(wire: &mut Wire<'_>, inside: &mut String, kind: MessageKind) {
    if !inside.is_empty() {
        write_message(wire, &JsonStr::from_inside(&std::mem::take(inside)), kind);
    }
}
