//! Citations (R8) and the numbers of sources (R9).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use rethread::history::HistoryEntry;
use rethread::message::{AnswerMeta, Continuation, Role};
use rethread::replay::{Citations, CompletedTurns};
use rethread::synthetic_result::UNCITED;
use rethread::tool::ToolResult;

fn cited() -> Policy {
    Policy { call: PolicyLayer { citations: Some(Citations::Replay), ..PolicyLayer::default() }, ..always() }
}

/// Drops what the answers of these entries do not cite, as an append to an empty history.
fn drop_uncited(entries: &mut Vec<HistoryEntry>, policy: &Policy) -> Option<u64> {
    let completed = CompletedTurns { known: &Chat::new().history, may_replace: &|_| true };
    completed.drop_uncited_sources(entries, policy, &mut Vec::new())
}

const THREE: &str = r#"[{"source_number":0,"content":"zero"}, {"source_number":3,"content":"three","n":1.50}, {"source_number":10,"content":"ten"}]"#;

fn searched(found: &str, answer: &str) -> Chat {
    Chat::of(&[user("q"), calls(&["a"]), result("a", found), says(answer)])
}

/// A result as a tool of a run gave it.
fn returned(content: &Json, answer: &str) -> Chat {
    let mut chat = Chat::new();
    let body = Value::from(vec![user("q"), calls(&["a"]), result("a", ""), says(answer)]).to_string();
    for mut entry in chat.joined(NOW - AGE, CHAT, &body).entries {
        if let HistoryEntry::Invocation(call) = &mut entry {
            call.result = Some(ToolResult { content: content.clone(), is_error: false, dialect: None, template: None });
        }
        chat.history.apply(entry);
    }
    chat
}

fn sources(chat: &Chat) -> std::collections::BTreeMap<u64, Json> {
    let mut sources = std::collections::BTreeMap::new();
    chat.history.each_source(&mut |number, source| {
        sources.insert(number, source);
    });
    sources
}

/// What the result is after this answer.
fn kept(found: &str, answer: &str) -> String {
    let chat = searched(found, answer);
    let stored = chat.call("a").result.clone();
    let (lines, report) = chat.shown(&cited());
    let kept = lines[2].strip_prefix("a=").unwrap().to_owned();
    assert_eq!(kept == found, !report.contains(&"uncited"), "{report:?}");
    assert_eq!(chat.call("a").result, stored);
    // Stored so, it is the same.
    let mut joined = Chat::new();
    let body = Value::from(vec![user("q"), calls(&["a"]), result("a", found), says(answer)]).to_string();
    let mut entries = joined.joined(NOW - AGE, CHAT, &body).entries;
    let store = global(PolicyLayer { citations: Some(Citations::Store), ..PolicyLayer::default() });
    drop_uncited(&mut entries, &store);
    for entry in entries {
        joined.history.apply(entry);
    }
    assert_eq!(joined.lines(&always())[2], format!("a={kept}"));
    assert_eq!(joined.lines(&cited())[2], format!("a={kept}"), "a second time nothing more goes");
    kept
}

#[test]
fn r08_cited_items_are_kept_unchanged() {
    assert_eq!(kept(THREE, "As [source3] says."), r#"[{"source_number":3,"content":"three","n":1.50}]"#);
    assert_eq!(
        kept(THREE, "[source10] and [source0]"),
        r#"[{"source_number":0,"content":"zero"},{"source_number":10,"content":"ten"}]"#
    );
    assert_eq!(kept(THREE, "[source0][source3][source10]"), THREE, "all of them: not a byte changes");
}

#[test]
fn r08_citations_are_recognized() {
    let three = r#"[{"source_number":3,"content":"three","n":1.50}]"#;
    for hit in
        ["[source3]", "[Source03]", "[SOURCE3].", "[[source3]]", "[source3](u)", "x[source0003]y", "[source [source3]"]
    {
        assert_eq!(kept(THREE, hit), three, "{hit}");
    }
    for miss in [
        "[source 3]",
        "[3]",
        "[source3, source0]",
        "\u{3010}source3\u{3011}",
        "[source3-4]",
        "[source]",
        "[source3",
        "source3",
        "[source\u{663}]",
        "[\u{17f}ource3]",
        "[sources3]",
        "[source3 ]",
        "[source99999999999999999999999]",
        " ",
    ] {
        assert_eq!(kept(THREE, miss), UNCITED, "{miss}");
    }
}

#[test]
fn r08_without_an_answer_no_source_is_removed() {
    for last in [says(""), json!({ "role": "assistant", "content": null }), user("next")] {
        let chat = Chat::of(&[user("q"), calls(&["a"]), result("a", THREE), last, user("next")]);
        assert_eq!(chat.lines(&cited())[2], format!("a={THREE}"));
    }
    // The turn is under way: the model has its say still.
    let chat = Chat::of(&[user("q"), calls(&["a"]), result("a", THREE), calls(&["b"]), result("b", "B")]);
    assert_eq!(chat.lines(&cited())[2], format!("a={THREE}"));
    let live = Chat::of(&[user("q"), calls(&["a"]), result("a", THREE), says("none")]);
    let (body, _) = render(&Chat::new().history, Some(&live.history), CHAT, &cited());
    assert_eq!(lines(&body)[2], format!("a={THREE}"));
    // And by default nothing goes at all.
    assert_eq!(searched(THREE, "none").lines(&always())[2], format!("a={THREE}"));
}

#[test]
fn r08_a_truncated_answer_removes_no_source() {
    let mut chat = Chat::new();
    let body = Value::from(vec![user("q"), calls(&["a"]), result("a", THREE), says("As [source3]")]).to_string();
    for mut entry in chat.joined(NOW - AGE, CHAT, &body).entries {
        if let HistoryEntry::Message(message) = &mut entry {
            message.status = rethread::message::MessageStatus::Stopped;
        }
        chat.history.apply(entry);
    }
    assert_eq!(chat.lines(&cited())[2], format!("a={THREE}"));
}

#[test]
fn r08_text_beside_calls_can_cite_and_turns_are_separate() {
    let mut asks = calls(&["b"]);
    asks["content"] = json!("[source0] is not enough.");
    let chat = Chat::of(&[
        user("q"),
        calls(&["a"]),
        result("a", THREE),
        asks,
        result("b", "plain"),
        says("So [source3]."),
        user("q"),
        calls(&["c"]),
        result("c", r#"[{"source_number":11,"content":"eleven"}]"#),
        says("As [source10] said."),
    ]);
    let lines = chat.lines(&cited());
    assert_eq!(lines[2], r#"a=[{"source_number":0,"content":"zero"},{"source_number":3,"content":"three","n":1.50}]"#);
    assert_eq!((lines[4].as_str(), lines[8].as_str()), ("b=plain", "c=[]"));
}

#[test]
fn r08_a_result_that_is_not_a_list_of_sources_is_unchanged() {
    let same = [
        "plain",
        "",
        "7",
        "null",
        "true",
        "\"text\"",
        "[]",
        "{}",
        "[1,2,3]",
        "[{}]",
        "[{\"id\":1}]",
        "[{\"source_number\":1}",
        r#"{"source_number":50,"content":"x"}"#,
        r#"{"items":[{"source_number":1}]}"#,
        r#"[[{"source_number":1}]]"#,
        "source_number",
    ];
    for found in same {
        assert_eq!(kept(found, "none"), found);
        assert_eq!(kept(found, "[source1]"), found);
    }
}

#[test]
fn r08_a_list_of_sources_can_be_a_value_or_a_text_block() {
    // As a tool of a run returned it.
    let three = Json::parse(THREE).unwrap();
    assert_eq!(returned(&three, "[source10]").lines(&cited())[2], r#"a=[{"source_number":10,"content":"ten"}]"#);
    assert_eq!(returned(&three, "none").lines(&cited())[2], format!("a={UNCITED}"));
    // A tool that returns something like blocks returns them, and no sources.
    let blocks = json!([{ "text": THREE }]).to_string();
    assert_eq!(returned(&Json::parse(&blocks).unwrap(), "none").lines(&cited())[2], format!("a={blocks}"));
    // As Anthropic has it: the block keeps what else is in it.
    let text = Value::from(THREE).to_string();
    let body = format!(
        r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"look","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{{"text":{text},"cache_control":{{"type":"ephemeral"}},"type":"text"}},{{"type":"text","text":"and more"}}],"is_error":false}}]}},{{"role":"assistant","content":"As [source0]."}}]"#
    );
    let chat = Chat::new().at(NOW - AGE, CLAUDE, &body);
    let (body, rendered) = chat.render(CLAUDE, &cited());
    let shown = &body["messages"][2]["content"][0];
    assert_eq!(shown["is_error"], false);
    assert_eq!(
        shown["content"],
        json!([{ "text": r#"[{"source_number":0,"content":"zero"}]"#, "cache_control": { "type": "ephemeral" }, "type": "text" }, { "type": "text", "text": "and more" }])
    );
    assert!(
        rendered
            .report
            .iter()
            .any(|finding| finding.code.as_str() == "uncited" && finding.call_id.as_deref() == Some("a"))
    );
}

#[test]
fn r08_a_list_that_cannot_be_rewritten_exactly_is_unchanged() {
    // Half of a surrogate pair has no place in a text of ours.
    let half = r#""[{\"source_number\":1,\"content\":\"\ud800\"},{\"source_number\":2,\"content\":\"x\"}]""#;
    let chat = returned(&Json::parse(half).unwrap(), "[source2]");
    let (provider, policy) = (provider(CHAT), cited());
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let rendered = Renderer::default().render(&chat.history, None, &request, NOW).unwrap();
    assert!(String::from_utf8(rendered.body).unwrap().contains(half));
    assert_eq!((rendered.max_source, rendered.report), (Some(2), vec![]));
    // A whole pair, escaped, is no hindrance; nor is a character that was lost before us.
    let lost = r#""[{\"source_number\":1,\"content\":\"\ufffd\"},{\"source_number\":2,\"content\":\"\ud83d\ude00\"}]""#;
    assert_eq!(
        returned(&Json::parse(lost).unwrap(), "[source2]").lines(&cited())[2],
        "a=[{\"source_number\":2,\"content\":\"\u{1f600}\"}]"
    );
}

#[test]
fn r08_a_new_answer_invalidates_the_cached_encoding() {
    let mut renderer = Renderer::default();
    let (provider, policy) = (provider(CHAT), cited());
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut chat = Chat::of(&[user("q"), calls(&["a"]), result("a", THREE)]);
    let first = renderer.render(&chat.history, None, &request, NOW).unwrap();
    assert!(String::from_utf8(first.body).unwrap().contains("zero"));
    chat = chat.and(&[says("[source3]"), user("next")]);
    let second = renderer.render(&chat.history, None, &request, NOW).unwrap();
    let text = String::from_utf8(second.body.clone()).unwrap();
    assert!(!text.contains("zero") && text.contains("three"));
    // The round is new, what stands before it is not; from then on all of it is kept.
    assert_eq!(second.stable_prefix, 1);
    let third = renderer.render(&chat.history, None, &request, NOW).unwrap();
    assert_eq!((third.body, third.stable_prefix), (second.body, 5));
}

#[test]
fn r08_a_renderer_in_use_gives_the_same_bodies_as_a_new_one() {
    let (provider, policy) = (provider(CHAT), cited());
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut kept = Renderer::default();
    let mut chat = Chat::new();
    let appends: [&[Value]; 9] = [
        &[user("q"), calls(&["a", "b"]), result("a", THREE)],
        &[says("[source3]")],
        // More of the same answer.
        &[says("and [source10]")],
        // A result of that turn which comes late, after the next one has begun.
        &[user("q"), calls(&["c"]), result("c", THREE)],
        &[result("b", THREE)],
        // No answer came, and none will.
        &[user("q"), calls(&["d"]), result("d", THREE)],
        &[says("none")],
        &[user("thanks")],
        &[says("[source0]")],
    ];
    let mut shown = Vec::new();
    for messages in appends {
        chat = chat.and(messages);
        let body = kept.render(&chat.history, None, &request, NOW).unwrap().body;
        assert_eq!(body, Renderer::default().render(&chat.history, None, &request, NOW).unwrap().body);
        shown = lines(&serde_json::from_slice(&body).unwrap());
    }
    let results: Vec<usize> =
        shown.iter().filter(|line| line.contains('=')).map(|line| line.matches("source_number").count()).collect();
    assert_eq!(results, [2, 2, 3, 0]);
}

#[test]
fn trf_a14_a_list_of_numbers_is_not_a_list_of_sources() {
    let chat = searched("[1,2,3]", "[source1]");
    assert_eq!(chat.lines(&cited())[2], "a=[1,2,3]");
    assert_eq!((chat.render(CHAT, &cited()).1.max_source, sources(&chat).len()), (None, 0));
}

#[test]
fn trf_a15_a_number_among_sources_is_not_a_source() {
    assert_eq!(kept(r#"[{"source_number":0},5]"#, "[source0]"), r#"[{"source_number":0}]"#);
    assert_eq!(kept(r#"[{"source_number":0},5,null,"x",[1]]"#, "none"), UNCITED);
}

#[test]
fn trf_a16_an_invalid_source_number_is_never_cited() {
    assert_eq!(kept(r#"[{"source_number":[0]},{"source_number":0}]"#, "[source0]"), r#"[{"source_number":0}]"#);
    for odd in ["[0]", "{}", "\"0\"", "null", "-0.5", "0.5", "1e400", "-1"] {
        assert_eq!(kept(&format!(r#"[{{"source_number":{odd}}}]"#), "[source0] [source1]"), "[]", "{odd}");
    }
    for same in ["0", "0.0", "0e5", "false"] {
        let found = format!(r#"[{{"source_number":{same}}}]"#);
        assert_eq!(kept(&found, "[source0]"), found);
    }
}

#[test]
fn trf_a19_sources_of_an_unknown_message_are_counted_but_not_sent() {
    let mut chat = searched(r#"[{"source_number":2,"content":"two"}]"#, "done");
    let mut lost = chat.call("a").clone();
    lost.id = "lost".into();
    lost.call_id = "lost".into();
    lost.message_id = "nobody".into();
    lost.result.as_mut().unwrap().content = Json::parse(r#"[{"source_number":7,"content":"seven"}]"#).unwrap();
    chat.history.apply(HistoryEntry::Invocation(lost));
    let (body, rendered) = chat.render(CHAT, &always());
    assert_eq!(rendered.max_source, Some(7));
    assert!(!body.to_string().contains("seven"));
}

#[test]
fn trf_a20_counted_sources_and_sources_in_the_map() {
    let chat = Chat::of(&[
        user("q"),
        calls(&["a", "b"]),
        result(
            "a",
            r#"[{"source_number":3,"content":"three"},{"source_number":9},{"source_number":"11","content":"x"}]"#,
        ),
        result("b", r#"{"source_number":50,"content":"x"}"#),
        says("done"),
    ]);
    assert_eq!(chat.render(CHAT, &always()).1.max_source, Some(9));
    assert_eq!(sources(&chat).keys().copied().collect::<Vec<_>>(), [3]);
    assert_eq!(Chat::of(&[user("q")]).render(CHAT, &always()).1.max_source, None);
}

#[test]
fn trf_a21_of_two_sources_with_one_number_the_later_is_used() {
    let found = |text: &str| format!(r#"[{{"source_number":3,"content":"{text}","content_id":"c1"}}]"#);
    let chat = Chat::of(&[
        user("q"),
        calls(&["a", "b"]),
        result("a", &found("early")),
        result("b", &found("late")),
        says("done"),
    ]);
    let sources = sources(&chat);
    assert_eq!(
        sources.get(&3).unwrap().as_str(),
        r#"{"id":"c1","source_number":3,"content":"late","content_id":"c1"}"#
    );
}

#[test]
fn trf_a28_a_list_of_which_nothing_is_cited_becomes_empty() {
    assert_eq!(kept(THREE, "As [source77] says."), "[]");
}

#[test]
fn trf_a29_a_list_followed_by_text_is_not_a_list_of_sources() {
    let found = r#"[{"source_number":4,"content":"x"}] Remember to cite."#;
    assert_eq!(kept(found, "none"), found);
    assert_eq!(searched(found, "none").render(CHAT, &always()).1.max_source, None);
}

#[test]
fn r09_numbering_continues_when_results_are_no_longer_sent() {
    let chat = searched(THREE, "As [source3] says.");
    // Too old to be shown, and the answer still says [source3].
    let (body, rendered) = chat.render(CHAT, &global(window(0.0)));
    assert!(!body.to_string().contains("source_number"));
    assert_eq!(rendered.max_source, Some(10));
    assert_eq!(sources(&chat).keys().copied().collect::<Vec<_>>(), [0, 3, 10]);
    // The turn that is under way counts as well.
    let live = searched(r#"[{"source_number":11,"content":"x"}]"#, "done");
    assert_eq!(render(&chat.history, Some(&live.history), CHAT, &always()).1.max_source, Some(11));
}

#[test]
fn r08_items_set_aside_do_not_split_a_turn() {
    let ghost = result("ghost", "boo");
    let body = Value::from(vec![
        user("q"),
        calls(&["a"]),
        result("a", THREE),
        ghost,
        says("[source3]"),
        user("q"),
        says("[source0]"),
    ]);
    let mut entries = Chat::new().joined(NOW - AGE, CHAT, &body.to_string()).entries;
    let store = global(PolicyLayer { citations: Some(Citations::Store), ..PolicyLayer::default() });
    assert_eq!(drop_uncited(&mut entries, &store), Some(10));
    let result = entries.iter().find_map(HistoryEntry::result).unwrap();
    assert_eq!(result.content.view().as_text().unwrap(), r#"[{"source_number":3,"content":"three","n":1.50}]"#);
    assert_eq!(drop_uncited(&mut entries, &always()), Some(3), "another policy counts and takes nothing");
}

#[test]
fn r08_the_setting_of_the_innermost_level_is_used() {
    let layer = |citations| PolicyLayer { citations: Some(citations), ..PolicyLayer::default() };
    let policy = Policy { session: layer(Citations::Off), channel: layer(Citations::Replay), ..always() };
    assert_eq!(searched(THREE, "none").lines(&policy)[2], format!("a={THREE}"));
    let policy = Policy { channel: layer(Citations::Store), ..always() };
    assert_eq!(searched(THREE, "none").lines(&policy)[2], format!("a={UNCITED}"));
    assert_eq!(Policy::default().citations(), Citations::Off);
}

/// Appends bodies one after the other with citations "store"; returns the chat, and the codes of what was reported.
fn appended(bodies: &[Vec<Value>]) -> (Chat, Vec<&'static str>) {
    let store = global(PolicyLayer { citations: Some(Citations::Store), ..PolicyLayer::default() });
    let (mut chat, mut report) = (Chat::new(), Vec::new());
    for body in bodies {
        let mut entries = chat.joined(NOW - AGE, CHAT, &Value::from(body.clone()).to_string()).entries;
        let completed = CompletedTurns { known: &chat.history, may_replace: &|_| true };
        completed.drop_uncited_sources(&mut entries, &store, &mut report);
        entries.into_iter().for_each(|entry| chat.history.apply(entry));
    }
    (chat, report.iter().map(|finding| finding.code.as_str()).collect())
}

#[test]
fn r08_results_that_were_stored_before_their_answer_are_replaced() {
    let whole = vec![user("q"), calls(&["a", "b"]), result("a", THREE), result("b", "plain"), says("[source3]")];
    let (want, _) = appended(std::slice::from_ref(&whole));
    for split in 1..whole.len() {
        let (chat, report) = appended(&[whole[..split].to_vec(), whole[split..].to_vec()]);
        assert_eq!(chat.lines(&always()), want.lines(&always()), "split at {split}");
        assert_eq!(report, ["uncited"], "split at {split}");
    }
    let (chat, _) = appended(&whole.iter().map(|item| vec![item.clone()]).collect::<Vec<_>>());
    assert_eq!(chat.lines(&always()), want.lines(&always()));
}

#[test]
fn r08_only_the_turn_that_is_answered_loses_sources() {
    let first = [user("q"), calls(&["a"]), result("a", THREE)];
    // Its turn has no answer of its own: another question came first.
    let rest = [says("[source3]"), user("q"), calls(&["b"]), result("b", THREE)];
    let (chat, report) = appended(&[first.to_vec(), rest.to_vec()]);
    assert_eq!(report, ["uncited"]);
    assert_eq!(chat.call("b").result.as_ref().unwrap().content.view().as_text().unwrap(), THREE);
    // A result that comes after the answer was seen by no model call.
    let (chat, report) = appended(&[vec![user("q"), calls(&["a"]), says("[source3]")], vec![result("a", THREE)]]);
    assert_eq!(
        (chat.call("a").result.as_ref().unwrap().content.view().as_text().unwrap(), report.len()),
        (THREE.into(), 0)
    );
}

#[test]
fn r08_r77_a_part_of_an_answer_is_no_answer_and_a_mark_between_two_parts_counts() {
    let in_parts = |parts: &[&str], is_whole: bool| {
        let mut body = vec![user("q"), calls(&["a"]), result("a", THREE)];
        body.extend(parts.iter().map(|text| says(text)));
        let mut entries = Chat::new().joined(NOW - AGE, CHAT, &Value::from(body).to_string()).entries;
        let mut left = parts.len() + 1;
        for entry in &mut entries {
            if let HistoryEntry::Message(message) = entry
                && message.role == Role::Assistant
            {
                left -= 1;
                let is_part = left < parts.len() && (left > 0 || !is_whole);
                let continuation = is_part.then(|| Box::new(Continuation { token: "t".into(), mark: None }));
                message.answer = Some(Box::new(AnswerMeta { continuation, ..AnswerMeta::default() }));
            }
        }
        entries
    };
    let kept = |mut entries: Vec<HistoryEntry>, citations: Citations| {
        if citations == Citations::Store {
            drop_uncited(&mut entries, &global(PolicyLayer { citations: Some(citations), ..PolicyLayer::default() }));
        }
        let mut chat = Chat::new();
        entries.into_iter().for_each(|entry| chat.history.apply(entry));
        let lines = chat.lines(&cited())[2].clone();
        [0, 3, 10]
            .into_iter()
            .filter(|number| lines.contains(&format!("\"source_number\":{number},")))
            .collect::<Vec<u64>>()
    };
    for citations in [Citations::Replay, Citations::Store] {
        assert_eq!(kept(in_parts(&["It says", " so [source3]"], true), citations), [3]);
        assert_eq!(kept(in_parts(&["[source3]"], false), citations), [0, 3, 10]);
        assert_eq!(kept(in_parts(&["[source3] and [sour", "ce10]."], true), citations), [3, 10]);
        assert_eq!(kept(in_parts(&["[sou", "rce", "1", "0]."], true), citations), [10]);
    }
}
