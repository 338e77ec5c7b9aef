//! Ids of open calls that stand where no result was read. A result in another shape may stand there, so the call is not closed with
//! a synthetic one: that would invite the model to run it again.

use super::splice::Span;
use super::{Fields, Pairs, Plan, Violation, quoted};
use crate::finding::{FindingCode, Report};
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::item_format::Mention;
use crate::sorted::in_order;

/// Spellings, without `_` and in small letters, of members that hold a call's id and nothing else.
const CALL_ID: [&str; 6] = ["callid", "toolcallid", "tooluseid", "functioncallid", "toolid", "toolinvocationid"];

/// The open calls of one id.
struct OpenCalls {
    /// The item of the first.
    item: Option<usize>,
    count: usize,
}

impl<'a> Plan<'a, '_> {
    /// Reports each place where an open call's id stands unread, or has what stands there marked as a result.
    pub(super) fn report_mentions(&mut self, pairs: &Pairs<'a>) {
        let mut open: IdMap<OpenCalls> = IdMap::with_seed(Seed::default());
        let items: Vec<JsonRef<'a>> = self.list.items().collect();
        let spans: Vec<Span> = items.iter().map(|item| self.edits.span(*item)).collect();
        for call in pairs.calls.iter().filter(|call| call.answer.is_none()) {
            let item = holder(&spans, self.edits.span(call.value).start);
            if let Some(id) = &call.id {
                open.get_or_insert(id, OpenCalls { item, count: 0 }).count += 1;
            }
        }
        if open.count() == 0 {
            return;
        }
        let read = self.spans_read(pairs);
        for (key, value) in self.body.object.text_members().filter(|(_, value)| value.as_raw().len() <= MAX_ID_BYTES) {
            let Some(id) = value.as_text() else { continue };
            let Some(calls) = open.get_mut(id.as_ref()) else { continue };
            let start = self.edits.span(value).start;
            let item = holder(&spans, start);
            if holder(&read, start).is_some() || !names_call(key, item.is_some() && item != calls.item) {
                continue;
            }
            let fields = item.and_then(|item| items.get(item)).map(|item| Fields::of(*item));
            match fields.map_or(Mention::Unread, |item| self.survey.formats.named.mention(&item, value)) {
                Mention::Call => {}
                Mention::Result(object, key, mark) if self.marks_results => {
                    if calls.count > 0 {
                        calls.count -= 1;
                        self.unmarked_results.push((object, key, mark));
                    }
                }
                _ => self.report_mention(&id, value),
            }
        }
    }

    /// Where calls, results and other known values stand.
    fn spans_read(&mut self, pairs: &Pairs<'a>) -> Vec<Span> {
        let mut read = std::mem::take(&mut self.spans_without_mentions);
        read.extend(pairs.calls.iter().map(|call| self.edits.span(call.value)));
        let answers = pairs.results.iter().filter(|answer| answer.id.is_some());
        read.extend(answers.map(|answer| self.edits.span(answer.value)));
        in_order(read, &|a, b| a.start.cmp(&b.start))
    }

    fn report_mention(&mut self, id: &str, place: JsonRef<'a>) {
        let own = self.survey.formats.named.dialect().as_str();
        let sentence = format!(
            "The call {id} has no result in the form of \"{own}\", and its id stands here in another form: convert the messages to the form of \"{own}\" first."
        );
        self.report(Violation::error(FindingCode::UnknownShape, sentence).at(place).of_call(id).kept());
        self.survey.has_unread_mention = true;
    }

    /// The body with the results marked that were found without a mark, and a finding of each.
    pub(super) fn with_marked_results(mut self) -> (String, Report) {
        let unmarked_results = std::mem::take(&mut self.unmarked_results);
        self.edits = self.edits.cleared();
        (self.report, self.places) = (Report::new(), Vec::new());
        for (object, key, mark) in unmarked_results {
            let sentence = format!("A result whose `{key}` does not say that it is one: expected \"{mark}\".");
            self.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(object, key), quoted(mark));
        }
        self.locate();
        (self.edits.apply(), self.report)
    }
}

/// Which of these spans, in their order and apart, holds a place.
fn holder(spans: &[Span], place: usize) -> Option<usize> {
    let at = spans.partition_point(|span| span.end <= place);
    spans.get(at).filter(|span| span.start <= place).map(|_| at)
}

/// A longer text is no id.
const MAX_ID_BYTES: usize = 1024;

/// Whether a member of that name holds a call's id; in another item of the list, any id will do.
fn names_call(key: JsonRef<'_>, in_other_item: bool) -> bool {
    let plain: String = key.as_text().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    CALL_ID.contains(&plain.as_str()) || in_other_item && plain.ends_with("id")
}
