//! Calls and results as a dialect's rules find them.

use crate::json::JsonRef;

/// A call that a dialect's rules found, for [`Pairs::add_call`](super::Pairs::add_call).
#[derive(Debug, Default)]
pub(crate) struct FoundCall<'a, 's> {
    /// The object that holds its id.
    pub value: JsonRef<'a>,
    /// The member that holds its id, whatever its type.
    pub id: Option<JsonRef<'a>>,
    /// Pairs the call if it has no id. Empty in a dialect where every call has one.
    pub alias: &'s str,
    /// The group of calls that are answered together. Groups are numbered in the order of the body.
    pub group: usize,
    /// The name of the tool, or the type of the call, where results name it too; otherwise empty.
    pub label: String,
    /// The provider accepts it without a result, and a result anywhere after it.
    pub may_stay_open: bool,
}

/// A result that a dialect's rules found, for [`Pairs::add_result`](super::Pairs::add_result).
#[derive(Debug, Default)]
pub(crate) struct FoundResult<'a, 's> {
    /// The object that holds the id of its call.
    pub value: JsonRef<'a>,
    /// The member that holds the id of its call, whatever its type.
    pub id: Option<JsonRef<'a>>,
    /// Pairs the result if it has no id, as in [`FoundCall`].
    pub alias: &'s str,
    /// The group that it replies to by its place; none if it is not in the place of a reply.
    pub reply_to: Option<usize>,
    /// As in [`FoundCall`].
    pub label: String,
    /// The member that holds its content.
    pub content: Option<JsonRef<'a>>,
}
