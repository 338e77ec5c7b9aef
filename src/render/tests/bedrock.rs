//! What Converse demands of a whole body.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn file(name: &str) -> String {
    format!(
        r#"{{"role":"user","content":[{{"type":"file","file":{{"file_data":"data:text/plain;base64,SGk=","filename":"{name}"}}}},{{"type":"text","text":"q"}}]}}"#
    )
}

/// The body is validated by the harness as well.
#[test]
fn r15_documents_of_one_name_have_names_of_their_own() {
    let answer = r#"{"role":"assistant","content":"a"}"#;
    let body = format!("[{},{answer},{},{answer},{}]", file("a_b.txt"), file("a_b.txt"), file("c.txt"));
    let sent = messages(&history_of(CHAT, &body), Dialect::Bedrock);
    let names: Vec<_> = sent.split(r#""name":""#).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(names, ["a b", "a b 2", "c"], "{sent}");
    let one = messages(&history_of(CHAT, &format!("[{}]", file("a_b.txt"))), Dialect::Bedrock);
    assert!(sent.starts_with(one.trim_end_matches(']')), "what was sent before is the same again: {sent}");
}
