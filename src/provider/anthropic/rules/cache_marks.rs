//! Cache marks (`cache_control`). Anthropic accepts four in a request.

use super::content::text_token;
use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::rules::{Plan, Turn, Violation};

/// "A maximum of 4 blocks with cache_control may be provided."
pub(crate) const MAX_CACHE_MARKS: usize = 4;

/// Removes excess cache marks: the oldest ones of messages first, then those of the system text and of the tools. The
/// newest marks of messages stay, since the next request reads the cache from them. Histories accumulate marks, a new
/// one with each turn.
pub(super) fn remove_excess<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &[Turn<'a>]) {
    let mut marked: Vec<JsonRef<'a>> = Vec::new();
    for turn in turns.iter().filter(|turn| !turn.removed) {
        for block in turn.blocks.iter().filter(|block| block.piece.is_source()) {
            let Some(value) = block.value.filter(|value| value.is_object()) else { continue };
            let (mut content, mut mark) = (None, None);
            for (key, member) in value.entries() {
                if key.is_text("content") {
                    content = Some(member);
                } else if key.is_text("cache_control") {
                    mark = Some(member);
                }
            }
            push_marked(content, &mut marked);
            if mark.is_some_and(|mark| !mark.is_null()) {
                marked.push(value);
            }
        }
    }
    push_marked(plan.body.get("system"), &mut marked);
    push_marked(plan.body.get("tools"), &mut marked);
    let Some(excess) = marked.len().checked_sub(MAX_CACHE_MARKS).filter(|excess| *excess > 0) else { return };
    let sentence =
        format!("A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {}.", marked.len());
    plan.report(Violation::error(FindingCode::Malformed, sentence).at(list).rewritten());
    for block in marked.iter().take(excess) {
        plan.edits.remove(*block, "cache_control");
    }
}

fn is_marked(block: JsonRef<'_>) -> bool {
    block.find("cache_control").is_some()
}

fn push_marked<'a>(list: Option<JsonRef<'a>>, marked: &mut Vec<JsonRef<'a>>) {
    let Some(list) = list else { return };
    for block in list.items() {
        // An empty text is removed together with its mark.
        if is_marked(block) && !text_token(block).is_some_and(|text| text.is_text("")) {
            marked.push(block);
        }
    }
}
