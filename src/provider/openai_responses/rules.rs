//! What OpenAI's responses endpoint refuses, and the edit that mends it.
//!
//! Sources: its sentences (CLIProxyAPI#2368, vscode#320060, continue#8933, nodetool#4252, codex#42088), corrected by
//! recorded exchanges: reasoning may follow reasoning and go without an id, calls go without an `fc_` id, an output may
//! answer a tool search. Calls and outputs match by `call_id`; what the model says between them is its own business.

mod items;
mod order;

use crate::finding::Action;
use crate::id::{IdMap, Seed, short_name};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::rules::{
    Answer, Call, Fate, Fields, IdRule, Pairs, Piece, Plan, Words, id_of, omit_open, quoted, report_pairs,
};

const MAX_ID: usize = 64;

const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| id.chars().count() <= MAX_ID,
    fit: |id| {
        let head: String = id.chars().take(MAX_ID - 11).collect();
        format!("{head}_{}", short_name(id, 10))
    },
    derive: |seed| format!("call_{}", short_name(seed, 24)),
    variant: |base, count| {
        let tail = format!("_{count}");
        let head: String = base.chars().take(MAX_ID - tail.len()).collect();
        head + &tail
    },
    missing: "Missing required parameter: 'call_id' of a function call.",
    invalid: "Invalid 'call_id' '{id}': expected a string with maximum length 64 (string_above_max_length).",
    double: "Duplicate call_id '{id}' among the calls of one response.",
};

const WORDS: Words = Words {
    dangling: "No tool output found for function call {id}.",
    orphan: "No tool call found for function call output with call_id {id}.",
    duplicate: "More than one output for function call {id}: each call has one.",
};

/// What an item is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Call(usize),
    Output(usize),
    /// A message of the user or the system: what was called before it must be answered before it.
    Barrier,
    /// A message of the model; whether it has an id.
    Said(bool),
    /// Reasoning with an id that the server knows: it must stay with the item after it.
    Reasoning,
    /// Server items and whatever else: kept as they are.
    Other,
    Gone,
}

/// Plans the repair of a Responses body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, _body: JsonRef<'a>, list: JsonRef<'a>) {
    // What the server holds is not in this list, so an output here may answer a call there.
    let held = ["previous_response_id", "conversation"].iter().any(|key| plan.body.find(key).is_some())
        || list.items().any(|item| item.text("type").as_deref() == Some("item_reference"));
    // Recorded: call, message, call, outputs is refused by DeepSeek, and nobody else.
    let adjacent = plan.body.text("model").is_some_and(|model| crate::text::has(&model, "deepseek"));
    let filler = quoted(plan.options.text());
    let mut reader = Reader {
        plan,
        filler,
        pairs: Pairs::default(),
        group: 0,
        fresh: true,
        answered: false,
        era: 0,
        said: 0,
        said_at_call: 0,
        calls: Vec::new(),
        outputs: Vec::new(),
        served: IdMap::with_hasher(Seed::default()),
    };
    let items: Vec<(Item, Piece)> = list.items().enumerate().map(|(at, value)| reader.item(at, value)).collect();
    let Reader { plan, mut pairs, calls, outputs, .. } = reader;
    pairs.pair();
    omit_open(plan, &mut pairs);
    pairs.assign_ids(&IDS, &mut plan.report);
    for (asked, call) in calls.iter().zip(&pairs.calls) {
        if !call.omitted && call.wants && (call.id.as_deref() != Some(&call.new_id) || !call.sound) {
            plan.edits.set(asked.value, asked.id, "call_id", quoted(&call.new_id));
        }
    }
    for (output, answer) in outputs.iter().zip(&mut pairs.answers) {
        answer.near = None;
        let served = output.served && matches!(answer.fate, Fate::Orphan | Fate::Duplicate(_));
        if (served || held && answer.fate == Fate::Orphan) && answer.sound {
            answer.fate = Fate::Held;
        }
        let Fate::Answers(c) = answer.fate else { continue };
        let (Some(call), Some(asked)) = (pairs.calls.get(c), calls.get(c)) else { continue };
        let legal = call.order < answer.order && asked.era == output.era && !(adjacent && output.said > asked.said);
        answer.near = legal.then_some(call.group);
        if answer.id.as_deref() != Some(&call.new_id) || !answer.sound {
            plan.edits.set(output.value, output.id, "call_id", quoted(&call.new_id));
            if !answer.sound || call.id != answer.id {
                plan.call_error(
                    "invalid_call_id",
                    &answer.path,
                    &call.new_id,
                    Action::Renamed,
                    "Missing or invalid parameter: 'call_id' must be that of its call.",
                );
            }
        }
    }
    let groups = pairs.groups();
    report_pairs(plan, &pairs, &groups, &WORDS);
    let text = plan.options.text().to_owned();
    let made = |call: &Call| {
        ObjectWriter::build(|o| {
            o.text("type", &format!("{}_output", call.label)).text("call_id", &call.new_id).text("output", &text);
        })
        .as_str()
        .to_owned()
    };
    let stays =
        |a: usize| pairs.answers.get(a).is_some_and(|answer| answer.near.is_some() || answer.fate == Fate::Held);
    let mut bare = Vec::new();
    if let Some(pieces) = order::place(plan, items, &pairs, &groups, stays, made, &mut bare) {
        plan.edits.rebuild(list, pieces);
    }
    // "… was provided without its required 'reasoning' item" (continue PR#11785): the call goes on by its call id alone.
    for asked in bare.iter().filter_map(|c| calls.get(*c)) {
        if asked.value.text("id").is_some_and(|id| id.starts_with("fc_")) {
            plan.edits.remove(asked.value, "id");
        }
    }
}

/// A call or output: where it stands, for what may stand between the two.
struct Asked<'a> {
    value: JsonRef<'a>,
    id: Option<JsonRef<'a>>,
    /// Barriers before it.
    era: usize,
    /// The model's messages before it; for an output, before the last call before it.
    said: usize,
    /// For an output: a call that is not ours to pair has its id.
    served: bool,
}

struct Reader<'p, 'a, 'o> {
    plan: &'p mut Plan<'a, 'o>,
    filler: String,
    pairs: Pairs<'a>,
    /// The step that is read now: its calls belong together.
    group: usize,
    /// The next call begins a step: somebody else has spoken.
    fresh: bool,
    /// An output has come since the last call, so the next call is of another response.
    answered: bool,
    era: usize,
    said: usize,
    said_at_call: usize,
    calls: Vec<Asked<'a>>,
    outputs: Vec<Asked<'a>>,
    /// Ids of calls of other kinds. Each may have one output of a function's (recorded for `tool_search_call`).
    served: IdMap<bool>,
}

impl<'a> Reader<'_, 'a, '_> {
    fn item(&mut self, at: usize, value: JsonRef<'a>) -> (Item, Piece) {
        let path = format!("{}/{at}", self.plan.base);
        let (kind, fields, piece) = items::kind(self.plan, at, value, &path);
        let item = match &*kind {
            "gone" => Item::Gone,
            "text" => {
                self.era += 1;
                self.fresh = true;
                Item::Barrier
            }
            "message" => self.message(&path, value, &fields),
            "function_call" | "custom_tool_call" => self.call(&kind, path, value, &fields),
            "function_call_output" | "custom_tool_call_output" => self.output(&kind, path, value, &fields),
            "reasoning" => {
                let known = fields.text("id").is_some_and(|id| id.starts_with("rs_"));
                if known { Item::Reasoning } else { Item::Other }
            }
            _ => {
                if kind.ends_with("_call")
                    && let (Some(id), true) = id_of(fields.get("call_id"))
                {
                    self.begin();
                    self.served.insert(id, true);
                }
                Item::Other
            }
        };
        (item, piece)
    }

    fn message(&mut self, path: &str, value: JsonRef<'a>, fields: &Fields<'a>) -> Item {
        match items::message(self.plan, path, value, fields) {
            None => Item::Gone,
            Some(true) => {
                self.said += 1;
                let (id, sound) = id_of(fields.get("id"));
                Item::Said(id.is_some() && sound)
            }
            Some(false) => {
                self.era += 1;
                self.fresh = true;
                Item::Barrier
            }
        }
    }

    fn begin(&mut self) {
        if self.fresh || self.answered {
            self.group += 1;
            (self.fresh, self.answered) = (false, false);
        }
        self.said_at_call = self.said;
    }

    fn call(&mut self, kind: &str, path: String, value: JsonRef<'a>, fields: &Fields<'a>) -> Item {
        self.begin();
        items::call(self.plan, kind, &path, value, fields);
        let given = fields.get("call_id");
        let (id, sound) = id_of(given);
        let raw = if id.is_none() { value.as_raw().to_owned() } else { String::new() };
        self.calls.push(Asked { value, id: given, era: self.era, said: self.said, served: false });
        Item::Call(self.pairs.call(Call {
            group: self.group,
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
            label: kind.to_owned(),
        }))
    }

    fn output(&mut self, kind: &str, path: String, value: JsonRef<'a>, fields: &Fields<'a>) -> Item {
        let near = (!self.fresh).then_some(self.group);
        self.answered = true;
        items::output(self.plan, &path, value, fields);
        let given = fields.get("call_id");
        let (id, sound) = id_of(given);
        let content = fields.get("output").map_or("", JsonRef::as_raw);
        let filler = content == self.filler;
        let label = kind.strip_suffix("_output").unwrap_or(kind).to_owned();
        let served = id.as_ref().and_then(|id| self.served.get_mut(id)).is_some_and(std::mem::take);
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
            label,
        });
        self.outputs.push(Asked { value, id: given, era: self.era, said: self.said_at_call, served });
        Item::Output(a)
    }
}
