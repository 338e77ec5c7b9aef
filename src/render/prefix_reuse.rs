//! How much of a body repeats the last one.

use crate::finding::PrefixChange;
use crate::json::ObjectWriter;
use crate::replay::Cut;

/// How much of a body repeats the last one, so that a provider may have it in its cache (R72). Of a body that a filter
/// changes, or from which something is left out that was refused before, this is about the composed body: what was sent
/// is not kept to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixReuse {
    /// The number of bytes of the leading messages that are those of the last body. 0 if the instructions, the tools or
    /// the model changed.
    pub reused_bytes: usize,
    /// What changed the rest of the last body; `None` if this one only adds to it, or there is no last one.
    pub changed_by: Option<PrefixChange>,
    /// Why what was sent before was decided anew; `None` if it was not, or if the policy lets it change always.
    pub cut: Option<Cut>,
}

impl PrefixReuse {
    /// Writes the members of the public type `PrefixReuse`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.number("reusedBytes", self.reused_bytes as u64);
        out.text_or_null("changedBy", self.changed_by.map(PrefixChange::as_str));
        out.text_or_null("cut", self.cut.map(Cut::as_str));
    }
}
