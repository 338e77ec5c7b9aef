//! Parameters of the application that the model rejects: they are repaired before they are sent.

use super::*;
use crate::finding::{FindingCode, Severity};
use crate::json::ObjectWriter;
use crate::replay::UnboundReasoning;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const DIALECTS: [Dialect; 5] = [CHAT, CLAUDE, Dialect::OpenAiResponses, Dialect::Gemini, Dialect::Mistral];

const MODELS: [&str; 9] = [
    "claude-opus-4-5",
    "claude-opus-4-6",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-1",
    "claude-mythos-preview",
    "team-default",
];

/// Members of parameters that a model of some dialect rejects, or that look like it.
const MEMBERS: [&str; 17] = [
    "",
    r#","thinking":{"type":"enabled","budget_tokens":1024}"#,
    r#","thinking":{"type":"disabled"}"#,
    r#","thinking":{"type":"adaptive"}"#,
    r#","thinking":{"type":"between_tools"}"#,
    r#","thinking":{"display":"omitted"}"#,
    r#","thinking":{"type":"later_kind"}"#,
    r#","thinking":null"#,
    r#","thinking":{"type":"disabled","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#,
    r#","tool_choice":{"type":"any"}"#,
    r#","tool_choice":{"type":"tool","name":"search"},"thinking":{"type":"enabled","budget_tokens":1024}"#,
    r#","tool_choice":"required""#,
    r#","reasoning_effort":"high","parallel_tool_calls":false"#,
    r#","reasoning":{"effort":"high"},"include":["reasoning.encrypted_content"]"#,
    r#","generationConfig":{"thinkingConfig":{"thinkingBudget":0}}"#,
    r#","toolConfig":{"functionCallingConfig":{"mode":"ANY"}}"#,
    r#","temperature":1,"stop":["\n"],"safe_prompt":true"#,
];

fn search() -> ToolDefinition {
    ToolDefinition::from_object(
        Json::parse(r#"{"name":"search","parameters":{"type":"object"}}"#).unwrap().view(),
        "parameters",
    )
    .unwrap()
}

fn render(renderer: &mut Renderer, history: &History, provider: &ProviderRequest, policy: &Policy) -> Rendered {
    let tools = [search()];
    let request = RenderRequest { provider, instructions: Some("Be brief."), tools: &tools, policy };
    renderer.render(history, None, &request, 1_000).unwrap()
}

fn errors(body: &[u8], dialect: Dialect) -> Vec<String> {
    let findings = validate(body, dialect).into_iter();
    findings.filter(|finding| finding.severity == Severity::Error).map(|finding| finding.message.to_string()).collect()
}

fn asked() -> History {
    history_of(CHAT, r#"{"messages":[{"role":"user","content":"Weather in Lisbon?"}]}"#)
}

/// Returns the body that has the application's parameters as they are.
fn unrepaired(body: &[u8], params: &str) -> Vec<u8> {
    let (body, params) = (Json::parse(std::str::from_utf8(body).unwrap()).unwrap(), Json::parse(params).unwrap());
    let names: Vec<String> = params.view().entries().map(|(key, _)| key.as_text().unwrap().into_owned()).collect();
    let json = ObjectWriter::build(|out| {
        for (key, value) in body.view().entries() {
            let own = names.iter().find(|name| key.is_text(name)).and_then(|name| params.view().get(name));
            // A choice in the form of another dialect is translated before it is checked.
            out.copy(key, own.filter(|own| own.is_object()).unwrap_or(value));
        }
    });
    json.as_str().as_bytes().to_vec()
}

#[test]
fn r70_r73_a_body_has_no_parameter_that_its_model_rejects() {
    let (history, mut repaired) = (asked(), 0);
    for dialect in DIALECTS {
        for model in MODELS {
            for members in MEMBERS {
                for unbound in [UnboundReasoning::Omit, UnboundReasoning::DropBlock] {
                    let params = format!(r#"{{"model":"{model}"{members}}}"#);
                    let layer = PolicyLayer { unbound_reasoning: Some(unbound), ..PolicyLayer::default() };
                    let policy = Policy { call: layer, ..Policy::default() };
                    let rendered = render(&mut Renderer::default(), &history, &provider(dialect, &params), &policy);
                    assert_eq!(errors(&rendered.body, dialect), [""; 0], "{dialect:?} {params} {unbound:?}");
                    let warnings = rendered.report.iter().filter(|found| found.severity == Severity::Warning);
                    let warnings: Vec<&str> = warnings.map(|found| &*found.message).collect();
                    if unbound == UnboundReasoning::Omit {
                        let expected = errors(&unrepaired(&rendered.body, &params), dialect);
                        let is_translated = members.contains(r#""required""#);
                        assert!(
                            is_translated || warnings == expected,
                            "{dialect:?} {params}: {warnings:?} {expected:?}"
                        );
                    }
                    repaired += usize::from(!warnings.is_empty());
                }
            }
        }
    }
    assert!(repaired > 50, "{repaired}");
}

#[test]
fn r73_a_parameter_that_is_repaired_is_reported_once() {
    let (mut history, ids) = (History::new(Seed(1)), CountingIds::default());
    let mut renderer = Renderer::default();
    let params = r#"{"model":"claude-opus-5-5","thinking":{"type":"enabled","budget_tokens":1024}}"#;
    for (question, expected) in [("One?", 1), ("Two?", 0), ("Three?", 0)] {
        let message = format!(r#"{{"messages":[{{"role":"user","content":"{question}"}}]}}"#);
        append(&mut history, CHAT, &message, &ids);
        let rendered = render(&mut renderer, &history, &provider(CLAUDE, params), &Policy::default());
        let found = rendered.report.iter().filter(|found| found.code == FindingCode::UnsupportedKey);
        let found: Vec<_> = found.filter(|found| found.severity == Severity::Warning).collect();
        assert_eq!(found.len(), expected, "{question} {:?}", rendered.report);
        assert!(found.iter().all(|found| found.path.as_deref() == Some("/thinking/type")), "{found:?}");
        let body = Json::parse(std::str::from_utf8(&rendered.body).unwrap()).unwrap();
        assert_eq!(body.view().get("thinking").unwrap().as_raw(), r#"{"type":"adaptive"}"#);
    }
    // A head that differs in its instructions has the same finding.
    let request = RenderRequest {
        provider: &provider(CLAUDE, params),
        instructions: Some("Be long."),
        tools: &[search()],
        policy: &Policy::default(),
    };
    let rendered = renderer.render(&history, None, &request, 1_000).unwrap();
    assert_eq!(errors(&rendered.body, CLAUDE), [""; 0]);
    assert_eq!(rendered.report.iter().filter(|found| found.severity == Severity::Warning).count(), 0);
    // Other parameters are reported.
    let other = r#"{"model":"claude-opus-5-5","thinking":{"type":"disabled"}}"#;
    let rendered = render(&mut renderer, &history, &provider(CLAUDE, other), &Policy::default());
    assert_eq!(errors(&rendered.body, CLAUDE), [""; 0]);
    assert_eq!(rendered.report.iter().filter(|found| found.severity == Severity::Warning).count(), 1);
}

#[test]
fn r73_the_model_in_the_url_decides_which_parameters_are_repaired() {
    let params = r#"{"anthropic_version":"vertex-2023-10-16","thinking":{"type":"enabled","budget_tokens":1024}}"#;
    for (model, expected) in [
        ("claude-opus-5-5", r#"{"type":"adaptive"}"#),
        ("claude-opus-4-5", r#"{"type":"enabled","budget_tokens":1024}"#),
    ] {
        let url = format!("https://eu.example/v1/publishers/anthropic/models/{model}:rawPredict");
        let provider = ProviderRequest { url, ..provider(CLAUDE, params) };
        let rendered = render(&mut Renderer::default(), &asked(), &provider, &Policy::default());
        let body = Json::parse(std::str::from_utf8(&rendered.body).unwrap()).unwrap();
        assert_eq!(body.view().get("thinking").unwrap().as_raw(), expected);
        assert!(body.view().get("model").is_none());
    }
}

#[test]
fn r70_drop_block_is_sent_with_the_kind_of_thinking_that_the_model_accepts() {
    let layer = PolicyLayer { unbound_reasoning: Some(UnboundReasoning::DropBlock), ..PolicyLayer::default() };
    let policy = Policy { call: layer, ..Policy::default() };
    let drop = r#""block_binding":{"prefix_mismatch_behavior":"drop_block"}"#;
    for (model, thinking, expected) in [
        ("claude-opus-5-5", r#"{"type":"enabled","budget_tokens":1024}"#, format!(r#"{{"type":"adaptive",{drop}}}"#)),
        ("claude-opus-5-5", r#"{"type":"disabled"}"#, format!(r#"{{"type":"adaptive",{drop}}}"#)),
        ("claude-haiku-5-5", r#"{"type":"disabled"}"#, r#"{"type":"disabled"}"#.to_owned()),
        ("claude-sonnet-5-5", r#"{"type":"disabled"}"#, r#"{"type":"between_tools"}"#.to_owned()),
    ] {
        let params = format!(r#"{{"model":"{model}","thinking":{thinking}}}"#);
        let rendered = render(&mut Renderer::default(), &asked(), &provider(CLAUDE, &params), &policy);
        let body = Json::parse(std::str::from_utf8(&rendered.body).unwrap()).unwrap();
        assert_eq!(body.view().get("thinking").unwrap().as_raw(), expected, "{params}");
    }
}
