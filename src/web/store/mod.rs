//! Stores that only a JavaScript host has.

#[cfg(any(feature = "stores", feature = "testing"))]
mod driver;
mod driver_kind;
#[cfg(feature = "web")]
mod indexed_db;
#[cfg(any(feature = "stores", feature = "testing"))]
mod js_kv;
#[cfg(any(feature = "web", feature = "testing"))]
mod js_log;
#[cfg(any(feature = "web", feature = "testing"))]
mod js_record;
#[cfg(any(feature = "stores", feature = "testing"))]
mod js_sql;
#[cfg(any(feature = "stores", feature = "testing"))]
mod js_timer;
#[cfg(feature = "web")]
mod program_link;
#[cfg(feature = "web")]
mod status;
mod store_timeout;

#[cfg(any(feature = "stores", feature = "testing"))]
pub use driver::open_driver;
pub use driver_kind::DriverKind;
#[cfg(feature = "web")]
pub use indexed_db::{Durability, IndexedDbOptions, IndexedDbStore, delete_database};
#[cfg(any(feature = "web", feature = "testing"))]
pub use js_log::JsLogStore;
#[cfg(feature = "web")]
pub use program_link::open_in_program;
#[cfg(feature = "web")]
pub use status::{StorageStatus, persist, storage_status};
pub use store_timeout::StoreTimeout;
