//! What a provider is asked beside the messages: address, parameters, tool definitions.

use super::codec::{Codec, codec, is_plain_id, plain};
use super::credentials::{check_headers, check_url};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::finding::{Action, Finding, Report};
use crate::json::{ArrayWriter, Json, JsonRef, JsonStr, Kind, ObjectWriter};
use crate::message::Dialect;
use std::borrow::Cow;

/// Where and how to call.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRequest {
    /// The wire format.
    pub dialect: Dialect,
    /// Without credentials.
    pub url: String,
    /// Merged into the body.
    pub params: Json,
    /// Whether to ask for a stream.
    pub stream: bool,
    /// Not secret.
    pub headers: Vec<(String, String)>,
    /// What the server wants otherwise.
    pub settings: Settings,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// `[A-Za-z0-9_-]{1,64}` for every provider.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Json>,
    /// Its arguments keep to the schema to the letter, where the provider can see to that.
    pub strict: bool,
}

impl ToolDefinition {
    /// Reads an entry of `tools` of any dialect: a function, or several; what is none adds nothing.
    pub(crate) fn read(tool: JsonRef<'_>, tools: &mut Vec<Self>) {
        if let Some(list) = declared(tool, "functionDeclarations") {
            return list.items().for_each(|tool| Self::read(tool, tools));
        }
        let own = tool.get("function").unwrap_or(tool);
        let is_function = tool.text("type").is_none_or(|kind| matches!(&*kind, "function" | "custom"));
        let Some(name) = own.text("name").filter(|name| is_function && !name.is_empty()) else { return };
        let schema = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"]
            .iter()
            .find_map(|key| own.get(key));
        let parameters = schema.filter(|schema| schema.is_object()).map(|schema| {
            // Gemini shouts the names of types, where JSON Schema does not.
            let mut out = String::new();
            write_schema(&mut out, schema, 64);
            Json::trusted(out)
        });
        tools.push(Self {
            name: plain(&name, 64),
            description: own.text("description").map(Cow::into_owned),
            parameters,
            strict: own.get("strict").and_then(JsonRef::as_bool) == Some(true),
        });
    }

    /// The schema of its arguments; without one it takes none.
    pub(crate) fn schema(&self) -> Json {
        self.parameters.clone().unwrap_or_else(|| Json::trusted(r#"{"type":"object","properties":{}}"#.into()))
    }
}

/// Copies a schema, with the names of its types in lower case, so many levels deep.
fn write_schema(out: &mut String, schema: JsonRef<'_>, levels: u32) {
    match schema.kind() {
        Kind::Object if levels > 0 => {
            let mut object = ObjectWriter::new(out);
            for (key, value) in schema.entries() {
                let slot = object.key_token(key.as_raw());
                match value.as_raw() {
                    "\"OBJECT\"" | "\"ARRAY\"" | "\"STRING\"" | "\"NUMBER\"" | "\"INTEGER\"" | "\"BOOLEAN\""
                    | "\"NULL\""
                        if key.is_text("type") =>
                    {
                        slot.push_str(&value.as_raw().to_ascii_lowercase());
                    }
                    _ => write_schema(slot, value, levels - 1),
                }
            }
            object.end();
        }
        Kind::Array if levels > 0 => {
            let mut array = ArrayWriter::new(out);
            schema.items().for_each(|item| write_schema(array.item(), item, levels - 1));
            array.end();
        }
        _ => out.push_str(schema.as_raw()),
    }
}

impl ProviderRequest {
    /// Refuses what cannot be meant, above all a credential where it would be stored.
    ///
    /// # Errors
    /// `config_invalid`, never with the credential in its words.
    pub fn check(&self) -> Result<()> {
        check_url(&self.url)?;
        check_headers(&self.headers)?;
        if self.params.view().kind() != Kind::Object {
            return Err(Error::config("`provider.params` is an object: model, temperature, and so on"));
        }
        for reserved in codec(self.dialect).reserved() {
            if self.params.view().find(reserved).is_some() {
                return Err(Error::config(format!(
                    "`params.{reserved}` is written by the session; append to it, or use `instructions` and `input`"
                )));
            }
        }
        Ok(())
    }

    /// The headers that go with the request.
    #[must_use]
    pub fn wire_headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        for (name, value) in codec(self.dialect).headers() {
            if !self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        for header in &self.headers {
            if !header.0.eq_ignore_ascii_case("content-type") {
                headers.push(header.clone());
            }
        }
        headers
    }

    /// Writes the body's members up to the messages, into an object that stays open.
    ///
    /// # Errors
    /// `config_invalid` for a tool that is named twice.
    pub fn write_head(
        &self,
        object: &mut ObjectWriter<'_>,
        tools: &[ToolDefinition],
        report: &mut Report,
    ) -> Result<()> {
        let codec = codec(self.dialect);
        let params = self.params.view();
        let tools = encode_tools(codec, tools, params.find("tools"))?;
        // "Function calling config is set without function_declarations", says Gemini where a server's own tools are all.
        let callable = tools.as_ref().is_some_and(|tools| {
            codec.tools_in().is_none_or(|wrap| tools.view().items().any(|tool| declared(tool, wrap).is_some()))
        });
        let mut named = Vec::new();
        let mut leave_out = |name: &str, why: &str| {
            report.push(
                Finding::info("unsupported_key", format!("`{name}` is {why}; it is left out")).did(Action::Dropped),
            );
        };
        for (key, value) in params.entries() {
            let name = key.as_text().unwrap_or_default();
            match name.as_ref() {
                "tools" | "stream" => continue,
                // `check` took it: it is null.
                empty if codec.reserved().contains(&empty) => continue,
                gathered if codec.gathers(gathered) => continue,
                // "'parallel_tool_calls' is only allowed when 'tools' are specified", says OpenAI.
                "tool_choice" | "parallel_tool_calls" if !callable => {
                    leave_out(&name, "refused without tools");
                    continue;
                }
                "tool_choice"
                    if self.dialect == Dialect::Gemini
                        && ["toolConfig", "tool_config"].iter().any(|own| params.get(own).is_some()) =>
                {
                    leave_out(&name, "said by `toolConfig` already");
                    continue;
                }
                foreign if codec.is_foreign(foreign, value) => {
                    leave_out(&name, "no key of this dialect");
                    continue;
                }
                "tool_choice" if !codec.is_own_choice(value) => match ToolChoice::of(value) {
                    ToolChoice::Other(_) if write_allowed(object, value, self.dialect) => {}
                    ToolChoice::Other(_) => {
                        leave_out(&name, "said in words that this dialect does not know");
                        continue;
                    }
                    choice => codec.write_choice(object, &choice),
                },
                _ => object.copy(key, value),
            }
            named.push(name);
        }
        codec.write_defaults(self, object, &named, report);
        if let Some(tools) = tools {
            object.json("tools", tools.view());
        }
        Ok(())
    }
}

/// OpenAI's choice among some tools, which its two formats say otherwise; false where it is none, or the target has no such.
fn write_allowed(object: &mut ObjectWriter<'_>, choice: JsonRef<'_>, to: Dialect) -> bool {
    let nested = to == Dialect::OpenAiChat;
    if !choice.says("type", "allowed_tools") || !nested && to != Dialect::OpenAiResponses {
        return false;
    }
    let [open, tool_open, tool_close, close] = if nested {
        [r#""allowed_tools":{"mode":"#, r#""function":{"name":"#, "}}", "]}}"]
    } else {
        [r#""mode":"#, r#""name":"#, "}", "]}"]
    };
    let given = choice.get("allowed_tools").unwrap_or(choice);
    let mode = given.get("mode").map_or("\"auto\"", JsonRef::as_raw);
    // A custom tool of Responses goes to chat as a function; tools of the provider's own stay behind.
    let goes = |tool: &JsonRef<'_>| tool.says("type", "function") || nested && tool.says("type", "custom");
    let name = |tool: JsonRef<'_>| {
        let name = tool.get("function").unwrap_or(tool).text("name")?;
        Some(JsonStr::new(&plain(&name, 64)))
    };
    let names: Vec<_> = given.get("tools").unwrap_or_default().items().filter(goes).filter_map(name).collect();
    if names.is_empty() {
        return false;
    }
    let out = object.key("tool_choice");
    for piece in [r#"{"type":"allowed_tools","#, open, mode, r#","tools":["#] {
        out.push_str(piece);
    }
    let mut comma = "";
    for name in &names {
        for piece in [comma, r#"{"type":"function","#, tool_open, name.token(), tool_close] {
            out.push_str(piece);
        }
        comma = ",";
    }
    out.push_str(close);
    true
}

/// Definitions in the dialect's own shape, those of `params` first; none where there is no tool.
fn encode_tools(codec: &dyn Codec, tools: &[ToolDefinition], given: Option<JsonRef<'_>>) -> Result<Option<Json>> {
    let mut names: Vec<String> = Vec::new();
    let mut name = |name: String| {
        if name.is_empty() || !names.contains(&name) {
            names.push(name);
            return Ok(());
        }
        Err(Error::config(format!("the tool \"{name}\" is defined twice; a provider refuses that")))
    };
    let wrap = codec.tools_in();
    let mut out = String::from("[");
    for tool in given.unwrap_or_default().items() {
        let inner = wrap.and_then(|wrap| declared(tool, wrap));
        for tool in inner.unwrap_or_default().items() {
            name(tool.get("function").unwrap_or(tool).string("name"))?;
        }
        if inner.is_none() {
            name(tool.get("function").unwrap_or(tool).string("name"))?;
        }
        push_item(&mut out, tool.as_raw());
    }
    let mut own = String::new();
    for tool in tools {
        if tool.name.is_empty() || !is_plain_id(&tool.name) {
            return Err(Error::config(format!(
                "the tool name \"{}\" is refused by providers; use up to 64 letters, digits, `_` and `-`",
                tool.name
            )));
        }
        if tool.parameters.as_ref().is_some_and(|schema| !schema.view().is_object()) {
            return Err(Error::config(format!("`parameters` of the tool \"{}\" is a JSON Schema object", tool.name)));
        }
        name(codec.tool_name(&tool.name).into_owned())?;
        if !own.is_empty() {
            own.push(',');
        }
        let mut object = ObjectWriter::new(&mut own);
        codec.write_tool(&mut object, tool);
        object.end();
    }
    match wrap {
        _ if own.is_empty() => {}
        Some(wrap) => push_item(&mut out, &format!("{{\"{wrap}\":[{own}]}}")),
        None => push_item(&mut out, &own),
    }
    out.push(']');
    Ok((out.len() > 2).then(|| Json::trusted(out)))
}

/// The definitions in an entry of `tools`, in the member of that name or of its name in snake case.
fn declared<'a>(tool: JsonRef<'a>, wrap: &str) -> Option<JsonRef<'a>> {
    tool.get(wrap).or_else(|| tool.get("function_declarations"))
}

fn push_item(out: &mut String, item: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push_str(item);
}

/// Which tool a model is to call, whatever the dialect it was said in.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice<'a> {
    /// As it likes.
    Auto,
    /// None.
    None,
    /// One of them.
    Any,
    /// That one.
    Named(Cow<'a, str>),
    /// Something that only the dialect it was said in knows.
    Other(JsonRef<'a>),
}

impl<'a> ToolChoice<'a> {
    /// Reads a `tool_choice` of any dialect, or Gemini's `toolConfig`.
    #[must_use]
    pub fn of(choice: JsonRef<'a>) -> Self {
        let gemini = choice.get("functionCallingConfig").or_else(|| choice.get("function_calling_config"));
        let word = choice
            .as_text()
            .or_else(|| gemini.and_then(|config| config.text("mode")))
            .or_else(|| choice.text("type"))
            .unwrap_or_default();
        let only = gemini
            .and_then(|config| config.get("allowedFunctionNames").or_else(|| config.get("allowed_function_names")));
        let only = only.and_then(|names| {
            let mut names = names.items();
            names.next().filter(|_| names.next().is_none())?.as_text()
        });
        let name = choice.get("function").and_then(|function| function.text("name")).or_else(|| choice.text("name"));
        match word.as_ref() {
            "auto" | "AUTO" => Self::Auto,
            "none" | "NONE" => Self::None,
            "any" | "ANY" | "required" => only.map_or(Self::Any, Self::Named),
            "function" | "tool" | "custom" => name.map_or(Self::Other(choice), Self::Named),
            _ => Self::Other(choice),
        }
    }
}
