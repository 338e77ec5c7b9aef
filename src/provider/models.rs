//! Facts that differ by model within a dialect. The tables, dated and with their sources, are the `models.rs` of the
//! dialects' folders.

/// What a provider does with reasoning that is sent back when something before it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixBinding {
    /// It accepts it.
    Unbound,
    /// It leaves the reasoning out, without an error.
    Dropped,
    /// It rejects the request.
    Rejected,
}

/// A way in which a request asks for reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingKind {
    /// With a budget of tokens.
    Budget,
    /// Not at all.
    Disabled,
    /// As much as the model decides.
    Adaptive,
    /// Only notes between the calls of tools.
    BetweenTools,
}

/// What a model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// What becomes of reasoning whose prefix has changed.
    pub prefix_binding: PrefixBinding,
    /// The kinds of thinking that it accepts. Others are an error.
    pub thinking: &'static [ThinkingKind],
    /// A request that configures thinking must name the kind.
    pub requires_thinking_kind: bool,
    /// A request may force the call of a tool.
    pub allows_forced_tool_choice: bool,
    /// System messages may stand among the others.
    pub allows_system_messages: bool,
    /// The list may end with the beginning of the answer (a prefill).
    pub allows_prefill: bool,
}

impl ModelFacts {
    /// The facts of a model of which nothing is known: it accepts everything.
    pub const PERMISSIVE: Self = Self {
        prefix_binding: PrefixBinding::Unbound,
        thinking: &[ThinkingKind::Budget, ThinkingKind::Disabled, ThinkingKind::Adaptive, ThinkingKind::BetweenTools],
        requires_thinking_kind: false,
        allows_forced_tool_choice: true,
        allows_system_messages: true,
        allows_prefill: true,
    };

    /// Returns true if reasoning is lost, or the request rejected, when something before it changes.
    #[must_use]
    pub fn binds_reasoning(&self) -> bool {
        self.prefix_binding != PrefixBinding::Unbound
    }

    /// Returns true if the model accepts a kind of thinking.
    #[must_use]
    pub fn allows_thinking(&self, kind: ThinkingKind) -> bool {
        self.thinking.contains(&kind)
    }
}
