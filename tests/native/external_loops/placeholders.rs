//! Texts that stood for a result in an earlier request, in bodies that have the tool's own result, too (R4, R41).

use super::*;
use rethread::history::{Incoming, JoinBase, join};
use rethread::provider::{RepairOptions, decode_body, repair, validate};
use rethread::synthetic_result as texts;

/// Every text that a render, a repair or a run puts in place of a result.
fn placeholders() -> Vec<String> {
    let whole = [
        texts::INTERRUPTED,
        texts::NO_RESULT,
        texts::NOT_RUN,
        texts::PENDING,
        texts::EXPIRED,
        texts::WITHHELD,
        texts::UNCITED,
    ];
    let mut all: Vec<String> = whole.iter().map(|text| (*text).to_owned()).collect();
    all.push(format!("{}: not today", texts::RERUN_REJECTED));
    all.push(format!("the first lines{}", texts::SHORTENED));
    // As a dialect has it whose results have no member for errors.
    all.push(format!("Error: {}", texts::INTERRUPTED));
    all
}

/// A body with this text for `PLACEHOLDER`.
fn body(dialect: Dialect, talk: &str, placeholder: &str) -> Value {
    let text = write(dialect, talk).to_string();
    serde_json::from_str(&text.replace("\"PLACEHOLDER\"", &json!(placeholder).to_string())).unwrap()
}

const LATE: &str = "u hi; c x; r x=PLACEHOLDER; a soon; u well?; r x=real";

#[test]
fn r41_the_result_of_the_tool_takes_the_place_of_a_text_that_stood_for_it() {
    for dialect in Dialect::ALL {
        for text in placeholders() {
            let body = body(dialect, LATE, &text).to_string();
            let (repaired, report) = repair(body.as_bytes(), dialect, &RepairOptions::default()).unwrap();
            assert!(validate(&repaired, dialect).iter().all(|finding| finding.severity != Severity::Error));
            let dropped = report.iter().find(|finding| finding.code == FindingCode::DuplicateResult);
            assert!(dropped.is_some(), "{dialect:?} {text}: {report:?}");
            let repaired: Value = serde_json::from_slice(&repaired).unwrap();
            let steps = read(dialect, &repaired);
            assert!(steps.starts_with("u hi; c 1; r 1=real; a soon; u well?"), "{dialect:?} {text}: {steps}");
        }
    }
}

#[test]
fn r41_a_result_that_came_first_is_not_replaced_by_a_text() {
    for dialect in Dialect::ALL {
        for text in placeholders() {
            let talk = "u hi; c x; r x=real; a soon; u well?; r x=PLACEHOLDER";
            let body = body(dialect, talk, &text).to_string();
            let (repaired, _) = repair(body.as_bytes(), dialect, &RepairOptions::default()).unwrap();
            let steps = read(dialect, &serde_json::from_slice(&repaired).unwrap());
            assert!(steps.starts_with("u hi; c 1; r 1=real; a soon; u well?"), "{dialect:?} {text}: {steps}");
        }
    }
}

#[test]
fn r2_an_append_stores_the_result_of_the_tool_and_not_the_text() {
    for dialect in Dialect::ALL {
        for text in placeholders() {
            let body = body(dialect, LATE, &text).to_string();
            let items: Vec<Incoming> = decode_body(dialect, JsonRef::parse(&body).unwrap()).unwrap();
            let mut history = History::new(Seed(3));
            let ids = CountingIds::default();
            let joined = join(JoinBase::history(&history), items, &Origin::default(), &ids);
            assert!(joined.report.is_empty(), "{dialect:?} {text}: {:?}", joined.report);
            joined.entries.into_iter().for_each(|entry| history.apply(entry));
            let stored = history.invocations()[0].result.as_ref().unwrap().content.as_str().to_owned();
            assert!(stored.contains("real"), "{dialect:?} {text}: {stored}");
        }
    }
}

#[test]
fn r19_a_checkpoint_stores_the_result_of_the_tool_and_not_the_text() {
    for dialect in Dialect::ALL {
        for text in placeholders() {
            for first in [2, 3, 4, 6] {
                let mut driven = Driven::new(Persistence::Call);
                // What was stored before: the call alone, or with the text that a request had in place of its result.
                driven.checkpoint(dialect, &body(dialect, &steps(LATE, first), &text)).unwrap();
                driven.checkpoint(dialect, &body(dialect, LATE, &text)).unwrap();
                let stored = driven.history.invocations()[0].result.as_ref().map(|result| result.content.as_str());
                let takes_result = first < 3 || texts::is_missing(json_text(&text).view());
                let expected = if takes_result || first == 6 { "real" } else { &text[..9] };
                assert!(stored.unwrap().contains(expected), "{dialect:?} {text} after {first}: {stored:?}");
            }
        }
    }
}

fn json_text(text: &str) -> Json {
    Json::parse(&json!(text).to_string()).unwrap()
}

#[test]
fn r4_a_text_that_says_that_there_is_no_result_leaves_a_stored_call_open() {
    for dialect in Dialect::ALL {
        for text in [texts::INTERRUPTED, texts::NO_RESULT, texts::NOT_RUN, texts::PENDING] {
            let mut driven = Driven::new(Persistence::Call);
            driven.checkpoint(dialect, &body(dialect, "u hi; c x", text)).unwrap();
            driven.checkpoint(dialect, &body(dialect, "u hi; c x; r x=PLACEHOLDER; a soon", text)).unwrap();
            assert!(driven.history.invocations()[0].takes_result(), "{dialect:?} {text}");
            assert!(driven.history.invocations()[0].result.is_none(), "{dialect:?} {text}");
        }
    }
}

#[test]
fn r41_a_result_that_only_resembles_such_a_text_is_the_tool_s() {
    for content in [
        json!(format!("{} So said the log.", texts::INTERRUPTED)),
        json!("[shortened] by hand"),
        json!([{ "type": "text", "text": texts::NOT_RUN }, { "type": "text", "text": "second block" }]),
        json!({ "a": 1, "b": 2, "c": 3, "d": 4, "log": texts::EXPIRED }),
        json!(7),
        json!(null),
    ] {
        assert!(!texts::is_placeholder(Json::parse(&content.to_string()).unwrap().view()), "{content}");
    }
}
