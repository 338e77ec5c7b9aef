//! Tool definitions and tool choices in the form of a dialect.

use super::parameter_codec::TranslateForeign;
use crate::finding::Report;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::request::{TOOLS, ToolChoice, ToolDefinition};
use std::borrow::Cow;

/// What [`ToolCodec::write_members`] writes.
pub(crate) struct ToolMembers<'m> {
    /// The list of tools; none if there is no tool.
    pub tools: Option<JsonRef<'m>>,
    /// True if the host runs one of them.
    pub has_callable_tool: bool,
    pub params: JsonRef<'m>,
    /// Reads a tool choice in the form of any dialect.
    pub read_choice: &'m dyn Fn(JsonRef<'m>) -> Option<ToolChoice<'m>>,
    /// Translates a parameter of another dialect, for one that has the tool choice beside parameters.
    pub translate: TranslateForeign<'m>,
}

/// Reads and writes the tools of a body, and the tool choice. Methods that most dialects share have a default.
pub(crate) trait ToolCodec: Sync {
    /// Returns the list of tools in a body, or in the parameters of one.
    fn list_in<'a>(&self, body: JsonRef<'a>) -> Option<JsonRef<'a>> {
        body.find(TOOLS)
    }

    /// Returns the JSON pointer of the list of tools.
    fn list_path(&self) -> &'static str {
        "/tools"
    }

    /// Returns the definitions in an entry of the body's tools; an empty list for a tool that the provider runs itself.
    fn read_tools(&self, entry: JsonRef<'_>) -> Vec<ToolDefinition>;

    /// Returns the names of the tools in an entry of the body's tools. A name is empty for a tool without one.
    fn tool_names(&self, entry: JsonRef<'_>) -> Vec<String> {
        vec![entry.string("name")]
    }

    /// The definition that a request must have because of a block of this dialect without a neutral form, if it needs
    /// one (`BodyProfile::required_with_calls`).
    fn tool_of_block(&self, _block: JsonRef<'_>) -> Option<ToolDefinition> {
        None
    }

    /// Returns true if the host runs a tool in an entry of the body's tools. Only then may the body have a tool choice.
    fn has_callable_tool(&self, _entry: JsonRef<'_>) -> bool {
        true
    }

    /// Writes the members of a tool's definition.
    fn write_tool(&self, out: &mut ObjectWriter<'_>, tool: &ToolDefinition);

    /// Returns the entries of the body's tools for definitions, which are separated by commas.
    fn tool_entries(&self, definitions: String) -> String {
        definitions
    }

    /// Returns the name of a tool in a request. Gemini rejects names that begin with a digit, so they get a `_`.
    fn tool_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(name)
    }

    /// Returns the name that [`tool_name`](Self::tool_name) may have changed to `name`; `None` if it never returns this
    /// name for another one.
    fn name_before_change<'n>(&self, _name: &'n str) -> Option<&'n str> {
        None
    }

    /// Returns the tool choice in the value of a member that may hold other members of the request, too.
    fn choice_in<'a>(&self, value: JsonRef<'a>) -> Option<JsonRef<'a>> {
        Some(value)
    }

    /// Reads a tool choice in the form of this dialect. Returns `None` for one in another form, and for a choice that
    /// no other dialect has.
    fn read_tool_choice<'a>(&self, choice: JsonRef<'a>) -> Option<ToolChoice<'a>>;

    /// Returns true if a `tool_choice` has the form of this dialect and is copied.
    fn is_native_tool_choice(&self, choice: JsonRef<'_>) -> bool;

    /// Returns true if a tool choice allows one call an answer only.
    fn forbids_parallel_calls(&self, _choice: JsonRef<'_>) -> bool {
        false
    }

    /// Returns a tool choice that allows one call an answer only; `None` if the dialect says that elsewhere, or has no
    /// such form of the choice.
    fn serial_tool_choice(&self, _choice: &ToolChoice<'_>) -> Option<Json> {
        None
    }

    /// Writes the member for the tool choice. Returns false if the dialect cannot express it.
    fn write_tool_choice(&self, object: &mut ObjectWriter<'_>, choice: &ToolChoice<'_>) -> bool;

    /// Writes the members that hold the tools, after the parameters. Reports what the dialect cannot express.
    fn write_members(&self, object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, _report: &mut Report) {
        if let Some(tools) = members.tools {
            object.json(TOOLS, tools);
        }
    }
}
