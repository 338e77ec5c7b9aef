//! Repairs a refused body, and a body with what was refused before.

use super::cure::Cure;
use super::error_answer::ErrorAnswer;
use super::remedy::Remedy;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::JsonRef;
use crate::message::Dialect;
use crate::provider::rules::{RepairOptions, repair};
use crate::provider::spec::{DialectSpec, NamedDialect};

/// A body that was refused, repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healed {
    /// The repaired body. It differs from the refused one.
    pub body: Vec<u8>,
    /// A finding `healed`, and what the rules repaired besides.
    pub report: Report,
    /// Marks of what was refused, for [`leave_out_refused`]: letters, digits and `:`, without any content of the body
    /// but its model.
    pub refused: Vec<String>,
}

/// Repairs a body that its provider refused, by the status (`RuleSet::refusal_statuses`). `answer` is the body of that
/// answer. Returns `None` for an error that is in no table, and if the repair would change nothing: such a request must
/// not be repeated.
#[must_use]
pub(crate) fn heal(body: &[u8], dialect: NamedDialect, answer: &[u8], options: &RepairOptions) -> Option<Healed> {
    let answer = ErrorAnswer::read(answer)?;
    let text = std::str::from_utf8(body).ok()?;
    for member in dialect.family() {
        for remedy in member.spec.rules.remedies.iter().filter(|remedy| remedy.cures(&answer)) {
            if let Some(healed) = apply(text, (dialect, member), (remedy, &answer), options) {
                return Some(healed);
            }
        }
    }
    None
}

/// Returns the rule that an answer with an error is about, by the table of the dialect: the heading of its entry in the
/// page of rules.
#[must_use]
pub(crate) fn refused_rule(answer: &[u8], spec: &DialectSpec) -> Option<&'static str> {
    let answer = ErrorAnswer::read(answer)?;
    let general = spec.rules.general_refusals;
    spec.rules.remedies.iter().find(|remedy| remedy.is_named_by(&answer, general)).map(|remedy| remedy.rule)
}

/// Applies a remedy of `member` to a body of `dialect`, which is of the same family.
fn apply(
    text: &str,
    (dialect, member): (NamedDialect, NamedDialect),
    (remedy, answer): (&Remedy, &ErrorAnswer),
    options: &RepairOptions,
) -> Option<Healed> {
    let mut cure = Cure::of(text, member.spec.items.list, options)?;
    (remedy.cure)(&mut cure, answer);
    let Cure { edits, place, mut refused, .. } = cure;
    let is_edited = !edits.is_empty();
    let edited = if is_edited { edits.apply() } else { text.to_owned() };
    let (body, found) = repair(edited.as_bytes(), member, options).ok()?;
    if body == text.as_bytes() {
        return None;
    }
    if member.spec.dialect() != dialect.spec.dialect() {
        refused.push(rules_mark(member.spec.dialect(), text));
    }
    let message = format!(
        "the provider refused the request (\"{}\"); {}; see the rule `{}`",
        remedy.quotation(answer),
        remedy.done,
        remedy.rule
    );
    let mut finding = Finding::warning(FindingCode::Healed, message).with_action(Action::Rewritten);
    finding.path = place;
    let mut report = vec![finding];
    report.extend(found.into_iter().map(|finding| if is_edited { finding.without_path() } else { finding }));
    Some(Healed { body, report, refused })
}

/// The begin of a mark of a body whose provider applies the rules of another dialect of the family.
const RULES: &str = "rules:";

fn rules_mark(dialect: Dialect, text: &str) -> String {
    let model = JsonRef::parse(text).ok().map(|body| body.string("model")).unwrap_or_default();
    format!("{RULES}{}:{model}", dialect.as_str())
}

/// Repairs a body from which something is to be left out that its provider refused before: what the marks of
/// [`Healed::refused`] name. Returns `None` if the body contains none of it.
#[must_use]
pub(crate) fn leave_out_refused(
    body: &[u8],
    dialect: NamedDialect,
    refused: &[String],
    options: &RepairOptions,
) -> Option<(Vec<u8>, Report)> {
    let text = std::str::from_utf8(body).ok().filter(|_| !refused.is_empty())?;
    let mut cure = Cure::of(text, dialect.spec.items.list, options)?;
    (dialect.spec.rules.leave_out_refused)(&mut cure, refused);
    let Cure { edits, place, .. } = cure;
    let edited = if edits.is_empty() { text.to_owned() } else { edits.apply() };
    // The first of the family is the dialect itself.
    let rules = dialect.family().skip(1).find(|rules| refused.contains(&rules_mark(rules.spec.dialect(), text)));
    if edited == text && rules.is_none() {
        return None;
    }
    let (body, found) = repair(edited.as_bytes(), rules.unwrap_or(dialect), options).ok()?;
    if body == text.as_bytes() {
        return None;
    }
    let message = "what the provider refused in an earlier request is not sent again";
    let mut finding = Finding::info(FindingCode::Healed, message).with_action(Action::Rewritten);
    finding.path = place;
    let mut report = vec![finding];
    report.extend(found.into_iter().map(Finding::without_path));
    Some((body, report))
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use crate::finding::{FindingCode, Severity};
    use crate::message::Dialect;
    use crate::provider::healing::ErrorAnswer;
    use crate::provider::{RepairOptions, heal, leave_out_refused, refused_rule, spec};

    const PAGES: [(Dialect, &str); Dialect::ALL.len()] = [
        (Dialect::OpenAiChat, include_str!("../../../docs/rules/openai-chat.md")),
        (Dialect::OpenAiResponses, include_str!("../../../docs/rules/openai-responses.md")),
        (Dialect::Anthropic, include_str!("../../../docs/rules/anthropic.md")),
        (Dialect::Gemini, include_str!("../../../docs/rules/gemini.md")),
        (Dialect::Mistral, include_str!("../../../docs/rules/mistral.md")),
        (Dialect::Bedrock, include_str!("../../../docs/rules/bedrock.md")),
        (Dialect::MistralConversations, include_str!("../../../docs/rules/mistral-conversations.md")),
        (Dialect::GeminiInteractions, include_str!("../../../docs/rules/gemini-interactions.md")),
    ];

    #[test]
    fn r66_every_cured_error_has_a_page_entry_with_its_sentence_and_begins_with_the_cure() {
        for (dialect, page) in PAGES {
            for remedy in spec(dialect).rules.remedies {
                let heading = format!("\n## {}\n", remedy.rule);
                let (_, rest) =
                    page.split_once(&heading).unwrap_or_else(|| panic!("{dialect:?}: no rule {}", remedy.rule));
                let section = rest.split("\n## ").next().unwrap_or_default();
                assert!(section.trim_start().starts_with("Cure: "), "{dialect:?} {}", remedy.rule);
                let text = ErrorAnswer::read(section.as_bytes()).unwrap();
                for parts in remedy.sentences {
                    assert!(text.find(parts).is_some(), "{dialect:?} {} does not quote {parts:?}", remedy.rule);
                }
                assert!(remedy.codes.iter().all(|code| text.has_word(code)), "{dialect:?} {}", remedy.rule);
            }
        }
    }

    /// A body of OpenAI Chat that a gateway gives to Mistral, and what Mistral says.
    const GATEWAY_BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"r"},{"role":"user","content":"c"}]}"#;
    const GATEWAY_ERROR: &[u8] =
        br#"{"message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."}"#;

    #[test]
    fn r74_a_model_behind_a_gateway_gets_the_rules_of_its_own_dialect_from_the_first_refusal_on() {
        let options = RepairOptions::default();
        let healed = heal(GATEWAY_BODY.as_bytes(), Dialect::OpenAiChat, GATEWAY_ERROR, &options).unwrap();
        assert!(!String::from_utf8_lossy(&healed.body).contains("call_1"));
        assert_eq!(healed.refused, ["rules:mistral:m"]);
        let places: Vec<_> = healed.report.iter().map(|finding| finding.path.is_some()).collect();
        assert!(places.len() > 1 && !places[0] && places[1..].iter().all(|place| *place), "{:?}", healed.report);
        let again = |body: &[u8], dialect| leave_out_refused(body, dialect, &healed.refused, &options);
        let (body, report) = again(GATEWAY_BODY.as_bytes(), Dialect::OpenAiChat).unwrap();
        assert_eq!(body, healed.body);
        assert!(report.len() > 1 && report.iter().all(|finding| finding.path.is_none()), "{report:?}");
        // Neither for another model, nor where the rules apply anyway, nor twice.
        let other = GATEWAY_BODY.replace(r#""model":"m""#, r#""model":"n""#);
        assert_eq!(again(other.as_bytes(), Dialect::OpenAiChat), None);
        assert_eq!(again(GATEWAY_BODY.as_bytes(), Dialect::Mistral), None);
        assert_eq!(again(&healed.body, Dialect::OpenAiChat), None);
        // A body of the dialect itself needs no mark.
        let own = heal(GATEWAY_BODY.as_bytes(), Dialect::Mistral, GATEWAY_ERROR, &options).unwrap();
        assert_eq!(own.refused, [] as [&str; 0]);
    }

    const BODY: &str = r#"{"model":"claude-opus-5-5","max_tokens":9,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"AAAA"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]}"#;

    #[test]
    fn r74_each_sentence_about_bound_thinking_heals_with_and_without_a_place() {
        for sentence in [
            "Invalid `signature` in `thinking` block",
            "Invalid `signature` in `redacted_thinking` block",
            "The block is bound to a different conversation.",
            "The `thinking` block that preceded this one when it was created is missing from this request",
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        ] {
            for place in ["", "messages.1.content.0: "] {
                let answer = format!(r#"{{"type":"error","error":{{"message":"{place}{sentence}"}}}}"#);
                let options = RepairOptions::default();
                let healed = heal(BODY.as_bytes(), Dialect::Anthropic, answer.as_bytes(), &options).expect(&answer);
                let body = String::from_utf8(healed.body).unwrap();
                assert!(!body.contains("AAAA") && body.contains(r#""text":"b""#), "{answer}: {body}");
                let message = &healed.report[0].message;
                assert!(message.contains(&format!("(\"{place}{sentence}\")")), "{message}");
                assert_eq!(refused_rule(answer.as_bytes(), Dialect::Anthropic), Some("thinking_bound"));
            }
        }
    }

    #[test]
    fn r74_the_first_healing_is_a_warning_and_what_is_left_out_later_a_note() {
        let answer = br#"{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#;
        let options = RepairOptions::default();
        let healed = heal(BODY.as_bytes(), Dialect::Anthropic, answer, &options).unwrap();
        assert_eq!(healed.report[0].severity, Severity::Warning);
        let (_, report) = leave_out_refused(BODY.as_bytes(), Dialect::Anthropic, &healed.refused, &options).unwrap();
        assert_eq!((report[0].code, report[0].severity), (FindingCode::Healed, Severity::Info));
    }

    #[test]
    fn r74_what_a_message_says_is_no_member_to_leave_out() {
        const CONTENT: &str = r#"{"model":"claude-opus-5-5","max_tokens":9,"messages":[{"role":"user","content":[
            {"type":"document","source":{"type":"url","url":"https://d.example/1","note":1},"title":"T","context":"C","added":1}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"pay","input":{"amount":5,"to":{"x":1}},"added":1}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}]}"#;
        let heal_at = |place: &str| {
            let answer = format!(r#"{{"error":{{"message":"messages.{place}: Extra inputs are not permitted"}}}}"#);
            heal(CONTENT.as_bytes(), Dialect::Anthropic, answer.as_bytes(), &RepairOptions::default())
        };
        for place in [
            "1.content.0.tool_use.input.amount",
            "1.content.0.input.to.x",
            "0.content.0.document.source.url",
            "0.content.0.document.source.note",
            "0.content.0.document.title",
            "0.content.0.document.context",
        ] {
            assert!(heal_at(place).is_none(), "{place}");
        }
        for place in ["1.content.0.tool_use.added", "0.content.0.document.added"] {
            let healed = String::from_utf8(heal_at(place).expect(place).body).unwrap();
            assert_eq!(healed.matches("added").count(), 1, "{place} {healed}");
        }
    }
}
