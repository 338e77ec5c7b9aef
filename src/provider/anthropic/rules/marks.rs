//! Cache marks: a request holds four at most.

use super::end::text_of;
use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::rules::{Plan, Turn, Violation};

/// "A maximum of 4 blocks with cache_control may be provided."
pub(crate) const MAX_CACHE_MARKS: usize = 4;

/// Takes the oldest marks of messages where there are too many, then those of the system text and of the tools: the
/// newest message marks are what the next request reads from. Histories gather them, a new one each turn.
pub(super) fn mend<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &[Turn<'a>]) {
    let mut marked: Vec<JsonRef<'a>> = Vec::new();
    for turn in turns.iter().filter(|turn| !turn.removed) {
        for block in turn.blocks.iter().filter(|block| block.piece.is_source()) {
            let Some(value) = block.value.filter(|value| value.is_object()) else { continue };
            gather(value.get("content"), &mut marked);
            if is_marked(value) {
                marked.push(value);
            }
        }
    }
    gather(plan.body.get("system"), &mut marked);
    gather(plan.body.get("tools"), &mut marked);
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

fn gather<'a>(list: Option<JsonRef<'a>>, marked: &mut Vec<JsonRef<'a>>) {
    let Some(list) = list else { return };
    for block in list.items() {
        // An empty text goes, and its mark with it.
        if is_marked(block) && !text_of(block).is_some_and(|text| text.is_text("")) {
            marked.push(block);
        }
    }
}
