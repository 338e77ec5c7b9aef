//! A server's tools: their calls and their results stand in assistant messages.

use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::rules::{BlockKind, Plan, Speaker, Turn, Violation};

/// A server's call, as far as the list is read.
struct Asked<'a> {
    value: JsonRef<'a>,
    id: String,
    /// Its turn, and its place in it.
    place: (usize, usize),
    answered: bool,
}

/// A result stands behind its call: in the same assistant turn, or in the next one if nothing but the client's own results
/// came between ("Handling stop reasons"). A call that is open when the user speaks is refused from then on
/// (anthropic-sdk-python#961, vercel/ai#13040). `held`: the server knows turns that are not in the list.
pub(super) fn mend<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>], held: bool) {
    let mut asked: Vec<Asked<'a>> = Vec::new();
    let mut places: IdMap<usize> = IdMap::with_seed(Seed::default());
    // So many of them the model wrote on behind.
    let mut settled = 0;
    let mut gone = Vec::new();
    for (t, turn) in turns.iter().enumerate().filter(|(_, turn)| !turn.removed) {
        if turn.speaker == Speaker::User {
            if turn.is_results() {
                continue;
            }
            for call in asked.drain(..).filter(|call| !call.answered) {
                let sentence =
                    "server tool use with id `{}` was found without a corresponding `*_tool_result` block behind it";
                plan.report(
                    Violation::error(FindingCode::DanglingCall, sentence).at(call.value).of_call(&call.id).dropped(),
                );
                gone.push(call.place);
            }
            places = IdMap::with_seed(Seed::default());
            settled = 0;
            continue;
        }
        for (b, block) in turn.blocks.iter().enumerate() {
            let Some(value) = block.value else { continue };
            if block.kind == BlockKind::ServerCall {
                let id = value.text("id").unwrap_or_default().into_owned();
                places.insert(id.clone(), asked.len());
                asked.push(Asked { value, id, place: (t, b), answered: false });
            } else if block.kind == BlockKind::ServerResult {
                let id = value.text("tool_use_id").unwrap_or_default();
                let call = places.get(&id).and_then(|at| asked.get_mut(*at));
                if let Some(call) = call {
                    call.answered = true;
                } else if !held {
                    // claude-code#64383
                    let kind = value.text("type").unwrap_or_default();
                    let with = if kind == "mcp_tool_result" { "mcp_tool_use" } else { "server_tool_use" };
                    let sentence = format!(
                        "unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block must have a corresponding `{with}` block before it."
                    );
                    plan.report(Violation::error(FindingCode::OrphanResult, sentence).at(value).of_call(&id).dropped());
                    gone.push((t, b));
                }
            }
        }
        // What the model wrote on behind was taken without it.
        if turn.speaker == Speaker::Model {
            for call in asked.iter_mut().skip(settled).filter(|call| call.place.0 < t) {
                call.answered = true;
                settled += 1;
            }
        }
    }
    for (t, b) in gone {
        if let Some(block) = turns.get_mut(t).and_then(|turn| turn.blocks.get_mut(b)) {
            block.kind = BlockKind::Removed;
        }
    }
    for turn in turns {
        turn.remove_blocks(BlockKind::Removed);
        turn.removed |= turn.touched && turn.is_hollow();
    }
}
