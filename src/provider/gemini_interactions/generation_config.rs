//! `generation_config`: the member of a request that holds its settings and the tool choice, such as
//! `{"max_output_tokens":1024,"tool_choice":"any"}`.

use super::Interactions;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{TOOL_CHOICE, TranslatedParameter};
use crate::provider::spec::{ParameterCodec, ToolCodec, ToolMembers, TranslateForeign};

pub(super) const NAME: &str = "generation_config";

/// Translates a parameter of another dialect to a member of `generation_config`.
fn member_of(name: &str, translate: TranslateForeign<'_>) -> Option<TranslatedParameter> {
    let found = translate(name)?;
    let place = found.place.strip_prefix(NAME)?.strip_prefix('.')?;
    Some(TranslatedParameter { place, ..found })
}

/// Returns true if a parameter is `generation_config`, the tool choice in it, or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    [NAME, TOOL_CHOICE].contains(&name) || member_of(name, translate).is_some()
}

/// Writes `generation_config`: its own members unchanged, then the parameters of other dialects that it lacks, and the
/// tool choice.
pub(super) fn write(object: &mut ObjectWriter<'_>, members: &ToolMembers<'_>, report: &mut Report) {
    let params = members.params;
    let native = params.find(NAME).filter(|config| config.is_object()).unwrap_or_default();
    let mut moved: Vec<(TranslatedParameter, JsonRef<'_>)> = Vec::new();
    for (key, value) in params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(member) = key.as_text().and_then(|key| member_of(&key, members.translate)) else { continue };
        if native.get(member.place).is_none() && moved.iter().all(|(other, _)| other.place != member.place) {
            moved.push((member, value));
        }
    }
    let choice = native.find(TOOL_CHOICE).or_else(|| params.find(TOOL_CHOICE));
    if native.entries().next().is_none() && moved.is_empty() && choice.is_none() {
        return;
    }
    let mut leave_out = |why: &str| {
        let sentence = format!("`{TOOL_CHOICE}` is {why}; it is left out");
        report.push(Finding::info(FindingCode::UnsupportedKey, sentence).with_action(Action::Dropped));
    };
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
