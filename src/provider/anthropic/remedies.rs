//! The errors of Anthropic's Messages endpoint that can be cured. Sentences: opencode#48637, anthropic-sdk-python#1598,
//! pi#9391 (bound thinking); Everywhere#410, opencode#23007 (kinds of thinking); strands
//! sdk-python#1694 and magic-context#511 (prefill); the others as in `rules.rs`. Codes: `@anthropic-ai/sdk` 1.12.

use crate::json::{JsonKind, JsonRef};
use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules, signature_mark};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[
            &["invalid signature in thinking block"],
            &["invalid signature in redacted_thinking block"],
            &["the block is bound to a different conversation"],
            &["thinking block that preceded this one when it was created is missing from this request"],
            &["thinking or redacted_thinking blocks in the latest assistant message cannot be modified"],
        ],
        codes: &[],
        rule: "thinking_bound",
        done: "the thinking blocks from the named one on are left out",
        cure: leave_out_thinking,
    },
    Remedy {
        sentences: &[&["thinking.type.", " is not supported for this model. use thinking.type.adaptive"]],
        codes: &[],
        rule: "thinking_kind",
        done: "thinking is asked for as `adaptive`",
        cure: |cure, _| think_adaptively(cure),
    },
    Remedy {
        sentences: &[&["unexpected tool_use_id found in tool_result blocks"]],
        codes: &[],
        rule: "orphan_result",
        done: "the result without a call is left out",
        cure: leave_out_results,
    },
    Remedy {
        sentences: &[&["messages.", "extra inputs are not permitted"]],
        codes: &[],
        rule: "extra_inputs",
        done: "the member that it does not know is left out",
        cure: leave_out_member,
    },
    Remedy {
        sentences: &[
            &["tool_use ids were found without tool_result blocks"],
            &["messages following tool_use blocks must begin with a matching number of tool_result blocks"],
        ],
        codes: &[],
        rule: "dangling_call",
        done: "each call has a result in the next message",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["tool_use ids must be unique"]],
        codes: &[],
        rule: "duplicate_call_id",
        done: "the second call and its result have another id",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["each tool_use must have a single result"]],
        codes: &[],
        rule: "duplicate_result",
        done: "the second result is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["expected thinking or redacted_thinking, but found"]],
        codes: &[],
        rule: "unsigned_thinking",
        done: "thinking is asked for as the tool loop allows",
        cure: by_rules,
    },
    Remedy {
        sentences: &[
            &["text content blocks must be non-empty"],
            &["all messages must have non-empty content"],
            &["final assistant content cannot end with trailing whitespace"],
        ],
        codes: &[],
        rule: "empty_content",
        done: "what is empty is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["this model does not support assistant message prefill"]],
        codes: &[],
        rule: "prefill",
        done: "the user asks the model to go on",
        cure: |cure, _| cure.ask_to_continue(r#"[{"type":"text","text":"Continue."}]"#),
    },
    Remedy {
        sentences: &[],
        codes: &["compaction_block_misplaced", "compaction_block_ambiguous"],
        rule: "compaction_block_misplaced",
        done: "the newest compaction is the only one, and a misplaced one is text",
        cure: by_rules,
    },
];

/// A mark of a kind of thinking that a model refused: `thinking:enabled:claude-opus-5-5`.
fn kind_mark(kind: &str, model: &str) -> String {
    format!("thinking:{kind}:{model}")
}

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    let kind = cure.body.get("thinking").map(|thinking| thinking.string("type")).unwrap_or_default();
    if refused.contains(&kind_mark(&kind, &cure.body.string("model"))) {
        think_adaptively(cure);
    }
    cure.remove_blocks(&mut |_, block| signature(block).is_some_and(|mark| refused.contains(&mark)));
}

/// Returns the mark of a thinking block's signature; `None` for another block. A block without a signature has the mark
/// of its text.
fn signature(block: JsonRef<'_>) -> Option<String> {
    let kind = block.text("type")?;
    let member = match &*kind {
        "thinking" => block.get("signature").filter(|value| !value.is_text("")).or_else(|| block.get("thinking")),
        "redacted_thinking" => block.get("data"),
        _ => return None,
    };
    Some(signature_mark(member.unwrap_or_default().as_raw()))
}

/// Removes the thinking blocks from the named place on, and all if the error names none. A block is valid only after
/// the blocks that preceded it, so the later ones would be refused next.
fn leave_out_thinking(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    cure.remove_marked_blocks(answer, signature);
}

/// Removes the results that the error names.
fn leave_out_results(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let Some(id) = answer.word_after(&["found in tool_result blocks"]).map(str::to_owned) else { return };
    // The rules know which of several results of a call is the right one.
    let is_call = |block: JsonRef<'_>| block.has_text("id", &id);
    if cure.list.items().any(|message| message.get("content").unwrap_or_default().items().any(is_call)) {
        return;
    }
    cure.remove_blocks(&mut |_, block| block.has_text("type", "tool_result") && block.has_text("tool_use_id", &id));
}

fn think_adaptively(cure: &mut Cure<'_>) {
    let Some(thinking) = cure.body.get("thinking").filter(|thinking| thinking.is_object()) else { return };
    let kind = thinking.string("type");
    if kind == "adaptive" {
        return;
    }
    cure.refused.push(kind_mark(&kind, &cure.body.string("model")));
    cure.edits.set(thinking, "type", "\"adaptive\"".into());
    cure.edits.remove(thinking, "budget_tokens");
    cure.changed(|| "/thinking".into());
}

/// Members whose values are content as a whole. Nothing is left out of them.
const WHOLE: [&str; 2] = ["input", "source"];

/// Members without which a message or a block is another one. They are never left out.
const ESSENTIAL: [&str; 16] = [
    "role",
    "content",
    "type",
    "id",
    "name",
    "input",
    "text",
    "source",
    "thinking",
    "signature",
    "data",
    "tool_use_id",
    "is_error",
    "messages",
    "title",
    "context",
];

/// Removes the member that the error names: `messages.1.content.0.tool_use.note: Extra inputs are not permitted`. A
/// segment that is no object or list in the body is the name of a block's kind.
fn leave_out_member(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let path = answer.path("messages");
    let Some((member, inner)) = path.split_last().filter(|(member, _)| !ESSENTIAL.contains(member)) else { return };
    let (mut value, mut place) = (cure.list, "/messages".to_owned());
    for segment in inner.iter().skip(1) {
        let next = match segment.parse::<usize>() {
            Ok(index) => value.items().nth(index),
            Err(_) => value.get(segment).filter(|value| matches!(value.kind(), JsonKind::Object | JsonKind::Array)),
        };
        if let Some(next) = next {
            if WHOLE.contains(segment) {
                return;
            }
            value = next;
            place = format!("{place}/{segment}");
        } else if segment.parse::<usize>().is_ok() {
            return;
        }
    }
    if value.is_object() && value.get(member).is_some() {
        cure.edits.remove(value, member);
        cure.changed(|| format!("{place}/{member}"));
    }
}
