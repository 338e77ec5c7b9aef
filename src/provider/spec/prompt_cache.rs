//! What a provider caches of requests.

use crate::clock::Ms;
use crate::json::JsonRef;

/// How long providers keep what they have cached of a request, where nothing else is asked for: Anthropic five minutes
/// after it was last used (docs.claude.com, "Prompt caching"), OpenAI and Azure five to ten ("Prompt caching" of both);
/// Google, Mistral and DeepSeek name no time. Read in November 2026.
pub(crate) const SHORT_CACHE_LIFE: Ms = 300_000;

/// The parameter of OpenAI's APIs that says how long they keep what they have cached of a request.
pub(crate) const CACHE_RETENTION: &str = "prompt_cache_retention";

/// Returns how long OpenAI's APIs keep what they have cached of a request with these parameters.
pub(crate) fn retained_cache_life(params: JsonRef<'_>) -> Ms {
    if params.has_text(CACHE_RETENTION, "24h") { 86_400_000 } else { SHORT_CACHE_LIFE }
}

/// The limit of cache breakpoints: members of blocks that tell the provider to cache the body up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheBreakpoints {
    /// The member with its quotes: `"cache_control"`.
    pub member: &'static str,
    /// The most that a body may have.
    pub limit: usize,
}

/// How a provider caches the beginnings of requests.
pub(crate) struct PromptCache {
    /// The limit of cache breakpoints in a body; `None` if there are no breakpoints.
    pub breakpoints: Option<CacheBreakpoints>,
    /// Returns how long the provider keeps what it has cached of a request with these parameters after the last one
    /// that used it.
    pub life: fn(JsonRef<'_>) -> Ms,
}
