//! Requests that real providers accepted or rejected. An accepted request has no error and is returned byte for byte;
//! one that was rejected for its sequence, ids or parts has an error.

use super::codes;
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::Value;
use std::path::PathBuf;

fn folder(dialect: Dialect) -> PathBuf {
    let root = std::env::var_os("RETHREAD_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpora"), PathBuf::from);
    root.join("exchanges").join(dialect.as_str())
}

/// Whether Bedrock rejects what the model, which only the URL names, does not accept.
fn is_about_the_model(response: &Value) -> bool {
    let message = response["message"].as_str().unwrap_or_default();
    message.starts_with("This model doesn't support the ") || message.contains("document.source.type: Field required")
}

/// Checks every recorded exchange of a dialect. `least` is the number of accepted requests in the repository; fewer
/// mean that some were lost.
fn check_recorded(dialect: Dialect, least: usize) {
    let folder = folder(dialect);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}")).map(|f| f.unwrap().path()).collect();
    files.sort();
    let (mut accepted, mut rejected, mut wrong) = (0, 0, Vec::new());
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "json") && f.file_name().is_some_and(|n| n != "index.json"))
    {
        let exchange: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for (at, step) in exchange["steps"].as_array().unwrap().iter().enumerate() {
            let body = step["request"].to_string();
            let report = validate(body.as_bytes(), dialect);
            let errors = codes(&report, Severity::Error);
            let (out, _) = repair(body.as_bytes(), dialect, &RepairOptions::default()).unwrap();
            let name = file.file_name().unwrap();
            if step["status"].as_u64() == Some(200) {
                accepted += 1;
                let is_unknown = report.iter().any(|finding| finding.code.as_str() == "unknown_shape");
                if is_unknown || !errors.is_empty() || out != body.as_bytes() {
                    wrong.push(format!("{name:?} step {at} was accepted: {report:?}"));
                }
            } else if is_about_the_model(&step["response"]) {
                // Bodies of Bedrock do not name the model.
            } else if step["response"]["error"]["code"] != "tool_use_failed" {
                // That code is about the model's output, not the request.
                rejected += 1;
                if errors.is_empty() {
                    wrong.push(format!("{name:?} step {at} was rejected: {}", step["response"]));
                }
                let remaining = validate(&out, dialect);
                assert!(codes(&remaining, Severity::Error).is_empty(), "{remaining:?}");
            }
        }
    }
    println!("{}: {accepted} accepted requests without an error, {rejected} rejected ones with one", dialect.as_str());
    assert!(accepted >= least, "{accepted} accepted requests of {}, {least} at least", dialect.as_str());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn r40_recorded_requests_of_openai_chat() {
    check_recorded(Dialect::OpenAiChat, 170);
}

#[test]
fn r40_recorded_requests_of_anthropic() {
    check_recorded(Dialect::Anthropic, 120);
}

#[test]
fn r40_recorded_requests_of_mistral() {
    check_recorded(Dialect::Mistral, 30);
}

#[test]
fn r40_recorded_requests_of_gemini() {
    check_recorded(Dialect::Gemini, 100);
}

#[test]
fn r40_recorded_requests_of_bedrock() {
    check_recorded(Dialect::Bedrock, 40);
}

#[test]
fn r40_recorded_requests_of_openai_responses() {
    check_recorded(Dialect::OpenAiResponses, 130);
}
