use super::{RenderInput, RenderRequest, RenderStep, Rendered, Renderer};
use crate::error::{ErrorCode, Result};
use crate::history::{History, JoinBase, LogRecord, Origin as Came, join};
use crate::id::{CountingIds, Seed};
use crate::json::{Json, JsonRef};
use crate::message::{Dialect, Role};
use crate::provider::{
    ProviderRequest, ReasoningField, Settings, StreamAssembler, ToolDefinition, decode_body, validate,
};
use crate::replay::{Policy, PolicyLayer};
use crate::store::{RecordKind, open_record, seal_record};
use crate::tool::Window;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod anthropic;
mod bedrock;
mod chat;
mod mistral;
mod params;
mod properties;
mod reducers;

const CHAT: Dialect = Dialect::OpenAiChat;
const CLAUDE: Dialect = Dialect::Anthropic;

fn provider(dialect: Dialect, params: &str) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(params).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

/// Appends and stores: what is rendered afterwards has been in a record.
fn append(history: &mut History, dialect: Dialect, body: &str, ids: &CountingIds) {
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let entries = join(JoinBase::history(history), items, &Came { at: 1_000, ..Came::default() }, ids).entries;
    let record = LogRecord {
        operation: "o".into(),
        run: None,
        at: 1,
        mark: Default::default(),
        entries,
        run_continues: false,
        summaries: Vec::new(),
        annotations: Vec::new(),
        added_to: 0,
    };
    let bytes = seal_record(RecordKind::Log, &record);
    let read: LogRecord = open_record(RecordKind::Log, &bytes).unwrap();
    assert_eq!(read, record);
    for entry in read.entries {
        history.apply(entry);
    }
}

fn history_of(dialect: Dialect, body: &str) -> History {
    let mut history = History::new(Seed(1));
    append(&mut history, dialect, body, &CountingIds::default());
    history
}

fn always() -> Policy {
    Policy { call: PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() }, ..Policy::default() }
}

fn render_with(
    renderer: &mut Renderer,
    history: &History,
    provider: &ProviderRequest,
    tools: &[ToolDefinition],
    policy: &Policy,
) -> Result<Rendered> {
    let rendered =
        renderer.render(history, None, &RenderRequest { provider, instructions: None, tools, policy }, 2_000_000)?;
    assert_eq!(rendered.body.capacity(), rendered.body.len(), "a buffer has no room beyond the announced length");
    let errors: Vec<_> = validate(&rendered.body, provider.dialect)
        .into_iter()
        .filter(|finding| finding.severity == crate::finding::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?} {}", String::from_utf8_lossy(&rendered.body));
    Ok(rendered)
}

fn body(renderer: &mut Renderer, history: &History, provider: &ProviderRequest) -> (String, u32) {
    let rendered = render_with(renderer, history, provider, &[], &always()).unwrap();
    (String::from_utf8(rendered.body).unwrap(), rendered.stable_prefix)
}

fn messages(history: &History, dialect: Dialect) -> String {
    let params = if dialect == CLAUDE { r#"{"max_tokens":9}"# } else { "{}" };
    let (text, _) = body(&mut Renderer::default(), history, &provider(dialect, params));
    JsonRef::parse(&text).unwrap().get("messages").unwrap().as_raw().to_owned()
}

// ---- kept encodings

const TALK: &str = r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"},{"role":"assistant","content":"x"}]"#;

#[test]
fn rendering_twice_gives_the_same_bytes_and_a_full_stable_prefix() {
    let history = history_of(CHAT, TALK);
    for dialect in [CHAT, CLAUDE] {
        let mut renderer = Renderer::default();
        let provider = provider(dialect, "{}");
        let first = body(&mut renderer, &history, &provider);
        let second = body(&mut renderer, &history, &provider);
        assert_eq!(first.0, second.0);
        assert_eq!((first.1, second.1), (0, 4));
        assert_eq!(body(&mut Renderer::default(), &history, &provider).0, first.0);
    }
}

#[test]
fn the_prefix_is_stable_until_a_pass_drops_something() {
    let ids = CountingIds::default();
    let mut history = History::new(Seed(1));
    let mut renderer = Renderer::default();
    append(&mut history, CHAT, TALK, &ids);
    let chat = provider(CHAT, "{}");
    let at = |now, renderer: &mut Renderer, history: &History| {
        renderer
            .render(
                history,
                None,
                &RenderRequest { provider: &chat, instructions: None, tools: &[], policy: &Policy::default() },
                now,
            )
            .unwrap()
    };
    assert_eq!(at(1_000, &mut renderer, &history).stable_prefix, 0);
    append(&mut history, CHAT, TALK, &ids);
    let all = at(301_000, &mut renderer, &history);
    assert_eq!(all.stable_prefix, 4);
    // The results are too old now, and the calls go with them: the first message is all that is the same.
    let short = at(301_001, &mut renderer, &history);
    assert_eq!(short.stable_prefix, 1);
    assert!(!String::from_utf8(short.body).unwrap().contains("tool_calls"));
    assert_eq!(short.report.iter().filter(|finding| finding.code.as_str() == "stale_default").count(), 1);
    // Said once a session; the bytes are kept in both forms of the message.
    let again = at(301_001, &mut renderer, &history);
    assert_eq!(
        (again.stable_prefix, again.report.iter().filter(|finding| finding.code.as_str() == "stale_default").count()),
        (4, 0)
    );
    assert_eq!(at(301_000, &mut renderer, &history).body, all.body);
}

#[test]
fn a_later_result_invalidates_the_cached_encoding() {
    let ids = CountingIds::default();
    let mut history = History::new(Seed(1));
    append(
        &mut history,
        CHAT,
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]"#,
        &ids,
    );
    let mut renderer = Renderer::default();
    let chat = provider(CHAT, "{}");
    assert!(body(&mut renderer, &history, &chat).0.contains("Interrupted"));
    append(&mut history, CHAT, r#"[{"role":"tool","tool_call_id":"a","content":"real"}]"#, &ids);
    let (text, stable) = body(&mut renderer, &history, &chat);
    assert!(text.contains("real") && !text.contains("Interrupted"));
    assert_eq!(stable, 1);
}

#[test]
fn only_settings_that_change_the_bytes_invalidate_the_cache() {
    let history = history_of(
        CHAT,
        r#"[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","reasoning_content":"hm","content":"x"}]"#,
    );
    let mut renderer = Renderer::default();
    let plain = provider(CHAT, "{}");
    let with = |system_role, reasoning| ProviderRequest {
        settings: Settings { system_role, reasoning, ..Settings::default() },
        ..plain.clone()
    };
    let first = body(&mut renderer, &history, &plain).0;
    assert!(first.contains(r#""role":"system""#) && first.contains("reasoning_content"));
    let developer = body(&mut renderer, &history, &with(Some(Role::Developer), ReasoningField::AsCame)).0;
    assert!(developer.contains(r#""role":"developer""#) && !developer.contains(r#""role":"system""#));
    let dropped = body(&mut renderer, &history, &with(None, ReasoningField::Drop)).0;
    assert!(!dropped.contains("hm"));
    assert_eq!(body(&mut renderer, &history, &plain).0, first);
    // Another model, another temperature: the same messages.
    assert_eq!(body(&mut renderer, &history, &provider(CHAT, r#"{"model":"other","temperature":0.2}"#)).1, 3);
    renderer.clear();
    assert_eq!(body(&mut renderer, &history, &plain), (first, 0));
}

#[test]
fn each_dialect_has_its_own_cache() {
    let history = history_of(CHAT, TALK);
    let mut renderer = Renderer::default();
    let (chat, claude) = (provider(CHAT, "{}"), provider(CLAUDE, r#"{"max_tokens":9}"#));
    body(&mut renderer, &history, &chat);
    assert_eq!(body(&mut renderer, &history, &claude).1, 0);
    assert_eq!(body(&mut renderer, &history, &chat).1, 4);
    assert_eq!(body(&mut renderer, &history, &claude).1, 4);
}

// ---- R45

/// JSON as nobody should write it, and some do.
const ODD: [&str; 6] = [
    r#"{"n":12345678901234567890123,"m":1.10,"e":1E+5,"z":-0}"#,
    r#"{"a":1,"a":2,"":{"b":[],"b":null}}"#,
    r#"{"s":"\u0041\/\ud83d\ude00 \u00e9"}"#,
    r#"{"lone":"\ud800 and \udc00"}"#,
    "{ \"space\" :\t[ 1 , 2 ] }",
    r#"{"\u006bey":"deep","x":{"y":{"z":[[[[0.10]]]]}}}"#,
];

/// The inside of a string that holds this JSON text: a lone surrogate goes in as its escape, doubled.
fn inside(json: &str) -> String {
    let mut out = String::new();
    crate::json::push_escaped(&mut out, json);
    out
}

#[test]
fn r45_arguments_and_results_survive_byte_for_byte_in_chat() {
    for odd in ODD {
        let body = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":"{}"}}}}]}},{{"role":"tool","tool_call_id":"a","content":"{}"}},{{"role":"assistant","content":"x"}}]"#,
            inside(odd),
            inside(odd)
        );
        assert_eq!(messages(&history_of(CHAT, &body), CHAT), body);
    }
    // The token itself is kept: escapes that nobody needs, a surrogate that nothing else can hold.
    let body = r#"[{"role":"user","content":"\u0071 \ud800"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"k\":\"\ud800\/\"}"}}]},{"role":"tool","tool_call_id":"a","content":"\u0072\udfff"}]"#;
    assert_eq!(messages(&history_of(CHAT, body), CHAT), body);
}

#[test]
fn r45_input_survives_byte_for_byte_in_anthropic() {
    for odd in ODD {
        let body = format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"text","text":"\u0041"}},{{"type":"tool_use","id":"a","name":"f","input":{odd}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"{}"}}]}}]"#,
            inside(odd)
        );
        assert_eq!(messages(&history_of(CLAUDE, &body), CLAUDE), body);
    }
}

#[test]
fn r45_unchanged_messages_keep_order_digits_and_duplicate_keys() {
    let bodies = [
        r#"[{"name":"u","x":1.0,"role":"user","content":[{"text":"q","type":"text","cache_control":{"a":1,"a":2}},{"type":"image_url","image_url":{"detail":"low","url":"data:image\/png;base64,AA=="}}]},{"content":"x","role":"assistant","annotations":[1e2],"refusal":null}]"#,
        r#"[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"index":0,"id":"a","type":"function"}],"content":""},{"content":"r","tool_call_id":"a","role":"tool","name":"f"}]"#,
    ];
    for body in bodies {
        assert_eq!(messages(&history_of(CHAT, body), CHAT), body);
    }
    // No id of a file comes where its data stood.
    let doubled =
        r#"[{"role":"user","content":[{"type":"file","file":{"file_data":"x","file_data":5,"file_id":"f"}}]}]"#;
    assert!(messages(&history_of(CHAT, doubled), CHAT).contains(r#"{"file_data":5,"file_id":"f"}"#));
    let body = r#"[{"content":[{"cache_control":{"type":"ephemeral","ttl":1.50},"text":"q","type":"text"}],"role":"user"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"x\/y"},{"name":"f","input":{"b":1,"a":1},"type":"tool_use","id":"a","caller":{"type":"direct"}}]},{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":[{"text":"r","type":"text"}],"is_error":true},{"type":"text","text":"and?"}]}]"#;
    assert_eq!(messages(&history_of(CLAUDE, body), CLAUDE), body);
}

#[test]
fn r45_from_a_stream_to_the_next_request() {
    for odd in ODD {
        // The model's arguments in pieces of two characters, as a provider would stream them.
        let letters: Vec<char> = odd.chars().collect();
        let pieces: String = letters
            .chunks(2)
            .map(|piece| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{}\"}}}}]}}}}]}}\n\n", inside(&piece.iter().collect::<String>())))
            .collect();
        let start = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}"#;
        let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
        let mut assembler = StreamAssembler::new(CHAT);
        assembler.push(format!("{start}\n\n{pieces}{end}\n\ndata: [DONE]\n\n").as_bytes(), &mut Vec::new());
        let wire = assembler.finish().wire.unwrap();
        let history = history_of(
            CHAT,
            &format!(
                r#"[{{"role":"user","content":"q"}},{},{{"role":"tool","tool_call_id":"a","content":"r"}}]"#,
                wire.as_str()
            ),
        );
        assert!(messages(&history, CHAT).contains(&format!(r#""arguments":"{}""#, inside(odd))), "{odd}");
        // In Anthropic they are the object itself.
        assert!(
            messages(&history, CLAUDE).contains(&format!(r#""input":{odd}"#)),
            "{odd}: {}",
            messages(&history, CLAUDE)
        );
    }
}

// ---- R55

fn tool(name: &str, parameters: Option<&str>) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: parameters.map(|_| "does \"it\"".into()),
        parameters: parameters.map(|text| Json::parse(text).unwrap()),
        strict: false,
        is_async: false,
    }
}

/// The body's members but the messages, and the codes of what was found.
fn head(dialect: Dialect, params: &str, tools: &[ToolDefinition]) -> Result<(String, Vec<String>)> {
    let history = history_of(CHAT, r#"[{"role":"user","content":"q"}]"#);
    let rendered = render_with(&mut Renderer::default(), &history, &provider(dialect, params), tools, &always())?;
    let text = String::from_utf8(rendered.body).unwrap();
    let found = rendered.report.iter().map(|it| format!("{} {}", it.code.as_str(), it.message)).collect();
    Ok((
        text.replace(r#","messages":[{"role":"user","content":"q"}]"#, "")
            .replace(r#""messages":[{"role":"user","content":"q"}]"#, ""),
        found,
    ))
}

#[test]
fn r55_tools_are_encoded_in_the_dialects_form() {
    let tools = [tool("look", Some(r#"{"type":"object","properties":{"n":{"maximum":1E2}}}"#)), tool("find", None)];
    let chat = r#"{"tools":[{"type":"function","function":{"name":"look","description":"does \"it\"","parameters":{"type":"object","properties":{"n":{"maximum":1E2}}}}},{"type":"function","function":{"name":"find","parameters":{"type":"object","properties":{}}}}]}"#;
    assert_eq!(head(CHAT, "{}", &tools).unwrap().0, chat);
    let claude = r#"{"max_tokens":9,"tools":[{"name":"look","description":"does \"it\"","input_schema":{"type":"object","properties":{"n":{"maximum":1E2}}}},{"name":"find","input_schema":{"type":"object","properties":{}}}]}"#;
    assert_eq!(head(CLAUDE, r#"{"max_tokens":9}"#, &tools).unwrap().0, claude);
    // A schema without a type gets the one that Anthropic wants; those of `params` come first, as they are.
    let mixed = head(
        CLAUDE,
        r#"{"max_tokens":9,"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
        &[tool("f", Some(r#"{"properties":{}}"#))],
    )
    .unwrap()
    .0;
    assert_eq!(
        mixed,
        r#"{"max_tokens":9,"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f","description":"does \"it\"","input_schema":{"type":"object","properties":{}}}]}"#
    );
    assert!(!head(CHAT, r#"{"tools":[]}"#, &[]).unwrap().0.contains("tools"), "an empty list is refused by some");
}

#[test]
fn r55_tool_choice_is_translated() {
    let choice = |dialect, given: &str| {
        let params = format!(r#"{{"max_tokens":9,"tool_choice":{given}}}"#);
        let text = head(dialect, &params, &[tool("f", None)]).unwrap().0;
        JsonRef::parse(&text).unwrap().get("tool_choice").unwrap().as_raw().to_owned()
    };
    let pairs = [
        (r#""auto""#, r#"{"type":"auto"}"#),
        (r#""none""#, r#"{"type":"none"}"#),
        (r#""required""#, r#"{"type":"any"}"#),
        (r#"{"type":"function","function":{"name":"f"}}"#, r#"{"type":"tool","name":"f"}"#),
    ];
    for (chat, claude) in pairs {
        assert_eq!(choice(CLAUDE, chat), claude);
        assert_eq!(choice(CHAT, claude), chat);
        assert_eq!((choice(CHAT, chat), choice(CLAUDE, claude)), (chat.to_owned(), claude.to_owned()));
    }
    assert_eq!(
        choice(CLAUDE, r#"{"type":"auto","disable_parallel_tool_use":true}"#),
        r#"{"type":"auto","disable_parallel_tool_use":true}"#
    );
}

#[test]
fn r55_duplicate_and_invalid_tool_names_are_rejected() {
    let refused = |dialect, params: &str, tools: &[ToolDefinition]| {
        let error = head(dialect, params, tools).unwrap_err();
        assert_eq!(error.code, ErrorCode::ConfigInvalid);
        error.into_message()
    };
    assert!(refused(CHAT, "{}", &[tool("f", None), tool("f", None)]).contains("\"f\""));
    assert!(
        refused(CHAT, r#"{"tools":[{"type":"function","function":{"name":"f"}}]}"#, &[tool("f", None)])
            .contains("twice")
    );
    assert!(refused(CLAUDE, r#"{"tools":[{"name":"f","input_schema":{}}]}"#, &[tool("f", None)]).contains("twice"));
    let long = "x".repeat(65);
    for name in ["", "a b", "gr\u{fc}n", "a.b", &long] {
        refused(CHAT, "{}", &[tool(name, None)]);
    }
    refused(CHAT, "{}", &[tool("f", Some("[]"))]);
    assert!(head(CHAT, "{}", &[tool(&"x".repeat(64), None)]).is_ok());
}

#[test]
fn r55_parameters_that_the_target_rejects_are_removed_and_reported() {
    let (text, found) =
        head(CLAUDE, r#"{"model":"m","max_tokens":9,"seed":1,"stop":["x"],"parallel_tool_calls":true,"top_k":5}"#, &[])
            .unwrap();
    assert_eq!(text, r#"{"model":"m","max_tokens":9,"top_k":5}"#);
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|line| line.starts_with("unsupported_key")));
    let (text, found) = head(
        CHAT,
        r#"{"model":"m","stop_sequences":["x"],"temperature":1.0,"tool_choice":"auto","parallel_tool_calls":false}"#,
        &[],
    )
    .unwrap();
    assert_eq!(text, r#"{"model":"m","temperature":1.0}"#);
    assert_eq!(found.len(), 3);
    provider(CLAUDE, r#"{"system":null}"#).check().unwrap();
    assert_eq!(head(CLAUDE, r#"{"system":null,"max_tokens":9}"#, &[]).unwrap().0, r#"{"max_tokens":9}"#);
    // What the session writes itself cannot be given.
    for (dialect, params) in
        [(CHAT, r#"{"messages":[]}"#), (CLAUDE, r#"{"messages":[]}"#), (CLAUDE, r#"{"system":"s"}"#), (CHAT, "[]")]
    {
        assert_eq!(provider(dialect, params).check().unwrap_err().code, ErrorCode::ConfigInvalid, "{params}");
    }
}

#[test]
fn a_streamed_request_asks_for_usage_unless_params_set_it() {
    let mut request = ProviderRequest { stream: true, ..provider(CHAT, r#"{"stream":false}"#) };
    let history = history_of(CHAT, r#"[{"role":"user","content":"q"}]"#);
    let text = |request: &ProviderRequest| body(&mut Renderer::default(), &history, request).0;
    assert!(text(&request).starts_with(r#"{"stream":true,"stream_options":{"include_usage":true},"#));
    request.settings.no_stream_usage = true;
    assert!(text(&request).starts_with(r#"{"stream":true,"messages""#));
    request = ProviderRequest { stream: true, ..provider(CHAT, r#"{"stream_options":{"x":1}}"#) };
    assert!(text(&request).starts_with(r#"{"stream_options":{"x":1},"stream":true,"messages""#));
}

#[test]
fn r68_a_credential_in_a_stored_field_is_rejected_and_never_quoted() {
    const KEY: &str = "hunter2-secret-value";
    let check =
        |url: String, headers: Vec<(String, String)>| ProviderRequest { url, headers, ..provider(CHAT, "{}") }.check();
    let refused = |url: &str, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.replace("@@", KEY))).collect();
        let error = check(url.replace("@@", KEY), headers).expect_err(url);
        assert_eq!(error.code, ErrorCode::ConfigInvalid);
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    };
    for url in [
        "https://h/v1?key=@@",
        "https://h/v1?a=b&api_key=@@#x",
        "https://h/?API-KEY=@@",
        "https://user:@@@h/v1",
        "https://h/v1?access_token=@@",
        "https://h/v1?%6bey=@@",
        "https://h/?x-goog-api-key=@@",
        "https://h/?sig=@@",
    ] {
        refused(url, &[]);
    }
    for name in [
        "Authorization",
        "x-api-key",
        "API-Key",
        "x-goog-api-key",
        "Ocp-Apim-Subscription-Key",
        "cookie",
        "Proxy-Authorization",
        "cf-aig-authorization",
        "x-auth-token",
        "X_API_KEY",
    ] {
        refused("https://h/v1", &[(name, "@@")]);
    }
    refused("https://h/v1", &[("x-mine", "Bearer @@")]);
    refused("https://h/v1", &[("x-mine", "sk-@@")]);
    for url in [
        "https://h/v1?api-version=2024-10-21",
        "https://h/v1/keys?keyed=1&max_tokens=9",
        "http://localhost:1234/v1",
        "https://h/v1?tokenizer=x",
        "/api/chat",
    ] {
        check(
            url.into(),
            vec![
                ("anthropic-version".into(), "2023-06-01".into()),
                ("anthropic-beta".into(), "token-efficient-tools-2025-02-19".into()),
                ("Idempotency-Key".into(), "abc".into()),
                ("x-title".into(), "My keys".into()),
            ],
        )
        .unwrap_or_else(|error| panic!("{url}: {error}"));
    }
    assert!(check(String::new(), Vec::new()).is_err());
}
