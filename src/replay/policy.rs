//! Replay settings, and who wins where several speak.

use super::reduce::Reducer;
use crate::error::{Error, Result};
use crate::sorted::Sorted;
use crate::tool::{ToolInvocation, Window};

/// Five minutes, in milliseconds.
pub const BUILT_IN_FRESHNESS: u64 = 300_000;

/// What becomes of a result that is too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStale {
    /// Call and result are left out.
    #[default]
    Omit,
    /// The call stays, its result says that it expired.
    Placeholder,
}

/// What goes when one call is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaleUnit {
    /// That call.
    #[default]
    Call,
    /// All calls of its round.
    Round,
    /// All calls of its turn.
    Turn,
}

/// What becomes of a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DanglingCalls {
    /// It is closed by a result that says so.
    #[default]
    Synthesize,
    /// It is left out.
    Omit,
}

/// What becomes of sources that the turn's answer does not cite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Citations {
    /// They stay.
    #[default]
    Off,
    /// They are not shown again.
    Replay,
    /// They are not shown again, and not stored where the answer is known by then.
    Store,
}

/// Settings of one level; absent fields inherit.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct PolicyLayer {
    pub freshness: Option<Window>,
    pub tool_freshness: Sorted<String, Window>,
    pub error_freshness: Option<Window>,
    pub on_stale: Option<OnStale>,
    pub stale_unit: Option<StaleUnit>,
    pub dangling_calls: Option<DanglingCalls>,
    pub citations: Option<Citations>,
    pub reducers: Option<Vec<Reducer>>,
}

/// All levels. Precedence, field by field: call, append, tool, session, channel, global, built-in.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Policy {
    pub call: PolicyLayer,
    /// `Tool.freshness` of the tools given with this call.
    pub tools: Sorted<String, Window>,
    pub session: PolicyLayer,
    pub channel: PolicyLayer,
    pub global: PolicyLayer,
}

impl Policy {
    /// The window of an invocation's result, and whether it is the built-in one.
    #[must_use]
    pub fn window(&self, invocation: &ToolInvocation, is_error: bool) -> (Window, bool) {
        if is_error && let Some(window) = self.field(|layer| layer.error_freshness) {
            return (window, false);
        }
        let at = |layer: &PolicyLayer| layer.tool_freshness.get(&invocation.name).copied().or(layer.freshness);
        // An append sets the window of its own calls, a tool that of all its calls: the more specific one wins.
        let window = at(&self.call)
            .or(invocation.append_freshness)
            .or_else(|| self.tools.get(&invocation.name).copied())
            .or(invocation.freshness)
            .or_else(|| at(&self.session))
            .or_else(|| at(&self.channel))
            .or_else(|| at(&self.global));
        (window.unwrap_or(Window::Millis(BUILT_IN_FRESHNESS)), window.is_none())
    }

    /// What becomes of stale results.
    #[must_use]
    pub fn on_stale(&self) -> OnStale {
        self.field(|layer| layer.on_stale).unwrap_or_default()
    }

    /// What goes when one call is stale.
    #[must_use]
    pub fn stale_unit(&self) -> StaleUnit {
        self.field(|layer| layer.stale_unit).unwrap_or_default()
    }

    /// What becomes of calls without a result.
    #[must_use]
    pub fn dangling_calls(&self) -> DanglingCalls {
        self.field(|layer| layer.dangling_calls).unwrap_or_default()
    }

    /// What becomes of uncited sources.
    #[must_use]
    pub fn citations(&self) -> Citations {
        self.field(|layer| layer.citations).unwrap_or_default()
    }

    /// What makes the history shorter, in order. A list is taken whole: one level's reducers are not added to another's.
    #[must_use]
    pub fn reducers(&self) -> &[Reducer] {
        let levels = [&self.call, &self.session, &self.channel, &self.global];
        levels.into_iter().find_map(|layer| layer.reducers.as_deref()).unwrap_or_default()
    }

    fn field<T>(&self, of: impl Fn(&PolicyLayer) -> Option<T>) -> Option<T> {
        of(&self.call).or_else(|| of(&self.session)).or_else(|| of(&self.channel)).or_else(|| of(&self.global))
    }
}

impl Window {
    /// From a number of milliseconds, as an application gives it: Infinity always, 0 never.
    ///
    /// # Errors
    /// `config_invalid` for a negative one and for NaN.
    pub fn from_millis(millis: f64) -> Result<Self> {
        if millis.is_nan() || millis < 0.0 {
            return Err(Error::config(
                "a freshness window is milliseconds: 0 for never, Infinity for always, never negative",
            ));
        }
        // Longer than any clock runs.
        if millis >= 9_007_199_254_740_992.0 {
            return Ok(Self::Always);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self::Millis(millis as u64))
    }
}
