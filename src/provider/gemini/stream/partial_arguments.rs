//! Arguments of a call that Gemini streams in pieces (`streamFunctionCallArguments`), each with the JSON path of the
//! value that it sets or extends.

use crate::json::{JsonKind, JsonRef, JsonStr, ObjectWriter, push_escaped};
use crate::provider::stream::inside;
use std::collections::BTreeMap;

/// The arguments received so far, as a tree of values. The tree is stored in one list, where containers refer to their
/// members by position; the root is at position 0.
///
/// ```json
/// {"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.city","stringValue":"Par","willContinue":true}]}}
/// {"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"is"}]}}
/// ```
///
/// are the arguments `{"city":"Paris"}`.
#[derive(Default)]
pub(super) struct PartialArguments {
    nodes: Vec<ArgumentNode>,
    /// A piece did not fit into the tree. Such a call must not run.
    invalid: bool,
}

/// A value of the tree.
enum ArgumentNode {
    /// A path names the value, but no piece has set it yet.
    Unset,
    /// The JSON text of a number, `true`, `false` or `null`.
    Raw(String),
    /// The content of a string token. `open`: the next piece extends it.
    Text {
        content: String,
        open: bool,
    },
    Object(ObjectMembers),
    List(Vec<usize>),
}

/// The members of an object in their order of arrival. A key is the content of its string token, a value the position
/// of its node.
#[derive(Default)]
struct ObjectMembers {
    list: Vec<(String, usize)>,
    by_key: BTreeMap<String, usize>,
}

/// One step of a JSON path.
#[derive(Debug, PartialEq)]
enum PathStep {
    /// The content of the key's string token.
    Key(String),
    Index(usize),
}

/// The deepest path that is accepted, deeper than any real schema.
const MAX_DEPTH: usize = 100;

impl PartialArguments {
    /// Adds `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue?}`.
    pub(super) fn add(&mut self, piece: JsonRef<'_>) {
        let path = piece.text("jsonPath").and_then(|path| parse_path(&path));
        let continues = piece.get("willContinue").and_then(JsonRef::as_bool) == Some(true);
        let value = piece.entries().find_map(|(key, value)| {
            matches!(inside(key), Some("stringValue" | "numberValue" | "boolValue" | "nullValue"))
                .then_some((key, value))
        });
        let Some(at) = path.and_then(|path| self.find_or_create(&path)) else {
            self.invalid = true;
            return;
        };
        let Some((key, value)) = value else { return };
        let Some(node) = self.nodes.get_mut(at) else { return };
        match (node, inside(value)) {
            (ArgumentNode::Text { content, open }, Some(more)) if *open => {
                content.push_str(more);
                *open = continues;
            }
            (node @ (ArgumentNode::Unset | ArgumentNode::Raw(_) | ArgumentNode::Text { .. }), text) => {
                *node = match text {
                    _ if key.is_text("nullValue") => ArgumentNode::Raw("null".to_owned()),
                    Some(text) => ArgumentNode::Text { content: text.to_owned(), open: continues },
                    None if matches!(value.kind(), JsonKind::Object | JsonKind::Array) => return self.invalid = true,
                    None => ArgumentNode::Raw(value.as_raw().to_owned()),
                }
            }
            _ => self.invalid = true,
        }
    }

    /// Returns the position of the node at a path, and creates the nodes that are missing on the way. Returns `None`
    /// for a path that contradicts the tree or skips list items.
    fn find_or_create(&mut self, path: &[PathStep]) -> Option<usize> {
        if path.is_empty() || path.len() > MAX_DEPTH {
            return None;
        }
        if self.nodes.is_empty() {
            self.nodes.push(ArgumentNode::Object(ObjectMembers::default()));
        }
        let mut at = 0;
        for step in path {
            let new_at = self.nodes.len();
            let node = self.nodes.get_mut(at)?;
            if matches!(node, ArgumentNode::Unset) {
                *node = match step {
                    PathStep::Key(_) => ArgumentNode::Object(ObjectMembers::default()),
                    PathStep::Index(_) => ArgumentNode::List(Vec::new()),
                };
            }
            at = match (node, step) {
                (ArgumentNode::Object(members), PathStep::Key(key)) => match members.by_key.get(key) {
                    Some(at) => *at,
                    None => {
                        members.by_key.insert(key.clone(), new_at);
                        members.list.push((key.clone(), new_at));
                        new_at
                    }
                },
                (ArgumentNode::List(items), PathStep::Index(index)) => match items.get(*index) {
                    Some(at) => *at,
                    // A list grows by one item at a time.
                    None if *index == items.len() => {
                        items.push(new_at);
                        new_at
                    }
                    None => return None,
                },
                _ => return None,
            };
            if at == new_at {
                self.nodes.push(ArgumentNode::Unset);
            }
        }
        Some(at)
    }

    /// Returns the JSON text of the arguments, or `None` if they are invalid.
    pub(super) fn to_json_text(&self) -> Option<String> {
        if self.invalid {
            return None;
        }
        let mut out = String::new();
        if self.nodes.is_empty() {
            out.push_str("{}");
        } else {
            self.write_node(0, &mut out);
        }
        Some(out)
    }

    /// Appends the JSON text of a node. The recursion is at most [`MAX_DEPTH`] deep.
    fn write_node(&self, at: usize, out: &mut String) {
        match self.nodes.get(at) {
            None | Some(ArgumentNode::Unset) => out.push_str("null"),
            Some(ArgumentNode::Raw(raw)) => out.push_str(raw),
            Some(ArgumentNode::Text { content, .. }) => out.push_str(JsonStr::from_inside(content).token()),
            Some(ArgumentNode::Object(members)) => {
                let mut object = ObjectWriter::new(out);
                for (key, at) in &members.list {
                    self.write_node(*at, object.key_inside(key));
                }
                object.end();
            }
            Some(ArgumentNode::List(items)) => {
                out.push('[');
                for (place, at) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.write_node(*at, out);
                }
                out.push(']');
            }
        }
    }
}

/// Parses a path such as `$.a[0]['b c']`. Returns `None` if the text is not such a path.
fn parse_path(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (name, after) = tail.split_at_checked(end)?;
            steps.push(key_step(name)?);
            rest = after;
            continue;
        }
        let tail = rest.strip_prefix('[')?;
        if let Some(quote) = tail.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            let (name, after) = unquote(tail.get(1..)?, quote)?;
            steps.push(key_step(&name)?);
            rest = after.strip_prefix(']')?;
        } else {
            let (index, after) = tail.split_once(']')?;
            steps.push(PathStep::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

fn key_step(name: &str) -> Option<PathStep> {
    if name.is_empty() {
        return None;
    }
    let mut inside = String::new();
    push_escaped(&mut inside, name);
    Some(PathStep::Key(inside))
}

/// Returns the name before the closing quote, and the text after that quote. A backslash escapes the next character.
fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => name.push(c),
            '\\' => escaped = true,
            _ if c == quote => return Some((name, text.get(at + c.len_utf8()..)?)),
            _ => name.push(c),
        }
    }
    None
}
