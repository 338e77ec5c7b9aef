//! The small results of public methods, as structs that serde converts to JavaScript objects.
//!
//! Messages, events and audit rows are many, and are written as JSON instead.

use crate::error::Error;
use crate::owner::StateOwner;
use crate::session::SessionChange;
use crate::session::{CompactionOutcome, Pruned, PrunedSession, Rotated};
use crate::session_head::Preview;
use crate::store::{ErasureReceipt, Unreached};
use serde::Serialize;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

/// Converts a result. An absent field is null, as the public types say.
pub fn result_to_js(result: &impl Serialize) -> JsValue {
    // Nothing below can fail to serialize.
    result.serialize(&Serializer::json_compatible()).unwrap_or(JsValue::NULL)
}

/// Writes a number that may be above 2^53, as a damaged head or an application's clock may have it.
fn number<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    #[allow(clippy::cast_precision_loss)]
    serializer.serialize_f64(*number as f64)
}

/// The result of `Session.append`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppendResult {
    #[serde(serialize_with = "number")]
    pub revision: u64,
    pub message_ids: Vec<String>,
}

/// The result of `Session.answer` and `Session.refresh`.
#[derive(Serialize)]
pub struct RevisionResult {
    #[serde(serialize_with = "number")]
    pub revision: u64,
}

/// The result of `Session.compact`.
#[derive(Serialize)]
pub struct CompactResult {
    pub compacted: bool,
    pub reason: &'static str,
}

impl From<CompactionOutcome> for CompactResult {
    fn from(outcome: CompactionOutcome) -> Self {
        let (compacted, reason) = outcome.described();
        Self { compacted, reason }
    }
}

/// `Session.fork`.
#[derive(Serialize)]
pub struct ForkResult {
    pub branch: String,
}

/// The result of `Session.deleteMessages`.
#[derive(Serialize)]
pub struct ErasureResult {
    pub messages: Vec<String>,
    #[serde(serialize_with = "number")]
    pub invocations: u64,
    pub records: Vec<ErasedRecords>,
    #[serde(serialize_with = "number")]
    pub bytes: u64,
    pub unreached: Vec<UnreachedPlace>,
}

/// An item of `ErasureReceipt.records`.
#[derive(Serialize)]
pub struct ErasedRecords {
    pub table: &'static str,
    #[serde(serialize_with = "number")]
    pub count: u64,
}

/// An item of `ErasureReceipt.unreached`.
#[derive(Serialize)]
pub struct UnreachedPlace {
    pub what: &'static str,
    pub why: String,
}

impl From<ErasureReceipt> for ErasureResult {
    fn from(receipt: ErasureReceipt) -> Self {
        let ErasureReceipt { messages, invocations, records, bytes, unreached } = receipt;
        let records = records.into_iter().map(|(table, count)| ErasedRecords { table, count }).collect();
        let unreached = unreached.into_iter().map(|Unreached { what, why }| UnreachedPlace { what, why }).collect();
        Self { messages, invocations, records, bytes, unreached }
    }
}

/// An item of `Session.branches`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchResult {
    pub branch: String,
    pub kind: &'static str,
    pub parent: Option<String>,
    pub forked_after: Option<String>,
    #[serde(serialize_with = "number")]
    pub created_at: u64,
    #[serde(serialize_with = "number")]
    pub message_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// `Session.owner`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerResult {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_lost: Option<&'static str>,
}

impl From<StateOwner> for OwnerResult {
    fn from(owner: StateOwner) -> Self {
        let kind = owner.kind();
        let on_lost = owner.fails_if_lost().then_some("fail");
        let result = Self { kind, conversation_id: None, previous_response_id: None, auto: None, on_lost };
        match owner {
            StateOwner::Session | StateOwner::Caller => result,
            StateOwner::Conversation { id } => Self { conversation_id: Some(id), ..result },
            StateOwner::BegunConversation { .. } | StateOwner::Response { previous: None, .. } => {
                Self { auto: Some(true), ..result }
            }
            StateOwner::Response { previous, .. } => Self { previous_response_id: previous, ..result },
        }
    }
}

/// The result of `Rethread.status`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    pub store: &'static str,
    pub persisted: Option<bool>,
    pub usage_bytes: Option<u64>,
    pub quota_bytes: Option<u64>,
    pub state: &'static str,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    pub findings: JsValue,
}

/// The result of `Rethread.restoreBackup`.
#[derive(Serialize)]
pub struct RestoredBackupResult {
    #[serde(serialize_with = "number")]
    pub sessions: u64,
    #[serde(serialize_with = "number")]
    pub skipped: u64,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    pub report: JsValue,
}

/// The result of `Rethread.sessions`.
#[derive(Serialize)]
pub struct SessionPage {
    pub items: Vec<SessionSummary>,
    pub cursor: Option<String>,
}

/// A session in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub id: String,
    pub channel: Option<String>,
    pub title: Option<String>,
    #[serde(serialize_with = "number")]
    pub created_at: u64,
    #[serde(serialize_with = "number")]
    pub updated_at: u64,
    #[serde(serialize_with = "number")]
    pub revision: u64,
    #[serde(serialize_with = "number")]
    pub message_count: u64,
    pub preview: Option<PreviewResult>,
    #[serde(serialize_with = "number")]
    pub unread: u64,
    #[serde(serialize_with = "number")]
    pub pending_runs: u64,
    #[serde(serialize_with = "number")]
    pub pending_approvals: u64,
    pub archived: bool,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    pub metadata: JsValue,
}

/// The result of `Rethread.prune`.
#[derive(Serialize)]
pub struct PruneResult {
    #[serde(serialize_with = "number")]
    pub removed: u64,
    pub sessions: Vec<PrunedSessionResult>,
    pub failed: Vec<FailedSession>,
}

/// An item of `PruneResult.sessions`.
#[derive(Serialize)]
pub struct PrunedSessionResult {
    pub session: String,
    #[serde(serialize_with = "number")]
    pub removed: u64,
    #[serde(serialize_with = "number")]
    pub left: u64,
}

/// An item of `PruneResult.failed` and `RotationResult.failed`.
#[derive(Serialize)]
pub struct FailedSession {
    pub session: String,
    pub code: &'static str,
    pub message: String,
}

impl From<Pruned> for PruneResult {
    fn from(pruned: Pruned) -> Self {
        let Pruned { sessions, failed } = pruned;
        let removed = sessions.iter().map(|session| session.removed).sum();
        let sessions = sessions.into_iter();
        let failed = failed.into_iter();
        Self {
            removed,
            sessions: sessions
                .map(|PrunedSession { id, removed, left }| PrunedSessionResult { session: id, removed, left })
                .collect(),
            failed: failed.map(FailedSession::from).collect(),
        }
    }
}

impl From<(String, Error)> for FailedSession {
    fn from((session, error): (String, Error)) -> Self {
        let code = error.code.as_str();
        Self { session, code, message: error.into_message() }
    }
}

/// The result of `Rethread.rotateKeys`.
#[derive(Serialize)]
pub struct RotationResult {
    #[serde(serialize_with = "number")]
    pub rotated: u64,
    pub failed: Vec<FailedSession>,
}

impl From<Rotated> for RotationResult {
    fn from(Rotated { rotated, failed }: Rotated) -> Self {
        Self { rotated, failed: failed.into_iter().map(FailedSession::from).collect() }
    }
}

/// The result of `Rethread.search`.
#[derive(Serialize)]
pub struct HitPage {
    pub items: Vec<SearchHitResult>,
    pub cursor: Option<String>,
}

/// A session that a search found.
#[derive(Serialize)]
pub struct SearchHitResult {
    pub session: SessionSummary,
    pub title: Option<ExcerptResult>,
    pub messages: Vec<MessageExcerptResult>,
}

/// A part of a title.
#[derive(Serialize)]
pub struct ExcerptResult {
    pub text: String,
    pub ranges: Vec<(usize, usize)>,
}

/// A part of a message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageExcerptResult {
    pub message_id: String,
    pub role: &'static str,
    pub text: String,
    pub ranges: Vec<(usize, usize)>,
}

/// `SessionSummary.preview`.
#[derive(Serialize)]
pub struct PreviewResult {
    pub role: &'static str,
    pub text: String,
}

impl From<Preview> for PreviewResult {
    fn from(preview: Preview) -> Self {
        Self { role: preview.role(), text: preview.text }
    }
}

/// Returns a change of a session as listeners and other tabs get it.
pub fn change_to_js(change: &SessionChange<'_>) -> JsValue {
    let SessionChange { session, revision, is_deleted } = *change;
    result_to_js(&ChangeResult { session, revision, deleted: is_deleted.then_some(true) })
}

#[derive(Serialize)]
struct ChangeResult<'s> {
    session: &'s str,
    #[serde(serialize_with = "number")]
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
}
