//! `generation_config`: the member of a request that holds its settings and the tool choice, such as
//! `{"max_output_tokens":1024,"tool_choice":"any"}`.

use super::Interactions;
use crate::finding::Report;
use crate::json::ObjectWriter;
use crate::provider::request::{TOOL_CHOICE, left_out, member_of, moved_members};
use crate::provider::spec::{ParameterCodec, ToolCodec, ToolMembers, TranslateForeign};

pub(super) const NAME: &str = "generation_config";

/// Returns true if a parameter is `generation_config`, the tool choice in it, or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    [NAME, TOOL_CHOICE].contains(&name) || member_of(NAME, name, translate).is_some()
}

/// Writes `generation_config`: its own members unchanged, then the parameters of other dialects that it lacks, and the
/// tool choice.
pub(super) fn write(object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
    let params = members.params;
    let native = params.find(NAME).filter(|config| config.is_object()).unwrap_or_default();
    let moved = moved_members(NAME, (params, native), members.translate);
    let choice = native.find(TOOL_CHOICE).or_else(|| params.find(TOOL_CHOICE));
    if native.entries().next().is_none() && moved.is_empty() && choice.is_none() {
        return;
    }
    let mut leave_out = |why: &str| report.push(left_out(TOOL_CHOICE, why));
    object.object(NAME, |config| {
        config.copy_all(native, TOOL_CHOICE);
        for (member, value) in moved {
            config.raw(member.place, &Interactions.value(member.parameter, value));
        }
        let Some(choice) = choice else { return };
        if !members.has_callable_tool {
            leave_out("rejected without tools");
        } else if Interactions.is_native_tool_choice(choice) {
            config.json(TOOL_CHOICE, choice);
        } else if !(members.read_choice)(choice).is_some_and(|choice| Interactions.write_tool_choice(config, &choice)) {
            leave_out("in a form that this dialect does not have");
        }
    });
}
