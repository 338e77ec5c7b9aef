//! Conversion: decodes a body of one dialect into a history and renders it for another (R42).

use super::dropped_parts::with_places;
use super::renderer::Renderer;
use super::request::RenderRequest;
use crate::error::{Error, Result};
use crate::finding::{Action, Finding, FindingCode, Report, Severity, limit_report};
use crate::history::{History, JoinBase, Origin, join};
use crate::id::{CountingIds, Seed};
use crate::json::{Json, JsonKind, JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::{
    Dangling, Parameter, ProviderRequest, RepairOptions, Settings, TOOL_CHOICE, TOOLS, ToolChoice, ToolDefinition,
    api_request, decode_body, is_group, lost_members, names_tool_choice, repair, repair_rendered, spec,
    translate_parameter, translate_value,
};
use crate::replay::{DanglingCalls, Policy};
use crate::tool::Window;

/// Converts a body of one dialect to another, repaired. The report has the violations, at their places in the given
/// body, and what the target does not support. Ids, tools and parameters get the form of the target.
///
/// # Errors `invalid_input` if the body is not JSON, not a body of `from`, or one with too many errors to repair;
/// `config_invalid` if a tool is defined twice.
pub fn convert(body: &[u8], from: Dialect, to: Dialect, options: &RepairOptions) -> Result<(Vec<u8>, Report)> {
    if from == to {
        return repair(body, from, options);
    }
    let api_request = parsed(body).and_then(|body| api_request(from, body));
    let body = api_request.as_ref().map_or(body, |request| request.as_str().as_bytes());
    let (repaired, mut report) = repair(body, from, options)?;
    if let Some(finding) = report.iter().find(|finding| finding.code == FindingCode::TooManyEdits) {
        return Err(Error::invalid(format!("{} Fix what makes the errors first.", finding.message)));
    }
    let given = body;
    report.extend(parsed(given).map(|body| lost_members(body, from, to)).unwrap_or_default());
    let body = parsed(&repaired).ok_or_else(not_json)?;
    let mut history = History::new(Seed::default());
    let incoming = decode_body(from, body)?;
    let joined = join(JoinBase::history(&history), incoming, &Origin::default(), &CountingIds::default());
    // A repeated id is renamed for the target; the rules of `repair` reported it.
    report.extend(joined.report);
    for entry in joined.entries {
        history.apply(entry);
    }
    if !spec(to).body.has_phases {
        report.extend(lost_phases(&history, to));
    }
    let provider = ProviderRequest {
        dialect: to,
        url: String::new(),
        params: ParameterConversion::new(from, to, &mut report).convert(body),
        stream: body.get("stream").and_then(JsonRef::as_bool).unwrap_or(false),
        headers: Vec::new(),
        settings: Settings { no_stream_usage: true, ..Settings::default() },
    };
    let tools = tools(body, from, to, &mut report);
    let policy = policy(options);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &tools, policy: &policy };
    let rendered = Renderer::default().render(&history, None, &request, 0)?;
    // A rendered body is valid by construction. The rules of the target check it all the same.
    let (body, remaining) = repair_rendered(&rendered.body, to, options);
    // The rules of the target report it, too.
    let dropped = rendered.report.into_iter().filter(|finding| finding.code != FindingCode::MissingReasoning).collect();
    report.extend(with_places(dropped, &history, parsed(given).unwrap_or_default(), (from, to)));
    for finding in remaining {
        if finding.severity == Severity::Error || finding.code == FindingCode::MissingReasoning {
            report.push(finding.without_path().with_severity(Severity::Warning));
        }
    }
    // The message ids are those of the temporary history.
    report.iter_mut().for_each(|finding| finding.message_id = None);
    limit_report(&mut report);
    Ok((body, report))
}

/// Returns the policy of a conversion: all results are sent, and open calls are treated as the options say.
fn policy(options: &RepairOptions) -> Policy {
    let mut policy = Policy::default();
    policy.call.freshness = Some(Window::Always);
    policy.call.error_freshness = Some(Window::Always);
    policy.call.dangling_calls = Some(match options.dangling {
        Dangling::Omit => DanglingCalls::Omit,
        Dangling::Synthesize => DanglingCalls::Synthesize,
    });
    policy
}

fn parsed(body: &[u8]) -> Option<JsonRef<'_>> {
    JsonRef::parse(std::str::from_utf8(body).ok()?).ok()
}

fn not_json() -> Error {
    Error::invalid("the body is no JSON in UTF-8; give the request's body as it was, or would have been, sent")
}

/// The parameters of a body while they are converted to another dialect.
struct ParameterConversion<'b, 'r> {
    from: Dialect,
    to: Dialect,
    /// Place in the target (`temperature`, or `generationConfig.topP`) and JSON value; sorted by the place's first
    /// name.
    places: Vec<(&'static str, String)>,
    tool_choice: Option<JsonRef<'b>>,
    /// The tool choice in the form of the target, if that has the setting against parallel calls in it.
    serial_choice: Option<Json>,
    report: &'r mut Report,
}

impl<'b, 'r> ParameterConversion<'b, 'r> {
    fn new(from: Dialect, to: Dialect, report: &'r mut Report) -> Self {
        Self { from, to, places: Vec::new(), tool_choice: None, serial_choice: None, report }
    }

    /// Returns the members of a body besides messages and tools, under the names of the target.
    fn convert(mut self, body: JsonRef<'b>) -> Json {
        let mut parallel = None;
        for (key, value) in body.entries() {
            match key.as_text() {
                Some(key) if self.belongs_in_choice(&key) => parallel = Some((key, value)),
                Some(key) => self.add_member(&key, value),
                None => {}
            }
        }
        if let Some((key, value)) = parallel {
            self.add_parallel_calls(body, &key, value);
        }
        if self.places.iter().any(|(place, _)| *place == "model") {
            self.report.push(foreign_model(body, self.from, self.to));
        }
        self.into_json()
    }

    fn add_member(&mut self, key: &str, value: JsonRef<'b>) {
        let source = spec(self.from);
        if names_tool_choice(key) {
            return self.add_tool_choice(source.tools.choice_in(value));
        }
        // Messages and tools are converted elsewhere. A reference to the provider's own state is reported as lost.
        let is_state =
            source.service_state.as_ref().is_some_and(|service| service.members().any(|member| member == key));
        if key == TOOLS || source.body.reserved_members.contains(&key) && !is_state {
            return;
        }
        if is_group(self.from, key) && value.kind() == JsonKind::Object {
            for (name, value) in value.entries() {
                let place = format!("{key}.{}", name.as_text().unwrap_or_default());
                if source.body.tool_choice_members.contains(&&*place) {
                    self.add_tool_choice(Some(value));
                } else {
                    self.add(&place, value);
                }
            }
        } else {
            self.add(key, value);
        }
    }

    fn add_tool_choice(&mut self, choice: Option<JsonRef<'b>>) {
        self.tool_choice = choice.or(self.tool_choice);
        // Also in a body of another dialect, where it has no meaning: it is dropped with a finding.
        let serial = choice.and_then(|choice| {
            Dialect::ALL.into_iter().map(spec).find(|spec| spec.tools.forbids_parallel_calls(choice))
        });
        if let Some(place) = serial.and_then(|spec| spec.parameters.place(Parameter::SerialToolChoice)) {
            self.add(place, Json::trusted("false".into()).view());
        }
    }

    /// Returns true for the setting against parallel calls, if the target has it in the tool choice.
    fn belongs_in_choice(&self, key: &str) -> bool {
        let [from, to] = [self.from, self.to].map(|dialect| spec(dialect).parameters);
        from.place(Parameter::ParallelToolCalls) == Some(key)
            && to.place(Parameter::ParallelToolCalls).is_none()
            && to.place(Parameter::SerialToolChoice).is_some()
    }

    /// Adds the setting against parallel calls to the tool choice. A service allows such calls unless it is told not
    /// to, and takes a choice only with tools.
    fn add_parallel_calls(&mut self, body: JsonRef<'b>, key: &str, value: JsonRef<'b>) {
        if value.as_bool() == Some(true) {
            return;
        }
        let tools = spec(self.from).tools.list_in(body).unwrap_or_default();
        let has_tool = tools.items().any(|entry| !read_tools(entry, self.from).is_empty());
        let choice = match self.tool_choice {
            Some(choice) => Dialect::ALL.into_iter().find_map(|dialect| spec(dialect).tools.read_tool_choice(choice)),
            None => Some(ToolChoice::Auto),
        };
        let choice = choice.filter(|_| has_tool && value.as_bool() == Some(false));
        self.serial_choice = choice.and_then(|choice| spec(self.to).tools.serial_tool_choice(&choice));
        if self.serial_choice.is_none() {
            self.add(key, value);
        }
    }

    /// Adds the parameter at a place of the source. Reports one that the target does not have, or has already.
    fn add(&mut self, place: &str, value: JsonRef<'_>) {
        match translate_parameter(self.from, place, self.to) {
            Some(target) if target.parameter == Parameter::Stream => {}
            Some(target) if self.places.iter().all(|(place, _)| *place != target.place) => {
                let value = translate_value(target.parameter, value, self.to);
                let at = self.places.partition_point(|(place, _)| first_name(place) <= first_name(target.place));
                self.places.insert(at, (target.place, value));
            }
            _ => {
                let text = format!("`{place}` has no place in the dialect \"{}\"", self.to.as_str());
                let path = format!("/{}", place.replace('.', "/"));
                let finding = Finding::info(FindingCode::UnsupportedKey, text);
                self.report.push(finding.at(path).with_action(Action::Dropped));
            }
        }
    }

    /// Writes the parameters, those of one object together.
    fn into_json(self) -> Json {
        ObjectWriter::build(|object| {
            let mut rest = self.places.iter().peekable();
            while let Some((place, value)) = rest.next() {
                let Some((group, name)) = place.split_once('.') else {
                    object.raw(place, value);
                    continue;
                };
                object.object(group, |out| {
                    out.raw(name, value);
                    while let Some((place, value)) = rest.peek()
                        && let Some((next_group, name)) = place.split_once('.')
                        && next_group == group
                    {
                        out.raw(name, value);
                        rest.next();
                    }
                });
            }
            if let Some(choice) = self.serial_choice.as_ref().map(Json::view).or(self.tool_choice) {
                object.json(TOOL_CHOICE, choice);
            }
        })
    }
}

/// Returns the name of the member of a body that a place is in: `generationConfig` of `generationConfig.topP`.
fn first_name(place: &str) -> &str {
    place.split_once('.').map_or(place, |(group, _)| group)
}

/// Returns the warning that the model keeps its name. The caller must choose one of the target.
fn foreign_model(body: JsonRef<'_>, from: Dialect, to: Dialect) -> Finding {
    let model = body.text("model").unwrap_or_default();
    let (from, to) = (from.as_str(), to.as_str());
    let message =
        format!("`model` is still \"{model}\", a model asked for in \"{from}\"; set one that the \"{to}\" server has");
    Finding::warning(FindingCode::ForeignModel, message).at("/model").with_action(Action::Kept)
}

/// Returns the note that the target has no place for what the texts of the model are within their answers; none if no
/// text says it.
fn lost_phases(history: &History, to: Dialect) -> Option<Finding> {
    let count =
        history.messages().iter().flat_map(|message| &message.parts).filter(|part| part.phase.is_some()).count();
    let message = format!("`phase` has no place in the dialect \"{}\"; {count} texts are sent without it", to.as_str());
    (count > 0).then(|| Finding::info(FindingCode::UnsupportedKey, message).with_action(Action::Dropped))
}

/// Returns the definitions of a body's tools. Tools that a provider runs itself are dropped: no other provider has
/// them.
fn tools(body: JsonRef<'_>, from: Dialect, to: Dialect, report: &mut Report) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    let codec = spec(from).tools;
    let Some(list) = codec.list_in(body).filter(|list| list.kind() == JsonKind::Array) else { return tools };
    for (at, entry) in list.items().enumerate() {
        let before = tools.len();
        tools.extend(read_tools(entry, from));
        let (what, part) = match tools.get(before) {
            None => ("a tool that is no function has no place in another dialect", ""),
            Some(tool) if tool.strict && !spec(to).body.has_strict_tools => {
                ("`strict` is left out; the arguments may differ from the schema", "/strict")
            }
            Some(_) => continue,
        };
        let path = format!("{}/{at}{part}", codec.list_path());
        report.push(Finding::info(FindingCode::UnsupportedKey, what).at(path).with_action(Action::Dropped));
    }
    tools
}

/// Returns the definitions in an entry of a body's tools: in the form of `dialect`, otherwise in that of another one.
/// Returns an empty list for a tool that the provider runs itself.
fn read_tools(entry: JsonRef<'_>, dialect: Dialect) -> Vec<ToolDefinition> {
    let tools = spec(dialect).tools.read_tools(entry);
    if !tools.is_empty() {
        return tools;
    }
    let others = Dialect::ALL.into_iter().map(|other| spec(other).tools.read_tools(entry));
    others.into_iter().find(|tools| !tools.is_empty()).unwrap_or_default()
}
