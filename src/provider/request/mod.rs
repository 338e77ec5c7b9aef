//! The parts of a request beside the messages: address, headers, parameters, tool definitions, tool choice.

mod credentials;
mod parameters;
mod provider_request;
mod settings;
mod tool_choice;
mod tools;
mod withheld;

pub(crate) use credentials::KEY_PREFIXES;
pub use credentials::{check_known_headers, is_plain_header};
pub(crate) use parameters::spelled;
pub use parameters::{NO_PARALLEL, is_group, place_in, value_in};
pub use provider_request::ProviderRequest;
pub use settings::{ReasoningField, Settings};
pub use tool_choice::ToolChoice;
pub use tools::ToolDefinition;
pub(crate) use withheld::{MemberPath, Withheld, first_missing, withhold};
