//! Checkpoints of conversations whose calls are open and answered later (R75).

use super::*;
use rethread::history::{JoinedEntries, NewResult, join_results};
use rethread::synthetic_result::{LATE_RESULT, PENDING};
use rethread::tool::ToolResult;

const RESPONSES: Dialect = Dialect::OpenAiResponses;

/// The items of a conversation with an asynchronous call, which is answered after other messages.
fn items() -> Vec<Value> {
    let call = json!({"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}", "async": true});
    vec![
        json!({"role": "user", "content": "export"}),
        call,
        json!({"role": "assistant", "content": "it runs"}),
        json!({"role": "user", "content": "how far"}),
        json!({"role": "assistant", "content": "not done"}),
        json!({"type": "function_call_output", "call_id": "call_a", "output": "seven"}),
        json!({"role": "user", "content": "and now"}),
        json!({"role": "assistant", "content": "done"}),
    ]
}

fn body_of(items: &[Value]) -> Value {
    json!({ "model": "gpt-6", "input": items })
}

/// Stores the result as any process does.
fn answer(driven: &mut Driven, result: &str) {
    let content = Json::parse(&json!(result).to_string()).unwrap();
    let result = ToolResult { content, is_error: false, dialect: None, template: None };
    let result = NewResult { call: "call_a".into(), result, finished_at: None };
    let mut joined = JoinedEntries::default();
    let origin = Origin { at: driven.now, ..Origin::default() };
    join_results(&driven.history, &mut joined, vec![(result, None)], &origin).unwrap();
    joined.entries.into_iter().for_each(|entry| driven.history.apply(entry));
}

#[test]
fn r19_r75_checkpoints_store_open_calls_and_late_outputs_in_their_places() {
    let all = items();
    for first in 1..=all.len() {
        let mut driven = Driven::new(Persistence::Call);
        for count in [first, all.len()] {
            driven.checkpoint(RESPONSES, &body_of(&all[..count])).unwrap();
            let appends = driven.appends;
            driven.checkpoint(RESPONSES, &body_of(&all[..count])).unwrap();
            assert_eq!(driven.appends, appends, "a repeated checkpoint stores nothing, after {count}");
        }
        assert_eq!(driven.history.invocations().len(), 1);
        let rendered = driven.body(RESPONSES);
        assert_eq!(rendered["input"].as_array().unwrap()[..], all[..], "first {first}");
    }
}

#[test]
fn r19_r75_a_checkpoint_of_a_body_with_a_late_result_stores_what_is_new() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Call);
        driven.checkpoint(RESPONSES, &body_of(&items()[..5])).unwrap();
        answer(&mut driven, "seven");
        // The application sends what a render gives, and adds its question and the answer to it.
        let mut body = driven.body(dialect);
        let list = talk::list_name(dialect);
        assert_eq!(body.to_string().matches(LATE_RESULT).count(), usize::from(dialect != RESPONSES));
        assert_eq!(body.to_string().contains(PENDING), dialect != RESPONSES);
        let more = write(dialect, "u and now; a done");
        body[list].as_array_mut().unwrap().extend(more[list].as_array().unwrap().clone());
        let messages = driven.history.messages().len();
        driven.checkpoint(dialect, &body).unwrap();
        let new: Vec<Role> = driven.history.messages()[messages..].iter().map(|message| message.role).collect();
        assert_eq!(new, [Role::User, Role::Assistant], "{dialect:?}: {body}");
        // It stays where the body had it.
        let before = body[list].as_array().unwrap();
        let after = driven.body(dialect);
        assert_eq!(after.to_string().matches("seven").count(), 1);
        let count = before.len() - 2;
        if dialect == Dialect::Bedrock {
            // Two messages of the user are one there.
            assert_eq!(after[list].as_array().unwrap()[..count - 1], before[..count - 1]);
            continue;
        }
        assert_eq!(after[list].as_array().unwrap()[..count], before[..count], "{dialect:?}");
    }
}
