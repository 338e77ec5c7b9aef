//! What an answer has beside its words, in every dialect.

use super::assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
use super::assembler::{error_words, said};
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::Usage;

/// As far as they have come.
#[derive(Default)]
pub(crate) struct Facts {
    pub id: Option<String>,
    pub model: Option<String>,
    /// The provider's own word for how it ended.
    pub reason: Option<String>,
    pub usage: Option<Usage>,
    pub error: Option<WireError>,
}

impl Facts {
    /// Takes the id and the model of the object, under those names. What is known stays.
    pub fn name(&mut self, object: JsonRef<'_>, id: &str, model: &str) {
        for (own, name) in [(&mut self.id, id), (&mut self.model, model)] {
            if own.is_none() {
                *own = said(object.get(name)).map(Into::into);
            }
        }
    }

    /// Takes counts, and tells them where they are new.
    pub fn count(&mut self, usage: Option<Usage>, out: &mut Vec<StreamEvent>) {
        if usage.is_some() && usage != self.usage {
            self.usage = usage;
            out.extend(usage.map(StreamEvent::Usage));
        }
    }

    /// The response has failed; the first failure counts.
    pub fn fail(&mut self, error: WireError) {
        self.error.get_or_insert(error);
    }

    /// As [`fail`](Self::fail), told.
    pub fn failed(&mut self, error: WireError, out: &mut Vec<StreamEvent>) {
        out.push(StreamEvent::Error(error.clone()));
        self.fail(error);
    }

    /// As [`failed`](Self::failed), in the words of an error object, if it has any.
    pub fn failed_as(&mut self, error: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(error) = error_words(error) {
            self.failed(error, out);
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
            finish_reason: self.reason.clone(),
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
