//! The names of documents. They have few characters, and are unique in a request, results included.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::bedrock::block::{DOCUMENT, TOOL_RESULT};
use crate::provider::bedrock::media::{MAX_NAME_LENGTH, document_name, is_document_name};
use crate::provider::rules::{Plan, Violation, quoted};
use std::collections::BTreeSet;

const INVALID: &str = "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.";
const DUPLICATE: &str = "Messages can't contain duplicate document names. Rename the document and retry your request.";

/// Returns the documents of a message, in its content and in that of results.
fn documents_of(message: JsonRef<'_>) -> impl Iterator<Item = JsonRef<'_>> {
    let blocks = message.get("content").filter(|content| content.kind() == JsonKind::Array).unwrap_or_default().items();
    let within = blocks.flat_map(|block| {
        let content = block.find(TOOL_RESULT).and_then(|result| result.get("content")).unwrap_or_default();
        std::iter::once(block).chain(content.items())
    });
    within.filter_map(|block| block.find(DOCUMENT).filter(|document| document.is_object()))
}

/// Returns true if two documents of the messages have one name.
pub(in crate::provider::bedrock) fn repeats_a_name(messages: &[JsonRef<'_>]) -> bool {
    let mut names = BTreeSet::new();
    let documents = messages.iter().copied().flat_map(documents_of);
    documents.filter_map(|document| document.text("name")).any(|name| !names.insert(name.into_owned()))
}

/// Repairs the names of all documents. The first one of a name keeps it; a later one gets a number.
pub(super) fn repair_names<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    let mut used = BTreeSet::new();
    for document in list.items().flat_map(documents_of) {
        if plan.is_over_budget() {
            return;
        }
        let name = document.text("name").unwrap_or_default();
        let is_valid = is_document_name(&name);
        if is_valid && used.insert(name.to_string()) {
            continue;
        }
        let (code, sentence) =
            if is_valid { (FindingCode::Malformed, DUPLICATE) } else { (FindingCode::Malformed, INVALID) };
        let base = if is_valid { name.into_owned() } else { document_name(Some(&name)) };
        let free = free_name(&base, &used);
        let violation = Violation::error(code, sentence).at_member(document, "name");
        plan.rewrite(violation, quoted(&free));
        used.insert(free);
    }
}

/// Returns the name, or its first numbered variant that is not used.
fn free_name(base: &str, used: &BTreeSet<String>) -> String {
    let variants = (2_u64..).map(|number| {
        let suffix = format!(" {number}");
        let kept: String = base.chars().take(MAX_NAME_LENGTH.saturating_sub(suffix.len())).collect();
        format!("{}{suffix}", kept.trim_end())
    });
    std::iter::once(base.to_owned()).chain(variants).find(|name| !used.contains(name)).unwrap_or_default()
}
