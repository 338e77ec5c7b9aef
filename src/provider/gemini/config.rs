//! `generationConfig`: the member of a Gemini request that holds its settings, such as `{"maxOutputTokens":1024,"topP":0.9}`.

use crate::json::{JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::{place_in, spelled, value_in};

/// The two names of the member; it is written under the first.
const NAMES: [&str; 2] = ["generationConfig", "generation_config"];

/// Returns the name that a setting of another dialect has in `generationConfig`: `maxOutputTokens` for `max_tokens`.
fn setting_name(name: &str) -> Option<&'static str> {
    let others = Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Gemini);
    let place = others.into_iter().find_map(|dialect| place_in(dialect, name, Dialect::Gemini))?;
    place.strip_prefix(NAMES[0])?.strip_prefix('.')
}

/// Returns true if a parameter is `generationConfig` or is moved into it.
pub(super) fn gathers(name: &str) -> bool {
    NAMES.contains(&name) || setting_name(name).is_some()
}

/// Writes `generationConfig`: its own members as given, then the parameters of other dialects that it lacks.
pub(super) fn write(params: JsonRef<'_>, object: &mut ObjectWriter<'_>) {
    let given = NAMES.iter().find_map(|name| params.find(name)).filter(|given| given.is_object());
    let is_given = |name: &str| {
        let mut members = given.unwrap_or_default().entries();
        members.any(|(key, _)| key.as_text().is_some_and(|key| spelled(Dialect::Gemini, &key) == name))
    };
    let mut moved: Vec<(&'static str, JsonRef<'_>)> = Vec::new();
    for (key, value) in params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(name) = key.as_text().and_then(|key| setting_name(&key)) else { continue };
        if !is_given(name) && moved.iter().all(|(other, _)| *other != name) {
            moved.push((name, value));
        }
    }
    if given.is_none() && moved.is_empty() {
        return;
    }
    object.object(NAMES[0], |config| {
        config.copy_all(given.unwrap_or_default(), "");
        for (name, value) in moved {
            config.raw(name, &value_in(name, value));
        }
    });
}
