//! `inferenceConfig`: the member of a request that holds its settings, such as `{"maxTokens":1024,"topP":0.9}`.

use super::Bedrock;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::TranslatedParameter;
use crate::provider::spec::{ParameterCodec, TranslateForeign};

pub(super) const NAME: &str = "inferenceConfig";

/// Translates a parameter of another dialect to a member of `inferenceConfig`.
fn member_of(name: &str, translate: TranslateForeign<'_>) -> Option<TranslatedParameter> {
    let found = translate(name)?;
    let place = found.place.strip_prefix(NAME)?.strip_prefix('.')?;
    Some(TranslatedParameter { place, ..found })
}

/// Returns true if a parameter is `inferenceConfig` or is moved into it.
pub(super) fn contains_parameter(name: &str, translate: TranslateForeign<'_>) -> bool {
    name == NAME || member_of(name, translate).is_some()
}

/// Writes `inferenceConfig`: its own members unchanged, then the parameters of other dialects that it lacks.
pub(super) fn write(params: JsonRef<'_>, object: &mut ObjectWriter<'_>, translate: TranslateForeign<'_>) {
    let native = params.find(NAME).filter(|config| config.is_object());
    let mut moved: Vec<(TranslatedParameter, JsonRef<'_>)> = Vec::new();
    for (key, value) in params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(member) = key.as_text().and_then(|key| member_of(&key, translate)) else { continue };
        let is_given = native.is_some_and(|config| config.get(member.place).is_some());
        if !is_given && moved.iter().all(|(other, _)| other.place != member.place) {
            moved.push((member, value));
        }
    }
    if native.is_none() && moved.is_empty() {
        return;
    }
    object.object(NAME, |config| {
        config.copy_all(native.unwrap_or_default(), "");
        for (member, value) in moved {
            config.raw(member.place, &Bedrock.value(member.parameter, value));
        }
    });
}
