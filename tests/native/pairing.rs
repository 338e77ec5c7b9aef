//! Which result answers which call: whoever names its call comes first, results without an id get what is left.

use proptest::prelude::*;
use rethread::finding::Severity;
use rethread::history::{History, HistoryEntry, Incoming, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, decode_body, repair, validate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One item of a body, before it is written in a dialect.
#[derive(Clone, Debug)]
enum Item {
    User,
    /// The calls of one answer.
    Calls(Vec<usize>),
    /// The result of that call, by its id.
    Named(usize),
    Nameless,
}

/// Rounds of calls; of each call its named result, if it has one, anywhere; and results without an id.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let rounds = prop::collection::vec(1_usize..4, 1..4);
    let results = prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 12);
    let nameless = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (rounds, results, nameless, any::<bool>()).prop_map(|(rounds, results, nameless, users)| {
        let (mut items, mut count) = (Vec::new(), 0);
        for size in rounds {
            if users {
                items.push(Item::User);
            }
            items.push(Item::Calls((count..count + size).collect()));
            count += size;
        }
        for (call, (named, at)) in results.into_iter().enumerate().take(count) {
            if named {
                items.insert(at.index(items.len() + 1), Item::Named(call));
            }
        }
        for at in nameless {
            items.insert(at.index(items.len() + 1), Item::Nameless);
        }
        items
    })
}

fn named_in(items: &[Item]) -> Vec<usize> {
    let mut named: Vec<_> =
        items.iter().filter_map(|item| if let Item::Named(call) = item { Some(*call) } else { None }).collect();
    named.sort_unstable();
    named
}

fn chat_of(items: &[Item]) -> Value {
    let messages: Vec<_> = items
        .iter()
        .map(|item| match item {
            Item::User => json!({ "role": "user", "content": "go" }),
            Item::Calls(calls) => {
                json!({ "role": "assistant", "content": null, "tool_calls": calls.iter().map(|call| json!({
                "id": format!("call_{call}"), "type": "function", "function": { "name": "f", "arguments": "{}" }
            })).collect::<Vec<_>>() })
            }
            Item::Named(call) => {
                json!({ "role": "tool", "tool_call_id": format!("call_{call}"), "content": format!("own {call}") })
            }
            Item::Nameless => json!({ "role": "tool", "content": "of nobody" }),
        })
        .collect();
    json!({ "model": "m", "messages": messages })
}

fn responses_of(items: &[Item]) -> Value {
    let mut input = Vec::new();
    for item in items {
        match item {
            Item::User => input.push(json!({ "role": "user", "content": "go" })),
            Item::Calls(calls) => input.extend(calls.iter().map(|call| {
                json!({ "type": "function_call", "call_id": format!("call_{call}"), "name": "f", "arguments": "{}" })
            })),
            Item::Named(call) => input.push(json!({ "type": "function_call_output", "call_id": format!("call_{call}"), "output": format!("own {call}") })),
            Item::Nameless => input.push(json!({ "type": "function_call_output", "output": "of nobody" })),
        }
    }
    json!({ "model": "m", "input": input })
}

/// The results of a body, by the ids that they name.
fn results_in(body: &Value) -> BTreeMap<String, String> {
    let list = body["messages"].as_array().or(body["input"].as_array()).unwrap();
    let result = |item: &Value| {
        let (id, content) = if item["role"] == "tool" {
            (&item["tool_call_id"], &item["content"])
        } else if item["type"] == "function_call_output" {
            (&item["call_id"], &item["output"])
        } else {
            return None;
        };
        Some((id.as_str()?.to_owned(), content.as_str()?.to_owned()))
    };
    list.iter().filter_map(result).collect()
}

proptest! {
    #[test]
    fn r41_a_result_with_the_calls_id_is_preferred(items in items()) {
        for (dialect, body) in [(Dialect::OpenAiChat, chat_of(&items)), (Dialect::OpenAiResponses, responses_of(&items))] {
            let (repaired, report) = repair(body.to_string().as_bytes(), dialect, &RepairOptions::default()).unwrap();
            prop_assert!(validate(&repaired, dialect).iter().all(|finding| finding.severity != Severity::Error));
            let results = results_in(&serde_json::from_slice(&repaired).unwrap());
            for call in named_in(&items) {
                let kept = results.get(&format!("call_{call}")).map(String::as_str);
                prop_assert_eq!(kept, Some(&*format!("own {call}")), "{:?} of {}: {:?}", dialect, body, report);
            }
            prop_assert!(report.iter().all(|finding| finding.code.as_str() != "duplicate_result" || finding.call_id.is_none()));
        }
    }

    #[test]
    fn r02_the_join_prefers_the_result_with_the_calls_id(items in items(), split in any::<prop::sample::Index>()) {
        // In Gemini a result without an id names its tool; the calls here have ids, and all call one tool.
        let contents: Vec<_> = items.iter().map(|item| match item {
            Item::User => json!({ "role": "user", "parts": [{ "text": "go" }] }),
            Item::Calls(calls) => json!({ "role": "model", "parts": calls.iter().map(|call| json!({ "functionCall": { "id": format!("call_{call}"), "name": "f", "args": {} } })).collect::<Vec<_>>() }),
            Item::Named(call) => json!({ "role": "user", "parts": [{ "functionResponse": { "id": format!("call_{call}"), "name": "f", "response": { "output": format!("own {call}") } } }] }),
            Item::Nameless => json!({ "role": "user", "parts": [{ "functionResponse": { "name": "f", "response": { "output": "of nobody" } } }] }),
        }).collect();
        for (dialect, body) in [
            (Dialect::OpenAiChat, chat_of(&items)),
            (Dialect::OpenAiResponses, responses_of(&items)),
            (Dialect::Gemini, json!({ "contents": contents })),
        ] {
            let text = body.to_string();
            let incoming = decode_body(dialect, JsonRef::parse(&text).unwrap()).unwrap();
            // Calls that are stored already, and those that come with their results.
            let mut history = History::new(Seed(7));
            let leading = incoming.iter().take_while(|item| matches!(item, Incoming::Message(_))).count();
            let (stored, rest) = incoming.split_at(split.index(leading + 1));
            let ids = CountingIds::default();
            for part in [stored, rest] {
                for entry in join(JoinBase::history(&history), part.to_vec(), &Origin::default(), &ids).entries {
                    history.apply(entry);
                }
            }
            for call in named_in(&items) {
                let invocation = history.invocations().iter().find(|own| own.call_id == format!("call_{call}")).unwrap();
                let content = invocation.result.as_ref().map(|result| result.content.as_str().to_owned());
                let own = format!("own {call}");
                prop_assert!(content.as_deref().is_some_and(|content| content.contains(&own)), "{:?}: {} has {:?} in {}", dialect, call, content, text);
            }
        }
    }

    /// A simple reference for results in order: with as many nameless results as calls without ids, each gets its own.
    #[test]
    fn r02_calls_without_ids_are_paired_in_order(sizes in prop::collection::vec(1_usize..6, 1..5)) {
        let (mut contents, mut count) = (Vec::new(), 0);
        for size in sizes {
            let numbers = count..count + size;
            contents.push(json!({ "role": "user", "parts": [{ "text": "go" }] }));
            contents.push(json!({ "role": "model", "parts": numbers.clone().map(|n| json!({ "functionCall": { "name": "f", "args": { "n": n } } })).collect::<Vec<_>>() }));
            contents.push(json!({ "role": "user", "parts": numbers.map(|n| json!({ "functionResponse": { "name": "f", "response": { "n": n } } })).collect::<Vec<_>>() }));
            count += size;
        }
        let text = json!({ "contents": contents }).to_string();
        let incoming = decode_body(Dialect::Gemini, JsonRef::parse(&text).unwrap()).unwrap();
        let joined = join(JoinBase::history(&History::new(Seed(7))), incoming, &Origin::default(), &CountingIds::default());
        for entry in joined.entries {
            if let HistoryEntry::Invocation(call) = entry {
                let asked = call.arguments.text().into_owned();
                prop_assert_eq!(call.result.map(|result| result.content.as_str().to_owned()), Some(asked));
            }
        }
    }
}
