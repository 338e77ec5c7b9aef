//! A replay policy.

use super::option_types::OptionTypes;
use super::reducer::ReducerOptions;
use super::values::{OptionEntries, WindowOption};
use super::words::words;
use crate::message::HostGroup;
use crate::replay::{Citations, DanglingCalls, OnStale, PolicyLayer, ReplayChanges, StaleUnit, UnboundReasoning};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

words!(
    /// `onStale` of a replay policy.
    OnStaleOption: OnStale { "omit" => OnStale::Omit, "placeholder" => OnStale::Placeholder }
);
words!(
    /// `staleUnit` of a replay policy.
    StaleUnitOption: StaleUnit { "call" => StaleUnit::Call, "round" => StaleUnit::Round, "turn" => StaleUnit::Turn }
);
words!(
    /// `danglingCalls` of a replay policy.
    DanglingCallsOption: DanglingCalls { "synthesize" => DanglingCalls::Synthesize, "omit" => DanglingCalls::Omit }
);
words!(
    /// `unboundReasoning` of a replay policy.
    UnboundReasoningOption: UnboundReasoning {
        "omit" => UnboundReasoning::Omit,
        "drop_block" => UnboundReasoning::DropBlock,
        "send" => UnboundReasoning::Send,
    }
);
words!(
    /// `changes` of a replay policy.
    ChangesOption: ReplayChanges { "always" => ReplayChanges::Always, "at_cuts" => ReplayChanges::AtCuts }
);
words!(
    /// `citations` of a replay policy.
    CitationsOption: Citations {
        "off" => Citations::Off,
        "replay" => Citations::Replay,
        "store" => Citations::Store,
    }
);

/// A group of hosts in `sameMakers`.
pub struct HostGroupOption(HostGroup);

impl<'de> Deserialize<'de> for HostGroupOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let hosts = Vec::deserialize(deserializer)?;
        HostGroup::new(hosts).map(Self).map_err(|error| D::Error::custom(error.into_message()))
    }
}

/// A replay policy: the settings of one level. Absent ones inherit.
#[derive(Default, Deserialize)]
#[serde(bound = "", default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ReplayOptions<T: OptionTypes> {
    freshness: Option<WindowOption>,
    tool_freshness: Option<OptionEntries<Option<WindowOption>>>,
    error_freshness: Option<WindowOption>,
    on_stale: Option<OnStaleOption>,
    stale_unit: Option<StaleUnitOption>,
    dangling_calls: Option<DanglingCallsOption>,
    citations: Option<CitationsOption>,
    reducers: Option<Vec<ReducerOptions<T>>>,
    unbound_reasoning: Option<UnboundReasoningOption>,
    same_makers: Option<Vec<HostGroupOption>>,
    changes: Option<ChangesOption>,
}

impl<T: OptionTypes> From<ReplayOptions<T>> for PolicyLayer {
    fn from(options: ReplayOptions<T>) -> Self {
        let mut tool_freshness = BTreeMap::new();
        for (tool, window) in options.tool_freshness.unwrap_or_default().0 {
            if let Some(WindowOption(window)) = window {
                tool_freshness.insert(tool, window);
            }
        }
        Self {
            freshness: options.freshness.map(|option| option.0),
            tool_freshness,
            error_freshness: options.error_freshness.map(|option| option.0),
            on_stale: options.on_stale.map(|option| option.0),
            stale_unit: options.stale_unit.map(|option| option.0),
            dangling_calls: options.dangling_calls.map(|option| option.0),
            citations: options.citations.map(|option| option.0),
            reducers: options.reducers.map(|reducers| reducers.into_iter().map(Into::into).collect()),
            unbound_reasoning: options.unbound_reasoning.map(|option| option.0),
            same_makers: options.same_makers.map(|groups| groups.into_iter().map(|option| option.0).collect()),
            changes: options.changes.map(|option| option.0),
        }
    }
}

/// Converts `channels` to a policy layer for each channel.
pub fn channel_layers<T: OptionTypes>(
    channels: Option<OptionEntries<Option<ReplayOptions<T>>>>,
) -> Vec<(String, PolicyLayer)> {
    let layer =
        |(channel, options): (String, Option<ReplayOptions<T>>)| (channel, options.map(Into::into).unwrap_or_default());
    channels.unwrap_or_default().0.into_iter().map(layer).collect()
}
