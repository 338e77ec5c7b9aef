//! How JavaScript recognizes a dialect before the wasm is loaded. The build has no part in it: a test writes and checks
//! the files.

/// The URLs of a dialect's chat endpoints, and the marks of its conversations. Patterns are regular expressions of
/// JavaScript.
#[derive(Clone, Copy)]
pub(crate) struct Recognition {
    /// Patterns of paths. A group is the model.
    pub paths: &'static [&'static str],
    /// A domain whose hosts serve no other dialect, and the pattern of its paths.
    pub domain: Option<(&'static str, &'static str)>,
    pub marks: Marks,
}

/// What the messages and bodies of a dialect have and those of others do not. Messages of most dialects have `role` and
/// `content`.
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    /// Members of entries of `parts` that have no `type`.
    pub part_members: &'static [&'static str],
    /// Members of blocks that have no `type`.
    pub block_members: &'static [&'static str],
    /// Values of an item's `type`.
    pub item_types: &'static [&'static str],
    /// A member of a message that is `true`.
    pub flag: Option<&'static str>,
    /// A member of a message that is a list with entries.
    pub list: Option<&'static str>,
    /// A role, and the member that a message with it must have.
    pub roles: &'static [(&'static str, Option<&'static str>)],
    /// A block's `type`, and a member of the block.
    pub block_with_member: Option<(&'static str, &'static str)>,
    /// A member of a block that is a list and in other dialects a text.
    pub list_in_block: Option<&'static str>,
    /// A pattern of the `type` of blocks, and what the dialect calls a block.
    pub block_types: Option<(&'static str, &'static str)>,
    /// A member of a body.
    pub body_member: Option<BodyMember>,
    /// A member of a body beside its messages.
    pub beside_messages: Option<&'static str>,
    /// A member of an entry of `tools`.
    pub tool_member: Option<&'static str>,
    /// A pattern of the names of models.
    pub models: Option<&'static str>,
    /// For a variant of another dialect: the pattern of the ids of all calls, and how they are.
    pub call_ids: Option<(&'static str, &'static str)>,
}

/// A member of a body that other bodies have, too: those of another dialect, or of no conversation.
#[derive(Clone, Copy)]
pub(crate) struct BodyMember {
    pub name: &'static str,
    /// Members of which the body has one. Empty if it needs none.
    pub beside: &'static [&'static str],
    /// Members of which it has none.
    pub without: &'static [&'static str],
}

impl BodyMember {
    pub const fn of(name: &'static str) -> Self {
        Self { name, beside: &[], without: &[] }
    }
}

impl Marks {
    pub const NONE: Self = Self {
        part_members: &[],
        block_members: &[],
        item_types: &[],
        flag: None,
        list: None,
        roles: &[],
        block_with_member: None,
        list_in_block: None,
        block_types: None,
        body_member: None,
        beside_messages: None,
        tool_member: None,
        models: None,
        call_ids: None,
    };
}
