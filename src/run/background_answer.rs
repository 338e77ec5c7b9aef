//! An answer on which the service works in the background, as a journal has it (R18).

use crate::clock::Ms;
use crate::encoding::encode_fields;
use crate::message::{Dialect, KeptHead, PrefixMark};
use crate::provider::ProviderRequest;

/// An answer on which the service works when nobody reads it, with what its message needs of the request: a process
/// that picks it up does not build the request again.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct BackgroundAnswer {
    /// The id that the service gave it.
    pub response: String,
    /// The number of model calls that the turn's journal had answered before.
    pub call: u32,
    pub dialect: Dialect,
    /// The address of the request.
    pub url: String,
    pub is_streamed: bool,
    pub asked_at: Ms,
    /// The `seq` after the last stored message when the request was built.
    pub until: u64,
    /// The ids of the messages that the application's filter held back.
    pub pending: Vec<String>,
    pub kept_head: Option<KeptHead>,
    pub prefix: Option<PrefixMark>,
    /// The invocations of the late results that ended the request.
    pub late_results: Vec<String>,
}
encode_fields!(struct BackgroundAnswer {
    0 => response: required,
    1 => call,
    2 => dialect: required,
    3 => url: required,
    4 => is_streamed,
    5 => asked_at,
    6 => until,
    7 => pending: list,
    8 => kept_head,
    9 => prefix,
    10 => late_results: list,
});

impl BackgroundAnswer {
    /// Returns true if the service of this provider has the answer. Its query may have changed, such as the version of
    /// the API.
    pub(super) fn is_of(&self, provider: &ProviderRequest) -> bool {
        let path = |url: &str| url.split(['?', '#']).next().map(|path| path.trim_end_matches('/').to_owned());
        self.dialect == provider.dialect && path(&self.url) == path(&provider.url)
    }
}
