//! The edits of a body: values are replaced, lists rebuilt and pieces moved. Everything else is copied byte for byte,
//! so a body without edits is unchanged (R41, R45).

use crate::json::JsonRef;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A range of the body, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

/// A piece of the repaired body.
#[derive(Debug)]
pub(crate) enum BodyPiece {
    /// A range of the body, with the edits inside it.
    Source(Span),
    /// New text.
    New(String),
    /// Pieces between an opening and a closing text, separated by commas.
    Wrapped(Box<(String, Vec<BodyPiece>, &'static str)>),
    /// A list or object of the body with other items. Its brackets and white space are kept.
    Rebuilt(Box<(Span, Vec<BodyPiece>)>),
}

impl BodyPiece {
    /// Creates a piece that holds others between an opening and a closing text.
    pub fn wrapped(open: &str, pieces: Vec<BodyPiece>, close: &'static str) -> Self {
        Self::Wrapped(Box::new((open.to_owned(), pieces, close)))
    }

    /// Takes the piece, and leaves an empty one.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::New(String::new()))
    }

    /// Returns true if the piece is a range of the body.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

/// An item of a new list.
pub(crate) enum ListItem {
    /// An item of the old list, by its index.
    Existing(usize),
    New(BodyPiece),
}

/// The place of an edit: its start, its end, and 0 if it encloses another edit of the same range, otherwise 1.
type PatchKey = (usize, Reverse<usize>, u8);

/// The edits of one body.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    body: &'a str,
    /// Ordered by start; of two edits with the same start, the outer one is first. A tree, since several passes over
    /// the body add edits in no common order.
    patches: BTreeMap<PatchKey, BodyPiece>,
    is_stopped: bool,
}

impl<'a> Edits<'a> {
    pub fn new(body: &'a str) -> Self {
        Self { body, patches: BTreeMap::new(), is_stopped: false }
    }

    /// Records no edit from now on: they will not be applied.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn insert(&mut self, key: PatchKey, piece: BodyPiece) {
        if !self.is_stopped {
            self.patches.insert(key, piece);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.patches.is_empty()
    }

    /// Returns the range of a value, which must be a view of this body.
    pub fn span(&self, value: JsonRef<'_>) -> Span {
        let start = (value.as_raw().as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        Span { start, end: start + value.as_raw().len() }
    }

    /// Returns a set without edits, of the same body.
    pub fn cleared(&self) -> Self {
        Self::new(self.body)
    }

    /// Returns a value as a piece, with the edits inside it.
    pub fn source(&self, value: JsonRef<'_>) -> BodyPiece {
        BodyPiece::Source(self.span(value))
    }

    /// Replaces a value. Edits inside it have no effect.
    pub fn replace(&mut self, value: JsonRef<'_>, piece: BodyPiece) {
        let span = self.span(value);
        self.insert((span.start, Reverse(span.end), 1), piece);
    }

    /// Encloses a value between two texts. Other edits of the value remain effective.
    pub fn wrap(&mut self, value: JsonRef<'_>, open: &str, close: &'static str) {
        let piece = BodyPiece::wrapped(open, vec![self.source(value)], close);
        self.enclose(value, piece);
    }

    /// Replaces a value by a piece that may contain it, with the edits inside it.
    pub fn enclose(&mut self, value: JsonRef<'_>, piece: BodyPiece) {
        let span = self.span(value);
        self.insert((span.start, Reverse(span.end), 0), piece);
    }

    /// Returns true if the value was replaced.
    pub fn is_replaced(&self, value: JsonRef<'_>) -> bool {
        let span = self.span(value);
        self.patches.contains_key(&(span.start, Reverse(span.end), 1))
    }

    /// Replaces the items of a list.
    pub fn rebuild(&mut self, list: JsonRef<'_>, items: Vec<BodyPiece>) {
        self.replace(list, BodyPiece::Rebuilt(Box::new((self.span(list), items))));
    }

    /// Arranges the items of a list, where `pieces` holds one piece per item. Makes no edit if the list would not
    /// change.
    pub fn reorder(&mut self, list: JsonRef<'_>, pieces: &mut [BodyPiece], order: &mut [ListItem]) {
        let mut same = order.len() == pieces.len() && pieces.iter().all(BodyPiece::is_source);
        let mut items = Vec::with_capacity(order.len());
        for (place, slot) in order.iter_mut().enumerate() {
            match slot {
                ListItem::Existing(at) => {
                    same &= *at == place;
                    if let Some(piece) = pieces.get_mut(*at) {
                        items.push(piece.take());
                    }
                }
                ListItem::New(piece) => {
                    same = false;
                    items.push(piece.take());
                }
            }
        }
        if !same {
            self.rebuild(list, items);
        }
    }

    /// Sets a member of an object. A new member is added at the end.
    pub fn set(&mut self, object: JsonRef<'a>, key: &str, value: String) {
        match object.get(key) {
            Some(old) => self.replace(old, BodyPiece::New(value)),
            None => {
                if let Some(members) = self.members(object) {
                    members.push(BodyPiece::New(format!("\"{key}\":{value}")));
                }
            }
        }
    }

    /// Removes all members of that name.
    pub fn remove(&mut self, object: JsonRef<'_>, key: &str) {
        let mut removed_keys = Vec::new();
        for (name, _) in object.entries() {
            if name.is_text(key) {
                removed_keys.push(self.span(name).start);
            }
        }
        if !removed_keys.is_empty()
            && let Some(members) = self.members(object)
        {
            // `entries` is in the body's order, so the starts are sorted.
            members.retain(
                |member| !matches!(member, BodyPiece::Source(span) if removed_keys.binary_search(&span.start).is_ok()),
            );
        }
    }

    /// Returns the members that the object has after its edits.
    fn members(&mut self, object: JsonRef<'_>) -> Option<&mut Vec<BodyPiece>> {
        if !self.is_replaced(object) {
            let mut members = Vec::new();
            for (key, value) in object.entries() {
                members.push(BodyPiece::Source(Span { start: self.span(key).start, end: self.span(value).end }));
            }
            self.rebuild(object, members);
        }
        let span = self.span(object);
        match self.patches.get_mut(&(span.start, Reverse(span.end), 1)) {
            Some(BodyPiece::Rebuilt(rebuilt)) => Some(&mut rebuilt.1),
            _ => None,
        }
    }

    /// Returns the body with all edits applied.
    pub fn apply(self) -> String {
        let mut out = String::with_capacity(self.body.len() + 64);
        self.write(&mut out, Span { start: 0, end: self.body.len() }, None);
        out
    }

    /// Writes a range with the edits inside it. `within` is the edit that is being written, which may contain its own
    /// old range.
    fn write(&self, out: &mut String, span: Span, within: Option<PatchKey>) {
        let mut at = span.start;
        loop {
            let inner = |place: &PatchKey| {
                place.1.0 <= span.end
                    && within.is_none_or(|(start, end, layer)| (place.0, place.1) != (start, end) || place.2 > layer)
            };
            let next = self
                .patches
                .range((at, Reverse(usize::MAX), 0)..)
                .find(|(place, _)| inner(place) || place.0 >= span.end);
            let Some((place, piece)) = next.filter(|(place, _)| place.0 < span.end) else { break };
            out.push_str(self.text(at, place.0));
            self.write_piece(out, piece, *place);
            at = place.1.0;
        }
        out.push_str(self.text(at, span.end));
    }

    fn write_piece(&self, out: &mut String, piece: &BodyPiece, within: PatchKey) {
        match piece {
            BodyPiece::Source(span) => self.write(out, *span, Some(within)),
            BodyPiece::New(text) => out.push_str(text),
            BodyPiece::Wrapped(wrapped) => {
                let (open, items, close) = &**wrapped;
                out.push_str(open);
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.write_piece(out, item, within);
                }
                out.push_str(close);
            }
            BodyPiece::Rebuilt(rebuilt) => {
                let (list, items) = &**rebuilt;
                out.push_str(self.text(list.start, list.start + 1));
                let mut space_before_comma = "";
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push_str(space_before_comma);
                        out.push(',');
                    }
                    space_before_comma = "";
                    if let BodyPiece::Source(span) = item {
                        out.push_str(self.space_before(span.start));
                        space_before_comma = self.space_after(span.end);
                    }
                    self.write_piece(out, item, within);
                }
                let close = list.end.saturating_sub(1);
                out.push_str(if items.is_empty() { "" } else { self.space_before(close) });
                out.push_str(self.text(close, list.end));
            }
        }
    }

    fn text(&self, start: usize, end: usize) -> &'a str {
        self.body.get(start..end).unwrap_or("")
    }

    /// Returns the white space between an item's end and its comma.
    fn space_after(&self, at: usize) -> &'a str {
        let rest = self.text(at, self.body.len());
        let space = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        if rest.get(space..).is_some_and(|rest| rest.starts_with(',')) { rest.get(..space).unwrap_or("") } else { "" }
    }

    /// Returns the white space before a byte offset.
    fn space_before(&self, at: usize) -> &'a str {
        let before = self.text(0, at);
        let kept = before.trim_end_matches([' ', '\t', '\n', '\r']).len();
        before.get(kept..).unwrap_or("")
    }
}

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    crate::json::JsonStr::new(text).token().to_owned()
}
