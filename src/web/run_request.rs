//! `RunRequest` and `RenderRequest`, read.

use super::assembler::dialect;
use super::convert::{flag, given, json_at, member, text, to_json, whole, wire_text};
use super::foreign::{self, members};
use super::options::{on_stop, only, policy_at, refuse, unbuilt, window, word};
use super::reducers::callback;
use super::session::SessionInner;
use crate::error::{Error, Result};
use crate::history::{Incoming, IncomingMessage, IncomingPart, read_part};
use crate::json::{Json, JsonStr};
use crate::message::{Dialect, Part, PartBody, Role};
use crate::provider::{
    ProviderRequest, ReasoningField, Settings, ToolDefinition, api_request, check_known_headers, decode_body,
};
use crate::replay::{Callback, Policy};
use crate::run::{
    DEFAULT_MAX_RESPONSE_BYTES, HIGHEST_MAX_RESPONSE_BYTES, OnInterrupted, RetryPolicy, RunSetup, ToolSettings,
};
use crate::sorted::Sorted;
use wasm_bindgen::prelude::*;

/// What `render` needs beside its input.
pub struct RenderParts {
    pub provider: ProviderRequest,
    pub instructions: Option<String>,
    pub tools: Vec<ToolDefinition>,
    pub policy: Policy,
}

/// So many parts an input may have.
const MAX_INPUT_PARTS: u32 = 100_000;

/// The input: a text, parts, or a body of the dialect.
pub fn input_items(input: &JsValue, dialect: Dialect) -> Result<Vec<Incoming>> {
    if input.is_undefined() || input.is_null() {
        return Ok(Vec::new());
    }
    let user = |parts: Vec<IncomingPart>| {
        vec![Incoming::Message(IncomingMessage { role: Role::User, parts, dialect: None, template: None })]
    };
    if input.is_string() {
        // Through JSON, so that a lone surrogate is not lost.
        let token = to_json(input)?.view().as_json_str().unwrap_or_else(|| JsonStr::new(""));
        if token.is_empty() {
            return Err(Error::invalid("`input` is empty; leave it out to answer what is there"));
        }
        return Ok(user(vec![IncomingPart::Part(PartBody::Text(token).into())]));
    }
    if let Some(given) = foreign::items("`input`", input, MAX_INPUT_PARTS)? {
        let mut parts = Vec::new();
        for part in &given {
            parts.push(IncomingPart::Part(input_part(part)?));
        }
        if parts.is_empty() {
            return Err(Error::invalid("`input` has no part; leave it out to answer what is there"));
        }
        return Ok(user(parts));
    }
    if input.is_object() {
        return decode_body(dialect, wire_text(input)?.view());
    }
    Err(Error::invalid("`input` is a text, a list of parts, or a body of the dialect"))
}

fn input_part(part: &JsValue) -> Result<Part> {
    let part = read_part(to_json(part)?.view())?;
    match part.body {
        PartBody::Text(_) | PartBody::Image(_) | PartBody::File(_) => Ok(part),
        _ => Err(Error::invalid("a part of an input is \"text\", \"image\" or \"file\"")),
    }
}

/// Reads a `RenderRequest`.
pub fn render_parts(session: &SessionInner, request: &JsValue) -> Result<RenderParts> {
    check_branch(request)?;
    let dialect = dialect_at(request, "`dialect` says which wire format to render")?;
    let (params, stream) = params(request, dialect)?;
    let provider = ProviderRequest {
        dialect,
        url: "about:render".into(),
        params,
        stream,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    provider.check()?;
    let tools = tools(request)?;
    let policy = session.policy(policy_at(request, "replay")?, windows(&tools.tool_settings));
    Ok(RenderParts { provider, instructions: text(request, "instructions")?, tools: tools.definitions, policy })
}

fn dialect_at(options: &JsValue, missing: &str) -> Result<Dialect> {
    match text(options, "dialect")? {
        Some(name) => dialect(&name),
        None => Err(Error::config(missing)),
    }
}

/// `params`, and whether they ask for a stream.
fn params(options: &JsValue, dialect: Dialect) -> Result<(Json, bool)> {
    let params = match given(options, "params") {
        Some(params) => to_json(&params)?,
        None => Json::trusted("{}".into()),
    };
    let params = api_request(dialect, params.view()).unwrap_or(params);
    let stream = params.view().get("stream").and_then(crate::json::JsonRef::as_bool).unwrap_or(false);
    Ok((params, stream))
}

/// Refuses a branch other than the one that there is.
pub fn check_branch(request: &JsValue) -> Result<()> {
    match text(request, "branch")?.as_deref() {
        None | Some("main") => Ok(()),
        Some(_) => Err(unbuilt("`branch`")),
    }
}

fn windows(tool_settings: &Sorted<String, ToolSettings>) -> Sorted<String, crate::tool::Window> {
    let mut windows = Sorted::new();
    for (name, tool_settings) in tool_settings.entries() {
        if let Some(window) = tool_settings.freshness {
            windows.insert(name.clone(), window);
        }
    }
    windows
}

/// What the model is told of the tools, how each is treated, and what says what is stored of its calls.
#[derive(Default)]
struct RequestTools {
    definitions: Vec<ToolDefinition>,
    tool_settings: Sorted<String, ToolSettings>,
    persist: Sorted<String, Callback>,
}

/// Reads `tools`.
fn tools(request: &JsValue) -> Result<RequestTools> {
    let mut tools = RequestTools::default();
    for (name, tool) in members("`tools`", &member(request, "tools"))? {
        if flag(&tool, "needsApproval") {
            return Err(unbuilt(&format!("`needsApproval` (tool \"{name}\")")));
        }
        if let Some(callback) = callback(&tool, "persist")? {
            tools.persist.insert(name.clone(), callback);
        }
        let ways = [Some(OnInterrupted::Report), Some(OnInterrupted::Rerun), None];
        let Some(on_interrupted) =
            word(&tool, "onInterrupted", &["report", "rerun", "ask"], &ways)?.unwrap_or(Some(OnInterrupted::Report))
        else {
            return Err(unbuilt("`onInterrupted: \"ask\"`"));
        };
        let description = text(&tool, "description")?;
        let parameters = json_at(&tool, "parameters")?;
        tools.definitions.push(ToolDefinition { name: name.clone(), description, parameters, strict: false });
        let freshness = window(&tool, "freshness")?;
        let ends_run = flag(&tool, "endsRun");
        tools.tool_settings.insert(name, ToolSettings { ends_run, on_interrupted, freshness });
    }
    Ok(tools)
}

fn provider(request: &JsValue) -> Result<ProviderRequest> {
    let options = given(request, "provider")
        .ok_or_else(|| Error::config("`provider` says where to call: dialect, url, params"))?;
    let dialect = dialect_at(&options, "`provider.dialect` says which wire format the server speaks")?;
    let compat = member(&options, "compat");
    let fields = [ReasoningField::Named("reasoning_content"), ReasoningField::Named("reasoning"), ReasoningField::Drop];
    let reasoning = word(&compat, "reasoningField", &["reasoning_content", "reasoning", "drop"], &fields)?;
    let settings = Settings {
        system_role: word(&compat, "systemRole", &["system", "developer"], &[Role::System, Role::Developer])?,
        reasoning: reasoning.unwrap_or_default(),
        no_stream_usage: given(&compat, "streamUsage").is_some_and(|usage| usage.is_falsy()),
        ..Settings::default()
    };
    let (params, mut stream) = params(&options, dialect)?;
    if let Some(given) = given(&options, "stream") {
        stream = given.is_truthy();
    }
    let mut headers = Vec::new();
    for (name, value) in members("`provider.headers`", &member(&options, "headers"))? {
        let Some(value) = value.as_string() else {
            return Err(Error::invalid("`provider.headers` has string values"));
        };
        headers.push((name.to_ascii_lowercase(), value));
    }
    check_known_headers(&headers, &header_names(&options)?)?;
    let url = text(&options, "url")?.unwrap_or_default();
    Ok(ProviderRequest { dialect, url, params, stream, headers, settings })
}

/// The headers that the application knows to hold no credential.
fn header_names(options: &JsValue) -> Result<Vec<String>> {
    let Some(list) = given(options, "allowHeaders") else { return Ok(Vec::new()) };
    let wrong = || Error::invalid("`provider.allowHeaders` is a list of names of headers that hold no credential");
    let list = foreign::items("`provider.allowHeaders`", &list, 1000)?.ok_or_else(wrong)?;
    list.iter().map(|name| name.as_string().ok_or_else(wrong)).collect()
}

/// A number of times, at least one.
fn times(options: &JsValue, key: &str, usual: u32, wrong: &str) -> Result<u32> {
    match whole(options, key)?.map(u32::try_from) {
        None => Ok(usual),
        Some(Ok(times)) if times > 0 => Ok(times),
        Some(_) => Err(Error::config(wrong)),
    }
}

fn max_response_bytes(request: &JsValue) -> Result<u64> {
    match whole(request, "maxResponseBytes")? {
        None => Ok(DEFAULT_MAX_RESPONSE_BYTES),
        Some(bytes) if (1..=HIGHEST_MAX_RESPONSE_BYTES).contains(&bytes) => Ok(bytes),
        Some(_) => Err(Error::config(format!(
            "`maxResponseBytes` is a number of bytes from 1 to {HIGHEST_MAX_RESPONSE_BYTES}"
        ))),
    }
}

/// Reads a `RunRequest`, but for its input.
pub fn setup(session: &SessionInner, request: &JsValue, id: String) -> Result<RunSetup> {
    refuse(request, &["providers", "inputFilter", "replace"])?;
    check_branch(request)?;
    only(request, "persistence", "run", "a persistence other than \"run\"")?;
    let RequestTools { definitions, mut tool_settings, persist } = tools(request)?;
    let policy = session.policy(policy_at(request, "replay")?, windows(&tool_settings));
    let provider = provider(request)?;
    // Tools of `params` are the model's to call and the application's to answer.
    if let Some(tools) = provider.params.view().find("tools") {
        for tool in tools.items() {
            if let Some(name) = tool.get("function").unwrap_or(tool).text("name") {
                tool_settings.get_or_insert_with(name.into_owned(), ToolSettings::default);
            }
        }
    }
    let given = member(request, "retry");
    let mut retry = RetryPolicy::default();
    let wrong = "`retry.attempts` counts tries, the first one included: at least 1";
    retry.attempts = times(&given, "attempts", retry.attempts, wrong)?;
    let max_turns = times(request, "maxTurns", 20, "`maxTurns` counts model calls: at least 1")?;
    retry.backoff_ms = whole(&given, "backoffMs")?.unwrap_or(retry.backoff_ms);
    let instructions = text(request, "instructions")?;
    let on_stop = on_stop(request)?.unwrap_or(session.on_stop.get());
    Ok(RunSetup {
        id,
        provider,
        instructions,
        tools: definitions,
        tool_settings,
        persist,
        max_turns,
        max_response_bytes: max_response_bytes(request)?,
        on_stop,
        retry,
        policy,
        channel: session.channel(),
    })
}
