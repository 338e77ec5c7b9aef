//! Conversations whose messages are turns that hold blocks (Anthropic, Gemini), and how they are read.

use super::{BodyPiece, Fields, Pairs, Plan, Violation, names_model, quoted, role_code};
use crate::finding::FindingCode;
use crate::json::{ArrayItems, JsonKind, JsonRef};

/// Who a turn is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    User,
    /// A system message among the turns. It cannot hold results.
    System,
}

/// What a block is to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A call, by its index in [`Pairs::calls`].
    ToolCall(usize),
    /// A result, by its index in [`Pairs::results`].
    ToolResult(usize),
    /// Reasoning. A turn of reasoning alone counts as empty.
    Thinking,
    /// Text of white space alone.
    EmptyText,
    /// A call of a tool that the server executes.
    ServerCall,
    /// The result of a tool that the server executed.
    ServerResult,
    /// Any other block.
    Other,
    /// A block that was removed or moved to another turn.
    Removed,
}

/// A block of a turn.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub kind: BlockKind,
    /// The block in the body; none if the repair adds it.
    pub value: Option<JsonRef<'a>>,
    /// What the repaired body has for it.
    pub piece: BodyPiece,
}

impl<'a> Block<'a> {
    /// Creates a block that the body does not have, from its JSON.
    pub fn synthetic(text: String) -> Self {
        Self { kind: BlockKind::Other, value: None, piece: BodyPiece::New(text) }
    }
}

/// A turn of the conversation.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub speaker: Speaker,
    /// The turn in the body; none if the repair adds it.
    pub value: Option<JsonRef<'a>>,
    /// What findings about the turn point to: the turn, or its first block if the repair adds the turn.
    pub about: JsonRef<'a>,
    /// The member that holds the blocks: a list, or one text.
    pub content: Option<JsonRef<'a>>,
    pub blocks: Vec<Block<'a>>,
    /// The run of model turns that it belongs to. A run is a row of model turns, which count as one.
    pub run: Option<usize>,
    /// True if its blocks differ from those of the body.
    pub touched: bool,
    pub removed: bool,
}

impl<'a> Turn<'a> {
    /// Creates a turn of the body.
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

    /// Creates a turn that the repair adds.
    pub fn synthetic(speaker: Speaker, about: JsonRef<'a>, blocks: Vec<Block<'a>>) -> Self {
        Self { speaker, value: None, blocks, touched: true, ..Self::new(about) }
    }

    /// Removes and returns the blocks after the first result that are no results.
    pub fn split_after_results(&mut self) -> Vec<Block<'a>> {
        let (mut rest, mut after_result) = (Vec::new(), false);
        for block in std::mem::take(&mut self.blocks) {
            let is_result = matches!(block.kind, BlockKind::ToolResult(_));
            after_result |= is_result;
            if after_result && !is_result { rest.push(block) } else { self.blocks.push(block) }
        }
        self.touched |= !rest.is_empty();
        rest
    }

    /// Removes the blocks of a kind.
    pub fn remove_blocks(&mut self, kind: BlockKind) {
        let before = self.blocks.len();
        self.blocks.retain(|block| block.kind != kind);
        self.touched |= self.blocks.len() != before;
    }

    /// Returns true if the turn holds only results, including synthetic ones.
    pub fn is_results(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block.kind, BlockKind::ToolResult(_)) || block.value.is_none())
    }

    /// Returns true if the turn has no block but reasoning.
    pub fn is_hollow(&self) -> bool {
        self.blocks.iter().all(|block| block.kind == BlockKind::Thinking)
    }
}

/// How a dialect reads and writes turns: its JSON, its sentences, and the readers of its content.
pub(crate) struct TurnGrammar {
    /// The JSON of a user turn up to its blocks, such as `{"role":"user","content":[`.
    pub user: &'static str,
    /// The JSON of a model turn up to its blocks.
    pub model: &'static str,
    /// The JSON of a turn after its blocks.
    pub close: &'static str,
    /// The JSON of a text block up to its text.
    pub text: &'static str,
    /// The role of model turns: `assistant` or `model`.
    pub role: &'static str,
    /// The roles that the dialect has.
    pub roles: &'static [(&'static str, Speaker)],
    /// True if the role may be missing (then it is `user`) or in capitals, as in Google's own examples.
    pub has_loose_roles: bool,
    /// True if user turns in a row count as one, so that results may be split over them.
    pub merges_user_turns: bool,
    /// The provider's sentence about an unknown role.
    pub unknown_role: &'static str,
    /// The provider's sentence about an item that is no turn.
    pub not_a_turn: &'static str,
    /// The provider's sentence about a block in a turn of the wrong speaker.
    pub misplaced: &'static str,
    /// Returns true if only a model turn may hold a block, by its members and its type.
    pub only_model: fn(&Fields<'_>, &str) -> bool,
    /// Reads a turn's content into the last turn.
    pub content: for<'a> fn(&mut TurnReader<'_, 'a, '_>, &Fields<'a>),
    /// Returns false for a block that is removed, after reporting it.
    pub keeps_block: for<'a> fn(&mut Plan<'a, '_>, &Fields<'a>, &str) -> bool,
    /// Reads a block; returns none if it is removed after all.
    pub block: for<'a> fn(&mut TurnReader<'_, 'a, '_>, &Fields<'a>, &str, Speaker) -> Option<Block<'a>>,
}

/// Reads the turns of a body.
pub(crate) struct TurnReader<'p, 'a, 'o> {
    pub plan: &'p mut Plan<'a, 'o>,
    pub pairs: Pairs<'a>,
    pub turns: Vec<Turn<'a>>,
    grammar: &'static TurnGrammar,
    /// The turns that are not read yet.
    rest: ArrayItems<'a>,
    /// How many runs of model turns began.
    pub run: usize,
    /// The speaker of the last turn that is not removed.
    pub last: Option<Speaker>,
    /// The run that the current turn replies to: a result in it is in its place.
    pub reply_to: Option<usize>,
}

impl<'p, 'a, 'o> TurnReader<'p, 'a, 'o> {
    /// Reads all turns. `synthetic_content` is the JSON of the content of a synthetic result.
    pub fn read(
        plan: &'p mut Plan<'a, 'o>,
        list: JsonRef<'a>,
        synthetic_content: String,
        grammar: &'static TurnGrammar,
    ) -> Self {
        let mut reader = Self {
            plan,
            pairs: Pairs::new(synthetic_content),
            turns: Vec::new(),
            grammar,
            rest: list.items(),
            run: 0,
            last: None,
            reply_to: None,
        };
        for at in 0.. {
            let Some(value) = reader.rest.next() else { break };
            if reader.plan.is_over_budget() {
                break;
            }
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
            reader.read_bare(value);
        }
        reader
    }

    /// Reads an item that is no object: a text becomes a user turn, anything else is removed.
    fn read_bare(&mut self, value: JsonRef<'a>) {
        if !self.plan.admits_bare(value) {
            return self.drop_turn();
        }
        let is_text = value.kind() == JsonKind::String && !value.is_text("");
        let violation = Violation::error(FindingCode::Malformed, self.grammar.not_a_turn).at(value);
        self.plan.report(if is_text { violation.rewritten() } else { violation.dropped() });
        if is_text {
            self.text(value);
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.value = None;
            turn.removed = !is_text;
        }
    }

    /// Returns the speaker of a turn, by its role. An unknown role is reported and replaced.
    fn role(&mut self, fields: &Fields<'a>) -> Speaker {
        let role = fields.find("role");
        if role.is_none() && self.grammar.has_loose_roles {
            return Speaker::User;
        }
        let text = role.and_then(JsonRef::as_text);
        let ignores_case = self.grammar.has_loose_roles;
        let is = |text: &str, role: &str| text == role || ignores_case && text.eq_ignore_ascii_case(role);
        if let Some(text) = &text
            && let Some((_, speaker)) = self.grammar.roles.iter().find(|(role, _)| is(text, role))
        {
            return *speaker;
        }
        let model = text.as_deref().is_some_and(names_model);
        let (speaker, role) = if model { (Speaker::Model, self.grammar.role) } else { (Speaker::User, "user") };
        let code = role_code(&text.unwrap_or_default());
        self.plan
            .rewrite(Violation::error(code, self.grammar.unknown_role).at_member(fields.object, "role"), quoted(role));
        speaker
    }

    /// Counts the last turn, which is not removed.
    fn begin(&mut self) {
        let Some(turn) = self.turns.last_mut() else { return };
        let before = self.last.replace(turn.speaker);
        if !(self.grammar.merges_user_turns && turn.speaker == Speaker::User && before == Some(Speaker::User)) {
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

    /// Reads the last turn's content, which is one text.
    pub fn text(&mut self, text: JsonRef<'a>) {
        self.begin();
        self.reply_to = None;
        let piece = BodyPiece::wrapped(self.grammar.text, vec![self.plan.edits.source(text)], "}");
        if let Some(turn) = self.turns.last_mut() {
            turn.content = Some(text);
            turn.blocks.push(Block { kind: BlockKind::Other, value: Some(text), piece });
        }
    }

    /// Returns true if the current turn is the last one of the body.
    pub fn is_last(&self) -> bool {
        self.rest.clone().next().is_none()
    }

    /// Removes the last turn.
    pub fn drop_turn(&mut self) {
        if let Some(turn) = self.turns.last_mut() {
            turn.removed = true;
        }
    }

    /// Reads the last turn's blocks: a list of them, or a single one. Blocks in a turn of the wrong speaker become a
    /// turn of their own after it.
    pub fn blocks(&mut self, message: &Fields<'a>, content: JsonRef<'a>) {
        let start = self.turns.len();
        let Some(turn) = self.turns.last_mut() else { return };
        turn.content = Some(content);
        let turn_speaker = turn.speaker;
        let mut alone = Some(content).filter(|content| content.kind() != JsonKind::Array);
        let (mut items, mut opened, mut changed) = (content.items(), false, false);
        while let Some(value) = alone.take().or_else(|| items.next()) {
            if self.plan.is_over_budget() {
                break;
            }
            let fields = Fields::of(value);
            let kind = fields.owned_text("type");
            if !(self.grammar.keeps_block)(self.plan, &fields, &kind) {
                changed = true;
                continue;
            }
            let speaker = if (self.grammar.only_model)(&fields, &kind) { Speaker::Model } else { turn_speaker };
            if speaker != turn_speaker {
                self.plan.report(
                    Violation::error(FindingCode::RoleOrder, self.grammar.misplaced).at(value).quoting(&kind).moved(),
                );
            }
            let Some(last) = self.turns.last_mut() else { break };
            if !opened || last.speaker != speaker {
                if opened {
                    changed = true;
                    let speaker = if speaker == Speaker::System { Speaker::User } else { speaker };
                    self.turns.push(Turn::synthetic(speaker, value, Vec::new()));
                } else if speaker != turn_speaker {
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
            // Every block was removed and reported.
            self.drop_turn();
        }
        // The message has lost blocks, or they are in a turn after it.
        for turn in self.turns.iter_mut().skip(start - 1) {
            turn.touched |= changed;
        }
    }
}
