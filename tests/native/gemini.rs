//! Gemini in a history: what came returns, calls without ids find their results, and what other dialects say is said
//! here.

mod properties;

use rethread::finding::{Report, Severity};
use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, RepairOptions, Settings, ToolDefinition, decode_body, validate};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::{Value, json};

const GEMINI: Dialect = Dialect::Gemini;
const CHAT: Dialect = Dialect::OpenAiChat;
const CLAUDE: Dialect = Dialect::Anthropic;

/// A history that bodies are appended to.
struct Session {
    history: History,
    ids: CountingIds,
    report: Report,
}

impl Session {
    fn of(dialect: Dialect, bodies: &[&str]) -> Self {
        let mut session = Self { history: History::new(Seed(3)), ids: CountingIds::default(), report: Report::new() };
        bodies.iter().for_each(|body| session.append(dialect, body));
        session
    }

    fn append(&mut self, dialect: Dialect, body: &str) {
        let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
        let joined = join(JoinBase::history(&self.history), items, &Origin { at: 1, ..Origin::default() }, &self.ids);
        self.report.extend(joined.report);
        joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
    }

    fn render(&self, dialect: Dialect, url: &str, params: &str, tools: &[ToolDefinition]) -> (String, Report) {
        let provider = ProviderRequest {
            dialect,
            url: url.into(),
            params: Json::parse(params).unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let call = PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() };
        let policy = Policy { call, ..Policy::default() };
        let request = RenderRequest { provider: &provider, instructions: None, tools, policy: &policy };
        let rendered = Renderer::default().render(&self.history, None, &request, 2).unwrap();
        let errors: Vec<_> =
            validate(&rendered.body, dialect).into_iter().filter(|found| found.severity == Severity::Error).collect();
        let text = String::from_utf8(rendered.body).unwrap();
        assert!(errors.is_empty(), "{errors:?} {text}");
        (text, rendered.report)
    }

    /// The list of the body, as text.
    fn list(&self, dialect: Dialect) -> String {
        let name = if dialect == GEMINI { "contents" } else { "messages" };
        let (text, _) = self.render(dialect, "https://x", r#"{"max_tokens":9}"#, &[]);
        JsonRef::parse(&text).unwrap().get(name).unwrap().as_raw().to_owned()
    }

    fn value(&self, dialect: Dialect) -> Value {
        serde_json::from_str(&self.list(dialect)).unwrap()
    }
}

/// What came in one body, or in several, goes out as it came.
fn returns(contents: &[&str]) {
    let one = format!("[{}]", contents.join(","));
    assert_eq!(Session::of(GEMINI, &[&one]).list(GEMINI), one);
    let several: Vec<String> = contents.iter().map(|content| format!("[{content}]")).collect();
    let several: Vec<&str> = several.iter().map(String::as_str).collect();
    assert_eq!(Session::of(GEMINI, &several).list(GEMINI), one, "one by one");
}

const ASK: &str = r#"{"role":"user","parts":[{"text":"q"}]}"#;
const SAY: &str = r#"{"role":"model","parts":[{"text":"a"}]}"#;

// ---- R43, R45: what came returns

#[test]
fn r45_every_form_of_a_content_returns_unchanged() {
    returns(&[
        r#"{"parts":[{"text":"\u0041"}]}"#,
        r#"{"parts":[{"text":"a","thought":true,"thoughtSignature":"c2ln"},{"thought":true},{"text":""},{"thoughtSignature":"x","text":"b"}],"role":"model"}"#,
        r#"{"role":"","parts":[{"inline_data":{"mime_type":"image\/png","data":"AA=="}},{"fileData":{"fileUri":"gs://b/f","mimeType":"image/png"},"videoMetadata":{"fps":1.0}}],"x":1e2}"#,
        r#"{"role":"user","parts":[{"text":"x","text":"y"},{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"}}]}"#,
        r#"{"role":"model","parts":[{"executableCode":{"code":"1"}},{"codeExecutionResult":{"output":"1"}},{"toolCall":{"id":"s","args":{}},"thoughtSignature":"c"},{"toolResponse":{"id":"s"}},{"text":"","thoughtSignature":"ZQ=="}]}"#,
        ASK,
    ]);
}

#[test]
fn r43_r45_calls_and_results_return_byte_for_byte() {
    returns(&[
        ASK,
        r#"{"role":"model","parts":[{"text":"t"},{"functionCall":{"name":"f","args":{"n":1.10,"n":1E+5,"s":"\ud800\/"}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"7","name":"default_api:g","args":{}}},{"function_call":{"args":{},"name":"h"},"thought_signature":"x"}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1.50}}},{"functionResponse":{"id":"7","name":"default_api:g","response":{"error":"no","code":5}}},{"function_response":{"response":{"result":["\u0041"]},"name":"h","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}},{"text":"and?"}]}"#,
        r#"{"role":"model","parts":[{"functionCall":{"name":"f"}}]}"#,
        r#"{"parts":[{"functionResponse":{"name":"f","response":{},"scheduling":"SILENT"}}],"role":"user"}"#,
        SAY,
        r#"{"role":"user","parts":[{"text":"x"}]}"#,
    ]);
}

#[test]
fn r43_r45_text_beside_results_keeps_its_position() {
    let calls =
        r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]}"#;
    let [f, g] =
        ["f", "g"].map(|name| format!(r#"{{"functionResponse":{{"name":"{name}","response":{{"output":1}}}}}}"#));
    let say = r#"{"text":"wait"}"#;
    for parts in [[say, &f, &g, say], [&f, say, &g, say], [say, say, &g, &f], [&g, &f, say, say], [say, &f, say, &g]] {
        returns(&[ASK, calls, &format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","))]);
    }
    // Newer models read such a content as the model's, if it is the last one.
    let list = format!(r#"[{ASK},{calls},{{"role":"user","parts":[{say},{f},{g},{say}]}}]"#);
    let (text, _) = Session::of(GEMINI, &[&list]).render(GEMINI, "https://x", r#"{"model":"gemini-3.6-flash"}"#, &[]);
    let apart = format!(r#"{{"role":"user","parts":[{f},{g}]}},{{"role":"user","parts":[{say},{say}]}}]}}"#);
    assert!(text.ends_with(&apart), "{text}");
}

#[test]
fn r43_r45_roles_in_capitals_are_accepted() {
    let call = r#"{"role":"MODEL","parts":[{"functionCall":{"name":"f","args":{}}}]}"#;
    let result = r#"{"role":"USER","parts":[{"functionResponse":{"name":"f","response":{"output":1}}}]}"#;
    returns(&[r#"{"parts":[{"text":"q"}],"role":"User"}"#, call, result, r#"{"role":"USER","parts":[{"text":"q"}]}"#]);
    assert_eq!(pairs(&Session::of(GEMINI, &[&format!("[{call},{result}]")]))[0].1.as_deref(), Some("1"));
    let one = r#"{"contents":{"role":"USER","parts":{"text":"q"}}}"#;
    assert_eq!(Session::of(GEMINI, &[one]).list(GEMINI), format!("[{ASK}]"));
}

#[test]
fn r45_results_keep_their_order_and_separate_ones_are_joined() {
    let calls = r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"name":"f","args":{"a":2}}}]}"#;
    let response = |name: &str, text: &str| {
        format!(r#"{{"functionResponse":{{"name":"{name}","response":{{"output":"{text}"}}}}}}"#)
    };
    let content = |parts: &[String]| format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","));
    // Apart they are refused (gemini-cli#16415).
    let cut = [content(&[response("f", "1")]), content(&[response("g", "2"), response("f", "3")])];
    let whole = content(&[response("f", "1"), response("g", "2"), response("f", "3")]);
    let given = format!("[{ASK},{calls},{},{}]", cut[0], cut[1]);
    assert_eq!(Session::of(GEMINI, &[&given]).list(GEMINI), format!("[{ASK},{calls},{whole}]"));
    returns(&[ASK, calls, &content(&[response("f", "1"), response("g", "2"), response("f", "3")]), ASK]);
    returns(&[ASK, calls, &content(&[response("g", "2"), response("f", "1"), response("f", "3")]), ASK]);
    // Newer models know no role "function".
    let old = whole.replace("user", "function");
    assert_eq!(
        Session::of(GEMINI, &[&format!("[{ASK},{calls},{old}]")]).list(GEMINI),
        format!("[{ASK},{calls},{whole}]")
    );
}

#[test]
fn r45_consecutive_answers_then_one_content_of_results() {
    let call =
        |id: &str| format!(r#"{{"role":"model","parts":[{{"functionCall":{{"id":"{id}","name":"f","args":{{}}}}}}]}}"#);
    let results = |ids: &[&str]| {
        let parts: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"{id}"}}}}}}"#))
            .collect();
        format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","))
    };
    returns(&[ASK, &call("a"), &call("b"), &results(&["a", "b"]), &call("c"), &results(&["c"]), ASK]);
    returns(&[ASK, &call("a"), &call("b"), &call("c"), &results(&["a", "b", "c"])]);
    returns(&[ASK, &call("a"), &call("b"), &results(&["b", "a"]), &call("c"), &results(&["c"])]);
    // They are a pair each in the dialects that want it so.
    let list = format!("[{ASK},{},{},{}]", call("a"), call("b"), results(&["a", "b"]));
    let chat = Session::of(GEMINI, &[&list]).value(CHAT);
    let roles: Vec<&str> = chat.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(Session::of(GEMINI, &[&list]).value(CLAUDE).as_array().unwrap().len(), 4);
}

// ---- R5: calls without ids

/// The results of a body, by the arguments of their calls.
fn pairs(session: &Session) -> Vec<(String, Option<String>)> {
    let calls = session.history.invocations().iter();
    calls
        .map(|call| (call.arguments.text().into_owned(), call.result.as_ref().map(|r| r.content.as_str().to_owned())))
        .collect()
}

#[test]
fn r05_without_ids_results_are_paired_by_name_and_order() {
    let calls = r#"[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"g","args":{"a":2}}},{"functionCall":{"name":"f","args":{"a":3}}}]}]"#;
    let results = r#"[{"parts":[{"functionResponse":{"name":"g","response":{"output":2}}},{"functionResponse":{"name":"f","response":{"output":1}}},{"functionResponse":{"name":"f","response":{"output":3}}}]}]"#;
    let want: Vec<(String, Option<String>)> = (1..4).map(|n| (format!("{{\"a\":{n}}}"), Some(n.to_string()))).collect();
    let mut session = Session::of(GEMINI, &[calls, results]);
    assert_eq!(pairs(&session), want);
    assert!(session.report.is_empty(), "{:?}", session.report);
    // The next round uses the same names, and takes nothing from the first.
    session.append(GEMINI, calls);
    session.append(GEMINI, results);
    assert_eq!(pairs(&session)[3..], want);
    assert!(session.report.is_empty());
    // One id each where ids are wanted, the same in call and result; none where none came.
    let chat = session.value(CHAT);
    let mut ids: Vec<&str> = chat
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|m| m["tool_calls"].as_array().into_iter().flatten())
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let answered: Vec<&str> = chat.as_array().unwrap().iter().filter_map(|m| m["tool_call_id"].as_str()).collect();
    assert_eq!((ids.len(), &ids), (6, &answered));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    assert!(!session.list(GEMINI).contains("\"id\""));
}

#[test]
fn r05_ids_on_only_one_side_of_a_pair() {
    let call =
        |id: &str| format!(r#"[{{"role":"model","parts":[{{"functionCall":{{{id}"name":"f","args":{{}}}}}}]}}]"#);
    let result =
        |id: &str| format!(r#"[{{"parts":[{{"functionResponse":{{{id}"name":"f","response":{{"output":1}}}}}}]}}]"#);
    for (of_call, of_result) in [("", r#""id":"made_up","#), (r#""id":"7","#, ""), (r#""id":"7","#, r#""id":"7","#)] {
        let session = Session::of(GEMINI, &[&call(of_call), &result(of_result)]);
        assert_eq!(pairs(&session), [("{}".to_owned(), Some("1".to_owned()))], "{of_call} {of_result}");
        assert!(!session.list(GEMINI).contains("made_up"));
    }
    // Newer models want it in the result, too.
    let session = Session::of(GEMINI, &[&call(r#""id":"7","#), &result("")]);
    let of_model = |name: &str| session.render(GEMINI, name, "{}", &[]).0.matches(r#""id":"7","name":"f""#).count();
    assert_eq!(["gemini-2.5", "gemini-3.6"].map(of_model), [1, 2]);
    // Another call's id is no name.
    let session = Session::of(GEMINI, &[&call(r#""id":"7","#), &result(r#""id":"8","#)]);
    assert_eq!(pairs(&session)[0].1, None);
    assert_eq!(session.report[0].code.as_str(), "orphan_result");
}

// ---- to other dialects

#[test]
fn r42_results_are_encoded_by_their_type() {
    let list = r#"[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"a","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"b","args":{}}},{"functionCall":{"name":"c","args":{}}},{"functionCall":{"name":"d","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"plain"}}},{"functionResponse":{"name":"b","response":{"error":"it broke"}}},{"functionResponse":{"name":"c","response":{"temperature":1.50,"unit":"C"}}},{"functionResponse":{"name":"d","response":{"result":[1,2]},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]}]"#;
    let session = Session::of(GEMINI, &[list]);
    let claude = session.value(CLAUDE);
    let results = &claude[2]["content"];
    assert_eq!((&results[0]["content"], &results[0]["is_error"]), (&json!("plain"), &Value::Null));
    assert_eq!((&results[1]["content"], &results[1]["is_error"]), (&json!("it broke"), &json!(true)));
    assert_eq!(results[2]["content"], json!(r#"{"temperature":1.50,"unit":"C"}"#));
    assert_eq!(results[3]["content"][0]["text"], "[1,2]");
    assert_eq!(results[3]["content"][1]["source"]["data"], "AA==");
    let text = claude.to_string();
    assert!(!text.contains("c2ln") && !text.contains("hm"), "signatures and thoughts are Gemini's alone: {text}");
    let chat = session.value(CHAT);
    assert_eq!(chat[3]["content"], "Error: it broke");
    assert_eq!(chat[6]["content"][1]["image_url"]["url"], "data:image/png;base64,AA==");
}

// ---- from other dialects

#[test]
fn r42_r45_images_of_a_foreign_result_do_not_move_the_text_beside_it() {
    let call = r#"[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]}]"#;
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#;
    let foreign = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"text","text":"seen"}},{image}]}}]}}]}}"#
    );
    // The second result of the call is set aside; the words beside it stay.
    let beside = r#"[{"role":"user","parts":[{"text":"one"},{"functionResponse":{"id":"a","name":"f","response":{"output":"x"}}},{"text":"two"}]}]"#;
    let mut session = Session::of(GEMINI, &[call]);
    session.append(CLAUDE, &foreign);
    session.append(GEMINI, beside);
    let (text, _) = session.render(GEMINI, "https://h/models/gemini-2.5-pro:generateContent", "{}", &[]);
    let places = [r#""one""#, "functionResponse", "AA==", r#""two""#].map(|word| text.find(word).expect(word));
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn r42_content_that_a_system_message_cannot_have_is_reported() {
    let image = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}"#;
    let body = format!(
        r#"[{{"role":"system","content":[{{"type":"text","text":"Be brief."}},{image}]}},{{"role":"user","content":"Hi"}}]"#
    );
    let session = Session::of(CHAT, &[&body]);
    for dialect in [GEMINI, CLAUDE, Dialect::Mistral, Dialect::OpenAiResponses] {
        let (text, report) = session.render(dialect, "https://h", r#"{"model":"m","max_tokens":9}"#, &[]);
        assert!(text.contains("Be brief.") && !text.contains("iVBORw0KGgo="), "{dialect:?}: {text}");
        let lost = report.iter().filter(|found| found.code.as_str() == "unsupported_part").count();
        assert_eq!(lost, 1, "{dialect:?}: {report:?}");
    }
}

#[test]
fn r42_openai_chat_messages_in_gemini() {
    let body = r#"{"messages":[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"https://x/y.jpg?z"}},{"type":"file","file":{"file_id":"f"}}]},{"role":"assistant","content":"","tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}},{"id":"c","type":"function","function":{"name":"g.x","arguments":"[1]"}}]},{"role":"tool","tool_call_id":"c","content":"two"},{"role":"tool","tool_call_id":"a b","content":""},{"role":"assistant","content":null,"refusal":"no"},{"role":"user","content":"?"}]}"#;
    let session = Session::of(CHAT, &[body]);
    let (text, report) = session.render(GEMINI, "https://x", "{}", &[]);
    assert_eq!(
        text,
        r#"{"systemInstruction":{"parts":[{"text":"s"},{"text":"d"}]},"contents":[{"role":"user","parts":[{"text":"q"},{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://x/y.jpg?z"}}]},{"role":"model","parts":[{"functionCall":{"id":"a b","name":"f","args":{}},"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="},{"functionCall":{"id":"c","name":"g.x","args":{"value":[1]}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a b","name":"f","response":{"output":""}}},{"functionResponse":{"id":"c","name":"g.x","response":{"output":"two"}}}]},{"role":"model","parts":[{"text":"no"}]},{"role":"user","parts":[{"text":"?"}]}]}"#
    );
    let codes: Vec<&str> = report.iter().map(|found| found.code.as_str()).collect();
    assert_eq!(codes, ["unsupported_part", "invalid_arguments"]);
    // Nobody asked for signatures before version 3; the address or the parameters say which it is.
    for (url, params) in
        [("https://g/models/gemini-2.5-pro:generateContent", "{}"), ("https://x", r#"{"model":"gemini-2.0-flash"}"#)]
    {
        assert!(!session.render(GEMINI, url, params, &[]).0.contains("thoughtSignature"), "{url}");
    }
}

#[test]
fn r42_r45_unsigned_calls_get_the_placeholder_signature_for_models_that_require_one() {
    let call =
        |more: &str| format!(r#"{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{}}}}{more}}}]}}"#);
    let result = r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1}}}]}"#;
    let step = [r#","x":1"#, "", r#","thought_signature":"own""#].map(|more| format!("{},{result}", call(more)));
    let session = Session::of(GEMINI, &[&format!("[{ASK},{}]", step.join(","))]);
    let signatures =
        |url: &str, params: &str| session.render(GEMINI, url, params, &[]).0.matches("ignature\":").count();
    assert_eq!(signatures("https://x", "{}"), 1);
    assert_eq!(signatures("https://x/models/gemini-2.5-pro:generateContent", "{}"), 1);
    assert_eq!(signatures("https://x/models/gemini-4-pro:generateContent", "{}"), 3);
    assert_eq!(signatures("https://x", r#"{"model":"gemini-3-pro-preview"}"#), 3);
    let empty = call(r#","thoughtSignature":"""#);
    let session = Session::of(GEMINI, &[&format!("[{ASK},{empty},{result}]")]);
    assert!(session.render(GEMINI, "x/gemini-2.5", "{}", &[]).0.contains(&empty));
    let (signed, _) = session.render(GEMINI, "x/gemini-3-pro", "{}", &[]);
    assert!(!signed.contains(r#"Signature":"""#) && signed.matches("Signature").count() == 1, "{signed}");
}

#[test]
fn r41_r43_a_part_with_two_data_members_is_sent_as_two() {
    let body = r#"[{"role":"user","parts":[{"text":"q","inlineData":{"mimeType":"image/png","data":"AA=="}}]},{"role":"model","parts":[{"text":"t","functionCall":{"name":"f","args":{}}}]}]"#;
    let session = Session::of(GEMINI, &[body]);
    assert_eq!(session.value(GEMINI)[1]["parts"].as_array().unwrap().len(), 2);
}

#[test]
fn r42_anthropic_messages_in_gemini() {
    let list = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{"n":1.10}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"bad","is_error":true},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"text","text":"two"}]},{"type":"text","text":"and?"}]}]"#;
    let (text, report) = Session::of(CLAUDE, &[list]).render(GEMINI, "gemini-2.5", "{}", &[]);
    assert_eq!(
        text,
        r#"{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"n":1.10}}},{"functionCall":{"id":"b","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"error":"bad"}}},{"functionResponse":{"id":"b","name":"f","response":{"output":"one\n\ntwo"}}}]},{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"and?"}]}]}"#
    );
    assert_eq!(report.iter().map(|found| found.code.as_str()).collect::<Vec<_>>(), ["unsupported_part"]);
    // From version 3 on, a response holds the image itself.
    for url in ["gemini-3-pro", "gemini-10.1", "x"] {
        let (text, _) = Session::of(CLAUDE, &[list]).render(GEMINI, url, "{}", &[]);
        let held = r#""response":{"output":"one\n\ntwo"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]},{"role":"user","parts":[{"text":"and?"}]}]}"#;
        assert!(text.ends_with(held), "{url} {text}");
    }
    // What it cannot hold stands behind it, in a content of its own.
    let url = r#"{"type":"url","url":"https://x/y.png"}"#;
    let list = list.replace(r#"{"type":"base64","media_type":"image/png","data":"AA=="}"#, url);
    let contents = Session::of(CLAUDE, &[&list.replace(r#",{"type":"text","text":"and?"}"#, "")]).value(GEMINI);
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2);
    let file = json!({"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}});
    assert_eq!(contents[3], json!({"role": "user", "parts": [file]}));
}

#[test]
fn r41_case_41_and_54_valid_first_and_last_contents() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":"r"}"#;
    let says = r#"{"role":"assistant","content":"x"}"#;
    for list in [format!("[{call},{result}]"), format!("[{says},{call},{result},{says}]"), format!("[{says}]")] {
        let contents = Session::of(CHAT, &[&list]).value(GEMINI);
        let contents = contents.as_array().unwrap();
        assert!(list.starts_with(&format!("[{says}]")) || contents[0]["role"] == "user", "{list}");
        assert_eq!(contents.last().unwrap()["role"], "user", "{list}");
    }
}

// ---- R55: what is asked beside the messages

#[test]
fn r55_parameters_tools_and_tool_choice() {
    let session = Session::of(
        GEMINI,
        &[&format!(r#"{{"system_instruction":{{"role":"user","parts":[{{"text":"s"}}]}},"contents":[{ASK}]}}"#)],
    );
    let tools = [
        ToolDefinition {
            name: "f".into(),
            description: Some("d".into()),
            parameters: Some(Json::parse(r#"{"$schema":"x","type":"object"}"#).unwrap()),
            strict: false,
            is_async: false,
        },
        ToolDefinition { name: "g".into(), description: None, parameters: None, strict: false, is_async: false },
    ];
    let head = |params: &str| {
        let (text, report) = session.render(GEMINI, "https://x", params, &tools);
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(body["systemInstruction"], json!({"role": "user", "parts": [{"text": "s"}]}));
        (body, report.iter().map(|found| format!("{} {}", found.code.as_str(), found.message)).collect::<Vec<_>>())
    };
    let (body, found) = head(
        r#"{"model":"m","stream":true,"temperature":0.5,"max_tokens":9,"stop":"END","generationConfig":{"temperature":1.0,"thinkingConfig":{"thinkingLevel":"low"}},"user":"u","safetySettings":[],"tools":[{"googleSearch":{}}],"tool_choice":"required"}"#,
    );
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 1.0, "thinkingConfig": {"thinkingLevel": "low"}, "maxOutputTokens": 9, "stopSequences": ["END"]})
    );
    assert_eq!(
        body["tools"],
        json!([{"googleSearch": {}}, {"functionDeclarations": [
        {"name": "f", "description": "d", "parametersJsonSchema": {"$schema": "x", "type": "object"}}, {"name": "g"}]}])
    );
    assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["safetySettings", "toolConfig", "generationConfig", "tools", "systemInstruction", "contents"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("unsupported_key `user`"));
    let choice =
        |given: &str| head(&format!(r#"{{"tool_choice":{given}}}"#)).0["toolConfig"]["functionCallingConfig"].clone();
    assert_eq!(
        choice(r#"{"type":"function","function":{"name":"f"}}"#),
        json!({"mode": "ANY", "allowedFunctionNames": ["f"]})
    );
    assert_eq!(choice(r#"{"type":"none"}"#), json!({"mode": "NONE"}));
    let (body, found) = head(r#"{"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}},"tool_choice":"none"}"#);
    assert_eq!((body["toolConfig"]["functionCallingConfig"]["mode"].as_str(), found.len()), (Some("VALIDATED"), 1));
}

#[test]
fn r55_settings_are_read_in_camel_case_and_snake_case() {
    let session = Session::of(GEMINI, &[&format!("[{ASK}]")]);
    let of = |params: &str| serde_json::from_str::<Value>(&session.render(GEMINI, "https://x", params, &[]).0).unwrap();
    let body = of(
        r#"{"max_tokens":9,"temperature":1,"generation_config":{"max_output_tokens":5},"tool_choice":"none","tool_config":{"function_calling_config":{"mode":"ANY"}},"tools":[{"function_declarations":[{"name":"f"}]}]}"#,
    );
    assert_eq!(body["generationConfig"], json!({"max_output_tokens": 5, "temperature": 1}));
    assert_eq!(
        (body.get("toolConfig"), &body["tool_config"]["function_calling_config"]["mode"]),
        (None, &json!("ANY"))
    );
    // A choice among functions needs one.
    let body = of(r#"{"tool_choice":"auto","tools":[{"google_search":{}}]}"#);
    assert_eq!((body.get("toolConfig"), &body["tools"]), (None, &json!([{"google_search": {}}])));
    let body = of(r#"{"tool_choice":"auto","tools":[{"google_search":{}},{"function_declarations":[{"name":"f"}]}]}"#);
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "AUTO");
}

#[test]
fn r42_r55_snake_case_settings_are_converted() {
    let body = format!(
        r#"{{"contents":[{ASK}],"tools":[{{"function_declarations":[{{"name":"f"}}]}}],"tool_config":{{"function_calling_config":{{"mode":"ANY","allowed_function_names":["f"]}}}},"generation_config":{{"max_output_tokens":5,"temperature":0,"stop_sequences":["E"]}}}}"#
    );
    let (out, _) = rethread::render::convert(body.as_bytes(), GEMINI, CHAT, &RepairOptions::default()).unwrap();
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(out["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!(
        (&out["max_completion_tokens"], &out["temperature"], &out["stop"]),
        (&json!(5), &json!(0), &json!(["E"]))
    );
}

#[test]
fn r42_r55_a_tool_name_begins_with_a_letter_or_an_underscore() {
    let body = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"1f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}],"tool_choice":{"type":"function","function":{"name":"1f"}},"tools":[{"type":"function","function":{"name":"1f"}}]}"#;
    let convert = |body: &str| rethread::render::convert(body.as_bytes(), CHAT, GEMINI, &RepairOptions::default());
    let out = String::from_utf8(convert(body).unwrap().0).unwrap();
    assert_eq!((out.matches("\"1f\"").count(), out.matches("\"_1f\"").count()), (0, 4), "{out}");
    // Two tools of one name are refused, not told.
    let both = body.replace(r#""tools":["#, r#""tools":[{"type":"function","function":{"name":"_1f"}},"#);
    assert!(convert(&both).unwrap_err().to_string().contains("defined twice"));
}
