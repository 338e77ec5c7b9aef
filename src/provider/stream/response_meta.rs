//! What an answer has beside its words, in every dialect.

use super::assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
use super::json_text::non_empty_text;
use crate::json::{Json, JsonRef, JsonStr, Kind, ObjectWriter};
use crate::message::Usage;
use std::borrow::Cow;

/// As far as they have come.
#[derive(Default)]
pub(crate) struct ResponseMeta {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The provider's own word for how it ended.
    pub finish_reason: Option<String>,
    pub usage: Option<Usage>,
    pub error: Option<WireError>,
}

impl ResponseMeta {
    /// Takes the id and the model of the object, under those names. What is known stays.
    pub fn set_id_and_model(&mut self, object: JsonRef<'_>, id: &str, model: &str) {
        for (own, name) in [(&mut self.id, id), (&mut self.model, model)] {
            if own.is_none() {
                *own = non_empty_text(object.get(name)).map(Into::into);
            }
        }
    }

    /// Takes counts, and tells them where they are new.
    pub fn update_usage(&mut self, usage: Option<Usage>, out: &mut Vec<StreamEvent>) {
        if usage.is_some() && usage != self.usage {
            self.usage = usage;
            out.extend(usage.map(StreamEvent::Usage));
        }
    }

    /// The response has failed; the first failure counts.
    pub fn set_error(&mut self, error: WireError) {
        self.error.get_or_insert(error);
    }

    /// As [`fail`](Self::fail), told.
    pub fn report_error(&mut self, error: WireError, out: &mut Vec<StreamEvent>) {
        out.push(StreamEvent::Error(error.clone()));
        self.set_error(error);
    }

    /// As [`failed`](Self::failed), in the words of an error object, if it has any.
    pub fn report_error_object(&mut self, error: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(error) = read_error(error) {
            self.report_error(error, out);
        }
    }

    /// What they come to, with the answer itself.
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
            model: self.model.clone(),
            text: JsonStr::from_inside(text),
            calls,
            usage: self.usage,
            error: self.error.clone(),
            wire,
        }
    }
}

/// The failure of what is no response.
pub(crate) fn malformed(message: impl Into<String>) -> WireError {
    WireError { code: Some("malformed".to_owned()), message: message.into() }
}

/// A message of the model, its list of blocks written already; none where there are none.
pub(crate) fn message_of(role: &str, list: &str, blocks: &[String]) -> Option<Json> {
    (!blocks.is_empty()).then(|| ObjectWriter::build(|message| _ = message.text("role", role).list(list, blocks)))
}

/// A failure in the words of an error object, of whatever shape; none where it says nothing.
pub(crate) fn read_error(error: JsonRef<'_>) -> Option<WireError> {
    match error.kind() {
        Kind::String => error
            .as_text()
            .filter(|text| !text.is_empty())
            .map(|text| WireError { code: None, message: text.into_owned() }),
        Kind::Object if error.entries().next().is_some() => {
            let word = |name| error.get(name).and_then(word);
            let message = word("message").or_else(|| word("detail")).unwrap_or_else(|| error.as_raw().to_owned());
            Some(WireError { code: word("code").or_else(|| word("type")).or_else(|| word("status")), message })
        }
        _ => None,
    }
}

/// A string's text or a number's digits.
fn word(value: JsonRef<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.as_text().filter(|text| !text.is_empty()).map(Cow::into_owned),
        Kind::Number => Some(value.as_raw().to_owned()),
        _ => None,
    }
}
