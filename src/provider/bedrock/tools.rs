//! Tools and the tool choice of a request to Converse:
//! `"toolConfig":{"tools":[{"toolSpec":{"name":"search","inputSchema":{"json":{…}}}}],"toolChoice":{"any":{}}}`.

use super::Bedrock;
use super::block::{TOOL_RESULT, TOOL_USE};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{TOOL_CHOICE, TOOLS, ToolChoice, ToolDefinition};
use crate::provider::spec::{ToolCodec, ToolMembers};
use std::borrow::Cow;

/// The member of a body that holds tools and tool choice.
pub(super) const TOOL_CONFIG: &str = "toolConfig";

const CHOICE: &str = "toolChoice";

/// The members of `params` that may hold the tool choice beside those of `toolConfig`.
pub(super) const TOOL_CHOICE_MEMBERS: [&str; 2] = [TOOL_CHOICE, CHOICE];

const SPEC: &str = "toolSpec";

/// The name of a tool of which only results are left.
pub(super) const UNKNOWN: &str = "unknown";

impl ToolCodec for Bedrock {
    fn list_in<'a>(&self, body: JsonRef<'a>) -> Option<JsonRef<'a>> {
        body.find(TOOL_CONFIG).and_then(|config| config.find(TOOLS)).or_else(|| body.find(TOOLS))
    }

    fn list_path(&self) -> &'static str {
        "/toolConfig/tools"
    }

    /// Returns an empty list for a tool that the service runs, `{"systemTool":…}`, and for a cache point.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        let Some(spec) = entry.find(SPEC) else { return Vec::new() };
        let schema = spec.find("inputSchema").and_then(|schema| schema.find("json"));
        let tool = ToolDefinition::from_object(spec, "");
        let parameters = schema.filter(|schema| schema.is_object()).map(JsonRef::to_owned);
        tool.map(|tool| ToolDefinition { parameters, ..tool }).into_iter().collect()
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        entry.find(SPEC).or_else(|| entry.find("systemTool")).map(|tool| tool.string("name")).into_iter().collect()
    }

    /// A call or a result of a tool that the service runs: `{"toolUse":{"name":"nova_grounding",…}}`.
    fn tool_of_block(&self, block: JsonRef<'_>) -> Option<ToolDefinition> {
        let name = block.find(TOOL_USE).map(|call| call.string("name"));
        let name = name.or_else(|| block.find(TOOL_RESULT).map(|_| String::new()))?;
        Some(ToolDefinition::of_called(if name.is_empty() { UNKNOWN } else { &name }))
    }

    fn has_callable_tool(&self, entry: JsonRef<'_>) -> bool {
        entry.find(SPEC).is_some()
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.object(SPEC, |spec| {
            spec.text("name", &tool.name);
            if let Some(description) = tool.description.as_ref().filter(|text| !text.is_empty()) {
                spec.text("description", description);
            }
            let schema = tool.schema();
            spec.object("inputSchema", |inner| {
                // As in Anthropic's format, a schema has a type.
                if schema.view().get("type").is_some() {
                    inner.json("json", schema.view());
                    return;
                }
                inner.object("json", |json| {
                    json.text("type", "object");
                    json.copy_all(schema.view(), "");
                });
            });
            if tool.strict {
                spec.bool("strict", true);
            }
        });
    }

    fn choice_in<'a>(&self, value: JsonRef<'a>) -> Option<JsonRef<'a>> {
        if value.get(TOOLS).is_some() || value.get(CHOICE).is_some() { value.find(CHOICE) } else { Some(value) }
    }

    /// Reads `{"auto":{}}`, `{"any":{}}` or `{"tool":{"name":"search"}}`.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        let choice = choice.get(CHOICE).filter(|_| choice.get(TOOLS).is_none()).unwrap_or(choice);
        let mut members = choice.entries();
        let (key, value) = members.next().filter(|(_, value)| value.is_object())?;
        if members.next().is_some() {
            return None;
        }
        match &*key.as_text()? {
            "auto" => Some(ToolChoice::Auto),
            "any" => Some(ToolChoice::Any),
            "tool" => value.text("name").map(ToolChoice::Named),
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// Writes the member of `toolConfig`. There is none for "no tool".
    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let kind = match choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Any => "any",
            ToolChoice::Named(_) => "tool",
            ToolChoice::None | ToolChoice::Among { .. } => return false,
        };
        object.object(CHOICE, |out| {
            out.object(kind, |inner| {
                if let ToolChoice::Named(name) = choice {
                    inner.text("name", name);
                }
            });
        });
        true
    }

    /// Writes `toolConfig`: the tools, the tool choice, and further members of the one in the parameters.
    fn write_members(&self, object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
        let params = members.params;
        let config = params.find(TOOL_CONFIG).unwrap_or_default();
        let own = config.find(CHOICE).map(|choice| (Cow::Borrowed("toolConfig.toolChoice"), choice));
        let given = TOOL_CHOICE_MEMBERS.into_iter().filter_map(|name| Some((Cow::Borrowed(name), params.find(name)?)));
        let choice = own.into_iter().chain(given).next();
        let mut leave_out = |name: &str, why: &str| {
            let finding = Finding::info(FindingCode::UnsupportedKey, format!("`{name}` is {why}; it is left out"));
            report.push(finding.with_action(Action::Dropped));
        };
        let Some(tools) = members.tools else {
            if let Some((name, _)) = choice {
                leave_out(&name, "rejected without tools");
            }
            return;
        };
        object.object(TOOL_CONFIG, |out| {
            out.json(TOOLS, tools);
            if let Some((name, choice)) = choice {
                if !members.has_callable_tool {
                    leave_out(&name, "rejected without tools");
                } else if !(members.read_choice)(choice).is_some_and(|choice| self.write_tool_choice(out, &choice)) {
                    leave_out(&name, "in a form that this dialect does not have");
                }
            }
            for (key, value) in config.entries() {
                if !key.is_text(TOOLS) && !key.is_text(CHOICE) {
                    out.copy(key, value);
                }
            }
        });
    }
}
