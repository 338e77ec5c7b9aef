//! Where each dialect keeps what every model may be told beside the messages: one table.

use crate::json::{JsonRef, ObjectWriter};
use crate::message::Dialect;
use std::borrow::Cow;

/// One parameter, by its place in the body of each dialect, in the order of [`Dialect::ALL`]: OpenAI chat, OpenAI Responses,
/// Anthropic, Gemini, Mistral. `a.b` is the member `b` of the object `a`; an empty place: the dialect has none.
type Row = [&'static str; 5];

/// Where Anthropic says that tools are to be called one at a time. Elsewhere it is the opposite that is said.
pub const NO_PARALLEL: &str = "tool_choice.disable_parallel_tool_use";

/// From the providers' references. What is not here has a meaning of its own in its dialect, or other values.
const TABLE: &[Row] = &[
    ["model", "model", "model", "", "model"],
    ["stream", "stream", "stream", "", "stream"],
    ["max_completion_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens", "max_tokens"],
    // The older name, which servers that are nearly OpenAI know alone.
    ["max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens", "max_tokens"],
    ["temperature", "temperature", "temperature", "generationConfig.temperature", "temperature"],
    ["top_p", "top_p", "top_p", "generationConfig.topP", "top_p"],
    ["", "", "top_k", "generationConfig.topK", ""],
    ["stop", "", "stop_sequences", "generationConfig.stopSequences", "stop"],
    ["seed", "", "", "generationConfig.seed", "random_seed"],
    ["frequency_penalty", "", "", "generationConfig.frequencyPenalty", "frequency_penalty"],
    ["presence_penalty", "", "", "generationConfig.presencePenalty", "presence_penalty"],
    ["n", "", "", "generationConfig.candidateCount", "n"],
    ["parallel_tool_calls", "parallel_tool_calls", "", "", "parallel_tool_calls"],
    // One way: there it is part of the choice, which is translated as a whole.
    ["parallel_tool_calls", "parallel_tool_calls", NO_PARALLEL, "", "parallel_tool_calls"],
    ["response_format", "text.format", "", "", "response_format"],
    ["reasoning_effort", "reasoning.effort", "", "", "reasoning_effort"],
    ["verbosity", "text.verbosity", "", "", ""],
    ["user", "user", "", "", ""],
    ["metadata", "metadata", "", "", "metadata"],
    ["prediction", "", "", "", "prediction"],
    ["store", "store", "", "", ""],
    ["service_tier", "service_tier", "", "", ""],
    ["prompt_cache_key", "prompt_cache_key", "", "", "prompt_cache_key"],
    ["safety_identifier", "safety_identifier", "", "", ""],
    ["top_logprobs", "top_logprobs", "", "", ""],
];

/// Where the parameter that stands at `place` in one dialect stands in another; none where it has no place there.
#[must_use]
pub fn place_in(from: Dialect, place: &str, to: Dialect) -> Option<&'static str> {
    let place = &*spelled(from, place);
    let column = |row: &'static Row, dialect: Dialect| row.get(dialect as usize).copied().unwrap_or("");
    let row = TABLE.iter().find(|row| column(row, from) == place && !place.is_empty())?;
    Some(column(row, to)).filter(|place| !place.is_empty())
}

/// Whether a member of that name holds parameters of that dialect, as an object.
#[must_use]
pub fn is_group(dialect: Dialect, name: &str) -> bool {
    let name = &*spelled(dialect, name);
    TABLE.iter().filter_map(|row| row.get(dialect as usize)?.split_once('.')).any(|(group, _)| group == name)
}

/// A name as the table has it: Gemini reads names in snake case, too.
pub(crate) fn spelled(dialect: Dialect, name: &str) -> Cow<'_, str> {
    if dialect != Dialect::Gemini {
        return Cow::Borrowed(name);
    }
    let (mut out, mut upper) = (String::new(), false);
    for c in name.chars() {
        if c == '_' {
            upper = true;
        } else {
            out.push(if std::mem::take(&mut upper) { c.to_ascii_uppercase() } else { c });
        }
    }
    Cow::Owned(out)
}

/// A parameter's value where it is told otherwise: Anthropic and Gemini take a list of stop sequences only; OpenAI Responses
/// has the members of a schema beside its type, where others have them in an object of their own.
#[must_use]
pub fn value_in(place: &str, value: JsonRef<'_>) -> String {
    let wants_list = place.ends_with("stop_sequences") || place.ends_with("stopSequences");
    if wants_list && value.as_json_str().is_some() {
        return format!("[{}]", value.as_raw());
    }
    let inner = value.get("json_schema").filter(|schema| schema.is_object());
    if !value.says("type", "json_schema") || inner.is_some() != (place == "text.format") {
        return value.as_raw().to_owned();
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("type", "json_schema");
    match inner {
        Some(inner) => object.copy_all(inner, ""),
        None => {
            let mut inner = ObjectWriter::new(object.key("json_schema"));
            inner.copy_all(value, "type");
            inner.end();
        }
    }
    object.end();
    out
}
