//! The parts of a request beside the messages: address, headers, parameters, tool definitions, tool choice.

mod credentials;
mod parameter_values;
mod parameters;
mod provider_request;
mod settings;
mod tool_choice;
mod tools;
mod withheld;

pub(crate) use credentials::KEY_PREFIXES;
pub use credentials::{check_known_headers, is_plain_header};
pub(crate) use parameter_values::{flat_schema, nested_schema, stop_list};
pub use parameters::{Parameter, TranslatedParameter, is_group, translate_parameter, translate_value};
pub use provider_request::ProviderRequest;
pub use settings::{ReasoningField, Settings};
pub(crate) use tool_choice::AllowedToolsForm;
pub use tool_choice::{ToolChoice, names_tool_choice};
pub use tools::ToolDefinition;
pub(crate) use withheld::{MemberPath, Withheld, first_missing, withhold};
