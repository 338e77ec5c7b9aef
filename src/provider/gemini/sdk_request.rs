//! Converts a request of Google's SDK (`GenerateContentParameters` of `@google/genai`) to the shape of the API. The SDK
//! has `{"model":…,"contents":"Hi","config":{"systemInstruction":"Be brief.","temperature":0}}` where the API has
//! `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"systemInstruction":{…},"generationConfig":{"temperature":0}}`.

use super::part::is_part;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};

/// Members of the SDK's `config` that are top-level members of the API's body.
const TOP_LEVEL: [&str; 9] = [
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "modelArmorConfig",
    "store",
];

/// Members of the SDK's `config` that the SDK uses itself and does not send.
const NOT_SENT: [&str; 5] =
    ["httpOptions", "abortSignal", "automaticFunctionCalling", "automaticContinuation", "shouldReturnHttpResponse"];

/// Converts a request of the SDK to the shape of the API. Returns `None` if it has that shape already.
pub(super) fn api_request(body: JsonRef<'_>) -> Option<Json> {
    let config = body.find("config").filter(|config| config.is_object());
    let contents = body.find("contents").filter(|contents| are_parts(*contents));
    if config.is_none() && contents.is_none() {
        return None;
    }
    let config = config.unwrap_or_default();
    Some(ObjectWriter::build(|object| {
        for (key, value) in body.entries() {
            match key.as_text().unwrap_or_default().as_ref() {
                "config" if value.is_object() => {}
                "generationConfig" if value.is_object() => {}
                "contents" if contents.is_some() => {
                    object.array("contents", |list| {
                        list.object(|content| write_parts(content.text("role", "user"), value))
                    });
                }
                _ => object.copy(key, value),
            }
        }
        for name in TOP_LEVEL {
            match config.find(name).filter(|_| body.find(name).is_none()) {
                Some(value) if name == "systemInstruction" && are_parts(value) => {
                    object.object(name, |content| write_parts(content, value));
                }
                Some(value) => _ = object.json(name, value),
                None => {}
            }
        }
        write_settings(object, body);
    }))
}

/// Writes `generationConfig`: the body's own members first, then the settings in the SDK's `config` that it lacks.
fn write_settings(object: &mut ObjectWriter<'_>, body: JsonRef<'_>) {
    let generation_config = body.find("generationConfig").unwrap_or_default();
    let config = body.find("config").filter(|config| config.is_object()).unwrap_or_default();
    let is_setting = |name: &str| !TOP_LEVEL.contains(&name) && !NOT_SENT.contains(&name);
    let settings = || {
        config.entries().filter(|(key, value)| {
            let name = key.as_text().unwrap_or_default();
            is_setting(&name) && !value.is_null() && generation_config.get(&name).is_none()
        })
    };
    if generation_config.entries().next().is_none() && settings().next().is_none() {
        return;
    }
    object.object("generationConfig", |out| {
        out.copy_all(generation_config, "");
        for (key, value) in settings() {
            out.copy(key, value);
        }
    });
}

/// Returns true if the SDK reads a value as the parts of one content: a text, a part, or a list of these.
pub(super) fn are_parts(value: JsonRef<'_>) -> bool {
    match value.kind() {
        JsonKind::String => true,
        JsonKind::Object => !is_content(value) && is_part(value),
        JsonKind::Array => {
            value.items().next().is_some()
                && value.items().all(|item| item.kind() != JsonKind::Array && are_parts(item))
        }
        _ => false,
    }
}

fn is_content(value: JsonRef<'_>) -> bool {
    value.get("parts").is_some() || value.get("role").is_some()
}

fn write_parts(content: &mut ObjectWriter<'_>, value: JsonRef<'_>) {
    content.array("parts", |parts| {
        if value.kind() != JsonKind::Array {
            return write_part(parts, value);
        }
        for part in value.items() {
            write_part(parts, part);
        }
    });
}

fn write_part(parts: &mut ArrayWriter<'_>, part: JsonRef<'_>) {
    match part.as_json_str() {
        Some(text) => parts.object(|out| _ = out.token("text", &text)),
        None => parts.item().push_str(part.as_raw()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn written(body: &str) -> Option<String> {
        api_request(JsonRef::parse(body).unwrap()).map(|body| body.as_str().to_owned())
    }

    #[test]
    fn r57_members_of_the_sdks_config_are_moved_to_their_place_in_the_api() {
        assert_eq!(
            written(
                r#"{"model":"m","contents":"Hi","generationConfig":{"seed":1},"config":{"seed":2,"topK":4e0,"systemInstruction":["Be","brief."],"tools":[{}],"httpOptions":{"headers":{"x-goog-api-key":"k"}},"stopSequences":null}}"#
            )
            .unwrap(),
            r#"{"model":"m","contents":[{"role":"user","parts":[{"text":"Hi"}]}],"systemInstruction":{"parts":[{"text":"Be"},{"text":"brief."}]},"tools":[{}],"generationConfig":{"seed":1,"topK":4e0}}"#
        );
        assert_eq!(
            written(r#"{"contents":[{"text":"a"},"b"]}"#).unwrap(),
            r#"{"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]}]}"#
        );
        assert_eq!(
            written(r#"{"contents":{"inlineData":{"data":"QQ=="}}}"#).unwrap(),
            r#"{"contents":[{"role":"user","parts":[{"inlineData":{"data":"QQ=="}}]}]}"#
        );
    }

    #[test]
    fn r57_a_request_in_the_apis_form_is_not_converted() {
        for body in [
            r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"config":{}}}"#,
            r#"{"contents":{"parts":[]},"config":null}"#,
            r#"{"contents":[],"config":[]}"#,
            r#"{"contents":[{"role":"user"},{"text":"a"}]}"#,
            r#"{"contents":[{},[]]}"#,
            r#"[{"parts":[]}]"#,
            "5",
        ] {
            assert_eq!(written(body), None, "{body}");
        }
    }
}
