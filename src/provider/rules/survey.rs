//! What the rules have seen of the items' formats.

use crate::finding::Finding;
use crate::json::JsonRef;
use crate::provider::foreign_format::ForeignFormat;
use crate::provider::item_format::ItemFormats;

/// What was seen of the items' shapes.
pub(super) struct Survey<'a> {
    pub formats: ItemFormats,
    /// An item has a mark of this dialect.
    pub has_native_item: bool,
    /// An item could be read.
    pub has_readable_item: bool,
    /// Items that cannot be read were left out.
    pub dropped_unknown: bool,
    /// The first other shape of a whole item, or of the body.
    pub foreign: Option<ForeignFormat>,
    /// Items with blocks of another shape in a message that can be read.
    pub foreign_blocks: Vec<(usize, JsonRef<'a>, ForeignFormat)>,
    /// By item of another shape: the finding, and where the item begins.
    pub findings: Vec<(Finding, usize)>,
    /// A call without a result, whose id stands where no result is read.
    pub has_unread_mention: bool,
}

impl<'a> Survey<'a> {
    pub fn new(formats: ItemFormats) -> Self {
        Self {
            formats,
            has_native_item: false,
            has_readable_item: false,
            dropped_unknown: false,
            foreign: None,
            foreign_blocks: Vec::new(),
            findings: Vec::new(),
            has_unread_mention: false,
        }
    }
}
