//! `custom`: a function of the application gets neutral messages and returns those that are sent: unchanged, changed or
//! new. The filter of a handoff (`handoff.rs`) selects in the same way. Calls stay with the message that made them. The
//! user's newest message is put back if it is missing.

use super::context::{ReducerContext, dropped};
use super::question::{
    PendingQuestion, QuestionKind, QuestionSource, RecordedReply, ReducerQuestion, SelectedMessages, role_of,
};
use super::reducer::Callback;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{MessageFormat, MessageWriter, NO_ALTERNATIVES, read_part};
use crate::id::IdMap;
use crate::json::{ArrayWriter, Json, JsonRef, JsonStr};
use crate::message::{Media, Message, Part, PartBody, Role};
use crate::replay::input::ReplayInput;
use crate::replay::request_draft::{DraftMessage, DraftOrigin, ExtraContent, RequestDraft};

/// Reduces a draft. Returns the reason why the reducer was skipped, if its callback failed.
///
/// # Errors
/// A question if the application has not selected the messages yet.
pub(super) fn reduce<'h>(
    draft: &mut RequestDraft<'h>,
    callback: &Callback,
    context: &ReducerContext<'h, '_>,
    report: &mut Report,
) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
    match context.input.replies.get(context.source()) {
        Some(RecordedReply::Failed(reason)) => Ok(Some(reason.clone())),
        Some(RecordedReply::Selected(selected)) => {
            select_messages(draft, selected, context.source(), context.input, report);
            Ok(None)
        }
        _ => Err(selection_question(draft, callback, context.source(), context.input)),
    }
}

/// Returns the question that asks which messages of a draft are sent.
pub(super) fn selection_question<'h>(
    draft: &RequestDraft<'h>,
    callback: &Callback,
    source: QuestionSource,
    input: &ReplayInput<'h, '_>,
) -> Box<PendingQuestion<'h>> {
    let format = match source {
        QuestionSource::Reducer(_) => MessageFormat::Stored,
        QuestionSource::Handoff(_) => MessageFormat::WithCalls,
    };
    let mut text = String::new();
    let mut array = ArrayWriter::new(&mut text);
    let mut before = None;
    for item in &draft.messages {
        let is_live = matches!(item.origin, DraftOrigin::Live(_));
        let history = input.live.filter(|_| is_live).unwrap_or(input.history);
        let writer = MessageWriter { history, session: "", format, alternatives: &NO_ALTERNATIVES };
        array.object(|out| writer.write(out, item.message, before));
        before = Some(item.message.id.as_str());
    }
    array.end();
    let kind = QuestionKind::Reduce(Json::trusted(text));
    ReducerQuestion::new(source, callback, kind, input.history).pending(None)
}

/// Replaces the messages of a draft by those that the application selected. For a reducer, the user's newest message
/// stays, and so do all calls of a message of which one was selected; for a handoff, only the calls that were selected,
/// and the user's newest message if no other is.
pub(super) fn select_messages<'h>(
    draft: &mut RequestDraft<'h>,
    selected: &'h SelectedMessages,
    source: QuestionSource,
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) {
    let messages = selected.messages.view();
    let indices = indices_of(messages, draft, input);
    let decoded = selected.decoded.get_or_init(|| {
        let items = messages.items().zip(&indices);
        items.map(|(item, index)| decode(index.and_then(|at| draft.messages.get(at)), item)).collect()
    });
    let mut rebuild = DraftRebuild::new(draft, &indices, source, report, input.extra_content);
    let is_user = |item: JsonRef<'_>| role_of(item) == Some(Role::User);
    if matches!(source, QuestionSource::Handoff(_)) && messages.items().any(is_user) {
        rebuild.missing = None;
    }
    for ((item, message), index) in messages.items().zip(decoded).zip(indices) {
        rebuild.select(item, message, index);
    }
    draft.messages = rebuild.finish();
}

/// Returns the index in the draft of each selected message; None for a message that the application added.
fn indices_of(selected: JsonRef<'_>, draft: &RequestDraft<'_>, input: &ReplayInput<'_, '_>) -> Vec<Option<usize>> {
    let mut by_id: IdMap<usize> = IdMap::with_seed(input.history.seed());
    for (index, item) in draft.messages.iter().enumerate().filter(|(_, item)| !item.message.id.is_empty()) {
        by_id.get_or_insert(&item.message.id, index);
    }
    let mut indices = Vec::new();
    for item in selected.items() {
        indices.push(item.text("id").and_then(|id| by_id.get(&id).copied()));
    }
    indices
}

/// Returns true if a neutral message has a tool call, of this invocation if one is given.
fn has_call(selected: JsonRef<'_>, invocation: Option<&str>) -> bool {
    let is_call = |part: JsonRef<'_>| {
        is_type(part, "tool_call")
            && invocation.is_none_or(|id| part.get("invocation").is_some_and(|value| value.is_text(id)))
    };
    selected.get("parts").is_some_and(|parts| parts.items().any(is_call))
}

fn is_type(part: JsonRef<'_>, name: &str) -> bool {
    part.get("type").is_some_and(|value| value.is_text(name))
}

/// Decodes a selected message: the message of the draft with the selected parts, or a new one.
fn decode(original: Option<&DraftMessage<'_>>, selected: JsonRef<'_>) -> Message {
    let original = original.map(|item| item.message);
    let mut message =
        original.cloned().unwrap_or_else(|| Message::from_text(role_of(selected).unwrap_or(Role::User), ""));
    let mut old: Vec<Part> = std::mem::take(&mut message.parts);
    for part in selected.get("parts").iter().flat_map(|parts| parts.items()) {
        // An unchanged part keeps its wire template.
        if original.is_some()
            && let Some(at) = old.iter().position(|old| is_same(old, part))
        {
            message.parts.push(old.remove(at));
        } else if let Ok(new) = read_part(part) {
            message.parts.push(new);
        }
    }
    if original.is_some_and(|original| original.parts != message.parts) {
        message.template = None;
    }
    message
}

/// Returns true if a neutral part has the same content as a part, in all members that an application sees.
fn is_same(part: &Part, selected: JsonRef<'_>) -> bool {
    let is_text = |name: &str, text: &JsonStr| {
        is_type(selected, name) && selected.text("text").is_some_and(|selected| selected == text.decode())
    };
    let is_medium = |name: &str, media: &Media| {
        let is_member = |key: &str, value: Option<&JsonStr>| {
            selected.text(key).as_deref() == value.map(|value| value.decode()).as_deref()
        };
        is_type(selected, name)
            && is_member("url", media.url.as_ref())
            && is_member("data", media.data.as_ref())
            && is_member("fileId", media.file_id.as_ref())
    };
    match &part.body {
        PartBody::Text(text) => is_text("text", text),
        PartBody::Reasoning(text) => is_text("reasoning", text),
        PartBody::Refusal(text) => is_text("refusal", text),
        PartBody::Image(media) => is_medium("image", media),
        PartBody::File(media) => is_medium("file", media),
        PartBody::Data { .. } => is_type(selected, "data"),
        PartBody::Opaque(_) => is_type(selected, "opaque"),
        PartBody::ToolCall { invocation, .. } => {
            is_type(selected, "tool_call") && selected.text("invocation").is_some_and(|id| id == invocation.as_str())
        }
    }
}

/// The messages of a draft while they are rebuilt in the order that the application selected.
struct DraftRebuild<'h, 'r> {
    /// By index in the old draft; None once the message is in `new`.
    old: Vec<Option<DraftMessage<'h>>>,
    new: Vec<DraftMessage<'h>>,
    /// The index of the user's newest message, if the application did not select it.
    missing: Option<usize>,
    /// The source of the question that the selection replies to.
    source: QuestionSource,
    report: &'r mut Report,
    /// As in [`ReplayInput`](crate::replay::ReplayInput).
    extra_content: fn(&Message) -> ExtraContent,
}

impl<'h, 'r> DraftRebuild<'h, 'r> {
    /// Takes the messages out of a draft. `indices` are those of the selected messages.
    fn new(
        draft: &mut RequestDraft<'h>,
        indices: &[Option<usize>],
        source: QuestionSource,
        report: &'r mut Report,
        extra_content: fn(&Message) -> ExtraContent,
    ) -> Self {
        let is_question = |item: &DraftMessage<'_>| {
            let is_user = item.message.role == Role::User && item.origin != DraftOrigin::LateResult;
            is_user && item.origin != DraftOrigin::Replacement && item.has_content()
        };
        let missing = draft.messages.iter().rposition(is_question).filter(|newest| !indices.contains(&Some(*newest)));
        let old: Vec<_> = std::mem::take(&mut draft.messages).into_iter().map(Some).collect();
        Self { new: Vec::new(), old, missing, source, report, extra_content }
    }

    /// Adds the next selected message. `message` is `selected`, decoded.
    fn select(&mut self, selected: JsonRef<'_>, message: &'h Message, index: Option<usize>) {
        let Some(index) = index else {
            let finding = self.finding("added a message").with_action(Action::Synthesized);
            self.report.push(finding);
            self.new.push(DraftMessage::created(message, DraftOrigin::Created));
            return;
        };
        if self.missing.is_some_and(|missing| index > missing) {
            self.put_back();
        }
        // A message that was selected twice is added once.
        let Some(mut item) = self.old.get_mut(index).and_then(Option::take) else { return };
        let before = item.calls.len();
        let is_exact = matches!(self.source, QuestionSource::Handoff(_));
        item.calls.retain(|call| has_call(selected, is_exact.then_some(call.invocation.id.as_str())));
        if item.calls.len() < before {
            let finding = self.finding("left calls out").of_message(&item.message.id);
            self.report.push(finding.with_action(Action::Rewritten));
        }
        let content =
            |message: &'h Message| message.parts.iter().filter(|part| !matches!(part.body, PartBody::ToolCall { .. }));
        if !content(item.message).eq(content(message)) {
            let finding = self.finding("changed it").of_message(&item.message.id);
            self.report.push(finding.with_action(Action::Rewritten));
            item.message = message;
            item.extra_content = (self.extra_content)(message);
            item.origin = DraftOrigin::Created;
        }
        self.new.push(item);
    }

    /// Adds the user's newest message, which no reducer drops, if it is missing.
    fn put_back(&mut self) {
        if let Some(item) = self.missing.and_then(|missing| self.old.get_mut(missing)).and_then(Option::take) {
            self.report.push(dropped(&item, "the user's newest message is put back").with_action(Action::Kept));
            self.new.push(item);
        }
    }

    /// Reports the messages that were not selected, and returns those that were.
    fn finish(mut self) -> Vec<DraftMessage<'h>> {
        self.put_back();
        for item in self.old.iter().flatten() {
            let finding = self.finding("left it out").of_message(&item.message.id).with_action(Action::Dropped);
            self.report.push(finding);
        }
        self.new
    }

    /// Returns the finding that the application's function did something with a message.
    fn finding(&self, action: &str) -> Finding {
        let function = match self.source {
            QuestionSource::Reducer(_) => "the reducer `custom`",
            QuestionSource::Handoff(_) => "`inputFilter` of the handoff",
        };
        Finding::info(FindingCode::Reduced, format!("{function} {action}"))
    }
}
