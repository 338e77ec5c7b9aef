//! The errors of Converse that can be cured. Sentences as in `rules.rs`; "this model doesn't support the … field" from
//! vercel/ai#4396 and recorded exchanges, and the sources of `anthropic/remedies.rs` for the errors of Claude.

use super::block::{REASONING, TOOL_RESULT, kind_of};
use super::inference_config;
use super::tools::TOOL_CONFIG;
use crate::json::JsonRef;
use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules, signature_mark};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[
            &["invalid signature in thinking block"],
            &["the block is bound to a different conversation"],
            &["user messages cannot contain reasoning content"],
            &["this model doesnt support the reasoningcontent"],
        ],
        codes: &[],
        rule: "thinking_bound",
        done: "the reasoning from the named block on is left out",
        cure: leave_out_reasoning,
    },
    Remedy {
        sentences: &[&["this model doesnt support the ", " field. remove "]],
        codes: &[],
        rule: "unsupported_field",
        done: "the member that the model does not support is left out",
        cure: leave_out_field,
    },
    Remedy {
        sentences: &[
            &["expected toolresult blocks at messages."],
            &["tool_use ids were found without tool_result blocks"],
        ],
        codes: &[],
        rule: "dangling_call",
        done: "each call has a result in the next message",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&[
            "number of toolresult blocks at messages.",
            "exceeds the number of tooluse blocks of previous turn",
        ]],
        codes: &[],
        rule: "orphan_result",
        done: "results without a call are left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["toolresult blocks at messages.", "contain duplicate ids"]],
        codes: &[],
        rule: "duplicate_result",
        done: "the second result is left out",
        cure: by_rules,
    },
    Remedy {
        sentences: &[
            &["messages cant contain duplicate document names"],
            &["the document file name can only contain alphanumeric characters"],
        ],
        codes: &[],
        rule: "malformed",
        done: "each document has a name of its own, of letters, digits, single spaces and -()[]",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["the toolconfig field must be defined when using tooluse and toolresult content blocks"]],
        codes: &[],
        rule: "malformed",
        done: "the tools that are called are defined",
        cure: by_rules,
    },
    Remedy {
        sentences: &[
            &["a conversation must alternate between user and assistant roles"],
            &["a conversation must start with a user message"],
        ],
        codes: &[],
        rule: "role_order",
        done: "the user and the assistant alternate",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["conversation blocks and tool result blocks cannot be provided in the same turn"]],
        codes: &[],
        rule: "text_beside_results",
        done: "what follows results is a turn of its own",
        cure: |cure, _| separate_results(cure),
    },
    Remedy {
        sentences: &[
            &["the text field in the contentblock object at", "is blank"],
            &["the content field in the message object at", "is empty"],
            &["cannot be empty when status value is error"],
            &["text content blocks must be non-empty"],
            &["text content blocks must contain non-whitespace text"],
            &["a text block must be included when using documents"],
        ],
        codes: &[],
        rule: "empty_content",
        done: "what is empty is left out, and a document has a text beside it",
        cure: by_rules,
    },
    Remedy {
        sentences: &[&["this model does not support assistant message prefill"]],
        codes: &[],
        rule: "prefill",
        done: "the user asks the model to go on",
        cure: |cure, _| cure.ask_to_continue(r#"[{"text":"Continue."}]"#),
    },
];

/// Members without which a request is another one. They are never left out.
const ESSENTIAL: [&str; 6] = ["messages", "system", TOOL_CONFIG, "tools", "content", "text"];

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    cure.remove_blocks(&mut |_, block| reasoning_mark(block).is_some_and(|mark| refused.contains(&mark)));
}

/// Returns the mark of reasoning: of its signature, its encrypted content, or its text.
fn reasoning_mark(block: JsonRef<'_>) -> Option<String> {
    let (_, inner) = kind_of(block).filter(|(kind, _)| *kind == REASONING)?;
    let text = inner.get("reasoningText").unwrap_or_default();
    let signature = text.get("signature").filter(|value| !value.is_text("") && !value.is_null());
    let member = signature.or_else(|| inner.get("redactedContent")).or_else(|| text.get("text"));
    Some(signature_mark(member.unwrap_or_default().as_raw()))
}

/// Removes the reasoning from the named place on, and all if the error names none.
fn leave_out_reasoning(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    cure.remove_marked_blocks(answer, reasoning_mark);
}

/// Removes the member that the error names: `toolConfig.toolChoice.any`, `stopSequences`, `status`. One of a content
/// block stays: without it the block would say something else.
fn leave_out_field(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let Some(root) = answer.word_after(&["this model doesnt support the"]) else { return };
    let path = answer.path(root);
    let path = if path.is_empty() { vec![root] } else { path };
    let Some(name) = path.last().copied().filter(|name| !ESSENTIAL.contains(name)) else { return };
    let body = cure.body;
    if path.starts_with(&[TOOL_CONFIG, "toolChoice"]) {
        let config = body.get(TOOL_CONFIG).unwrap_or_default();
        if config.get("toolChoice").is_some() {
            cure.edits.remove(config, "toolChoice");
            cure.changed(|| format!("/{TOOL_CONFIG}/toolChoice"));
        }
        return;
    }
    let config = body.get(inference_config::NAME).unwrap_or_default();
    if config.get(name).is_some() {
        cure.edits.remove(config, name);
        return cure.changed(|| format!("/{}/{name}", inference_config::NAME));
    }
    if path.len() == 1 && body.get(name).is_some() {
        cure.edits.remove(body, name);
        return cure.changed(|| format!("/{name}"));
    }
    if name == "status" {
        leave_out_statuses(cure);
    }
}

/// Removes the status of every result. The text of an error stays.
fn leave_out_statuses(cure: &mut Cure<'_>) {
    for (at, message) in cure.list.items().enumerate() {
        for (index, block) in message.get("content").unwrap_or_default().items().enumerate() {
            let result = kind_of(block).filter(|(kind, _)| *kind == TOOL_RESULT).map(|(_, inner)| inner);
            if let Some(result) = result.filter(|result| result.get("status").is_some()) {
                cure.edits.remove(result, "status");
                cure.changed(|| format!("/messages/{at}/content/{index}/toolResult/status"));
            }
        }
    }
}

/// Moves what follows results to a message of its own, after a short answer.
fn separate_results(cure: &mut Cure<'_>) {
    let mut items = Vec::new();
    let mut is_changed = false;
    for (at, message) in cure.list.items().enumerate() {
        let content = message.get("content").unwrap_or_default();
        let is_result = |block: &JsonRef<'_>| {
            kind_of(*block).is_some_and(|(kind, _)| kind == TOOL_RESULT || kind == super::block::CACHE_POINT)
        };
        let has_result = content.items().any(|block| kind_of(block).is_some_and(|(kind, _)| kind == TOOL_RESULT));
        let rest: Vec<String> =
            content.items().filter(|block| !is_result(block)).map(|block| block.as_raw().to_owned()).collect();
        if !has_result || rest.is_empty() || !message.has_text("role", "user") {
            items.push(message.as_raw().to_owned());
            continue;
        }
        let own: Vec<String> = content.items().filter(is_result).map(|block| block.as_raw().to_owned()).collect();
        items.push(user_message(&own));
        items.push("{\"role\":\"assistant\",\"content\":[{\"text\":\".\"}]}".to_owned());
        items.push(user_message(&rest));
        cure.changed(|| format!("/messages/{at}/content"));
        is_changed = true;
    }
    if is_changed {
        let list = crate::json::list_of(&items);
        cure.edits.replace(cure.list, crate::provider::rules::BodyPiece::New(list));
    }
}

fn user_message(blocks: &[String]) -> String {
    format!("{{\"role\":\"user\",\"content\":{}}}", crate::json::list_of(blocks))
}
