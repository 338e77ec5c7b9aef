//! Arguments that come in pieces, each with the path of the value that it adds to.

use crate::json::{JsonRef, JsonStr, Kind, ObjectWriter, push_escaped};
use crate::provider::assembler::inside;
use std::collections::BTreeMap;

/// Arguments as they grow. What cannot be placed spoils them: such a call must not run.
#[derive(Default)]
pub(super) struct Pieces {
    nodes: Vec<Node>,
    spoilt: bool,
}

/// A value; containers name their members by their place among the nodes.
enum Node {
    /// Named by the path, and nothing known of it yet.
    Empty,
    /// A number, `true`, `false`, `null`.
    Raw(String),
    /// The inside of a string's token; whether more of it is to come.
    Text(String, bool),
    /// Keys are the insides of their tokens.
    Object(Members),
    List(Vec<usize>),
}

/// The members of an object in the order of arrival; values are indexes of nodes.
#[derive(Default)]
struct Members {
    list: Vec<(String, usize)>,
    by_key: BTreeMap<String, usize>,
}

/// One step of a path.
#[derive(Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// More steps than any schema has.
const DEEPEST: usize = 100;

impl Pieces {
    /// Adds `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue?}`.
    pub(super) fn add(&mut self, piece: JsonRef<'_>) {
        let path = piece.text("jsonPath").and_then(|path| steps(&path));
        let goes_on = piece.get("willContinue").and_then(JsonRef::as_bool) == Some(true);
        let value = piece.entries().find_map(|(key, value)| {
            matches!(inside(key), Some("stringValue" | "numberValue" | "boolValue" | "nullValue"))
                .then_some((key, value))
        });
        let Some(at) = path.and_then(|path| self.reach(&path)) else {
            self.spoilt = true;
            return;
        };
        let Some((key, value)) = value else { return };
        let Some(node) = self.nodes.get_mut(at) else { return };
        match (node, inside(value)) {
            (Node::Text(own, open), Some(more)) if *open => {
                own.push_str(more);
                *open = goes_on;
            }
            (node @ (Node::Empty | Node::Raw(_) | Node::Text(..)), text) => {
                *node = match text {
                    _ if key.is_text("nullValue") => Node::Raw("null".to_owned()),
                    Some(text) => Node::Text(text.to_owned(), goes_on),
                    None if matches!(value.kind(), Kind::Object | Kind::Array) => return self.spoilt = true,
                    None => Node::Raw(value.as_raw().to_owned()),
                }
            }
            _ => self.spoilt = true,
        }
    }

    /// The node at a path, made where it is not there yet.
    fn reach(&mut self, path: &[Step]) -> Option<usize> {
        if path.is_empty() || path.len() > DEEPEST {
            return None;
        }
        if self.nodes.is_empty() {
            self.nodes.push(Node::Object(Members::default()));
        }
        let mut at = 0;
        for step in path {
            let next = self.nodes.len();
            let node = self.nodes.get_mut(at)?;
            if matches!(node, Node::Empty) {
                *node = match step {
                    Step::Key(_) => Node::Object(Members::default()),
                    Step::Index(_) => Node::List(Vec::new()),
                };
            }
            let known = match (node, step) {
                (Node::Object(members), Step::Key(key)) => match members.by_key.get(key) {
                    Some(at) => *at,
                    None => {
                        members.by_key.insert(key.clone(), next);
                        members.list.push((key.clone(), next));
                        next
                    }
                },
                (Node::List(items), Step::Index(index)) => match items.get(*index) {
                    Some(at) => *at,
                    // An item comes behind those that are there.
                    None if *index == items.len() => {
                        items.push(next);
                        next
                    }
                    None => return None,
                },
                _ => return None,
            };
            if known == next {
                self.nodes.push(Node::Empty);
            }
            at = known;
        }
        Some(at)
    }

    /// The text of the object that they come to.
    pub(super) fn text(&self) -> Option<String> {
        if self.spoilt {
            return None;
        }
        let mut out = String::new();
        if self.nodes.is_empty() {
            out.push_str("{}");
        } else {
            self.write(0, &mut out);
        }
        Some(out)
    }

    /// As deep as the longest path, which is bounded.
    fn write(&self, at: usize, out: &mut String) {
        match self.nodes.get(at) {
            None | Some(Node::Empty) => out.push_str("null"),
            Some(Node::Raw(raw)) => out.push_str(raw),
            Some(Node::Text(text, _)) => out.push_str(JsonStr::from_inside(text).token()),
            Some(Node::Object(members)) => {
                let mut object = ObjectWriter::new(out);
                for (key, at) in &members.list {
                    self.write(*at, object.key_inside(key));
                }
                object.end();
            }
            Some(Node::List(items)) => {
                out.push('[');
                for (place, at) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.write(*at, out);
                }
                out.push(']');
            }
        }
    }
}

/// The steps of `$.a[0]['b c']`; none where it is no such path.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (name, after) = tail.split_at_checked(end)?;
            steps.push(key(name)?);
            rest = after;
            continue;
        }
        let tail = rest.strip_prefix('[')?;
        if let Some(quote) = tail.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            let (name, after) = quoted(tail.get(1..)?, quote)?;
            steps.push(key(&name)?);
            rest = after.strip_prefix(']')?;
        } else {
            let (index, after) = tail.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

fn key(name: &str) -> Option<Step> {
    if name.is_empty() {
        return None;
    }
    let mut inside = String::new();
    push_escaped(&mut inside, name);
    Some(Step::Key(inside))
}

/// A name up to its quote, and what follows it. A backslash lets the next character stand for itself.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
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
