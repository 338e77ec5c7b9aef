//! Signed `compaction` blocks, the service's own summaries (beta compact-2026-09-04; @anthropic-ai/sdk 1.12.0,
//! `CompactionBlockParam` and the classes of its errors). One with content is the first block of the conversation, and
//! there is one only. Blocks without a signature are of an earlier beta, which takes them anywhere; a block without
//! content says nothing.

use super::content::TEXT_BLOCK_START;
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::{Block, BlockKind, Plan, Speaker, Turn, Violation};

const MISPLACED: &str = "compaction_block_misplaced: The `compaction` block is not the first block of the conversation, or is in a `system` message.";
const AMBIGUOUS: &str = "compaction_block_ambiguous: `messages` holds more than one `compaction` block with content. Send only the block the conversation returned last.";

/// Returns the summary of a signed block, if it has one.
fn summary<'a>(block: &Block<'a>) -> Option<JsonRef<'a>> {
    let value = block.value.filter(|_| block.kind == BlockKind::Other)?;
    if !value.has_text("type", "compaction") || value.find("signature").is_none() {
        return None;
    }
    value.find("content").filter(|content| content.kind() == JsonKind::String && !content.is_text(""))
}

/// Repairs the summaries of a body. Of those that begin the conversation the last one stays, since it summarizes the
/// others. One in any other place becomes text: what it summarizes may be gone.
pub(super) fn repair<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    let is_summary = |block: &&Block<'a>| summary(block).is_some();
    let count = turns.iter().filter(|turn| !turn.removed).flat_map(|turn| &turn.blocks).filter(is_summary).count();
    if count == 0 {
        return;
    }
    let leading = leading_summaries(turns);
    let (mut at, mut changed) = (0, Vec::new());
    for (turn_at, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| !turn.removed) {
        let in_system = turn.speaker == Speaker::System;
        for block in &mut turn.blocks {
            let Some(text) = summary(block) else { continue };
            at += 1;
            if at == leading {
                continue;
            }
            let sentence = if count > 1 && !in_system { AMBIGUOUS } else { MISPLACED };
            let violation = Violation::error(FindingCode::Malformed, sentence).at(block.value.unwrap_or_default());
            if at < leading {
                plan.report(violation.dropped());
                block.kind = BlockKind::Removed;
            } else {
                plan.report(violation.rewritten());
                block.piece = plan.as_text(TEXT_BLOCK_START, text);
            }
            changed.push(turn_at);
        }
    }
    for at in changed {
        let Some(turn) = turns.get_mut(at) else { continue };
        turn.touched = true;
        turn.remove_blocks(BlockKind::Removed);
        turn.removed |= turn.blocks.is_empty();
    }
}

/// Returns how many summaries begin the conversation, before any other block.
fn leading_summaries(turns: &[Turn<'_>]) -> usize {
    let mut count = 0;
    for turn in turns.iter().filter(|turn| !turn.removed) {
        if turn.speaker == Speaker::System || turn.blocks.is_empty() {
            break;
        }
        for block in &turn.blocks {
            if summary(block).is_none() {
                return count;
            }
            count += 1;
        }
    }
    count
}
