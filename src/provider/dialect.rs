//! The interface of a dialect, [`Codec`], and the names and ids of calls in requests.

use super::healing::{Cure, Remedy};
use super::item_format::ItemFormat;
use super::models::ModelFacts;
pub(crate) use super::name_charset::{is_plain_id, plain, plain_id_of};
use super::neutral::{OfferedMedia, split_media, text_or_json};
use super::reasoning_format::ReasoningFormat;
use super::request::{
    MemberPath, Parameter, ProviderRequest, Settings, TOOL_CHOICE, ToolChoice, ToolDefinition, nested_schema,
};
use super::rules::Plan;
use super::stream::AnswerReader;
use crate::clock::Ms;
use crate::finding::Report;
use crate::history::Incoming;
use crate::id::{IdMap, Seed, short_name};
use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Dialect, Message, Part};
use crate::replay::{DraftCall, DraftMessage, ExtraContent};
use crate::tool::{ToolInvocation, ToolResult};
use std::borrow::Cow;

/// Writes wire messages, separated by commas.
pub struct Wire<'o> {
    out: &'o mut String,
    count: u32,
    /// The indexes in `out` at which the second and later wire messages begin.
    later_starts: Vec<usize>,
}

impl<'o> Wire<'o> {
    /// Appends to `out`, which is empty or ends in a comma.
    pub fn new(out: &'o mut String) -> Self {
        Self { out, count: 0, later_starts: Vec::new() }
    }

    /// Begins the next wire message.
    pub fn begin(&mut self) -> &mut String {
        if self.count > 0 {
            self.out.push(',');
            self.later_starts.push(self.out.len());
        }
        self.count += 1;
        self.out
    }

    /// Returns how many wire messages were begun.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the indexes in the text at which the second and later wire messages begin.
    #[must_use]
    pub fn into_later_starts(self) -> Vec<usize> {
        self.later_starts
    }
}

/// What [`Codec::encode`] needs beside the message.
pub(crate) struct EncodeContext<'c> {
    /// The messages before this one whose results are encoded with it: in this message, or together with the results of its calls.
    pub deferred: &'c [DraftMessage<'c>],
    pub settings: &'c Settings,
    /// Returns the implementation of the dialect in which a result was received.
    pub codec_of: CodecOf,
    pub report: &'c mut Report,
}

/// Returns the implementation of a dialect.
pub(crate) type CodecOf = fn(Dialect) -> &'static dyn Codec;

/// How long providers keep what they have cached of a request, where nothing else is asked for: Anthropic five minutes after it was last used
/// (docs.claude.com, "Prompt caching"), OpenAI and Azure five to ten ("Prompt caching" of both); Google, Mistral and DeepSeek name no time.
/// Read in November 2026.
pub(crate) const SHORT_CACHE_LIFE: Ms = 300_000;

/// Returns how long OpenAI's APIs keep what they have cached of a request with these parameters.
pub(crate) fn retained_cache_life(params: JsonRef<'_>) -> Ms {
    if params.has_text("prompt_cache_retention", "24h") { 86_400_000 } else { SHORT_CACHE_LIFE }
}

/// Returns the indices of the answers in a list, after the last message of the user, that lack their reasoning.
pub(crate) type FindMissingReasoning = fn(JsonRef<'_>) -> Vec<usize>;

/// The limit of cache breakpoints: members of blocks that tell the provider to cache the body up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheBreakpoints {
    /// The member with its quotes: `"cache_control"`.
    pub member: &'static str,
    /// The most that a body may have.
    pub limit: usize,
}

/// The members of a body that name what the provider keeps of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceMembers {
    /// The id of a conversation.
    pub conversation: &'static str,
    /// The id of the response that the request continues.
    pub previous_response: &'static str,
}

/// What a provider expects after an answer that it paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The conversation with this answer: the provider continues it.
    Resumes,
    /// Nothing: the request asked for an answer that ends here, such as one with a limited number of server tool calls.
    Ends,
}

/// A wire format. Methods that most dialects share have a default.
pub(crate) trait Codec: ItemFormat + ReasoningFormat {
    /// Converts a request in the shape of the provider's SDK to the shape of its API; none if it has that shape already.
    fn api_request(&self, _body: JsonRef<'_>) -> Option<Json> {
        None
    }

    /// Decodes the members of a body beside the list: a system text, such as Anthropic's `system`.
    fn decode_head(&self, _body: JsonRef<'_>, _items: &mut Vec<Incoming>) {}

    /// Decodes a text in place of the list; returns false if the dialect has no such form.
    fn decode_text(&self, _text: JsonStr, _items: &mut Vec<Incoming>) -> bool {
        false
    }

    /// Decodes the items of a list, or of an answer.
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>);

    /// Decodes a block of a message's or a result's content. A block without a neutral meaning becomes an opaque part.
    fn decode_block(&self, block: JsonRef<'_>) -> Part;

    /// Writes a part as a block; by its template if `native`, that is, if the part was decoded from this dialect. Returns false if the
    /// dialect has no block for it.
    fn write_block(&self, out: &mut String, part: &Part, native: bool) -> bool;

    /// Returns what an answer that was decoded from this dialect contains in a form that only this dialect has, if the provider accepts an
    /// answer of nothing else.
    fn extra_content(&self, _answer: &Message) -> ExtraContent {
        ExtraContent::None
    }

    /// Returns the request's settings, completed with what its model and URL imply.
    fn settings(&self, request: &ProviderRequest) -> Settings {
        request.settings
    }

    /// Returns what a model accepts, by its name or the URL of a request to it.
    fn model_facts(&self, _name: &str) -> ModelFacts {
        ModelFacts::PERMISSIVE
    }

    /// Writes a draft message and the results of its calls.
    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>);

    /// Returns a user message that every server of the dialect accepts.
    fn placeholder_message(&self) -> &'static str {
        r#"{"role":"user","content":"."}"#
    }

    /// Returns true if a body may begin with this message as it is encoded. Called for the messages before the user's first one.
    fn may_begin(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Returns true if a body may end in this message as it is encoded. If not, the rules check the body.
    fn may_end(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Returns true if a message may follow another one. If not, the rules check the body.
    fn may_follow(&self, _before: &DraftMessage<'_>, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Returns true if a system message is encoded outside the list. `leading`: only system messages precede it.
    fn is_outside_list(&self, _message: &Message, _leading: bool) -> bool {
        false
    }

    /// Returns the member of the body, beside the list, that holds the system messages which are [outside](Self::is_outside_list) it;
    /// none if there are none. Reports the parts that it cannot hold.
    fn system_member(&self, _messages: &[&Message], _report: &mut Report) -> Option<(&'static str, Json)> {
        None
    }

    /// Returns true if the provider accepts a call id.
    fn accepts_call_id(&self, id: &str) -> bool;

    /// Returns an id that the provider accepts, derived from one that it does not accept. Equal ids give equal results.
    fn valid_call_id(&self, id: &str) -> String {
        plain_id_of(id)
    }

    /// Returns the limit of cache breakpoints in a body; `None` if there is none.
    fn cache_breakpoints(&self) -> Option<CacheBreakpoints> {
        None
    }

    /// Returns how long the provider keeps what it has cached of a request after the last one that used it, in milliseconds.
    fn cache_life(&self, _params: JsonRef<'_>) -> Ms {
        SHORT_CACHE_LIFE
    }

    /// Returns the members of a body that a session writes. They are rejected in `params`.
    fn reserved_members(&self) -> &'static [&'static str] {
        &["messages"]
    }

    /// Returns the members of `params` that hold credentials in this dialect, in addition to those of all dialects. They are sent and
    /// never stored.
    fn credential_members(&self) -> &'static [MemberPath] {
        &[]
    }

    /// Returns the keys of other dialects that this one rejects with 400.
    fn rejected_members(&self) -> &'static [&'static str];

    /// Returns true if a member of a body is such a key.
    fn rejects_member(&self, name: &str, _value: JsonRef<'_>) -> bool {
        self.rejected_members().contains(&name)
    }

    /// Returns true if a parameter is not copied to the body under its name: [`write_defaults`](Self::write_defaults) writes it to another
    /// place, or it is in the URL.
    fn moves_parameter(&self, _name: &str) -> bool {
        false
    }

    /// Returns the member of the body that holds the tools.
    fn tools_member(&self) -> &'static str {
        "tools"
    }

    /// Returns the definitions in an entry of the body's tools; an empty list for a tool that the provider runs itself.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition>;

    /// Returns the names of the tools in an entry of the body's tools. A name is empty for a tool without one.
    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        vec![entry.string("name")]
    }

    /// Returns true if the host runs a tool in an entry of the body's tools. Only then may the body have a tool choice.
    fn has_callable_tool(&self, _entry: JsonRef<'_>) -> bool {
        true
    }

    /// Returns the entries of the body's tools for definitions, which are separated by commas.
    fn tool_entries(&self, definitions: String) -> String {
        definitions
    }

    /// Returns the name of a tool in a request. Gemini rejects names that begin with a digit, so they get a `_`.
    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(name)
    }

    /// Returns the name that [`tool_name`](Self::tool_name) may have changed to `name`; `None` if it never returns this name for another
    /// one.
    fn name_before_change<'n>(&self, _name: &'n str) -> Option<&'n str> {
        None
    }

    /// Reads a tool choice in the form of this dialect. Returns `None` for one in another form, and for a choice that no other dialect
    /// has.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>>;

    /// Returns true if a `tool_choice` has the form of this dialect and is copied.
    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool;

    /// Writes the members of a tool's definition.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition);

    /// Writes the member for the tool choice. Returns false if the dialect cannot express it.
    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool;

    /// Writes the members that a body needs and `params` lack. `named` are the members that are written already.
    fn write_defaults(
        &self,
        request: &ProviderRequest,
        object: &mut ObjectWriter<'_>,
        named: &[Cow<'_, str>],
        report: &mut Report,
    );

    /// Returns the headers that the provider requires, unless the caller sets them.
    fn required_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Plans the edits that make a body valid: reports every violation and adds its edit to the plan.
    fn plan_repairs<'a>(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>);

    /// Returns how to find the answers of the running tool loop that the model rejects, since their reasoning is missing; `None` if it demands
    /// none with these parameters, which may be a body.
    fn find_missing_reasoning(&self, _params: JsonRef<'_>) -> Option<FindMissingReasoning> {
        None
    }

    /// Returns the errors of the provider that can be cured (R74).
    fn remedies(&self) -> &'static [Remedy] {
        &[]
    }

    /// Removes what the marks of [`Healed::refused`](super::Healed::refused) name.
    fn leave_out_refused(&self, _cure: &mut Cure<'_>, _refused: &[String]) {}

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
        member == TOOL_CHOICE
    }

    /// Returns the members of a body, besides that for [`Parameter::Stream`], that the provider accepts in a streamed request only.
    fn stream_members(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if a tool choice allows one call an answer only.
    fn forbids_parallel_calls(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// Returns the [reserved](Self::reserved) members that refer to messages which the provider stores.
    fn server_state_members(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if an error response says that another request holds the conversation, and that this one was not processed.
    fn is_conversation_locked(&self, _status: u16, _error_code: &str) -> bool {
        false
    }

    /// Returns true if an error response says that the provider no longer has the response that the request continues.
    fn is_previous_response_missing(&self, _status: u16, _error_code: &str) -> bool {
        false
    }

    /// Returns true for a part of an answer that refers to what the provider keeps, and does not contain it.
    fn is_kept_by_service(&self, _part: &Part) -> bool {
        false
    }

    /// Returns the members of a body that name what the provider keeps of the conversation; `None` if it keeps nothing.
    fn service_members(&self) -> Option<ServiceMembers> {
        None
    }

    /// Returns the body of a request that has the provider shorten its chain of responses up to `previous`; `None` if it does not do that.
    fn compaction_request(&self, _model: Option<&str>, _previous: &str) -> Option<Vec<u8>> {
        None
    }

    /// Returns the items that stand for a conversation, from the answer to a [`compaction_request`](Self::compaction_request); `None` if it is
    /// no such answer.
    fn compacted_items(&self, _answer: JsonRef<'_>) -> Option<Vec<Json>> {
        None
    }

    /// Returns true if a tool definition may ask for arguments that match its schema exactly (`"strict":true`).
    fn has_strict_tools(&self) -> bool {
        true
    }

    /// Returns true if a text of the model may say what it is within its answer.
    fn has_phases(&self) -> bool {
        false
    }

    /// Returns true if the parameters name a tool choice in another member than `tool_choice`, which is then left out.
    fn has_other_tool_choice(&self, _params: JsonRef<'_>) -> bool {
        false
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

    /// Returns an assembler for one response.
    fn assembler(&self) -> Box<dyn AnswerReader>;
}

/// Returns the name of a call in a request. A model can invent a name that its own provider rejects in the next request.
#[must_use]
pub fn tool_name(call: &ToolInvocation) -> Cow<'_, str> {
    if !call.name.is_empty() && is_plain_id(&call.name) {
        return Cow::Borrowed(&call.name);
    }
    let name = plain(&call.name, 64);
    if name.is_empty() { Cow::Borrowed("unnamed") } else { Cow::Owned(name) }
}

/// Returns the id of a call and its result in a request: valid in the dialect, and always the same for the same call.
#[must_use]
pub(crate) fn call_id(codec: &dyn Codec, call: &ToolInvocation) -> JsonStr {
    JsonStr::new(&plain_id(codec, call))
}

fn plain_id(codec: &dyn Codec, call: &ToolInvocation) -> String {
    let id = match call.wire_id() {
        "" => format!("call_{}", short_name(&call.id, 20)),
        id => id.to_owned(),
    };
    if codec.accepts_call_id(&id) { id } else { codec.valid_call_id(&id) }
}

/// Returns the ids of a message's calls, which are all different: ids that became equal by being made valid get a suffix.
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
            id = codec.valid_call_id(&(plain.clone() + &suffix));
        }
        used.insert(id.clone(), 0);
        ids.push(JsonStr::new(&id));
    }
    ids
}
