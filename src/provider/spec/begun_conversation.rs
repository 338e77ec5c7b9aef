//! Conversations that begin with a request, and that later requests continue at an address of their own.

/// How requests begin a conversation at a service, and continue it at its address. A body names the conversation in the
/// service's member for one until it is sent.
pub(crate) struct BegunConversation {
    /// Returns the address of the requests that continue a conversation, from that of those that begin one; `None` for
    /// an id that could name another address.
    pub address: fn(&str, &str) -> Option<String>,
    /// The members of the first request that change no answer. Later ones do not have them.
    pub labels: &'static [&'static str],
}
