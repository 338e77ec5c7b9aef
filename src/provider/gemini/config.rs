//! Where Gemini has the settings of a request: in one member, under names of its own.

use crate::json::{JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::{place_in, spelled, value_in};

/// The member, and its name in snake case.
const NAMES: [&str; 2] = ["generationConfig", "generation_config"];

/// What a setting of another dialect is called in `generationConfig`.
fn name_of(name: &str) -> Option<&'static str> {
    let others = Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Gemini);
    let place = others.into_iter().find_map(|dialect| place_in(dialect, name, Dialect::Gemini))?;
    place.strip_prefix(NAMES[0])?.strip_prefix('.')
}

/// Whether a parameter goes into `generationConfig`, or is it.
pub fn gathers(name: &str) -> bool {
    NAMES.contains(&name) || name_of(name).is_some()
}

/// Writes `generationConfig` from the parameters: what it says itself, then what other dialects' words say beside that.
pub fn write(params: JsonRef<'_>, object: &mut ObjectWriter<'_>) {
    let given = NAMES.iter().find_map(|name| params.find(name)).filter(|given| given.is_object());
    let mut found: Vec<(&'static str, JsonRef<'_>)> = Vec::new();
    for (key, value) in params.entries() {
        let name = key.as_text().and_then(|key| name_of(&key)).filter(|_| !value.is_null());
        if let Some(name) = name
            && !given
                .unwrap_or_default()
                .entries()
                .any(|(own, _)| own.as_text().is_some_and(|own| spelled(Dialect::Gemini, &own) == name))
            && found.iter().all(|(own, _)| *own != name)
        {
            found.push((name, value));
        }
    }
    if given.is_none() && found.is_empty() {
        return;
    }
    object.object(NAMES[0], |config| {
        config.copy_all(given.unwrap_or_default(), "");
        for (name, value) in found {
            config.raw(name, &value_in(name, value));
        }
    });
}
