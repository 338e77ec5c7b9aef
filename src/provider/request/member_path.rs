//! Paths to members of `params`.

/// A path from `params` to a member. Each step is a member's name, or `*` for any item of a list or any member.
pub(crate) type MemberPath = &'static [&'static str];
