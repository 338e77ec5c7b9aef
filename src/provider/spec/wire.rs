//! The text of wire messages.

/// Writes wire messages, separated by commas.
pub struct Wire<'o> {
    out: &'o mut String,
    count: u32,
    /// The indexes in `out` at which the second and later wire messages begin.
    later_starts: Vec<usize>,
}

impl<'o> Wire<'o> {
    /// Appends to `out`, which is empty or ends in a comma.
    pub fn new(out: &'o mut String) -> Self {
        Self { out, count: 0, later_starts: Vec::new() }
    }

    /// Begins the next wire message.
    pub fn begin(&mut self) -> &mut String {
        if self.count > 0 {
            self.out.push(',');
            self.later_starts.push(self.out.len());
        }
        self.count += 1;
        self.out
    }

    /// Returns how many wire messages were begun.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the indexes in the text at which the second and later wire messages begin.
    #[must_use]
    pub fn into_later_starts(self) -> Vec<usize> {
        self.later_starts
    }
}
