//! Recognises items that are not of the dialect, while the rules read a body.

use super::fields::Fields;
use super::plan::Plan;
use crate::error::Error;
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::{ForeignFormat, block_format, body_format, is_langchain_pair, item_fit};

impl<'a> Plan<'a, '_> {
    /// Whether an object of the list can be read as an item; reports it otherwise, as left out.
    pub fn admits(&mut self, item: &Fields<'a>) -> bool {
        let fit = item_fit(&self.survey.formats, item);
        self.survey.has_native_item |= fit.own;
        match fit.foreign {
            Some(format) if !fit.in_content => {
                self.refuse(format, item.object);
                return false;
            }
            Some(format) => self.survey.foreign_blocks.push((self.at, item.object, format)),
            None => {}
        }
        self.survey.has_readable_item = true;
        true
    }

    /// Whether a value of the list that is no object can be read, as [`admits`](Self::admits): a text can.
    pub fn admits_bare(&mut self, item: JsonRef<'a>) -> bool {
        if is_langchain_pair(item) {
            self.refuse(ForeignFormat::LangChain, item);
            return false;
        }
        self.survey.has_readable_item |= item.kind() == JsonKind::String;
        true
    }

    /// Whether a block of a message's content has a mark of another shape.
    pub fn is_foreign_block(&self, block: &Fields<'_>) -> bool {
        block_format(&self.survey.formats, block).is_some()
    }

    fn refuse(&mut self, format: ForeignFormat, item: JsonRef<'a>) {
        match format {
            // What says nothing is no loss.
            ForeignFormat::Unknown => {
                self.survey.dropped_unknown |=
                    item.entries().any(|(key, value)| !value.is_null() && !key.is_text("role"));
            }
            format if self.survey.foreign.is_none_or(|before| format.says_more_than(before)) => {
                self.survey.foreign = Some(format);
            }
            _ => {}
        }
        let place = format!("{}[{}]", self.survey.formats.named.list(), self.at);
        self.unknown_shape(format, &place, item, Action::Dropped);
    }

    fn unknown_shape(&mut self, format: ForeignFormat, what: &str, about: JsonRef<'a>, action: Action) {
        let sentence = format.sentence(what, self.survey.formats.named.dialect());
        let start = self.edits.span(about).start;
        self.survey.findings.push((Finding::error(FindingCode::UnknownShape, sentence).with_action(action), start));
    }

    /// The body as a whole is of another shape.
    pub(super) fn refuse_body(&mut self, format: ForeignFormat) {
        self.survey.foreign = Some(format);
        self.unknown_shape(format, "The body", self.body.object, Action::Rewritten);
    }

    /// Ends the survey: the shape for which a body is refused, because it is another dialect's or nobody's, or because a result
    /// stands in it that cannot be read. Of a body with nothing of the dialect's own, only its shape is reported.
    pub(super) fn refused(&mut self) -> Option<ForeignFormat> {
        let lost = self.survey.dropped_unknown && !self.survey.has_readable_item;
        let mut format = self.survey.foreign;
        let mut whole = lost || format.is_some() && !self.survey.has_native_item;
        if !self.survey.has_native_item {
            for (at, item, of_blocks) in std::mem::take(&mut self.survey.foreign_blocks) {
                let place = format!("{}[{at}]", self.survey.formats.named.list());
                self.unknown_shape(of_blocks, &place, item, Action::Rewritten);
                format = format.or(Some(of_blocks));
                whole = true;
            }
        }
        if whole {
            (self.report, self.places) = (Report::new(), Vec::new());
        }
        for (finding, start) in std::mem::take(&mut self.survey.findings) {
            self.report.push(finding);
            self.places.push((start, ""));
        }
        format.or_else(|| (lost || self.survey.has_unread_mention).then_some(ForeignFormat::Unknown))
    }
}

impl<'a> Plan<'a, '_> {
    /// Reports the format of the whole body, if it is another one. `found` stands where the list of items should.
    pub(super) fn refuse_other_format(&mut self, found: Option<JsonRef<'a>>) {
        let of_item = found.filter(|found| found.is_object()).and_then(|item| self.format_of_single(item));
        if let Some(format) = of_item.or_else(|| body_format(&self.survey.formats, &self.body)) {
            self.refuse_body(format);
        }
    }

    /// Returns the other format of an item that stands in place of the list.
    fn format_of_single(&self, item: JsonRef<'a>) -> Option<ForeignFormat> {
        item.entries().next()?;
        if self.survey.formats.named.around_parts(item).is_some() {
            return None;
        }
        item_fit(&self.survey.formats, &Fields::of(item)).foreign
    }
}

/// The error of a repair that was refused: the first finding of another shape.
pub(super) fn refusal(report: &[Finding], format: ForeignFormat) -> Error {
    let mut shapes = report
        .iter()
        .filter(|finding| finding.code == FindingCode::UnknownShape && finding.severity == Severity::Error);
    // An open call whose id stands elsewhere says more than the item in which it stands.
    let tells = |finding: &&Finding| match format {
        ForeignFormat::Unknown => finding.call_id.is_some(),
        format => format.is_in(&finding.message),
    };
    let first = shapes.clone().find(tells).or_else(|| shapes.next());
    let sentence = first.map_or("The body is not of the dialect that was named.", |finding| &finding.message);
    Error::invalid(format!("{sentence} Nothing was changed.")).with(|out| {
        out.text("shape", format.name());
        if let Some(path) = first.and_then(|finding| finding.path.as_deref()) {
            out.text("path", path);
        }
    })
}
