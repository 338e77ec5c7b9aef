//! What `messages` and a view return can be appended elsewhere (R57).

use super::kept::provider;
use super::{Ids, fold};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rethread::history::{
    History, HistoryEntry, JoinBase, MessageFormat, MessageWriter, NO_ALTERNATIVES, NewItem, Origin, join, join_new,
};
use rethread::id::Seed;
use rethread::json::{ArrayWriter, JsonRef};
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::Policy;
use serde_json::{Number, Value};

/// Changes a value as JavaScript changes it that parses it and writes it again.
fn through_javascript(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(through_javascript),
        Value::Object(members) => {
            members.values_mut().for_each(through_javascript);
            let index_of = |key: &String| key.parse::<u32>().ok().filter(|index| index.to_string() == *key);
            let mut sorted: Vec<_> = std::mem::take(members).into_iter().collect();
            sorted.sort_by_key(|(key, _)| index_of(key).map_or((1, 0), |index| (0, index)));
            members.extend(sorted);
        }
        Value::Number(number) => {
            let float: f64 = number.to_string().parse().unwrap();
            let text = if float == 0.0 { "0".to_owned() } else { format!("{float}") };
            *number = serde_json::from_str::<Number>(&text).unwrap();
        }
        _ => {}
    }
}

fn copied(history: &History, format: MessageFormat) -> History {
    let mut text = String::new();
    let mut list = ArrayWriter::new(&mut text);
    let writer = MessageWriter { history, session: "s", format, alternatives: &NO_ALTERNATIVES };
    history.messages().iter().for_each(|message| list.object(|out| writer.write(out, message, None)));
    list.end();
    let mut shown: Value = serde_json::from_str(&text).unwrap();
    through_javascript(&mut shown);
    let text = shown.to_string();
    let items = NewItem::read_all(JsonRef::parse(&text).unwrap()).unwrap();
    let mut copy = History::new(Seed(3));
    let joined = join_new(&copy, items, &Origin { at: 77, ..Origin::default() }, &Ids::new(7)).unwrap();
    joined.entries.into_iter().for_each(|entry| copy.apply(entry));
    copy
}

/// A copy renders to the same bodies, byte for byte, and has the same ids.
pub fn check_copy(log: &[HistoryEntry], policy: &Policy, now: u64) -> Result<(), TestCaseError> {
    let history = fold(log);
    for format in [MessageFormat::WithCalls, MessageFormat::View { saved: true, streaming: false }] {
        let copy = copied(&history, format);
        let ids = |history: &History| {
            let calls = history.invocations().iter().map(|call| call.id.clone());
            history.messages().iter().map(|message| message.id.clone()).chain(calls).collect::<Vec<_>>()
        };
        prop_assert_eq!(ids(&copy), ids(&history));
        for dialect in Dialect::ALL {
            let provider = provider(dialect);
            let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
            let body = |history: &History| {
                let body = Renderer::default().render(history, None, &request, now).unwrap().body;
                String::from_utf8(body).unwrap()
            };
            prop_assert_eq!(body(&copy), body(&history), "{:?} {:?}", dialect, format);
        }
    }
    Ok(())
}

/// Objects that JavaScript writes in another order or without their spaces are copied as they were received.
#[test]
fn r57_blocks_and_results_as_javascript_does_not_write_them_are_copied_unchanged() {
    let body = r#"[{"role":"user","content":"q"},
        {"role":"assistant","content":[{"type":"new_block", "b":1, "1":2},{"type":"tool_use","id":"t","name":"f","input":{"z":1, "0":[1.0, 2]}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text", "text":"r", "7":1}]}]},
        {"role":"assistant","content":"a"},{"role":"user","content":"q"}]"#;
    let items = decode_body(Dialect::Anthropic, JsonRef::parse(body).unwrap()).unwrap();
    let history = History::new(Seed(5));
    let log = join(JoinBase::history(&history), items, &Origin { at: 1, ..Origin::default() }, &Ids::new(1)).entries;
    check_copy(&log, &super::always(), 2).unwrap();
}
