//! Stores that only a JavaScript host has.

mod indexed_db;
mod js_sql;
mod status;

pub use indexed_db::{Durability, IndexedDbOptions, IndexedDbStore, delete_database};
pub use js_sql::JsSqlDriver;
pub use status::{StorageStatus, persist, storage_status};
