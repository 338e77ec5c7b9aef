//! Parameters of a dialect that has them inside another member of the body, such as
//! `{"generation_config":{"temperature":0}}`.

use super::parameters::TranslatedParameter;
use crate::json::JsonRef;
use crate::provider::spec::TranslateForeign;

/// Translates a parameter of another dialect to a member of the group.
pub(crate) fn member_of(group: &str, name: &str, translate: TranslateForeign<'_>) -> Option<TranslatedParameter> {
    let found = translate(name)?;
    let place = found.place.strip_prefix(group)?.strip_prefix('.')?;
    Some(TranslatedParameter { place, ..found })
}

/// Returns the parameters of other dialects that are moved into the group: those that `native`, the group as it was
/// given, lacks.
pub(crate) fn moved_members<'m>(
    group: &str,
    (params, native): (JsonRef<'m>, JsonRef<'m>),
    translate: TranslateForeign<'_>,
) -> Vec<(TranslatedParameter, JsonRef<'m>)> {
    let mut moved: Vec<(TranslatedParameter, JsonRef<'m>)> = Vec::new();
    for (key, value) in params.entries().filter(|(_, value)| !value.is_null()) {
        let Some(member) = key.as_text().and_then(|key| member_of(group, &key, translate)) else { continue };
        if native.get(member.place).is_none() && moved.iter().all(|(other, _)| other.place != member.place) {
            moved.push((member, value));
        }
    }
    moved
}
