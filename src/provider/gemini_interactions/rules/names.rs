//! Names of functions, as `FunctionDeclaration.name` describes them: letters, digits, `_`, `-`, `.` and `:`.

use crate::provider::rules::{name_fit, name_valid};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// Returns the name of a tool as the service accepts it.
pub(super) fn fitting_name(name: &str) -> String {
    if has_valid_name(name) { name.to_owned() } else { name_fit(name, MAX_NAME) }
}

/// Returns true for a name of letters, digits, `_`, `-`, `.` and `:`.
pub(super) fn has_valid_name(name: &str) -> bool {
    name_valid(&name.replace(['.', ':'], "_"), MAX_NAME)
}
