//! `convert`: a body of one dialect in another (R42).

use crate::any_bodies;

use any_bodies::{any_json, many};
use proptest::prelude::*;
use rethread::finding::{FindingCode, Severity};
use rethread::message::Dialect;
use rethread::provider::{Dangling, RepairOptions, repair, validate};
use rethread::render::convert;
use serde_json::{Value, json};

fn dialects() -> [Dialect; Dialect::ALL.len()] {
    Dialect::ALL
}

fn turn(body: &str, from: Dialect, to: Dialect) -> (Value, Vec<rethread::finding::Finding>) {
    let (out, report) = convert(body.as_bytes(), from, to, &RepairOptions::default()).unwrap();
    let errors: Vec<_> = validate(&out, to).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?} in {}", String::from_utf8_lossy(&out));
    (serde_json::from_slice(&out).unwrap(), report)
}

/// A conversation with everything that every dialect has a place for.
fn chat() -> Value {
    json!({
        "model": "m", "temperature": 0.5, "max_completion_tokens": 99, "stop": "END", "logit_bias": {"1": 2},
        "tools": [{"type": "function", "function": {"name": "look_up", "description": "Looks up.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}],
        "tool_choice": {"type": "function", "function": {"name": "look_up"}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
            {"role": "assistant", "content": "I look it up.", "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "look_up", "arguments": "{\"q\": 12345678901234567890}"}},
                {"id": "call_b", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_a", "content": "first"},
            {"role": "tool", "tool_call_id": "call_b", "content": "second"},
            {"role": "assistant", "content": "It is a picture."},
            {"role": "user", "content": "Thanks."},
        ],
    })
}

#[test]
fn r42_all_text_is_kept_in_every_other_dialect() {
    for to in dialects() {
        let (body, _) = turn(&chat().to_string(), Dialect::OpenAiChat, to);
        let text = body.to_string();
        for said in [
            "Be brief.",
            "What is this?",
            "iVBORw0KGgo=",
            "I look it up.",
            "12345678901234567890",
            "first",
            "second",
            "It is a picture.",
            "Thanks.",
            "Looks up.",
        ] {
            assert!(text.contains(said), "{to:?} lost {said:?}: {text}");
        }
    }
}

#[test]
fn r42_the_setting_against_parallel_calls_is_translated_or_reported() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    for to in [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Mistral] {
        let (out, _) = turn(&body.to_string(), Dialect::Anthropic, to);
        assert_eq!((&out["parallel_tool_calls"], &out["tool_choice"]), (&json!(false), &json!("auto")), "{to:?}");
        let (back, report) = turn(&out.to_string(), to, Dialect::Anthropic);
        assert_eq!(back["tool_choice"], body["tool_choice"], "{to:?}");
        assert!(!report.iter().any(|found| found.message.contains("parallel_tool_calls")), "{to:?}: {report:?}");
    }
    let (_, report) = turn(&body.to_string(), Dialect::Anthropic, Dialect::Gemini);
    assert!(report.iter().any(|found| found.message.contains("disable_parallel_tool_use")), "{report:?}");
}

#[test]
fn r42_a_tool_choice_loses_another_dialects_member_with_a_finding() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    for from in [Dialect::OpenAiChat, Dialect::Mistral] {
        for to in [Dialect::Anthropic, Dialect::Gemini, Dialect::OpenAiResponses] {
            let (_, report) = turn(&body.to_string(), from, to);
            let dropped = report.iter().filter(|found| found.message.contains("disable_parallel_tool_use"));
            let paths: Vec<_> = dropped.map(|found| found.path.as_deref()).collect();
            assert_eq!(paths, [Some("/tool_choice/disable_parallel_tool_use")], "{from:?} to {to:?}: {report:?}");
        }
    }
}

#[test]
fn r42_a_conversion_and_back_gives_the_same_conversation() {
    let given = chat();
    for to in dialects() {
        let (there, _) = turn(&given.to_string(), Dialect::OpenAiChat, to);
        let (back, _) = turn(&there.to_string(), to, Dialect::OpenAiChat);
        let plain = |body: &Value| {
            let mut messages = body["messages"].clone();
            let mut names: Vec<String> = Vec::new();
            // Ids may differ; who answers whom may not.
            for message in messages.as_array_mut().unwrap() {
                for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                    names.push(call["id"].as_str().unwrap().to_owned());
                    call["id"] = json!(names.len());
                    let arguments: Value =
                        serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                    call["function"]["arguments"] = arguments;
                }
                if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
                    message["tool_call_id"] = json!(names.iter().position(|name| name == id).unwrap() + 1);
                }
            }
            messages
        };
        assert_eq!(plain(&back), plain(&given), "through {to:?}");
        assert_eq!(back["tools"], given["tools"], "through {to:?}");
        // Mistral's conversations cannot name the tool that is to be called: it is the only one that is sent.
        let any = json!("required");
        let choice = if to == Dialect::MistralConversations { &any } else { &given["tool_choice"] };
        assert_eq!(&back["tool_choice"], choice, "through {to:?}");
    }
}

#[test]
fn r42_the_source_models_name_in_the_body_is_reported() {
    let found = |given: &str, from, to| -> Vec<(String, Option<String>)> {
        let (body, report) = turn(given, from, to);
        let told: Vec<_> = report.into_iter().filter(|found| found.code.as_str() == "foreign_model").collect();
        assert_eq!(told.is_empty(), body.get("model").is_none(), "{from:?} {to:?} {told:?}");
        told.into_iter().map(|found| (found.message.to_string(), found.path.clone())).collect()
    };
    let body = r#"{"model":"gpt-5","max_tokens":1,"messages":[{"role":"user","content":"a"}]}"#;
    for to in [Dialect::Anthropic, Dialect::OpenAiResponses, Dialect::Mistral] {
        let told = found(body, Dialect::OpenAiChat, to);
        assert_eq!(told.len(), 1);
        assert!(told[0].0.contains("\"gpt-5\"") && told[0].0.contains(to.as_str()), "{told:?}");
        assert_eq!(told[0].1.as_deref(), Some("/model"));
    }
    // Gemini has the model in its address; nothing stays in the body.
    assert!(found(body, Dialect::OpenAiChat, Dialect::Gemini).is_empty());
    assert!(found(r#"{"contents":[{"parts":[{"text":"a"}]}]}"#, Dialect::Gemini, Dialect::OpenAiChat).is_empty());
    assert!(
        found(r#"{"messages":[{"role":"user","content":"a"}]}"#, Dialect::OpenAiChat, Dialect::Anthropic).is_empty()
    );
    assert!(
        turn(body, Dialect::OpenAiChat, Dialect::OpenAiChat)
            .1
            .iter()
            .all(|found| found.code.as_str() != "foreign_model")
    );
}

#[test]
fn r42_parameters_are_renamed_for_the_target_and_the_rest_is_reported() {
    let (body, report) = turn(&chat().to_string(), Dialect::OpenAiChat, Dialect::Anthropic);
    assert_eq!(body["max_tokens"], json!(99));
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["temperature"], json!(0.5));
    assert_eq!(body["tools"][0]["input_schema"]["properties"]["q"]["type"], "string");
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "look_up"}));
    assert!(body.get("logit_bias").is_none());
    assert!(
        report.iter().any(|f| f.code.as_str() == "unsupported_key" && f.path.as_deref() == Some("/logit_bias")),
        "{report:?}"
    );
    let (body, _) = turn(
        r#"{"model":"m","max_tokens":7,"stop_sequences":["A"],"messages":[{"role":"user","content":"Hi"}]}"#,
        Dialect::Anthropic,
        Dialect::OpenAiChat,
    );
    assert_eq!(
        body,
        json!({"model": "m", "max_completion_tokens": 7, "stop": ["A"], "messages": [{"role": "user", "content": "Hi"}]})
    );
}

#[test]
fn r42_a_broken_body_is_repaired_first_and_findings_point_into_it() {
    let given = r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"And?"}]}"#;
    for to in dialects() {
        let (_, report) = turn(given, Dialect::OpenAiChat, to);
        assert!(report.iter().any(|f| f.code.as_str() == "dangling_call" && f.path.is_some()), "{to:?} {report:?}");
        let (body, _) = convert(
            given.as_bytes(),
            Dialect::OpenAiChat,
            to,
            &RepairOptions { dangling_text: Some("the lights went out".into()), ..RepairOptions::default() },
        )
        .unwrap();
        assert!(String::from_utf8(body).unwrap().contains("the lights went out"));
    }
}

#[test]
fn r42_ids_that_a_target_shortens_do_not_collide() {
    let calls: Vec<Value> = (0..200)
        .map(|n| json!({"id": format!("call_{n:040}"), "type": "function", "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    let mut messages =
        vec![json!({"role": "user", "content": "Go"}), json!({"role": "assistant", "tool_calls": calls})];
    messages.extend(
        (0..200).map(
            |n| json!({"role": "tool", "tool_call_id": format!("call_{n:040}"), "content": format!("result {n}")}),
        ),
    );
    let body = json!({ "messages": messages }).to_string();
    for to in dialects() {
        let (there, _) = turn(&body, Dialect::OpenAiChat, to);
        let (back, _) = turn(&there.to_string(), to, Dialect::OpenAiChat);
        let results: Vec<_> = back["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").collect();
        assert_eq!(results.len(), 200);
        for (n, result) in results.iter().enumerate() {
            assert_eq!(result["content"], json!(format!("result {n}")), "{to:?}");
        }
    }
}

#[test]
fn r42_a_server_tool_is_not_converted() {
    let given = r#"{"max_tokens":5,"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Hi"}]}"#;
    let (body, report) = turn(given, Dialect::Anthropic, Dialect::OpenAiChat);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert!(
        report.iter().any(|f| f.code.as_str() == "unsupported_key" && f.path.as_deref() == Some("/tools/0")),
        "{report:?}"
    );
}

#[test]
fn r42_r43_reasoning_of_another_provider_is_removed_and_reported() {
    let given = r#"{"max_tokens":5,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"secret thoughts","signature":"c2ln"},{"type":"text","text":"Hello."}]},{"role":"user","content":"And?"}]}"#;
    for to in dialects().into_iter().filter(|to| *to != Dialect::Anthropic) {
        let (body, report) = turn(given, Dialect::Anthropic, to);
        assert!(!body.to_string().contains("secret thoughts") && body.to_string().contains("Hello."), "{to:?}");
        let told =
            report.iter().filter(|f| f.code.as_str() == "unsupported_part" && f.message.contains("reasoning")).count();
        assert_eq!(told, 1, "{to:?} {report:?}");
    }
}

/// A user's message with that part before words, in `from`; what becomes of the part in `to`, and what is reported of
/// it.
fn part(part: Value, from: Dialect, to: Dialect) -> (Value, usize) {
    let text = if from == Dialect::OpenAiResponses { "input_text" } else { "text" };
    let words = json!({"type": text, "text": "See this."});
    let given = match from {
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [part, {"text": "See this."}]}]}),
        Dialect::OpenAiResponses => json!({"input": [{"role": "user", "content": [part, words]}]}),
        _ => json!({"max_tokens": 5, "messages": [{"role": "user", "content": [part, words]}]}),
    };
    let (body, report) = turn(&given.to_string(), from, to);
    assert!(body.to_string().contains("See this."));
    let message = body
        .pointer("/messages/0")
        .or(body.pointer("/input/0"))
        .or(body.pointer("/inputs/0"))
        .or(body.pointer("/contents/0"))
        .unwrap();
    let content = message.get("content").or(message.get("parts")).unwrap();
    let first = content.get(0).filter(|first| first.get("text").is_none()).cloned().unwrap_or_default();
    (first, report.iter().filter(|finding| finding.code.as_str() == "unsupported_part").count())
}

#[test]
fn r42_a_file_stored_at_one_provider_is_sent_to_no_other() {
    use Dialect::{Anthropic, Gemini, Mistral, OpenAiChat, OpenAiResponses};
    let google = "https://generativelanguage.googleapis.com/v1beta/files/abc";
    let held = [
        (Gemini, json!({"fileData": {"mimeType": "image/png", "fileUri": google}})),
        (Gemini, json!({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf"}})),
        (Anthropic, json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}})),
        (Anthropic, json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}})),
        (OpenAiChat, json!({"type": "file", "file": {"file_id": "file-1"}})),
        (OpenAiResponses, json!({"type": "input_file", "file_id": "file-1"})),
        (OpenAiResponses, json!({"type": "input_image", "file_id": "file-1"})),
    ];
    let openai = |dialect| matches!(dialect, OpenAiChat | OpenAiResponses);
    for (from, held) in held {
        for to in dialects().into_iter().filter(|to| *to != from) {
            let (there, reported) = part(held.clone(), from, to);
            // OpenAI's two formats share their files; chat takes no image by its id.
            // So do Google's two.
            let google = from == Gemini && to == Dialect::GeminiInteractions;
            let shared = google || openai(from) && openai(to) && held["type"] != "input_image";
            assert_eq!(
                (there.is_null(), reported),
                if shared { (false, 0) } else { (true, 1) },
                "{from:?} {to:?} {held}"
            );
        }
    }
    let (there, _) = part(json!({"type": "file", "file": {"file_id": "file-1"}}), OpenAiChat, Mistral);
    assert!(there.is_null());
}

#[test]
fn r42_a_file_id_in_a_result_becomes_a_text_for_other_dialects() {
    let given = json!({"input": [
        {"role": "user", "content": "Look"},
        {"type": "function_call", "call_id": "c1", "name": "shoot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "file_id": "file-1"}]},
    ]});
    for to in dialects().into_iter().filter(|to| *to != Dialect::OpenAiResponses) {
        let (body, report) = turn(&given.to_string(), Dialect::OpenAiResponses, to);
        let body = body.to_string();
        assert!(
            body.contains("cannot be passed on") && !body.contains("file-1") && !body.contains("\"url\":\"\""),
            "{body}"
        );
        assert!(
            report.iter().any(|f| f.code.as_str() == "unsupported_part" && f.call_id.as_deref() == Some("c1")),
            "{report:?}"
        );
    }
}

#[test]
fn r42_media_are_sent_in_forms_that_the_target_accepts() {
    use Dialect::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    let inline = |kind: &str| json!({"inlineData": {"mimeType": kind, "data": "AAAA"}});
    for kind in ["audio/wav", "video/mp4", "text/plain", "image/svg+xml"] {
        assert_eq!(part(inline(kind), Gemini, Anthropic), (Value::Null, 1), "{kind}");
    }
    assert_eq!(part(inline("application/pdf"), Gemini, Anthropic).0["source"]["media_type"], "application/pdf");
    assert_eq!(part(inline("application/pdf"), Gemini, OpenAiChat).0["file"]["filename"], "file.pdf");
    let address = json!({"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}});
    assert_eq!(part(address.clone(), Anthropic, OpenAiChat), (Value::Null, 1));
    assert_eq!(part(address, Anthropic, OpenAiResponses).0["file_url"], "https://x/a.pdf");
    // Base64 without an address around it is data all the same.
    let bare = json!({"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.pdf"}});
    assert_eq!(
        part(bare.clone(), OpenAiChat, Anthropic).0["source"],
        json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})
    );
    let data = part(bare, OpenAiChat, OpenAiResponses).0["file_data"].clone();
    assert_eq!(data, "data:application/pdf;base64,JVBERi0=");
}

#[test]
fn r42_a_block_that_only_its_provider_knows_is_reported() {
    let opaque =
        json!({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]});
    let server = json!({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Found."}]}, {"role": "user", "content": "And?"}]});
    for to in dialects().into_iter().filter(|to| *to != Dialect::Anthropic) {
        assert_eq!(part(opaque.clone(), Dialect::Anthropic, to), (Value::Null, 1), "{to:?}");
        let (_, report) = turn(&server.to_string(), Dialect::Anthropic, to);
        assert!(report.iter().any(|f| f.code.as_str() == "unsupported_part"), "{to:?} {report:?}");
    }
}

#[test]
fn r42_a_choice_among_tools_names_converted_tools_or_is_removed() {
    let of = |tools: Value| {
        json!({"model": "m", "input": [{"role": "user", "content": "q"}],
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "custom", "name": "g"}, {"type": "web_search"}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": tools}})
        .to_string()
    };
    let search = json!({"type": "web_search"});
    let (body, _) =
        turn(&of(json!([{"type": "custom", "name": "g"}, search])), Dialect::OpenAiResponses, Dialect::OpenAiChat);
    let named = json!([{"type": "function", "function": {"name": "g"}}]);
    assert_eq!(body["tool_choice"]["allowed_tools"]["tools"], named);
    let (body, report) = turn(&of(json!([search])), Dialect::OpenAiResponses, Dialect::OpenAiChat);
    assert!(body.get("tool_choice").is_none());
    assert!(report.iter().any(|finding| finding.message.contains("`tool_choice`")), "{report:?}");
}

#[test]
fn r42_media_types_are_read_in_any_spelling() {
    for (spelled, read) in
        [("image/jpg", "image/jpeg"), ("image/PNG", "image/png"), ("image/png;charset=utf-8", "image/png")]
    {
        let image = json!({"type": "image_url", "image_url": {"url": format!("data:{spelled};base64,AA==")}});
        let (there, reported) = part(image, Dialect::OpenAiChat, Dialect::Anthropic);
        assert_eq!((&there["source"]["media_type"], reported), (&json!(read), 0));
    }
}

#[test]
fn r42_text_that_is_not_json_is_an_error() {
    let error = convert(b"{", Dialect::OpenAiChat, Dialect::Anthropic, &RepairOptions::default()).unwrap_err();
    assert_eq!(error.code.as_str(), "invalid_input");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: many(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r42_any_json_becomes_a_valid_body_or_an_error(list in proptest::collection::vec(any_json(), 0..4), bare in any_json(), from in 0_usize..5, to in 0_usize..5) {
        let all = dialects();
        let (from, to) = (all[from % all.len()], all[to % all.len()]);
        let name = match from { Dialect::Gemini => "contents", Dialect::OpenAiResponses => "input", _ => "messages" };
        for body in [json!({ name: list }), bare] {
            if let Ok((out, _)) = convert(body.to_string().as_bytes(), from, to, &RepairOptions::default()) {
                let errors: Vec<_> = validate(&out, to).into_iter().filter(|f| f.severity == Severity::Error).collect();
                prop_assert!(errors.is_empty(), "{from:?} {to:?} {body} -> {} {errors:?}", String::from_utf8_lossy(&out));
                let again = convert(body.to_string().as_bytes(), from, to, &RepairOptions::default()).unwrap().0;
                prop_assert_eq!(out, again);
            }
        }
    }

    #[test]
    fn r42_plausible_bodies_are_valid_in_every_dialect(
        (from, body) in proptest::sample::select(Dialect::ALL.to_vec()).prop_flat_map(|from| (Just(from), any_bodies::body(from))),
        omit in any::<bool>(),
    ) {
        let options = RepairOptions { dangling: if omit { Dangling::Omit } else { Dangling::Synthesize }, ..RepairOptions::default() };
        for to in Dialect::ALL {
            let (out, _) = match convert(body.to_string().as_bytes(), from, to, &options) {
                Ok(done) => done,
                Err(error) => {
                    // A body of another shape is rejected, and `validate` says so; so is one of which a repair would
                    // leave nothing.
                    let shaped = repair(body.to_string().as_bytes(), from, &options).is_err() || validate(body.to_string().as_bytes(), from).iter().any(|f| f.code.as_str() == "unknown_shape");
                    let code = if shaped { "invalid_input" } else { "config_invalid" };
                    prop_assert_eq!(error.code.as_str(), code, "{} {}", error.message, body);
                    continue;
                }
            };
            let errors: Vec<_> = validate(&out, to).into_iter().filter(|f| f.severity == Severity::Error).collect();
            prop_assert!(errors.is_empty(), "{from:?} {to:?} {body} -> {} {errors:?}", String::from_utf8_lossy(&out));
        }
    }
}

#[test]
fn r42_r55_a_choice_among_tools_is_written_in_the_targets_form() {
    let (chat, responses) = (Dialect::OpenAiChat, Dialect::OpenAiResponses);
    let nested = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
        {"type": "function", "function": {"name": "look_up"}}]}});
    let flat = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look_up"}]});
    let mut given = chat_with("tool_choice", nested.clone());
    let (there, _) = turn(&given.to_string(), chat, responses);
    assert_eq!(there["tool_choice"], flat);
    let (back, _) = turn(&there.to_string(), responses, chat);
    assert_eq!(back["tool_choice"], nested);
    for to in [Dialect::Anthropic, Dialect::Gemini, Dialect::Mistral] {
        let (body, report) = turn(&given.to_string(), chat, to);
        assert!(body.get("tool_choice").is_none() && body.get("toolConfig").is_none(), "{to:?} {body}");
        assert!(report.iter().any(|finding| finding.message.contains("`tool_choice`")), "{report:?}");
    }
    // A tool of free text has no place elsewhere, and the choice goes with it.
    given["tools"].as_array_mut().unwrap().push(json!({"type": "custom", "custom": {"name": "sh"}}));
    given["tool_choice"] = json!({"type": "custom", "custom": {"name": "sh"}});
    for to in [responses, Dialect::Mistral] {
        let (body, report) = turn(&given.to_string(), chat, to);
        assert!(body.get("tool_choice").is_none(), "{to:?} {body}");
        assert!(report.iter().any(|finding| finding.message.contains("`tool_choice`")), "{report:?}");
    }
}

fn chat_with(name: &str, value: Value) -> Value {
    let mut given = chat();
    given[name] = value;
    given
}

#[test]
fn r42_r55_strict_is_converted_or_reported() {
    let (chat, responses) = (Dialect::OpenAiChat, Dialect::OpenAiResponses);
    let mut given = chat_with("stream", json!(false));
    given["tools"][0]["function"]["strict"] = json!(true);
    let (there, _) = turn(&given.to_string(), chat, responses);
    assert_eq!(there["tools"][0]["strict"], true);
    let (back, _) = turn(&there.to_string(), responses, chat);
    assert_eq!(back["tools"], given["tools"]);
    let (body, _) = turn(&given.to_string(), chat, Dialect::Mistral);
    assert_eq!(body["tools"], given["tools"]);
    for to in [Dialect::Anthropic, Dialect::Gemini] {
        let (body, report) = turn(&given.to_string(), chat, to);
        assert!(!body["tools"].to_string().contains("strict"), "{body}");
        assert!(report.iter().any(|f| f.path.as_deref() == Some("/tools/0/strict")), "{report:?}");
    }
    // Unsaid, it is strict in Responses alone.
    let (there, report) = turn(&self::chat().to_string(), chat, responses);
    assert_eq!(there["tools"][0]["strict"], false);
    assert!(report.iter().all(|f| !f.message.contains("strict")), "{report:?}");
}

#[test]
fn r42_parameters_that_mistral_has_as_well_are_kept() {
    let more = [
        ("reasoning_effort", json!("high")),
        ("metadata", json!({"a": "b"})),
        ("prompt_cache_key", json!("k")),
        ("prediction", json!({"type": "content", "content": "x"})),
    ];
    let mut given = chat();
    for (name, value) in &more {
        given[*name] = value.clone();
    }
    let (there, _) = turn(&given.to_string(), Dialect::OpenAiChat, Dialect::Mistral);
    let (back, _) = turn(&there.to_string(), Dialect::Mistral, Dialect::OpenAiChat);
    for (name, value) in &more {
        assert_eq!((&there[*name], &back[*name]), (value, value), "{name}");
    }
}

/// A body with an asynchronous call that was answered late, and one that is open.
fn asynchronous() -> Value {
    let call = |id: &str, name: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": "{}", "async": true, "status": "completed"});
    let said = |text: &str| {
        json!({"type": "message", "id": format!("msg_{}", text.len()), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "annotations": [], "text": text}]})
    };
    json!({
        "model": "gpt-6", "tools": [{"type": "function", "name": "export", "parameters": {"type": "object", "properties": {}}, "strict": false, "async": true}],
        "input": [
            {"role": "user", "content": "Export both."},
            call("call_a", "export"), call("call_b", "export"), said("Both run."),
            {"role": "user", "content": "How far?"}, said("Not done."),
            {"type": "function_call_output", "call_id": "call_a", "output": "seven thousand"},
            {"role": "user", "content": "And now?"},
        ],
    })
}

#[test]
fn r42_r75_open_and_late_calls_become_placeholders_and_a_message_of_the_tool() {
    use rethread::synthetic_result::{INTERRUPTED, LATE_RESULT, NO_RESULT, PENDING};
    let given = asynchronous();
    for to in dialects().into_iter().filter(|to| *to != Dialect::OpenAiResponses) {
        let (body, _) = turn(&given.to_string(), Dialect::OpenAiResponses, to);
        let text = body.to_string();
        assert!(!text.contains(INTERRUPTED) && !text.contains(NO_RESULT), "{to:?}: {text}");
        assert_eq!(text.matches(PENDING).count(), 2, "{to:?}: {text}");
        assert_eq!(
            (text.matches(LATE_RESULT).count(), text.matches("seven thousand").count()),
            (1, 1),
            "{to:?}: {text}"
        );
        let at = |part: &str| text.find(part).unwrap();
        assert!(at("Not done.") < at("seven thousand") && at("seven thousand") < at("And now?"), "{to:?}: {text}");
    }
    // In its own dialect nothing changes.
    let (body, report) = turn(&given.to_string(), Dialect::OpenAiResponses, Dialect::OpenAiResponses);
    assert_eq!(body, given);
    assert!(report.is_empty(), "{report:?}");
}

#[test]
fn r42_r73_a_phase_that_the_target_has_no_place_for_is_reported() {
    let item = |text: &str, phase: Value| json!({"role": "assistant", "content": text, "phase": phase});
    let given = json!({"model": "m", "input": [{"role": "user", "content": "Hi"}, item("I look.", json!("commentary")),
        item("Done.", json!("final_answer")), {"role": "user", "content": "And?"}, item("Hm.", Value::Null), {"role": "user", "content": "?"}]});
    for to in dialects().into_iter().filter(|to| *to != Dialect::OpenAiResponses) {
        let (body, report) = turn(&given.to_string(), Dialect::OpenAiResponses, to);
        assert!(!body.to_string().contains("commentary"), "{body}");
        let lost: Vec<_> = report.iter().filter(|finding| finding.message.contains("`phase`")).collect();
        assert_eq!(lost.len(), 1, "{to:?}: {report:?}");
        assert!(lost[0].message.contains("2 texts"), "{}", lost[0].message);
    }
    let (body, report) = turn(&given.to_string(), Dialect::OpenAiResponses, Dialect::OpenAiResponses);
    assert_eq!((body, report.len()), (given, 0));
}

#[test]
fn r42_r73_reasoning_that_the_target_misses_is_reported_once() {
    let body = |model: &str| {
        format!(
            r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"r"}}]}}]}}"#
        )
    };
    let missing = |model: &str| {
        let (_, report) =
            convert(body(model).as_bytes(), Dialect::Anthropic, Dialect::OpenAiChat, &RepairOptions::default())
                .unwrap();
        report.iter().filter(|finding| finding.code == FindingCode::MissingReasoning).count()
    };
    assert_eq!((missing("deepseek-v4-pro"), missing("gpt-6")), (1, 0));
}
