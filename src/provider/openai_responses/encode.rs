//! OpenAI Responses: drafts to items. The outputs of a message's calls follow its items.

mod answer;
mod blocks;
mod call_items;

use crate::finding::Report;
use crate::json::ObjectWriter;
use crate::message::{Dialect, Message, Role, TemplateSlot};
use crate::provider::neutral::{input_text, text_of};
use crate::provider::openai_responses::content::CONTENT;
use crate::provider::spec::{EncodeContext, Wire, call_id, id_of_service};
use crate::provider::wire_template::write_filled;
use crate::replay::{DraftMessage, DraftOrigin};
pub(super) use answer::is_kept_by_service;
pub(super) use blocks::write_block;
use blocks::write_blocks;

/// Writes a message and the outputs of its calls. An empty message is omitted.
pub(super) fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
    let native = item.message.dialect == Some(Dialect::OpenAiResponses);
    match item.message.role {
        _ if item.is_acknowledged || has_late_output(item) => {}
        Role::Assistant if native => answer::encode_native(wire, item, context),
        Role::Assistant => answer::encode_foreign(wire, item, context.report),
        _ => encode_input(wire, item.message, context.report),
    }
    for call in item.calls.iter().filter(|call| call.result.is_some() && call_items::has_output(call, native)) {
        let id_in = if item.is_acknowledged { id_of_service } else { call_id };
        let id = id_in(&CONTENT, call.invocation);
        call_items::write_output(wire.begin(), call, (native, &id), context);
    }
}

/// Returns true for a late result whose call is in the request: its output is all that is sent.
fn has_late_output(item: &DraftMessage<'_>) -> bool {
    item.origin == DraftOrigin::LateResult && !item.calls.is_empty()
}

/// Encodes a message of the user or the system.
fn encode_input(wire: &mut Wire<'_>, message: &Message, report: &mut Report) {
    let native = message.dialect == Some(Dialect::OpenAiResponses);
    if let Some(template) = message.template.as_ref().filter(|_| native) {
        let mut blocks = String::new();
        write_blocks(&mut blocks, message);
        let values = match message.parts.first().and_then(text_of) {
            Some(text) => &[(TemplateSlot::Parts, &*blocks), (TemplateSlot::Part(0), text.token())][..],
            None => &[(TemplateSlot::Parts, &*blocks)],
        };
        return write_filled(wire.begin(), template, values);
    }
    let text = input_text(message, &CONTENT, report);
    if text.is_empty() {
        return;
    }
    let mut object = ObjectWriter::new(wire.begin());
    object.text("role", message.role.as_str());
    match text.single() {
        Some(single) => _ = object.token("content", single),
        None if native || message.role == Role::User => write_blocks(object.key("content"), message),
        // A system message holds only text.
        None => _ = object.token("content", &text.joined()),
    }
    object.end();
}
