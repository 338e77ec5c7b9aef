//! Ids of open calls that stand where no result was read. A result in another shape may stand there, so the call is not closed with
//! a synthetic one: that would invite the model to run it again.

use super::splice::Span;
use super::survey::UNKNOWN_SHAPE;
use super::{Pairs, Plan};
use crate::finding::{Action, Finding};
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::sorted::in_order;

/// Spellings, without `_` and in small letters, of members that hold a call's id and nothing else.
const CALL_ID: [&str; 6] = ["callid", "toolcallid", "tooluseid", "functioncallid", "toolid", "toolinvocationid"];

impl<'a> Plan<'a, '_> {
    /// Reports each place where an open call's id stands unread.
    pub(super) fn report_mentions(&mut self, pairs: &Pairs<'a>) {
        // By id: the item that calls.
        let mut open: IdMap<Option<usize>> = IdMap::with_hasher(Seed::default());
        let items: Vec<Span> = self.list.items().map(|item| self.edits.span(item)).collect();
        for call in pairs.calls.iter().filter(|call| call.answer.is_none()) {
            if let Some(id) = &call.id {
                open.insert(id.clone(), holder(&items, self.edits.span(call.value).start));
            }
        }
        if open.count() == 0 {
            return;
        }
        let mut read = std::mem::take(&mut self.read);
        read.extend(pairs.calls.iter().map(|call| self.edits.span(call.value)));
        let answers = pairs.answers.iter().filter(|answer| answer.id.is_some());
        read.extend(answers.map(|answer| self.edits.span(answer.value)));
        let read = in_order(read, &|a, b| a.start.cmp(&b.start));
        for (key, value) in self.body.object.text_members().filter(|(_, value)| value.as_raw().len() <= LONGEST) {
            let Some(id) = value.as_text() else { continue };
            let Some(calling) = open.get(id.as_ref()) else { continue };
            let start = self.edits.span(value).start;
            let item = holder(&items, start);
            if holder(&read, start).is_none() && names_call(key, item.is_some() && item != *calling) {
                self.report_mention(&id, value);
            }
        }
    }

    fn report_mention(&mut self, id: &str, place: JsonRef<'a>) {
        let own = self.survey.named.dialect().as_str();
        let sentence = format!(
            "The call {id} has no result in the form of \"{own}\", and its id stands here in another form: convert the messages to the form of \"{own}\" first."
        );
        self.note(Finding::error(UNKNOWN_SHAPE, sentence).of_call(id).did(Action::Kept), place, "");
        self.survey.mentioned = true;
    }
}

/// Which of these spans, in their order and apart, holds a place.
fn holder(spans: &[Span], place: usize) -> Option<usize> {
    let at = spans.partition_point(|span| span.end <= place);
    spans.get(at).filter(|span| span.start <= place).map(|_| at)
}

/// A longer text is no id.
const LONGEST: usize = 1024;

/// Whether a member of that name holds a call's id; in another item of the list, any id will do.
fn names_call(key: JsonRef<'_>, in_other_item: bool) -> bool {
    let plain: String = key.as_text().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    CALL_ID.contains(&plain.as_str()) || in_other_item && plain.ends_with("id")
}
