//! Where a request is sent: to the address of the parameters, or to that of the conversation which it continues.

use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::provider::spec;
use crate::run::next_state::ModelRequest;
use crate::run::turn::RunData;
use std::rc::Rc;

/// A request as the host sends it.
pub(super) struct AddressedRequest {
    pub url: String,
    pub body: Rc<Vec<u8>>,
    /// The conversation that the address names.
    pub conversation: Option<String>,
}

impl AddressedRequest {
    /// Takes the conversation that a body names into the address, where the service wants it there.
    ///
    /// # Errors
    /// `config_invalid` for an id that cannot be a part of the address.
    pub fn new(turn: &RunData, request: &ModelRequest) -> Result<Self> {
        let provider = &turn.setup().provider;
        let unchanged = Self { url: provider.url.clone(), body: request.body.clone(), conversation: None };
        let spec = spec(provider.dialect);
        let is_addressed = spec.begins_conversations() && turn.setup().owner.is_conversation();
        let Some(service) = spec.service_state.as_ref().filter(|_| is_addressed) else {
            return Ok(unchanged);
        };
        let body = std::str::from_utf8(&request.body).ok().and_then(|text| Json::parse(text).ok());
        let body = body.ok_or_else(|| Error::new(ErrorCode::Internal, "the composed body is not JSON"))?;
        let Some((url, sent)) = service.at_own_address(&provider.url, body.view())? else { return Ok(unchanged) };
        let conversation = service.addressed(body.view());
        Ok(Self { url, body: Rc::new(sent.as_str().as_bytes().to_vec()), conversation })
    }
}
