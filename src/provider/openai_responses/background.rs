//! Background responses: `"background": true` has the service work on an answer when nobody reads it.
//!
//! Sources, read on 2026-11-28: OpenAI's guide "Background mode" (developers.openai.com/api/docs/guides/background)
//! and its reference of `GET /v1/responses/{response_id}` with the query `stream`, `starting_after` and `include[]`.
//! The service streams an answer only that was created with `stream`, and only for a while: after five minutes it
//! answers 400, "This response can no longer be streamed because it is more than 5 minutes old" (openai-python, issue
//! 2828, 2026-01-22). With `"store": false` it rejects the request.

use crate::clock::Ms;
use crate::provider::request::{percent_encoded, resource_address};
use crate::provider::spec::{AnswerForm, ResumableAnswers, ResumedAnswer};

// The answer itself says `"background": true`.
pub(super) const BACKGROUND_ANSWERS: ResumableAnswers =
    ResumableAnswers { address, is_pending, is_asked_for: |_| false, poll_ms: POLL_MS };

/// The guide's example asks every two seconds.
const POLL_MS: Ms = 2_000;

fn is_pending(status: &str) -> bool {
    matches!(status, "queued" | "in_progress")
}

/// `https://…/responses?api-version=1` becomes `https://…/responses/resp_1?api-version=1&stream=true&starting_after=7`.
fn address(answer: &ResumedAnswer<'_>) -> Option<String> {
    let ResumedAnswer { request_url, params, response, form } = *answer;
    let mut members = Vec::new();
    // What is included besides is chosen anew in each request.
    let included = params.get("include").into_iter().flat_map(|list| list.items());
    members.extend(
        included.filter_map(|name| name.as_text()).map(|name| format!("include%5B%5D={}", percent_encoded(&name))),
    );
    if let AnswerForm::Stream { after } = form {
        members.push("stream=true".to_owned());
        members.extend(after.map(|number| format!("starting_after={number}")));
    }
    resource_address(request_url, response, members)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::json::Json;

    fn address_of(request_url: &str, params: &str, response: &str, form: AnswerForm) -> Option<String> {
        let params = Json::parse(params).unwrap();
        address(&ResumedAnswer { request_url, params: params.view(), response, form })
    }

    #[test]
    fn r18_the_address_of_an_answer_keeps_the_query_of_the_request() {
        let azure = "https://x.example/openai/responses?api-version=2026-01-01";
        assert_eq!(
            address_of(azure, "{}", "resp_1", AnswerForm::Whole).unwrap(),
            "https://x.example/openai/responses/resp_1?api-version=2026-01-01"
        );
        assert_eq!(
            address_of(azure, "{}", "resp_1", AnswerForm::Stream { after: Some(7) }).unwrap(),
            "https://x.example/openai/responses/resp_1?api-version=2026-01-01&stream=true&starting_after=7"
        );
        let params = r#"{"include":["reasoning.encrypted_content","a&b"]}"#;
        assert_eq!(
            address_of("https://x.example/v1/responses/", params, "r", AnswerForm::Stream { after: None }).unwrap(),
            "https://x.example/v1/responses/r?include%5B%5D=reasoning.encrypted_content&include%5B%5D=a%26b&stream=true"
        );
        assert_eq!(
            address_of("https://x.example/v1/responses", "{}", "r", AnswerForm::Whole).unwrap(),
            "https://x.example/v1/responses/r"
        );
    }

    #[test]
    fn r18_r68_an_id_that_is_part_of_no_address_is_not_picked_up() {
        for id in ["", "..", "../../v1/files", "a/b", "a?b", "a#b", "a%2fb", "é"] {
            assert_eq!(address_of("https://x.example/v1", "{}", id, AnswerForm::Whole), None, "{id}");
        }
    }
}
