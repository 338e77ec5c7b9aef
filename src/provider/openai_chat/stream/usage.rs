//! Token counts under the names of OpenAI's endpoints and of compatible servers.

use crate::json::JsonRef;
use crate::message::Usage;
use crate::provider::stream::inside;

/// Reads a `usage` object of Chat Completions (`prompt_tokens`) or Responses (`input_tokens`); none if it has neither
/// input nor output tokens.
pub(crate) fn read_usage(usage: JsonRef<'_>) -> Option<Usage> {
    let (mut input, mut output, mut found) = (None, None, Usage::default());
    for (key, value) in usage.entries() {
        match inside(key).unwrap_or_default() {
            "prompt_tokens" | "input_tokens" => input = value.as_u64().or(input),
            "completion_tokens" | "output_tokens" => output = value.as_u64().or(output),
            "prompt_tokens_details" | "input_tokens_details" => {
                found.cached_input = value.get("cached_tokens").and_then(JsonRef::as_u64).or(found.cached_input);
                found.cache_write = value.get("cache_write_tokens").and_then(JsonRef::as_u64).or(found.cache_write);
            }
            "completion_tokens_details" | "output_tokens_details" => {
                found.reasoning = value.get("reasoning_tokens").and_then(JsonRef::as_u64).or(found.reasoning);
            }
            // The names of cached input tokens at DeepSeek, Moonshot and Mistral.
            "prompt_cache_hit_tokens" | "cached_tokens" | "num_cached_tokens" => {
                found.cached_input = found.cached_input.or(value.as_u64());
            }
            _ => {}
        }
    }
    input.or(output)?;
    Some(Usage { input: input.unwrap_or(0), output: output.unwrap_or(0), ..found })
}

/// Reads the counts of Ollama's own API, which are members of the chunk.
pub(super) fn read_ollama_usage(chunk: JsonRef<'_>) -> Option<Usage> {
    let count = |name| chunk.get(name).and_then(JsonRef::as_u64);
    Some(Usage { input: count("prompt_eval_count")?, output: count("eval_count")?, ..Usage::default() })
}
