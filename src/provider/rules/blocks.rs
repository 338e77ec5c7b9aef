//! Conversations of turns that hold blocks (anthropic, gemini): how they are read, and where results go in them, which is at
//! the head of the turn right after the turn, or run of turns, that calls.

use super::place::{ErrorTemplates, in_place, report_pairs};
use super::{BodyPiece, Fields, Pairing, Pairs, Plan, Violation, names_model, quoted, role_code};
use crate::finding::{Action, FindingCode};
use crate::json::{Items, JsonRef, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    User,
    /// A system message in the middle: no reply stands in it.
    System,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    ToolCall(usize),
    ToolResult(usize),
    /// Reasoning, which nobody reads as an answer.
    Thinking,
    /// Text of white space alone.
    EmptyText,
    /// A server's call.
    ServerCall,
    /// A server's result.
    ServerResult,
    Other,
    /// It goes, or went elsewhere.
    Removed,
}

#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub kind: BlockKind,
    /// As it stands in the body, if it does.
    pub value: Option<JsonRef<'a>>,
    pub piece: BodyPiece,
}

impl<'a> Block<'a> {
    /// A block that nothing of the body stands for.
    pub fn made(text: String) -> Self {
        Self { kind: BlockKind::Other, value: None, piece: BodyPiece::New(text) }
    }
}

/// A turn of the list, as read.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub speaker: Speaker,
    /// As it stands in the body; none for one that the repair makes.
    pub value: Option<JsonRef<'a>>,
    /// What findings about it are about: it, or its first block.
    pub about: JsonRef<'a>,
    /// Where its blocks stand: a list, or one text.
    pub content: Option<JsonRef<'a>>,
    pub blocks: Vec<Block<'a>>,
    /// The run of model turns that it belongs to, or replies to.
    pub run: Option<usize>,
    /// Its blocks are no longer those of the body.
    pub touched: bool,
    pub removed: bool,
}

impl<'a> Turn<'a> {
    /// A turn of the body.
    fn new(value: JsonRef<'a>) -> Self {
        Self {
            speaker: Speaker::User,
            value: Some(value),
            about: value,
            content: None,
            blocks: Vec::new(),
            run: None,
            touched: false,
            removed: false,
        }
    }

    /// A turn that the repair makes, with one block.
    pub fn made(speaker: Speaker, about: JsonRef<'a>, blocks: Vec<Block<'a>>) -> Self {
        Self { speaker, value: None, blocks, touched: true, ..Self::new(about) }
    }

    /// Takes out what stands behind a result and is none.
    pub fn split_after_results(&mut self) -> Vec<Block<'a>> {
        let (mut rest, mut behind) = (Vec::new(), false);
        for block in std::mem::take(&mut self.blocks) {
            let answer = matches!(block.kind, BlockKind::ToolResult(_));
            behind |= answer;
            if behind && !answer { rest.push(block) } else { self.blocks.push(block) }
        }
        self.touched |= !rest.is_empty();
        rest
    }

    /// Leaves out the blocks of a kind.
    pub fn remove_blocks(&mut self, kind: BlockKind) {
        let before = self.blocks.len();
        self.blocks.retain(|block| block.kind != kind);
        self.touched |= self.blocks.len() != before;
    }

    /// Whether it holds results alone, made ones with them.
    pub fn is_results(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block.kind, BlockKind::ToolResult(_)) || block.value.is_none())
    }

    /// Whether nothing is left in it that a provider reads.
    pub fn is_hollow(&self) -> bool {
        self.blocks.iter().all(|block| block.kind == BlockKind::Thinking)
    }
}

/// How a dialect reads and writes turns.
pub(crate) struct TurnGrammar {
    /// How a turn of its own begins and ends.
    pub user: &'static str,
    pub model: &'static str,
    pub close: &'static str,
    /// How a text block begins.
    pub text: &'static str,
    /// The role of the model.
    pub role: &'static str,
    pub roles: &'static [(&'static str, Speaker)],
    /// A turn may go without a role, then the user says it, and with one in capitals, as in Google's own examples.
    pub lax: bool,
    /// User turns in a row are one: results may be split over them.
    pub joined: bool,
    /// The provider's sentences of a role, of what is no turn, and of a block in the wrong turn.
    pub no_role: &'static str,
    pub no_turn: &'static str,
    pub misplaced: &'static str,
    /// Whether only a model's turn may hold a block, by its members and its type.
    pub only_model: fn(&Fields<'_>, &str) -> bool,
    /// Reads a turn's content, into the last turn.
    pub content: for<'a> fn(&mut TurnReader<'_, 'a, '_>, &Fields<'a>),
    /// Whether a block stays at all; reports it otherwise.
    pub stays: for<'a> fn(&mut Plan<'a, '_>, &Fields<'a>, &str) -> bool,
    /// Reads a block that stays; none where it goes all the same.
    pub block: for<'a> fn(&mut TurnReader<'_, 'a, '_>, &Fields<'a>, &str, Speaker) -> Option<Block<'a>>,
}

/// Reads the turns of a body.
pub(crate) struct TurnReader<'p, 'a, 'o> {
    pub plan: &'p mut Plan<'a, 'o>,
    pub pairs: Pairs<'a>,
    pub turns: Vec<Turn<'a>>,
    grammar: &'static TurnGrammar,
    /// The turns that are still to be read.
    rest: Items<'a>,
    /// Runs of model turns so far: what is in a row is one turn.
    pub run: usize,
    /// Who spoke last, of those that stay.
    pub last: Option<Speaker>,
    /// The run whose reply is read now.
    pub reply_to: Option<usize>,
}

impl<'p, 'a, 'o> TurnReader<'p, 'a, 'o> {
    /// Reads all turns. `filler` is what a repair writes as a result's content.
    pub fn read(plan: &'p mut Plan<'a, 'o>, list: JsonRef<'a>, filler: String, grammar: &'static TurnGrammar) -> Self {
        let mut reader = Self {
            plan,
            pairs: Pairs::new(filler),
            turns: Vec::new(),
            grammar,
            rest: list.items(),
            run: 0,
            last: None,
            reply_to: None,
        };
        for at in 0.. {
            let Some(value) = reader.rest.next() else { break };
            reader.plan.at = at;
            reader.turns.push(Turn::new(value));
            if value.is_object() {
                let fields = Fields::of(value);
                if !reader.plan.admits(&fields) {
                    reader.drop_turn();
                    continue;
                }
                let speaker = reader.role(&fields);
                if let Some(turn) = reader.turns.last_mut() {
                    turn.speaker = speaker;
                }
                (grammar.content)(&mut reader, &fields);
                continue;
            }
            if !reader.plan.admits_bare(value) {
                reader.drop_turn();
                continue;
            }
            let text = value.kind() == Kind::String && !value.is_text("");
            let action = if text { Action::Rewritten } else { Action::Dropped };
            reader.plan.report(Violation::error(FindingCode::Malformed, grammar.no_turn).at(value).with_action(action));
            if text {
                reader.text(value);
            }
            if let Some(turn) = reader.turns.last_mut() {
                turn.value = None;
                turn.removed = !text;
            }
        }
        reader
    }

    fn role(&mut self, fields: &Fields<'a>) -> Speaker {
        let given = fields.find("role");
        if given.is_none() && self.grammar.lax {
            return Speaker::User;
        }
        let text = given.and_then(JsonRef::as_text);
        let lax = self.grammar.lax;
        let is = |text: &str, role: &str| text == role || lax && text.eq_ignore_ascii_case(role);
        if let Some(text) = &text
            && let Some((_, speaker)) = self.grammar.roles.iter().find(|(role, _)| is(text, role))
        {
            return *speaker;
        }
        let model = text.as_deref().is_some_and(names_model);
        let (speaker, role) = if model { (Speaker::Model, self.grammar.role) } else { (Speaker::User, "user") };
        let code = role_code(&text.unwrap_or_default());
        self.plan.rewrite(Violation::error(code, self.grammar.no_role).at_member(fields.object, "role"), quoted(role));
        speaker
    }

    /// The last turn stays.
    fn begin(&mut self) {
        let Some(turn) = self.turns.last_mut() else { return };
        let before = self.last.replace(turn.speaker);
        if !(self.grammar.joined && turn.speaker == Speaker::User && before == Some(Speaker::User)) {
            self.reply_to = None;
        }
        if turn.speaker == Speaker::Model {
            if before != Some(Speaker::Model) {
                self.run += 1;
            }
            turn.run = Some(self.run);
        } else if turn.speaker == Speaker::User && before == Some(Speaker::Model) {
            self.reply_to = Some(self.run);
        }
    }

    /// The last turn is one text.
    pub fn text(&mut self, text: JsonRef<'a>) {
        self.begin();
        self.reply_to = None;
        let piece = BodyPiece::wrapped(self.grammar.text, vec![self.plan.edits.source(text)], "}");
        if let Some(turn) = self.turns.last_mut() {
            turn.content = Some(text);
            turn.blocks.push(Block { kind: BlockKind::Other, value: Some(text), piece });
        }
    }

    /// Whether no turn of the body comes behind the one that is read.
    pub fn is_last(&self) -> bool {
        self.rest.clone().next().is_none()
    }

    /// The last turn goes.
    pub fn drop_turn(&mut self) {
        if let Some(turn) = self.turns.last_mut() {
            turn.removed = true;
        }
    }

    /// The last turn's blocks: a list of them, or one that stands alone. What stands in a turn of the
    /// wrong speaker makes a turn of its own behind it.
    pub fn blocks(&mut self, message: &Fields<'a>, content: JsonRef<'a>) {
        let start = self.turns.len();
        let Some(turn) = self.turns.last_mut() else { return };
        turn.content = Some(content);
        let own = turn.speaker;
        let mut alone = Some(content).filter(|content| content.kind() != Kind::Array);
        let (mut items, mut opened, mut changed) = (content.items(), false, false);
        while let Some(value) = alone.take().or_else(|| items.next()) {
            let fields = Fields::of(value);
            let kind = fields.owned_text("type");
            if !(self.grammar.stays)(self.plan, &fields, &kind) {
                changed = true;
                continue;
            }
            let speaker = if (self.grammar.only_model)(&fields, &kind) { Speaker::Model } else { own };
            if speaker != own {
                self.plan.report(
                    Violation::error(FindingCode::RoleOrder, self.grammar.misplaced).at(value).quoting(&kind).moved(),
                );
            }
            let Some(last) = self.turns.last_mut() else { break };
            if !opened || last.speaker != speaker {
                if opened {
                    changed = true;
                    let made = if speaker == Speaker::System { Speaker::User } else { speaker };
                    self.turns.push(Turn::made(made, value, Vec::new()));
                } else if speaker != own {
                    last.speaker = speaker;
                    self.plan.edits.set(message.object, "role", quoted(self.grammar.role));
                }
                opened = true;
                self.begin();
            }
            let block = (self.grammar.block)(self, &fields, &kind, speaker);
            changed |= block.as_ref().is_none_or(|block| !block.piece.is_source());
            if let (Some(last), Some(block)) = (self.turns.last_mut(), block) {
                last.blocks.push(block);
            }
        }
        if !opened {
            // Nothing of it stays; each block was reported.
            self.drop_turn();
        }
        // What left the message, or stands in a turn behind it now, is no longer among its own blocks.
        for turn in self.turns.iter_mut().skip(start - 1) {
            turn.touched |= changed;
        }
    }
}

/// Puts every result at the head of the reply to its call, closes or leaves out what is open, and reports it.
/// `made` writes a synthetic result for a call. A turn left without a block by that is gone. Where results stand `apart`,
/// what comes to them gets no words of the user's behind it.
pub(crate) fn place_blocks<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    mut turns: Vec<Turn<'a>>,
    pairs: &Pairs<'a>,
    words: &ErrorTemplates,
    made: &dyn Fn(&super::WireCall<'a>) -> String,
    apart: bool,
) -> Vec<Turn<'a>> {
    report_pairs(plan, pairs, words);
    let mut moved: Vec<Option<Block<'a>>> = Vec::new();
    moved.resize_with(pairs.results.len(), || None);
    for turn in &mut turns {
        for block in &mut turn.blocks {
            match block.kind {
                BlockKind::ToolResult(a) => {
                    let answer = pairs.results.get(a);
                    let call = answer.and_then(|answer| pairs.call_of(answer).filter(|call| in_place(answer, call)));
                    let held = answer.is_some_and(|answer| answer.pairing == Pairing::HeldByServer);
                    if let (None, false, Some(slot)) = (call, held, moved.get_mut(a)) {
                        *slot = Some(Block { kind: block.kind, value: block.value, piece: block.piece.take() });
                        block.kind = BlockKind::Removed;
                    }
                }
                BlockKind::ToolCall(c) if pairs.calls.get(c).is_some_and(|call| call.omitted) => {
                    block.kind = BlockKind::Removed;
                }
                _ => {}
            }
        }
        turn.remove_blocks(BlockKind::Removed);
    }
    // The results that a run still lacks at its place: those that stand elsewhere, then synthetic ones.
    let mut due = |run: usize| {
        let mut due = Vec::new();
        for a in pairs.results_of(run) {
            if let Some(block) = moved.get_mut(a).and_then(Option::take) {
                due.push(block);
            }
        }
        for call in pairs.open_calls(run) {
            due.push(Block::made(made(call)));
        }
        due
    };
    let mut out: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    let mut open: Option<usize> = None;
    let reply = |due: Vec<Block<'a>>| Turn::made(Speaker::User, list, due);
    for mut turn in turns {
        // A system message that says nothing stands between call and result as if it were not there.
        if turn.removed || turn.speaker == Speaker::System && turn.blocks.is_empty() {
        } else if turn.speaker == Speaker::Model {
            // Of a run that ended without a turn of the user's, which a system message can do.
            let due = open.filter(|run| turn.run != Some(*run)).map(&mut due).unwrap_or_default();
            if !due.is_empty() {
                out.push(reply(due));
            }
            open = turn.run;
        } else if let Some(run) = open.take() {
            let due = due(run);
            let answer = |block: &Block<'_>| matches!(block.kind, BlockKind::ToolResult(_));
            if due.is_empty() {
            } else if turn.speaker != Speaker::User || apart && !turn.blocks.iter().any(answer) {
                out.push(reply(due));
            } else {
                // Behind the results that stand in the turn already.
                let rest = if apart {
                    turn.split_after_results()
                } else {
                    let head = turn.blocks.iter().take_while(|block| answer(block)).count();
                    turn.blocks.split_off(head)
                };
                turn.blocks.extend(due);
                turn.touched = true;
                if apart && !rest.is_empty() {
                    out.push(turn);
                    turn = reply(rest);
                } else {
                    turn.blocks.extend(rest);
                }
            }
        }
        out.push(turn);
    }
    let due = open.map(due).unwrap_or_default();
    if !due.is_empty() {
        out.push(reply(due));
    }
    for turn in &mut out {
        turn.removed |= turn.touched && turn.is_hollow();
    }
    out
}

/// Writes the turns back as edits: the blocks of those that were touched, and the list if it has other turns.
pub(crate) fn write_turns<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    turns: &mut [Turn<'a>],
    grammar: &TurnGrammar,
) {
    let other = turns.iter().any(|turn| turn.removed || turn.value.is_none());
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
                Kind::Array => plan.edits.rebuild(content, pieces),
                _ => plan.edits.enclose(content, BodyPiece::wrapped("[", pieces, "]")),
            }
        }
        items.push(plan.edits.source(value));
    }
    if other {
        plan.edits.rebuild(list, items);
    }
}
