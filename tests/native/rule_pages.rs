//! The pages in docs/rules: every example does what its page says, and every rule has an example (R66).

use crate::any_bodies;

use any_bodies::{any_json, body, many};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rethread::error::ErrorCode;
use rethread::finding::Severity;
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, heal, leave_out_refused, repair, validate};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One example of a page.
struct Example {
    page: &'static str,
    dialect: Dialect,
    line: usize,
    code: String,
    /// What the page says that the finding says.
    sentence: String,
    given: Value,
    /// The repaired body. Absent where the body is accepted and fragile, or refused.
    repaired: Option<Value>,
    /// `repair` refuses the body.
    refused: bool,
}

const PAGES: [(&str, Dialect); Dialect::ALL.len()] = [
    ("openai-chat", Dialect::OpenAiChat),
    ("openai-responses", Dialect::OpenAiResponses),
    ("anthropic", Dialect::Anthropic),
    ("gemini", Dialect::Gemini),
    ("mistral", Dialect::Mistral),
    ("bedrock", Dialect::Bedrock),
    ("mistral-conversations", Dialect::MistralConversations),
    ("gemini-interactions", Dialect::GeminiInteractions),
];

/// Reads the examples of a page: a heading with the code, a quoted sentence, a `broken` and a `repaired` block, a
/// `fragile` or a `refused` one.
fn examples(page: &'static str, dialect: Dialect) -> Vec<Example> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/rules/{page}.md"))).unwrap();
    let mut found: Vec<Example> = Vec::new();
    let (mut code, mut sentence) = (String::new(), String::new());
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut code);
        } else if let Some(quote) = line.strip_prefix("> ") {
            quote.clone_into(&mut sentence);
        } else if let Some(kind) = line.strip_prefix("```json ") {
            let block: String = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let body: Value = serde_json::from_str(&block).unwrap_or_else(|e| panic!("{page}.md:{}: {e}", at + 1));
            match kind {
                "broken" | "fragile" | "refused" => found.push(Example {
                    page,
                    dialect,
                    line: at + 1,
                    code: code.clone(),
                    sentence: sentence.clone(),
                    given: body,
                    repaired: None,
                    refused: kind == "refused",
                }),
                "repaired" => found.last_mut().unwrap().repaired = Some(body),
                "sent" | "answer" | "healed" => {}
                _ => panic!("{page}.md:{}: a block is broken, repaired, fragile or refused, not {kind}", at + 1),
            }
        }
    }
    found
}

fn all_examples() -> Vec<Example> {
    PAGES.into_iter().flat_map(|(page, dialect)| examples(page, dialect)).collect()
}

#[test]
fn r66_every_example_behaves_as_its_page_states() {
    let examples = all_examples();
    assert!(examples.len() >= 80, "the pages hold {} examples", examples.len());
    for example in examples {
        let place = format!("docs/rules/{}.md:{}, {}", example.page, example.line, example.code);
        let given = example.given.to_string();
        let found = validate(given.as_bytes(), example.dialect);
        let finding = found.iter().find(|finding| finding.code.as_str() == example.code);
        let finding = finding.unwrap_or_else(|| panic!("{place}: no such finding in {found:?}"));
        assert_eq!(finding.message, example.sentence, "{place}");
        let repaired = repair(given.as_bytes(), example.dialect, &RepairOptions::default());
        if example.refused {
            let error = repaired.expect_err(&place);
            assert_eq!((finding.severity, error.code), (Severity::Error, ErrorCode::InvalidInput), "{place}");
            continue;
        }
        let (out, _) = repaired.unwrap();
        let out: Value = serde_json::from_slice(&out).unwrap();
        match &example.repaired {
            Some(repaired) => {
                assert_eq!(finding.severity, Severity::Error, "{place}");
                assert_eq!(&out, repaired, "{place}");
            }
            None => {
                assert_eq!(finding.severity, Severity::Warning, "{place}: a broken body needs its repaired one");
                assert_eq!(out, example.given, "{place}");
            }
        }
        let left = validate(out.to_string().as_bytes(), example.dialect);
        assert!(left.iter().all(|finding| finding.severity != Severity::Error), "{place}: {left:?}");
    }
}

/// A request that the provider refused: the body, the answer, and the healed body; none if it is not repeated.
struct RefusedRequest {
    place: String,
    dialect: Dialect,
    code: String,
    sent: Value,
    answer: Value,
    healed: Option<Value>,
}

fn refused_requests(page: &'static str, dialect: Dialect) -> Vec<RefusedRequest> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/rules/{page}.md"))).unwrap();
    let mut found = Vec::new();
    for section in text.split("\n## ").skip(1).filter(|section| section.contains("```json sent\n")) {
        let code = section.lines().next().unwrap().to_owned();
        let block = |kind: &str| {
            let (_, rest) = section.split_once(&format!("```json {kind}\n"))?;
            Some(serde_json::from_str(rest.split("\n```").next().unwrap()).unwrap())
        };
        let place = format!("docs/rules/{page}.md, {code}");
        let (sent, answer) = (block("sent").unwrap(), block("answer").unwrap());
        found.push(RefusedRequest { place, dialect, code, sent, answer, healed: block("healed") });
    }
    found
}

#[test]
fn r66_r74_every_refused_request_is_healed_as_its_page_states_or_not_repeated() {
    let all: Vec<_> = PAGES.into_iter().flat_map(|(page, dialect)| refused_requests(page, dialect)).collect();
    assert!(all.len() >= 11, "the pages hold {} refused requests", all.len());
    for RefusedRequest { place, dialect, code, sent, answer, healed } in all {
        let (body, answer) = (sent.to_string(), answer.to_string());
        let found = heal(body.as_bytes(), dialect, answer.as_bytes(), &RepairOptions::default());
        let Some(expected) = healed else {
            assert!(found.is_none(), "{place}: {found:?}");
            continue;
        };
        let found = found.unwrap_or_else(|| panic!("{place}: not healed"));
        assert_eq!(serde_json::from_slice::<Value>(&found.body).unwrap(), expected, "{place}");
        let (first, others) = found.report.split_first().unwrap();
        assert_eq!((first.code.as_str(), others.len()), ("healed", 0), "{place}: {others:?}");
        assert!(first.message.contains(&format!("rule `{code}`")), "{place}: {}", first.message);
        // What it refused was accepted by the rules: else it would have been repaired before it was sent.
        let before = validate(body.as_bytes(), dialect);
        assert!(before.iter().all(|finding| finding.severity != Severity::Error), "{place}: {before:?}");
        // The same answer again heals nothing: a request is never repeated twice.
        assert!(heal(&found.body, dialect, answer.as_bytes(), &RepairOptions::default()).is_none(), "{place}");
        if let Some((again, _)) = leave_out_refused(body.as_bytes(), dialect, &found.refused, &RepairOptions::default())
        {
            assert_eq!(again, found.body, "{place}: what was refused is left out the next time");
        } else {
            assert!(found.refused.is_empty(), "{place}: {:?} is remembered and sent again", found.refused);
        }
    }
}

/// The codes that `validate` finds in generated bodies of a dialect.
fn codes_found(dialect: Dialect) -> BTreeSet<&'static str> {
    let mut runner = TestRunner::deterministic();
    let bodies = prop_oneof![9 => body(dialect).boxed(), 1 => any_json().boxed()];
    let mut codes = BTreeSet::new();
    for _ in 0..many(1_500) {
        let body = bodies.new_tree(&mut runner).unwrap().current();
        codes.extend(validate(body.to_string().as_bytes(), dialect).iter().map(|finding| finding.code.as_str()));
    }
    codes
}

#[test]
fn r66_every_example_has_its_sentence_and_its_source() {
    for (page, _) in PAGES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/rules/{page}.md"));
        let text = fs::read_to_string(file).unwrap();
        for section in text.split("\n##").skip(1).filter(|section| section.contains("\n```json ")) {
            let heading = section.lines().next().unwrap();
            let has = |start: &str| section.lines().any(|line| line.starts_with(start) && line.len() > start.len());
            assert!(has("> ") && has("Source: "), "docs/rules/{page}.md, {heading}");
        }
    }
}

#[test]
fn r66_every_rule_has_an_example() {
    for (page, dialect) in PAGES {
        let shown: BTreeSet<String> = examples(page, dialect).into_iter().map(|example| example.code).collect();
        let found = codes_found(dialect);
        assert!(found.len() >= 10, "{page}: the generated bodies break only {found:?}");
        let missing: Vec<_> = found.into_iter().filter(|code| !shown.contains(*code)).collect();
        assert!(missing.is_empty(), "docs/rules/{page}.md has no example of {missing:?}");
    }
}
