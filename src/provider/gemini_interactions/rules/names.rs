//! Names of functions. The types of @google/genai 3.1.0 name no limit (`FunctionT`), so this one is wide: it is that of
//! generateContent without its rule for the first character, since the service is the same.

/// The longest name of a tool.
const MAX_NAME: usize = 128;

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}

/// Returns the name of a tool as the service accepts it: other characters become `_`.
pub(super) fn fitting_name(name: &str) -> String {
    let fit: String = name.chars().take(MAX_NAME).map(|c| if is_of_name(c) { c } else { '_' }).collect();
    if fit.is_empty() { "unknown".into() } else { fit }
}

/// Returns true for a name of letters, digits, `_`, `-`, `.` and `:`.
pub(super) fn has_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_of_name)
}
