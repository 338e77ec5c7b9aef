//! `completion_args`: the member of a request that holds its settings and the tool choice, such as
//! `{"max_tokens":1024,"tool_choice":"any"}` (client-python, `CompletionArgs`).

use super::MistralConversations;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{TOOL_CHOICE, TranslatedParameter};
use crate::provider::spec::{ParameterCodec, ToolCodec, ToolMembers, TranslateForeign};

pub(super) const NAME: &str = "completion_args";

/// The place of the tool choice.
pub(super) const CHOICE_PLACE: &str = "completion_args.tool_choice";

/// Translates a parameter of another dialect to a member of `completion_args`. Those of the chat endpoint have the same
/// names.
fn member_of(name: &str, translate: TranslateForeign<'_>) -> Option<TranslatedParameter> {
    let found = translate(name)?;
    let place = found.place.strip_prefix(NAME)?.strip_prefix('.')?;
    Some(TranslatedParameter { place, ..found })
}

/// Returns true if a parameter is `completion_args` or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    name == NAME || name == TOOL_CHOICE || member_of(name, translate).is_some()
}

/// Writes `completion_args`: its own members unchanged, the parameters of other dialects that it lacks, and the tool
/// choice.
pub(super) fn write(object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
    let native = members.params.find(NAME).filter(|args| args.is_object());
    let mut moved: Vec<(TranslatedParameter, JsonRef<'_>)> = Vec::new();
    for (key, value) in members.params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(member) = key.as_text().and_then(|key| member_of(&key, members.translate)) else { continue };
        let is_given = native.is_some_and(|args| args.get(member.place).is_some());
        if !is_given && moved.iter().all(|(other, _)| other.place != member.place) {
            moved.push((member, value));
        }
    }
    let inner = native.and_then(|args| args.find(TOOL_CHOICE)).map(|choice| (CHOICE_PLACE, choice));
    let outer = members.params.find(TOOL_CHOICE).map(|choice| (TOOL_CHOICE, choice));
    let choice = inner.or(outer);
    let mut written = String::new();
    let mut out = ObjectWriter::new(&mut written);
    out.copy_all(native.unwrap_or_default(), TOOL_CHOICE);
    for (member, value) in moved {
        out.raw(member.place, &MistralConversations.value(member.parameter, value));
    }
    if let Some((name, choice)) = choice {
        let mut leave_out = |why: &str| {
            let finding = Finding::info(FindingCode::UnsupportedKey, format!("`{name}` is {why}; it is left out"));
            report.push(finding.with_action(Action::Dropped));
        };
        if !members.has_callable_tool {
            leave_out("rejected without tools");
        } else if MistralConversations.is_native_tool_choice(choice) {
            out.json(TOOL_CHOICE, choice);
        } else if !(members.read_choice)(choice)
            .is_some_and(|choice| MistralConversations.write_tool_choice(&mut out, &choice))
        {
            leave_out("in a form that this dialect does not have");
        }
    }
    out.end();
    if written != "{}" || native.is_some() {
        object.raw(NAME, &written);
    }
}
