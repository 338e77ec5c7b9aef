//! Reads the steps of a body: reports what is wrong in each, and collects calls and results for pairing.

use super::contents::{CONTENT_START, OF_CONTENT, bare_content, fix_contents, fix_result};
use super::names::{fitting_name, has_valid_name};
use super::order::{RuleStep, RuleStepKind};
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::gemini_interactions::step::{FUNCTION_RESULT, SIGNATURE, StepKind, is_of_server, signature_of};
use crate::provider::rules::{BodyPiece, Fields, FoundCall, FoundResult, Pairs, Plan, Violation, object_text, quoted};

const USER_START: &str = "{\"type\":\"user_input\",\"content\":[";
const MODEL_START: &str = "{\"type\":\"model_output\",\"content\":[";

/// Returns the JSON of a step up to the entries of its `content`, if it has other members than that and its type.
fn opening_of(step: JsonRef<'_>) -> Option<String> {
    let is_other = |key: JsonRef<'_>| !key.is_text("type") && !key.is_text("content");
    step.entries().any(|(key, _)| is_other(key)).then(|| {
        let mut out = String::from("{");
        for (key, value) in step.entries().filter(|(key, _)| !key.is_text("content")) {
            out.push_str(&format!("{}:{},", key.as_raw(), value.as_raw()));
        }
        out.push_str("\"content\":[");
        out
    })
}

/// Reads steps in their order.
pub(super) struct StepReader<'p, 'a, 'o> {
    pub plan: &'p mut Plan<'a, 'o>,
    pub pairs: Pairs<'a>,
    pub steps: Vec<RuleStep>,
    /// An item became several steps, so the list is written anew.
    pub is_rebuilt: bool,
    /// The calls of the current turn that are the first of their run without a signature before them. The current turn
    /// begins after the last step of the user.
    pub unsigned: Vec<JsonRef<'a>>,
    /// The run has a signed thought or a call, after which no call of it needs a signature: the first of parallel calls
    /// has it for all.
    is_signature_settled: bool,
    /// The list has steps, so that a content needs one around it.
    has_steps: bool,
    /// The number of runs of the model's steps so far.
    run: usize,
    /// The kind of the last step that is not removed.
    last: Option<RuleStepKind>,
}

impl<'p, 'a, 'o> StepReader<'p, 'a, 'o> {
    /// Creates a reader. `result_text` is the content of synthetic results, as a JSON string.
    pub fn new(plan: &'p mut Plan<'a, 'o>, result_text: String, has_steps: bool) -> Self {
        let pairs = Pairs::new(result_text);
        Self {
            plan,
            pairs,
            steps: Vec::new(),
            is_rebuilt: false,
            unsigned: Vec::new(),
            is_signature_settled: false,
            has_steps,
            run: 0,
            last: None,
        }
    }

    pub fn read(&mut self, value: JsonRef<'a>) {
        if !value.is_object() {
            return self.non_object(value);
        }
        let fields = Fields::of(value);
        if !self.plan.admits(&fields) {
            return self.push(RuleStepKind::Removed, value);
        }
        match StepKind::of_fields(&fields) {
            StepKind::UserTurn => self.turn(&fields, USER_START),
            StepKind::ModelTurn => self.turn(&fields, MODEL_START),
            StepKind::Content => self.content(&fields),
            kind => self.step(kind, &fields),
        }
    }

    /// Reads an item that is no object: a text becomes a user_input, anything else is removed.
    fn non_object(&mut self, value: JsonRef<'a>) {
        if !self.plan.admits_bare(value) {
            return self.push(RuleStepKind::Removed, value);
        }
        let is_text = value.kind() == JsonKind::String && !value.is_text("");
        let violation = Violation::error(FindingCode::Malformed, "input[{at}]: a step is an object.").at(value);
        self.plan.report(if is_text { violation.rewritten() } else { violation.dropped() });
        if !is_text {
            return self.push(RuleStepKind::Removed, value);
        }
        let content = self.plan.as_text(CONTENT_START, value);
        self.push_piece(RuleStepKind::Input, BodyPiece::wrapped(USER_START, vec![content], "]}"));
    }

    fn push(&mut self, kind: RuleStepKind, value: JsonRef<'a>) {
        let piece = self.plan.edits.source(value);
        self.push_piece(kind, piece);
    }

    fn push_piece(&mut self, kind: RuleStepKind, piece: BodyPiece) {
        if kind == RuleStepKind::Input {
            self.unsigned.clear();
        }
        if kind != RuleStepKind::Removed {
            self.begin_run(kind);
            self.last = Some(kind);
        }
        self.steps.push(RuleStep { kind, run: self.run, piece });
    }

    /// Counts a run if a step of this kind begins one.
    fn begin_run(&mut self, kind: RuleStepKind) {
        if kind.is_of_model() && !self.last.is_some_and(RuleStepKind::is_of_model) {
            self.run += 1;
            self.is_signature_settled = false;
            self.last = Some(kind);
        }
    }

    /// Reads a content without a step. Among steps it needs one.
    fn content(&mut self, fields: &Fields<'a>) {
        if !self.fix_content(fields) {
            return self.push(RuleStepKind::Removed, fields.object);
        }
        self.plan.pass(fields.object);
        if !self.has_steps {
            return self.push(RuleStepKind::Input, fields.object);
        }
        let sentence = "input[{at}]: the list has steps or contents, not both.";
        self.plan.report(Violation::error(FindingCode::Malformed, sentence).at(fields.object).rewritten());
        let piece = BodyPiece::wrapped(USER_START, vec![self.plan.edits.source(fields.object)], "]}");
        self.push_piece(RuleStepKind::Input, piece);
    }

    fn fix_content(&mut self, fields: &Fields<'a>) -> bool {
        super::contents::fix_content(self.plan, fields, &OF_CONTENT)
    }

    /// Reads a turn of the form before 2026-06-08. Each of its contents is a step now.
    fn turn(&mut self, fields: &Fields<'a>, start: &'static str) {
        let kind = if start == USER_START { RuleStepKind::Input } else { RuleStepKind::Model };
        let sentence = "input[{at}]: turns with a role were removed on 2026-06-08; the list has steps.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at(fields.object);
        let Some(content) = fields.find("content") else {
            self.plan.report(violation.dropped());
            return self.push(RuleStepKind::Removed, fields.object);
        };
        self.plan.report(violation.rewritten());
        self.is_rebuilt = true;
        if content.kind() != JsonKind::Array && !content.is_object() {
            let text = self.plan.as_text(CONTENT_START, content);
            return self.push_piece(kind, BodyPiece::wrapped(start, vec![text], "]}"));
        }
        let single = Some(content).filter(|content| content.is_object());
        for value in single.into_iter().chain(content.items()) {
            if self.plan.is_over_budget() {
                return;
            }
            let inner = Fields::of(value);
            let is_model = kind == RuleStepKind::Model;
            let is_server_step = is_model && is_of_server(&inner.owned_text("type"));
            match StepKind::of_fields(&inner) {
                _ if !value.is_object() => {
                    if let Some(text) = bare_content(self.plan, value, &OF_CONTENT) {
                        self.push_piece(kind, BodyPiece::wrapped(start, vec![text], "]}"));
                    }
                }
                step @ StepKind::FunctionResult => self.step(step, &inner),
                step @ (StepKind::Thought | StepKind::FunctionCall) if is_model => self.step(step, &inner),
                step @ StepKind::Other if is_server_step => self.step(step, &inner),
                _ => {
                    if self.fix_content(&inner) {
                        let source = self.plan.edits.source(value);
                        self.push_piece(kind, BodyPiece::wrapped(start, vec![source], "]}"));
                    }
                }
            }
        }
    }

    fn step(&mut self, kind: StepKind, fields: &Fields<'a>) {
        self.fix_signature(fields);
        match kind {
            StepKind::UserInput => self.list_of_contents(fields, RuleStepKind::Input),
            StepKind::ModelOutput => self.list_of_contents(fields, RuleStepKind::Model),
            StepKind::FunctionCall => self.call(fields),
            StepKind::FunctionResult => self.result(fields),
            _ => {
                self.plan.pass(fields.object);
                self.push(RuleStepKind::Model, fields.object);
                self.is_signature_settled |= kind == StepKind::Thought && signature_of(fields.object).is_some();
            }
        }
    }

    /// Removes a signature that cannot be one.
    fn fix_signature(&mut self, fields: &Fields<'a>) {
        if fields.find(SIGNATURE).is_some_and(|signature| signature.kind() != JsonKind::String) {
            let sentence = "input[{at}].signature: a text is required.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            self.plan.report(violation.at_member(fields.object, SIGNATURE).dropped());
            self.plan.edits.remove(fields.object, SIGNATURE);
        }
    }

    /// Reads a step of the user or the model.
    fn list_of_contents(&mut self, fields: &Fields<'a>, kind: RuleStepKind) {
        let content = fields.find("content");
        if content.is_some_and(|content| content.items().any(|inner| inner.has_text("type", FUNCTION_RESULT))) {
            return self.lift_results(fields, kind);
        }
        // A step may lack its contents: the types require only `type`, and one of the model may have an `error`.
        let is_kept = content.is_none_or(|content| fix_contents(self.plan, fields, content));
        if is_kept {
            self.plan.pass(fields.object);
        }
        self.push(if is_kept { kind } else { RuleStepKind::Removed }, fields.object);
    }

    /// Makes the results among the contents of a step steps of their own, as AI SDKs write them.
    fn lift_results(&mut self, fields: &Fields<'a>, kind: RuleStepKind) {
        let sentence = "input[{at}].content: a function_result is a step, not a content.";
        self.plan.report(Violation::error(FindingCode::Malformed, sentence).at(fields.object).rewritten());
        self.is_rebuilt = true;
        let start = if kind == RuleStepKind::Input { USER_START } else { MODEL_START };
        // Other members, such as an error, stay with the first contents.
        let mut opening = opening_of(fields.object);
        let mut contents = Vec::new();
        for value in fields.find("content").unwrap_or_default().items() {
            let inner = Fields::of(value);
            if value.has_text("type", FUNCTION_RESULT) {
                self.push_contents(kind, (&mut opening, start), &mut contents);
                self.result(&inner);
            } else if !value.is_object() {
                contents.extend(bare_content(self.plan, value, &OF_CONTENT));
            } else if self.fix_content(&inner) {
                contents.push(self.plan.edits.source(value));
            }
        }
        self.push_contents(kind, (&mut opening, start), &mut contents);
        if let Some(opening) = opening {
            self.push_piece(kind, BodyPiece::wrapped(&opening, Vec::new(), "]}"));
        }
    }

    /// Adds a step with these contents. It begins with `opening`, unless another step has taken that, or with `start`.
    fn push_contents(
        &mut self,
        kind: RuleStepKind,
        (opening, start): (&mut Option<String>, &'static str),
        contents: &mut Vec<BodyPiece>,
    ) {
        if !contents.is_empty() {
            let opening = opening.take();
            let piece = BodyPiece::wrapped(opening.as_deref().unwrap_or(start), std::mem::take(contents), "]}");
            self.push_piece(kind, piece);
        }
    }

    /// Gives a call, or a result, the name that the tool can have. Both become the same.
    fn fix_name(&mut self, fields: &Fields<'a>, name: String, sentence: &'static str) {
        if !has_valid_name(&name) {
            let violation = Violation::error(FindingCode::Malformed, sentence);
            let violation = violation.at_member(fields.object, "name").quoting(&name);
            self.plan.rewrite(violation, quoted(&fitting_name(&name)));
        }
    }

    fn call(&mut self, fields: &Fields<'a>) {
        let sentence = "function_call.name: '{}' is no name of a function.";
        self.fix_name(fields, fields.owned_text("name"), sentence);
        let arguments = fields.get("arguments");
        if !arguments.is_some_and(JsonRef::is_object) {
            let sentence = "function_call.arguments: an object is required.";
            let violation = Violation::error(FindingCode::InvalidArguments, sentence);
            self.plan.rewrite(violation.at_member(fields.object, "arguments"), object_text(arguments));
        }
        self.begin_run(RuleStepKind::Model);
        let is_settled = std::mem::replace(&mut self.is_signature_settled, true);
        if !is_settled && signature_of(fields.object).is_none() {
            self.unsigned.push(fields.object);
        }
        let index = self.pairs.add_call(FoundCall {
            value: fields.object,
            id: fields.get("id"),
            group: self.run,
            ..FoundCall::default()
        });
        self.push(RuleStepKind::Call(index), fields.object);
    }

    fn result(&mut self, fields: &Fields<'a>) {
        fix_result(self.plan, fields);
        match fields.text("name").filter(|name| !name.is_empty()) {
            Some(name) => {
                let sentence = "function_result.name: '{}' is no name of a function.";
                self.fix_name(fields, name.into_owned(), sentence);
            }
            // The types of 3.1.0 allow that, so a name is added only once the service asks for it.
            None => {
                let sentence = "function_result.name: the service may refuse a result without the name of its call.";
                self.plan.report(Violation::warning(FindingCode::Malformed, sentence).at_member(fields.object, "name"));
            }
        }
        let replies = self.last.is_some_and(|last| last.is_of_model() || matches!(last, RuleStepKind::Result(_)));
        let index = self.pairs.add_result(FoundResult {
            value: fields.object,
            id: fields.get("call_id"),
            reply_to: replies.then_some(self.run),
            content: fields.get("result"),
            ..FoundResult::default()
        });
        self.push(RuleStepKind::Result(index), fields.object);
    }
}
