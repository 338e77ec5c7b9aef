//! Recognises items that are not of the named dialect: messages of SDKs, and items of other dialects.

use super::rules::Fields;
use super::spec::{ItemFormat, ItemFormats};
use crate::error::{Error, Result};
use crate::json::{JsonKind, JsonRef};
use crate::message::Dialect;

/// A message format that is not the named dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignFormat {
    /// `{role, parts: [{type: "text", …}, {type: "tool-look", toolCallId, …}]}`
    AiSdkUi,
    /// `{role, content: [{type: "tool-call", toolCallId, …}]}`
    AiSdkModel,
    /// `{lc, type: "constructor", kwargs}`, `{type: "human", data}`, `{type: "ai", content}`, `["human", "…"]`
    LangChain,
    /// `{type: "function_call_result", callId, …}`
    OpenAiAgents,
    /// `{role, toolCalls, toolCallId}`, or parts `{type: "tool-call", arguments, state}`
    TanStack,
    /// `{role, content: {format: 2, parts}}`
    Mastra,
    /// `{role, parts: [{type: "tool", callId, …}]}`: what `append` accepts without a dialect.
    Neutral,
    /// An item that only another dialect has.
    Dialect(Dialect),
    /// `{role, content}`, which all dialects but Gemini have.
    Plain(Dialect),
    /// None of these.
    Unknown,
}

impl ForeignFormat {
    /// Returns a stable name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::AiSdkUi => "ai-sdk-ui",
            Self::AiSdkModel => "ai-sdk-model",
            Self::LangChain => "langchain",
            Self::OpenAiAgents => "openai-agents",
            Self::TanStack => "tanstack-ai",
            Self::Mastra => "mastra",
            Self::Neutral => "neutral",
            Self::Dialect(dialect) => dialect.as_str(),
            Self::Plain(dialect) => dialect.as_str(),
            Self::Unknown => "unknown",
        }
    }

    /// Returns what an item of this format is called in a sentence; none for an unknown format.
    fn form(self) -> Option<&'static str> {
        Some(match self {
            Self::AiSdkUi => "a UIMessage of the AI SDK",
            Self::AiSdkModel => "a ModelMessage of the AI SDK",
            Self::LangChain => "a LangChain message",
            Self::OpenAiAgents => "an item of the OpenAI Agents SDK",
            Self::TanStack => "a message of TanStack AI",
            Self::Mastra => "a Mastra message",
            Self::Neutral => "a neutral message",
            Self::Dialect(dialect) => dialect.as_str(),
            Self::Plain(dialect) => dialect.as_str(),
            Self::Unknown => return None,
        })
    }

    /// Returns the end of a sentence with the function of the SDK that writes requests from its messages; empty if none
    /// is known.
    fn converter(self) -> &'static str {
        match self {
            Self::AiSdkUi => {
                ": convertToModelMessages() of the AI SDK, and then its provider, do so when they send them"
            }
            Self::AiSdkModel => ": the AI SDK's provider does so when generateText() or streamText() sends them",
            Self::LangChain => {
                ", as convertMessagesToCompletionsMessageParams() of @langchain/openai does for chat completions"
            }
            Self::OpenAiAgents => ": run() of the SDK does so when it sends them, as input of the Responses API",
            _ => "",
        }
    }

    /// Returns a sentence with the function of the package that stores messages of this format; empty without one.
    fn way_in(self) -> &'static str {
        match self {
            Self::AiSdkUi => {
                " In JavaScript, fromUIMessages() of \"rethread/ai-sdk\" makes them messages for append()."
            }
            Self::AiSdkModel => {
                " In JavaScript, fromModelMessages() of \"rethread/ai-sdk\" makes them messages for append()."
            }
            Self::LangChain => {
                " In JavaScript, chatMessageHistory(session).addMessages() of \"rethread/langchain\" stores them."
            }
            Self::OpenAiAgents => {
                " In JavaScript, agentsSession(session).addItems() of \"rethread/openai-agents\" stores them."
            }
            Self::TanStack => {
                " In JavaScript, chatPersistence(store).setItem(id, { messages }) of \"rethread/tanstack-ai\" stores them."
            }
            _ => "",
        }
    }

    /// Returns what names the format of a value and what to do. `what` names the value.
    pub fn sentence(self, what: &str, named: Dialect) -> String {
        let own = named.as_str();
        let advice = match self {
            Self::Dialect(_) | Self::Plain(_) => {
                let other = self.name();
                format!("name the dialect \"{other}\", or call convert(body, \"{other}\", \"{own}\") first")
            }
            Self::Neutral => "give it to append() without a dialect".into(),
            _ => format!("convert the messages to the form of \"{own}\" first{}", self.converter()),
        };
        match self.form() {
            Some(form) => format!("{what} has the form of {form}, not of {own}: {advice}.{}", self.way_in()),
            None => format!("{what} has no role, type or member that items of {own} have: {advice}."),
        }
    }

    /// Returns true if this format is more specific than another one.
    pub fn is_more_specific_than(self, other: Self) -> bool {
        let rank = |format| match format {
            Self::Unknown => 0,
            Self::Plain(_) => 1,
            _ => 2,
        };
        rank(self) > rank(other)
    }

    /// Returns true if a sentence is about this format.
    pub fn is_in(self, sentence: &str) -> bool {
        self.form().is_none_or(|form| sentence.contains(&format!(" has the form of {form},")))
    }
}

/// How an item fits the named dialect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ItemFit {
    /// True if it has a mark that only items of this dialect have.
    pub own: bool,
    /// The foreign format of which it has a mark.
    pub foreign: Option<ForeignFormat>,
    /// True if that mark is a block in its content, and the item itself can be read.
    pub in_content: bool,
}

/// Returns how an item of a list fits the named dialect.
pub(crate) fn item_fit(formats: &ItemFormats, item: &Fields<'_>) -> ItemFit {
    let whole = |format| ItemFit { foreign: Some(format), ..ItemFit::default() };
    if let Some(format) = sdk_format(item) {
        return whole(format);
    }
    let named = formats.named;
    let mut own = named.recognizer.marks_item(item);
    if !own && let Some(other) = formats.find_other(&|other| other.marks_item(item)) {
        return whole(ForeignFormat::Dialect(other));
    }
    let mut foreign = None;
    for block in item.get("content").map(JsonRef::items).into_iter().flatten().filter(|block| block.is_object()) {
        let block = Fields::of(block);
        own |= named.recognizer.marks_block(&block);
        foreign = foreign.or_else(|| block_format(formats, &block));
    }
    if named.recognizer.reads(item) {
        return ItemFit { own, foreign, in_content: foreign.is_some() };
    }
    let plain = item.text("role").is_some() && item.find("content").is_some();
    whole(foreign.unwrap_or(if plain { ForeignFormat::Plain(formats.plain) } else { ForeignFormat::Unknown }))
}

/// Returns the foreign format of which a content block has a mark.
pub(crate) fn block_format(formats: &ItemFormats, block: &Fields<'_>) -> Option<ForeignFormat> {
    let kind = block.text("type").unwrap_or_default();
    let kind = kind.as_ref();
    let has = |name: &str| block.find(name).is_some();
    match kind {
        "reasoning" if block.text("text").is_some() && !has("summary") && !has("id") => {
            return Some(ForeignFormat::AiSdkModel);
        }
        "image" if has("image") && !has("source") => return Some(ForeignFormat::AiSdkModel),
        "image" | "file" if has("mediaType") || has("mimeType") => return Some(ForeignFormat::AiSdkModel),
        "input_image" if has("image") && !has("image_url") => return Some(ForeignFormat::OpenAiAgents),
        _ if is_ai_sdk_type(kind) => return Some(ForeignFormat::AiSdkModel),
        _ => {}
    }
    formats.find_other(&|other| other.marks_block(block)).map(ForeignFormat::Dialect)
}

/// Returns true if a `type` is one of the AI SDK's, which have hyphens: `tool-call`, `step-start`.
fn is_ai_sdk_type(kind: &str) -> bool {
    let family = kind.split_once('-').map(|(family, _)| family);
    family
        .is_some_and(|family| ["tool", "dynamic", "step", "source", "reasoning", "redacted", "data"].contains(&family))
}

/// Returns true if a `type` may be a new one of a provider: those are in snake case.
pub(crate) fn is_provider_type(kind: &str) -> bool {
    kind.starts_with(|first: char| first.is_ascii_lowercase())
        && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

const LANGCHAIN_TYPES: [&str; 8] =
    ["system", "developer", "tool", "function", "generic", "chat", "remove", "placeholder"];
const AGENTS_TYPES: [&str; 3] = ["function_call_result", "hosted_tool_call", "computer_call_result"];

/// Returns true if messages of an SDK have a member like this one, and those of most items do not: each item of a body
/// is looked at.
fn may_be_of_sdk((key, value): &(JsonRef<'_>, JsonRef<'_>)) -> bool {
    match key.as_text().unwrap_or_default().as_ref() {
        "role" | "name" | "id" | "tool_call_id" | "call_id" | "arguments" | "output" | "status" | "summary" => false,
        "content" => value.is_object(),
        "type" => value.as_text().is_some_and(|kind| {
            let kind = kind.as_ref();
            is_langchain_type(kind) || LANGCHAIN_TYPES.contains(&kind) || AGENTS_TYPES.contains(&kind)
        }),
        _ => true,
    }
}

fn is_langchain_type(kind: &str) -> bool {
    matches!(kind, "human" | "ai" | "HumanMessageChunk" | "AIMessageChunk")
}

/// Returns the format of the SDK whose message an item is.
fn sdk_format(item: &Fields<'_>) -> Option<ForeignFormat> {
    if !item.members().iter().any(may_be_of_sdk) {
        return None;
    }
    let has = |name: &str| item.find(name).is_some();
    let list = |name: &str| item.get(name).filter(|value| value.kind() == JsonKind::Array);
    let kind = item.text("type").unwrap_or_default();
    let kind = kind.as_ref();
    let constructor = has("lc") && (has("kwargs") || has("id")) || has("lc_kwargs") || has("lc_namespace");
    let named = is_langchain_type(kind) || !has("role") && LANGCHAIN_TYPES.contains(&kind);
    let calls = list("tool_calls").into_iter().flat_map(JsonRef::items);
    if constructor
        || named && ["data", "content"].into_iter().any(has)
        || has("additional_kwargs")
        || has("response_metadata")
        || calls.clone().any(|call| call.find("args").is_some() && call.find("function").is_none())
    {
        return Some(ForeignFormat::LangChain);
    }
    if ["callId", "providerData", "rawContent"].into_iter().any(has) || AGENTS_TYPES.contains(&kind) {
        return Some(ForeignFormat::OpenAiAgents);
    }
    if list("toolInvocations").is_some() {
        return Some(ForeignFormat::AiSdkUi);
    }
    if has("toolCalls") || has("toolCallId") {
        return Some(ForeignFormat::TanStack);
    }
    if has("providerOptions") {
        return Some(ForeignFormat::AiSdkModel);
    }
    if item.get("content").is_some_and(|content| content.is_object() && content.find("parts").is_some()) {
        return Some(ForeignFormat::Mastra);
    }
    // Messages of the AI SDK 4 have their text in `content` as well; those of no provider have an id of their own.
    let has_own_id = item.text("id").is_some() && has("role");
    if has_own_id && item.text("content").is_some() && (has("createdAt") || list("experimental_attachments").is_some())
    {
        return Some(list("parts").and_then(|parts| parts_format(parts, false)).unwrap_or(ForeignFormat::AiSdkUi));
    }
    parts_format(list("parts")?, has("content") && !has_own_id)
}

/// Returns the format of the SDK by the `parts` of a message. Parts of SDKs have a `type`, those of Gemini do not.
/// Beside a readable `content`, only parts that are not in it count.
fn parts_format(parts: JsonRef<'_>, beside_content: bool) -> Option<ForeignFormat> {
    let mut found = None;
    for part in parts.items().filter(|part| part.is_object()) {
        let Some(kind) = part.text("type") else { continue };
        let has = |name: &str| part.find(name).is_some();
        match kind.as_ref() {
            "tool" if has("callId") || has("name") => return Some(ForeignFormat::Neutral),
            "tool-call" | "tool-result" | "thinking" if !has("toolName") => return Some(ForeignFormat::TanStack),
            "text" if has("content") && !has("text") => return Some(ForeignFormat::TanStack),
            "text" | "step-start" if beside_content => {}
            _ => found = Some(ForeignFormat::AiSdkUi),
        }
    }
    found
}

/// Returns true if an array is LangChain's short form of a message: `["human", "hi"]`.
pub(crate) fn is_langchain_pair(item: JsonRef<'_>) -> bool {
    let mut items = item.items();
    let role = items.next().and_then(JsonRef::as_text);
    let content = items.next().is_some_and(|content| matches!(content.kind(), JsonKind::String | JsonKind::Array));
    let roles = ["human", "ai", "system", "user", "assistant", "tool", "placeholder"];
    content && items.next().is_none() && role.is_some_and(|role| roles.contains(&role.as_ref()))
}

/// Returns the foreign format of a body without the list of the named dialect.
pub(crate) fn body_format(formats: &ItemFormats, body: &Fields<'_>) -> Option<ForeignFormat> {
    let full = |list: JsonRef<'_>| match list.kind() {
        JsonKind::Array => list.items().next().is_some(),
        JsonKind::Object => true,
        JsonKind::String => !list.is_text(""),
        _ => false,
    };
    let name = formats.named.list;
    if body.find(name).is_some() {
        return None;
    }
    for other in formats.all.iter().filter(|other| other.list != name) {
        let Some(list) = body.find(other.list).filter(|list| full(*list)) else { continue };
        // Several formats have a list of this name: the items decide.
        let of_sdk = list.items().find_map(|item| format_of_item(formats, item));
        return Some(of_sdk.unwrap_or(ForeignFormat::Dialect(other.dialect)));
    }
    let format = item_fit(formats, body).foreign.filter(|format| *format != ForeignFormat::Unknown);
    format.or_else(|| body.text("role").map(|_| ForeignFormat::Unknown))
}

/// Returns the format of a list's item, if it is a known foreign one.
fn format_of_item(formats: &ItemFormats, item: JsonRef<'_>) -> Option<ForeignFormat> {
    if is_langchain_pair(item) {
        return Some(ForeignFormat::LangChain);
    }
    let fields = item.is_object().then(|| Fields::of(item))?;
    item_fit(formats, &fields)
        .foreign
        .filter(|format| !matches!(format, ForeignFormat::Unknown | ForeignFormat::Plain(_)))
}

/// Rejects items that are not of the named dialect.
///
/// # Errors
/// `invalid_input` with the first item of the most specific foreign format.
pub(crate) fn reject_foreign(formats: &ItemFormats, items: &[JsonRef<'_>]) -> Result<()> {
    let mut found: Option<(usize, ForeignFormat)> = None;
    for (at, item) in items.iter().enumerate() {
        let format = match item.kind() {
            JsonKind::Object => item_fit(formats, &Fields::of(*item)).foreign,
            JsonKind::Array if is_langchain_pair(*item) => Some(ForeignFormat::LangChain),
            _ => None,
        };
        if let Some(format) = format
            && found.is_none_or(|(_, before)| format.is_more_specific_than(before))
        {
            found = Some((at, format));
        }
    }
    match found {
        Some((at, format)) => Err(refused(formats.named, format, &format!("{}[{at}]", formats.named.list))),
        None => Ok(()),
    }
}

/// Returns the error of a value in a foreign format.
pub(crate) fn refused(named: &ItemFormat, format: ForeignFormat, what: &str) -> Error {
    Error::invalid(format.sentence(what, named.dialect)).with(|out| {
        out.text("shape", format.name());
    })
}
