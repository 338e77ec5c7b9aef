//! Token counts of a Gemini response.

use crate::json::JsonRef;
use crate::message::Usage;
use crate::provider::stream::inside;

/// The latest token counts of a response, split as Gemini splits them.
#[derive(Default)]
pub(super) struct GeminiUsage {
    prompt: Option<u64>,
    tool_prompt: Option<u64>,
    output: Option<u64>,
    thoughts: Option<u64>,
    cached: Option<u64>,
}

impl GeminiUsage {
    /// Merges a `usageMetadata` object: counts that it contains replace earlier ones. One with a `promptTokenCount`
    /// replaces them all: each step of Gemini's own tools is counted afresh, and omits the counts that it does not
    /// have.
    pub(super) fn merge(&mut self, usage: JsonRef<'_>) {
        if usage.find("promptTokenCount").is_some() {
            *self = Self::default();
        }
        for (key, value) in usage.entries() {
            let count = match inside(key).unwrap_or_default() {
                "promptTokenCount" => &mut self.prompt,
                "toolUsePromptTokenCount" => &mut self.tool_prompt,
                "candidatesTokenCount" => &mut self.output,
                "thoughtsTokenCount" => &mut self.thoughts,
                "cachedContentTokenCount" => &mut self.cached,
                _ => continue,
            };
            *count = value.as_u64().or(*count);
        }
    }

    /// Returns the neutral counts, or `None` if neither prompt nor output tokens were counted. Gemini's
    /// `promptTokenCount` includes cached tokens; its `candidatesTokenCount` excludes thoughts.
    pub(super) fn total(&self) -> Option<Usage> {
        self.prompt.or(self.output)?;
        let add = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
        Some(Usage {
            input: add(self.prompt, self.tool_prompt),
            output: add(self.output, self.thoughts),
            cached_input: self.cached,
            cache_write: None,
            reasoning: self.thoughts,
        })
    }
}
