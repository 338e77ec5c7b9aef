//! Reads the items of `input`: reports what is wrong in each, and collects calls and outputs for pairing.

use super::async_tools::{AsyncTools, NamedOutput};
use super::input_context::InputContext;
use super::input_item::{InputItem, InputKind};
use super::items;
use crate::finding::FindingCode;
use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::openai_responses::kinds::{CallKind, HOSTED, id_name, is_known, pair_of, runs_on_server};
use crate::provider::rules::{BodyPiece, Fields, FoundCall, FoundResult, Pairs, Plan, Violation, id_of};

/// Where a call or an output stands, to decide whether the items between the two are allowed.
pub(super) struct PairContext {
    /// The number of messages of the user or the system before it.
    pub section: usize,
    /// The number of messages of the model before it; for an output, before the last call before it.
    pub answer_messages: usize,
    /// For an output: its call may be one that is not paired here.
    pub may_answer_opaque_call: bool,
}

/// Reads items in their order.
pub(super) struct InputReader<'p, 'a, 'o> {
    pub plan: &'p mut Plan<'a, 'o>,
    context: InputContext,
    async_tools: AsyncTools,
    pub pairs: Pairs<'a>,
    /// The number of steps so far. A step is the calls of one response.
    step: usize,
    /// The next call begins a step: a message of the user or the system came since the last one.
    after_input: bool,
    /// The next call begins a step: an output came since the last one.
    after_output: bool,
    /// The number of messages of the user or the system so far.
    section: usize,
    /// The number of messages of the model so far, and before the last call.
    answer_messages: usize,
    answer_messages_at_call: usize,
    /// The context of each call and of each output.
    pub calls: Vec<PairContext>,
    pub outputs: Vec<PairContext>,
    /// The outputs that name no call.
    pub named_outputs: Vec<NamedOutput>,
    opaque_calls: OpaqueCalls,
}

/// The calls so far, by id and by type with id. Calls that the rules do not pair are opaque.
struct OpaqueCalls(IdMap<usize>);

impl OpaqueCalls {
    /// The id comes first: of keys that begin alike, more bytes are compared.
    fn key(call_type: &str, id: &str) -> String {
        [id, " ", call_type].concat()
    }

    /// Records a call that is paired.
    fn record_paired(&mut self, call_type: &str, id: &str) {
        self.0.insert(Self::key(call_type, id), 0);
    }

    /// Records an opaque call. It may have one output of a function (recorded for `tool_search_call`).
    fn record_opaque(&mut self, call_type: &str, id: String) {
        self.0.get_or_insert(&Self::key(call_type, &id), 1);
        self.0.insert(id, 1);
    }

    fn contains(&self, call_type: &str, id: &str) -> bool {
        self.0.contains_key(&Self::key(call_type, id))
    }

    fn is_opaque(&self, call_type: &str, id: &str) -> bool {
        self.0.get(&Self::key(call_type, id)) == Some(&1)
    }

    /// Returns true if an opaque call of that id has no output yet, and gives it one.
    fn take_output(&mut self, id: &str) -> bool {
        self.0.get_mut(id).is_some_and(|left| std::mem::take(left) > 0)
    }
}

/// The type and the id of a call or an output.
struct PairKey<'k, 'a> {
    /// The `type` of the call, for an output too.
    call_type: &'k str,
    id: Option<JsonRef<'a>>,
    /// The id as text; empty if there is none.
    id_text: String,
    has_valid_id: bool,
    is_call: bool,
}

impl<'p, 'a, 'o> InputReader<'p, 'a, 'o> {
    /// Creates a reader. `output_text` is the content of synthetic outputs, as a JSON string.
    pub fn new(
        plan: &'p mut Plan<'a, 'o>,
        context: InputContext,
        async_tools: AsyncTools,
        output_text: String,
    ) -> Self {
        Self {
            plan,
            context,
            async_tools,
            pairs: Pairs::new(output_text),
            step: 0,
            after_input: true,
            after_output: false,
            section: 0,
            answer_messages: 0,
            answer_messages_at_call: 0,
            calls: Vec::new(),
            outputs: Vec::new(),
            named_outputs: Vec::new(),
            opaque_calls: OpaqueCalls(IdMap::with_seed(Seed::default())),
        }
    }

    pub fn item(&mut self, value: JsonRef<'a>) -> InputItem<'a> {
        if !value.is_object() {
            return self.non_object(value);
        }
        let fields = Fields::of(value);
        if !self.plan.admits(&fields) {
            return self.removed(value);
        }
        let item_type = items::type_of(self.plan, &fields);
        let mut moved_parts = Vec::new();
        let kind = match &*item_type {
            "text" => self.input_message(),
            "message" => self.message(&fields, &mut moved_parts),
            "reasoning" => self.reasoning(&fields),
            item_type => self.pair(item_type, &fields),
        };
        let mut piece = self.plan.edits.source(value);
        if !moved_parts.is_empty() {
            // If this user message parts a call from its output, the next round moves the output.
            let user = BodyPiece::wrapped("{\"role\":\"user\",\"content\":[", moved_parts, "]}");
            piece = BodyPiece::wrapped("", vec![piece, user], "");
        }
        InputItem { kind, value, piece }
    }

    fn removed(&self, value: JsonRef<'a>) -> InputItem<'a> {
        InputItem { kind: InputKind::Removed, value, piece: self.plan.edits.source(value) }
    }

    /// Fixes an item that is no object: a string becomes a user message, anything else is removed.
    fn non_object(&mut self, value: JsonRef<'a>) -> InputItem<'a> {
        if !self.plan.admits_bare(value) {
            return self.removed(value);
        }
        match items::fix_non_object(self.plan, value) {
            Some(piece) => InputItem { kind: self.input_message(), value, piece },
            None => self.removed(value),
        }
    }

    /// Records a message of the user or the system.
    fn input_message(&mut self) -> InputKind {
        self.section += 1;
        self.after_input = true;
        InputKind::InputMessage
    }

    fn message(&mut self, fields: &Fields<'a>, moved_parts: &mut Vec<BodyPiece>) -> InputKind {
        let Some(sender) = items::fix_message(self.plan, fields, moved_parts) else { return InputKind::Removed };
        let has_id = self.fix_id(fields, "msg");
        match sender {
            items::Sender::Model => {
                self.answer_messages += 1;
                InputKind::AnswerMessage { has_id }
            }
            items::Sender::Other => self.input_message(),
        }
    }

    fn fix_id(&mut self, fields: &Fields<'a>, prefix: &str) -> bool {
        items::fix_id(self.plan, fields, prefix, self.context.has_foreign_ids)
    }

    fn reasoning(&mut self, fields: &Fields<'a>) -> InputKind {
        if fields.find("summary").is_none() {
            let sentence = "Missing required parameter: 'input[{at}].summary'.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            self.plan.rewrite(violation.at_member(fields.object, "summary"), "[]".into());
        }
        match fields.text("id") {
            Some(id) if id.starts_with("rs_") => InputKind::Reasoning,
            _ => self.other("reasoning", fields),
        }
    }

    /// Reads an item that is no message and no reasoning: a call or an output, if it is one that is paired here.
    fn pair(&mut self, item_type: &str, fields: &Fields<'a>) -> InputKind {
        if item_type == "function_call_output"
            && fields.find("call_id").is_none()
            && !fields.owned_text("name").is_empty()
        {
            return self.named_output(fields);
        }
        let Some((call_type, is_call)) = pair_of(item_type) else { return self.other(item_type, fields) };
        let id = fields
            .get(id_name(call_type, is_call))
            .or_else(|| fields.get("id").filter(|_| item_type == "local_shell_call_output"));
        let (id_text, has_valid_id) = id_of(id);
        let key = PairKey { call_type, id, id_text: id_text.unwrap_or_default(), has_valid_id, is_call };
        if !takes_parts(call_type) && self.is_opaque(&key, fields) {
            return self.other(item_type, fields);
        }
        if takes_parts(call_type) {
            self.fix_pair(item_type, is_call, fields);
        }
        self.pairs.space = self.id_space(&key);
        if is_call { self.call(&key, fields) } else { self.output(item_type, &key, fields) }
    }

    /// Returns true for a call or an output of OpenAI's own tools that is not paired: the server answers it, or may.
    fn is_opaque(&self, key: &PairKey<'_, 'a>, fields: &Fields<'a>) -> bool {
        let answers_opaque = !key.is_call && self.opaque_calls.is_opaque(key.call_type, &key.id_text);
        self.context.has_stored_history || !key.has_valid_id || runs_on_server(fields.object) || answers_opaque
    }

    /// Fixes a call or output of a function or a custom tool.
    fn fix_pair(&mut self, item_type: &str, is_call: bool, fields: &Fields<'a>) {
        if is_call {
            items::fix_call(self.plan, item_type, fields);
            self.fix_id(fields, if item_type == "function_call" { "fc" } else { "ctc" });
        } else {
            items::fix_output(self.plan, fields);
        }
    }

    fn call(&mut self, key: &PairKey<'_, 'a>, fields: &Fields<'a>) -> InputKind {
        self.begin_step();
        self.opaque_calls.record_paired(key.call_type, &key.id_text);
        self.calls.push(PairContext {
            section: self.section,
            answer_messages: self.answer_messages,
            may_answer_opaque_call: false,
        });
        InputKind::Call(self.pairs.add_call(FoundCall {
            value: fields.object,
            id: key.id,
            alias: "",
            group: self.step,
            label: key.call_type.to_owned(),
            may_stay_open: takes_parts(key.call_type) && self.async_tools.allow_open(fields),
        }))
    }

    /// Reads an output that names its tool in place of its call.
    fn named_output(&mut self, fields: &Fields<'a>) -> InputKind {
        items::fix_output(self.plan, fields);
        self.plan.pass(fields.object);
        self.after_output = true;
        self.named_outputs.push(NamedOutput { name: fields.owned_text("name"), calls_before: self.pairs.calls.len() });
        InputKind::NamedOutput
    }

    fn output(&mut self, item_type: &str, key: &PairKey<'_, 'a>, fields: &Fields<'a>) -> InputKind {
        let reply_to = (!self.after_input).then_some(self.step);
        self.after_output = true;
        // These may be accepted without a call. With stored history, others may answer a call that the server stores.
        let may_lack_call = matches!(item_type, "tool_search_output" | "mcp_approval_response")
            || self.context.has_stored_history && !self.opaque_calls.contains(key.call_type, &key.id_text);
        let index = self.pairs.add_result(FoundResult {
            value: fields.object,
            id: key.id,
            alias: "",
            reply_to,
            label: key.call_type.to_owned(),
            content: fields.get("output"),
        });
        let answers_opaque = self.opaque_calls.take_output(&key.id_text);
        self.outputs.push(PairContext {
            section: self.section,
            answer_messages: self.answer_messages_at_call,
            may_answer_opaque_call: answers_opaque || may_lack_call,
        });
        InputKind::Output(index)
    }

    /// Records that a call follows.
    fn begin_step(&mut self) {
        if self.after_input || self.after_output {
            self.step += 1;
            (self.after_input, self.after_output) = (false, false);
        }
        self.answer_messages_at_call = self.answer_messages;
    }

    /// Returns the set of ids in which a call and its output pair. Functions, custom tools and a client's tool search
    /// share one (recorded); every other kind of call has its own. A function's output answers a call of another kind
    /// if no function has its id.
    fn id_space(&self, key: &PairKey<'_, 'a>) -> &'static str {
        let has_call = |call_type: &str| self.opaque_calls.contains(call_type, &key.id_text);
        let shared = ["function_call", "custom_tool_call", "tool_search_call"];
        match CallKind::of(key.call_type) {
            Some(own) if own.is_hosted() => own.kind,
            _ if key.call_type == "mcp_approval_request" => "mcp_approval_request",
            // The output of a tool search answers no function.
            None if !key.is_call && !has_call("tool_search_call") => "tool_search_call",
            None => "",
            Some(_) if key.is_call || shared.into_iter().any(has_call) => "",
            Some(_) => HOSTED.into_iter().map(|own| own.kind).find(|kind| has_call(kind)).unwrap_or_default(),
        }
    }

    /// Reads an item that is kept as it is.
    fn other(&mut self, item_type: &str, fields: &Fields<'a>) -> InputKind {
        if is_known(item_type) {
            self.plan.pass(fields.object);
        } else {
            let sentence = "Items of type '{}' are not known here: kept, because the provider may take them.";
            let violation = Violation::warning(FindingCode::UnknownShape, sentence);
            self.plan.report(violation.at(fields.object).quoting(item_type));
        }
        if item_type.ends_with("_call")
            && let (Some(id), true) = id_of(fields.get("call_id"))
        {
            self.begin_step();
            self.opaque_calls.record_opaque(item_type, id);
        }
        InputKind::Other
    }
}

/// Returns true for a call of a function or of a custom tool.
pub(super) fn takes_parts(call_type: &str) -> bool {
    CallKind::of(call_type).is_some_and(CallKind::takes_parts)
}
