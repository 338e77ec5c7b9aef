//! The tools that a conversation calls, for providers that reject calls in a request without tools.

use super::request::RenderRequest;
use crate::provider::{ToolDefinition, spec, tool_name};
use crate::replay::RequestDraft;
use std::collections::BTreeSet;

/// Returns definitions of the called tools, if the request defines none: Anthropic and Bedrock reject calls and
/// results in a request without tools.
pub fn called_tools(draft: &RequestDraft<'_>, request: &RenderRequest<'_>) -> Vec<ToolDefinition> {
    let given = spec(request.provider.dialect).tools.list_in(request.provider.params.view());
    if !request.tools.is_empty() || given.is_some_and(|tools| tools.items().next().is_some()) {
        return Vec::new();
    }
    let calls = draft.messages.iter().flat_map(|item| &item.calls);
    let names: BTreeSet<_> = calls.map(|call| tool_name(call.invocation)).collect();
    let mut tools: Vec<ToolDefinition> = names.iter().map(|name| ToolDefinition::of_called(name)).collect();
    // Names that differ in characters that no provider accepts are one.
    tools.dedup_by(|tool, other| tool.name == other.name);
    tools
}
