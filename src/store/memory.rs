//! stub
/// stub
pub struct MemoryStore;
