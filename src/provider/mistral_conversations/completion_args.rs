//! `completion_args`: the member of a request that holds its settings and the tool choice, such as
//! `{"max_tokens":1024,"tool_choice":"any"}` (client-python, `CompletionArgs`).

use super::MistralConversations;
use crate::finding::Report;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{TOOL_CHOICE, ToolChoice, left_out, member_of, moved_members};
use crate::provider::spec::{ParameterCodec, ToolCodec, ToolMembers, TranslateForeign};

pub(super) const NAME: &str = "completion_args";

/// The place of the tool choice.
pub(super) const CHOICE_PLACE: &str = "completion_args.tool_choice";

/// Returns true if a parameter is `completion_args` or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    name == NAME || name == TOOL_CHOICE || member_of(NAME, name, translate).is_some()
}

/// Writes `completion_args`: its own members unchanged, the parameters of other dialects that it lacks, and the tool
/// choice. Returns the names of the only tools that the choice allows, if it names some: the member for the choice
/// cannot.
pub(super) fn write(
    object: &mut ObjectWriter<'_>,
    members: &ToolMembers<'_>,
    report: &mut Report,
) -> Option<Vec<String>> {
    let native = members.params.find(NAME).filter(|args| args.is_object());
    let given = native.unwrap_or_default();
    let moved = moved_members(NAME, (members.params, given), members.translate);
    let mut written = String::new();
    let mut out = ObjectWriter::new(&mut written);
    out.copy_all(given, TOOL_CHOICE);
    for (member, value) in moved {
        out.raw(member.place, &MistralConversations.value(member.parameter, value));
    }
    let names = write_choice(&mut out, native, members, report);
    out.end();
    if written != "{}" || native.is_some() {
        object.raw(NAME, &written);
    }
    names
}

/// Writes the tool choice: that of `completion_args`, or one beside it in the form of any dialect. Returns the names of
/// the tools that it allows, if it names some.
fn write_choice<'m>(
    out: &mut ObjectWriter<'_>,
    native: Option<JsonRef<'m>>,
    members: &ToolMembers<'m>,
    report: &mut Report,
) -> Option<Vec<String>> {
    let choice = |object: JsonRef<'_>| object.find(TOOL_CHOICE).is_some();
    let (name, choice) = match native.filter(|args| choice(*args)) {
        Some(args) => (CHOICE_PLACE, args.find(TOOL_CHOICE)?),
        None => (TOOL_CHOICE, members.params.find(TOOL_CHOICE)?),
    };
    // No rule of Mistral's is known about its own member, and an agent has tools of its own.
    let has_tools = members.tools.is_some() || members.params.find("agent_id").is_some();
    if name == TOOL_CHOICE && !has_tools {
        report.push(left_out(name, "rejected without tools"));
        return None;
    }
    if MistralConversations.is_native_tool_choice(choice) {
        out.json(TOOL_CHOICE, choice);
        return None;
    }
    let read = (members.read_choice)(choice);
    if !read.as_ref().is_some_and(|choice| MistralConversations.write_tool_choice(out, choice)) {
        report.push(left_out(name, "in a form that this dialect does not have"));
        return None;
    }
    match read? {
        ToolChoice::Named(tool) => Some(vec![tool.into_owned()]),
        ToolChoice::Among { names, .. } => Some(names),
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Any => None,
    }
}
