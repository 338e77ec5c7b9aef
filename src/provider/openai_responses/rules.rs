//! What OpenAI's responses endpoint refuses, and the edit that mends it.
//!
//! Sources: its sentences (CLIProxyAPI#2368, vscode#320060, continue#8933, nodetool#4252, codex#42088), corrected by
//! recorded exchanges: reasoning may follow reasoning and go without an id, calls go without an `fc_` id, an output may
//! answer a tool search. Calls and outputs match by `call_id`; what the model says between them is its own business.
//! Calls of OpenAI's own tools that a client runs pair as functions do ("No tool output found for shell call",
//! agent-framework#8663), and so do approvals ("The following MCP approval requests do not have an approval").

mod items;
mod order;

use super::kinds::{CallKind, HOSTED, id_name, is_known, kind_of, pair_of, runs_on_server};
use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::openai_chat::{self, rules::shortened};
use crate::provider::rules::{
    BodyPiece, ErrorTemplates, Fields, IdRule, Pairing, Pairs, Plan, Violation, WireCall, id_of, quoted, report_pairs,
};

const IDS: IdRule = IdRule {
    fit: shortened,
    missing: "Missing required parameter: 'call_id' of a function call.",
    invalid: "Invalid 'call_id' '{}': expected a string with maximum length 64 (string_above_max_length).",
    double: "Duplicate call_id '{}' among the calls of one response.",
    ..openai_chat::rules::IDS
};

const ERROR_TEMPLATES: ErrorTemplates = ErrorTemplates {
    dangling: "No tool output, or approval, found for call {}.",
    orphan: "No tool call found for tool call output with call_id {}.",
    duplicate: "More than one output for call {}: each call has one.",
};

/// What an item is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

/// An item of the list, as read.
struct Item<'a> {
    kind: Kind,
    value: JsonRef<'a>,
    /// What stands for it in the new list.
    piece: BodyPiece,
}

/// Plans the repair of a Responses body.
pub(crate) fn plan<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    // What the server holds is not in this list, so an output here may answer a call there.
    let held = plan.body.find("previous_response_id").is_some()
        || plan.body.find("conversation").is_some()
        || list.items().any(|item| kind_of(item) == "item_reference");
    // Recorded: call, message, call, outputs is refused by DeepSeek, and nobody else.
    let model = plan.body.owned_text("model");
    let adjacent = crate::text::has(&model, "deepseek");
    let text = quoted(plan.options.text());
    let mut reader = Reader {
        plan,
        pairs: Pairs::new(text.clone()),
        held,
        // Recorded: these two have ids of their own.
        loose: adjacent || crate::text::has(&model, "grok"),
        group: 0,
        fresh: true,
        answered: false,
        era: 0,
        said: 0,
        said_at_call: 0,
        calls: Vec::new(),
        outputs: Vec::new(),
        served: IdMap::with_seed(Seed::default()),
    };
    let mut items = Vec::new();
    for (at, value) in list.items().enumerate() {
        reader.plan.at = at;
        items.push(reader.item(value));
    }
    let Reader { plan, mut pairs, calls, outputs, .. } = reader;
    pairs.settle(plan, &IDS);
    for call in &mut pairs.calls {
        // Nobody can make up a screenshot.
        call.omitted |= call.answer.is_none() && call.label == "computer_call";
    }
    for (output, answer) in outputs.iter().zip(&mut pairs.results) {
        answer.reply_to = None;
        let served = output.served && matches!(answer.pairing, Pairing::Orphan | Pairing::Duplicate);
        if (served || held && answer.pairing == Pairing::Orphan) && answer.has_valid_id {
            answer.pairing = Pairing::HeldByServer;
        }
        let Pairing::Paired(c) = answer.pairing else { continue };
        let (Some(call), Some(asked)) = (pairs.calls.get(c), calls.get(c)) else { continue };
        // Of OpenAI's own tools it is not known that nobody may speak in between.
        let near = asked.era == output.era || !takes_parts(&call.label);
        let legal = call.order < answer.order && near && !(adjacent && output.said > asked.said);
        answer.reply_to = legal.then_some(call.group);
    }
    let sentence = "Missing or invalid parameter: 'call_id' must be that of its call.";
    pairs.write_ids(plan, &id_name, sentence);
    report_pairs(plan, &pairs, &ERROR_TEMPLATES);
    let made = |call: &WireCall<'_>| {
        let (kind, name) = match &*call.label {
            "tool_search_call" => ("tool_search_output".into(), "call_id"),
            "mcp_approval_request" => ("mcp_approval_response".into(), "approval_request_id"),
            kind => (format!("{kind}_output"), "call_id"),
        };
        let mut out = format!("{{\"type\":\"{kind}\",\"{name}\":{}", quoted(&call.new_id));
        // A program's call is answered to it.
        if let Some(caller) = call.value.find("caller").filter(|caller| caller.says("type", "program")) {
            out += &format!(",\"caller\":{}", caller.as_raw());
        }
        match &*call.label {
            "tool_search_call" => out += ",\"execution\":\"client\",\"tools\":[]}",
            "mcp_approval_request" => out += ",\"approve\":false}",
            "shell_call" => {
                let exit = "\"outcome\":{\"type\":\"exit\",\"exit_code\":1}";
                out += &format!(",\"output\":[{{\"stdout\":\"\",\"stderr\":{text},{exit}}}]}}");
            }
            kind => {
                out += if kind == "apply_patch_call" { ",\"status\":\"failed\"" } else { "" };
                out += &format!(",\"output\":{text}}}");
            }
        }
        out
    };
    // "… was provided without its required 'reasoning' item" (continue PR#11785): the call goes on by its call id alone.
    for call in order::place(plan, list, items, &pairs, &made).iter().filter_map(|c| pairs.calls.get(*c)) {
        if call.value.text("id").is_some_and(|id| id.starts_with("fc_")) {
            plan.edits.remove(call.value, "id");
        }
    }
}

/// What stands before a call or output, for what may stand between the two.
struct Asked {
    /// Barriers before it.
    era: usize,
    /// The model's messages before it; for an output, before the last call before it.
    said: usize,
    /// For an output: a call that is not ours to pair has its id, or may have it.
    served: bool,
}

struct Reader<'p, 'a, 'o> {
    plan: &'p mut Plan<'a, 'o>,
    pairs: Pairs<'a>,
    /// The server holds more of the history.
    held: bool,
    /// The model is not OpenAI's, nor are the ids of items.
    loose: bool,
    /// The step that is read now: its calls belong together.
    group: usize,
    /// The next call begins a step: somebody else has spoken.
    fresh: bool,
    /// An output has come since the last call, so the next call is of another response.
    answered: bool,
    era: usize,
    said: usize,
    said_at_call: usize,
    calls: Vec<Asked>,
    outputs: Vec<Asked>,
    /// Ids of calls of other kinds. Each may have one output of a function's (recorded for `tool_search_call`): then it is 0.
    /// With their kind: 1, and 0 for calls that are ours to pair.
    served: IdMap<usize>,
}

impl<'a> Reader<'_, 'a, '_> {
    fn item(&mut self, value: JsonRef<'a>) -> Item<'a> {
        let gone = |piece| Item { kind: Kind::Gone, value, piece };
        if !value.is_object() {
            if !self.plan.admits_bare(value) {
                return gone(self.plan.edits.source(value));
            }
            let piece = items::text(self.plan, value);
            let kind = if piece.is_some() { self.barrier() } else { Kind::Gone };
            return Item { kind, value, piece: piece.unwrap_or(self.plan.edits.source(value)) };
        }
        let fields = Fields::of(value);
        if !self.plan.admits(&fields) {
            return gone(self.plan.edits.source(value));
        }
        let kind = items::kind(self.plan, &fields);
        let mut spill = Vec::new();
        if kind == "reasoning" && fields.find("summary").is_none() {
            let sentence = "Missing required parameter: 'input[{at}].summary'.";
            self.plan
                .rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(value, "summary"), "[]".into());
        }
        let kind = match &*kind {
            "text" => self.barrier(),
            "message" => self.message(&fields, &mut spill),
            "reasoning" if fields.text("id").is_some_and(|id| id.starts_with("rs_")) => Kind::Reasoning,
            kind => self.pair(kind, &fields),
        };
        let mut piece = self.plan.edits.source(value);
        if !spill.is_empty() {
            // The user shows it right behind. Should that part a call from its output, the next round moves the output.
            let user = BodyPiece::wrapped("{\"role\":\"user\",\"content\":[", spill, "]}");
            piece = BodyPiece::wrapped("", vec![piece, user], "");
        }
        Item { kind, value, piece }
    }

    fn barrier(&mut self) -> Kind {
        self.era += 1;
        self.fresh = true;
        Kind::Barrier
    }

    fn message(&mut self, fields: &Fields<'a>, spill: &mut Vec<BodyPiece>) -> Kind {
        match items::message(self.plan, fields, spill) {
            None => Kind::Gone,
            Some(true) => {
                self.said += 1;
                Kind::Said(items::id(self.plan, fields, "msg", self.loose))
            }
            Some(false) => {
                items::id(self.plan, fields, "msg", self.loose);
                self.barrier()
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

    /// A call or an output, if it is ours to pair.
    fn pair(&mut self, kind: &str, fields: &Fields<'a>) -> Kind {
        let Some((label, calls)) = pair_of(kind) else { return self.other(kind, fields) };
        let id = fields
            .get(id_name(label, calls))
            .or_else(|| fields.get("id").filter(|_| kind == "local_shell_call_output"));
        let (own, sound) = id_of(id);
        let own = format!("{label} {}", own.unwrap_or_default());
        let there = self.held || !sound || runs_on_server(fields.object) || !calls && self.served.get(&own) == Some(&1);
        match (takes_parts(label), calls) {
            (true, true) => {
                items::call(self.plan, kind, fields);
                items::id(self.plan, fields, if kind == "function_call" { "fc" } else { "ctc" }, self.loose);
            }
            (true, false) => items::output(self.plan, fields),
            (false, _) if there => return self.other(kind, fields),
            (false, _) => {}
        }
        self.pairs.space = self.space(label, id, calls);
        let label = label.to_owned();
        if calls {
            self.begin();
            self.served.insert(own, 0);
            self.calls.push(Asked { era: self.era, said: self.said, served: false });
            return Kind::Call(self.pairs.add_call(fields.object, id, "", self.group, label));
        }
        let near = (!self.fresh).then_some(self.group);
        self.answered = true;
        // Of these it is not known that they are refused without a call. Others may answer one that the server holds.
        let known = kind == "tool_search_output"
            || kind == "mcp_approval_response"
            || self.held && !self.served.contains_key(&own);
        let a = self.pairs.add_result(fields.object, id, "", near, label, fields.get("output"));
        let id = self.pairs.results.last().and_then(|answer| answer.id.as_ref());
        let served = id.and_then(|id| self.served.get_mut(id)).is_some_and(|left| std::mem::take(left) > 0);
        self.outputs.push(Asked { era: self.era, said: self.said_at_call, served: served || known });
        Kind::Output(a)
    }

    /// Where an id is looked for. Functions, custom tools and a client's search have ids in common (recorded); a call of another
    /// kind has its own, and a function's output is taken for its answer where no function has the id.
    fn space(&self, label: &str, id: Option<JsonRef<'_>>, calls: bool) -> &'static str {
        let id = id_of(id).0.unwrap_or_default();
        let asked = |kind: &str| self.served.contains_key(&format!("{kind} {id}"));
        match CallKind::of(label) {
            Some(own) if own.is_hosted() => own.kind,
            _ if label == "mcp_approval_request" => "mcp_approval_request",
            // What a search found answers no function.
            None if !calls && !asked("tool_search_call") => "tool_search_call",
            None => "",
            Some(_) if calls || ["function_call", "custom_tool_call", "tool_search_call"].into_iter().any(asked) => "",
            Some(_) => HOSTED.into_iter().map(|own| own.kind).find(|kind| asked(kind)).unwrap_or_default(),
        }
    }

    /// An item that stays as it is.
    fn other(&mut self, kind: &str, fields: &Fields<'a>) -> Kind {
        if is_known(kind) {
            self.plan.pass(fields.object);
        } else {
            let sentence = "Items of type '{}' are not known here: kept, because the provider may take them.";
            self.plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(fields.object).quoting(kind));
        }
        if kind.ends_with("_call")
            && let (Some(id), true) = id_of(fields.get("call_id"))
        {
            self.begin();
            self.served.get_or_insert(&format!("{kind} {id}"), 1);
            self.served.insert(id, 1);
        }
        Kind::Other
    }
}

/// Whether it is a call of a function or of a custom tool.
fn takes_parts(label: &str) -> bool {
    CallKind::of(label).is_some_and(CallKind::takes_parts)
}
