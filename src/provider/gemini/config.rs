//! `generationConfig`: the member of a Gemini request that holds its settings, such as
//! `{"maxOutputTokens":1024,"topP":0.9}`.

use super::Gemini;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::TranslatedParameter;
use crate::provider::spec::{ParameterCodec, TranslateForeign};

/// The two names of the member; it is written under the first.
const NAMES: [&str; 2] = ["generationConfig", "generation_config"];

/// Returns a name in camel case, as the API's reference has it; names in snake case are read, too.
pub(super) fn camel_case(name: &str) -> String {
    let (mut out, mut upper) = (String::new(), false);
    for c in name.chars() {
        if c == '_' {
            upper = true;
        } else {
            out.push(if std::mem::take(&mut upper) { c.to_ascii_uppercase() } else { c });
        }
    }
    out
}

/// Translates a parameter of another dialect to a member of `generationConfig`.
fn member_of(name: &str, translate: TranslateForeign<'_>) -> Option<TranslatedParameter> {
    let found = translate(name)?;
    let place = found.place.strip_prefix(NAMES[0])?.strip_prefix('.')?;
    Some(TranslatedParameter { place, ..found })
}

/// Returns true if a parameter is `generationConfig` or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    NAMES.contains(&name) || member_of(name, translate).is_some()
}

/// Writes `generationConfig`: its own members unchanged, then the parameters of other dialects that it lacks.
pub(super) fn write(params: JsonRef<'_>, object: &mut ObjectWriter<'_>, translate: TranslateForeign<'_>) {
    let native_config = NAMES.iter().find_map(|name| params.find(name)).filter(|config| config.is_object());
    let is_given = |place: &str| {
        let mut members = native_config.unwrap_or_default().entries();
        members.any(|(key, _)| key.as_text().is_some_and(|key| camel_case(&key) == place))
    };
    let mut moved: Vec<(TranslatedParameter, JsonRef<'_>)> = Vec::new();
    for (key, value) in params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(member) = key.as_text().and_then(|key| member_of(&key, translate)) else { continue };
        if !is_given(member.place) && moved.iter().all(|(other, _)| other.place != member.place) {
            moved.push((member, value));
        }
    }
    if native_config.is_none() && moved.is_empty() {
        return;
    }
    object.object(NAMES[0], |config| {
        config.copy_all(native_config.unwrap_or_default(), "");
        for (member, value) in moved {
            config.raw(member.place, &Gemini.value(member.parameter, value));
        }
    });
}
