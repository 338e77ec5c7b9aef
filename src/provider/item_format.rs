//! How the items of a dialect look: what the rules, and the search for items of other formats, ask a dialect.

use super::rules::Fields;
use crate::json::JsonRef;
use crate::message::Dialect;

/// What an open call's id means in an item where neither a call nor a result was read.
pub(crate) enum Mention<'a> {
    /// The id of another call.
    Call,
    /// A result without the mark of one: the object, the member that marks a result, and its value.
    Result(JsonRef<'a>, &'static str, &'static str),
    /// Perhaps a result in a form that cannot be read.
    Unread,
}

/// The formats that an item is compared with.
#[derive(Clone, Copy)]
pub(crate) struct ItemFormats {
    /// The dialect that the caller named.
    pub named: &'static dyn ItemFormat,
    /// Every dialect.
    pub all: [&'static dyn ItemFormat; Dialect::ALL.len()],
    /// The dialect that `{"role":"user","content":"hi"}` is taken for, which most dialects accept.
    pub plain: Dialect,
}

impl ItemFormats {
    /// Returns the first other dialect that a predicate holds for. Dialects whose items have the form of the named one are left out.
    pub fn find_other(&self, is_other: &dyn Fn(&dyn ItemFormat) -> bool) -> Option<Dialect> {
        let mut others = self.all.into_iter().filter(|other| other.family() != self.named.family());
        others.find(|other| is_other(*other)).map(|other| other.dialect())
    }
}

/// The form of a dialect's items.
pub(crate) trait ItemFormat: Sync {
    /// Which one it is.
    fn dialect(&self) -> Dialect;

    /// The body's member that holds the messages.
    fn list(&self) -> &'static str {
        "messages"
    }

    /// What makes a message of a list that holds one message's parts; none where it holds messages.
    fn around_parts(&self, _list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The dialect whose items have the same form.
    fn family(&self) -> Dialect {
        self.dialect()
    }

    /// Whether an item has a member or a type that only items of this dialect have. What several have, a role and a text
    /// say, marks nothing.
    fn marks_item(&self, item: &Fields<'_>) -> bool;

    /// Whether a block of a message's content is one that only this dialect has, and that no other can be given in its stead.
    fn marks_block(&self, _block: &Fields<'_>) -> bool {
        false
    }

    /// Whether the rules can make something of an item: it has a role, a type or a member of this dialect.
    fn reads(&self, item: &Fields<'_>) -> bool;

    /// What an open call's id says that stands in an item where neither a call nor a result was read.
    fn mention<'a>(&self, _item: &Fields<'a>, _id: JsonRef<'a>) -> Mention<'a> {
        Mention::Unread
    }

    /// Returns true if one text may stand in place of the list of items.
    fn takes_text_list(&self) -> bool {
        false
    }
}
