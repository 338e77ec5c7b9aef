//! The list of tools in a request.

use super::tools::ToolDefinition;
use crate::error::{Error, Result};
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::name_charset::is_plain_id;
use crate::provider::spec::ToolCodec;

/// Returns the list of definitions in the dialect's form, those of `params` first; none if there is no tool.
pub(super) fn encode_tools(
    codec: &dyn ToolCodec,
    tools: &[ToolDefinition],
    given: Option<JsonRef<'_>>,
) -> Result<Option<Json>> {
    let mut names: Vec<String> = Vec::new();
    let mut name = |name: String| {
        if name.is_empty() || !names.contains(&name) {
            names.push(name);
            return Ok(());
        }
        Err(Error::config(format!("the tool \"{name}\" is defined twice; a provider refuses that")))
    };
    let mut out = String::from("[");
    for entry in given.unwrap_or_default().items() {
        codec.tool_names(entry).into_iter().try_for_each(&mut name)?;
        push_item(&mut out, entry.as_raw());
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
    if !own.is_empty() {
        push_item(&mut out, &codec.tool_entries(own));
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
