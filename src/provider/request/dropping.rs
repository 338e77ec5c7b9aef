//! A request whose service drops reasoning that is bound to another prefix (R70).

use super::provider_request::ProviderRequest;
use crate::provider::spec::DialectSpec;

/// Returns the request with the parameter and the header that let the service drop reasoning whose prefix has changed;
/// `None` if the dialect or the model has none, or the request does not think.
pub(crate) fn dropping_unbound(spec: &DialectSpec, request: &ProviderRequest) -> Option<ProviderRequest> {
    let dropping = spec.reasoning_dropping.as_ref()?;
    let params = (dropping.params)(request.params.view(), &spec.models.facts_of(request))?;
    let (name, value) = dropping.header;
    Some(ProviderRequest { params, headers: with_listed(&request.headers, name, value), ..request.clone() })
}

/// Adds a value to a header that is a list, unless the list has it.
pub(super) fn with_listed(headers: &[(String, String)], name: &str, value: &str) -> Vec<(String, String)> {
    let mut headers = headers.to_vec();
    match headers.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some((_, list)) if list.split(',').any(|listed| listed.trim() == value) => {}
        Some((_, list)) => *list = if list.trim().is_empty() { value.to_owned() } else { format!("{list}, {value}") },
        None => headers.push((name.to_owned(), value.to_owned())),
    }
    headers
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use crate::json::Json;
    use crate::message::Dialect;
    use crate::provider::{ProviderRequest, Settings};

    fn request(dialect: Dialect, params: &str) -> ProviderRequest {
        ProviderRequest {
            dialect,
            url: "https://api.anthropic.com/v1/messages".into(),
            params: Json::parse(params).unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        }
    }

    #[test]
    fn r70_a_request_that_thinks_lets_the_service_drop_unbound_reasoning() {
        let drop = r#""block_binding":{"prefix_mismatch_behavior":"drop_block"}"#;
        let adaptive = || Some(format!(r#","thinking":{{"type":"adaptive",{drop}}}"#));
        for (thinking, expected) in [
            ("", adaptive()),
            (r#","thinking":null"#, adaptive()),
            (
                r#","thinking":{"type":"adaptive","display":"omitted"}"#,
                Some(format!(r#","thinking":{{"type":"adaptive","display":"omitted",{drop}}}"#)),
            ),
            (r#","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}"#, None),
            (
                r#","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#,
                adaptive(),
            ),
            (r#","thinking":{"type":"disabled"}"#, None),
            (r#","thinking":{"type":"between_tools"}"#, None),
            // The rules add `type`.
            (r#","thinking":{"display":"omitted"}"#, Some(format!(r#","thinking":{{"display":"omitted",{drop}}}"#))),
        ] {
            let dropping = request(Dialect::Anthropic, &format!(r#"{{"model":"claude-haiku-5-5"{thinking}}}"#));
            let params = dropping.dropping_unbound().map(|request| request.params.as_str().to_owned());
            let expected = expected.map(|thinking| format!(r#"{{"model":"claude-haiku-5-5"{thinking}}}"#));
            assert_eq!(params, expected, "{thinking}");
        }
        assert_eq!(request(Dialect::Anthropic, r#"{"model":"claude-opus-4-6"}"#).dropping_unbound(), None);
        assert_eq!(request(Dialect::OpenAiResponses, r#"{"model":"gpt-6.2-sol"}"#).dropping_unbound(), None);
    }

    #[test]
    fn r70_the_header_is_added_to_the_applications_list() {
        let (name, value) = ("anthropic-beta", "thinking-binding-controls-2026-08-01");
        for (own, expected) in [
            (None, value.to_owned()),
            (Some(("anthropic-beta", "")), value.to_owned()),
            (Some(("Anthropic-Beta", "a,b")), format!("a,b, {value}")),
            (Some((name, "a, thinking-binding-controls-2026-08-01")), format!("a, {value}")),
        ] {
            let mut request = request(Dialect::Anthropic, r#"{"model":"claude-opus-5-5"}"#);
            request.headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
            let headers = request.dropping_unbound().unwrap().headers;
            assert_eq!(headers.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), [expected]);
        }
    }
}
