//! Translates parameters and tool choices from one dialect to another.

use super::parameters::{Parameter, TranslatedParameter};
use super::tool_choice::{TOOL_CHOICE, ToolChoice};
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::spec::{AllDialects, DialectSpec, NamedDialect};

/// Translates the parameter at `place` of one dialect; `None` if the other one does not have it.
#[must_use]
pub(crate) fn translate_parameter(from: &DialectSpec, place: &str, to: &DialectSpec) -> Option<TranslatedParameter> {
    let from = from.parameters;
    let place = &*from.spelled(place);
    let parameter = Parameter::ALL.iter().copied().find(|parameter| from.place(*parameter) == Some(place))?;
    let place = to.parameters.place(parameter)?;
    Some(TranslatedParameter { parameter, place })
}

/// Translates a parameter of any other dialect to the named one.
pub(super) fn translate_foreign(dialect: NamedDialect, name: &str) -> Option<TranslatedParameter> {
    let mut others = dialect.all.iter().filter(|other| other.dialect() != dialect.spec.dialect());
    others.find_map(|other| translate_parameter(other, name, dialect.spec))
}

/// Returns true if a member of that name holds the parameter in some dialect.
pub(super) fn names_parameter(all: &AllDialects, member: &str, parameter: Parameter) -> bool {
    all.iter().any(|spec| spec.parameters.place(parameter) == Some(member))
}

/// Returns true if a member of that name is an object that holds parameters of the dialect.
#[must_use]
pub(crate) fn is_group(spec: &DialectSpec, name: &str) -> bool {
    let codec = spec.parameters;
    let name = &*codec.spelled(name);
    let places = Parameter::ALL.iter().filter_map(|parameter| codec.place(*parameter));
    places.filter_map(|place| place.split_once('.')).any(|(group, _)| group == name)
}

/// Returns true if a body's member of that name holds the tool choice in some dialect.
#[must_use]
pub(crate) fn names_tool_choice(all: &AllDialects, member: &str) -> bool {
    all.iter().any(|spec| spec.body.tool_choice_members.contains(&member))
}

/// Returns true if a body's member of that name is an object with the tool choice in it, in some dialect.
fn holds_tool_choice(all: &AllDialects, name: &str) -> bool {
    let is_choice_in = |member: &&str| member.split_once('.') == Some((name, TOOL_CHOICE));
    all.iter().any(|spec| spec.body.tool_choice_members.iter().any(is_choice_in))
}

/// Reads a tool choice in the form of any dialect. Returns `None` for a choice that only the dialect of the request
/// has.
#[must_use]
pub(super) fn read_tool_choice<'a>(all: &AllDialects, choice: JsonRef<'a>) -> Option<ToolChoice<'a>> {
    all.iter().find_map(|spec| spec.tools.read_tool_choice(choice))
}

/// Returns parameters without a tool choice that names a tool for which `has_tool` returns false; `None` if they have
/// none.
#[must_use]
pub(crate) fn drop_unavailable_tool_choice(
    all: &AllDialects,
    params: JsonRef<'_>,
    has_tool: &dyn Fn(&str) -> bool,
) -> Option<Json> {
    let is_missing = |member: &str, value: JsonRef<'_>| {
        names_tool_choice(all, member)
            && match read_tool_choice(all, value) {
                Some(ToolChoice::Named(name)) => !has_tool(&name),
                Some(ToolChoice::Among { names, .. }) => !names.iter().all(|name| has_tool(name)),
                Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Any) | None => false,
            }
    };
    // The choice may be beside parameters, in an object that holds them.
    let is_missing_within = |name: &str, group: JsonRef<'_>| {
        holds_tool_choice(all, name) && group.get(TOOL_CHOICE).is_some_and(|value| is_missing(TOOL_CHOICE, value))
    };
    let name_of = |key: JsonRef<'_>| key.as_text().unwrap_or_default().into_owned();
    let is_changed = |name: &str, value: JsonRef<'_>| is_missing(name, value) || is_missing_within(name, value);
    if !params.entries().any(|(key, value)| is_changed(&name_of(key), value)) {
        return None;
    }
    Some(ObjectWriter::build(|out| {
        for (key, value) in params.entries() {
            if is_missing_within(&name_of(key), value) {
                let mut group = ObjectWriter::new(out.key_token(key.as_raw()));
                group.copy_all(value, TOOL_CHOICE);
                group.end();
            } else if !is_missing(&name_of(key), value) {
                out.copy(key, value);
            }
        }
    }))
}
