//! The bodies of `tests/bodies`: what providers accept, and what they reject, as of November 2026 (R73).

use rethread::error::ErrorCode;
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The bodies of a dialect, each as its text.
fn bodies(dialect: Dialect) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies").join(format!("{}.json", dialect.as_str()));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn codes(entry: &Value, member: &str) -> BTreeSet<String> {
    entry[member].as_array().into_iter().flatten().map(|code| code.as_str().unwrap().to_owned()).collect()
}

fn found(body: &str, dialect: Dialect, severity: Severity) -> BTreeSet<String> {
    let findings = validate(body.as_bytes(), dialect);
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .map(|finding| finding.code.as_str().to_owned())
        .collect()
}

#[test]
fn r73_bodies_of_november_2026() {
    let mut count = 0;
    for dialect in Dialect::ALL {
        for entry in bodies(dialect) {
            count += 1;
            let name = format!("{}: {}", dialect.as_str(), entry["name"]);
            let body = entry["body"].to_string();
            let findings = validate(body.as_bytes(), dialect);
            assert_eq!(found(&body, dialect, Severity::Error), codes(&entry, "found"), "{name}: {findings:?}");
            assert_eq!(found(&body, dialect, Severity::Warning), codes(&entry, "warned"), "{name}: {findings:?}");
            let repaired = repair(body.as_bytes(), dialect, &RepairOptions::default());
            if entry["refused"] == true {
                assert_eq!(repaired.expect_err(&name).code, ErrorCode::InvalidInput, "{name}");
                continue;
            }
            let (repaired, _) = repaired.unwrap();
            let repaired = String::from_utf8(repaired).unwrap();
            if entry.get("found").is_none() {
                assert_eq!(repaired, body, "{name}");
                continue;
            }
            assert_eq!(serde_json::from_str::<Value>(&repaired).unwrap(), entry["repaired"], "{name}");
            assert!(found(&repaired, dialect, Severity::Error).is_empty(), "{name}: {repaired}");
        }
    }
    assert!(count >= 10, "{count} bodies");
}
