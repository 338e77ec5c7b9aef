//! Conversion: decodes a body of one dialect into a history and renders it for another (R42).

use super::{RenderRequest, Renderer};
use crate::error::{Error, Result};
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::history::{History, JoinBase, Origin, join};
use crate::id::{CountingIds, Seed};
use crate::json::{Json, JsonKind, JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::{
    Dangling, Parameter, ProviderRequest, RepairOptions, Settings, ToolDefinition, codec, decode_body, is_group,
    names_tool_choice, repair, repair_rendered, translate_parameter, translate_value,
};
use crate::replay::{DanglingCalls, Policy};
use crate::sorted::in_order;
use crate::tool::Window;

/// Rewrites a body of one dialect in another, repaired. The report names what was wrong, by its place in the body that was
/// given, and what the target cannot carry. Ids, tools and parameters get the target's own form.
///
/// # Errors
/// `invalid_input` for what is no JSON, and for a body of another shape than `from`; `config_invalid` for a tool that is defined twice.
pub fn convert(body: &[u8], from: Dialect, to: Dialect, options: &RepairOptions) -> Result<(Vec<u8>, Report)> {
    if from == to {
        return repair(body, from, options);
    }
    let own = parsed(body).and_then(|body| codec(from).api_request(body));
    let body = own.as_ref().map_or(body, |own| own.as_str().as_bytes());
    let (mended, mut report) = repair(body, from, options)?;
    let body = parsed(&mended).ok_or_else(not_json)?;
    let mut history = History::new(Seed::default());
    let incoming = decode_body(from, body)?;
    let joined = join(JoinBase::history(&history), incoming, &Origin::default(), &CountingIds::default());
    // An id that was used before is renamed for the target as well; the rules of `repair` said what was wrong with it.
    report.extend(joined.report);
    for entry in joined.entries {
        history.apply(entry);
    }
    let provider = ProviderRequest {
        dialect: to,
        url: String::new(),
        params: params(body, from, to, &mut report)?,
        stream: body.get("stream").and_then(JsonRef::as_bool).unwrap_or(false),
        headers: Vec::new(),
        settings: Settings { no_stream_usage: true, ..Settings::default() },
    };
    let tools = tools(body, to, &mut report);
    let mut policy = Policy::default();
    policy.call.freshness = Some(Window::Always);
    policy.call.error_freshness = Some(Window::Always);
    policy.call.dangling_calls = Some(match options.dangling {
        Dangling::Omit => DanglingCalls::Omit,
        Dangling::Synthesize => DanglingCalls::Synthesize,
    });
    let request = RenderRequest { provider: &provider, instructions: None, tools: &tools, policy: &policy };
    let rendered = Renderer::default().render(&history, None, &request, 0)?;
    // What was rendered takes the target's rules by construction; nothing rests on that here.
    let (body, left) = repair_rendered(&rendered.body, to, options);
    report.extend(rendered.report);
    for finding in left {
        if finding.severity == Severity::Error {
            report.push(finding.without_path().with_severity(Severity::Warning));
        }
    }
    // Messages of this history were made for this one body: their ids say nothing to anybody.
    report.iter_mut().for_each(|finding| finding.message_id = None);
    Ok((body, report))
}

fn parsed(body: &[u8]) -> Option<JsonRef<'_>> {
    JsonRef::parse(std::str::from_utf8(body).ok()?).ok()
}

fn not_json() -> Error {
    Error::invalid("the body is no JSON in UTF-8; give the request's body as it was, or would have been, sent")
}

/// What a body says beside messages and tools, under the names of the target.
fn params(body: JsonRef<'_>, from: Dialect, to: Dialect, report: &mut Report) -> Result<Json> {
    let said = codec(from).reserved();
    // By place: those of one group stand together.
    let mut places: Vec<(&'static str, String)> = Vec::new();
    let mut choice = None;
    let mut take = |place: &str, value: JsonRef<'_>| match translate_parameter(from, place, to) {
        Some(own) if own.parameter == Parameter::Stream => {}
        Some(own) if places.iter().all(|(place, _)| *place != own.place) => {
            places.push((own.place, translate_value(own.parameter, value, to)));
        }
        _ => report.push(
            Finding::info(
                FindingCode::UnsupportedKey,
                format!("`{place}` has no place in the dialect \"{}\"", to.as_str()),
            )
            .at(format!("/{}", place.replace('.', "/")))
            .with_action(Action::Dropped),
        ),
    };
    for (key, value) in body.entries() {
        let Some(key) = key.as_text() else { continue };
        match key.as_ref() {
            "tools" => {}
            key if names_tool_choice(key) => {
                choice = Some(value);
                // Also in a body of another dialect, where it has no meaning: it is dropped with a finding.
                let serial = Dialect::ALL.into_iter().map(codec).find(|codec| codec.forbids_parallel_calls(value));
                if let Some(place) = serial.and_then(|codec| codec.parameter(Parameter::SerialToolChoice)) {
                    take(place, Json::trusted("false".into()).view());
                }
            }
            // What a server holds is no part of the body, and lost with it.
            key if said.contains(&key) && !codec(from).server_state().contains(&key) => {}
            group if is_group(from, group) && value.kind() == JsonKind::Object => {
                for (name, value) in value.entries() {
                    take(&format!("{group}.{}", name.as_text().unwrap_or_default()), value);
                }
            }
            key => take(key, value),
        }
    }
    if places.iter().any(|(place, _)| *place == "model") {
        report.push(foreign_model(body, from, to));
    }
    let places = in_order(places, &|(a, _), (b, _)| a.split('.').next().cmp(&b.split('.').next()));
    Ok(ObjectWriter::build(|object| {
        let mut rest = places.iter().peekable();
        while let Some((place, value)) = rest.next() {
            let Some((group, name)) = place.split_once('.') else {
                object.raw(place, value);
                continue;
            };
            object.object(group, |out| {
                out.raw(name, value);
                while let Some((place, value)) = rest.peek()
                    && let Some((own, name)) = place.split_once('.')
                    && own == group
                {
                    out.raw(name, value);
                    rest.next();
                }
            });
        }
        if let Some(choice) = choice {
            object.json("tool_choice", choice);
        }
    }))
}

/// The model stays as it was given: which one is meant instead, the caller knows.
fn foreign_model(body: JsonRef<'_>, from: Dialect, to: Dialect) -> Finding {
    let model = body.text("model").unwrap_or_default();
    let (from, to) = (from.as_str(), to.as_str());
    let message =
        format!("`model` is still \"{model}\", a model asked for in \"{from}\"; set one that the \"{to}\" server has");
    Finding::warning(FindingCode::ForeignModel, message).at("/model").with_action(Action::Kept)
}

/// The definitions of a body's tools. Tools that a provider runs itself have no place elsewhere.
fn tools(body: JsonRef<'_>, to: Dialect, report: &mut Report) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    let Some(list) = body.get("tools").filter(|list| list.kind() == JsonKind::Array) else { return tools };
    for (at, tool) in list.items().enumerate() {
        let before = tools.len();
        ToolDefinition::read(tool, &mut tools);
        let (what, member) = match tools.get(before) {
            None => ("a tool that is no function has no place in another dialect", ""),
            Some(tool) if tool.strict && !codec(to).has_strict_tools() => {
                ("`strict` is left out; the arguments may differ from the schema", "/strict")
            }
            Some(_) => continue,
        };
        let path = format!("/tools/{at}{member}");
        report.push(Finding::info(FindingCode::UnsupportedKey, what).at(path).with_action(Action::Dropped));
    }
    tools
}
