//! One door to the dialects: which one decodes, encodes, names a call.

use super::foreign_format::{ForeignFormat, body_shape, refuse_foreign, refused};
use super::neutral::{OfferedMedia, split_media, text_or_json};
use super::registry::codec;
use super::request::{
    AllowedToolsForm, MemberPath, Parameter, ProviderRequest, Settings, ToolChoice, ToolDefinition, nested_schema,
};
use super::rules::{Fields, Mention, Plan};
use super::stream::AnswerReader;

use crate::error::{Error, Result};
use crate::finding::Report;
use crate::history::{Incoming, IncomingMessage};
use crate::id::{IdMap, Seed, short_name};
use crate::json::{Json, JsonRef, JsonStr, Kind, ObjectWriter};
use crate::message::{Dialect, Message, Part, Role};
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

/// What a provider expects after an answer that it paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The same conversation again, with this answer: the provider goes on where it stopped.
    Resumes,
    /// Nothing: the request asked for an answer that ends here.
    Ends,
}

/// One dialect's side of the door. What is common has a default here.
pub(crate) trait Codec: Sync {
    /// Which one it is.
    fn dialect(&self) -> Dialect;

    /// The body's member that holds the messages.
    fn list(&self) -> &'static str {
        "messages"
    }

    /// Converts a request in the shape of the provider's SDK to the shape of its API; none if it has that shape already.
    fn api_request(&self, _body: JsonRef<'_>) -> Option<Json> {
        None
    }

    /// What makes a message of a list that holds one message's parts; none where it holds messages.
    fn around_parts(&self, _list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The dialect whose items have the same form.
    fn family(&self) -> Dialect {
        self.dialect()
    }

    /// Whether an item has a member or a type that only items of this dialect have. What several have, a role and a text
    /// say, marks nothing.
    fn marks_item(&self, item: &Fields<'_>) -> bool;

    /// Whether a block of a message's content is one that only this dialect has, and that no other can be given in its stead.
    fn marks_block(&self, _block: &Fields<'_>) -> bool {
        false
    }

    /// Whether the rules can make something of an item: it has a role, a type or a member of this dialect.
    fn reads(&self, item: &Fields<'_>) -> bool;

    /// What an open call's id says that stands in an item where neither a call nor a result was read.
    fn mention<'a>(&self, _item: &Fields<'a>, _id: JsonRef<'a>) -> Mention<'a> {
        Mention::Unread
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

    /// Writes a draft message and the results of its calls. `before` are the messages whose results stand in this one, or
    /// where this one calls too, with the results of its own calls.
    fn encode(
        &self,
        wire: &mut Wire<'_>,
        item: &DraftMessage<'_>,
        before: &[DraftMessage<'_>],
        settings: &Settings,
        report: &mut Report,
    );

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

    /// Returns true if one text may stand in place of the list of items.
    fn takes_text_list(&self) -> bool {
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
            Kind::Array => split_media(view.items().map(|block| self.decode_block(block))),
            Kind::Object => split_media([self.decode_block(view)]),
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

/// An id that every dialect of OpenAI's style takes: what can stay of `id`, and a name for all of it.
pub(crate) fn head_and_name(id: &str) -> String {
    format!("{}_{}", plain(id, 40), short_name(id, 12))
}

/// The beginning of a text, with what is not plain as `_`.
pub(crate) fn plain(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The ids of OpenAI's style that every dialect of that style takes: `^[a-zA-Z0-9_-]+$`, up to 64 characters.
pub(crate) fn is_plain_id(id: &str) -> bool {
    id.len() <= 64 && id.chars().all(is_plain)
}

/// Decodes a body, or a bare list of its messages.
///
/// # Errors
/// `invalid_input` when it is neither, and when an item is none of the dialect's.
pub fn decode_body(dialect: Dialect, body: JsonRef<'_>) -> Result<Vec<Incoming>> {
    let codec = codec(dialect);
    let name = codec.list();
    let own = codec.api_request(body);
    let body = own.as_ref().map_or(body, Json::view);
    let mut items = Vec::new();
    let list = if body.kind() == Kind::Array { Some(body) } else { body.get(name) };
    if let Some(text) = list.and_then(JsonRef::as_json_str) {
        codec.decode_head(body, &mut items);
        if codec.decode_text(text, &mut items) {
            return Ok(items);
        }
    }
    let alone = list.filter(|list| codec.takes_single_item() && list.is_object());
    let Some(list) = list.filter(|list| alone.is_some() || list.kind() == Kind::Array) else {
        if let Some(template) = body_shape(codec, &Fields::of(body)) {
            return Err(refused(codec, template, "The body"));
        }
        return Err(Error::invalid(format!(
            "a body of the dialect \"{}\" is an object with a list `{name}`",
            dialect.as_str()
        )));
    };
    codec.decode_head(body, &mut items);
    let mut wires: Vec<JsonRef<'_>> = list.items().collect();
    wires.extend(alone);
    refuse_foreign(codec, &wires)?;
    codec.decode(&wires, &mut items);
    if let Some(Incoming::Unknown(item)) = items.iter().find(|item| matches!(item, Incoming::Unknown(_))) {
        let at = wires.iter().position(|wire| wire.as_raw() == item.as_str()).unwrap_or_default();
        return Err(refused(codec, ForeignFormat::Unknown, &format!("{name}[{at}]")));
    }
    Ok(items)
}

/// Converts a request in the shape of a provider's SDK to the shape of its API; none if it has that shape already.
#[must_use]
pub fn api_request(dialect: Dialect, body: JsonRef<'_>) -> Option<Json> {
    codec(dialect).api_request(body)
}

/// Decodes an answer of a dialect: what an assembler made, one wire message or a list of items.
#[must_use]
pub fn decode_answer(dialect: Dialect, wire: JsonRef<'_>) -> Option<IncomingMessage> {
    let codec = codec(dialect);
    let mut items = Vec::new();
    match wire.kind() {
        Kind::Array => codec.decode(&wire.items().collect::<Vec<_>>(), &mut items),
        _ => codec.decode(&[wire], &mut items),
    }
    items.into_iter().find_map(|item| match item {
        Incoming::Message(message) if message.role == Role::Assistant => Some(message),
        _ => None,
    })
}

/// Decodes the blocks of a message's or a result's content; one that is an object is a block itself.
#[must_use]
pub fn blocks_of(dialect: Dialect, content: JsonRef<'_>) -> Vec<Part> {
    let codec = codec(dialect);
    if content.is_object() {
        return vec![codec.decode_block(content)];
    }
    content.items().map(|block| codec.decode_block(block)).collect()
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
