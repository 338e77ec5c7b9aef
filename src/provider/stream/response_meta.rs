//! The members that responses of all dialects have beside their content.

use super::assembled::{AnswerStatus, Assembled, AssembledCall, InputTransformation, StreamEvent, WireError};
use super::json_text::non_empty_text;
use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::Usage;
use std::borrow::Cow;

/// The names of a response's members for its id and its model.
pub(crate) struct MetaMembers {
    pub id: &'static str,
    pub model: &'static str,
}

/// Metadata received so far; any member may still be missing.
#[derive(Default)]
pub(crate) struct ResponseMeta {
    pub id: Option<String>,
    pub conversation_id: Option<String>,
    pub model: Option<String>,
    /// The provider's finish or stop reason, as sent.
    pub finish_reason: Option<String>,
    /// The token by which the provider continues the answer, which it has not finished.
    pub continuation: Option<String>,
    pub usage: Option<Usage>,
    pub error: Option<WireError>,
    pub transformations: Vec<InputTransformation>,
    /// True if the service works on the answer in the background, so that it can be picked up.
    pub is_background: bool,
    /// The number of the newest event of the stream, if the service numbers them.
    pub last_event: Option<u64>,
    /// The number of the newest event that was received before the stream was resumed. A service may repeat events up
    /// to this one.
    pub resumed_after: Option<u64>,
}

impl ResponseMeta {
    /// Reads the response's id and model from an object of the dialect, unless they are set.
    pub fn set_id_and_model(&mut self, object: JsonRef<'_>, members: &MetaMembers) {
        for (member, name) in [(&mut self.id, members.id), (&mut self.model, members.model)] {
            if member.is_none() {
                *member = non_empty_text(object.get(name)).map(Into::into);
            }
        }
    }

    /// Sets the token counts, and emits them if they changed.
    pub fn update_usage(&mut self, usage: Option<Usage>, out: &mut Vec<StreamEvent>) {
        if usage.is_some() && usage != self.usage {
            self.usage = usage;
            out.extend(usage.map(StreamEvent::Usage));
        }
    }

    /// Notes the number of an event. Returns true for an event that was received before the stream was resumed.
    pub fn is_repeated(&mut self, number: Option<u64>) -> bool {
        let Some(number) = number else { return false };
        if self.resumed_after.is_some_and(|last| number <= last) {
            return true;
        }
        self.last_event = Some(number);
        false
    }

    /// Sets the error, unless there is one already.
    pub fn set_error(&mut self, error: WireError) {
        self.error.get_or_insert(error);
    }

    /// Sets the error, unless there is one already, and emits it.
    pub fn report_error(&mut self, error: WireError, out: &mut Vec<StreamEvent>) {
        out.push(StreamEvent::Error(error.clone()));
        self.set_error(error);
    }

    /// Reports the error that an error object describes, if it describes one.
    pub fn report_error_object(&mut self, error: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.report_coded_error(error, None, out);
    }

    /// As [`report_error_object`](Self::report_error_object), with a code that the provider has elsewhere in it.
    pub fn report_coded_error(&mut self, error: JsonRef<'_>, code: Option<String>, out: &mut Vec<StreamEvent>) {
        if let Some(error) = read_error(error) {
            self.report_error(WireError { code: code.or(error.code), ..error }, out);
        }
    }

    /// Returns the assembled response. `text` is the content of a string token.
    pub fn assembled(
        &self,
        status: AnswerStatus,
        text: &str,
        calls: Vec<AssembledCall>,
        wire: Option<Json>,
    ) -> Assembled {
        Assembled {
            status,
            finish_reason: self.finish_reason.clone(),
            response_id: self.id.clone(),
            conversation_id: self.conversation_id.clone(),
            continuation: self.continuation.clone(),
            model: self.model.clone(),
            text: JsonStr::from_inside(text),
            calls,
            usage: self.usage,
            error: self.error.clone(),
            transformations: self.transformations.clone(),
            is_background: self.is_background,
            wire,
        }
    }
}

/// Returns the error for bytes that are not a response.
pub(crate) fn malformed(message: impl Into<String>) -> WireError {
    WireError { code: Some("malformed".to_owned()), message: message.into() }
}

/// Returns a message of the model with these encoded blocks in the member `list`, or `None` if there are none.
pub(crate) fn message_of(role: &str, list: &str, blocks: &[String]) -> Option<Json> {
    (!blocks.is_empty()).then(|| ObjectWriter::build(|message| _ = message.text("role", role).list(list, blocks)))
}

/// Reads the error that a provider or gateway reports, as an object such as `{"code":429,"message":"Slow down"}` or as
/// a text. Returns `None` for an empty one.
pub(crate) fn read_error(error: JsonRef<'_>) -> Option<WireError> {
    match error.kind() {
        JsonKind::String => error
            .as_text()
            .filter(|text| !text.is_empty())
            .map(|text| WireError { code: None, message: text.into_owned() }),
        JsonKind::Object if error.entries().next().is_some() => {
            let text = |name| error.get(name).and_then(text_or_number);
            let message = text("message").or_else(|| text("detail")).unwrap_or_else(|| error.as_raw().to_owned());
            Some(WireError { code: text("code").or_else(|| text("type")).or_else(|| text("status")), message })
        }
        _ => None,
    }
}

/// Returns the text of a string that is not empty, or the digits of a number.
fn text_or_number(value: JsonRef<'_>) -> Option<String> {
    match value.kind() {
        JsonKind::String => value.as_text().filter(|text| !text.is_empty()).map(Cow::into_owned),
        JsonKind::Number => Some(value.as_raw().to_owned()),
        _ => None,
    }
}
