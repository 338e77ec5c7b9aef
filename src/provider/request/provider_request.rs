//! The provider of a request, and everything but the messages and tools.

use super::settings::Settings;
use crate::json::Json;
use crate::message::Dialect;

/// The provider to call, and the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRequest {
    /// The wire format.
    pub dialect: Dialect,
    /// The URL, without credentials.
    pub url: String,
    /// Members that are merged into the body.
    pub params: Json,
    /// True to request a stream.
    pub stream: bool,
    /// Headers without credentials.
    pub headers: Vec<(String, String)>,
    /// How the server differs from the dialect.
    pub settings: Settings,
}
