//! JSON text without the members of a name.

use super::scan::{skip_space, skip_value};
use super::value::Json;
use super::view::JsonRef;

impl JsonRef<'_> {
    /// Returns the value without the members of a name, at any depth; `None` if it has none. `name` needs no escapes.
    #[must_use]
    pub fn without_member(self, name: &str) -> Option<Json> {
        let (json, key) = (self.as_raw(), format!("\"{name}\""));
        let (mut out, mut from, mut at) = (String::new(), 0, 0);
        // Inside a string the closing quote would be escaped, so what is found is a key or a string of these words.
        while let Some(found) = json.get(at..).and_then(|rest| rest.find(&key)) {
            let start = at + found;
            at = start + key.len();
            let colon = skip_space(json.as_bytes(), at);
            if json.as_bytes().get(colon) == Some(&b':') {
                let (cut_from, cut_to) = cut(json, from, start, skip_value(json.as_bytes(), colon + 1));
                out.push_str(json.get(from..cut_from).unwrap_or_default());
                (from, at) = (cut_to, cut_to);
            }
        }
        if from == 0 {
            return None;
        }
        out.push_str(json.get(from..).unwrap_or_default());
        Some(Json::trusted(out))
    }
}

/// Returns the range to cut with a member at `start..end`: with the comma before it, or else the one after it. What
/// precedes `from` is cut already.
fn cut(json: &str, from: usize, start: usize, end: usize) -> (usize, usize) {
    let before = json.get(from..start).unwrap_or_default().trim_end();
    if before.ends_with(',') {
        return (from + before.len() - 1, end);
    }
    let next = skip_space(json.as_bytes(), end);
    (start, if json.as_bytes().get(next) == Some(&b',') { next + 1 } else { end })
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r70_members_of_a_name_are_cut_at_any_depth_and_nothing_else() {
        let without =
            |text: &str| JsonRef::parse(text).unwrap().without_member("m").map(|json| json.as_str().to_owned());
        for (text, expected) in [
            (r#"{"m":1}"#, "{}"),
            (r#"{"m":{"a":[1,"}"]},"b":2}"#, r#"{"b":2}"#),
            (r#"{"a":1 , "m" : "x,y" ,"b":"m"}"#, r#"{"a":1  ,"b":"m"}"#),
            (r#"[{"a":{"m":null}},{"b":2,"m":[]}]"#, r#"[{"a":{}},{"b":2}]"#),
            (r#"{"m":1,"m":2}"#, "{}"),
            (r#"{"m":1,"m":2,"a":3}"#, r#"{"a":3}"#),
        ] {
            assert_eq!(without(text).as_deref(), Some(expected), "{text}");
            assert!(crate::json::check(expected).is_ok());
        }
        for text in [r#"{"a":"\"m\":1"}"#, r#"["m"]"#, r#"{"a":"m"}"#, r#"{"mm":1}"#] {
            assert_eq!(without(text), None, "{text}");
        }
    }
}
