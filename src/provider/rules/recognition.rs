//! Recognises items that are not of the dialect, while the rules read a body.

use super::fields::Fields;
use super::plan::Plan;
use super::violation::Violation;
use crate::error::Error;
use crate::finding::{Action, Finding, FindingCode, LimitedReport, MAX_FINDINGS, Severity};
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::{ForeignFormat, block_format, body_format, is_langchain_pair, item_fit};

impl<'a> Plan<'a, '_> {
    /// Returns true if an object of the list can be read as an item. Otherwise reports it as dropped.
    pub fn admits(&mut self, item: &Fields<'a>) -> bool {
        let fit = item_fit(&self.survey.formats, item);
        self.survey.has_native_item |= fit.own;
        match fit.foreign {
            Some(format) if !fit.in_content => {
                self.reject_item(format, item.object);
                return false;
            }
            Some(format) => self.survey.foreign_blocks.push((self.at, item.object, format)),
            None => {}
        }
        self.survey.has_readable_item = true;
        true
    }

    /// Like [`admits`](Self::admits), for a value that is not an object. A string can be read.
    pub fn admits_bare(&mut self, item: JsonRef<'a>) -> bool {
        if is_langchain_pair(item) {
            self.reject_item(ForeignFormat::LangChain, item);
            return false;
        }
        // `[[…]]`: which of the lists is meant is unknown, and leaving one out would lose its messages.
        if item.items().any(|inner| inner.is_object() || inner.kind() == JsonKind::Array) {
            self.survey.has_nested_list = true;
            let list = self.survey.formats.named.list;
            let sentence =
                format!("{list}[{}] is a list, not a message: put its messages into `{list}` itself.", self.at);
            self.report(Violation::error(FindingCode::UnknownShape, sentence).at(item).dropped());
            return false;
        }
        self.survey.has_readable_item |= item.kind() == JsonKind::String;
        true
    }

    /// Returns true if a content block has a mark of a foreign format.
    pub fn is_foreign_block(&self, block: &Fields<'_>) -> bool {
        block_format(&self.survey.formats, block).is_some()
    }

    /// Records a foreign item, and reports it as dropped.
    fn reject_item(&mut self, format: ForeignFormat, item: JsonRef<'a>) {
        match format {
            // An item without content is no loss.
            ForeignFormat::Unknown => {
                self.survey.dropped_unknown |=
                    item.entries().any(|(key, value)| !value.is_null() && !key.is_text("role"));
            }
            format if self.survey.foreign.is_none_or(|before| format.is_more_specific_than(before)) => {
                self.survey.foreign = Some(format);
            }
            _ => {}
        }
        self.report_foreign(format, Some(self.at), item, Action::Dropped);
    }

    /// Reports the format of the item at an index, or of the body.
    fn report_foreign(&mut self, format: ForeignFormat, at: Option<usize>, about: JsonRef<'a>, action: Action) {
        self.charge();
        if self.survey.report.is_full() {
            return self.survey.report.count(Severity::Error, FindingCode::UnknownShape, 1);
        }
        let named = self.survey.formats.named;
        let what = at.map_or_else(|| "The body".into(), |at| format!("{}[{at}]", named.list));
        let sentence = format.sentence(&what, named.dialect);
        self.survey.report.push(Finding::error(FindingCode::UnknownShape, sentence).with_action(action));
        self.survey.starts.push(self.edits.span(about).start);
    }

    /// Records that the body as a whole has a foreign format.
    pub(super) fn reject_body(&mut self, format: ForeignFormat) {
        self.survey.foreign = Some(format);
        self.report_foreign(format, None, self.body.object, Action::Rewritten);
    }

    /// Ends the survey, and adds its findings to the report. Returns the format for which `repair` refuses the body:
    /// its items have that format, or no known one, or it may hold a result that cannot be read. If the body has no
    /// native item, only its format is reported.
    pub(super) fn end_survey(&mut self) -> Option<ForeignFormat> {
        let is_emptied = self.survey.dropped_unknown && !self.survey.has_readable_item;
        let mut format = self.survey.foreign;
        let mut rejects_member = is_emptied || format.is_some() && !self.survey.has_native_item;
        if !self.survey.has_native_item {
            for (at, item, block_format) in std::mem::take(&mut self.survey.foreign_blocks) {
                self.report_foreign(block_format, Some(at), item, Action::Rewritten);
                format = format.or(Some(block_format));
                rejects_member = true;
            }
        }
        if rejects_member {
            (self.report, self.places) = (LimitedReport::default(), Vec::new());
        }
        let free = MAX_FINDINGS.saturating_sub(self.places.len());
        self.places.extend(self.survey.starts.iter().take(free).map(|start| (*start, "")));
        self.report.append(std::mem::take(&mut self.survey.report));
        format.or_else(|| {
            (is_emptied || self.survey.has_unread_mention || self.survey.has_nested_list)
                .then_some(ForeignFormat::Unknown)
        })
    }
}

impl<'a> Plan<'a, '_> {
    /// Reports the format of the whole body if it is foreign. `found` is the value of the member that should hold the
    /// list.
    pub(super) fn reject_other_format(&mut self, found: Option<JsonRef<'a>>) {
        let of_item = found.filter(|found| found.is_object()).and_then(|item| self.format_of_single(item));
        if let Some(format) = of_item.or_else(|| body_format(&self.survey.formats, &self.body)) {
            self.reject_body(format);
        }
    }

    /// Returns the foreign format of an item in place of the list.
    fn format_of_single(&self, item: JsonRef<'a>) -> Option<ForeignFormat> {
        item.entries().next()?;
        if self.survey.formats.named.recognizer.around_parts(item).is_some() {
            return None;
        }
        item_fit(&self.survey.formats, &Fields::of(item)).foreign
    }
}

/// Returns the error of a repair that left no message, if it removed calls or results; none if the messages were empty.
pub(super) fn emptied(report: &[Finding]) -> Option<Error> {
    let holds_content = |finding: &&Finding| {
        let pairs = [FindingCode::OrphanResult, FindingCode::DanglingCall, FindingCode::MissingParallelResult];
        pairs.contains(&finding.code) && finding.action == Some(Action::Dropped)
    };
    let first = report.iter().find(holds_content)?;
    let sentence = format!("Nothing would be left of the messages: {} Nothing was changed.", first.message);
    Some(Error::invalid(sentence).with(|out| {
        if let Some(path) = &first.path {
            out.text("path", path);
        }
    }))
}

/// Returns the error of a refused repair, which quotes the first finding about that format.
pub(super) fn refusal(report: &[Finding], format: ForeignFormat) -> Error {
    let mut foreign = report
        .iter()
        .filter(|finding| finding.code == FindingCode::UnknownShape && finding.severity == Severity::Error);
    // The id of a call without a result is more helpful than the item that contains it.
    let is_about = |finding: &&Finding| match format {
        ForeignFormat::Unknown => finding.call_id.is_some(),
        format => format.is_in(&finding.message),
    };
    let first = foreign.clone().find(is_about).or_else(|| foreign.next());
    let sentence = first.map_or("The body is not of the dialect that was named.", |finding| &finding.message);
    Error::invalid(format!("{sentence} Nothing was changed.")).with(|out| {
        out.text("shape", format.name());
        if let Some(path) = first.and_then(|finding| finding.path.as_deref()) {
            out.text("path", path);
        }
    })
}
