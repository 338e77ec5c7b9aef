//! R32, R63, R64: bodies whose every item is wrong. Findings and edits are bounded, and memory is in proportion to the
//! body. Times are the bench's (`npm run bench -- bodies --node`).

use crate::allocated;
use rethread::finding::{FindingCode, MAX_FINDINGS, Severity};
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, StreamAssembler, repair, validate};
use rethread::render::convert;

fn list_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::MistralConversations => "inputs",
        Dialect::Gemini => "contents",
        _ => "messages",
    }
}

/// A body whose list is one item, repeated.
fn body(dialect: Dialect, item: &str, bytes: usize) -> String {
    let count = bytes / (item.len() + 1);
    format!("{{\"model\":\"m\",\"{}\":[{}]}}", list_name(dialect), vec![item; count].join(","))
}

/// A body with one item that has one member, a list of one repeated value.
fn body_of_parts(dialect: Dialect, role: &str, part: &str, bytes: usize) -> String {
    let member = if dialect == Dialect::Gemini { "parts" } else { "content" };
    let parts = vec![part; bytes / (part.len() + 1)].join(",");
    format!("{{\"model\":\"m\",\"{}\":[{{\"role\":\"{role}\",\"{member}\":[{parts}]}}]}}", list_name(dialect))
}

const ITEMS: &[&str] = &[
    "{}",
    "[]",
    "0",
    "\"\"",
    "\"a\"",
    "null",
    "[[[[[[[[]]]]]]]]",
    "{\"role\":\"user\"}",
    "{\"a\":1}",
    "{\"role\":\"wizard\",\"content\":\"x\"}",
    "{\"role\":\"user\",\"content\":\"\"}",
    "{\"role\":\"user\",\"role\":\"user\",\"content\":\"x\",\"content\":\"y\"}",
    "{\"role\":\"assistant\",\"content\":\" \"}",
    "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}",
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}",
    "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"{}\"}",
    "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"r\"}",
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"n\",\"input\":{}}]}",
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"r\"}]}",
    "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"n\",\"args\":{}}}]}",
    "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"n\",\"response\":{}}}]}",
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}",
];

const PARTS: &[&str] = &[
    "{}",
    "[]",
    "0",
    "\"\"",
    "{\"type\":\"wizard-step\"}",
    "{\"type\":\"text\",\"text\":\"\"}",
    "{\"type\":\"image_url\"}",
];

/// Every hostile body of about `bytes` bytes.
fn bodies(bytes: usize) -> impl Iterator<Item = (Dialect, String)> {
    Dialect::ALL.into_iter().flat_map(move |dialect| {
        let items = ITEMS.iter().map(move |item| body(dialect, item, bytes));
        let parts = PARTS
            .iter()
            .flat_map(move |part| ["user", "assistant"].map(|role| body_of_parts(dialect, role, part, bytes)));
        items.chain(parts).map(move |body| (dialect, body))
    })
}

#[test]
fn r63_a_report_has_at_most_1000_findings_and_their_counts() {
    for (dialect, body) in bodies(60_000) {
        let shown = &body[..body.len().min(120)];
        let report = validate(body.as_bytes(), dialect);
        assert!(report.len() <= MAX_FINDINGS + 2, "{dialect:?} {shown}: {} findings", report.len());
        if let Ok((_, report)) = repair(body.as_bytes(), dialect, &RepairOptions::default()) {
            assert!(report.len() <= MAX_FINDINGS + 2, "{dialect:?} {shown}: {} findings", report.len());
        }
        let target = if dialect == Dialect::Gemini { Dialect::Anthropic } else { Dialect::Gemini };
        if let Ok((_, report)) = convert(body.as_bytes(), dialect, target, &RepairOptions::default()) {
            assert!(report.len() <= MAX_FINDINGS + 4, "{dialect:?} {shown}: {} findings", report.len());
        }
    }
}

#[test]
fn r63_findings_that_are_not_listed_are_counted_by_code() {
    let item = "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"a result of a tool that was never called\"}";
    let body = body(Dialect::OpenAiChat, item, item.len() * 2_000 + 2_000);
    let report = validate(body.as_bytes(), Dialect::OpenAiChat);
    assert_eq!(report.len(), MAX_FINDINGS + 1);
    assert_eq!(report[999].path.as_deref(), Some("/messages/999"));
    let last = report.last().unwrap();
    assert_eq!((last.code, last.severity), (FindingCode::FindingsOmitted, Severity::Error));
    assert_eq!(last.message, "There are 1000 more findings: 1000 orphan_result.");
}

#[test]
fn r64_a_body_with_too_many_errors_is_sent_as_it_is() {
    for item in ["{}", "[]", "0", "\"\"", "{\"role\":\"user\"}"] {
        for dialect in Dialect::ALL {
            let body = body(dialect, item, 1_000_000);
            let (text, report) = repair(body.as_bytes(), dialect, &RepairOptions::default()).unwrap();
            assert!(text == body.as_bytes(), "{dialect:?} {item}: the body was changed");
            assert_eq!(report.len(), 1, "{dialect:?} {item}");
            assert_eq!((report[0].code, report[0].severity), (FindingCode::TooManyEdits, Severity::Error));
            // Gemini's list of texts is read as the parts of one message first, which is one error.
            if (dialect, item) == (Dialect::Gemini, "\"\"") {
                continue;
            }
            let found = validate(body.as_bytes(), dialect);
            assert_eq!(found.last().unwrap().code, FindingCode::TooManyEdits);
        }
    }
}

#[test]
fn r64_a_long_history_with_an_error_in_each_message_is_repaired() {
    let item = "{\"role\":\"ai\",\"content\":\"an answer of ordinary length, which is a sentence or two\"}";
    let body = body(Dialect::OpenAiChat, item, 1_000_000);
    let (text, report) = repair(body.as_bytes(), Dialect::OpenAiChat, &RepairOptions::default()).unwrap();
    assert!(validate(&text, Dialect::OpenAiChat).iter().all(|finding| finding.severity != Severity::Error));
    assert_eq!(report.last().unwrap().code, FindingCode::FindingsOmitted);
}

/// A body of calls that share one id, without results: for most of them, one error is found when ids are chosen, and
/// one after pairing.
fn calls_of_one_id(dialect: Dialect, count: usize) -> String {
    let (call, around) = match dialect {
        Dialect::OpenAiChat | Dialect::Mistral => (
            r#"{"id":"callcall1","type":"function","function":{"name":"look","arguments":"{}"}}"#,
            (r#"{"role":"assistant","content":null,"tool_calls":["#, "]}"),
        ),
        Dialect::MistralConversations => {
            (r#"{"type":"function.call","tool_call_id":"callcall1","name":"look","arguments":"{\"a\":1}"}"#, ("", ""))
        }
        Dialect::OpenAiResponses => {
            (r#"{"type":"function_call","call_id":"callcall1","name":"look","arguments":"{\"a\":1}"}"#, ("", ""))
        }
        Dialect::Anthropic => (
            r#"{"type":"tool_use","id":"callcall1","name":"look","input":{"query":"where is the parcel"}}"#,
            (r#"{"role":"assistant","content":["#, "]}"),
        ),
        Dialect::Bedrock => (
            r#"{"toolUse":{"toolUseId":"callcall1","name":"look","input":{"query":"where is the parcel"}}}"#,
            (r#"{"role":"assistant","content":["#, "]}"),
        ),
        Dialect::GeminiInteractions => {
            (r#"{"type":"function_call","id":"callcall1","name":"look","arguments":{"query":"where is it"}}"#, ("", ""))
        }
        Dialect::Gemini => (
            r#"{"functionCall":{"id":"callcall1","name":"look","args":{"query":"where is the parcel"}}}"#,
            (r#"{"role":"model","parts":["#, "]}"),
        ),
    };
    let calls = vec![call; count].join(",");
    format!("{{\"model\":\"m\",\"{}\":[{}{calls}{}]}}", list_name(dialect), around.0, around.1)
}

#[test]
fn r63_a_body_whose_errors_are_found_after_reading_is_sent_as_it_is_if_they_are_too_many() {
    for dialect in Dialect::ALL {
        let few = calls_of_one_id(dialect, 1_000);
        let (text, _) = repair(few.as_bytes(), dialect, &RepairOptions::default()).unwrap();
        assert!(text != few.as_bytes(), "{dialect:?}");
        assert!(validate(&text, dialect).iter().all(|finding| finding.severity != Severity::Error), "{dialect:?}");
        let many = calls_of_one_id(dialect, 5_000);
        let (text, report) = repair(many.as_bytes(), dialect, &RepairOptions::default()).unwrap();
        assert!(text == many.as_bytes(), "{dialect:?}: the body was changed");
        let codes: Vec<_> = report.iter().map(|finding| (finding.code, finding.path.as_deref())).collect();
        assert_eq!(codes, [(FindingCode::TooManyEdits, Some(""))], "{dialect:?}");
    }
}

/// Returns true if a chat is repaired, after a message of the user, that has this item so often.
fn is_repaired(item: &str, count: usize) -> bool {
    let items = vec![item; count].join(",");
    let body = format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}},{items}]}}");
    let (_, report) = repair(body.as_bytes(), Dialect::OpenAiChat, &RepairOptions::default()).unwrap();
    report.iter().all(|finding| finding.code != FindingCode::TooManyEdits)
}

#[test]
fn r63_at_least_2000_and_at_most_20000_errors_are_repaired() {
    assert!(is_repaired("null", 2_000));
    assert!(!is_repaired("null", 2_200)); // of 11 KB, so the budget is of 114 more
    let message = format!("{{\"role\":\"ai\",\"content\":\"{}\"}}", "word ".repeat(20));
    assert!(is_repaired(&message, 20_000));
    assert!(!is_repaired(&message, 20_001));
}

/// What may be done with a body, and the most that it may allocate: bytes at a time for each byte of the body, and how
/// often for each 32 bytes, beyond what the listed findings take.
type Work = (fn(&str, Dialect), isize, usize);

const WORK: [Work; 2] = [
    (
        |body, dialect| {
            let _ = validate(body.as_bytes(), dialect);
            let _ = repair(body.as_bytes(), dialect, &RepairOptions::default());
        },
        20,
        50,
    ),
    (
        |body, dialect| {
            let target = if dialect == Dialect::Anthropic { Dialect::Gemini } else { Dialect::Anthropic };
            let _ = convert(body.as_bytes(), dialect, target, &RepairOptions::default());
        },
        200,
        150,
    ),
];

#[test]
fn r63_validation_repair_and_conversion_allocate_in_proportion_to_the_body() {
    for ((dialect, small), (_, large)) in bodies(40_000).zip(bodies(80_000)) {
        let shown = &small[..small.len().min(120)];
        for (work, peak, count) in WORK {
            let (one, two) = (allocated(|| work(&small, dialect)), allocated(|| work(&large, dialect)));
            let costs = format!("{dialect:?} {shown}: {one:?}, and of twice the size {two:?}");
            let is_linear = |one: usize, two: usize, few: usize| two * 2 < one * 5 + few;
            assert!(is_linear(one.bytes, two.bytes, 1 << 19), "{costs}");
            assert!(is_linear(one.count, two.count, 5_000), "{costs}");
            assert!(two.peak < peak * large.len().cast_signed() + (1 << 20), "{costs}");
            assert!(two.count < count * large.len() / 32 + 30_000, "{costs}");
        }
    }
}

/// Events of an answer: thinking or a text in `count` pieces.
fn streamed_pieces(dialect: Dialect, count: usize) -> Vec<String> {
    let piece = "a piece of the answer, of ordinary length ";
    let event = match dialect {
        Dialect::OpenAiChat | Dialect::Mistral => format!(r#"{{"choices":[{{"delta":{{"content":"{piece}"}}}}]}}"#),
        Dialect::MistralConversations => format!(
            r#"{{"type":"message.output.delta","output_index":0,"id":"m","content_index":0,"content":"{piece}"}}"#
        ),
        Dialect::OpenAiResponses => format!(
            r#"{{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"{piece}"}}"#
        ),
        Dialect::GeminiInteractions => {
            format!(r#"{{"event_type":"step.delta","index":0,"delta":{{"type":"text","text":"{piece}"}}}}"#)
        }
        Dialect::Anthropic => {
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}"#)
        }
        Dialect::Bedrock => {
            format!(r#"{{"contentBlockDelta":{{"contentBlockIndex":0,"delta":{{"text":"{piece}"}}}}}}"#)
        }
        Dialect::Gemini => format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{piece}"}}]}}}}]}}"#),
    };
    vec![format!("data: {event}\n\n"); count]
}

#[test]
fn r56_r63_reading_a_streamed_answer_after_each_piece_copies_none_of_it() {
    for dialect in Dialect::ALL {
        let mut assembler = StreamAssembler::new(dialect);
        let (mut seen, mut reading) = (0, 0);
        for piece in streamed_pieces(dialect, 500) {
            assembler.push(piece.as_bytes(), &mut Vec::new());
            reading += allocated(|| {
                let mut bytes = 0;
                assembler.visit_blocks(&mut |block| bytes += block.text().map_or(0, str::len));
                assert!(bytes > seen, "{dialect:?}");
                seen = bytes;
            })
            .bytes;
        }
        assert!(seen > 500 * 40, "{dialect:?}: {seen}");
        assert_eq!(reading, 0, "{dialect:?}: bytes allocated by reading");
    }
}

#[test]
fn r63_findings_below_one_long_key_have_short_pointers() {
    let key = "k".repeat(100_000);
    let ids: Vec<_> = (0..500).map(|at| format!("{{\"tool_id\":\"c{at}\"}}")).collect();
    let calls: Vec<_> = (0..500)
        .map(|at| {
            format!("{{\"id\":\"c{at}\",\"type\":\"function\",\"function\":{{\"name\":\"n\",\"arguments\":\"{{}}\"}}}}")
        })
        .collect();
    let body = format!(
        "{{\"messages\":[{{\"role\":\"assistant\",\"tool_calls\":[{}]}},{{\"role\":\"user\",\"content\":\"x\",\"{key}\":[{}]}}]}}",
        calls.join(","),
        ids.join(",")
    );
    let report = validate(body.as_bytes(), Dialect::OpenAiChat);
    let unread: Vec<_> = report.iter().filter(|finding| finding.code == FindingCode::UnknownShape).collect();
    assert_eq!(unread.len(), 500);
    assert!(unread.iter().all(|finding| finding.path.as_deref() == Some("/messages/1")));
}
