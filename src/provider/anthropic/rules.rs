//! What Anthropic's messages endpoint refuses, and the edit that mends it.
//!
//! Sources: the sentences that its API answers with (claude-code#2697, #13460, #59812, #64383, cua#524,
//! language-servers#1235, opencode#3077, forgecode#1853), corrected by recorded exchanges: an id may come again in a later
//! turn, an assistant message may be first, assistant messages in a row are one turn, text may follow the results, foreign
//! ids pass, a server's call may stand unpaired beside a client's, system messages may stand in the middle.

mod content;
mod end;
mod marks;

pub(crate) use content::SILENT_ERROR;

use crate::finding::Action;
use crate::id::short_name;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{
    Answer, Block, BlockKind, Call, Fate, Fields, IdRule, Pairs, Piece, Plan, Runs, Shape, Speaker, Turn, Words,
    as_quoted, id_of, name_fit, name_valid, object_text, omit_open, place_blocks, quoted, write_turns,
};
use crate::sorted::Sorted;

const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| name_valid(id, usize::MAX),
    fit: |id| name_fit(id, usize::MAX),
    derive: |seed| format!("toolu_{}", short_name(seed, 24)),
    variant: |base, count| format!("{base}_{count}"),
    missing: "tool_use.id: Field required: String should have at least 1 character.",
    invalid: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': '{id}'.",
    double: "`tool_use` ids must be unique: '{id}'.",
};

const WORDS: Words = Words {
    dangling: "`tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    orphan: "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
    duplicate: "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}",
};

const SHAPE: Shape =
    Shape { user: "{\"role\":\"user\",\"content\":[", model: "{\"role\":\"assistant\",\"content\":[", close: "]}" };

const MAX_NAME: usize = 128;

/// Plans the repair of an Anthropic body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, _body: JsonRef<'a>, list: JsonRef<'a>) {
    let filler = quoted(plan.options.text());
    let count = list.items().count();
    let mut reader = Reader {
        plan,
        filler,
        count,
        pairs: Pairs::default(),
        turns: Vec::new(),
        runs: Runs::default(),
        uses: Vec::new(),
        results: Vec::new(),
        served: Sorted::new(),
    };
    for (at, value) in list.items().enumerate() {
        reader.message(at, value);
    }
    let Reader { plan, mut pairs, turns, uses, results, .. } = reader;
    pairs.pair();
    omit_open(plan, &mut pairs);
    pairs.assign_ids(&IDS, &mut plan.report);
    for ((value, given), call) in uses.iter().zip(&pairs.calls) {
        if !call.omitted && (call.id.as_deref() != Some(&call.new_id) || !call.sound) {
            plan.edits.set(*value, *given, "id", quoted(&call.new_id));
        }
    }
    for ((value, given), answer) in results.iter().zip(&pairs.answers) {
        let Fate::Answers(c) = answer.fate else { continue };
        let Some(call) = pairs.calls.get(c) else { continue };
        if answer.id.as_deref() != Some(&call.new_id) || !answer.sound {
            plan.edits.set(*value, *given, "tool_use_id", quoted(&call.new_id));
            if !answer.sound || call.id != answer.id {
                plan.call_error(
                    "invalid_call_id",
                    &answer.path,
                    &call.new_id,
                    Action::Renamed,
                    "tool_result.tool_use_id: Field required: the id of its `tool_use` block.",
                );
            }
        }
    }
    let text = plan.options.text().to_owned();
    let made = |c: usize| {
        let id = pairs.calls.get(c).map_or("", |call| &call.new_id);
        ObjectWriter::build(|o| {
            o.text("type", "tool_result").text("tool_use_id", id).text("content", &text).bool("is_error", true);
        })
        .as_str()
        .to_owned()
    };
    let mut turns = place_blocks(plan, turns, &pairs, &WORDS, made);
    end::mend(plan, &mut turns);
    marks::mend(plan, &turns);
    write_turns(plan, list, turns, &SHAPE);
}

struct Reader<'p, 'a, 'o> {
    plan: &'p mut Plan<'a, 'o>,
    filler: String,
    /// Messages in the body.
    count: usize,
    pairs: Pairs<'a>,
    turns: Vec<Turn<'a>>,
    /// The reply that is read now ends, for results, at its first block that is none.
    runs: Runs,
    /// By call: its block and its id.
    uses: Vec<(JsonRef<'a>, Option<JsonRef<'a>>)>,
    /// By result: its block and its id.
    results: Vec<(JsonRef<'a>, Option<JsonRef<'a>>)>,
    /// Ids of the server's and MCP calls of this run.
    served: Sorted<String, ()>,
}

impl<'a> Reader<'_, 'a, '_> {
    fn message(&mut self, at: usize, value: JsonRef<'a>) {
        let path = format!("{}/{at}", self.plan.base);
        let mut turn = Turn {
            speaker: Speaker::User,
            value: Some(value),
            content: None,
            piece: None,
            path: path.clone(),
            blocks: Vec::new(),
            run: None,
            touched: false,
            gone: false,
        };
        if !value.is_object() {
            let text = value.kind() == Kind::String && !value.is_text("");
            let action = if text { Action::Rewritten } else { Action::Dropped };
            self.plan.error(
                "malformed",
                path,
                action,
                format!("messages.{at}: Input should be a valid dictionary or object to extract fields from"),
            );
            if text {
                self.begin(&mut turn);
                turn.content = Some(value);
                let block = self.text_block(value);
                turn.blocks.push(block);
                turn.value = None;
            }
            turn.gone = !text;
            self.turns.push(turn);
            return;
        }
        let fields = Fields::of(value);
        turn.speaker = self.role(at, &path, value, &fields);
        let given = fields.get("content");
        turn.content = given;
        let here = format!("{path}/content");
        match given.map(|content| (content, content.kind())) {
            None | Some((_, Kind::Null)) => self.empty(at, value, given, turn),
            Some((content, Kind::String)) if content.is_text("") => self.empty(at, value, given, turn),
            Some((content, Kind::String)) => {
                self.begin(&mut turn);
                self.runs.near = None;
                let block = self.text_block(content);
                turn.blocks.push(block);
                self.turns.push(turn);
            }
            Some((content, Kind::Array)) if content.items().next().is_none() => self.empty(at, value, given, turn),
            Some((content, Kind::Array)) => self.blocks(
                at,
                content.items().enumerate().map(|(k, block)| (format!("{here}/{k}"), block)),
                value,
                &fields,
                turn,
            ),
            Some((content, Kind::Object)) => {
                self.plan.error(
                    "malformed",
                    here.clone(),
                    Action::Rewritten,
                    format!("messages.{at}.content: Input should be a valid list"),
                );
                self.plan.edits.wrap(content, "[".into(), "]");
                self.blocks(at, std::iter::once((here, content)), value, &fields, turn);
            }
            Some((content, _)) => {
                self.plan.error(
                    "malformed",
                    here,
                    Action::Rewritten,
                    format!("messages.{at}.content: Input should be a valid string or list"),
                );
                self.plan.edits.replace(content, Piece::New(as_quoted(content)));
                self.begin(&mut turn);
                self.runs.near = None;
                let block = self.text_block(content);
                turn.blocks.push(block);
                self.turns.push(turn);
            }
        }
    }

    fn text_block(&self, text: JsonRef<'a>) -> Block<'a> {
        let piece =
            Piece::Wrapped("{\"type\":\"text\",\"text\":".into(), vec![self.plan.edits.source(text)], "}".into());
        Block { kind: BlockKind::Other, value: Some(text), piece }
    }

    fn role(&mut self, at: usize, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) -> Speaker {
        let given = fields.text("role").unwrap_or_default();
        match &*given {
            "user" => return Speaker::User,
            "assistant" => return Speaker::Model,
            "system" => return Speaker::Aside,
            _ => {}
        }
        let (speaker, role) = if matches!(&*given, "model" | "ai" | "bot" | "agent") {
            (Speaker::Model, "assistant")
        } else {
            (Speaker::User, "user")
        };
        self.plan.error(
            "role_order",
            format!("{path}/role"),
            Action::Rewritten,
            format!("messages.{at}.role: Input should be 'user' or 'assistant'"),
        );
        self.plan.edits.set(value, fields.get("role"), "role", format!("\"{role}\""));
        speaker
    }

    fn begin(&mut self, turn: &mut Turn<'a>) {
        if self.runs.begin(turn) {
            self.served.clear();
        }
    }

    /// A message without content goes, unless it is the assistant's and the last, where nothing will stand behind it.
    fn empty(&mut self, at: usize, value: JsonRef<'a>, given: Option<JsonRef<'a>>, mut turn: Turn<'a>) {
        let calls = self.runs.last == Some(Speaker::Model)
            && self.pairs.calls.last().is_some_and(|call| call.group == self.runs.run);
        let typed = given.is_some_and(|content| !content.is_null());
        if at + 1 == self.count && turn.speaker == Speaker::Model && !calls && typed {
            self.turns.push(turn);
            return;
        }
        let _ = value;
        self.plan.error("empty_content", turn.path.clone(), Action::Dropped, format!(
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message"));
        turn.gone = true;
        self.turns.push(turn);
    }

    fn blocks(
        &mut self,
        at: usize,
        blocks: impl Iterator<Item = (String, JsonRef<'a>)>,
        value: JsonRef<'a>,
        fields: &Fields<'a>,
        turn: Turn<'a>,
    ) {
        let own = turn.speaker;
        let mut first = Some(turn);
        let mut current: Option<Turn<'a>> = None;
        let (mut dropped, start) = (false, self.turns.len());
        for (path, block) in blocks {
            let inner = Fields::of(block);
            let kind = inner.text("type").unwrap_or_default().into_owned();
            let only_model =
                matches!(&*kind, "tool_use" | "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use");
            let speaker = if only_model { Speaker::Model } else { own };
            if current.as_ref().is_none_or(|turn| turn.speaker != speaker) {
                // Looked at before the turn is opened: a block that goes must not open one.
                if !content::stays(self.plan, block, &inner, &kind, &path, at) {
                    dropped = true;
                    continue;
                }
                if speaker != own {
                    self.plan.error(
                        "role_order",
                        path.clone(),
                        Action::Moved,
                        format!("messages.{at}: `{kind}` blocks can only be in `assistant` messages"),
                    );
                }
                dropped |= current.is_some();
                self.turns.extend(current.take());
                let mut next = match first.take() {
                    Some(mut turn) => {
                        if speaker != own {
                            self.plan.edits.set(value, fields.get("role"), "role", "\"assistant\"".into());
                            turn.speaker = speaker;
                        }
                        turn
                    }
                    None => Turn {
                        speaker: if speaker == Speaker::Aside { Speaker::User } else { speaker },
                        value: None,
                        content: None,
                        piece: None,
                        path: path.clone(),
                        blocks: Vec::new(),
                        run: None,
                        touched: true,
                        gone: false,
                    },
                };
                self.begin(&mut next);
                current = Some(next);
            } else if !content::stays(self.plan, block, &inner, &kind, &path, at) {
                dropped = true;
                continue;
            } else if speaker != own {
                self.plan.error(
                    "role_order",
                    path.clone(),
                    Action::Moved,
                    format!("messages.{at}: `{kind}` blocks can only be in `assistant` messages"),
                );
            }
            let Some(block) = self.block(at, path, block, &inner, &kind, speaker) else {
                dropped = true;
                continue;
            };
            if let Some(turn) = &mut current {
                turn.touched |= !matches!(block.piece, Piece::Source(_));
                turn.blocks.push(block);
            }
        }
        if let Some(mut turn) = first {
            // Nothing of it stays; each block was reported.
            turn.gone = true;
            self.turns.push(turn);
        }
        self.turns.extend(current);
        // What left the message, or stands in a turn behind it now, is no longer among its own blocks.
        for turn in self.turns.iter_mut().skip(start) {
            turn.touched |= dropped;
        }
    }

    fn block(
        &mut self,
        at: usize,
        path: String,
        value: JsonRef<'a>,
        fields: &Fields<'a>,
        kind: &str,
        speaker: Speaker,
    ) -> Option<Block<'a>> {
        let piece = self.plan.edits.source(value);
        let block = |kind| Some(Block { kind, value: Some(value), piece: piece.clone() });
        if kind == "tool_result" {
            let given = fields.get("tool_use_id");
            let (id, sound) = id_of(given);
            let content = fields.get("content").map_or("", JsonRef::as_raw);
            let filler = content == self.filler;
            content::result(self.plan, value, fields, &path);
            let near = self.runs.near;
            let a = self.pairs.answer(Answer {
                near,
                key: id.clone(),
                id,
                sound,
                path,
                content,
                filler,
                fate: Fate::Orphan,
                order: 0,
                label: String::new(),
            });
            self.results.push((value, given));
            return block(BlockKind::Answer(a));
        }
        self.runs.near = None;
        match kind {
            "tool_use" => {
                let given = fields.get("id");
                let (id, sound) = id_of(given);
                let name = fields.text("name").unwrap_or_default();
                if !name_valid(&name, MAX_NAME) {
                    self.plan.error("malformed", format!("{path}/name"), Action::Rewritten, format!("messages.{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$': '{name}'"));
                    self.plan.edits.set(value, fields.get("name"), "name", quoted(&name_fit(&name, MAX_NAME)));
                }
                let input = fields.get("input");
                if !input.is_some_and(JsonRef::is_object) {
                    self.plan.error(
                        "invalid_arguments",
                        format!("{path}/input"),
                        Action::Rewritten,
                        format!("messages.{at}.tool_use.input: Input should be a valid dictionary"),
                    );
                    self.plan.edits.set(value, input, "input", object_text(input));
                }
                let raw = if id.is_none() { value.as_raw().to_owned() } else { String::new() };
                let c = self.pairs.call(Call {
                    group: self.runs.run,
                    key: id.clone(),
                    id,
                    sound,
                    path,
                    raw,
                    answer: None,
                    new_id: String::new(),
                    wants: true,
                    omitted: false,
                    order: 0,
                    label: String::new(),
                });
                self.uses.push((value, given));
                block(BlockKind::Call(c))
            }
            "thinking" | "redacted_thinking" => block(BlockKind::Thought),
            "server_tool_use" | "mcp_tool_use" => {
                if let Some(id) = fields.text("id") {
                    self.served.insert(id.into_owned(), ());
                }
                block(BlockKind::Other)
            }
            // The server's own results stand in the assistant's message, after their call (claude-code#64383).
            _ if speaker == Speaker::Model && kind.ends_with("_tool_result") => {
                let id = fields.text("tool_use_id").unwrap_or_default();
                if self.served.contains(&*id) {
                    return block(BlockKind::Other);
                }
                let with = if kind == "mcp_tool_result" { "mcp_tool_use" } else { "server_tool_use" };
                self.plan.call_error("orphan_result", path, &id, Action::Dropped, format!(
                    "messages.{at}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block must have a corresponding `{with}` block before it."));
                None
            }
            _ => Some(content::block(self.plan, value, fields, kind, &path, at)),
        }
    }
}
