//! What the rules have seen of the items' formats.

use crate::finding::Finding;
use crate::json::JsonRef;
use crate::provider::foreign_format::ForeignFormat;
use crate::provider::item_format::ItemFormats;

/// What was seen of the items' shapes.
pub(super) struct Survey<'a> {
    pub formats: ItemFormats,
    /// An item has a mark of this dialect.
    pub own: bool,
    /// An item could be read.
    pub read: bool,
    /// Items that cannot be read were left out.
    pub unknown: bool,
    /// The first other shape of a whole item, or of the body.
    pub foreign: Option<ForeignFormat>,
    /// Items with blocks of another shape in a message that can be read.
    pub blocks: Vec<(usize, JsonRef<'a>, ForeignFormat)>,
    /// By item of another shape: the finding, and where the item begins.
    pub found: Vec<(Finding, usize)>,
    /// A call without a result, whose id stands where no result is read.
    pub mentioned: bool,
}

impl<'a> Survey<'a> {
    pub fn new(formats: ItemFormats) -> Self {
        Self {
            formats,
            own: false,
            read: false,
            unknown: false,
            foreign: None,
            blocks: Vec::new(),
            found: Vec::new(),
            mentioned: false,
        }
    }
}
