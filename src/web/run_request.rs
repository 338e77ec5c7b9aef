//! `RunRequest` and `RenderRequest`, read.

use super::assembler::dialect;
use super::convert::{flag, given, member, members, text, to_json, whole, wire_text};
use super::options::{on_stop, policy_at, refuse, unbuilt, window, word};
use super::reducers::callback;
use super::session::SessionInner;
use crate::error::{Error, Result};
use crate::history::{Incoming, IncomingMessage, IncomingPart, read_part};
use crate::json::{Json, JsonStr};
use crate::message::{Dialect, Part, PartBody, Role};
use crate::provider::{ProviderRequest, ReasoningField, Settings, ToolDefinition, decode_body};
use crate::replay::{Callback, Policy};
use crate::run::{OnInterrupted, RetryPolicy, Setup, Treatment};
use crate::sorted::Sorted;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

/// What `render` needs beside its input.
pub struct RenderParts {
    pub provider: ProviderRequest,
    pub instructions: Option<String>,
    pub tools: Vec<ToolDefinition>,
    pub policy: Policy,
}

/// The input: a text, parts, or a body of the dialect.
pub fn input_items(input: &JsValue, dialect: Dialect) -> Result<Vec<Incoming>> {
    if input.is_undefined() || input.is_null() {
        return Ok(Vec::new());
    }
    let user = |parts: Vec<IncomingPart>| {
        vec![Incoming::Message(IncomingMessage { role: Role::User, parts, dialect: None, shape: None })]
    };
    if input.is_string() {
        // Through JSON, so that a lone surrogate is not lost.
        let token = to_json(input)?.view().as_json_str().unwrap_or_else(|| JsonStr::new(""));
        if token.is_empty() {
            return Err(Error::invalid("`input` is empty; leave it out to answer what is there"));
        }
        return Ok(user(vec![IncomingPart::Part(PartBody::Text(token).into())]));
    }
    if let Some(parts) = input.dyn_ref::<Array>() {
        let parts = parts.iter().map(|part| input_part(&part).map(IncomingPart::Part)).collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            return Err(Error::invalid("`input` has no part; leave it out to answer what is there"));
        }
        return Ok(user(parts));
    }
    if input.is_instance_of::<Uint8Array>() || input.is_object() {
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
    let name = text(request, "dialect")?.ok_or_else(|| Error::config("`dialect` says which wire format to render"))?;
    let params = given(request, "params").map_or_else(|| Ok(Json::trusted("{}".into())), |params| to_json(&params))?;
    let stream = params.view().get("stream").and_then(crate::json::JsonRef::as_bool).unwrap_or(false);
    let provider = ProviderRequest {
        dialect: dialect(&name)?,
        url: "about:render".into(),
        params,
        stream,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    provider.check()?;
    let (tools, treatment, _) = tools(&member(request, "tools"))?;
    let policy = session.policy(policy_at(request, "replay")?, windows(&treatment));
    Ok(RenderParts { provider, instructions: text(request, "instructions")?, tools, policy })
}

/// Refuses a branch other than the one that there is.
pub fn check_branch(request: &JsValue) -> Result<()> {
    match text(request, "branch")?.as_deref() {
        None | Some("main") => Ok(()),
        Some(_) => Err(unbuilt("`branch`")),
    }
}

fn windows(treatment: &Sorted<String, Treatment>) -> Sorted<String, crate::tool::Window> {
    treatment.entries().iter().filter_map(|(name, treatment)| Some((name.clone(), treatment.freshness?))).collect()
}

/// What the model is told of the tools, how each is treated, and what says what is stored of its calls.
type Toolbox = (Vec<ToolDefinition>, Sorted<String, Treatment>, Sorted<String, Callback>);

/// Reads `tools`.
fn tools(tools: &JsValue) -> Result<Toolbox> {
    let mut definitions = Vec::new();
    let mut treatment = Sorted::new();
    let mut persist = Sorted::new();
    for (name, tool) in members(tools) {
        if flag(&tool, "needsApproval") {
            return Err(unbuilt(&format!("`needsApproval` (tool \"{name}\")")));
        }
        if let Some(callback) = callback(&tool, "persist")? {
            persist.insert(name.clone(), callback);
        }
        let on_interrupted = word(
            &tool,
            "onInterrupted",
            &[("report", Some(OnInterrupted::Report)), ("rerun", Some(OnInterrupted::Rerun)), ("ask", None)],
        )?;
        let Some(on_interrupted) = on_interrupted.unwrap_or(Some(OnInterrupted::Report)) else {
            return Err(unbuilt("`onInterrupted: \"ask\"`"));
        };
        definitions.push(ToolDefinition {
            name: name.clone(),
            description: text(&tool, "description")?,
            parameters: given(&tool, "parameters").map(|schema| to_json(&schema)).transpose()?,
        });
        treatment.insert(
            name,
            Treatment { ends_run: flag(&tool, "endsRun"), on_interrupted, freshness: window(&tool, "freshness")? },
        );
    }
    Ok((definitions, treatment, persist))
}

fn provider(request: &JsValue) -> Result<ProviderRequest> {
    let given_provider = given(request, "provider")
        .ok_or_else(|| Error::config("`provider` says where to call: dialect, url, params"))?;
    let name = text(&given_provider, "dialect")?
        .ok_or_else(|| Error::config("`provider.dialect` says which wire format the server speaks"))?;
    let compat = member(&given_provider, "compat");
    let reasoning = [
        ("reasoning_content", ReasoningField::Named("reasoning_content")),
        ("reasoning", ReasoningField::Named("reasoning")),
        ("drop", ReasoningField::Drop),
    ];
    let settings = Settings {
        system_role: word(&compat, "systemRole", &[("system", Role::System), ("developer", Role::Developer)])?,
        reasoning: word(&compat, "reasoningField", &reasoning)?.unwrap_or_default(),
        no_stream_usage: given(&compat, "streamUsage").is_some_and(|usage| usage.is_falsy()),
        ..Settings::default()
    };
    let params =
        given(&given_provider, "params").map_or_else(|| Ok(Json::trusted("{}".into())), |params| to_json(&params))?;
    let stream = given(&given_provider, "stream").map_or_else(
        || params.view().get("stream").and_then(crate::json::JsonRef::as_bool).unwrap_or(false),
        |stream| stream.is_truthy(),
    );
    let mut headers = Vec::new();
    for (name, value) in members(&member(&given_provider, "headers")) {
        headers.push((
            name.to_ascii_lowercase(),
            value.as_string().ok_or_else(|| Error::invalid("`provider.headers` has string values"))?,
        ));
    }
    let url = text(&given_provider, "url")?.unwrap_or_default();
    Ok(ProviderRequest { dialect: dialect(&name)?, url, params, stream, headers, settings })
}

/// Reads a `RunRequest`, but for its input.
pub fn setup(session: &SessionInner, request: &JsValue, id: String) -> Result<Setup> {
    refuse(request, &["providers", "inputFilter", "replace"])?;
    check_branch(request)?;
    word(request, "persistence", &[("run", ())]).map_err(|_| unbuilt("a persistence other than \"run\""))?;
    let (definitions, mut treatment, persist) = tools(&member(request, "tools"))?;
    let policy = session.policy(policy_at(request, "replay")?, windows(&treatment));
    let provider = provider(request)?;
    // Tools of `params` are the model's to call and the application's to answer.
    for tool in provider.params.view().find("tools").iter().flat_map(|tools| tools.items()) {
        let own = tool.get("function").unwrap_or(tool);
        if let Some(name) = own.text("name") {
            treatment.get_or_insert_with(name.into_owned(), Treatment::default);
        }
    }
    let retry = member(request, "retry");
    let usual = RetryPolicy::default();
    let attempts = whole(&retry, "attempts")?.map_or(Ok(usual.attempts), |attempts| {
        u32::try_from(attempts)
            .ok()
            .filter(|attempts| *attempts > 0)
            .ok_or_else(|| Error::config("`retry.attempts` counts tries, the first one included: at least 1"))
    })?;
    let max_turns = whole(request, "maxTurns")?.map_or(Ok(20), |turns| {
        u32::try_from(turns)
            .ok()
            .filter(|turns| *turns > 0)
            .ok_or_else(|| Error::config("`maxTurns` counts model calls: at least 1"))
    })?;
    Ok(Setup {
        id,
        provider,
        instructions: text(request, "instructions")?,
        tools: definitions,
        treatment,
        persist,
        max_turns,
        on_stop: on_stop(request)?.unwrap_or(session.on_stop.get()),
        retry: RetryPolicy { attempts, backoff_ms: whole(&retry, "backoffMs")?.unwrap_or(usual.backoff_ms) },
        policy,
        channel: session.channel(),
    })
}
