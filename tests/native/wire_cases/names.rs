//! Calls without a name: a model or a gateway may write one, and what was said beside it must not be lost.

use crate::wire_cases::*;
use rethread::history::{NewItem, join_new};
use serde_json::json;

const TALK: &str = "u q; c a b; r a=1 b=2; a x; u p";

/// The conversation in a dialect, with an empty name in each of its calls and results, or with none.
fn nameless(dialect: Dialect, has_member: bool) -> String {
    let mut body = write(dialect, TALK);
    rename(&mut body, has_member);
    body.to_string()
}

fn rename(value: &mut Value, has_member: bool) {
    match value {
        Value::Object(members) if !has_member => _ = members.remove("name"),
        Value::Object(members) => {
            members.iter_mut().filter(|(key, _)| *key == "name").for_each(|(_, name)| *name = "".into())
        }
        _ => {}
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| rename(value, has_member)),
        Value::Array(items) => items.iter_mut().for_each(|value| rename(value, has_member)),
        _ => {}
    }
}

/// Every call keeps its result and its empty name, and each dialect is sent both, with a name that it accepts.
fn assert_kept_and_valid(stored: &Stored, from: &str) {
    let calls: Vec<_> =
        stored.history.invocations().iter().map(|call| (call.name.as_str(), call.result.is_some())).collect();
    assert_eq!(calls, [("", true), ("", true)], "{from}");
    for to in ALL {
        let (text, _) = stored.bytes(to);
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read(to, &body), "u q; c 1; c 2; r 1=1; r 2=2; a x; u p", "{from} to {to:?}: {text}");
        assert!(text.contains(r#""name":"unnamed""#) && !text.contains(r#""name":"""#), "{from} to {to:?}: {text}");
    }
}

#[test]
fn r40_a_call_without_a_name_is_stored_and_sent_with_one_in_each_dialect() {
    for (from, has_member) in ALL.into_iter().flat_map(|from| [(from, true), (from, false)]) {
        let mut stored = Stored::new();
        stored.append(from, &nameless(from, has_member));
        assert_kept_and_valid(&stored, &format!("{from:?} {has_member}"));
    }
}

#[test]
fn r57_a_neutral_call_with_an_empty_name_is_kept_with_all_that_is_appended_beside_it() {
    let plain = |id: &str, result: &str| json!({ "type": "tool", "callId": id, "name": "", "arguments": "{}", "result": result });
    let shown = |id: &str, result: &str| {
        let result = json!({ "content": result, "isError": false });
        json!({ "type": "tool", "call": { "callId": id, "name": "", "arguments": "{}", "result": result } })
    };
    for parts in [json!([plain("a", "1"), plain("b", "2")]), json!([shown("a", "1"), shown("b", "2")])] {
        let said = |role: &str, text: &str| json!({ "role": role, "parts": [{ "type": "text", "text": text }] });
        let answer = json!({ "role": "assistant", "parts": parts });
        let list = json!([said("user", "q"), answer, said("assistant", "x"), said("user", "p")]).to_string();
        let items = NewItem::read_all(JsonRef::parse(&list).unwrap()).unwrap();
        let mut stored = Stored::new();
        let origin = Origin { at: 1_000, ..Origin::default() };
        let joined = join_new(&stored.history, items, &origin, &CountingIds::default()).unwrap();
        joined.entries.into_iter().for_each(|entry| stored.history.apply(entry));
        assert_kept_and_valid(&stored, &parts.to_string());
    }
    // A call whose name was forgotten is a mistake of the caller.
    let list = r#"[{"role":"assistant","parts":[{"type":"tool","callId":"a"}]}]"#;
    assert!(NewItem::read_all(JsonRef::parse(list).unwrap()).unwrap_err().message.contains("`name`"));
}
