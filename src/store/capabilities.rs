//! [`Capabilities`]: what a store can do.

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// An append fails and changes nothing if the head has another revision than expected.
    pub compare_and_append: bool,
    /// A batch is written whole or not at all.
    pub atomic_batch: bool,
    /// A read after a write returns what was written.
    pub read_your_writes: bool,
    /// Maximum size of a value, in bytes.
    pub max_value_bytes: u64,
    /// True if the data outlives the process.
    pub durable: bool,
}
