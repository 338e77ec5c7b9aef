//! Options that are one of several words.

/// Declares an option that is one of several words, with the value that each stands for.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $value:ty { $($word:literal => $meaning:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(pub $value);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    $($word => Ok(Self($meaning)),)+
                    other => Err(serde::de::Error::unknown_variant(other, &[$($word),+])),
                }
            }
        }
    };
}
pub(crate) use words;
