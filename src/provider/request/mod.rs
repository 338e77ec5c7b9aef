//! The parts of a request beside the messages: address, headers, parameters, tool definitions, tool choice.

mod compaction;
mod credentials;
mod dropping;
mod grouped_parameters;
mod maker;
mod member_path;
mod parameter_translation;
mod parameter_values;
mod parameters;
mod params_and_headers;
mod percent_encoding;
mod provider_request;
mod resource_address;
mod settings;
mod state_owner;
mod tool_choice;
mod tool_list;
mod tools;
mod withheld;

pub(crate) use compaction::{compacted_items, compaction_request, with_compaction_header};
pub(crate) use credentials::KEY_PREFIXES;
pub use credentials::{check_known_headers, is_plain_header};
pub(crate) use dropping::dropping_unbound;
pub(crate) use grouped_parameters::{member_of, moved_members};
pub use maker::{Readability, ReasoningReader};
pub(crate) use member_path::MemberPath;
pub(crate) use parameter_translation::{
    drop_unavailable_tool_choice, is_group, names_tool_choice, translate_parameter,
};
pub(crate) use parameter_values::{flat_schema, nested_schema, stop_list};
pub use parameters::{Parameter, TranslatedParameter};
pub(crate) use params_and_headers::{RequestHead, left_out};
pub(crate) use percent_encoding::percent_encoded;
pub use provider_request::ProviderRequest;
pub(crate) use resource_address::resource_address;
pub use settings::{ReasoningField, Settings};
pub(crate) use state_owner::{check_input_body, check_owner, kept_by_service, with_service_header};
pub use tool_choice::{TOOL_CHOICE, ToolChoice};
pub(crate) use tools::TOOLS;
pub use tools::ToolDefinition;
pub(crate) use withheld::{Withheld, first_missing, withhold};
