//! Lossless JSON.
//!
//! Providers compare what they sent with what they receive, so digits of a number, order and duplicates of keys,
//! escapes and lone surrogates must survive storage (R45). A value is kept as the text that it was written in, checked
//! once, and read through borrowed views; a value is decoded only when an application reads it. Nothing recurses, so
//! nesting of any depth is safe.
//!
//! [`Json`] is an owned value, [`JsonRef`] a view of one, [`JsonStr`] the token of a string.

mod fingerprint;
mod javascript_form;
mod memory_estimate;
mod scan;
mod string;
mod tokens;
mod value;
mod view;
mod walk;
mod without_member;
mod write;

pub use javascript_form::JavaScriptForm;
pub use memory_estimate::fits_memory;
pub use scan::{SyntaxError, check, skip_space, trimmed};
pub(crate) use string::ends_in_high_surrogate;
pub use string::{JsonStr, push_escaped, push_text};
pub use value::Json;
pub use view::{ArrayItems, JsonKind, JsonRef, ObjectEntries, TextMembers};
pub use walk::{PathStep, ValueWalk};
pub use write::{ArrayWriter, ObjectWriter, list_of};

#[cfg(test)]
mod tests;
