//! The options of opening a store, opening a session and replaying history.

use super::convert::to_json;
use super::option_reader::{AtLeastOne, BoundFunction, OptionEntries, UnreadValue, read_options, words};
use super::reducer_options::ReducerOptions;
use super::store::StoreTimeout;
use crate::error::{Error, ErrorCode, Result};
use crate::message::HostGroup;
use crate::owner::{OnConflict, StateOwner};
use crate::replay::{Citations, DanglingCalls, OnStale, PolicyLayer, ReplayChanges, StaleUnit, UnboundReasoning};
use crate::run::{OnStop, Persistence};
use crate::session::SessionSettings;
use crate::tool::Window;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use wasm_bindgen::JsValue;

/// `store`.
pub enum StoreOption {
    /// A store that is built in, by its name.
    BuiltIn(&'static str),
    /// The application's store or driver.
    Object(JsValue),
}

impl<'de> Deserialize<'de> for StoreOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let UnreadValue(value) = UnreadValue::deserialize(deserializer)?;
        if value.is_object() {
            return Ok(Self::Object(value));
        }
        match value.as_string().as_deref() {
            Some("indexeddb") => Ok(Self::BuiltIn("indexeddb")),
            Some("memory") => Ok(Self::BuiltIn("memory")),
            Some("localstorage") => Ok(Self::BuiltIn("localstorage")),
            Some(other) => Err(D::Error::unknown_variant(other, &["indexeddb", "localstorage", "memory"])),
            None => Err(D::Error::invalid_type(serde::de::Unexpected::Other("a value"), &"a string or a store")),
        }
    }
}
words!(
    /// `durability`.
    DurabilityOption: super::store::Durability {
        "relaxed" => super::store::Durability::Relaxed,
        "strict" => super::store::Durability::Strict,
    }
);
words!(
    /// `onStop`.
    OnStopOption: OnStop { "discard" => OnStop::Discard, "keep" => OnStop::Keep }
);
words!(
    /// `persistence`.
    PersistenceOption: Persistence {
        "run" => Persistence::Run,
        "call" => Persistence::Call,
        "result" => Persistence::Result,
    }
);
words!(
    /// `owner.kind`.
    OwnerKindOption: OwnerKind {
        "session" => OwnerKind::Session,
        "caller" => OwnerKind::Caller,
        "conversation" => OwnerKind::Conversation,
        "response" => OwnerKind::Response,
    }
);
words!(
    /// `onConflict`.
    OnConflictOption: OnConflict { "throw" => OnConflict::Throw, "warn" => OnConflict::Warn, "clear" => OnConflict::Clear }
);
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
/// A freshness window in milliseconds: 0 for never, `Infinity` for always.
pub struct WindowOption(pub Window);

impl<'de> Deserialize<'de> for WindowOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Window::from_millis(millis).map(Self).map_err(|error| D::Error::custom(error.into_message()))
    }
}

/// A group of hosts in `sameMakers`.
pub struct HostGroupOption(HostGroup);

impl<'de> Deserialize<'de> for HostGroupOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let hosts = Vec::deserialize(deserializer)?;
        HostGroup::new(hosts).map(Self).map_err(|error| D::Error::custom(error.into_message()))
    }
}

/// A whole number of milliseconds within bounds.
pub struct MillisOption<const MIN: u64, const MAX: u64>(pub u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for MillisOption<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let millis = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&millis) {
            return Ok(Self(millis));
        }
        let expected = format!("a whole number of milliseconds, from {MIN} to {MAX}");
        Err(D::Error::invalid_value(serde::de::Unexpected::Unsigned(millis), &expected.as_str()))
    }
}

/// The options of `open`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenOptions {
    pub store: Option<StoreOption>,
    pub name: Option<String>,
    pub durability: Option<DurabilityOption>,
    pub lease_ms: Option<MillisOption<100, 86_400_000>>,
    pub store_timeout_ms: Option<MillisOption<10, 86_400_000>>,
    pub replay: Option<ReplayOptions>,
    pub channels: Option<OptionEntries<Option<ReplayOptions>>>,
    pub now: Option<BoundFunction>,
    pub new_id: Option<BoundFunction>,
    pub on_warning: Option<BoundFunction>,
}

impl OpenOptions {
    /// How long an operation of the store may take.
    pub fn store_timeout(&self) -> StoreTimeout {
        self.store_timeout_ms.as_ref().map(|limit| StoreTimeout(limit.0)).unwrap_or_default()
    }
}

/// The options of `Rethread.session`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionOptions {
    pub channel: Option<String>,
    pub title: Option<String>,
    pub owner: Option<OwnerOptions>,
    pub on_conflict: Option<OnConflictOption>,
    pub persistence: Option<PersistenceOption>,
    pub trim_trailing_results: Option<bool>,
    pub on_stop: Option<OnStopOption>,
    pub flush_ms: Option<MillisOption<0, 60_000>>,
    pub replay: Option<ReplayOptions>,
    /// Read by the facade.
    #[serde(rename = "providers")]
    _providers: Option<UnreadValue>,
    pub metadata: Option<UnreadValue>,
}

impl SessionOptions {
    /// Converts the options.
    ///
    /// # Errors
    /// Those of `owner` and `metadata`.
    pub fn into_settings(self) -> Result<SessionSettings> {
        let metadata = self.metadata.map(|metadata| to_json(&metadata.0)).transpose()?;
        Ok(SessionSettings {
            title: self.title,
            channel: self.channel,
            metadata,
            owner: self.owner.map(OwnerOptions::into_owner).transpose()?,
            on_conflict: self.on_conflict.map(|option| option.0),
            persistence: self.persistence.map(|option| option.0),
            trim_trailing_results: self.trim_trailing_results,
            flush_ms: self.flush_ms.map(|option| option.0),
            replay: self.replay.map(Into::into),
            on_stop: self.on_stop.map(|option| option.0),
        })
    }
}

/// The kinds of owners.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    Session,
    Caller,
    Conversation,
    Response,
}

/// `owner`. JavaScript may pass members of several kinds, of which the conversion takes those of one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OwnerOptions {
    kind: OwnerKindOption,
    conversation_id: Option<String>,
    previous_response_id: Option<String>,
    auto: Option<bool>,
}

impl OwnerOptions {
    /// Converts the option.
    ///
    /// # Errors
    /// `state_owner_conflict` for a member of another kind, `config_invalid` for a missing one.
    pub fn into_owner(self) -> Result<StateOwner> {
        let kind = self.kind.0;
        let is_chain = self.previous_response_id.is_some() || self.auto == Some(true);
        if self.conversation_id.is_some() && kind != OwnerKind::Conversation || is_chain && kind != OwnerKind::Response
        {
            return Err(Error::new(
                ErrorCode::StateOwnerConflict,
                "`owner` names a second owner: `conversationId` belongs to the kind \"conversation\", `previousResponseId` and `auto` to \"response\"; pass those of one kind",
            ));
        }
        let is_empty = |id: &Option<String>| id.as_deref() == Some("");
        if is_empty(&self.conversation_id) || is_empty(&self.previous_response_id) {
            return Err(Error::config("an id in `owner` is empty; pass the one that the service gave"));
        }
        match kind {
            OwnerKind::Session => Ok(StateOwner::Session),
            OwnerKind::Caller => Ok(StateOwner::Caller),
            OwnerKind::Conversation => match self.conversation_id {
                Some(id) => Ok(StateOwner::Conversation { id }),
                None => Err(Error::config(
                    "`owner.conversationId` is missing; pass the id that the service gave the conversation",
                )),
            },
            OwnerKind::Response if is_chain => Ok(StateOwner::Response { previous: self.previous_response_id }),
            OwnerKind::Response => {
                Err(Error::config("`owner` has neither `previousResponseId` nor `auto: true`; pass one of them"))
            }
        }
    }
}

/// A replay policy: the settings of one level. Absent ones inherit.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ReplayOptions {
    freshness: Option<WindowOption>,
    tool_freshness: Option<OptionEntries<Option<WindowOption>>>,
    error_freshness: Option<WindowOption>,
    on_stale: Option<OnStaleOption>,
    stale_unit: Option<StaleUnitOption>,
    dangling_calls: Option<DanglingCallsOption>,
    citations: Option<CitationsOption>,
    reducers: Option<Vec<ReducerOptions>>,
    unbound_reasoning: Option<UnboundReasoningOption>,
    same_makers: Option<Vec<HostGroupOption>>,
    changes: Option<ChangesOption>,
}

impl From<ReplayOptions> for PolicyLayer {
    fn from(options: ReplayOptions) -> Self {
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
pub fn channel_layers(channels: Option<OptionEntries<Option<ReplayOptions>>>) -> Vec<(String, PolicyLayer)> {
    let layer =
        |(channel, options): (String, Option<ReplayOptions>)| (channel, options.map(Into::into).unwrap_or_default());
    channels.unwrap_or_default().0.into_iter().map(layer).collect()
}

/// The fields of `Session.update`: absent keeps, null clears.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateFields {
    #[serde(deserialize_with = "given")]
    pub title: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    pub channel: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    pub metadata: Option<Option<UnreadValue>>,
}

/// Reads an option that differs when it is absent and when it is null.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The options of `Session.discard`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscardOptions {
    pub keep: bool,
}

/// The options of `Rethread.restore` and `Rethread.importSession`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RestoreOptions {
    pub id: Option<String>,
}

/// The options of `Session.external`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalOptions {
    pub persistence: Option<PersistenceOption>,
}

/// The options of `Session.messages`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagePageOptions {
    pub limit: Option<u64>,
    pub cursor: Option<String>,
    pub branch: Option<String>,
}

/// The query of `Rethread.sessions`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionQuery {
    pub channel: Option<String>,
    pub limit: Option<AtLeastOne>,
    pub cursor: Option<String>,
}

/// The query of `Rethread.pendingRuns`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PendingRunQuery {
    pub session: Option<String>,
}

/// The query of `invocations`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct InvocationQuery {
    pub session: Option<String>,
    pub message_id: Option<String>,
    pub tool: Option<String>,
    pub status: Option<InvocationStatusOption>,
    pub channel: Option<String>,
    pub since: Option<u64>,
    pub until: Option<u64>,
    pub payload: Option<bool>,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
}

/// `status` of an invocation query.
pub struct InvocationStatusOption(pub crate::tool::InvocationStatus);

impl<'de> Deserialize<'de> for InvocationStatusOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let status = crate::tool::InvocationStatus::ALL.into_iter().find(|status| status.as_str() == name);
        status.map(Self).ok_or_else(|| D::Error::custom(format!("\"{name}\" is no status of an invocation")))
    }
}

/// Reads the options of `open`.
///
/// # Errors
/// `config_invalid`.
pub fn open_options(value: &JsValue) -> Result<OpenOptions> {
    let options: OpenOptions = read_options("the argument of `open`", value)?;
    if options.name.as_deref() == Some("") {
        return Err(Error::config("`name` is the database's name; it cannot be empty"));
    }
    Ok(options)
}
