//! Where Gemini has the settings of a request: in one member, under names of its own.

use crate::finding::{Action, Finding, Report};
use crate::json::{JsonRef, Kind, ObjectWriter};

/// The member, and its name in snake case.
pub const CONFIG: [&str; 2] = ["generationConfig", "generation_config"];

/// Settings of other dialects, and what they are called in `generationConfig`.
pub const SETTINGS: [(&str, &str); 13] = [
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("max_completion_tokens", "maxOutputTokens"),
    ("max_output_tokens", "maxOutputTokens"),
    ("max_tokens", "maxOutputTokens"),
    ("stop_sequences", "stopSequences"),
    ("stop", "stopSequences"),
    ("n", "candidateCount"),
    ("seed", "seed"),
    ("random_seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
];

/// Whether a parameter goes into `generationConfig`, or is it.
pub fn gathers(name: &str) -> bool {
    CONFIG.contains(&name) || name == "response_format" || SETTINGS.iter().any(|(own, _)| *own == name)
}

/// Writes `generationConfig` from the parameters: what it says itself, then what other dialects' words say beside that.
pub fn write(params: JsonRef<'_>, object: &mut ObjectWriter<'_>, report: &mut Report) {
    let given = CONFIG.iter().find_map(|name| params.find(name)).filter(|given| given.is_object());
    let found = SETTINGS.iter().filter_map(|(name, own)| Some((*own, params.find(name)?)));
    let format = params.find("response_format");
    if given.is_none() && format.is_none() && found.clone().next().is_none() {
        return;
    }
    object.object(CONFIG[0], |config| {
        let mut said: Vec<&str> = Vec::new();
        for (key, value) in given.iter().flat_map(|given| given.entries()) {
            config.key_token(key.as_raw()).push_str(value.as_raw());
        }
        let mut fresh = |name: &'static str| {
            let first = !said.contains(&name) && given.is_none_or(|given| given.get(name).is_none());
            said.push(name);
            first
        };
        for (name, value) in found {
            if !fresh(name) {
                continue;
            }
            match value.kind() {
                Kind::String if name == "stopSequences" => {
                    _ = config.array(name, |list| list.item().push_str(value.as_raw()))
                }
                _ => _ = config.json(name, value),
            }
        }
        let Some(format) = format else { return };
        let schema = format.get("json_schema").and_then(|format| format.get("schema")).or_else(|| format.get("schema"));
        match format.text("type").as_deref() {
            Some("json_object" | "json_schema") => {
                if fresh("responseMimeType") {
                    config.text("responseMimeType", "application/json");
                }
                if let Some(schema) = schema.filter(|schema| schema.is_object() && fresh("responseJsonSchema")) {
                    config.json("responseJsonSchema", schema);
                }
            }
            Some("text") => {}
            _ => report.push(
                Finding::info(
                    "unsupported_key",
                    "`response_format` is of a kind that Gemini has no word for; it is left out",
                )
                .did(Action::Dropped),
            ),
        }
    });
}
