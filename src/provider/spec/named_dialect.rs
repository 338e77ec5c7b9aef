//! A dialect among all.

use super::dialect_spec::DialectSpec;
use super::item_format::ItemFormats;

/// Every dialect.
pub(crate) type AllDialects = [&'static DialectSpec];

/// The dialect that a caller named, and all: their items, parameters and tool choices are recognized, too.
#[derive(Clone, Copy)]
pub(crate) struct NamedDialect {
    pub spec: &'static DialectSpec,
    pub all: &'static AllDialects,
    /// The item formats of all dialects, to compare items with that should be of this one.
    pub formats: ItemFormats,
}

impl NamedDialect {
    /// Returns the dialects whose items have the form of the named one: that first.
    pub fn family(self) -> impl Iterator<Item = Self> {
        let named = self.formats.named;
        let others = self.all.iter().filter(|spec| spec.dialect() != named.dialect);
        let others = others.filter(|spec| spec.items.family == named.family).map(move |spec| Self {
            spec,
            formats: ItemFormats { named: &spec.items, ..self.formats },
            ..self
        });
        std::iter::once(self).chain(others)
    }
}
