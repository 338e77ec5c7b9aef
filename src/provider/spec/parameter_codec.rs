//! Parameters in the form of a dialect.

use crate::finding::Report;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::{Parameter, ProviderRequest, TranslatedParameter, nested_schema};
use std::borrow::Cow;

/// Translates a parameter of any other dialect, by its name there, to this one.
pub(crate) type TranslateForeign<'t> = &'t dyn Fn(&str) -> Option<TranslatedParameter>;

/// What [`ParameterCodec::write_defaults`] needs beside the body.
pub(crate) struct DefaultsContext<'c> {
    pub request: &'c ProviderRequest,
    /// The members that are written already.
    pub named: &'c [Cow<'c, str>],
    pub translate: TranslateForeign<'c>,
    pub report: &'c mut Report,
}

/// Where a dialect has the parameters of a request, and how it writes them. Methods that most dialects share have a
/// default.
pub(crate) trait ParameterCodec: Sync {
    /// Returns the place of a parameter in the body: `temperature`, or `generationConfig.topP` for a member of an
    /// object. `None` if the dialect does not have it.
    fn place(&self, parameter: Parameter) -> Option<&'static str>;

    /// Returns a member's name as [`place`](Self::place) spells it.
    fn spelled<'n>(&self, name: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(name)
    }

    /// Returns true if a parameter is not copied to the body under its name: [`write_defaults`](Self::write_defaults)
    /// writes it to another place, or it is in the URL.
    fn is_moved(&self, _name: &str, _translate: TranslateForeign<'_>) -> bool {
        false
    }

    /// Returns the JSON of a parameter's value that came from another dialect, for this dialect.
    fn value(&self, _parameter: Parameter, value: JsonRef<'_>) -> String {
        nested_schema(value)
    }

    /// Writes the members that a body needs and `params` lack.
    fn write_defaults(&self, object: &mut ObjectWriter<'_>, context: &mut DefaultsContext<'_>);
}
