//! What differs by model, as of 2026-11-25.
//!
//! Sources: DeepSeek's guide "Thinking Mode" (api-docs.deepseek.com/guides/thinking_mode: V4 thinks unless `thinking` is `disabled`; V3.2
//! thinks as `deepseek-reasoner`, or if `thinking` is `enabled`; reasoning beside calls must be passed back, else 400), and errors in
//! openclaude#878, hermes-agent#15353 and #17341 (`reasoning_effort` of `none` turns it off). Qwen's guide asks for the member, and
//! no refusal of its servers is known (vercel/ai#20871, qwen-code#5637): it is not in the table.

use crate::json::JsonRef;

/// When a model thinks, and then wants the reasoning beside its calls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    /// Always.
    Always,
    /// Unless the request turns it off.
    ByDefault,
    /// If the request turns it on.
    OnRequest,
}

/// What follows `deepseek-` in a name, and when such a model thinks. Names with a version are read by `TABLE_BY_VERSION`.
const TABLE_BY_NAME: [(&str, Thinking); 2] = [("reasoner", Thinking::Always), ("chat", Thinking::OnRequest)];

/// When models think from a version on, as 100 × major + minor. The last row is that of newer models, too.
const TABLE_BY_VERSION: [(u16, Thinking); 2] = [(302, Thinking::OnRequest), (400, Thinking::ByDefault)];

/// Returns true if the model of a request rejects an answer with calls, in the running tool loop, that came back without its reasoning.
pub(super) fn demands_reasoning(body: JsonRef<'_>) -> bool {
    let Some(thinking) = body.text("model").and_then(|name| thinking_of(&name)) else { return false };
    let kind = body.get("thinking").and_then(|thinking| thinking.text("type"));
    let is_off = kind.as_deref() == Some("disabled")
        || body.has_text("reasoning_effort", "none")
        || body.get("enable_thinking").and_then(JsonRef::as_bool) == Some(false);
    match thinking {
        Thinking::Always => true,
        Thinking::ByDefault => !is_off,
        Thinking::OnRequest => !is_off && kind.as_deref() == Some("enabled"),
    }
}

/// Reads a name such as `deepseek-v4-pro` or `deepseek-ai/DeepSeek-V3.2`.
fn thinking_of(name: &str) -> Option<Thinking> {
    let name = name.to_ascii_lowercase();
    let (_, rest) = name.rsplit_once("deepseek-")?;
    if let Some((_, thinking)) = TABLE_BY_NAME.iter().find(|(word, _)| rest.starts_with(word)) {
        return Some(*thinking);
    }
    let version = rest.strip_prefix('v')?;
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut numbers = version.get(..end)?.split('.').map(|number| number.parse::<u16>().ok());
    let major = numbers.next()??;
    let version = major.saturating_mul(100).saturating_add(numbers.next().flatten().unwrap_or(0).min(99));
    TABLE_BY_VERSION.iter().rev().find(|(from, _)| *from <= version).map(|(_, thinking)| *thinking)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn demands(body: &str) -> bool {
        demands_reasoning(JsonRef::parse(body).unwrap())
    }

    #[test]
    fn r73_deepseek_thinks_by_version_and_by_request() {
        for body in [
            r#"{"model":"deepseek-v4-pro"}"#,
            r#"{"model":"deepseek-ai/DeepSeek-V4-Flash","thinking":{"type":"enabled"}}"#,
            r#"{"model":"deepseek/deepseek-v5.1"}"#,
            r#"{"model":"deepseek-reasoner"}"#,
            r#"{"model":"deepseek-chat","thinking":{"type":"enabled"}}"#,
            r#"{"model":"deepseek-v3.2","thinking":{"type":"enabled"}}"#,
        ] {
            assert!(demands(body), "{body}");
        }
        for body in [
            r#"{"model":"deepseek-v4-pro","thinking":{"type":"disabled"}}"#,
            r#"{"model":"deepseek-v4-flash","reasoning_effort":"none"}"#,
            r#"{"model":"deepseek-v4-flash","enable_thinking":false}"#,
            r#"{"model":"deepseek-chat"}"#,
            r#"{"model":"deepseek-v3.1","thinking":{"type":"enabled"}}"#,
            r#"{"model":"deepseek-r1"}"#,
            r#"{"model":"qwen3.7-max","enable_thinking":true}"#,
            r#"{"model":"gpt-6-astra"}"#,
            r#"{"model":7}"#,
            "{}",
        ] {
            assert!(!demands(body), "{body}");
        }
    }
}
