//! Stores that only a JavaScript host has.

mod indexed_db;
mod status;

pub use indexed_db::{Durability, IndexedDbOptions, IndexedDbStore, delete_database};
pub use status::{StorageStatus, persist, storage_status};
