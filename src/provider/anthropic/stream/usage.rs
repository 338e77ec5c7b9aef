//! Token counts of an Anthropic response.

use crate::json::JsonRef;
use crate::message::Usage;
use crate::provider::stream::inside;

/// The latest token counts of a response, split as Anthropic splits them. An event may repeat some of them and omit
/// others.
#[derive(Default)]
pub(super) struct AnthropicUsage {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    thinking: Option<u64>,
}

impl AnthropicUsage {
    /// Merges a `usage` object: counts that it contains replace earlier ones.
    pub(super) fn merge(&mut self, usage: JsonRef<'_>) {
        for (key, value) in usage.entries() {
            let count = match inside(key).unwrap_or_default() {
                "input_tokens" => &mut self.input,
                "output_tokens" => &mut self.output,
                "cache_read_input_tokens" => &mut self.cache_read,
                "cache_creation_input_tokens" => &mut self.cache_write,
                "output_tokens_details" => {
                    self.thinking = value.get("thinking_tokens").and_then(JsonRef::as_u64).or(self.thinking);
                    continue;
                }
                _ => continue,
            };
            *count = value.as_u64().or(*count);
        }
    }

    /// Returns the neutral counts, or `None` if neither input nor output tokens were counted. Anthropic's
    /// `input_tokens` excludes cached tokens; the neutral input count includes them.
    pub(super) fn total(&self) -> Option<Usage> {
        self.input.or(self.output)?;
        let input_parts = [self.input, self.cache_read, self.cache_write];
        Some(Usage {
            input: input_parts.into_iter().flatten().fold(0, u64::saturating_add),
            output: self.output.unwrap_or(0),
            cached_input: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.thinking,
        })
    }
}
