//! Failures of IndexedDB, converted to an [`Error`].

use crate::error::{Error, ErrorCode};
use crate::web::conversion::untrusted_value::member;
use wasm_bindgen::JsValue;

/// A failure of IndexedDB.
#[derive(Clone, Debug)]
pub(super) struct IdbFailure {
    pub(super) error: Error,
    /// The connection is lost; on a new one the call may succeed.
    pub(super) lost: bool,
    /// A record exists at the key of one that was to be added.
    pub(super) occupied: bool,
}

impl IdbFailure {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// The failure of a transaction that ended before its script.
    pub(super) fn found_nothing() -> Self {
        Self::new(ErrorCode::Internal, "an IndexedDB transaction ended and found nothing")
    }

    /// The failure of an append whose place has a record.
    pub(super) fn occupied() -> Self {
        Self { occupied: true, ..Self::found_nothing() }
    }

    /// The failure of a transaction or a connection that the browser ended without a reason.
    pub(super) fn ended() -> Self {
        Self {
            error: Error::new(
                ErrorCode::StoreError,
                "the browser ended an IndexedDB transaction and did not say why; nothing was written",
            ),
            lost: true,
            occupied: false,
        }
    }

    /// The failure of a transaction, by its own error.
    pub(super) fn of_transaction(error: &JsValue) -> Self {
        // A call that throws may have the same name, but only a failed request ends its transaction with it.
        let occupied = member(error, "name").as_string().as_deref() == Some("ConstraintError");
        Self { occupied, ..error.clone().into() }
    }
}

impl From<Error> for IdbFailure {
    fn from(error: Error) -> Self {
        Self { error, lost: false, occupied: false }
    }
}

impl From<JsValue> for IdbFailure {
    /// Reads the error by name, not by class or number: `QuotaExceededError` has become a class of its own in some
    /// browsers.
    fn from(thrown: JsValue) -> Self {
        let text = |key: &str| member(&thrown, key).as_string().unwrap_or_default();
        let (name, message) = (text("name"), text("message"));
        let message_of_browser = if name.is_empty() {
            crate::web::conversion::untrusted_value::error_from_thrown(
                ErrorCode::StoreError,
                "IndexedDB failed",
                &thrown,
            )
            .into_message()
        } else {
            format!("IndexedDB: {name}: {message}")
        };
        let (code, help) = match name.as_str() {
            "QuotaExceededError" => (
                ErrorCode::QuotaExceeded,
                "; the browser's storage is full and nothing was written: delete sessions, or ask the user for more",
            ),
            "VersionError" => (
                ErrorCode::UnsupportedVersion,
                "; a newer version keeps its data in this database: reload to run that one",
            ),
            "SecurityError" => (
                ErrorCode::StoreError,
                "; this page may not store anything: a private window, blocked cookies, or a sandboxed frame",
            ),
            _ if message.contains("too large") => (ErrorCode::TooLarge, "; nothing was written"),
            _ => (ErrorCode::StoreError, ""),
        };
        // WebKit, when its storage process has crashed: "Connection to Indexed Database server lost".
        let lost =
            matches!(name.as_str(), "InvalidStateError" | "UnknownError" | "TransactionInactiveError" | "AbortError")
                || message.contains("server lost");
        Self {
            error: Error::new(code, message_of_browser + help),
            lost: lost && code == ErrorCode::StoreError,
            occupied: false,
        }
    }
}
