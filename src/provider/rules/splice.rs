//! The splice writer: a body's text with some of its tokens replaced, its lists rebuilt and pieces moved.
//! What no edit names is copied byte for byte, so a body without edits is the body itself (R41, R45).

use crate::json::JsonRef;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A stretch of the body, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

/// What stands where something else stood.
#[derive(Debug)]
pub(crate) enum BodyPiece {
    /// A stretch of the body, with the edits inside it.
    Source(Span),
    /// New text.
    New(String),
    /// Pieces between two new texts, with commas between them.
    Wrapped(Box<(String, Vec<BodyPiece>, &'static str)>),
    /// A list or object of the body with other items, its brackets and white space kept.
    Rebuilt(Box<(Span, Vec<BodyPiece>)>),
}

impl BodyPiece {
    /// Pieces between two new texts.
    pub fn wrapped(open: &str, pieces: Vec<BodyPiece>, close: &'static str) -> Self {
        Self::Wrapped(Box::new((open.to_owned(), pieces, close)))
    }

    /// The piece, once.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::New(String::new()))
    }

    /// Whether it is a stretch of the body.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

/// An item of a new list.
pub(crate) enum ListItem {
    /// One of the old list, by its place.
    Existing(usize),
    New(BodyPiece),
}

/// Where an edit stands: its beginning, its end, and whether it goes around another edit of the same stretch (0) or not (1).
type PatchKey = (usize, Reverse<usize>, u8);

/// The edits of one body.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    body: &'a str,
    /// By place; of two that begin together, the outer one first. A tree, the only one: edits come in several passes over the
    /// body, and in none of the orders that a list would want.
    patches: BTreeMap<PatchKey, BodyPiece>,
}

impl<'a> Edits<'a> {
    pub fn new(body: &'a str) -> Self {
        Self { body, patches: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.patches.is_empty()
    }

    /// Where a value stands. Every value handed in is a view of this body.
    pub fn span(&self, value: JsonRef<'_>) -> Span {
        let start = (value.as_raw().as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        Span { start, end: start + value.as_raw().len() }
    }

    /// No edits, of the same body.
    pub fn cleared(&self) -> Self {
        Self::new(self.body)
    }

    /// The value as it stands, moved along with the edits inside it.
    pub fn source(&self, value: JsonRef<'_>) -> BodyPiece {
        BodyPiece::Source(self.span(value))
    }

    pub fn replace(&mut self, value: JsonRef<'_>, piece: BodyPiece) {
        let span = self.span(value);
        self.patches.insert((span.start, Reverse(span.end), 1), piece);
    }

    /// Puts something around a value, whatever else is edited in it.
    pub fn wrap(&mut self, value: JsonRef<'_>, open: &str, close: &'static str) {
        let piece = BodyPiece::wrapped(open, vec![self.source(value)], close);
        self.enclose(value, piece);
    }

    /// Replaces a value by something that may hold it, with the edits inside it.
    pub fn enclose(&mut self, value: JsonRef<'_>, piece: BodyPiece) {
        let span = self.span(value);
        self.patches.insert((span.start, Reverse(span.end), 0), piece);
    }

    /// Whether it was replaced already.
    pub fn is_replaced(&self, value: JsonRef<'_>) -> bool {
        let span = self.span(value);
        self.patches.contains_key(&(span.start, Reverse(span.end), 1))
    }

    /// Gives a list other items.
    pub fn rebuild(&mut self, list: JsonRef<'_>, items: Vec<BodyPiece>) {
        self.replace(list, BodyPiece::Rebuilt(Box::new((self.span(list), items))));
    }

    /// Gives a list its items, or what stands for each, in another order and with new ones; nothing where that is as it was.
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

    /// Sets a member: its value replaced where the key is there, else a new member at the end.
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

    /// Takes a key out of an object, doubled ones included.
    pub fn remove(&mut self, object: JsonRef<'_>, key: &str) {
        let mut removed_keys = Vec::new();
        for (own, _) in object.entries() {
            if own.is_text(key) {
                removed_keys.push(self.span(own).start);
            }
        }
        if !removed_keys.is_empty()
            && let Some(members) = self.members(object)
        {
            // The keys are found in their order, so this finds them again.
            members.retain(
                |member| !matches!(member, BodyPiece::Source(span) if removed_keys.binary_search(&span.start).is_ok()),
            );
        }
    }

    /// The members that an object ends up with.
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

    /// The body with all edits made.
    pub fn apply(self) -> String {
        let mut out = String::with_capacity(self.body.len() + 64);
        self.write(&mut out, Span { start: 0, end: self.body.len() }, None);
        out
    }

    /// Writes a stretch with the edits inside it. `within` is the edit that is being written: it may hold its own old text.
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

    /// White space between an item and its comma.
    fn space_after(&self, at: usize) -> &'a str {
        let rest = self.text(at, self.body.len());
        let space = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        if rest.get(space..).is_some_and(|rest| rest.starts_with(',')) { rest.get(..space).unwrap_or("") } else { "" }
    }

    fn space_before(&self, at: usize) -> &'a str {
        let before = self.text(0, at);
        let kept = before.trim_end_matches([' ', '\t', '\n', '\r']).len();
        before.get(kept..).unwrap_or("")
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    crate::json::JsonStr::new(text).token().to_owned()
}
