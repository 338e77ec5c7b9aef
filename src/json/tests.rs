use super::*;
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn accepts_what_json_parse_accepts() {
    for text in ["null", " true ", "-0.5e+10", "[]", "{}", r#"{"a":[1,{"b":"\ud800"}],"a":2}"#, "\"\\/\\u00e9\""] {
        assert!(check(text).is_ok(), "{text}");
    }
    for text in
        ["", "nul", "01", "1.", "[1,]", "{\"a\"}", "{a:1}", "\"\n\"", "\"\\x\"", "[1 2]", "1 2", "{\"a\":1,}", "]"]
    {
        assert!(check(text).is_err(), "{text}");
    }
}

#[test]
fn survives_deep_nesting() {
    let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(check(&text).is_ok());
    assert_eq!(JsonRef::parse(&text).map(|v| v.items().count()), Ok(1));
}

#[test]
fn reads_members_in_order_and_the_last_of_duplicates() {
    let json = Json::parse(r#" {"a" : 1 , "b":[ 1, "x" ,{}], "a":9007199254740993} "#).unwrap();
    let keys: Vec<_> = json.view().entries().map(|(k, v)| format!("{}={}", k.as_raw(), v.as_raw())).collect();
    assert_eq!(keys, ["\"a\"=1", "\"b\"=[ 1, \"x\" ,{}]", "\"a\"=9007199254740993"]);
    assert_eq!(json.view().get("a").and_then(JsonRef::as_u64), Some(9_007_199_254_740_993));
    assert_eq!(
        json.view().get("b").map(|b| b.items().map(JsonRef::as_raw).collect::<Vec<_>>()),
        Some(vec!["1", "\"x\"", "{}"])
    );
}

#[test]
fn keeps_an_unpaired_surrogate_and_decodes_pairs() {
    let token = JsonStr::from_token(r#""a\ud83d\ude00\ud800\u00e9\/""#).unwrap();
    assert_eq!(token.token(), r#""a\ud83d\ude00\ud800\u00e9\/""#);
    assert_eq!(token.decode(), "a😀\u{fffd}é/");
    assert!(string::ends_in_high_surrogate("x\\ud83d"));
    assert!(!string::ends_in_high_surrogate("x\\\\ud83d"));
}

#[test]
fn reads_whole_numbers_in_any_notation() {
    let number = |text: &str| JsonRef::parse(text).unwrap().as_u64();
    for (text, want) in
        [("0", 0), ("-0", 0), ("0.000", 0), ("0e9", 0), ("1.0", 1), ("12e3", 12_000), ("1.25E2", 125), ("120e-1", 12)]
    {
        assert_eq!(number(text), Some(want), "{text}");
    }
    for text in ["-1", "0.5", "1e-1", "1e400", "1e99999999999999999999", "9007199254740993.0", "\"1\"", "null"] {
        assert_eq!(number(text), None, "{text}");
    }
}

proptest! {
    /// White space is looked at eight bytes at a time.
    #[test]
    fn white_space_of_any_length_is_skipped(before in "[ \t\n\r]{0,40}", value in "[\\[\u{9}-!\u{a0}\u{8d}]{0,3}x", after in "[ \t\n\r]{0,40}") {
        let text = format!("{before}{value}{after}");
        let is_space = |one: char| " \t\n\r".contains(one);
        prop_assert_eq!(trimmed(&text), text.trim_matches(is_space));
        for from in 0..text.len() {
            let rest = text.as_bytes()[from..].iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
            prop_assert_eq!(skip_space(text.as_bytes(), from), from + rest);
        }
    }
}

proptest! {
    #[test]
    fn escaped_text_reads_back_equal(text in any::<String>()) {
        let token = JsonStr::new(&text);
        prop_assert_eq!(token.decode(), text.as_str());
        prop_assert_eq!(token.token(), serde_json::to_string(&text).unwrap().replace("\\u007f", "\u{7f}"));
        prop_assert!(JsonStr::from_token(token.token()).is_some());
    }

    #[test]
    fn agrees_with_serde_json(text in r#"[\[\]{},:"a1\-\.e \\un]{0,24}"#) {
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(check(&text).is_ok(), theirs, "{}", text);
    }

    #[test]
    fn r45_strings_are_checked_as_serde_json_checks_them(text in "[a\u{e9}\u{10ffff}\u{1f}\u{20}\u{7f}!#\\[\\]\"\\\\nu0]{0,40}") {
        let token = format!("\"{text}\"");
        let expected = serde_json::from_str::<String>(&token);
        let found = JsonRef::parse(&token);
        // A lone surrogate is JSON, but no text of Rust.
        if !token.contains("\\u") {
            prop_assert_eq!(found.is_ok(), expected.is_ok(), "{}", token);
        }
        if let (Ok(found), Ok(expected)) = (found, expected) {
            prop_assert_eq!(found.as_text().unwrap_or_default(), expected.as_str());
            let list = format!("[{token},1]");
            prop_assert_eq!(JsonRef::parse(&list).unwrap().items().next().unwrap().as_raw(), token);
        }
    }

    #[test]
    fn views_never_panic(text in r#"[\[\]{},:"a1 \\]{0,40}"#) {
        let view = JsonRef::from_checked(&text);
        for (k, v) in view.entries() { let _ = (k.as_text(), v.kind()); }
        for v in view.items() { let _ = (v.as_text(), v.as_u64()); }
    }
}

#[test]
fn r24_a_fingerprint_ignores_white_space_and_member_order_only() {
    let print = |text: &str| Json::parse(text).unwrap().view().fingerprint();
    let text = r#"{"a":[1,{"b":"x","c":{}}],"d":null,"e":"a,}"}"#;
    assert_eq!(print(text), print(r#" { "e" : "a,}", "d":null , "a":[ 1 , {"c":{ } , "b":"x"} ]} "#));
    for other in [
        r#"{"a":[{"b":"x","c":{}},1],"d":null,"e":"a,}"}"#,
        r#"{"a":[1,{"b":"x","c":[]}],"d":null,"e":"a,}"}"#,
        r#"{"a":[1,{"c":"x","b":{}}],"d":null,"e":"a,}"}"#,
        r#"{"a":[1,{"b":"x"}],"c":{},"d":null,"e":"a,}"}"#,
        r#"{"a":[1,{"b":"x","c":{}}],"d":null}"#,
        r#"{"a":[1,{"b":"x","c":{}}],"d":null,"e":["a,}"]}"#,
    ] {
        assert_ne!(print(text), print(other), "{other}");
    }
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_ne!(print(&deep), print("[]"));
}
