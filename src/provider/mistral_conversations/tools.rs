//! Tools and the tool choice of a conversation: `{"type":"function","function":{"name":"search","parameters":{…}}}`
//! beside tools that Mistral runs, such as `{"type":"web_search"}` (client-python, `ConversationRequest`).

use super::{MistralConversations, completion_args};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::mistral::MISTRAL;
use crate::provider::request::{TOOL_CHOICE, TOOLS, ToolChoice, ToolDefinition};
use crate::provider::spec::{ToolCodec, ToolMembers};

/// The values of a tool choice (client-python, `ToolChoiceEnum`).
const CHOICES: [&str; 4] = ["auto", "none", "any", "required"];

/// Definitions are those of the chat endpoint.
impl ToolCodec for MistralConversations {
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition> {
        MISTRAL.read_tools(entry)
    }

    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        MISTRAL.tool_names(entry)
    }

    fn has_callable_tool(&self, entry: JsonRef<'_>) -> bool {
        entry.text("type").is_none_or(|kind| kind == "function")
    }

    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition) {
        MISTRAL.write_tool(out, tool);
    }

    /// Reads the words of the chat endpoint.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
        match &*choice.as_text()? {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "any" | "required" => Some(ToolChoice::Any),
            _ => None,
        }
    }

    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool {
        CHOICES.iter().any(|word| choice.is_text(word))
    }

    /// The member cannot name tools: the model is to call one, and [`write_members`](Self::write_members) sends only
    /// those that are named, as other clients do (vercel/ai).
    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool {
        let word = match choice {
            ToolChoice::Auto | ToolChoice::Among { required: false, .. } => "auto",
            ToolChoice::None => "none",
            ToolChoice::Any | ToolChoice::Named(_) | ToolChoice::Among { required: true, .. } => "any",
        };
        object.text(TOOL_CHOICE, word);
        true
    }

    fn write_members(&self, object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
        let names = completion_args::write(object, members, report);
        let is_named = |entry: &JsonRef<'_>| {
            names.iter().flatten().any(|name| self.tool_names(*entry).iter().any(|own| own == name))
        };
        let sends_named = members.tools.is_some_and(|tools| tools.items().any(|entry| is_named(&entry)));
        if names.is_some() {
            let effect =
                if sends_named { "only these tools are sent" } else { "none is sent, so any tool may be called" };
            let sentence = format!("`{TOOL_CHOICE}` names tools, which this dialect cannot: {effect}");
            report.push(Finding::info(FindingCode::UnsupportedKey, sentence).with_action(Action::Rewritten));
        }
        let Some(tools) = members.tools else { return };
        if !sends_named {
            object.json(TOOLS, tools);
            return;
        }
        object
            .array(TOOLS, |list| tools.items().filter(is_named).for_each(|entry| list.item().push_str(entry.as_raw())));
    }
}
