//! Stores that only a JavaScript host has.

#[cfg(feature = "web")]
mod indexed_db;
mod js_kv;
mod js_log;
mod js_record;
mod js_sql;
mod js_store;
mod js_timer;
#[cfg(feature = "web")]
mod status;
mod store_timeout;

#[cfg(feature = "web")]
pub use indexed_db::{Durability, IndexedDbOptions, IndexedDbStore, delete_database};
pub use js_log::JsLogStore;
pub use js_sql::JsSqlDriver;
pub use js_store::open_js_store;
#[cfg(feature = "web")]
pub use status::{StorageStatus, persist, storage_status};
pub use store_timeout::StoreTimeout;
