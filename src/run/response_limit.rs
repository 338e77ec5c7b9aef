//! The limit of a model's response (R62).

use crate::error::{Error, ErrorCode};

/// The default limit of a response, in bytes.
pub const DEFAULT_MAX_RESPONSE_BYTES: u64 = 32 * 1024 * 1024;

/// The highest limit that a run may set, in bytes: decoding a response takes several times its size, and wasm has 4 GB.
pub const HIGHEST_MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

/// Returns the error of a response that exceeds `limit` bytes or the memory.
pub(super) fn response_too_large(limit: u64) -> Error {
    let message = format!(
        "the provider's response is too large: it has more than {limit} bytes (`maxResponseBytes`) or more items than fit into memory; \
         raise `maxResponseBytes` (at most 256 MiB) or request a shorter answer"
    );
    Error::new(ErrorCode::TooLarge, message).with(|details| {
        details.number("maxResponseBytes", limit);
    })
}

/// Returns the value of the `content-length` header.
pub(super) fn declared_length(headers: &[(String, String)]) -> Option<u64> {
    let (_, length) = headers.iter().find(|(name, _)| name == "content-length")?;
    length.trim().parse().ok()
}
