//! Reads JSON that the host passed.

use crate::error::{Error, ErrorCode, Result};
use crate::json::{Json, fits_memory};

/// Reads bytes as JSON. `what` names them.
///
/// # Errors
/// `invalid_input` for what is no UTF-8 or no JSON; `too_large` for what would not fit into the memory.
pub fn json_of_bytes(what: &str, bytes: Vec<u8>) -> Result<Json> {
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::invalid(format!("{what} is not UTF-8 (at byte {})", error.utf8_error().valid_up_to()))
    })?;
    json_of_text(what, &text)
}

/// Reads a text as JSON. `what` names it.
///
/// # Errors
/// As [`json_of_bytes`].
pub fn json_of_text(what: &str, text: &str) -> Result<Json> {
    if !fits_memory(text.as_bytes()) {
        return Err(Error::new(ErrorCode::TooLarge, format!("{what} is too large for the memory of this instance")));
    }
    Json::parse(text).map_err(|error| Error::invalid(format!("{what} is not valid JSON (at byte {})", error.at)))
}
