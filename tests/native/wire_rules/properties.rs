//! Properties over generated bodies: mostly plausible ones with messages shuffled, dropped, doubled, ids reused and
//! types wrong, and any JSON at all.

use super::any_bodies::{any_json, body, many};
use proptest::prelude::*;
use proptest::sample::select;
use rethread::error::{Error, ErrorCode};
use rethread::finding::{Finding, Severity};
use rethread::message::Dialect;
use rethread::provider::{Dangling, RepairOptions, repair, validate};
use serde_json::Value;

const BUILT: [Dialect; Dialect::ALL.len()] = Dialect::ALL;

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: many(2_000),
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Valid bodies, some messages then taken out, doubled or moved.
fn mutated(dialect: Dialect) -> BoxedStrategy<Value> {
    (body(dialect), prop::collection::vec((0..3u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4))
        .prop_map(move |(body, changes)| {
            let mended = repair(body.to_string().as_bytes(), dialect, &RepairOptions::default());
            // A body of another shape is mutated as it is.
            let mut body = mended.map_or(body, |(out, _)| serde_json::from_slice(&out).unwrap());
            let name = ["messages", "contents", "input", "inputs"].into_iter().find(|n| body.get(n).is_some()).unwrap();
            let Some(items) = body[name].as_array_mut() else { return body };
            for (kind, from, to) in changes {
                if items.is_empty() {
                    break;
                }
                let (from, to) = (from.index(items.len()), to.index(items.len()));
                match kind {
                    0 => {
                        items.remove(from);
                    }
                    1 => {
                        let item = items[from].clone();
                        items.insert(to, item);
                    }
                    _ => {
                        let item = items.remove(from);
                        items.insert(to.min(items.len()), item);
                    }
                }
            }
            body
        })
        .boxed()
}

fn holds(text: &str, dialect: Dialect, options: &RepairOptions) -> Result<(), TestCaseError> {
    let repaired = repair(text.as_bytes(), dialect, options);
    prop_assert_eq!(&repair(text.as_bytes(), dialect, options), &repaired, "not deterministic");
    let out = match repaired {
        Ok((out, _)) => out,
        Err(error) => return refused(text, dialect, &error),
    };
    let shown = String::from_utf8_lossy(&out).into_owned();
    prop_assert!(serde_json::from_slice::<Value>(&out).is_ok(), "no JSON: {shown}");
    let left = validate(&out, dialect);
    prop_assert!(
        left.iter().all(|f| f.severity != Severity::Error),
        "still refused: {left:?}\nfrom {text}\nto   {shown}"
    );
    prop_assert_eq!(&repair(&out, dialect, options).unwrap().0, &out, "no fixpoint: {}", shown);
    let before = validate(text.as_bytes(), dialect);
    let broken = before.iter().any(|f| f.severity == Severity::Error);
    prop_assert_eq!(
        broken,
        out != text.as_bytes(),
        "error and change must go together: {:?}\nfrom {}\nto   {}",
        before,
        text,
        shown
    );
    Ok(())
}

/// A body is refused for its shape, or because only calls and results that cannot stay are in it, and `validate` says
/// so.
fn refused(text: &str, dialect: Dialect, error: &Error) -> Result<(), TestCaseError> {
    prop_assert_eq!(error.code, ErrorCode::InvalidInput);
    let found = validate(text.as_bytes(), dialect);
    let is_emptied = error.message.contains("Nothing would be left");
    let shape = |f: &Finding| (is_emptied || f.code.as_str() == "unknown_shape") && f.severity == Severity::Error;
    prop_assert!(found.iter().any(shape), "refused without a finding: {error:?} {found:?}\nfrom {text}");
    Ok(())
}

/// Texts of user and assistant messages, calls, results of one call beyond doubt, the user's images: nothing of these
/// may go.
fn keeps(text: &str, dialect: Dialect) -> Result<(), TestCaseError> {
    let Ok((out, _)) = repair(text.as_bytes(), dialect, &RepairOptions::default()) else { return Ok(()) };
    let (before, after): (Value, Value) = (serde_json::from_str(text).unwrap(), serde_json::from_slice(&out).unwrap());
    let (said, left) = (super::shapes::said(&before, dialect), super::shapes::said(&after, dialect));
    let mut left = left.into_iter().fold(std::collections::BTreeMap::new(), |mut m, t| {
        *m.entry(t).or_insert(0) += 1;
        m
    });
    for words in said {
        let count = left.entry(words.clone()).or_insert(0);
        prop_assert!(*count > 0, "lost {words:?}\nfrom {text}\nto   {after}");
        *count -= 1;
    }
    let mut results = super::shapes::results(&after, dialect);
    for answer in super::shapes::answers(&before, dialect) {
        let found = results.iter().position(|left| *left == answer);
        prop_assert!(found.is_some(), "lost the result {answer:?}\nfrom {text}\nto   {after}");
        results.swap_remove(found.unwrap());
    }
    let (calls, kept) = (super::shapes::count_calls(&before, dialect), super::shapes::count_calls(&after, dialect));
    prop_assert!(calls <= kept, "lost a call\nfrom {text}\nto   {after}");
    // Bedrock fetches no image from a URL.
    if dialect == Dialect::Bedrock {
        return Ok(());
    }
    let images = (super::shapes::count_images(&before, dialect), super::shapes::count_images(&after, dialect));
    prop_assert!(images.0 <= images.1, "lost an image\nfrom {text}\nto   {after}");
    Ok(())
}

fn omit() -> RepairOptions {
    RepairOptions { dangling: Dangling::Omit, dangling_text: None }
}

macro_rules! properties {
    ($($name:ident => $dialect:expr),*) => { $(mod $name {
        use super::*;
        proptest! {
            #![proptest_config(cases())]
            #[test]
            fn r41_repair_of_plausible_bodies(body in body($dialect)) {
                let text = body.to_string();
                holds(&text, $dialect, &RepairOptions::default())?;
                keeps(&text, $dialect)?;
            }
            #[test]
            fn r41_repair_of_mutated_bodies(body in mutated($dialect)) {
                let text = body.to_string();
                holds(&text, $dialect, &RepairOptions::default())?;
                keeps(&text, $dialect)?;
            }
            #[test]
            fn r41_repair_with_the_option_to_omit_calls(body in body($dialect)) {
                holds(&body.to_string(), $dialect, &omit())?;
            }
        }
    })* };
}

properties! { openai_chat => Dialect::OpenAiChat, anthropic => Dialect::Anthropic, mistral => Dialect::Mistral, gemini => Dialect::Gemini, bedrock => Dialect::Bedrock, mistral_conversations => Dialect::MistralConversations, gemini_interactions => Dialect::GeminiInteractions, openai_responses => Dialect::OpenAiResponses }

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn r41_repair_of_any_json(value in any_json(), dialect in select(BUILT.to_vec())) {
        holds(&value.to_string(), dialect, &RepairOptions::default())?;
    }
    #[test]
    fn r41_validate_and_repair_return_for_any_text(text in "[\\[\\]{}\",:a-z0-9 \\\\]{0,40}", dialect in select(BUILT.to_vec())) {
        let Ok((out, report)) = repair(text.as_bytes(), dialect, &RepairOptions::default()) else {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "refused for its shape: {}", text);
            return Ok(());
        };
        if serde_json::from_str::<Value>(&text).is_err() {
            prop_assert_eq!(out, text.as_bytes());
            prop_assert_eq!(report[0].code.as_str(), "malformed");
        }
    }
}
