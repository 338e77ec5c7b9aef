//! The errors of Chat Completions, and of servers that are nearly it, that can be cured. Sentences: cai#111,
//! litellm#10083, smarter#264, agentao#321 (OpenAI), dify#32222 (DeepSeek).

use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[&["an assistant message with tool_calls must be followed by tool messages"]],
        codes: &[],
        rule: "dangling_call",
        done: "each call is followed by its result",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["messages with role tool must be a response to a prece", "ing message with tool_calls"]],
        codes: &[],
        rule: "orphan_result",
        done: "the result without a call is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["tool_call_id", "is not found"]],
        codes: &[],
        rule: "orphan_result",
        done: "the result without a call is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["property reasoning", " is unsupported"]],
        codes: &[],
        rule: "reasoning_member",
        done: "the messages are sent without that member",
        cure: leave_out_reasoning,
    },
    Remedy {
        sentences: &[&["[] is too short", "tool_calls"]],
        codes: &[],
        rule: "empty_tool_calls",
        done: "the empty list is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["string too long", "tool_call"]],
        codes: &["string_above_max_length"],
        rule: "invalid_call_id",
        done: "the call and its result have a shorter id",
        cure: by_rules,
    },
    // Of Claude, behind gateways (hermes-agent#50055, copilot-api#261).
    Remedy {
        sentences: &[&["this model does not support assistant message prefill"]],
        codes: &[],
        rule: "prefill",
        done: "the user asks the model to go on",
        cure: |cure, _| cure.ask_to_continue(r#""Continue.""#),
    },
];

/// The members of an assistant message in which servers return reasoning. A server that does not know one rejects it.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning_details", "reasoning"];

/// A mark of a member that a model's server refused: `member:reasoning:llama-4`.
fn member_mark(member: &str, model: &str) -> String {
    format!("member:{member}:{model}")
}

/// Removes what was refused earlier.
pub(crate) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    let model = cure.body.string("model");
    for member in REASONING.into_iter().filter(|member| refused.contains(&member_mark(member, &model))) {
        remove_member(cure, member);
    }
}

fn leave_out_reasoning(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let named = answer.word_after(&["property "]).unwrap_or_default();
    if let Some(member) = REASONING.into_iter().find(|member| *member == named) {
        cure.refused.push(member_mark(member, &cure.body.string("model")));
        remove_member(cure, member);
    }
}

fn remove_member(cure: &mut Cure<'_>, member: &str) {
    for (at, message) in cure.list.items().enumerate() {
        if message.get(member).is_some() {
            cure.edits.remove(message, member);
            cure.changed(|| format!("/messages/{at}/{member}"));
        }
    }
}
