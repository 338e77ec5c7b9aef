//! Where the bytes of a body go.

/// Takes the bytes of a body, so that a host can have them in its own memory without another copy.
pub trait BodyBuffer {
    /// Reserves memory. Called once, with the exact length of the body, before its bytes.
    fn reserve(&mut self, length: usize);

    /// Appends bytes.
    fn push(&mut self, bytes: &[u8]);
}

impl BodyBuffer for Vec<u8> {
    fn reserve(&mut self, length: usize) {
        self.reserve_exact(length);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
