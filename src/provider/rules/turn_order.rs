//! The order of turns of blocks (Anthropic, Gemini): results go at the head of the turn right after the run of model
//! turns that calls.

use super::pair_report::{ErrorTemplates, is_in_place, report_pairs};
use super::turns::{Block, BlockKind, Speaker, Turn, TurnGrammar};
use super::{BodyPiece, Pairing, Pairs, Plan, Violation, WireCall, quoted};
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};

/// How a dialect places results.
pub(crate) struct PlacementRules<'r, 'a> {
    pub templates: &'r ErrorTemplates,
    /// Writes a synthetic result for a call.
    pub synthesize: &'r dyn Fn(&WireCall<'a>) -> String,
    /// True if a turn that holds results may not hold the user's own content after them (Gemini).
    pub separate: bool,
}

/// Moves every result to the head of the reply to its call, and closes or removes open calls. Reports each change. A
/// turn that loses its last block is removed.
pub(crate) fn place_blocks<'a>(
    plan: &mut Plan<'a, '_>,
    mut turns: Vec<Turn<'a>>,
    pairs: &Pairs<'a>,
    rules: &PlacementRules<'_, 'a>,
) -> Vec<Turn<'a>> {
    report_pairs(plan, pairs, rules.templates);
    if plan.is_over_budget() {
        return turns;
    }
    let displaced = take_displaced(&mut turns, pairs);
    let placed = Vec::with_capacity(turns.len());
    let mut placement = Placement { pairs, rules, list: plan.list, displaced, placed, open_run: None };
    for turn in turns {
        placement.add(turn);
    }
    placement.finish()
}

/// Turns system messages of the list into user messages, for models that have none there: "messages.2: role 'system' is
/// not supported on this model" (Claude up to Opus 4.7).
pub(crate) fn rename_system_turns<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    for (at, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| turn.speaker == Speaker::System && !turn.removed)
    {
        let Some(message) = turn.value else { continue };
        let sentence = format!("messages.{at}: role 'system' is not supported on this model");
        let violation = Violation::error(FindingCode::RoleOrder, sentence).at_member(message, "role");
        plan.rewrite(violation, quoted("user"));
        turn.speaker = Speaker::User;
    }
}

/// Takes the results out of the turns that are not in the reply to their call, by their index, and removes omitted
/// calls.
fn take_displaced<'a>(turns: &mut [Turn<'a>], pairs: &Pairs<'a>) -> Vec<Option<Block<'a>>> {
    let mut displaced: Vec<Option<Block<'a>>> = Vec::new();
    displaced.resize_with(pairs.results.len(), || None);
    for turn in turns {
        for block in &mut turn.blocks {
            match block.kind {
                BlockKind::ToolResult(index) if !stays(pairs, index) => {
                    if let Some(slot) = displaced.get_mut(index) {
                        *slot = Some(Block { kind: block.kind, value: block.value, piece: block.piece.take() });
                        block.kind = BlockKind::Removed;
                    }
                }
                BlockKind::ToolCall(index) if pairs.calls.get(index).is_some_and(|call| call.omitted) => {
                    block.kind = BlockKind::Removed;
                }
                _ => {}
            }
        }
        turn.remove_blocks(BlockKind::Removed);
    }
    displaced
}

/// Returns true if a result is in the reply to its call, or its call is at the server.
fn stays(pairs: &Pairs<'_>, index: usize) -> bool {
    pairs.results.get(index).is_some_and(|result| {
        result.pairing == Pairing::HeldByServer || pairs.call_of(result).is_some_and(|call| is_in_place(result, call))
    })
}

/// The turns that are placed so far.
struct Placement<'r, 'a> {
    pairs: &'r Pairs<'a>,
    rules: &'r PlacementRules<'r, 'a>,
    list: JsonRef<'a>,
    /// Results that were not in their place, until they are.
    displaced: Vec<Option<Block<'a>>>,
    placed: Vec<Turn<'a>>,
    /// The run of model turns whose reply has not come yet.
    open_run: Option<usize>,
}

impl<'a> Placement<'_, 'a> {
    /// Adds the next turn, with the results that belong before or into it.
    fn add(&mut self, turn: Turn<'a>) {
        // A system message without content does not separate a call from its result.
        if turn.removed || turn.speaker == Speaker::System && turn.blocks.is_empty() {
            return self.placed.push(turn);
        }
        if turn.speaker == Speaker::Model {
            // A system message can end a run without a user turn.
            if let Some(run) = self.open_run.filter(|run| turn.run != Some(*run)) {
                self.add_reply(run);
            }
            self.open_run = turn.run;
            return self.placed.push(turn);
        }
        match self.open_run.take() {
            Some(run) => self.add_replying(turn, run),
            None => self.placed.push(turn),
        }
    }

    /// Adds the first turn after a run: a reply, or a turn that a reply must precede.
    fn add_replying(&mut self, mut turn: Turn<'a>, run: usize) {
        let missing = self.missing_results(run);
        let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::ToolResult(_));
        if missing.is_empty() {
            return self.placed.push(turn);
        }
        let takes_results = turn.speaker == Speaker::User;
        if !takes_results || self.rules.separate && !turn.blocks.iter().any(is_result) {
            self.placed.push(self.user_turn(missing));
            return self.placed.push(turn);
        }
        let rest = if self.rules.separate {
            turn.split_after_results()
        } else {
            let head = turn.blocks.iter().take_while(|block| is_result(block)).count();
            turn.blocks.split_off(head)
        };
        turn.blocks.extend(missing);
        turn.touched = true;
        if self.rules.separate && !rest.is_empty() {
            self.placed.push(turn);
            return self.placed.push(self.user_turn(rest));
        }
        turn.blocks.extend(rest);
        self.placed.push(turn);
    }

    /// Adds a turn with the results that a run still lacks, if there are any.
    fn add_reply(&mut self, run: usize) {
        let missing = self.missing_results(run);
        if !missing.is_empty() {
            self.placed.push(self.user_turn(missing));
        }
    }

    /// Returns the results that the reply to a run lacks: displaced ones, then synthetic ones.
    fn missing_results(&mut self, run: usize) -> Vec<Block<'a>> {
        let mut missing = Vec::new();
        for index in self.pairs.results_of(run) {
            missing.extend(self.displaced.get_mut(index).and_then(Option::take));
        }
        missing.extend(self.pairs.open_calls(run).map(|call| Block::synthetic((self.rules.synthesize)(call))));
        missing
    }

    fn user_turn(&self, blocks: Vec<Block<'a>>) -> Turn<'a> {
        Turn::synthetic(Speaker::User, self.list, blocks)
    }

    fn finish(mut self) -> Vec<Turn<'a>> {
        if let Some(run) = self.open_run.take() {
            self.add_reply(run);
        }
        for turn in &mut self.placed {
            turn.removed |= turn.touched && turn.is_hollow();
        }
        self.placed
    }
}

/// Plans the edits that write the turns: the blocks of those that changed, and the list if turns were added or removed.
pub(crate) fn write_turns<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    turns: &mut [Turn<'a>],
    grammar: &TurnGrammar,
) {
    let has_other_turns = turns.iter().any(|turn| turn.removed || turn.value.is_none());
    let mut items = Vec::new();
    for turn in turns.iter_mut().filter(|turn| !turn.removed) {
        let mut pieces = Vec::with_capacity(turn.blocks.len());
        for block in &mut turn.blocks {
            pieces.push(block.piece.take());
        }
        let Some(value) = turn.value else {
            let open = if turn.speaker == Speaker::Model { grammar.model } else { grammar.user };
            items.push(BodyPiece::wrapped(open, pieces, grammar.close));
            continue;
        };
        if let Some(content) = turn.content.filter(|_| turn.touched) {
            match content.kind() {
                JsonKind::Array => plan.edits.rebuild(content, pieces),
                _ => plan.edits.enclose(content, BodyPiece::wrapped("[", pieces, "]")),
            }
        }
        items.push(plan.edits.source(value));
    }
    if has_other_turns {
        plan.edits.rebuild(list, items);
    }
}
