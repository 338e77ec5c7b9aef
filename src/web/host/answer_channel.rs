//! The answers of runs between tabs: messages of a BroadcastChannel.

use crate::json::JsonStr;
use crate::message::{Message, PartBody};
use crate::run::JournalEntry;
use crate::session::{AnswerNews, OpenSession};
use crate::store::{RecordKind, open_record};
use crate::web::conversion::convert::{object_to_js, parse_json, set};
use crate::web::conversion::untrusted_value::{self, member};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

/// Returns the message that tells other tabs something about the answer of a run.
pub fn answer_message(session: &str, run: &str, news: AnswerNews<'_>) -> JsValue {
    let value = object_to_js(&|out| {
        out.text("session", session).text("run", run);
        match news {
            AnswerNews::Request => _ = out.bool("ask", true),
            AnswerNews::Text { message, .. } => _ = out.text("id", message),
            AnswerNews::Whole(_) => {}
        }
    });
    match news {
        AnswerNews::Request => {}
        AnswerNews::Whole(None) => set(&value, "message", &JsValue::NULL),
        AnswerNews::Whole(Some(message)) => {
            let bytes = JournalEntry::Partial(message.clone()).seal();
            set(&value, "message", &Uint8Array::from(bytes.as_ref()));
        }
        AnswerNews::Text { text, is_reasoning, .. } => {
            set(&value, if is_reasoning { "reasoning" } else { "text" }, &parse_json(text.token()));
        }
    }
    value
}

/// Handles a message of another tab about an answer of the session.
pub fn receive_answer(session: &OpenSession, value: &JsValue) {
    let text = |key: &str| member(value, key).as_string();
    let Some(run) = text("run") else { return };
    if member(value, "ask").is_truthy() {
        if let Some(live) = session.live_run().filter(|live| live.id() == run) {
            live.send_answer();
        }
    } else if let Some(message) = text("id") {
        let text = text("text").map(|text| PartBody::Text(JsonStr::new(&text)));
        let more = text
            .or_else(|| member(value, "reasoning").as_string().map(|text| PartBody::Reasoning(JsonStr::new(&text))));
        if let Some(more) = more {
            session.extend_partial_answer(&run, &message, &more);
        }
    } else {
        session.set_partial_answer(&run, message_of(&member(value, "message")));
    }
}

/// The message that a holder sent; none if it says that there is none, or if its build writes messages otherwise.
fn message_of(value: &JsValue) -> Option<Message> {
    let bytes = untrusted_value::bytes("an answer of another tab", value).ok()??;
    match open_record::<JournalEntry>(RecordKind::Journal, &bytes.into()).ok()? {
        JournalEntry::Partial(message) => Some(message),
        _ => None,
    }
}
