//! The error of the last read of a session, as long as no read succeeds (R7).

use crate::error::ErrorCode;
use crate::finding::Finding;

/// A read of a session that failed, until one succeeds.
#[derive(Clone)]
pub struct ReadError {
    pub code: ErrorCode,
    pub message: String,
    pub finding: Finding,
}
