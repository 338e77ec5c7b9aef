//! Finds ids of calls without a result outside of calls and results. Such a place may be a result in another format. A
//! synthetic result would then invite the model to run the tool again, so the repair is refused.

use super::splice::Span;
use super::{Fields, Pairs, Plan, Violation, quoted};
use crate::finding::{FindingCode, LimitedReport};
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::spec::Mention;

/// Names of members that hold the id of a call and nothing else, in lower case and without `_`.
const CALL_ID: [&str; 6] = ["callid", "toolcallid", "tooluseid", "functioncallid", "toolid", "toolinvocationid"];

/// The calls of one id that have no result.
struct OpenCalls {
    /// The index of the item that holds the first one.
    item: Option<usize>,
    count: usize,
}

impl<'a> Plan<'a, '_> {
    /// Searches the body for ids of calls without a result. Records results that only lack their mark, and reports
    /// other places that may hold a result.
    pub(super) fn report_mentions(&mut self, pairs: &Pairs<'a>) {
        let mut open: IdMap<OpenCalls> = IdMap::with_seed(Seed::default());
        if pairs.calls.iter().all(|call| call.result.is_some()) {
            return;
        }
        let items: Vec<JsonRef<'a>> = self.list.items().collect();
        let spans: Vec<Span> = items.iter().map(|item| self.edits.span(*item)).collect();
        for call in pairs.calls.iter().filter(|call| call.lacks_result()) {
            let item = span_at(&spans, self.edits.span(call.value).start);
            if let Some(id) = &call.id {
                open.get_or_insert(id, OpenCalls { item, count: 0 }).count += 1;
            }
        }
        if open.count() == 0 {
            return;
        }
        let excluded = self.excluded_spans(pairs);
        // The members of the item that was read last.
        let mut fields: Option<(usize, Fields<'a>)> = None;
        let may_mention =
            |key: JsonRef<'_>, value: JsonRef<'_>| may_name_id(key) && value.as_raw().len() <= MAX_ID_BYTES;
        for (key, value) in self.body.object.text_members().filter(|(key, value)| may_mention(*key, *value)) {
            let Some(id) = value.as_text() else { continue };
            let Some(calls) = open.get_mut(id.as_ref()) else { continue };
            let start = self.edits.span(value).start;
            let item = span_at(&spans, start);
            if span_at(&excluded, start).is_some() || !names_call(key, item.is_some() && item != calls.item) {
                continue;
            }
            if let Some(item) = item.filter(|item| fields.as_ref().is_none_or(|(last, _)| last != item)) {
                fields = items.get(item).map(|value| (item, Fields::of(*value)));
            }
            let fields = fields.as_ref().filter(|(last, _)| Some(*last) == item);
            match fields.map_or(Mention::Unread, |(_, item)| self.survey.formats.named.recognizer.mention(item, value))
            {
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

    /// Returns the spans that are not searched, in order: calls, results and other known values.
    fn excluded_spans(&mut self, pairs: &Pairs<'a>) -> Vec<Span> {
        let mut spans = std::mem::take(&mut self.spans_without_mentions);
        spans.extend(pairs.calls.iter().map(|call| self.edits.span(call.value)));
        let answers = pairs.results.iter().filter(|answer| answer.id.is_some());
        spans.extend(answers.map(|answer| self.edits.span(answer.value)));
        spans.sort_by_cached_key(|span| span.start);
        spans
    }

    /// Reports the id of a call without a result at a value that cannot be read.
    fn report_mention(&mut self, id: &str, value: JsonRef<'a>) {
        let dialect = self.survey.formats.named.dialect.as_str();
        let sentence = format!(
            "The call {id} has no result in the form of \"{dialect}\", and its id stands here in another form: convert the messages to the form of \"{dialect}\" first."
        );
        self.report(Violation::error(FindingCode::UnknownShape, sentence).at(value).of_call(id).kept());
        self.survey.has_unread_mention = true;
    }

    /// Returns the body with the results marked that lack their mark, and a finding for each.
    pub(super) fn with_marked_results(mut self) -> (String, LimitedReport) {
        let unmarked_results = std::mem::take(&mut self.unmarked_results);
        self.edits = self.edits.cleared();
        (self.report, self.places) = (LimitedReport::default(), Vec::new());
        for (object, key, mark) in unmarked_results {
            let sentence = format!("A result whose `{key}` does not say that it is one: expected \"{mark}\".");
            self.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(object, key), quoted(mark));
        }
        self.locate();
        (self.edits.apply(), self.report)
    }
}

/// Returns the index of the span that contains a byte offset. The spans are in order and do not overlap.
fn span_at(spans: &[Span], offset: usize) -> Option<usize> {
    let at = spans.partition_point(|span| span.end <= offset);
    spans.get(at).filter(|span| span.start <= offset).map(|_| at)
}

/// The longest JSON string that is compared with ids, in bytes.
const MAX_ID_BYTES: usize = 1024;

/// Returns false for most names that [`names_call`] does not hold for: those whose last letter or digit is no `d`. An
/// escape may be one.
fn may_name_id(key: JsonRef<'_>) -> bool {
    let name = key.as_raw().as_bytes();
    let last = name.iter().rfind(|byte| byte.is_ascii_alphanumeric());
    matches!(last, Some(b'd' | b'D')) || name.contains(&b'\\')
}

/// Returns true if a member's name says that it holds a call's id. In another item than the call's, any name that ends
/// in `id` does.
fn names_call(key: JsonRef<'_>, in_other_item: bool) -> bool {
    let plain: String = key.as_text().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    CALL_ID.contains(&plain.as_str()) || in_other_item && plain.ends_with("id")
}
