//! `convert`: members of messages that say more than text, calls, results and images, and settings (R42).

use rethread::finding::{Action, Finding, FindingCode, Severity};
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, validate};
use rethread::render::convert;
use serde_json::{Value, json};

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

fn turn(body: &Value, from: Dialect, to: Dialect) -> (Value, Vec<Finding>) {
    let (out, report) = convert(body.to_string().as_bytes(), from, to, &RepairOptions::default()).unwrap();
    let errors: Vec<_> = validate(&out, to).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?} in {}", String::from_utf8_lossy(&out));
    (serde_json::from_slice(&out).unwrap(), report)
}

/// Returns the paths of the members of messages that a report calls lost.
fn lost(report: &[Finding], to: Dialect) -> Vec<&str> {
    let sentences = ["has no place in", "of a document is not taken over to"];
    let sentences = sentences.map(|sentence| format!("{sentence} the dialect \"{}\"", to.as_str()));
    let is_lost = |found: &&Finding| {
        sentences.iter().any(|sentence| found.message.contains(sentence))
            && found.path.as_deref().is_some_and(|path| path.matches('/').count() > 1)
    };
    let lost: Vec<&Finding> = report.iter().filter(is_lost).collect();
    for found in &lost {
        assert_eq!(
            (found.code, found.severity, found.action),
            (FindingCode::UnsupportedKey, Severity::Info, Some(Action::Dropped))
        );
    }
    lost.into_iter().filter_map(|found| found.path.as_deref()).collect()
}

fn others(from: Dialect) -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(move |to| *to != from)
}

#[test]
fn r42_the_setting_against_parallel_calls_goes_into_the_tool_choice_of_anthropic() {
    let serial = |choice: Value| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "parallel_tool_calls": false,
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]});
        if !choice.is_null() {
            body["tool_choice"] = choice;
        }
        turn(&body, Dialect::OpenAiChat, Dialect::Anthropic)
    };
    let dropped =
        |report: &[Finding]| report.iter().filter(|found| found.message.contains("parallel_tool_calls")).count();
    for (choice, there) in [
        (json!(null), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (json!("auto"), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (json!("required"), json!({"type": "any", "disable_parallel_tool_use": true})),
        (
            json!({"type": "function", "function": {"name": "f"}}),
            json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true}),
        ),
    ] {
        let (body, report) = serial(choice);
        assert_eq!((&body["tool_choice"], dropped(&report)), (&there, 0), "{report:?}");
    }
    // Anthropic's choice "none" has no such member.
    let (body, report) = serial(json!("none"));
    assert_eq!((&body["tool_choice"], dropped(&report)), (&json!({"type": "none"}), 1), "{report:?}");
    // Parallel calls are allowed without a setting.
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "parallel_tool_calls": true,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]});
    let (out, report) = turn(&body, Dialect::OpenAiChat, Dialect::Anthropic);
    assert_eq!((out.get("tool_choice"), dropped(&report)), (None, 0), "{report:?}");
}

#[test]
fn r42_the_detail_of_an_image_goes_where_it_is_known_and_is_reported_elsewhere() {
    let parts = |detail: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "q"},
            {"type": "image_url", "image_url": {"url": PNG, "detail": detail}}]}]})
    };
    let place = |body: &Value, to: Dialect| match to {
        Dialect::OpenAiChat | Dialect::Mistral => body["messages"][0]["content"][1]["image_url"]["detail"].clone(),
        Dialect::OpenAiResponses => body["input"][0]["content"][1]["detail"].clone(),
        Dialect::MistralConversations => body["inputs"][0]["content"][1]["image_url"]["detail"].clone(),
        _ => Value::Null,
    };
    for to in others(Dialect::OpenAiChat) {
        let (body, report) = turn(&parts("low"), Dialect::OpenAiChat, to);
        let path = "/messages/0/content/1/image_url/detail";
        let is_known = matches!(to, Dialect::OpenAiResponses | Dialect::Mistral | Dialect::MistralConversations);
        assert_eq!(place(&body, to).is_null(), !is_known, "{to:?}: {body}");
        match place(&body, to) {
            Value::Null => assert_eq!(lost(&report, to), [path], "{to:?}"),
            detail => {
                assert_eq!((detail, lost(&report, to)), (json!("low"), vec![]), "{to:?}");
                let (back, report) = turn(&body, to, Dialect::OpenAiChat);
                assert_eq!(place(&back, Dialect::OpenAiChat), json!("low"), "{to:?}");
                assert_eq!(lost(&report, Dialect::OpenAiChat), [""; 0], "{to:?}");
            }
        }
        // "auto" is what services assume, and a value that not all of them know is left out.
        let (body, report) = turn(&parts("auto"), Dialect::OpenAiChat, to);
        assert_eq!((place(&body, to), lost(&report, to)), (Value::Null, vec![]), "{to:?}");
        let (body, report) = turn(&parts("original"), Dialect::OpenAiChat, to);
        assert_eq!((place(&body, to), lost(&report, to)), (Value::Null, vec![path]), "{to:?}");
    }
}

#[test]
fn r42_the_detail_of_a_file_is_reported_in_every_other_dialect() {
    let body = json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"},
        {"type": "input_file", "filename": "Plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0=", "detail": "low"}]}]});
    for to in others(Dialect::OpenAiResponses) {
        let (out, report) = turn(&body, Dialect::OpenAiResponses, to);
        assert!(out.to_string().contains("JVBERi0="), "{to:?}: {out}");
        assert!(!out.to_string().contains("\"low\""), "{to:?}: {out}");
        let mut expected = vec!["/input/0/content/1/detail"];
        if matches!(to, Dialect::Gemini | Dialect::GeminiInteractions) {
            expected.push("/input/0/content/1/filename");
        }
        assert_eq!(lost(&report, to), expected, "{to:?}");
    }
}

fn document() -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
         "title": "Report", "context": "Of 2025.", "citations": {"enabled": true}}]}]})
}

#[test]
fn r42_the_context_of_a_document_goes_to_converse_and_back_and_its_citations_are_reported() {
    let (mut body, report) = turn(&document(), Dialect::Anthropic, Dialect::Bedrock);
    let sent = body["messages"][0]["content"][1]["document"].clone();
    let bytes = json!({"bytes": "JVBERi0="});
    assert_eq!(sent, json!({"format": "pdf", "name": "Report", "source": bytes, "context": "Of 2025."}));
    assert_eq!(lost(&report, Dialect::Bedrock), ["/messages/0/content/1/citations"]);
    body["messages"][0]["content"][1]["document"]["citations"] = json!({"enabled": true});
    let (back, report) = turn(&body, Dialect::Bedrock, Dialect::Anthropic);
    let mut expected = document()["messages"][0]["content"][1].clone();
    expected.as_object_mut().unwrap().remove("citations");
    assert_eq!(back["messages"][0]["content"][1], expected);
    assert_eq!(lost(&report, Dialect::Anthropic), ["/messages/0/content/1/document/citations"]);
    // Citations that are not asked for are no loss.
    body["messages"][0]["content"][1]["document"]["citations"] = json!({"enabled": false});
    assert_eq!(lost(&turn(&body, Dialect::Bedrock, Dialect::Anthropic).1, Dialect::Anthropic), [""; 0]);
}

#[test]
fn r42_no_document_of_a_result_or_beside_others_asks_for_citations() {
    let cited = document()["messages"][0]["content"][1].clone();
    let mut plain = cited.clone();
    plain.as_object_mut().unwrap().remove("citations");
    let body = json!({"max_tokens": 9, "tools": [{"name": "f", "input_schema": {"type": "object"}}], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "q"}, cited, plain]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [cited]}]}]});
    let (mut out, report) = turn(&body, Dialect::Anthropic, Dialect::Bedrock);
    assert!(!out.to_string().contains("citations"), "{out}");
    assert_eq!(out.to_string().matches("Of 2025.").count(), 3, "{out}");
    let paths = ["/messages/0/content/1/citations", "/messages/2/content/0/content/0/citations"];
    assert_eq!(lost(&report, Dialect::Bedrock), paths);
    out["messages"][0]["content"][1]["document"]["citations"] = json!({"enabled": true});
    out["messages"][2]["content"][0]["toolResult"]["content"][0]["document"]["citations"] = json!({"enabled": true});
    let (back, report) = turn(&out, Dialect::Bedrock, Dialect::Anthropic);
    assert!(!back.to_string().contains("citations"), "{back}");
    assert_eq!(back.to_string().matches("Of 2025.").count(), 3, "{back}");
    let paths =
        ["/messages/0/content/1/document/citations", "/messages/2/content/0/toolResult/content/0/document/citations"];
    assert_eq!(lost(&report, Dialect::Anthropic), paths);
}

#[test]
fn r42_a_document_loses_what_a_target_has_no_place_for_with_a_finding_each() {
    let [title, context, citations] =
        ["title", "context", "citations"].map(|name| format!("/messages/0/content/1/{name}"));
    for to in others(Dialect::Anthropic).filter(|to| *to != Dialect::Bedrock) {
        let (body, report) = turn(&document(), Dialect::Anthropic, to);
        assert!(body.to_string().contains("JVBERi0="), "{to:?}: {body}");
        let mut expected = vec![title.as_str(), &context, &citations];
        if !matches!(to, Dialect::Gemini | Dialect::GeminiInteractions) {
            expected.remove(0);
            assert!(body.to_string().contains("\"Report\""), "{to:?}: {body}");
        }
        assert_eq!(lost(&report, to), expected, "{to:?}");
    }
}

#[test]
fn r42_a_name_of_a_file_is_sent_or_reported() {
    let all_but_googles = [
        Dialect::OpenAiChat,
        Dialect::OpenAiResponses,
        Dialect::Anthropic,
        Dialect::Bedrock,
        Dialect::Mistral,
        Dialect::MistralConversations,
    ];
    // The targets that take the name, and those that do not take the file.
    let names = [
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "q"},
                {"type": "file", "file": {"filename": "Plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}]}]}),
            "/messages/0/content/1/file/filename",
            all_but_googles.as_slice(),
            [].as_slice(),
        ),
        (
            Dialect::OpenAiResponses,
            json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"},
                {"type": "input_file", "filename": "Plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}]}]}),
            "/input/0/content/1/filename",
            &all_but_googles,
            &[],
        ),
        (
            Dialect::Mistral,
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "q"},
                {"type": "document_url", "document_url": "https://a.example/x", "document_name": "Plan.pdf"}]}]}),
            "/messages/0/content/1/document_name",
            &[Dialect::Anthropic, Dialect::MistralConversations],
            &[Dialect::OpenAiChat, Dialect::Bedrock],
        ),
        (
            Dialect::Bedrock,
            json!({"messages": [{"role": "user", "content": [{"text": "q"},
                {"document": {"format": "pdf", "name": "Plan", "source": {"bytes": "JVBERi0="}}}]}]}),
            "/messages/0/content/1/document/name",
            &all_but_googles,
            &[],
        ),
    ];
    for (from, body, path, naming, refusing) in names {
        for to in others(from) {
            let (out, report) = turn(&body, from, to);
            let is_left_out = report.iter().any(|found| found.code == FindingCode::UnsupportedPart);
            assert_eq!(is_left_out, refusing.contains(&to), "{from:?} to {to:?}: {report:?}");
            assert_eq!(out.to_string().contains("\"Plan"), naming.contains(&to), "{from:?} to {to:?}: {out}");
            let expected = if naming.contains(&to) || refusing.contains(&to) { vec![] } else { vec![path] };
            assert_eq!(lost(&report, to), expected, "{from:?} to {to:?}: {out}");
        }
    }
}

#[test]
fn r42_the_name_of_a_speaker_the_clip_of_a_video_and_citations_are_reported() {
    let cases = [
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "user", "name": "Ann", "content": "a"}, {"role": "user", "name": "Bob", "content": "b"},
                {"role": "assistant", "content": "c", "annotations": [{"type": "url_citation", "url_citation":
                    {"url": "https://a.example", "title": "t", "start_index": 0, "end_index": 1}}]},
                {"role": "user", "content": "d"}]}),
            vec!["/messages/0/name", "/messages/1/name", "/messages/2/annotations"],
            [].as_slice(),
        ),
        (
            Dialect::OpenAiResponses,
            json!({"input": [{"role": "user", "content": "a"}, {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "b", "annotations": []},
                {"type": "output_text", "text": "c", "annotations": [{"type": "url_citation", "url": "https://a.example",
                    "title": "t", "start_index": 0, "end_index": 1}]}]}, {"role": "user", "content": "d"}]}),
            vec!["/input/1/content/1/annotations"],
            &[],
        ),
        (
            Dialect::Anthropic,
            json!({"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [
                {"type": "text", "text": "b", "citations": [{"type": "char_location", "cited_text": "x",
                    "document_index": 0, "document_title": null, "start_char_index": 0, "end_char_index": 1}]}]},
                {"role": "user", "content": "c"}]}),
            vec!["/messages/1/content/0/citations"],
            &[],
        ),
        (
            Dialect::Gemini,
            json!({"contents": [{"role": "user", "parts": [{"text": "a"},
                {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/v.mp4"},
                 "videoMetadata": {"startOffset": "3s", "endOffset": "9s"}}]}]}),
            vec!["/contents/0/parts/1/videoMetadata"],
            &[Dialect::OpenAiChat, Dialect::Bedrock],
        ),
    ];
    // The targets that do not take the part, which is reported itself.
    for (from, body, paths, refusing) in cases {
        for to in others(from) {
            let (_, report) = turn(&body, from, to);
            let is_left_out = report.iter().any(|found| found.message.starts_with("this image or file"));
            assert_eq!(is_left_out, refusing.contains(&to), "{from:?} to {to:?}: {report:?}");
            assert_eq!(lost(&report, to), if is_left_out { vec![] } else { paths.clone() }, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn r42_a_mark_for_a_cache_and_the_name_of_a_tool_are_no_loss() {
    let body = json!({"max_tokens": 9, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}]});
    for to in others(Dialect::Anthropic) {
        assert_eq!(lost(&turn(&body, Dialect::Anthropic, to).1, to), [""; 0], "{to:?}");
    }
    let body = json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls":
        [{"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": "r"}]});
    for to in others(Dialect::OpenAiChat) {
        assert_eq!(lost(&turn(&body, Dialect::OpenAiChat, to).1, to), [""; 0], "{to:?}");
    }
}

#[test]
fn r42_each_part_that_is_left_out_is_reported_at_its_place() {
    let dropped = |body: &Value, from, to| -> Vec<Option<String>> {
        let (_, report) = turn(body, from, to);
        let parts = report.into_iter().filter(|found| found.code == FindingCode::UnsupportedPart);
        parts.filter(|found| found.action == Some(Action::Dropped)).map(|found| found.path.clone()).collect()
    };
    let at = |paths: &[&str]| -> Vec<Option<String>> { paths.iter().map(|path| Some((*path).to_owned())).collect() };
    let upload = json!({"type": "container_upload", "file_id": "file_1"});
    let body = json!({"max_tokens": 9, "messages": [
        {"role": "user", "content": [upload, {"type": "text", "text": "a"}, upload]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "c2ln"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"}, upload,
            {"type": "image", "source": {"type": "file", "file_id": "file_2"}}]}]});
    let mut paths = dropped(&body, Dialect::Anthropic, Dialect::Bedrock);
    paths.sort();
    let expected = [
        "/messages/0/content/0",
        "/messages/0/content/2",
        "/messages/1/content/0",
        "/messages/2/content/1",
        "/messages/2/content/2",
    ];
    assert_eq!(paths, at(&expected));
    // Parts that are items of their own, and members of an item.
    let body = json!({"input": [{"role": "user", "content": "a"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
        {"role": "user", "content": "c"}]});
    assert_eq!(dropped(&body, Dialect::OpenAiResponses, Dialect::Gemini), at(&["/input/1"]));
    let body = json!({"messages": [{"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "t"}, {"role": "user", "content": "c"}]});
    assert_eq!(dropped(&body, Dialect::OpenAiChat, Dialect::Gemini), at(&["/messages/1"]));
    let body = json!({"system": [{"text": "s"}, {"guardContent": {"text": {"text": "g"}}}],
        "messages": [{"role": "user", "content": [{"text": "a"}, {"guardContent": {"text": {"text": "h"}}}]}]});
    assert_eq!(dropped(&body, Dialect::Bedrock, Dialect::Anthropic), at(&["/system/1", "/messages/0/content/1"]));
}

#[test]
fn r42_an_image_of_a_result_that_is_left_out_is_reported_with_its_call() {
    let image = json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}});
    let body = json!({"max_tokens": 9, "tools": [{"name": "f", "input_schema": {"type": "object"}}], "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [image, image]}]}]});
    let (_, report) = turn(&body, Dialect::Anthropic, Dialect::Bedrock);
    let parts = report.iter().filter(|found| found.code == FindingCode::UnsupportedPart);
    let parts: Vec<_> = parts.map(|found| (found.call_id.as_deref(), found.path.as_deref(), found.action)).collect();
    assert_eq!(parts, [(Some("toolu_1"), None, Some(Action::Dropped)); 2]);
}
