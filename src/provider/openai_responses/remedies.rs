//! The errors of OpenAI's Responses endpoint that can be cured. Sentences: codex#8145, #8119 (encrypted content),
//! continue#8933, #11785 (reasoning), nodetool#4252 (ids), CLIProxyAPI#2368, vscode#320060 (outputs).

use crate::json::JsonRef;
use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules, signature_mark};
use crate::provider::rules::{BodyPiece, quoted};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[&["item ", " of type reasoning was provided without its required following item"]],
        codes: &[],
        rule: "orphan_reasoning",
        done: "the reasoning item is left out",
        cure: |cure, answer| {
            let id = answer.word_after(&["item "]).unwrap_or_default().to_owned();
            leave_out_reasoning(cure, &mut |item| item.has_text("id", &id));
        },
    },
    Remedy {
        sentences: &[&["item ", " was provided without its required reasoning item"]],
        codes: &[],
        rule: "item_without_reasoning",
        done: "the item is sent without its `id`, as one that no reasoning belongs to",
        cure: |cure, answer| {
            let id = answer.word_after(&["item "]).unwrap_or_default().to_owned();
            remove_ids(cure, &mut |_, item| item.has_text("id", &id));
        },
    },
    Remedy {
        sentences: &[&["the encrypted content ", " could not be verified"]],
        codes: &["invalid_encrypted_content"],
        rule: "invalid_encrypted_content",
        done: "the reasoning that it cannot read is left out",
        cure: leave_out_unreadable,
    },
    Remedy {
        sentences: &[&["invalid input[", "].id: ", "expected an id that begins with "]],
        codes: &[],
        rule: "invalid_item_id",
        done: "the item is sent without its `id`",
        cure: |cure, answer| {
            let index = answer.path("input").get(1).and_then(|segment| segment.parse::<usize>().ok());
            remove_ids(cure, &mut |at, _| Some(at) == index);
        },
    },
    Remedy {
        sentences: &[&["duplicate item found with id "]],
        codes: &[],
        rule: "duplicate_item",
        done: "the second item with that id is left out",
        cure: leave_out_duplicates,
    },
    Remedy {
        sentences: &[&["no tool output found for ", "call "]],
        codes: &[],
        rule: "dangling_call",
        done: "the call has an output that says that nobody knows",
        cure: close_call,
    },
    Remedy {
        sentences: &[&["no tool call found for ", "output with call_id "]],
        codes: &[],
        rule: "orphan_result",
        done: "the output without a call is left out",
        cure: leave_out_output,
    },
    Remedy {
        sentences: &[&["invalid input[", "].call_id"]],
        codes: &["string_above_max_length"],
        rule: "invalid_call_id",
        done: "the call and its output have a shorter id",
        cure: by_rules,
    },
];

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    leave_out_reasoning(cure, &mut |item| refused.contains(&mark(item)));
}

/// Returns the mark of a reasoning item: of its encrypted content, else of its id.
fn mark(item: JsonRef<'_>) -> String {
    let content = item.get("encrypted_content").filter(|content| !content.is_null());
    signature_mark(content.or_else(|| item.get("id")).unwrap_or_default().as_raw())
}

fn is_reasoning(item: JsonRef<'_>) -> bool {
    item.has_text("type", "reasoning")
}

/// Removes the selected reasoning items. What followed them is sent without its id: with it, the service would ask for
/// the reasoning.
fn leave_out_reasoning(cure: &mut Cure<'_>, is_refused: &mut dyn FnMut(JsonRef<'_>) -> bool) {
    let (mut refused, mut first, mut follows) = (Vec::new(), None, false);
    for (at, item) in cure.list.items().enumerate() {
        if is_reasoning(item) {
            follows = is_refused(item);
            if follows {
                first = first.or(Some(at));
                refused.push(at);
                cure.refused.push(mark(item));
            }
        } else if follows && is_output_of_model(item) {
            cure.edits.remove(item, "id");
        } else {
            follows = false;
        }
    }
    let list = cure.list;
    if let Some(at) = first {
        cure.remove_items(list, &mut |at, _| refused.binary_search(&at).is_ok());
        cure.changed(|| format!("/input/{at}"));
    }
}

fn is_output_of_model(item: JsonRef<'_>) -> bool {
    let kind = item.string("type");
    matches!(&*kind, "function_call" | "custom_tool_call") || item.has_text("role", "assistant")
}

/// Removes the reasoning whose encrypted content the error names: by the item's id, or by the begin and the end of the
/// content (`gAAA...DQ==`). If it names none, all encrypted reasoning is removed. Another encrypted item, such as a
/// compaction, is kept: it has no substitute.
fn leave_out_unreadable(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    if let Some(id) = answer.word_after(&["encrypted content for item "]).map(str::to_owned) {
        return leave_out_reasoning(cure, &mut |item| item.has_text("id", &id));
    }
    let start = answer.word_after(&["the encrypted content "]).map(str::to_owned);
    let is_named = |item: JsonRef<'_>| {
        let content = item.string("encrypted_content");
        start.as_ref().is_some_and(|start| content.starts_with(start.as_str()))
    };
    // All contents begin alike, so the one that is named may be several: the begin that is shown has four characters.
    let is_any_named = cure.list.items().any(|item| is_reasoning(item) && is_named(item));
    leave_out_reasoning(cure, &mut |item| {
        if is_any_named { is_named(item) } else { !item.string("encrypted_content").is_empty() }
    });
}

fn remove_ids(cure: &mut Cure<'_>, is_refused: &mut dyn FnMut(usize, JsonRef<'_>) -> bool) {
    for (at, item) in cure.list.items().enumerate() {
        // An `item_reference` is nothing but its id.
        if item.get("id").is_some() && !item.has_text("type", "item_reference") && is_refused(at, item) {
            cure.edits.remove(item, "id");
            cure.changed(|| format!("/input/{at}/id"));
        }
    }
}

fn leave_out_duplicates(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let Some(id) = answer.word_after(&["duplicate item found with id "]).map(str::to_owned) else { return };
    let (mut seen, mut place, list) = (false, None, cure.list);
    cure.remove_items(list, &mut |at, item| {
        let has_id = item.has_text("id", &id);
        let is_second = has_id && seen;
        seen |= has_id;
        place = place.or(is_second.then_some(at));
        is_second
    });
    if let Some(at) = place {
        cure.changed(|| format!("/input/{at}"));
    }
}

/// Closes the call that the error names: one that the body has as an asynchronous call, or one that the service has.
fn close_call(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let Some(id) = answer.word_after(&["no tool output found for ", "call "]).map(str::to_owned) else { return };
    let mut has_call = false;
    for (at, item) in cure.list.items().enumerate().filter(|(_, item)| item.has_text("call_id", &id)) {
        has_call = true;
        if item.get("async").is_some() {
            cure.edits.remove(item, "async");
            cure.changed(|| format!("/input/{at}/async"));
        }
    }
    let continues = ["previous_response_id", "conversation"];
    if has_call || !continues.iter().any(|name| cure.body.find(name).is_some()) || !cure.list.as_raw().starts_with('[')
    {
        return;
    }
    let call_id = quoted(&id);
    let output = format!(
        "{{\"type\":\"function_call_output\",\"call_id\":{call_id},\"output\":{}}}",
        quoted(&cure.closing_text)
    );
    let mut items = vec![BodyPiece::New(output)];
    items.extend(cure.list.items().map(|item| cure.edits.source(item)));
    cure.edits.rebuild(cure.list, items);
    cure.changed(|| "/input/0".into());
}

/// Removes the output that the error names, if its call is not in the body: the rules know where to place it then.
fn leave_out_output(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let Some(id) = answer.word_after(&["no tool call found for ", "output with call_id "]).map(str::to_owned) else {
        return;
    };
    let is_output = |item: JsonRef<'_>| item.string("type").ends_with("_output");
    if cure.list.items().any(|item| item.has_text("call_id", &id) && !is_output(item)) {
        return;
    }
    let (mut place, list) = (None, cure.list);
    cure.remove_items(list, &mut |at, item| {
        let is_refused = item.has_text("call_id", &id);
        place = place.or(is_refused.then_some(at));
        is_refused
    });
    if let Some(at) = place {
        cure.changed(|| format!("/input/{at}"));
    }
}
