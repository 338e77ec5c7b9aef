//! `toolConfig`, which a conversation with calls requires.

use crate::finding::FindingCode;
use crate::json::ObjectWriter;
use crate::provider::bedrock::Bedrock;
use crate::provider::bedrock::tools::{TOOL_CONFIG, UNKNOWN};
use crate::provider::request::{TOOLS, ToolDefinition};
use crate::provider::rules::{BlockKind, Pairs, Plan, Turn, Violation};
use crate::provider::spec::ToolCodec;
use std::collections::BTreeSet;

const REQUIRED: &str = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
const EMPTY: &str =
    "Value '[]' at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1";

/// Adds the tools that are called if a body with calls defines none. Removes an empty list of tools.
pub(super) fn repair<'a>(plan: &mut Plan<'a, '_>, turns: &[Turn<'a>], pairs: &Pairs<'a>) {
    let config = plan.body.find(TOOL_CONFIG);
    let tools = config.and_then(|config| config.find(TOOLS));
    if tools.is_some_and(|tools| tools.items().next().is_some()) {
        return;
    }
    let is_tool = |kind: BlockKind| {
        use BlockKind::{ServerCall, ServerResult, ToolCall, ToolResult};
        matches!(kind, ToolCall(_) | ToolResult(_) | ServerCall | ServerResult)
    };
    let has_tools =
        turns.iter().filter(|turn| !turn.removed).flat_map(|turn| &turn.blocks).any(|block| is_tool(block.kind));
    if !has_tools {
        if config.is_some() {
            let violation = Violation::error(FindingCode::EmptyContent, EMPTY).at_member(plan.body.object, TOOL_CONFIG);
            plan.report(violation.dropped());
            plan.edits.remove(plan.body.object, TOOL_CONFIG);
        }
        return;
    }
    let violation = Violation::error(FindingCode::Malformed, REQUIRED).at_member(plan.body.object, TOOL_CONFIG);
    plan.report(violation.synthesized());
    let list = called_tools(pairs);
    match config.filter(|config| config.is_object()) {
        Some(config) => plan.edits.set(config, TOOLS, list),
        None => plan.edits.set(plan.body.object, TOOL_CONFIG, format!("{{\"{TOOLS}\":{list}}}")),
    }
}

/// Returns the definitions of the tools that are called, each with any arguments.
fn called_tools(pairs: &Pairs<'_>) -> String {
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for call in pairs.calls.iter().filter(|call| !call.omitted) {
        let name = ToolDefinition::of_called(&call.value.string("name")).name;
        if !name.is_empty() && seen.insert(name.clone()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push(UNKNOWN.to_owned());
    }
    let write = |name: &String| {
        let entry = ObjectWriter::build(|out| Bedrock.write_tool(out, &ToolDefinition::of_called(name)));
        entry.as_str().to_owned()
    };
    crate::json::list_of(&names.iter().map(write).collect::<Vec<_>>())
}
