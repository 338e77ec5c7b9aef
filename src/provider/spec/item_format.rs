//! The form of a dialect's items: what the rules and the search for foreign formats ask a dialect.

use crate::history::Incoming;
use crate::json::{JsonRef, JsonStr};
use crate::message::Dialect;
use crate::provider::rules::Fields;

/// What the id of a call without a result means in an item in which no call or result could be read.
pub(crate) enum Mention<'a> {
    /// The id of another call.
    Call,
    /// A result that lacks its mark: the object, the member that marks a result, and its value.
    Result(JsonRef<'a>, &'static str, &'static str),
    /// Possibly a result, in a form that cannot be read.
    Unread,
}

/// The form of a dialect's items and of their list.
pub(crate) struct ItemFormat {
    pub dialect: Dialect,
    /// The dialect whose items have the same form.
    pub family: Dialect,
    /// The member of a body that holds the list of items.
    pub list: &'static str,
    /// Decodes one text in place of the list, if the dialect has such a form.
    pub decode_text: Option<fn(JsonStr) -> Incoming>,
    /// One item may stand in place of the list.
    pub takes_single_item: bool,
    pub recognizer: &'static dyn ItemRecognizer,
}

/// The formats that an item is compared with.
#[derive(Clone, Copy)]
pub(crate) struct ItemFormats {
    /// The dialect that the caller named.
    pub named: &'static ItemFormat,
    /// Every dialect.
    pub all: &'static [&'static ItemFormat],
    /// The dialect that is assumed for `{"role":"user","content":"hi"}`, which most dialects accept.
    pub plain: Dialect,
}

impl ItemFormats {
    /// Returns the first other dialect that a predicate holds for. Dialects whose items have the form of the named one
    /// are left out.
    pub fn find_other(&self, is_other: &dyn Fn(&dyn ItemRecognizer) -> bool) -> Option<Dialect> {
        let mut others = self.all.iter().filter(|other| other.family != self.named.family);
        others.find(|other| is_other(other.recognizer)).map(|other| other.dialect)
    }
}

/// Recognises the items of a dialect.
pub(crate) trait ItemRecognizer: Sync {
    /// Returns the texts before and after a list that make it a message, if it holds the parts of one message; none if
    /// it holds items.
    fn around_parts(&self, _list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns true if an item has a member or a type that only items of this dialect have. Members of several
    /// dialects, such as `role` and a text as `content`, are no marks.
    fn marks_item(&self, item: &Fields<'_>) -> bool;

    /// Returns true if a content block is of a type that only this dialect has.
    fn marks_block(&self, _block: &Fields<'_>) -> bool {
        false
    }

    /// Returns true if the rules can read an item: it has a role, a type or a member of this dialect.
    fn reads(&self, item: &Fields<'_>) -> bool;

    /// Returns what the id of a call without a result means in an item in which no call or result could be read.
    fn mention<'a>(&self, _item: &Fields<'a>, _id: JsonRef<'a>) -> Mention<'a> {
        Mention::Unread
    }
}
