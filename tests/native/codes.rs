//! The codes of errors and findings are declared in Rust; the TypeScript unions list the same.

#![allow(clippy::unwrap_used, clippy::panic)]

use rethread::error::ErrorCode;
use rethread::finding::FindingCode;
use std::collections::BTreeSet;

const TYPES: &str = include_str!("../../js/types.d.ts");

/// The string literals of the union that is declared as `export type NAME =`.
fn union(name: &str) -> BTreeSet<&'static str> {
    let start = format!("export type {name} =");
    let (_, rest) = TYPES.split_once(&start).unwrap_or_else(|| panic!("js/types.d.ts declares no {name}"));
    let (members, _) = rest.split_once(';').unwrap();
    members.split('"').skip(1).step_by(2).collect()
}

fn assert_same(name: &str, declared: impl Iterator<Item = &'static str>) {
    let in_rust: BTreeSet<&str> = declared.collect();
    let in_types = union(name);
    let missing: Vec<_> = in_rust.difference(&in_types).collect();
    let unknown: Vec<_> = in_types.difference(&in_rust).collect();
    assert!(missing.is_empty(), "{name} in js/types.d.ts lacks {missing:?}");
    assert!(unknown.is_empty(), "{name} in js/types.d.ts has {unknown:?}, which Rust does not declare");
}

#[test]
fn error_codes_are_those_of_the_types() {
    assert_same("ErrorCode", ErrorCode::ALL.iter().map(|code| code.as_str()));
}

#[test]
fn finding_codes_are_those_of_the_types() {
    assert_same("FindingCode", FindingCode::ALL.iter().map(|code| code.as_str()));
}
