//! The members of a dialect's bodies.

use crate::json::JsonRef;
use crate::provider::request::{MemberPath, TOOL_CHOICE};

/// The names and values of a body's members, as far as they are data.
pub(crate) struct BodyProfile {
    /// A user message that every server of the dialect accepts.
    pub placeholder_message: &'static str,
    /// The members that a session writes. They are rejected in `params`.
    pub reserved_members: &'static [&'static str],
    /// The members of `params` that hold credentials in this dialect, in addition to those of all dialects. They are
    /// sent and never stored.
    pub credential_members: &'static [MemberPath],
    /// The keys of other dialects that this one rejects with 400.
    pub rejected_members: &'static [&'static str],
    /// Members that this dialect rejects if their object has the second name.
    pub rejected_inner_members: &'static [(&'static str, &'static str)],
    /// The members, besides that for `Parameter::Stream`, that the provider accepts in a streamed request only.
    pub stream_members: &'static [&'static str],
    /// The members that hold the tool choice: `tool_choice`, or `completion_args.tool_choice` for one of an object with
    /// parameters.
    pub tool_choice_members: &'static [&'static str],
    /// Returns true for a body that is valid without the list of items: one that continues a conversation that the
    /// provider keeps.
    pub may_lack_list: fn(JsonRef<'_>) -> bool,
    /// The member that holds the instructions, if a provider of this dialect binds reasoning to what precedes it.
    pub bound_instructions: Option<&'static str>,
    /// A member that a body with calls must have, and a value of it that any model accepts.
    pub required_with_calls: Option<(&'static str, &'static str)>,
    /// A tool definition may ask for arguments that match its schema exactly (`"strict":true`).
    pub has_strict_tools: bool,
    /// A text of the model may say what it is within its answer.
    pub has_phases: bool,
    /// The headers that the provider requires, unless the caller sets them.
    pub required_headers: &'static [(&'static str, &'static str)],
}

impl BodyProfile {
    /// The profile of a body as most dialects have it.
    pub const COMMON: Self = Self {
        placeholder_message: r#"{"role":"user","content":"."}"#,
        reserved_members: &["messages"],
        credential_members: &[],
        rejected_members: &[],
        rejected_inner_members: &[],
        stream_members: &[],
        tool_choice_members: &[TOOL_CHOICE],
        may_lack_list: |_| false,
        bound_instructions: None,
        required_with_calls: None,
        has_strict_tools: true,
        has_phases: false,
        required_headers: &[],
    };

    /// Returns true if the provider rejects a member of a body as a key of another dialect.
    pub fn rejects_member(&self, name: &str, value: JsonRef<'_>) -> bool {
        let is_inner = |(outer, inner): &(&str, &str)| *outer == name && value.get(inner).is_some();
        self.rejected_members.contains(&name) || self.rejected_inner_members.iter().any(is_inner)
    }

    /// Returns true if the parameters name a tool choice in another member than `tool_choice`, which is then left out.
    pub fn has_other_tool_choice(&self, params: JsonRef<'_>) -> bool {
        self.tool_choice_members.iter().any(|name| *name != TOOL_CHOICE && params.get(name).is_some())
    }
}
