//! What a provider is asked beside the messages: address, parameters, tool definitions.

use super::settings::Settings;
use crate::error::{Error, Result};
use crate::finding::{Action, Finding, Report};
use crate::json::{Json, JsonRef, Kind, ObjectWriter};
use crate::message::Dialect;

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
}

/// Words in which the name of a credential ends, in an address or a header.
const SECRETS: [&str; 14] = [
    "api-key",
    "apikey",
    "access-key",
    "subscription-key",
    "secret-key",
    "token",
    "auth",
    "authorization",
    "secret",
    "password",
    "credential",
    "cookie",
    "signature",
    "jwt",
];

/// Whether a query parameter or a header of that name holds a credential.
fn names_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase().replace(['_', '.'], "-");
    let bare = name.strip_prefix("x-").unwrap_or(&name);
    matches!(bare, "key" | "sig" | "api-key") || SECRETS.iter().any(|secret| bare.ends_with(secret))
}

/// Whether a header's value is one, whatever its name.
fn is_secret(value: &str) -> bool {
    let value = value.trim_start().to_ascii_lowercase();
    ["bearer ", "basic ", "sk-", "gsk_", "xai-", "aiza"].iter().any(|prefix| value.starts_with(prefix))
}

/// Undoes `%41` in the name of a parameter.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| std::str::from_utf8(tail.get(..2)?).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { tail.get(2..).unwrap_or(&[]) } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl ProviderRequest {
    /// Refuses what cannot be meant, above all a credential where it would be stored.
    ///
    /// # Errors
    /// `config_invalid`, never with the credential in its words.
    pub fn check(&self) -> Result<()> {
        super::supported(self.dialect)?;
        if self.url.is_empty() {
            return Err(Error::config("`provider.url` is empty; give the address that takes the request"));
        }
        let (address, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let query = query.split('#').next().unwrap_or("");
        let named = query.split('&').any(|pair| names_secret(&unescaped(pair.split('=').next().unwrap_or(""))));
        let authority = address.split_once("://").map_or("", |(_, rest)| rest).split('/').next().unwrap_or("");
        if named || authority.contains('@') {
            return Err(Error::config(
                "the address holds a credential; it would be stored with the run. Give it to the host instead (`headers` of `drive`)",
            ));
        }
        if let Some((name, _)) = self.headers.iter().find(|(name, value)| names_secret(name) || is_secret(value)) {
            return Err(Error::config(format!(
                "the header `{name}` holds a credential; give it to the host instead (`headers` of `drive`)"
            )));
        }
        if self.params.view().kind() != Kind::Object {
            return Err(Error::config("`provider.params` is an object: model, temperature, and so on"));
        }
        for reserved in reserved(self.dialect) {
            if self.params.view().get(reserved).is_some() {
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
        if self.dialect == Dialect::Anthropic
            && !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("anthropic-version"))
        {
            headers.push(("anthropic-version".into(), "2023-06-01".into()));
        }
        headers.extend(self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-type")).cloned());
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
        let params = self.params.view();
        let tools = encode_tools(self.dialect, tools, params.find("tools"))?;
        let mut named = Vec::new();
        for (key, value) in params.entries() {
            let name = key.as_text().unwrap_or_default();
            match name.as_ref() {
                "tools" | "stream" => continue,
                // "'parallel_tool_calls' is only allowed when 'tools' are specified", says OpenAI.
                "tool_choice" | "parallel_tool_calls" if tools.is_none() => {
                    report.push(
                        Finding::info("unsupported_key", format!("`{name}` is refused without tools; it is left out"))
                            .did(Action::Dropped),
                    );
                    continue;
                }
                "tool_choice" => {
                    object.json("tool_choice", encode_tool_choice(self.dialect, value).view());
                }
                foreign if foreign_keys(self.dialect).contains(&foreign) => {
                    report.push(
                        Finding::info(
                            "unsupported_key",
                            format!("`{foreign}` is no key of this dialect; it is left out"),
                        )
                        .did(Action::Dropped),
                    );
                    continue;
                }
                _ => object.key_token(key.as_raw()).push_str(value.as_raw()),
            }
            named.push(name);
        }
        let missing = |key: &str| !named.iter().any(|name| name == key);
        if self.stream {
            object.bool("stream", true);
            if self.dialect == Dialect::OpenAiChat && !self.settings.no_stream_usage && missing("stream_options") {
                object.raw("stream_options", r#"{"include_usage":true}"#);
            }
        }
        if self.dialect == Dialect::Anthropic && missing("max_tokens") {
            object.number("max_tokens", 4096);
            report.push(Finding::info(
                "unsupported_key",
                "Anthropic wants `max_tokens`; without one in `params` it is 4096",
            ));
        }
        if let Some(tools) = tools {
            object.json("tools", tools.view());
        }
        Ok(())
    }
}

fn reserved(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Anthropic => &["messages", "system"],
        _ => &["messages"],
    }
}

/// Keys of another dialect that this one answers with 400.
fn foreign_keys(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Anthropic => &[
            "stream_options",
            "n",
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "response_format",
            "seed",
            "parallel_tool_calls",
            "user",
            "store",
            "max_completion_tokens",
            "reasoning_effort",
            "stop",
            "modalities",
            "prediction",
        ],
        Dialect::OpenAiChat => {
            &["anthropic_version", "anthropic_beta", "stop_sequences", "system", "context_management"]
        }
        _ => &[],
    }
}

/// Definitions in the dialect's own shape, those of `params` first; none where there is no tool.
fn encode_tools(dialect: Dialect, tools: &[ToolDefinition], given: Option<JsonRef<'_>>) -> Result<Option<Json>> {
    let mut names: Vec<String> = Vec::new();
    let mut name = |name: String| {
        if name.is_empty() || !names.contains(&name) {
            names.push(name);
            return Ok(());
        }
        Err(Error::config(format!("the tool \"{name}\" is defined twice; a provider refuses that")))
    };
    let mut out = String::from("[");
    for tool in given.iter().flat_map(|given| given.items()) {
        let own = tool.get("function").unwrap_or(tool);
        name(own.text("name").unwrap_or_default().into_owned())?;
        push_item(&mut out, tool.as_raw());
    }
    for tool in tools {
        let legal = !tool.name.is_empty()
            && tool.name.len() <= 64
            && tool.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !legal {
            return Err(Error::config(format!(
                "the tool name \"{}\" is refused by providers; use up to 64 letters, digits, `_` and `-`",
                tool.name
            )));
        }
        if tool.parameters.as_ref().is_some_and(|schema| !schema.view().is_object()) {
            return Err(Error::config(format!("`parameters` of the tool \"{}\" is a JSON Schema object", tool.name)));
        }
        name(tool.name.clone())?;
        push_item(&mut out, encode_tool(dialect, tool).as_str());
    }
    out.push(']');
    Ok((out.len() > 2).then(|| Json::trusted(out)))
}

fn push_item(out: &mut String, item: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push_str(item);
}

fn encode_tool(dialect: Dialect, tool: &ToolDefinition) -> Json {
    let empty = || Json::trusted(r#"{"type":"object","properties":{}}"#.into());
    let schema = tool.parameters.clone().unwrap_or_else(empty);
    let describe = |object: &mut ObjectWriter<'_>| {
        object.text("name", &tool.name);
        if let Some(description) = &tool.description {
            object.text("description", description);
        }
    };
    ObjectWriter::build(|object| {
        if dialect == Dialect::Anthropic {
            describe(object);
            // Anthropic wants the schema's type said.
            if schema.view().get("type").is_some() {
                object.json("input_schema", schema.view());
            } else {
                object.object("input_schema", |inner| {
                    inner.text("type", "object");
                    for (key, value) in schema.view().entries() {
                        inner.key_token(key.as_raw()).push_str(value.as_raw());
                    }
                });
            }
        } else {
            object.text("type", "function").object("function", |function| {
                describe(function);
                function.json("parameters", schema.view());
            });
        }
    })
}

/// A choice given in the other dialect's shape is put in this one's; anything else goes as it is.
fn encode_tool_choice(dialect: Dialect, choice: JsonRef<'_>) -> Json {
    let word = choice.as_text();
    let kind = choice.text("type");
    let function = choice.get("function").and_then(|function| function.text("name"));
    let named = |name: &str| match dialect {
        Dialect::Anthropic => ObjectWriter::build(|o| {
            o.text("type", "tool").text("name", name);
        }),
        _ => ObjectWriter::build(|o| {
            o.text("type", "function").object("function", |f| {
                f.text("name", name);
            });
        }),
    };
    match (dialect, word.as_deref(), kind.as_deref()) {
        (Dialect::Anthropic, Some(word @ ("auto" | "none")), _) => ObjectWriter::build(|o| {
            o.text("type", word);
        }),
        (Dialect::Anthropic, Some("required"), _) => Json::trusted(r#"{"type":"any"}"#.into()),
        (Dialect::Anthropic, _, Some("function")) => named(&function.unwrap_or_default()),
        (Dialect::OpenAiChat, _, Some(word @ ("auto" | "none"))) => Json::trusted(format!("\"{word}\"")),
        (Dialect::OpenAiChat, _, Some("any")) => Json::trusted("\"required\"".into()),
        (Dialect::OpenAiChat, _, Some("tool")) => named(&choice.text("name").unwrap_or_default()),
        _ => choice.to_owned(),
    }
}
