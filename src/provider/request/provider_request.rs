//! What a provider is asked beside the messages: address, parameters, tool definitions.

use super::settings::Settings;
use crate::json::Json;
use crate::message::Dialect;

/// Where and how to call.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRequest {
    /// The wire format.
    pub dialect: Dialect,
    /// Without credentials.
    pub url: String,
    /// Merged into the body.
    pub params: Json,
    /// Whether to ask for a stream.
    pub stream: bool,
    /// Not secret.
    pub headers: Vec<(String, String)>,
    /// What the server wants otherwise.
    pub settings: Settings,
}
