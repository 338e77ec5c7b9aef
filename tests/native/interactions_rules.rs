//! Gemini's interactions: what the rules repair, what they keep, and what a refusal heals.

use crate::wire_bodies::{errors, repaired_body};
use crate::wire_cases::{Stored, with_params};
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, heal, leave_out_refused, refused_rule, validate};
use rethread::render::convert;
use serde_json::{Value, json};

const OWN: Dialect = Dialect::GeminiInteractions;

fn user(text: &str) -> Value {
    json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] })
}

fn said(text: &str) -> Value {
    json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] })
}

fn thought(signature: &str) -> Value {
    json!({ "type": "thought", "signature": signature })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "id": id, "name": "f", "arguments": {} })
}

fn result(id: &str, value: Value) -> Value {
    json!({ "type": "function_result", "call_id": id, "name": "f", "result": value })
}

fn body(steps: &[Value]) -> Value {
    json!({ "model": "gemini-3.6-flash", "input": steps })
}

fn warnings(body: &Value) -> Vec<&'static str> {
    let found = validate(body.to_string().as_bytes(), OWN);
    found.iter().filter(|found| found.severity == Severity::Warning).map(|found| found.code.as_str()).collect()
}

/// The body that a refusal is healed to, and the next request with what was refused left out.
fn healed(body: &Value, message: &str) -> Option<Value> {
    let answer = json!({ "error": { "message": message, "code": "invalid_request" } }).to_string();
    let sent = body.to_string();
    let found = heal(sent.as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default())?;
    let (again, _) = leave_out_refused(sent.as_bytes(), OWN, &found.refused, &RepairOptions::default()).unwrap();
    assert_eq!(again, found.body, "what was refused is sent again");
    assert!(heal(&found.body, OWN, answer.as_bytes(), &RepairOptions::default()).is_none(), "healed twice");
    Some(serde_json::from_slice(&found.body).unwrap())
}

#[test]
fn r40_a_result_among_the_contents_of_the_user_is_that_of_its_call() {
    let given = body(&[
        user("Weather?"),
        thought("c2ln"),
        call("a"),
        call("b"),
        json!({ "type": "user_input", "content": [
            { "type": "text", "text": "So?" }, result("a", json!("21")), result("b", json!([])), { "type": "image", "uri": "https://x/y.png" },
        ] }),
    ]);
    let expected = json!([
        user("Weather?"),
        thought("c2ln"),
        call("a"),
        call("b"),
        result("a", json!("21")),
        result("b", json!([])),
        user("So?"),
        { "type": "user_input", "content": [{ "type": "image", "uri": "https://x/y.png" }] },
    ]);
    assert_eq!(repaired_body(&given, OWN), expected);
    assert!(!errors(&given, OWN).contains(&"dangling_call"));
    // One result of each call, in every dialect.
    for to in Dialect::ALL {
        let (out, _) = convert(given.to_string().as_bytes(), OWN, to, &RepairOptions::default()).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("no recorded result") && out.contains("21"), "{to:?} {out}");
    }
}

#[test]
fn r41_a_result_without_a_name_is_kept_and_a_refusal_names_it() {
    let unnamed = json!({ "type": "function_result", "call_id": "a", "result": "21" });
    let given = body(&[user("Weather?"), thought("c2ln"), call("a"), unnamed.clone()]);
    assert_eq!((repaired_body(&given, OWN), warnings(&given)), (given["input"].clone(), vec!["malformed"]));
    let named = body(&[user("Weather?"), thought("c2ln"), call("a"), result("a", json!("21"))]);
    assert_eq!(healed(&given, "Invalid input received"), Some(named.clone()));
    assert_eq!(healed(&named, "Invalid input received"), None);
    // Nothing is known of a call that Google has.
    let held = json!({ "model": "m", "previous_interaction_id": "v1_1", "input": [unnamed] });
    assert_eq!(healed(&held, "Invalid input received"), None);
}

const UNSIGNED: &str = "Request contains an invalid argument.";
const CORRUPTED: &str = "Corrupted thought signature.";
const PLACEHOLDER: &str = "skip_thought_signature_validator";

#[test]
fn r41_r74_a_call_without_a_signature_is_kept_and_a_refusal_adds_the_placeholder() {
    let given = body(&[
        user("Weather?"),
        said("I look."),
        call("a"),
        call("b"),
        result("b", json!([{ "type": "text", "text": "9" }])),
        result("a", json!({ "n": 1 })),
        call("c"),
        result("c", json!("1")),
    ]);
    assert_eq!(repaired_body(&given, OWN), given["input"]);
    assert_eq!(warnings(&given), ["unsigned_thinking", "unsigned_thinking"]);
    let mut expected = given["input"].as_array().unwrap().clone();
    expected.insert(6, thought(PLACEHOLDER));
    expected.insert(1, thought(PLACEHOLDER));
    for message in [UNSIGNED, "Function call is missing a thought_signature in functionCall parts."] {
        assert_eq!(healed(&given, message), Some(body(&expected)));
    }
    // An empty signature is none, and a thought with one is refused.
    let empty = json!({ "type": "thought", "signature": "", "summary": [] });
    let finished = body(&[user("Hi"), empty.clone(), said("Yes"), user("And?")]);
    assert_eq!(healed(&finished, UNSIGNED), Some(body(&[user("Hi"), said("Yes"), user("And?")])));
    let open = body(&[user("Hi"), empty, call("a"), result("a", json!("1"))]);
    let signed = [user("Hi"), thought(PLACEHOLDER), call("a"), result("a", json!("1"))];
    assert_eq!(healed(&open, UNSIGNED), Some(body(&signed)));
}

#[test]
fn r41_r74_what_is_signed_is_the_same_before_and_after_a_refusal() {
    let accepted = |steps: &[Value]| {
        let given = body(steps);
        assert!(!warnings(&given).contains(&"unsigned_thinking"), "{given}");
        assert_eq!(healed(&given, UNSIGNED), None, "{given}");
    };
    let (a, b) = (result("a", json!("1")), result("b", json!("2")));
    let own = json!({ "type": "function_call", "id": "a", "name": "f", "arguments": {}, "signature": "c2ln" });
    // A thought signs all calls of its run, as the first call does.
    accepted(&[user("Hi"), thought("c2ln"), call("a"), call("b"), a.clone(), b.clone()]);
    accepted(&[user("Hi"), own, call("b"), a.clone(), b.clone()]);
    // Turns that are finished are not checked. An id may return in a later turn.
    accepted(&[user("Hi"), call("a"), a.clone(), user("Hi")]);
    accepted(&[user("Hi"), call("a"), a.clone(), user("Hi"), thought("c2ln"), call("a"), a.clone()]);
    let second = [user("Hi"), thought("c2ln"), call("a"), a.clone(), call("b"), b];
    assert_eq!(warnings(&body(&second)), ["unsigned_thinking"]);
    let older = json!({ "model": "gemini-2.5-flash", "input": [user("Hi"), call("a"), a] });
    assert_eq!((warnings(&older), healed(&older, UNSIGNED)), (vec![], None));
}

#[test]
fn r74_the_mark_of_unsigned_steps_is_not_that_of_generate_content() {
    let given = json!({ "model": "gemini-3.6-flash", "contents": [{ "role": "user", "parts": [{ "text": "Hi" }] },
        { "role": "model", "parts": [{ "functionCall": { "name": "f", "args": {} } }] },
        { "role": "user", "parts": [{ "functionResponse": { "name": "f", "response": {} } }] }] });
    let answer = br#"{"error":{"message":"Function call is missing a thought_signature in functionCall parts."}}"#;
    let options = RepairOptions::default();
    let found = heal(given.to_string().as_bytes(), Dialect::Gemini, answer, &options).unwrap();
    let steps = body(&[user("Hi"), call("a"), result("a", json!("1"))]).to_string();
    assert_eq!(leave_out_refused(steps.as_bytes(), OWN, &found.refused, &options), None);
}

#[test]
fn r74_a_refused_signature_leaves_no_call_of_the_turn_without_one() {
    let error = json!({ "type": "function_result", "call_id": "a", "name": "f", "result": "no", "is_error": true });
    let open = body(&[user("Hi"), thought("QUFB"), call("a"), error.clone()]);
    let signed = body(&[user("Hi"), thought(PLACEHOLDER), call("a"), error.clone()]);
    assert_eq!(healed(&open, CORRUPTED), Some(signed));
    // Nobody checks the calls of a turn that is finished.
    let finished = body(&[user("Hi"), thought("QUFB"), call("a"), error.clone(), said("Well."), user("And?")]);
    let bare = body(&[user("Hi"), call("a"), error, said("Well."), user("And?")]);
    assert_eq!(healed(&finished, CORRUPTED), Some(bare));
}

#[test]
fn r74_the_refused_signature_of_a_result_is_left_out() {
    let mut signed = result("a", json!("21"));
    signed["signature"] = json!("UzI=");
    let given = body(&[user("Hi"), thought(PLACEHOLDER), call("a"), signed]);
    let bare = body(&[user("Hi"), thought(PLACEHOLDER), call("a"), result("a", json!("21"))]);
    assert_eq!(healed(&given, CORRUPTED), Some(bare));
}

#[test]
fn r74_the_older_form_is_healed_by_the_rules() {
    let older = json!({ "model": "m", "input": [{ "role": "user", "content": "Hi" }] });
    let message = "The legacy Interactions API schema is no longer supported. Please upgrade your client SDK.";
    let answer = json!({ "error": { "message": message, "code": "invalid_request" } }).to_string();
    let found = heal(older.to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&found.body).unwrap(), json!({ "model": "m", "input": [user("Hi")] }));
    assert!(found.report[0].message.contains("rule `malformed`"), "{:?}", found.report);
}

#[test]
fn r40_a_call_and_its_result_are_renamed_together() {
    let named = |name: &str| {
        let mut steps = [user("Hi"), thought("c2ln"), call("a"), result("a", json!("21"))];
        steps[2]["name"] = json!(name);
        steps[3]["name"] = json!(name);
        body(&steps)
    };
    for (given, expected) in [("get weather", "get_weather"), ("ns.get weather:x", "ns.get_weather:x"), ("", "unknown")]
    {
        let mut wanted = named(expected);
        if given.is_empty() {
            // The types allow a result without a name.
            wanted["input"][3]["name"] = json!("");
        }
        assert_eq!(repaired_body(&named(given), OWN), wanted["input"]);
    }
    for valid in ["1st", "-x", "ns.get:weather"] {
        assert_eq!(repaired_body(&named(valid), OWN), named(valid)["input"]);
    }
}

#[test]
fn r40_a_result_is_a_text_an_object_or_contents() {
    let with = |value: Value| body(&[user("Hi"), thought("c2ln"), call("a"), result("a", value)]);
    let text = |text: &str| json!({ "type": "text", "text": text });
    for (given, expected) in [
        (json!(["a", 1, null]), json!([text("a"), text("1")])),
        (json!([{ "temp": 21 }]), json!([text("{\"temp\":21}")])),
        (json!([{ "type": "output_text", "text": "x" }]), json!([text("x")])),
        (json!([{ "type": "text" }]), json!([])),
        (json!([{ "type": "text", "text": 5 }]), json!([text("5")])),
        (json!(5), json!("5")),
    ] {
        assert_eq!(repaired_body(&with(given.clone()), OWN)[3]["result"], expected, "{given}");
        let (out, _) =
            convert(with(given.clone()).to_string().as_bytes(), OWN, OWN, &RepairOptions::default()).unwrap();
        assert!(errors(&serde_json::from_slice(&out).unwrap(), OWN).is_empty(), "{given}");
    }
    for valid in [json!("a"), json!({ "temp": [21] }), json!([]), json!([text("a"), { "type": "video", "uri": "u" }])] {
        assert_eq!(repaired_body(&with(valid.clone()), OWN)[3]["result"], valid);
    }
}

#[test]
fn r41_a_step_without_contents_is_kept() {
    let failed = json!({ "type": "model_output", "content": [], "error": { "code": 3, "message": "no" } });
    let steps = [
        user("Hi"),
        failed,
        json!({ "type": "model_output", "content": [] }),
        json!({ "type": "user_input" }),
        user("So?"),
    ];
    assert_eq!(repaired_body(&body(&steps), OWN), json!(steps));
    let left = [user("Hi"), json!({ "type": "user_input", "content": [{ "type": "text" }] })];
    assert_eq!(repaired_body(&body(&left), OWN), json!([user("Hi")]));
}

#[test]
fn r40_a_call_that_google_has_gets_one_result() {
    let held = |steps: &[Value]| json!({ "previous_interaction_id": "v1_1", "input": steps });
    let one = held(&[result("a", json!("1")), result("b", json!("2"))]);
    assert_eq!(repaired_body(&one, OWN), one["input"]);
    let two = held(&[result("a", json!("1")), result("a", json!("2"))]);
    assert_eq!(
        (errors(&two, OWN), repaired_body(&two, OWN)),
        (vec!["duplicate_result"], json!([result("a", json!("1"))]))
    );
}

#[test]
fn r41_a_step_whose_results_are_lifted_keeps_its_other_members() {
    let given = |content: Value| {
        let step = json!({ "type": "model_output", "error": { "code": 3, "message": "no" }, "content": content });
        body(&[user("Hi"), thought("c2ln"), call("a"), step, user("So?")])
    };
    let failed =
        |content: Value| json!({ "type": "model_output", "error": { "code": 3, "message": "no" }, "content": content });
    let text = json!({ "type": "text", "text": "x" });
    let (a, thought, call) = (result("a", json!("1")), thought("c2ln"), call("a"));
    // The null says nothing, in a turn of the older form, either.
    let both = given(json!([null, a, text]));
    assert_eq!(repaired_body(&both, OWN), json!([user("Hi"), thought, call, a, failed(json!([text])), user("So?")]));
    let alone = given(json!([a]));
    assert_eq!(repaired_body(&alone, OWN), json!([user("Hi"), thought, call, a, failed(json!([])), user("So?")]));
    let turn = body(&[json!({ "role": "user", "content": [null, { "type": "text", "text": "Hi" }] })]);
    assert_eq!(repaired_body(&turn, OWN), json!([user("Hi")]));
}

#[test]
fn r40_r74_a_model_before_gemini_3_gets_no_list_as_a_result() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = json!({ "type": "image", "data": "AA==", "mime_type": "image/png" });
    let of = |model: &str, results: &[Value]| {
        let steps = [&[user("Hi"), thought("c2ln"), call("a"), call("b")], results].concat();
        json!({ "model": model, "input": steps })
    };
    let b = result("b", json!("2"));
    let texts = [result("a", json!(["x", text("y")])), b.clone()];
    let one = of("gemini-2.5-flash", &[result("a", json!("x\n\ny")), b.clone()]);
    assert_eq!(repaired_body(&of("gemini-2.5-flash", &texts), OWN), one["input"]);
    let listed = [result("a", json!([text("x"), text("y")])), b.clone()];
    assert_eq!(repaired_body(&of("gemini-3.8-flash", &texts), OWN)[4], listed[0]);
    // Of another dialect, and of this one, with media.
    let converted = |from: Dialect, given: &Value| {
        let (out, _) = convert(given.to_string().as_bytes(), from, OWN, &RepairOptions::default()).unwrap();
        serde_json::from_slice::<Value>(&out).unwrap()["input"].clone()
    };
    let block = |text: &str| json!({ "type": "text", "text": text });
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AA==" });
    let anthropic = |model: &str, image: bool| {
        let mut content = vec![block("x"), block("y")];
        content.extend(image.then(|| json!({ "type": "image", "source": source })));
        json!({ "model": model, "max_tokens": 9, "messages": [{ "role": "user", "content": "Hi" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": content }] }] })
    };
    let string = result("a", json!("x\n\ny"));
    let shown = json!({ "type": "user_input", "content": [image] });
    for model in ["gemini-2.5-flash", "gemini-3.8-flash", "m"] {
        assert_eq!(converted(Dialect::Anthropic, &anthropic(model, false))[2], string, "{model}");
    }
    let old = converted(Dialect::Anthropic, &anthropic("gemini-2.5-flash", true));
    assert_eq!(old, json!([user("Hi"), call("a"), string, shown]));
    let new = converted(Dialect::Anthropic, &anthropic("gemini-3.8-flash", true));
    assert_eq!(new[2], result("a", json!([text("x\n\ny"), image])));
    let own = [result("a", json!([text("x"), image])), b.clone()];
    let apart = [result("a", json!("x")), b, shown];
    let request = with_params(OWN, r#"{"model":"gemini-2.5-flash"}"#);
    let (text, _) = Stored::of(OWN, &of("m", &own)).bytes_for(&request, &[]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["input"], of("m", &apart)["input"]);
    // A model whose name says nothing.
    let message = "Multimodal function responses are not supported for this model";
    assert_eq!(healed(&of("m", &own), message), Some(of("m", &apart)));
    assert_eq!(healed(&one, message), None);
}

#[test]
fn r66_google_s_most_general_refusal_names_no_rule() {
    let rule = |message: &str| refused_rule(json!({ "error": { "message": message } }).to_string().as_bytes(), OWN);
    assert_eq!(rule(UNSIGNED), None);
    let missing = "Function call is missing a thought_signature in functionCall parts.";
    assert_eq!(rule(missing), Some("unsigned_thinking"));
    assert_eq!(rule(&format!("{UNSIGNED} {missing}")), Some("unsigned_thinking"));
}

#[test]
fn r74_a_list_of_objects_without_types_is_healed_by_the_rules() {
    let given = body(&[user("Hi"), thought("c2ln"), call("a"), result("a", json!([{ "n": 1 }]))]);
    let typed = json!([{ "type": "text", "text": "{\"n\":1}" }]);
    let expected = body(&[user("Hi"), thought("c2ln"), call("a"), result("a", typed)]);
    let answer =
        json!({ "error": { "message": "The 'type' parameter is required at 'input[3].result[0]'." } }).to_string();
    let found = heal(given.to_string().as_bytes(), OWN, answer.as_bytes(), &RepairOptions::default()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&found.body).unwrap(), expected);
}

#[test]
fn r40_a_signature_that_is_no_text_is_removed_and_signs_nothing() {
    let with = |step: Value, signature: Value| {
        let mut step = step;
        step["signature"] = signature;
        step
    };
    let steps = |signature: Value| {
        [
            user("Weather?"),
            with(json!({ "type": "thought", "summary": [{ "type": "text", "text": "Hm" }] }), signature.clone()),
            with(call("a"), signature.clone()),
            with(result("a", json!("sunny")), signature.clone()),
            with(json!({ "type": "google_search_call", "id": "s", "arguments": {} }), signature),
        ]
    };
    for wrong in [json!(5), json!(true), json!(["c2ln"]), json!({ "data": "c2ln" })] {
        let given = body(&steps(wrong));
        assert_eq!(errors(&given, OWN), ["malformed"; 4]);
        assert!(warnings(&given).contains(&"unsigned_thinking"), "the call has no signature before it");
        let mut expected = steps(Value::Null);
        expected.iter_mut().for_each(|step| drop(step.as_object_mut().unwrap().remove("signature")));
        assert_eq!(repaired_body(&given, OWN), json!(expected));
    }
    for kept in [json!("c2ln"), json!(""), Value::Null] {
        assert!(errors(&body(&steps(kept)), OWN).is_empty());
    }
}
