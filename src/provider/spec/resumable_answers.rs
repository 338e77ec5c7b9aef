//! Answers on which a service goes on working when nobody reads them, and which are picked up later.

use crate::clock::Ms;
use crate::json::JsonRef;

/// How answers are picked up at a service that works on them in the background.
pub(crate) struct ResumableAnswers {
    /// Returns the address from which an answer is picked up; `None` if its id could name another address.
    pub address: fn(&ResumedAnswer<'_>) -> Option<String>,
    /// Returns true for the finish reason of an answer on which the service still works.
    pub is_pending: fn(&str) -> bool,
    /// Returns true for the parameters of a request that asks for such an answer, if the answer does not say that it is
    /// one.
    pub is_asked_for: fn(JsonRef<'_>) -> bool,
    /// The pause before an answer that is not ready is asked for again, in milliseconds.
    pub poll_ms: Ms,
}

/// An answer that is picked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResumedAnswer<'a> {
    /// The address to which the request was sent.
    pub request_url: &'a str,
    /// The parameters of the request.
    pub params: JsonRef<'a>,
    /// The answer's id.
    pub response: &'a str,
    pub form: AnswerForm,
}

/// The form in which an answer is picked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// As one value, with its status.
    Whole,
    /// As a stream: all of it, or what follows the event of this number.
    Stream { after: Option<u64> },
}
