//! A walk over all values of a JSON text.

use super::scan::{skip_space, skip_string};
use super::view::JsonRef;

/// How a value is reached from the one that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// By its index in an array.
    Item(usize),
    /// By its key in an object.
    Member(JsonRef<'a>),
}

/// Visits the values of a text at any depth, in the order of the text, in one pass.
pub struct ValueWalk<'a> {
    value: JsonRef<'a>,
    at: usize,
    path: Vec<PathStep<'a>>,
    /// The token before was a key.
    after_key: bool,
}

impl<'a> ValueWalk<'a> {
    /// Walks over a value and everything in it.
    #[must_use]
    pub fn of(value: JsonRef<'a>) -> Self {
        Self { value, at: 0, path: Vec::new(), after_key: false }
    }

    /// Returns the steps from the whole value to the one whose offset was returned last.
    #[must_use]
    pub fn path(&self) -> &[PathStep<'a>] {
        // An open array or object has a step for its next item.
        let opened =
            matches!(self.at.checked_sub(1).and_then(|at| self.value.as_raw().as_bytes().get(at)), Some(b'{' | b'['));
        self.path.get(..self.path.len() - usize::from(opened)).unwrap_or_default()
    }
}

impl Iterator for ValueWalk<'_> {
    /// The byte offset at which a value starts.
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let text = self.value.as_raw();
        let bytes = text.as_bytes();
        loop {
            let start = self.at;
            self.at += 1;
            match bytes.get(start)? {
                b' ' | b'\t' | b'\n' | b'\r' | b':' => self.at = skip_space(bytes, self.at),
                b',' => {
                    if let Some(PathStep::Item(index)) = self.path.last_mut() {
                        *index += 1;
                    }
                }
                b'}' | b']' => {
                    self.path.pop();
                }
                b'[' => {
                    self.after_key = false;
                    self.path.push(PathStep::Item(0));
                    return Some(start);
                }
                b'{' => {
                    self.after_key = false;
                    self.path.push(PathStep::Member(JsonRef::default()));
                    return Some(start);
                }
                b'"' => {
                    self.at = skip_string(bytes, start);
                    match self.path.last_mut() {
                        Some(PathStep::Member(key)) if !self.after_key => {
                            *key = JsonRef::from_checked(text.get(start..self.at)?);
                            self.after_key = true;
                        }
                        _ => {
                            self.after_key = false;
                            return Some(start);
                        }
                    }
                }
                _ => {
                    while !matches!(bytes.get(self.at), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                    {
                        self.at += 1;
                    }
                    self.after_key = false;
                    return Some(start);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let value = JsonRef::parse(text).unwrap();
        let mut walk = ValueWalk::of(value);
        let mut found = Vec::new();
        while let Some(start) = walk.next() {
            let mut path = String::new();
            for step in walk.path() {
                match step {
                    PathStep::Item(index) => path += &format!("/{index}"),
                    PathStep::Member(key) => path += &format!("/{}", key.as_text().unwrap()),
                }
            }
            let token: String = value.as_raw()[start..].chars().take(1).collect();
            found.push(format!("{path} {token}"));
        }
        found
    }

    #[test]
    fn r32_every_value_is_visited_once_with_its_path() {
        assert_eq!(
            paths(r#" {"a" : [1, {"b":"x","c":{}}, [] ,null], "d":"e" } "#),
            ["  {", "/a [", "/a/0 1", "/a/1 {", "/a/1/b \"", "/a/1/c {", "/a/2 [", "/a/3 n", "/d \""]
                .map(|line| if line == "  {" { " {".to_owned() } else { line.to_owned() })
        );
        assert_eq!(paths("[[],{\"k\":[2]}]"), [" [", "/0 [", "/1 {", "/1/k [", "/1/k/0 2"]);
        assert_eq!(paths("\"text\""), [" \""]);
    }
}
