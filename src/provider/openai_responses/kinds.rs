//! The types of items, and the kinds of call that a client answers.

use crate::json::JsonRef;
use std::borrow::Cow;

/// The member of a call, and of the definition of its tool, that lets the conversation go on before its output
/// (2026-11-10).
pub(super) const ASYNC: &str = "async";

/// A kind of call. Its output is an item of the type `{kind}_output` with the same `call_id`:
///
/// ```json
/// {"type":"function_call","call_id":"call_1","name":"search","arguments":"{}"}
/// {"type":"function_call_output","call_id":"call_1","output":"…"}
/// ```
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallKind {
    /// The item's `type`.
    pub kind: &'static str,
    /// The tool, for items that do not name one.
    pub name: Option<&'static str>,
    /// The member that holds the arguments.
    pub arguments: &'static str,
    /// An output of text answers the call. Otherwise only an output that was received can (a screenshot, say).
    pub takes_text: bool,
}

/// A call of a function.
pub(super) const FUNCTION: &CallKind =
    &CallKind { kind: "function_call", name: None, arguments: "arguments", takes_text: true };

/// A call of a custom tool: its input is free text.
pub(super) const CUSTOM: &CallKind =
    &CallKind { kind: "custom_tool_call", name: None, arguments: "input", takes_text: true };

/// Calls of tools that OpenAI defines and the client runs.
pub(super) const HOSTED: [&CallKind; 4] = [
    &CallKind { kind: "computer_call", name: Some("computer"), arguments: "action", takes_text: false },
    &CallKind { kind: "local_shell_call", name: Some("local_shell"), arguments: "action", takes_text: true },
    &CallKind { kind: "shell_call", name: Some("shell"), arguments: "action", takes_text: false },
    &CallKind { kind: "apply_patch_call", name: Some("apply_patch"), arguments: "operation", takes_text: true },
];

impl CallKind {
    /// Returns the kind of call that items of that `type` are.
    pub fn of(item_type: &str) -> Option<&'static Self> {
        [FUNCTION, CUSTOM].into_iter().chain(HOSTED).find(|own| own.kind == item_type)
    }

    /// Returns the kind of call that outputs of that `type` answer.
    pub fn of_output(item_type: &str) -> Option<&'static Self> {
        Self::of(item_type.strip_suffix("_output")?)
    }

    /// Returns true for a tool that OpenAI defines.
    pub fn is_hosted(&self) -> bool {
        self.name.is_some()
    }

    /// Returns true if the output is a string or a list of parts: those of functions and custom tools.
    pub fn takes_parts(&self) -> bool {
        !self.is_hosted()
    }
}

/// Returns the `type` of the calls that items of a type pair with, and true if such an item is the call itself. Beside
/// [`CallKind`]s these are the client's tool search and MCP approvals.
pub(super) fn pair_of(item_type: &str) -> Option<(&str, bool)> {
    Some(match item_type {
        "tool_search_call" | "mcp_approval_request" => (item_type, true),
        "tool_search_output" => ("tool_search_call", false),
        "mcp_approval_response" => ("mcp_approval_request", false),
        _ => match CallKind::of(item_type) {
            Some(own) => (own.kind, true),
            None => (CallKind::of_output(item_type)?.kind, false),
        },
    })
}

/// Returns true for a `type` that this endpoint is known to take. OpenAI keeps adding types, so an unknown one may be
/// valid, too.
pub(super) fn is_known(item_type: &str) -> bool {
    let has_known_suffix = ["_call", "_call_output", "_output"].iter().any(|suffix| item_type.ends_with(suffix));
    let others = [
        "message",
        "reasoning",
        "item_reference",
        "compaction",
        "compaction_trigger",
        "configuration_update",
        "additional_tools",
        "agent_message",
        "program",
    ];
    has_known_suffix || item_type.starts_with("mcp_") || others.contains(&item_type)
}

/// Returns the member by which an item pairs, given the type of the call (see [`pair_of`]) and whether the item is the
/// call.
pub(super) fn id_name(call_type: &str, is_call: bool) -> &'static str {
    match call_type {
        "mcp_approval_request" if is_call => "id",
        "mcp_approval_request" => "approval_request_id",
        _ => "call_id",
    }
}

/// Returns true if OpenAI runs the call itself, so that no client answers it: in a container, or as a search of its
/// own.
pub(super) fn runs_on_server(item: JsonRef<'_>) -> bool {
    item.find("environment").is_some_and(|place| !place.has_text("type", "local"))
        || item.has_text("type", "tool_search_call") && !item.has_text("execution", "client")
}

/// Returns an item's `type`. Without one, guesses it from the members; empty for what is no item.
pub(super) fn kind_of(item: JsonRef<'_>) -> Cow<'_, str> {
    if let Some(kind) = item.text("type").filter(|kind| !kind.is_empty()) {
        return kind;
    }
    let has = |key: &str| item.find(key).is_some();
    match () {
        () if has("role") => "message",
        () if has("call_id") && has("output") => "function_call_output",
        () if has("name") && (has("call_id") || has("arguments")) => "function_call",
        // A reference needs no type (SDK: `ItemReference`).
        () if has("id") && item.entries().all(|(key, _)| key.is_text("id") || key.is_text("type")) => "item_reference",
        () => "",
    }
    .into()
}
