//! Receives the bytes of a model's response and enforces their limit (R62).

use super::context::RunContext;
use super::event::RunEvent;
use super::model_call::ModelResponse;
use super::state::{Run, RunState, wrong_state};
use crate::error::{Error, ErrorCode, Result};

/// The default limit of a response, in bytes.
pub const DEFAULT_MAX_RESPONSE_BYTES: u64 = 32 * 1024 * 1024;

/// The highest limit that a run may set, in bytes: decoding a response takes several times its size, and wasm has 4 GB.
pub const HIGHEST_MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

impl Run {
    /// Returns the highest number of bytes of a response.
    #[must_use]
    pub fn max_response_bytes(&self) -> u64 {
        self.setup.max_response_bytes
    }

    /// Handles bytes of a response. Bytes of a call that is answered already change nothing.
    pub(super) fn take_bytes(&mut self, effect: &str, bytes: &[u8], context: &mut RunContext<'_>) -> Result<()> {
        if !self.is_open(effect)? {
            return Ok(());
        }
        let limit = self.setup.max_response_bytes;
        let RunState::AwaitingModel(call) = &mut self.state else {
            return Err(wrong_state("this effect takes no bytes; feed them to a `call_model`"));
        };
        if matches!(call.response, ModelResponse::None) {
            return Err(wrong_state("`response_started` comes before the bytes"));
        }
        call.received = call.received.saturating_add(bytes.len() as u64);
        if call.received > limit {
            self.response_too_large(context);
            return Ok(());
        }
        match &mut call.response {
            ModelResponse::None => {}
            ModelResponse::Whole { body, .. } => body.extend_from_slice(bytes),
            ModelResponse::Streaming(assembler) => {
                let mut events = Vec::new();
                assembler.push(bytes, &mut events);
                for event in events {
                    let event = self.credential_filter.redact_event(event);
                    self.events.push(RunEvent::Stream { message_id: call.message_id.clone(), event });
                }
            }
        }
        Ok(())
    }

    /// Handles the host's report that a response has more bytes than the run allows.
    pub(super) fn take_oversize(&mut self, effect: &str, context: &mut RunContext<'_>) -> Result<()> {
        if self.is_open(effect)? {
            let RunState::AwaitingModel(_) = &self.state else {
                return Err(wrong_state("this effect has no response; only a `call_model` has one"));
            };
            self.response_too_large(context);
        }
        Ok(())
    }

    /// Fails the run without a retry, since the response to the same request would be too large again.
    pub(super) fn response_too_large(&mut self, context: &mut RunContext<'_>) {
        let limit = self.setup.max_response_bytes;
        let message = format!(
            "the provider's response is too large: it has more than {limit} bytes (`maxResponseBytes`) or more items than fit into memory"
        );
        let error = Error::new(ErrorCode::TooLarge, message).with(|details| {
            details.number("maxResponseBytes", limit);
        });
        self.call_failed(error, None, false, context);
    }
}

/// Returns the value of the `content-length` header.
pub(super) fn declared_length(headers: &[(String, String)]) -> Option<u64> {
    let (_, length) = headers.iter().find(|(name, _)| name == "content-length")?;
    length.trim().parse().ok()
}
