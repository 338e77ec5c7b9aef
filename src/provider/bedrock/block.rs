//! Content blocks: objects with one member, whose name says what the block is (`@aws-sdk/client-bedrock-runtime`
//! 3.1164, `ContentBlock`).

use crate::json::JsonRef;

pub(super) const TEXT: &str = "text";
pub(super) const TOOL_USE: &str = "toolUse";
pub(super) const TOOL_RESULT: &str = "toolResult";
pub(super) const REASONING: &str = "reasoningContent";
pub(super) const CACHE_POINT: &str = "cachePoint";
pub(super) const CITATIONS: &str = "citationsContent";
pub(super) const DOCUMENT: &str = "document";
pub(super) const IMAGE: &str = "image";
/// A block of a result's content.
pub(super) const JSON: &str = "json";

/// The members by which blocks are told apart.
pub(super) const KINDS: [&str; 15] = [
    TEXT,
    TOOL_USE,
    TOOL_RESULT,
    REASONING,
    CACHE_POINT,
    CITATIONS,
    DOCUMENT,
    IMAGE,
    "video",
    "audio",
    "guardContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
    JSON,
];

/// Returns the name and the value of the member that says what a block is; `None` for an object without such a member.
pub(super) fn kind_of(block: JsonRef<'_>) -> Option<(&'static str, JsonRef<'_>)> {
    let kind = |key: JsonRef<'_>| KINDS.into_iter().find(|kind| key.is_text(kind));
    block.entries().filter(|(_, value)| !value.is_null()).find_map(|(key, value)| Some((kind(key)?, value)))
}

/// Returns true if a tool call belongs to a tool that the service runs: `"type":"server_tool_use"`, the one value that
/// `ToolUseType` has. Answers of Claude have `"type":"tool_use"` on calls of the application's tools.
pub(super) fn is_server_call(call: JsonRef<'_>) -> bool {
    call.text("type").is_some_and(|kind| kind == "server_tool_use")
}

/// Returns true if a result belongs to a tool that the service runs. Its type is the service's word for it, such as
/// `nova_code_interpreter_result` (recorded).
pub(super) fn is_server_result(result: JsonRef<'_>) -> bool {
    result.text("type").is_some_and(|kind| kind != "tool_result" && kind.ends_with("_result"))
}
