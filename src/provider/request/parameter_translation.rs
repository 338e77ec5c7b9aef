//! Translates parameters and tool choices from one dialect to another.

use super::parameters::Parameter;
use super::tool_choice::ToolChoice;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::registry::spec;

/// A parameter and its place in the body of the dialect that it is translated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslatedParameter {
    /// The parameter.
    pub parameter: Parameter,
    /// Its place: a member, or `group.member`.
    pub place: &'static str,
}

/// Translates the parameter at `place` of one dialect; `None` if the other one does not have it.
#[must_use]
pub fn translate_parameter(from: Dialect, place: &str, to: Dialect) -> Option<TranslatedParameter> {
    let from = spec(from).parameters;
    let place = &*from.spelled(place);
    let parameter = Parameter::ALL.iter().copied().find(|parameter| from.place(*parameter) == Some(place))?;
    let place = spec(to).parameters.place(parameter)?;
    Some(TranslatedParameter { parameter, place })
}

/// Returns true if a member of that name holds the parameter in some dialect.
pub(super) fn names_parameter(member: &str, parameter: Parameter) -> bool {
    Dialect::ALL.into_iter().any(|dialect| spec(dialect).parameters.place(parameter) == Some(member))
}

/// Returns the JSON of a translated parameter's value.
#[must_use]
pub fn translate_value(parameter: Parameter, value: JsonRef<'_>, to: Dialect) -> String {
    spec(to).parameters.value(parameter, value)
}

/// Returns true if a member of that name is an object that holds parameters of the dialect.
#[must_use]
pub fn is_group(dialect: Dialect, name: &str) -> bool {
    let codec = spec(dialect).parameters;
    let name = &*codec.spelled(name);
    let places = Parameter::ALL.iter().filter_map(|parameter| codec.place(*parameter));
    places.filter_map(|place| place.split_once('.')).any(|(group, _)| group == name)
}

/// Returns true if a body's member of that name holds the tool choice in some dialect.
#[must_use]
pub fn names_tool_choice(member: &str) -> bool {
    Dialect::ALL.into_iter().any(|dialect| spec(dialect).body.tool_choice_members.contains(&member))
}

/// Reads a tool choice in the form of any dialect. Returns `None` for a choice that only the dialect of the request has.
#[must_use]
pub fn read_tool_choice(choice: JsonRef<'_>) -> Option<ToolChoice<'_>> {
    Dialect::ALL.into_iter().find_map(|dialect| spec(dialect).tools.read_tool_choice(choice))
}

/// Returns parameters without a tool choice that names a tool for which `has_tool` returns false; `None` if they have none.
#[must_use]
pub fn drop_unavailable_tool_choice(params: JsonRef<'_>, has_tool: &dyn Fn(&str) -> bool) -> Option<Json> {
    let is_missing = |member: &str, value: JsonRef<'_>| {
        names_tool_choice(member)
            && match read_tool_choice(value) {
                Some(ToolChoice::Named(name)) => !has_tool(&name),
                Some(ToolChoice::Among { names, .. }) => !names.iter().all(|name| has_tool(name)),
                Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Any) | None => false,
            }
    };
    let name_of = |key: JsonRef<'_>| key.as_text().unwrap_or_default().into_owned();
    if !params.entries().any(|(key, value)| is_missing(&name_of(key), value)) {
        return None;
    }
    Some(ObjectWriter::build(|out| {
        for (key, value) in params.entries() {
            if !is_missing(&name_of(key), value) {
                out.copy(key, value);
            }
        }
    }))
}
