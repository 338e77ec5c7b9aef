//! The application's own reducer: it gets neutral messages and gives back those that are shown, as they are, changed, or new
//! ones. Calls stay with the message that asked for them; the user's newest message is put back if it is missing.

use super::pending::{Callback, PendingQuestion, QuestionKind, RecordedReply, ReducerQuestion};
use super::{ReducerContext, dropped};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{MessageFormat, MessageWriter, read_part};
use crate::id::IdMap;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef};
use crate::message::{Media, Message, Part, PartBody, Role};
use crate::replay::draft::{Draft, DraftMessage, DraftOrigin};

pub(super) fn reduce<'h>(
    draft: &mut Draft<'h>,
    callback: &Callback,
    context: &ReducerContext<'h, '_>,
    report: &mut Report,
) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
    match context.progress.told(context.place) {
        Some(RecordedReply::Failed(why)) => Ok(Some(why.clone())),
        Some(RecordedReply::Chosen(messages, made)) => {
            let mut at: IdMap<usize> = IdMap::with_seed(context.history.seed());
            for (place, item) in draft.messages.iter().enumerate().filter(|(_, item)| !item.message.id.is_empty()) {
                at.get_or_insert(&item.message.id, place);
            }
            let mut places = Vec::new();
            for chosen in messages.view().items() {
                places.push(chosen.text("id").and_then(|id| at.get(&id).copied()));
            }
            if made.get().is_none() {
                let mut list = Vec::with_capacity(places.len());
                for (chosen, place) in messages.view().items().zip(&places) {
                    list.push(make(place.and_then(|at| draft.messages.get(at)), chosen));
                }
                _ = made.set(list);
            }
            let made = made.get().map_or(&[][..], Vec::as_slice);
            choose(draft, messages.view(), &places, made, report);
            Ok(None)
        }
        _ => {
            let mut text = String::new();
            let mut array = ArrayWriter::new(&mut text);
            let writer = MessageWriter { history: context.history, session: "", format: MessageFormat::Stored };
            let mut before = None;
            for item in &draft.messages {
                array.object(|out| writer.write(out, item.message, before));
                before = Some(item.message.id.as_str());
            }
            array.end();
            let question = QuestionKind::Reduce(Json::trusted(text));
            Err(ReducerQuestion::new(context.place, callback, question, context.history).pending(None))
        }
    }
}

/// Whether that is a list of messages.
pub(super) fn is_list(messages: &Json) -> bool {
    messages.view().kind() == JsonKind::Array
        && messages.view().items().all(|item| {
            role_of(item).is_some() && item.get("parts").is_some_and(|parts| parts.kind() == JsonKind::Array)
        })
}

fn role_of(message: JsonRef<'_>) -> Option<Role> {
    Role::from_name(&message.text("role")?)
}

fn calls_of(chosen: JsonRef<'_>) -> bool {
    chosen.get("parts").is_some_and(|parts| parts.items().any(|part| is_kind(part, "tool_call")))
}

fn is_kind(part: JsonRef<'_>, kind: &str) -> bool {
    part.get("type").is_some_and(|own| own.is_text(kind))
}

/// The message that a chosen one is: the shown one with other parts, or a new one.
fn make(known: Option<&DraftMessage<'_>>, chosen: JsonRef<'_>) -> Message {
    let known = known.map(|item| item.message);
    let mut message = known.cloned().unwrap_or_else(|| Message::made(role_of(chosen).unwrap_or(Role::User), ""));
    let mut old: Vec<Part> = std::mem::take(&mut message.parts);
    for part in chosen.get("parts").iter().flat_map(|parts| parts.items()) {
        // What is as it was keeps what its dialect knows of it.
        if known.is_some()
            && let Some(at) = old.iter().position(|old| is_same(old, part))
        {
            message.parts.push(old.remove(at));
        } else if let Ok(new) = read_part(part) {
            message.parts.push(new);
        }
    }
    if known.is_some_and(|known| known.parts != message.parts) {
        message.template = None;
    }
    message
}

/// Whether a part is that one, as far as an application reads it.
fn is_same(part: &Part, shown: JsonRef<'_>) -> bool {
    let text = |kind: &str, own: &crate::json::JsonStr| {
        is_kind(shown, kind) && shown.text("text").is_some_and(|text| text == own.decode())
    };
    let medium = |kind: &str, own: &Media| {
        let member = |key: &str, own: Option<&crate::json::JsonStr>| {
            shown.text(key).as_deref() == own.map(|own| own.decode()).as_deref()
        };
        is_kind(shown, kind)
            && member("url", own.url.as_ref())
            && member("data", own.data.as_ref())
            && member("fileId", own.file_id.as_ref())
    };
    match &part.body {
        PartBody::Text(own) => text("text", own),
        PartBody::Reasoning(own) => text("reasoning", own),
        PartBody::Refusal(own) => text("refusal", own),
        PartBody::Image(own) => medium("image", own),
        PartBody::File(own) => medium("file", own),
        PartBody::Data { .. } => is_kind(shown, "data"),
        PartBody::Opaque(_) => is_kind(shown, "opaque"),
        PartBody::ToolCall { invocation, .. } => {
            is_kind(shown, "tool_call") && shown.text("invocation").is_some_and(|id| id == invocation.as_str())
        }
    }
}

/// Rebuilds the draft as it was chosen.
fn choose<'h>(
    draft: &mut Draft<'h>,
    chosen: JsonRef<'_>,
    places: &[Option<usize>],
    made: &'h [Message],
    report: &mut Report,
) {
    let newest = draft
        .messages
        .iter()
        .rposition(|item| item.message.role == Role::User && item.origin != DraftOrigin::Summary && item.has_words());
    let mut old: Vec<Option<DraftMessage<'h>>> = Vec::with_capacity(draft.messages.len());
    for item in std::mem::take(&mut draft.messages) {
        old.push(Some(item));
    }
    let missing = newest.filter(|newest| !places.contains(&Some(*newest)));
    for ((item, message), place) in chosen.items().zip(made).zip(places) {
        if missing.is_some_and(|missing| place.is_some_and(|place| place > missing)) {
            put_back(draft, &mut old, missing, report);
        }
        match place.map(|place| old.get_mut(place).and_then(Option::take)) {
            // Named twice.
            Some(None) => {}
            Some(Some(mut known)) => {
                if !known.calls.is_empty() && !calls_of(item) {
                    report.push(
                        dropped(&known, "the application's reducer left its calls out").with_action(Action::Rewritten),
                    );
                    known.calls.clear();
                }
                let words = |message: &'h Message| {
                    message.parts.iter().filter(|part| !matches!(part.body, PartBody::ToolCall { .. }))
                };
                if !words(known.message).eq(words(message)) {
                    report.push(dropped(&known, "the application's reducer changed it").with_action(Action::Rewritten));
                    known.message = message;
                    known.origin = DraftOrigin::Made;
                }
                draft.messages.push(known);
            }
            None => {
                report.push(
                    Finding::info(FindingCode::Reduced, "the application's reducer added a message")
                        .with_action(Action::Synthesized),
                );
                let calls = Vec::new();
                draft.messages.push(DraftMessage { message, origin: DraftOrigin::Made, calls, results_go_on: false });
            }
        }
    }
    put_back(draft, &mut old, missing, report);
    for item in old.iter().flatten() {
        report.push(dropped(item, "the application's reducer left it out"));
    }
}

/// The user's newest message never goes.
fn put_back<'h>(
    draft: &mut Draft<'h>,
    old: &mut [Option<DraftMessage<'h>>],
    missing: Option<usize>,
    report: &mut Report,
) {
    if let Some(item) = missing.and_then(|missing| old.get_mut(missing)).and_then(Option::take) {
        report.push(dropped(&item, "the user's newest message is put back").with_action(Action::Kept));
        draft.messages.push(item);
    }
}
