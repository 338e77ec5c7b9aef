//! What differs by model, as of 2026-11-25.
//!
//! Sources: DeepSeek's guide "Thinking Mode" (api-docs.deepseek.com/guides/thinking_mode: V4 thinks unless `thinking`
//! is `disabled`; V3.2 thinks as `deepseek-reasoner`, or if `thinking` is `enabled`; reasoning beside calls must be
//! passed back, else 400), and errors in openclaude#878, hermes-agent#15353 and #17341 (`reasoning_effort` of `none`
//! turns it off). Qwen's guide asks for the member of models that think: `-thinking` and QwQ always, others if
//! `enable_thinking` is true (vercel/ai#20871, qwen-code#5637). Not all of its servers refuse, which is no reason to be
//! silent: the finding is a warning.

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

/// What follows `deepseek-` in a name, and when such a model thinks. Names with a version are read by
/// `TABLE_BY_VERSION`.
const TABLE_BY_NAME: [(&str, Thinking); 2] = [("reasoner", Thinking::Always), ("chat", Thinking::OnRequest)];

/// When models think from a version on, as 100 × major + minor. The last row is that of newer models, too.
const TABLE_BY_VERSION: [(u16, Thinking); 2] = [(302, Thinking::OnRequest), (400, Thinking::ByDefault)];

/// Names of Qwen's models, and what such a name contains if the model always thinks. Others think on request.
const QWEN: [&str; 2] = ["qwen", "qwq"];
const QWEN_THINKING: [&str; 2] = ["thinking", "qwq"];

/// Returns true if the model of a request rejects an answer with calls, in the running tool loop, that came back
/// without its reasoning.
pub(super) fn demands_reasoning(body: JsonRef<'_>) -> bool {
    let Some(thinking) = body.text("model").and_then(|name| thinking_of(&name)) else { return false };
    let kind = body.get("thinking").and_then(|thinking| thinking.text("type"));
    let is_enabled = body.get("enable_thinking").and_then(JsonRef::as_bool);
    let is_off =
        kind.as_deref() == Some("disabled") || body.has_text("reasoning_effort", "none") || is_enabled == Some(false);
    match thinking {
        Thinking::Always => true,
        Thinking::ByDefault => !is_off,
        Thinking::OnRequest => !is_off && (kind.as_deref() == Some("enabled") || is_enabled == Some(true)),
    }
}

/// Reads a name such as `deepseek-v4-pro`, `deepseek-ai/DeepSeek-V3.2` or `Qwen/Qwen3-235B-A22B-Thinking-2507`.
fn thinking_of(name: &str) -> Option<Thinking> {
    let name = name.to_ascii_lowercase();
    let bare = name.rsplit_once('/').map_or(name.as_str(), |(_, bare)| bare);
    if QWEN.iter().any(|start| bare.starts_with(start)) {
        let always = QWEN_THINKING.iter().any(|word| bare.contains(word));
        return Some(if always { Thinking::Always } else { Thinking::OnRequest });
    }
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
            r#"{"model":"gpt-6-astra"}"#,
            r#"{"model":7}"#,
            "{}",
        ] {
            assert!(!demands(body), "{body}");
        }
    }

    #[test]
    fn r73_qwen_thinks_by_name_and_by_request() {
        for body in [
            r#"{"model":"qwen3.7-max","enable_thinking":true}"#,
            r#"{"model":"qwen-plus","thinking":{"type":"enabled"}}"#,
            r#"{"model":"Qwen/Qwen3-235B-A22B-Thinking-2507"}"#,
            r#"{"model":"qwq-32b"}"#,
            r#"{"model":"deepseek-v3.2","enable_thinking":true}"#,
        ] {
            assert!(demands(body), "{body}");
        }
        for body in [
            r#"{"model":"qwen3.7-max"}"#,
            r#"{"model":"qwen3.7-max","enable_thinking":false}"#,
            r#"{"model":"qwen3.7-max","enable_thinking":true,"reasoning_effort":"none"}"#,
            r#"{"model":"vendor-qwen/other","enable_thinking":true}"#,
        ] {
            assert!(!demands(body), "{body}");
        }
    }
}
