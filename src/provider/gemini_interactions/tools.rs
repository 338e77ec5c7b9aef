//! Tools and the tool choice: `"tools":[{"type":"function","name":"search","parameters":{…}}]` and
//! `"generation_config":{"tool_choice":{"allowed_tools":{"mode":"any","tools":["search"]}}}`.

use super::{Interactions, generation_config};
use crate::finding::Report;
use crate::json::{JsonKind, JsonRef, ObjectWriter};
use crate::provider::request::{TOOL_CHOICE, TOOLS, ToolChoice, ToolDefinition};
use crate::provider::spec::{ToolCodec, ToolMembers};

/// The modes of a tool choice.
const MODES: [&str; 4] = ["auto", "any", "none", "validated"];

/// The member of a tool choice with some tools.
const ALLOWED_TOOLS: &str = "allowed_tools";

fn is_function(entry: JsonRef<'_>) -> bool {
    entry.has_text("type", "function")
}

impl ToolCodec for Interactions {
    /// Returns an empty list for a tool that Google runs: `{"type":"google_search"}`.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        ToolDefinition::from_object(entry, "parameters").filter(|_| is_function(entry)).into_iter().collect()
    }

    /// Computer use has the model write calls, too, and a choice may name the tools of an MCP server.
    fn has_callable_tool(&self, entry: JsonRef<'_>) -> bool {
        is_function(entry) || entry.has_text("type", "computer_use") || entry.has_text("type", "mcp_server")
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        out.text("type", "function").text("name", &tool.name);
        if let Some(description) = &tool.description {
            out.text("description", description);
        }
        if let Some(schema) = &tool.parameters {
            out.json("parameters", schema.view());
        }
    }

    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        let allowed = choice.get(ALLOWED_TOOLS).filter(|_| choice.get("type").is_none());
        let mode = match allowed {
            Some(allowed) => allowed.text("mode").unwrap_or("auto".into()),
            None => choice.as_text()?,
        };
        let mut names: Vec<String> =
            allowed.and_then(|allowed| allowed.get(TOOLS)).unwrap_or_default().items().filter_map(name_of).collect();
        match (&*mode, names.len()) {
            ("none", _) => Some(ToolChoice::None),
            ("auto" | "validated", 0) => Some(ToolChoice::Auto),
            ("any", 0) => Some(ToolChoice::Any),
            ("any", 1) => names.pop().map(|name| ToolChoice::Named(name.into())),
            ("auto" | "validated" | "any", _) => Some(ToolChoice::Among { required: mode == "any", names }),
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        match choice.kind() {
            JsonKind::String => MODES.iter().any(|mode| choice.is_text(mode)),
            // That of Chat Completions has a type.
            _ => choice.get(ALLOWED_TOOLS).is_some() && choice.get("type").is_none(),
        }
    }

    /// Writes the member of `generation_config`.
    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let (mode, names) = match choice {
            ToolChoice::Auto => ("auto", Vec::new()),
            ToolChoice::None => ("none", Vec::new()),
            ToolChoice::Any => ("any", Vec::new()),
            ToolChoice::Named(name) => ("any", vec![name.to_string()]),
            ToolChoice::Among { names, required } => (if *required { "any" } else { "auto" }, names.clone()),
        };
        if names.is_empty() {
            object.text(TOOL_CHOICE, mode);
            return true;
        }
        object.object(TOOL_CHOICE, |choice| {
            choice.object(ALLOWED_TOOLS, |allowed| {
                allowed.text("mode", mode).array(TOOLS, |list| names.iter().for_each(|name| list.text(name)));
            });
        });
        true
    }

    fn write_members(&self, object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
        generation_config::write(object, members, report);
        if let Some(tools) = members.tools {
            object.json(TOOLS, tools);
        }
    }
}

fn name_of(name: JsonRef<'_>) -> Option<String> {
    name.as_text().map(Into::into)
}
