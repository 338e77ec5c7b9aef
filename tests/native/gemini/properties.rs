//! Whatever came in Gemini's form: valid everywhere, and where nothing was wrong with it, the same again.

use crate::gemini::{ASK, CHAT, CLAUDE, GEMINI, Session};
use proptest::prelude::*;
use rethread::finding::Severity;
use rethread::json::JsonRef;
use rethread::provider::{decode_body, validate};

/// Parts, good and bad.
fn part() -> impl Strategy<Value = String> {
    let id = prop_oneof![3 => Just(""), 1 => Just(r#""id":"a","#), 1 => Just(r#""id":"b","#), 1 => Just(r#""id":7,"#), 1 => Just(r#""id":null,"#)];
    let name = prop_oneof![4 => Just(r#""f""#), 3 => Just(r#""g:x""#), 1 => Just(r#""""#), 1 => Just("7")];
    let signature = prop_oneof![3 => Just(""), 1 => Just(r#","thoughtSignature":"c2ln""#), 1 => Just(r#","thought_signature":"c""#)];
    let args = prop_oneof![3 => Just("{}"), 1 => Just(r#"{"a":1.10,"a":"\ud800"}"#), 1 => Just("null"), 1 => Just("[1]"), 1 => Just("\"{}\"")];
    let response = prop_oneof![
        2 => Just(r#"{"output":"x"}"#), 1 => Just(r#"{"error":"e"}"#), 1 => Just("{}"), 1 => Just(r#"{"a":1,"result":2}"#),
        1 => Just("\"r\""), 1 => Just("null"), 1 => Just("[7]"), 1 => Just(r#"{"error":null}"#)
    ];
    let call = prop_oneof![4 => Just("functionCall"), 1 => Just("function_call")];
    let answer = prop_oneof![4 => Just("functionResponse"), 1 => Just("function_response")];
    prop_oneof![
        3 => (prop_oneof![Just("\"t\""), Just("\"\""), Just("7"), Just("null")], signature.clone())
            .prop_map(|(text, signature)| format!(r#"{{"text":{text}{signature}}}"#)),
        1 => signature.clone().prop_map(|signature| format!(r#"{{"text":"h","thought":true{signature}}}"#)),
        4 => (call, id.clone(), name.clone(), args, signature).prop_map(|(key, id, name, args, signature)| {
            format!(r#"{{"{key}":{{{id}"name":{name},"args":{args}}}{signature}}}"#)
        }),
        5 => (answer, id, name, response)
            .prop_map(|(key, id, name, response)| format!(r#"{{"{key}":{{{id}"name":{name},"response":{response}}}}}"#)),
        1 => prop::sample::select(vec![
            r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}}"#, r#"{"file_data":{"file_uri":"https://x/y.pdf"}}"#,
            r#"{"executableCode":{"code":"1"}}"#, r#"{"functionCall":"f"}"#, r#"{"functionResponse":{}}"#, "{}", "\"s\"", "7", "null",
            r#"{"inlineData":{}}"#, r#"{"fileData":{"fileUri":"files/x"}}"#
        ]).prop_map(str::to_owned),
    ]
}

/// A content that `append` takes.
fn content() -> impl Strategy<Value = String> {
    any_content().prop_filter("append takes it", |content| {
        let list = format!("[{content}]");
        decode_body(GEMINI, JsonRef::parse(&list).unwrap()).is_ok()
    })
}

fn any_content() -> impl Strategy<Value = String> {
    let role = prop::sample::select(vec![
        "\"user\"",
        "\"user\"",
        "\"model\"",
        "\"model\"",
        "\"model\"",
        "\"function\"",
        "null",
        "\"\"",
        "\"assistant\"",
        "\"system\"",
        "\"x\"",
        "7",
    ]);
    prop_oneof![
        9 => (role, prop::collection::vec(part(), 0..4), any::<bool>()).prop_map(|(role, parts, order)| {
            let parts = parts.join(",");
            if order { format!(r#"{{"role":{role},"parts":[{parts}]}}"#) } else { format!(r#"{{"parts":[{parts}],"role":{role}}}"#) }
        }),
        1 => prop::sample::select(vec!["\"hi\"", "7", "null", "[]", "{}", r#"{"role":"user","parts":"x"}"#, r#"{"role":"model","parts":{"text":"x"}}"#]).prop_map(str::to_owned),
    ]
}

/// A round: calls of one or several answers, and a content, or several, that answers them.
fn round() -> impl Strategy<Value = Vec<String>> {
    let call = (0_usize..3, any::<bool>(), any::<bool>(), any::<bool>());
    (prop::collection::vec(call, 1..5), any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(calls, seed, several, text)| {
            let (mut models, mut results) = (Vec::new(), Vec::new());
            let named = calls.iter().any(|(_, id, _, _)| *id);
            for (at, (name, _, plain, signed)) in calls.iter().enumerate() {
                let name = ["f", "g.h", "i"][*name];
                let id = if named { format!(r#""id":"{seed:x}{at}","#) } else { String::new() };
                let signature = if *signed { r#","thoughtSignature":"c2ln""# } else { "" };
                let response =
                    if *plain { format!(r#"{{"output":"{at}"}}"#) } else { format!(r#"{{"n":{at}.0,"error":1}}"#) };
                models.push(format!(r#"{{"functionCall":{{{id}"name":"{name}","args":{{"n":{at}.50}}}}{signature}}}"#));
                results.push(format!(r#"{{"functionResponse":{{{id}"name":"{name}","response":{response}}}}}"#));
            }
            if named {
                let turn = usize::try_from(seed % 7).unwrap() % results.len();
                results.rotate_left(turn);
            }
            let model = |parts: &[String]| format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","));
            let user = |parts: &[String]| format!(r#"{{"parts":[{}],"role":"user"}}"#, parts.join(","));
            let mut out: Vec<String> = match several {
                true => models.iter().map(|part| model(std::slice::from_ref(part))).collect(),
                false => vec![model(&models)],
            };
            if text {
                results.push(r#"{"text":"and?"}"#.to_owned());
            }
            out.push(user(&results));
            out
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r04_r05_any_gemini_history_is_valid_in_every_dialect(list in prop::collection::vec(content(), 0..8), more in prop::collection::vec(content(), 0..3)) {
        let mut session = Session::of(GEMINI, &[&format!("[{}]", list.join(","))]);
        for dialect in [GEMINI, CHAT, CLAUDE] {
            // `list` fails the test on any error of `validate`.
            prop_assert_eq!(session.list(dialect), session.list(dialect));
        }
        session.append(GEMINI, &format!("[{}]", more.join(",")));
        session.append(CHAT, r#"[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{"}}]}]"#);
        for dialect in [GEMINI, CHAT, CLAUDE] {
            session.list(dialect);
        }
    }

    #[test]
    fn r43_r45_valid_contents_return_byte_for_byte(rounds in prop::collection::vec(round(), 1..4), says in any::<bool>()) {
        let mut contents = vec![ASK.to_owned()];
        for round in rounds {
            contents.extend(round);
            if says {
                contents.push(r#"{"role":"model","parts":[{"text":"h","thought":true},{"text":"x","thoughtSignature":"c2ln"}]}"#.to_owned());
                contents.push(ASK.to_owned());
            }
        }
        let list = format!("[{}]", contents.join(","));
        let errors: Vec<_> = validate(format!(r#"{{"contents":{list}}}"#).as_bytes(), GEMINI).into_iter().filter(|found| found.severity == Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{:?} {}", errors, list);
        let session = Session::of(GEMINI, &[&list]);
        prop_assert_eq!(session.list(GEMINI), list.clone());
        prop_assert!(session.history.invocations().iter().all(|call| call.result.is_some()));
        prop_assert!(session.report.is_empty(), "{:?}", session.report);
    }

    /// Decoding is total: any JSON is read, and what it says in other words is kept.
    #[test]
    fn r41_any_json_is_decoded_without_a_panic(text in r#"[\[\]{}",:a-c0-9 ]{0,40}"#, parts in prop::collection::vec(part(), 0..3), depth in 0_usize..200) {
        let deep = format!("{}{}{}", "[".repeat(depth), parts.join(","), "]".repeat(depth));
        for body in [text, format!(r#"{{"contents":[{}],"systemInstruction":{deep}}}"#, parts.join(",")), deep.clone(), format!(r#"[{{"parts":{deep},"role":"model"}}]"#)] {
            if let Ok(body) = JsonRef::parse(&body) {
                let _ = decode_body(GEMINI, body);
            }
        }
    }
}
