//! The codes of errors and findings are declared in Rust; the TypeScript unions list the same.

use rethread::error::ErrorCode;
use rethread::finding::{FindingCode, PrefixChange};
use rethread::replay::Cut;
use std::collections::BTreeSet;

/// The string literals of the union that `types`, the text of a declaration file, declares as `export type NAME =`.
fn union(types: &'static str, name: &str) -> BTreeSet<&'static str> {
    let start = format!("export type {name} =");
    let (_, rest) = types.split_once(&start).unwrap_or_else(|| panic!("the types declare no {name}"));
    let (members, _) = rest.split_once(';').unwrap();
    members.split('"').skip(1).step_by(2).collect()
}

fn assert_same(types: &'static str, name: &str, declared: impl Iterator<Item = &'static str>) {
    let in_rust: BTreeSet<&str> = declared.collect();
    let in_types = union(types, name);
    let missing: Vec<_> = in_rust.difference(&in_types).collect();
    let unknown: Vec<_> = in_types.difference(&in_rust).collect();
    assert!(missing.is_empty(), "{name} in js/types lacks {missing:?}");
    assert!(unknown.is_empty(), "{name} in js/types has {unknown:?}, which Rust does not declare");
}

#[test]
fn error_codes_match_the_typescript_types() {
    assert_same(
        include_str!("../../js/types/error.d.ts"),
        "ErrorCode",
        ErrorCode::ALL.iter().map(|code| code.as_str()),
    );
}

#[test]
fn finding_codes_match_the_typescript_types() {
    assert_same(
        include_str!("../../js/types/formats.d.ts"),
        "FindingCode",
        FindingCode::ALL.iter().map(|code| code.as_str()),
    );
}

#[test]
fn prefix_changes_match_the_typescript_types() {
    assert_same(
        include_str!("../../js/types/formats.d.ts"),
        "PrefixChange",
        PrefixChange::ALL.iter().map(|change| change.as_str()),
    );
}

#[test]
fn cuts_match_the_typescript_types() {
    assert_same(include_str!("../../js/types/replay.d.ts"), "PrefixCut", Cut::ALL.iter().map(|cut| cut.as_str()));
}
