//! The kinds of call that a client answers.

use crate::json::JsonRef;
use std::borrow::Cow;

/// One kind of call: its output is an item of the type `{kind}_output` with the same `call_id`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallKind {
    /// The item's `type`.
    pub kind: &'static str,
    /// The tool, where the item does not name one.
    pub name: Option<&'static str>,
    /// The member that says what is asked.
    pub arguments: &'static str,
    /// Whether an output of text says enough; otherwise only what came as such an output can be one.
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
    /// The kind of that `type`.
    pub fn of(kind: &str) -> Option<&'static Self> {
        [FUNCTION, CUSTOM].into_iter().chain(HOSTED).find(|own| own.kind == kind)
    }

    /// The kind that an output of that `type` answers.
    pub fn of_output(kind: &str) -> Option<&'static Self> {
        Self::of(kind.strip_suffix("_output")?)
    }

    /// Whether it is one of OpenAI's own tools.
    pub fn is_hosted(&self) -> bool {
        self.name.is_some()
    }

    /// Whether its output is a text or a list of parts.
    pub fn takes_parts(&self) -> bool {
        !self.is_hosted()
    }
}

/// The kind of call that an item of that type is (true) or answers (false): the kinds of above, and those that are kept as
/// they came.
pub(super) fn pair_of(kind: &str) -> Option<(&str, bool)> {
    Some(match kind {
        "tool_search_call" | "mcp_approval_request" => (kind, true),
        "tool_search_output" => ("tool_search_call", false),
        "mcp_approval_response" => ("mcp_approval_request", false),
        _ => match CallKind::of(kind) {
            Some(own) => (own.kind, true),
            None => (CallKind::of_output(kind)?.kind, false),
        },
    })
}

/// Whether an item's `type` is one that this endpoint is known to take. New ones come.
pub(super) fn is_known(kind: &str) -> bool {
    let families =
        ["_call", "_call_output", "_output"].iter().any(|end| kind.ends_with(end)) || kind.starts_with("mcp_");
    let others = ["message", "reasoning", "item_reference", "compaction", "additional_tools", "program"];
    families || others.contains(&kind)
}

/// The member by which such an item is paired.
pub(super) fn id_name(label: &str, calls: bool) -> &'static str {
    match label {
        "mcp_approval_request" if calls => "id",
        "mcp_approval_request" => "approval_request_id",
        _ => "call_id",
    }
}

/// Whether a call runs where the model runs, so that nobody answers it here: in a container, or by a server's own search.
pub(super) fn runs_there(item: JsonRef<'_>) -> bool {
    item.find("environment").is_some_and(|place| !place.says("type", "local"))
        || item.says("type", "tool_search_call") && !item.says("execution", "client")
}

/// An item's `type`; of one without, what its members say. Empty for what is no item.
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
