//! The tools that a conversation calls, for providers that reject calls in a request without tools.

use super::request::RenderRequest;
use crate::message::PartBody;
use crate::provider::{ToolDefinition, spec, tool_name};
use crate::replay::RequestDraft;
use std::collections::BTreeSet;

/// Returns definitions of the called tools, if the request defines none: Anthropic and Bedrock reject calls and
/// results in a request without tools.
pub fn called_tools(draft: &RequestDraft<'_>, request: &RenderRequest<'_>) -> Vec<ToolDefinition> {
    let dialect = request.provider.dialect;
    let codec = spec(dialect).tools;
    let given = codec.list_in(request.provider.params.view());
    if !request.tools.is_empty() || given.is_some_and(|tools| tools.items().next().is_some()) {
        return Vec::new();
    }
    let calls = draft.messages.iter().flat_map(|item| &item.calls);
    let names: BTreeSet<_> = calls.map(|call| tool_name(call.invocation)).collect();
    let mut tools: Vec<ToolDefinition> = names.iter().map(|name| ToolDefinition::of_called(name)).collect();
    if !tools.is_empty() {
        // Names that differ in characters that no provider accepts are one.
        tools.dedup_by(|tool, other| tool.name == other.name);
        return tools;
    }
    // A call of the provider's own tool requires a definition as well.
    let own = draft.messages.iter().map(|item| item.message).filter(|message| message.dialect == Some(dialect));
    for part in own.flat_map(|message| &message.parts) {
        let PartBody::Opaque(block) = &part.body else { continue };
        let Some(tool) = codec.tool_of_block(block.view()) else { continue };
        if tools.iter().all(|other| other.name != tool.name) {
            tools.push(tool);
        }
    }
    tools
}
