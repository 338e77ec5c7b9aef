//! Where results go when they are blocks of a user turn (anthropic, gemini): at the head of the turn right after the
//! turn, or run of turns, that calls.

use super::place::{Words, in_place, report_pairs};
use super::{Pairs, Piece, Plan};
use crate::json::{JsonRef, Kind};
use crate::sorted::in_order;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    User,
    /// A system message in the middle: no reply stands in it.
    Aside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Call(usize),
    Answer(usize),
    /// Reasoning, which nobody reads as an answer.
    Thought,
    Other,
}

#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub kind: BlockKind,
    /// As it stands in the body, if it does.
    pub value: Option<JsonRef<'a>>,
    pub piece: Piece,
}

/// A turn of the list, as read.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub speaker: Speaker,
    /// As it stands in the body; none for one that the repair makes.
    pub value: Option<JsonRef<'a>>,
    /// Where its blocks stand: a list, or one text.
    pub content: Option<JsonRef<'a>>,
    /// What stands for it in the new list, where that is not the turn with its edits.
    pub piece: Option<Piece>,
    pub path: String,
    pub blocks: Vec<Block<'a>>,
    /// The run of model turns that it belongs to, or replies to.
    pub run: Option<usize>,
    /// Its blocks are no longer those of the body.
    pub touched: bool,
    pub gone: bool,
}

impl Turn<'_> {
    /// Whether nothing is left in it that a provider reads.
    pub fn hollow(&self) -> bool {
        self.blocks.iter().all(|block| block.kind == BlockKind::Thought)
    }
}

/// Counts the runs of model turns while a body is read: what is in a row is one turn.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Runs so far.
    pub run: usize,
    pub last: Option<Speaker>,
    /// The run whose reply is read now.
    pub near: Option<usize>,
}

impl Runs {
    /// Opens a turn that stays. True where a new run begins with it.
    pub fn begin(&mut self, turn: &mut Turn<'_>) -> bool {
        let before = self.last.replace(turn.speaker);
        self.near = (turn.speaker == Speaker::User && before == Some(Speaker::Model)).then_some(self.run);
        if turn.speaker != Speaker::Model {
            return false;
        }
        let new = before != Some(Speaker::Model);
        self.run += usize::from(new);
        turn.run = Some(self.run);
        new
    }
}

/// How a dialect writes a turn of its own.
pub(crate) struct Shape {
    pub user: &'static str,
    pub model: &'static str,
    pub close: &'static str,
}

/// Puts every result at the head of the reply to its call, closes or leaves out what is open, and reports it.
/// `made` writes a synthetic result for a call, by its number. A turn left without a block by that is gone.
pub(crate) fn place_blocks<'a>(
    plan: &mut Plan<'a, '_>,
    turns: Vec<Turn<'a>>,
    pairs: &Pairs<'_>,
    words: &Words,
    made: impl Fn(usize) -> String,
) -> Vec<Turn<'a>> {
    let groups = pairs.groups();
    report_pairs(plan, pairs, &groups, words);
    let settled =
        |a: usize| pairs.answered_by(a).zip(pairs.answers.get(a)).is_some_and(|(call, answer)| in_place(answer, call));
    let mut moved: Vec<Option<Block<'a>>> = Vec::new();
    moved.resize_with(pairs.answers.len(), || None);
    let mut turns = turns;
    for turn in &mut turns {
        let before = turn.blocks.len();
        let mut stay = Vec::with_capacity(before);
        for block in std::mem::take(&mut turn.blocks) {
            match block.kind {
                BlockKind::Answer(a) if !settled(a) => {
                    if let Some(slot) = moved.get_mut(a) {
                        *slot = Some(block);
                    }
                }
                BlockKind::Call(c) if pairs.calls.get(c).is_some_and(|call| call.omitted) => {}
                _ => stay.push(block),
            }
        }
        turn.touched |= stay.len() != before;
        turn.blocks = stay;
    }
    let mut out: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    let mut open: Option<usize> = None;
    for mut turn in turns {
        if turn.gone {
            out.push(turn);
            continue;
        }
        if turn.speaker != Speaker::Model {
            if let Some(run) = open.take() {
                let due = due(&groups, run, pairs, &mut moved, &made);
                if turn.speaker == Speaker::User {
                    add(&mut turn, due);
                } else if !due.is_empty() {
                    out.push(reply(due));
                }
            }
        } else {
            open = turn.run;
        }
        out.push(turn);
    }
    if let Some(run) = open {
        let due = due(&groups, run, pairs, &mut moved, &made);
        if !due.is_empty() {
            out.push(reply(due));
        }
    }
    for turn in &mut out {
        turn.gone |= turn.touched && turn.hollow();
    }
    out
}

/// The results that a run still lacks at its place: those that stand elsewhere, then synthetic ones.
fn due<'a>(
    groups: &[Vec<usize>],
    run: usize,
    pairs: &Pairs<'_>,
    moved: &mut [Option<Block<'a>>],
    made: &impl Fn(usize) -> String,
) -> Vec<Block<'a>> {
    let members = groups.get(run).map_or(&[][..], Vec::as_slice);
    let given: Vec<usize> = members.iter().filter_map(|c| pairs.calls.get(*c)?.answer).collect();
    let given = in_order(given, &Ord::cmp);
    let mut due: Vec<Block<'a>> = given.into_iter().filter_map(|a| moved.get_mut(a)?.take()).collect();
    for c in members.iter().copied() {
        if pairs.calls.get(c).is_some_and(|call| call.answer.is_none() && call.wants && !call.omitted) {
            due.push(Block { kind: BlockKind::Other, value: None, piece: Piece::New(made(c)) });
        }
    }
    due
}

/// Puts them behind the results that stand at the turn's head already.
fn add<'a>(turn: &mut Turn<'a>, due: Vec<Block<'a>>) {
    if due.is_empty() {
        return;
    }
    let head = turn.blocks.iter().take_while(|block| matches!(block.kind, BlockKind::Answer(_))).count();
    turn.blocks.splice(head..head, due);
    turn.touched = true;
}

fn reply(blocks: Vec<Block<'_>>) -> Turn<'_> {
    Turn {
        speaker: Speaker::User,
        value: None,
        content: None,
        piece: None,
        path: String::new(),
        blocks,
        run: None,
        touched: true,
        gone: false,
    }
}

/// Writes the turns back as edits: the blocks of those that were touched, and the list if it has other turns.
pub(crate) fn write_turns<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: Vec<Turn<'a>>, shape: &Shape) {
    let other = turns.iter().any(|turn| turn.gone || turn.value.is_none() || turn.piece.is_some());
    let mut items = Vec::new();
    for turn in turns {
        if turn.gone {
            continue;
        }
        let pieces = turn.blocks.into_iter().map(|block| block.piece).collect();
        match (turn.piece, turn.value, turn.content) {
            (Some(piece), ..) => items.push(piece),
            (None, Some(value), content) => {
                if let Some(content) = content.filter(|_| turn.touched) {
                    match content.kind() {
                        Kind::Array => plan.edits.rebuild(content, pieces),
                        _ => plan.edits.enclose(content, Piece::Wrapped("[".into(), pieces, "]".into())),
                    }
                }
                items.push(plan.edits.source(value));
            }
            (None, None, _) => {
                let open = if turn.speaker == Speaker::Model { shape.model } else { shape.user };
                items.push(Piece::Wrapped(open.into(), pieces, shape.close.into()));
            }
        }
    }
    if other {
        plan.edits.rebuild(list, items);
    }
}
