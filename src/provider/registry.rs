//! The specs of all dialects, from the list in `message/dialect.rs`.

use super::spec::{AllDialects, DialectSpec, ItemFormat, ItemFormats, NamedDialect};
use crate::message::{Dialect, dialects};

macro_rules! register {
    ($($(#[$doc:meta])* $_number:literal => $variant:ident = $_name:literal in $folder:ident, $_matching:ident, $_places:ident;)*) => {
        /// Returns the description of a dialect.
        pub(crate) fn spec(dialect: Dialect) -> &'static DialectSpec {
            match dialect {
                $(Dialect::$variant => &super::$folder::SPEC,)*
            }
        }

        /// Every dialect.
        pub(crate) static ALL: &AllDialects = &[$(&super::$folder::SPEC),*];

        static ITEM_FORMATS: &[&ItemFormat] = &[$(&super::$folder::SPEC.items),*];
    };
}

dialects!(register);

/// Returns a dialect among all.
pub(crate) fn named(dialect: Dialect) -> NamedDialect {
    let spec = spec(dialect);
    let formats = ItemFormats { named: &spec.items, all: ITEM_FORMATS, plain: Dialect::OpenAiChat };
    NamedDialect { spec, all: ALL, formats }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r65_each_spec_describes_the_dialect_of_its_line() {
        for (at, dialect) in Dialect::ALL.into_iter().enumerate() {
            let spec = spec(dialect);
            assert_eq!((spec.dialect(), spec.content.dialect), (dialect, dialect));
            assert!(std::ptr::eq(spec, ALL[at]) && std::ptr::eq(&spec.items, ITEM_FORMATS[at]));
            assert!(spec.body.reserved_members.contains(&spec.items.list));
        }
    }
}
