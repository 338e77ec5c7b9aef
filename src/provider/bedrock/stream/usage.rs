//! Token counts of a response.

use crate::json::JsonRef;
use crate::message::Usage;

/// Reads a `usage` object; `None` if it counts neither input nor output. `inputTokens` excludes cached tokens; the
/// neutral input count includes them.
pub(super) fn read(usage: Option<JsonRef<'_>>) -> Option<Usage> {
    let usage = usage?;
    let count = |name: &str| usage.get(name).and_then(JsonRef::as_u64);
    let (input, output) = (count("inputTokens"), count("outputTokens"));
    input.or(output)?;
    let (cached_input, cache_write) = (count("cacheReadInputTokens"), count("cacheWriteInputTokens"));
    Some(Usage {
        input: [input, cached_input, cache_write].into_iter().flatten().fold(0, u64::saturating_add),
        output: output.unwrap_or(0),
        cached_input,
        cache_write,
        reasoning: None,
    })
}
