//! The files of JavaScript that are made from the specs: what must be known of dialects before the wasm is loaded.
//! `BLESS=1 cargo test --no-default-features --lib r65_` writes them.
#![allow(clippy::disallowed_methods)]

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::registry::{ALL, spec};
use super::spec::{DialectSpec, Marks, ServiceState};
use crate::message::Dialect;
use std::fmt::Write;

const HEAD: &str = "// Made from spec.rs and recognition.rs of src/provider/*. Do not edit: `BLESS=1 cargo test --no-default-features --lib r65_` writes it.\n\n";

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

fn pattern(source: &str) -> String {
    format!("/{source}/")
}

fn list(texts: &[&str]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

/// Returns the name of a dialect as the key of an object.
fn key(dialect: Dialect) -> String {
    let name = dialect.as_str();
    if name.contains('-') { quoted(name) } else { name.to_owned() }
}

fn is_variant(spec: &DialectSpec) -> bool {
    spec.items.family != spec.items.dialect
}

/// Returns every dialect, variants before the dialect that they are a variant of: they have its marks and paths, and
/// others.
fn variants_first() -> Vec<&'static DialectSpec> {
    let (mut specs, others): (Vec<_>, Vec<_>) = ALL.iter().copied().partition(|spec| is_variant(spec));
    specs.extend(others);
    specs
}

/// Returns the members of bodies that hold a part of the conversation outside of the list.
fn system_members() -> Vec<&'static str> {
    let mut members: Vec<&'static str> = Vec::new();
    for spec in ALL {
        let of_service: Vec<&str> = spec.service_state.iter().flat_map(ServiceState::members).collect();
        // A reference to what a service stores has no content of the conversation.
        let is_reference = |member: &str| member.ends_with("_id") || member.ends_with("_token");
        let is_other = |member: &str| member == spec.items.list || of_service.contains(&member) || is_reference(member);
        for member in spec.body.reserved_members {
            if !is_other(member) && !members.contains(member) {
                members.push(*member);
            }
        }
    }
    members
}

/// Returns `js/dialects.js`.
fn dialects_file() -> String {
    let mut out = format!("// The dialects, for code that must know them before the wasm is loaded.\n{HEAD}");
    out.push_str(
        "/**\n * The member of a request body that contains the conversation, by dialect.\n *\n * @satisfies {Record<import('./types.js').Dialect, string>}\n */\nexport const CONVERSATION_MEMBERS = {\n",
    );
    for dialect in Dialect::ALL {
        writeln!(out, "  {}: {},", key(dialect), quoted(spec(dialect).items.list)).unwrap();
    }
    out.push_str("};\nexport const DIALECTS = Object.keys(CONVERSATION_MEMBERS);\n\n");
    out.push_str(
        "/**\n * The statuses of an answer that refuses a request, by dialect. Only such a request is healed.\n *\n * @satisfies {Record<import('./types.js').Dialect, number[]>}\n */\nexport const REFUSAL_STATUSES = {\n",
    );
    for dialect in Dialect::ALL {
        writeln!(out, "  {}: {:?},", key(dialect), spec(dialect).rules.refusal_statuses).unwrap();
    }
    out.push_str("};\n\n");
    out.push_str("/** Members that contain a part of the conversation outside of that list. */\n");
    writeln!(out, "export const SYSTEM_MEMBERS = {};\n", list(&system_members())).unwrap();
    out.push_str(
        "/**\n * Paths of chat endpoints, most specific first, each with its dialect and the domain that it counts in. A group is\n * the model.\n *\n * @type {[RegExp, import('./types.js').Dialect, string?][]}\n */\nexport const CHAT_PATHS = [\n",
    );
    for spec in variants_first() {
        let name = quoted(spec.dialect().as_str());
        if let Some((domain, path)) = spec.recognition.domain {
            writeln!(out, "  [{}, {name}, {}],", pattern(path), quoted(domain)).unwrap();
        }
        for path in spec.recognition.paths {
            writeln!(out, "  [{}, {name}],", pattern(path)).unwrap();
        }
    }
    out.push_str("];\n");
    out
}

/// Returns the members of a dialect's object in `js/cli/marks.js`.
fn marks(spec: &DialectSpec) -> Vec<(&'static str, String)> {
    let Marks { part_members, block_members, item_types, roles, .. } = spec.recognition.marks;
    let marks = &spec.recognition.marks;
    let mut members = Vec::new();
    let mut add = |name, value: Option<String>| members.extend(value.map(|value| (name, value)));
    add("family", is_variant(spec).then(|| quoted(spec.items.family.as_str())));
    add("partMembers", (!part_members.is_empty()).then(|| list(part_members)));
    add("blockMembers", (!block_members.is_empty()).then(|| list(block_members)));
    add("itemTypes", (!item_types.is_empty()).then(|| list(item_types)));
    add("flag", marks.flag.map(quoted));
    add("list", marks.list.map(quoted));
    let roles =
        roles.iter().map(|(role, member)| format!("{role}: {}", member.map_or_else(|| "null".to_owned(), quoted)));
    let roles = roles.collect::<Vec<_>>().join(", ");
    add("roles", (!roles.is_empty()).then(|| format!("{{ {roles} }}")));
    add("blockWithMember", marks.block_with_member.map(|(kind, member)| list(&[kind, member])));
    add("listInBlock", marks.list_in_block.map(quoted));
    add("blockTypes", marks.block_types.map(|(kinds, _)| pattern(kinds)));
    add("blockWord", marks.block_types.map(|(_, word)| quoted(word)));
    add("bodyMember", marks.body_member.map(|member| quoted(member.name)));
    let others = |names: &[&str]| (!names.is_empty()).then(|| list(names));
    add("besideMember", marks.body_member.and_then(|member| others(member.beside)));
    add("withoutMembers", marks.body_member.and_then(|member| others(member.without)));
    add("besideMessages", marks.beside_messages.map(quoted));
    add("toolMember", marks.tool_member.map(quoted));
    add("models", marks.models.map(|models| format!("{}i", pattern(models))));
    add("callIds", marks.call_ids.map(|(ids, _)| pattern(ids)));
    add("callIdWords", marks.call_ids.map(|(_, words)| quoted(words)));
    members
}

/// Returns `js/cli/marks.js`.
fn marks_file() -> String {
    let mut out = format!("// What the conversations of a dialect have and those of others do not.\n{HEAD}");
    out.push_str(
        "/**\n * By dialect, variants before the dialect that they are a variant of. What each means: `Marks` in src/provider/spec/recognition.rs.\n *\n * @type {Record<string, import('./dialect.js').Marks>}\n */\nexport const MARKS = {\n",
    );
    for spec in variants_first() {
        writeln!(out, "  {}: {{", key(spec.dialect())).unwrap();
        for (name, value) in marks(spec) {
            writeln!(out, "    {name}: {value},").unwrap();
        }
        out.push_str("  },\n");
    }
    out.push_str("};\n");
    out
}

/// Returns `js/types/formats.d.ts` with the union of the names.
fn types_file(written: &str) -> String {
    const HEAD: &str = "export type Dialect =";
    let (before, rest) = written.split_once(HEAD).unwrap();
    let (_, after) = rest.split_once(';').unwrap();
    let names: String = Dialect::ALL.iter().map(|dialect| format!("\n  | \"{}\"", dialect.as_str())).collect();
    format!("{before}{HEAD}{names};{after}")
}

fn check(path: &str, written: &str, made: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(format!("{}/{path}", env!("CARGO_MANIFEST_DIR")), made).unwrap();
    } else {
        assert_eq!(written, made, "{path} differs from the specs: run this test with BLESS=1");
    }
}

#[test]
fn r65_javascript_knows_the_dialects_from_their_specs() {
    let types = include_str!("../../js/types/formats.d.ts");
    check("js/dialects.js", include_str!("../../js/dialects.js"), &dialects_file());
    check("js/cli/marks.js", include_str!("../../js/cli/marks.js"), &marks_file());
    check("js/types/formats.d.ts", types, &types_file(types));
}
