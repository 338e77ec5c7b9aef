//! Healing (R74): what a provider refused with a known sentence is repaired, exactly that. Each dialect has a table of
//! [`Remedy`] in its folder, beside its rules; those of a family are tried one after another. Sending the body again is
//! the caller's part.

mod cure;
mod error_answer;
mod heal;
mod plain_text;
mod quotation;
mod remedy;

pub(crate) use cure::{Cure, signature_mark};
pub(crate) use error_answer::ErrorAnswer;
pub use heal::Healed;
pub(crate) use heal::{heal, leave_out_refused, refused_rule};
pub(crate) use remedy::{Remedy, by_rules};
