//! One door to the dialects: which one decodes, encodes, names a call.

use super::item_format::ItemFormat;
use super::neutral::{OfferedMedia, split_media, text_or_json};
pub(crate) use super::plain_names::{head_and_name, is_plain_id, plain};
use super::request::{
    AllowedToolsForm, MemberPath, Parameter, ProviderRequest, Settings, ToolChoice, ToolDefinition, nested_schema,
};
use super::rules::Plan;
use super::stream::AnswerReader;

use crate::finding::Report;
use crate::history::Incoming;
use crate::id::{IdMap, Seed, short_name};
use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Dialect, Message, Part};
use crate::replay::{DraftCall, DraftMessage};
use crate::tool::{ToolInvocation, ToolResult};
use std::borrow::Cow;

/// Where wire messages are written, with commas between them.
pub struct Wire<'o> {
    out: &'o mut String,
    count: u32,
}

impl<'o> Wire<'o> {
    /// Onto the end of `out`, which is empty or ends in a comma.
    pub fn new(out: &'o mut String) -> Self {
        Self { out, count: 0 }
    }

    /// Begins the next wire message.
    pub fn begin(&mut self) -> &mut String {
        if self.count > 0 {
            self.out.push(',');
        }
        self.count += 1;
        self.out
    }

    /// How many were begun.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// What [`Codec::encode`] needs beside the message.
pub(crate) struct EncodeContext<'c> {
    /// The messages before this one whose results are encoded with it: in this message, or together with the results of its calls.
    pub deferred: &'c [DraftMessage<'c>],
    pub settings: &'c Settings,
    pub report: &'c mut Report,
}

/// What a provider expects after an answer that it paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The same conversation again, with this answer: the provider goes on where it stopped.
    Resumes,
    /// Nothing: the request asked for an answer that ends here.
    Ends,
}

/// One dialect's side of the door. What is common has a default here.
pub(crate) trait Codec: ItemFormat {
    /// Converts a request in the shape of the provider's SDK to the shape of its API; none if it has that shape already.
    fn api_request(&self, _body: JsonRef<'_>) -> Option<Json> {
        None
    }

    /// Decodes what a body says beside its list: a system text that stands apart.
    fn decode_head(&self, _body: JsonRef<'_>, _items: &mut Vec<Incoming>) {}

    /// Decodes a list that is one text; false where the dialect has no such form.
    fn decode_text(&self, _text: JsonStr, _items: &mut Vec<Incoming>) -> bool {
        false
    }

    /// Decodes the items of a list, or of an answer.
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>);

    /// Decodes a block of a message's or a result's content. One that has no neutral meaning stays opaque.
    fn decode_block(&self, block: JsonRef<'_>) -> Part;

    /// Writes a block, in its own shape if `own`; false where the dialect has none for it.
    fn write_block(&self, out: &mut String, part: &Part, own: bool) -> bool;

    /// What the server wants otherwise: as the caller says, and as the request shows.
    fn settings(&self, request: &ProviderRequest) -> Settings {
        request.settings
    }

    /// Writes a draft message and the results of its calls.
    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>);

    /// A message of the user's that nobody refuses.
    fn plain(&self) -> &'static str {
        r#"{"role":"user","content":"."}"#
    }

    /// Whether a body may begin with that message as it was encoded. Asked of all that come before the user's first.
    fn may_begin(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Whether a body may end in that message as it was encoded. Otherwise the rules look at the body.
    fn may_end(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Whether a message may stand behind that one. Otherwise the rules look at the body.
    fn may_follow(&self, _before: &DraftMessage<'_>, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Whether a system message stands outside the list; `leading` while no other message came before it.
    fn stands_apart(&self, _message: &Message, _leading: bool) -> bool {
        false
    }

    /// The member beside the list that takes the system messages which stand apart; none where there is nothing to say.
    fn system(&self, _messages: &[&Message]) -> Option<(&'static str, Json)> {
        None
    }

    /// Whether a call may go out by that id.
    fn takes_id(&self, id: &str) -> bool;

    /// An id that the dialect takes, the same for the same `id`, which it does not take.
    fn legal_id(&self, id: &str) -> String {
        head_and_name(id)
    }

    /// How many cache marks a body may hold.
    fn most_marks(&self) -> usize {
        usize::MAX
    }

    /// Members of a body that a session writes: they are refused in `params`.
    fn reserved(&self) -> &'static [&'static str] {
        &["messages"]
    }

    /// Members of `params` that hold credentials in this dialect, in addition to those of every dialect. They are sent and never
    /// stored.
    fn credential_members(&self) -> &'static [MemberPath] {
        &[]
    }

    /// Keys of other dialects that this one answers with 400.
    fn foreign(&self) -> &'static [&'static str];

    /// Whether that member of a body is such a key.
    fn is_foreign(&self, name: &str, _value: JsonRef<'_>) -> bool {
        self.foreign().contains(&name)
    }

    /// Parameters that do not stand in the body by themselves: `write_defaults` has a place for them, or they need none.
    fn gathers(&self, _name: &str) -> bool {
        false
    }

    /// The member of an entry of `tools` that holds the definitions, where they do not stand there themselves.
    fn tools_in(&self) -> Option<&'static str> {
        None
    }

    /// The name by which the model is told of a tool.
    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(name)
    }

    /// Whether a `tool_choice` is said in this dialect's own words, and goes out as it is.
    fn is_own_choice(&self, choice: JsonRef<'_>) -> bool;

    /// Writes the members of a tool's definition.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition);

    /// Writes the member that says which tool is to be called; what the dialect cannot say is left out.
    fn write_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>);

    /// Writes what a body needs and `params` do not say; `named` are the members that are there.
    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        named: &[Cow<'_, str>],
        report: &mut Report,
    );

    /// Headers that the provider wants, unless the caller gives them.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Plans the edits that make a body valid: reports every violation and adds its edit to the plan.
    fn plan_repairs<'a>(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>);

    /// Returns the place of a parameter in the body: `temperature`, or `generationConfig.topP` for a member of an object. `None` if
    /// the dialect does not have it.
    fn parameter(&self, parameter: Parameter) -> Option<&'static str>;

    /// Returns a member's name as [`parameter`](Self::parameter) spells it.
    fn parameter_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(name)
    }

    /// Returns the JSON of a parameter's value that came from another dialect, for this dialect.
    fn parameter_value(&self, _parameter: Parameter, value: JsonRef<'_>) -> String {
        nested_schema(value)
    }

    /// Returns true if a body's member of that name holds the tool choice.
    fn names_tool_choice(&self, member: &str) -> bool {
        member == "tool_choice"
    }

    /// Returns true if a tool choice allows one call an answer only.
    fn forbids_parallel_calls(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// Returns the [reserved](Self::reserved) members that refer to messages which the provider stores.
    fn server_state(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if a tool definition may ask for arguments that match its schema exactly (`"strict":true`).
    fn has_strict_tools(&self) -> bool {
        true
    }

    /// Returns true if the parameters name a tool choice in another member than `tool_choice`, which is then left out.
    fn has_other_choice(&self, _params: JsonRef<'_>) -> bool {
        false
    }

    /// Returns the form of a choice among some tools; none if the dialect does not have one.
    fn allowed_tools_form(&self) -> Option<AllowedToolsForm> {
        None
    }

    /// Returns true if one item may stand in place of the list of items.
    fn takes_single_item(&self) -> bool {
        false
    }

    /// Returns true if a refusal has a form of its own; otherwise it is sent as text.
    fn has_refusals(&self) -> bool {
        true
    }

    /// Returns true if a result has a member that says that the tool failed. Otherwise its text says so.
    fn flags_errors(&self) -> bool {
        false
    }

    /// Returns true if the provider knows the file ids of another dialect.
    fn shares_files_with(&self, _other: Dialect) -> bool {
        false
    }

    /// Returns true if an image or file of another dialect can be sent.
    fn accepts_media(&self, media: &OfferedMedia<'_>) -> bool {
        media.has_bytes_or_url || media.has_known_file_id
    }

    /// Decodes the content of a result of this dialect for another dialect: texts, and images and files.
    fn decode_result(&self, result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
        let view = result.content.view();
        match view.kind() {
            JsonKind::Array => split_media(view.items().map(|block| self.decode_block(block))),
            JsonKind::Object => split_media([self.decode_block(view)]),
            _ => (vec![text_or_json(&result.content)], Vec::new()),
        }
    }

    /// Returns what the provider expects after an answer with this finish reason. `params` are those of the request.
    fn pause_after(&self, _finish_reason: &str, _params: JsonRef<'_>) -> Option<Pause> {
        None
    }

    /// Returns the parameters of a request that continues in a container of an earlier answer; `None` if `params` need no change.
    fn params_in_container(&self, _params: JsonRef<'_>, _container: &str) -> Option<Json> {
        None
    }

    /// For one response.
    fn assembler(&self) -> Box<dyn AnswerReader>;
}

/// The name by which a call goes out. A model may invent one that its own provider refuses to take back.
#[must_use]
pub fn tool_name(call: &ToolInvocation) -> Cow<'_, str> {
    if !call.name.is_empty() && is_plain_id(&call.name) {
        return Cow::Borrowed(&call.name);
    }
    let name = plain(&call.name, 64);
    if name.is_empty() { Cow::Borrowed("unnamed") } else { Cow::Owned(name) }
}

/// The id by which a call and its result go out: legal for the dialect, and the same text for the same call.
#[must_use]
pub(crate) fn call_id(codec: &dyn Codec, call: &ToolInvocation) -> JsonStr {
    JsonStr::new(&plain_id(codec, call))
}

fn plain_id(codec: &dyn Codec, call: &ToolInvocation) -> String {
    let id = match call.wire_id() {
        "" => format!("call_{}", short_name(&call.id, 20)),
        id => id.to_owned(),
    };
    if codec.takes_id(&id) { id } else { codec.legal_id(&id) }
}

/// The ids of one message's calls, each its own: two that fell together by being made legal are told apart.
#[must_use]
pub(crate) fn call_ids(codec: &dyn Codec, calls: &[DraftCall<'_>]) -> Vec<JsonStr> {
    // Ids in use, with the number of suffixed ids that were derived from each.
    let mut used: IdMap<usize> = IdMap::with_seed(Seed::default());
    let mut ids = Vec::new();
    for call in calls {
        let plain = plain_id(codec, call.invocation);
        let mut id = plain.clone();
        while used.contains_key(&id) {
            let derived = used.get_or_insert(&plain, 0);
            *derived += 1;
            let suffix = if *derived == 1 { "#".to_owned() } else { format!("#{derived}") };
            id = codec.legal_id(&(plain.clone() + &suffix));
        }
        used.insert(id.clone(), 0);
        ids.push(JsonStr::new(&id));
    }
    ids
}
