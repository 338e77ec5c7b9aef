//! Anthropic's server tools: their calls and results are blocks of assistant messages.

use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::rules::{Block, BlockKind, Plan, Speaker, Turn, Violation};

/// The position of a block in the turns.
#[derive(Clone, Copy)]
struct BlockPosition {
    turn: usize,
    block: usize,
}

/// A call of a server tool.
struct ServerCall<'a> {
    value: JsonRef<'a>,
    id: String,
    position: BlockPosition,
    has_result: bool,
}

/// The calls since the user last said something.
struct ServerCalls<'a> {
    calls: Vec<ServerCall<'a>>,
    /// Positions in `calls`.
    by_id: IdMap<usize>,
    /// The number of calls that are followed by another assistant message.
    continued: usize,
    /// Blocks that the repair removes.
    removed: Vec<BlockPosition>,
}

/// Removes server calls without a result, and results without a call.
///
/// A result is after its call in the same assistant message, or in the next one if only results of the client's tools
/// are between them (Anthropic's guide, "Handling stop reasons"). Anthropic rejects a request in which the user speaks
/// while a server call has no result (anthropic-sdk-python#961, vercel/ai#13040):
///
/// ```json
/// {"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"a"}}]},
/// {"role":"user","content":"And?"}
/// ```
///
/// `has_held_turns`: the server has turns that are not in the list, and may have a result's call.
pub(super) fn remove_unpaired<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>], has_held_turns: bool) {
    let mut calls = ServerCalls::new();
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| !turn.removed) {
        if turn.speaker == Speaker::User {
            if !turn.is_results() {
                calls.end_at_user(plan);
            }
            continue;
        }
        for (block_at, block) in turn.blocks.iter().enumerate() {
            calls.read_block(plan, block, BlockPosition { turn: at, block: block_at }, has_held_turns);
        }
        if turn.speaker == Speaker::Model {
            calls.mark_continued(at);
        }
    }
    for position in calls.removed {
        if let Some(block) = turns.get_mut(position.turn).and_then(|turn| turn.blocks.get_mut(position.block)) {
            block.kind = BlockKind::Removed;
        }
    }
    for turn in turns {
        turn.remove_blocks(BlockKind::Removed);
        turn.removed |= turn.touched && turn.is_hollow();
    }
}

impl<'a> ServerCalls<'a> {
    fn new() -> Self {
        Self { calls: Vec::new(), by_id: IdMap::with_seed(Seed::default()), continued: 0, removed: Vec::new() }
    }

    /// Removes the calls that have no result when the user speaks.
    fn end_at_user(&mut self, plan: &mut Plan<'a, '_>) {
        for call in self.calls.drain(..).filter(|call| !call.has_result) {
            let sentence =
                "server tool use with id `{}` was found without a corresponding `*_tool_result` block behind it";
            plan.report(
                Violation::error(FindingCode::DanglingCall, sentence).at(call.value).of_call(&call.id).dropped(),
            );
            self.removed.push(call.position);
        }
        self.by_id = IdMap::with_seed(Seed::default());
        self.continued = 0;
    }

    /// Records a call, pairs a result with its call, and removes a result without one.
    fn read_block(
        &mut self,
        plan: &mut Plan<'a, '_>,
        block: &Block<'a>,
        position: BlockPosition,
        has_held_turns: bool,
    ) {
        let Some(value) = block.value else { return };
        if value.has_text("type", "fallback") {
            // Another model continued the answer: calls before this block may be open.
            self.calls.iter_mut().for_each(|call| call.has_result = true);
        } else if block.kind == BlockKind::ServerCall {
            let id = value.text("id").unwrap_or_default().into_owned();
            self.by_id.insert(id.clone(), self.calls.len());
            self.calls.push(ServerCall { value, id, position, has_result: false });
        } else if block.kind == BlockKind::ServerResult {
            let id = value.text("tool_use_id").unwrap_or_default();
            let call = self.by_id.get(&id).and_then(|at| self.calls.get_mut(*at));
            if let Some(call) = call {
                call.has_result = true;
            } else if !has_held_turns {
                // claude-code#64383
                let result_type = value.text("type").unwrap_or_default();
                let call_type = if result_type == "mcp_tool_result" { "mcp_tool_use" } else { "server_tool_use" };
                let sentence = format!(
                    "unexpected `tool_use_id` found in `{result_type}` blocks: {id}. Each `{result_type}` block must have a corresponding `{call_type}` block before it."
                );
                plan.report(Violation::error(FindingCode::OrphanResult, sentence).at(value).of_call(&id).dropped());
                self.removed.push(position);
            }
        }
    }

    /// Counts the calls before the turn at `at` as answered. Recorded requests show that Anthropic accepts an open
    /// server call if another assistant message follows it.
    fn mark_continued(&mut self, at: usize) {
        for call in self.calls.iter_mut().skip(self.continued).filter(|call| call.position.turn < at) {
            call.has_result = true;
            self.continued += 1;
        }
    }
}
