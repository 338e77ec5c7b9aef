//! The options of opening a store, opening a session and replaying history.

use super::option_reader::{BoundFunction, UnreadValue, read_options};
use super::run_input::JsOptions;
use crate::error::{Error, Result};
use crate::options::{AtLeastOne, MillisOption, OptionEntries, PersistenceOption, ReplayOptions, given, words};
use crate::session::OnExisting;
use crate::web::store::StoreTimeout;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
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
    DurabilityOption: crate::web::store::Durability {
        "relaxed" => crate::web::store::Durability::Relaxed,
        "strict" => crate::web::store::Durability::Strict,
    }
);
/// The options of `open`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenOptions {
    pub store: Option<StoreOption>,
    pub name: Option<String>,
    pub durability: Option<DurabilityOption>,
    pub lease_ms: Option<MillisOption<100, 86_400_000>>,
    pub store_timeout_ms: Option<MillisOption<10, 86_400_000>>,
    /// Null is no key: it is refused, so that nothing is written in the open by mistake.
    #[serde(deserialize_with = "given")]
    pub encryption: Option<Option<UnreadValue>>,
    pub replay: Option<ReplayOptions<JsOptions>>,
    pub channels: Option<OptionEntries<Option<ReplayOptions<JsOptions>>>>,
    pub title_session: Option<BoundFunction>,
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

/// The options of `Rethread.copy`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyOptions {
    pub until: Option<String>,
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

/// The query of `Rethread.sessions`, and the options of `Rethread.search`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionQuery {
    pub channel: Option<String>,
    pub archived: ArchivedOption,
    pub limit: Option<AtLeastOne>,
    pub cursor: Option<String>,
}

/// Which sessions to list: those that are archived, those that are not, or all.
#[derive(Clone, Copy)]
pub struct ArchivedOption(pub Option<bool>);

impl Default for ArchivedOption {
    fn default() -> Self {
        Self(Some(false))
    }
}

impl<'de> Deserialize<'de> for ArchivedOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let UnreadValue(value) = UnreadValue::deserialize(deserializer)?;
        match (value.as_bool(), value.as_string().as_deref()) {
            (Some(archived), _) => Ok(Self(Some(archived))),
            (None, Some("all")) => Ok(Self(None)),
            _ => Err(D::Error::custom("`archived` must be true, false or \"all\"")),
        }
    }
}

/// The options of `Rethread.backup`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackupOptions {
    pub after: Option<String>,
}

words!(
    /// `onExisting`.
    OnExistingOption: OnExisting {
        "skip" => OnExisting::Skip,
        "replace" => OnExisting::Replace,
        "copy" => OnExisting::Copy,
    }
);

/// The options of `Rethread.restoreBackup`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RestoreBackupOptions {
    pub on_existing: Option<OnExistingOption>,
}

/// The query of `Rethread.pendingRuns`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PendingRunQuery {
    pub session: Option<String>,
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
