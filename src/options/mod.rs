//! The options of sessions, runs and renders, the same for every binding.
//!
//! A binding reads them with a deserializer of its own, which gives what is not read with them, data and functions, in
//! the types that [`OptionTypes`] names.

mod callback_numbers;
mod compact;
mod compaction;
#[cfg(feature = "engine")]
mod function_name;
mod handoff;
mod invocations;
#[cfg(feature = "engine")]
mod json_reader;
mod option_error;
mod option_types;
mod prune;
#[cfg(feature = "engine")]
mod raw_json;
mod reducer;
mod replay;
mod run;
mod session;
mod tools;
mod update;
mod values;
mod words;

pub use callback_numbers::CallbackNumbers;
pub use compact::CompactOptions;
#[cfg(feature = "engine")]
pub use function_name::FunctionName;
pub use handoff::HandoffOptions;
pub use invocations::{InvocationQuery, MAX_PAGE, audit_query};
#[cfg(feature = "engine")]
pub use json_reader::{JsonOptions, input_items, read_options};
pub use option_error::{OptionError, quoted};
pub use option_types::{FlagOrCallback, OptionTypes};
pub use prune::PruneOptions;
pub use replay::{ReplayOptions, channel_layers};
pub use run::{RenderOptions, RunOptions};
pub use session::{PersistenceOption, SessionOptions};
pub use update::UpdateFields;
pub use values::{AtLeastOne, MillisOption, OptionEntries, WindowOption, given};
pub(crate) use words::words;
