//! The settings of replay, and their precedence.

use super::reduce::Reducer;
use crate::error::{Error, Result};
use crate::message::HostGroup;
use crate::tool::{ToolInvocation, Window};
use std::collections::BTreeMap;

/// The built-in freshness window in milliseconds: five minutes.
pub const BUILT_IN_FRESHNESS: u64 = 300_000;

/// What happens to a stale result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStale {
    /// Call and result are dropped.
    #[default]
    Omit,
    /// The call stays; its result is a note that it expired.
    Placeholder,
}

/// What is dropped with a stale call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaleUnit {
    /// That call only.
    #[default]
    Call,
    /// All calls of its round.
    Round,
    /// All calls of its turn.
    Turn,
}

/// What happens to a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DanglingCalls {
    /// It gets a synthesized result.
    #[default]
    Synthesize,
    /// It is dropped.
    Omit,
}

/// What happens to sources that the turn's answer does not cite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Citations {
    /// They stay.
    #[default]
    Off,
    /// They are not sent again.
    Replay,
    /// They are not sent again, and not stored if the answer is known by then.
    Store,
}

/// What happens to reasoning that a provider binds to what preceded it, where that is not the same any more (R70).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnboundReasoning {
    /// It is left out.
    #[default]
    Omit,
    /// It is sent, and the request asks the service to drop it; where that is not possible, as [`Omit`](Self::Omit).
    DropBlock,
    /// It is sent.
    Send,
}

/// When freshness, reducers and citations may change what an earlier request contained (R72).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayChanges {
    /// With each run and each render.
    #[default]
    Always,
    /// At a [`Cut`](super::Cut) only, so that the provider's cache of what was sent stays usable.
    AtCuts,
}

/// The settings of one level. Absent fields are inherited.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct PolicyLayer {
    pub freshness: Option<Window>,
    pub tool_freshness: BTreeMap<String, Window>,
    pub error_freshness: Option<Window>,
    pub on_stale: Option<OnStale>,
    pub stale_unit: Option<StaleUnit>,
    pub dangling_calls: Option<DanglingCalls>,
    pub citations: Option<Citations>,
    pub reducers: Option<Vec<Reducer>>,
    pub unbound_reasoning: Option<UnboundReasoning>,
    /// Hosts that serve the same models.
    pub same_makers: Option<Vec<HostGroup>>,
    pub changes: Option<ReplayChanges>,
}

/// Reducers that run only if a request has more than so many tokens, as estimated.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FallbackReducers {
    pub tokens: u64,
    pub reducers: Vec<Reducer>,
}

/// The settings of all levels. Precedence, field by field: call, append, tool, session, channel, global, built-in.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Policy {
    pub call: PolicyLayer,
    /// `Tool.freshness` of the tools given with this call.
    pub tools: BTreeMap<String, Window>,
    pub session: PolicyLayer,
    pub channel: PolicyLayer,
    pub global: PolicyLayer,
    /// The reducers of requests that are too large after those of a level.
    pub fallback: Option<FallbackReducers>,
    /// True if earlier requests of the session asked the service to drop reasoning: so do the later ones, unless a
    /// level says otherwise.
    pub has_dropped: bool,
}

impl Policy {
    /// Returns the freshness window of an invocation's result, and whether it is the built-in one.
    #[must_use]
    pub fn window(&self, invocation: &ToolInvocation, is_error: bool) -> (Window, bool) {
        if is_error && let Some(window) = self.field(|layer| layer.error_freshness) {
            return (window, false);
        }
        let at = |layer: &PolicyLayer| layer.tool_freshness.get(&invocation.name).copied().or(layer.freshness);
        // The window of an append is more specific than that of a tool.
        let window = at(&self.call)
            .or(invocation.append_freshness)
            .or_else(|| self.tools.get(&invocation.name).copied())
            .or(invocation.freshness)
            .or_else(|| at(&self.session))
            .or_else(|| at(&self.channel))
            .or_else(|| at(&self.global));
        (window.unwrap_or(Window::Millis(BUILT_IN_FRESHNESS)), window.is_none())
    }

    /// Returns what happens to stale results.
    #[must_use]
    pub fn on_stale(&self) -> OnStale {
        self.field(|layer| layer.on_stale).unwrap_or_default()
    }

    /// Returns what is dropped with a stale call.
    #[must_use]
    pub fn stale_unit(&self) -> StaleUnit {
        self.field(|layer| layer.stale_unit).unwrap_or_default()
    }

    /// Returns what happens to calls without a result.
    #[must_use]
    pub fn dangling_calls(&self) -> DanglingCalls {
        self.field(|layer| layer.dangling_calls).unwrap_or_default()
    }

    /// Returns what happens to sources that are not cited.
    #[must_use]
    pub fn citations(&self) -> Citations {
        self.field(|layer| layer.citations).unwrap_or_default()
    }

    /// Returns what happens to reasoning whose prefix has changed.
    #[must_use]
    pub fn unbound_reasoning(&self) -> UnboundReasoning {
        let remembered = || if self.has_dropped { UnboundReasoning::DropBlock } else { UnboundReasoning::default() };
        self.field(|layer| layer.unbound_reasoning).unwrap_or_else(remembered)
    }

    /// Returns when what an earlier request contained may change.
    #[must_use]
    pub fn changes(&self) -> ReplayChanges {
        self.field(|layer| layer.changes).unwrap_or_default()
    }

    /// Returns the reducers, in order. They are those of one level: levels are not merged.
    #[must_use]
    pub fn reducers(&self) -> &[Reducer] {
        self.list(|layer| layer.reducers.as_deref())
    }

    /// Returns the reducers, and those of a request that is too large.
    pub(super) fn all_reducers(&self) -> impl Iterator<Item = &Reducer> {
        let fallback = self.fallback.as_ref().map_or(&[][..], |fallback| &fallback.reducers);
        self.reducers().iter().chain(fallback)
    }

    /// Returns the groups of hosts that serve the same models. They are those of one level.
    #[must_use]
    pub fn same_makers(&self) -> &[HostGroup] {
        self.list(|layer| layer.same_makers.as_deref())
    }

    fn list<T>(&self, of: impl Fn(&PolicyLayer) -> Option<&[T]>) -> &[T] {
        [&self.call, &self.session, &self.channel, &self.global].into_iter().find_map(of).unwrap_or_default()
    }

    fn field<T>(&self, of: impl Fn(&PolicyLayer) -> Option<T>) -> Option<T> {
        of(&self.call).or_else(|| of(&self.session)).or_else(|| of(&self.channel)).or_else(|| of(&self.global))
    }
}

impl Window {
    /// Converts a number of milliseconds: `Infinity` means always fresh, 0 never.
    ///
    /// # Errors
    /// `config_invalid` for a negative number and for NaN.
    pub fn from_millis(millis: f64) -> Result<Self> {
        if millis.is_nan() || millis < 0.0 {
            return Err(Error::config(
                "a freshness window is milliseconds: 0 for never, Infinity for always, never negative",
            ));
        }
        // Longer than any clock counts.
        if millis >= 9_007_199_254_740_992.0 {
            return Ok(Self::Always);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self::Millis(millis as u64))
    }
}
