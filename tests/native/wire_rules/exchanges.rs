//! Requests that real providers accepted or refused. A request that was accepted is without error and comes back byte for
//! byte; one that was refused for its sequence, ids or parts has an error.

use crate::codes;
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

/// Checks every recorded exchange of a dialect. `least` is the number of accepted requests that the repository has; fewer mean that some
/// were lost.
fn judge(dialect: Dialect, least: usize) {
    let folder = folder(dialect);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}")).map(|f| f.unwrap().path()).collect();
    files.sort();
    let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
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
                taken += 1;
                let strange = report.iter().any(|finding| finding.code.as_str() == "unknown_shape");
                if strange || !errors.is_empty() || out != body.as_bytes() {
                    wrong.push(format!("{name:?} step {at} was accepted: {report:?}"));
                }
            } else if step["response"]["error"]["code"] != "tool_use_failed" {
                // That code judges what the model wrote, not the request.
                refused += 1;
                if errors.is_empty() {
                    wrong.push(format!("{name:?} step {at} was refused: {}", step["response"]));
                }
                let left = validate(&out, dialect);
                assert!(codes(&left, Severity::Error).is_empty(), "{left:?}");
            }
        }
    }
    println!(
        "{}: {taken} accepted requests without error and byte for byte, {refused} refused ones with an error",
        dialect.as_str()
    );
    assert!(taken >= least, "{taken} accepted requests of {}, {least} at least", dialect.as_str());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn openai_chat() {
    judge(Dialect::OpenAiChat, 170);
}

#[test]
fn anthropic() {
    judge(Dialect::Anthropic, 120);
}

#[test]
fn mistral() {
    judge(Dialect::Mistral, 30);
}

#[test]
fn gemini() {
    judge(Dialect::Gemini, 100);
}

#[test]
fn openai_responses() {
    judge(Dialect::OpenAiResponses, 130);
}
