//! The formats of the items of a body, as the rules find them.

use crate::finding::LimitedReport;
use crate::json::JsonRef;
use crate::provider::foreign_format::ForeignFormat;
use crate::provider::spec::ItemFormats;

/// Collects the formats of a body's items. They decide whether the body can be repaired as the named dialect.
pub(super) struct Survey<'a> {
    pub formats: ItemFormats,
    /// True if an item has a mark of the named dialect.
    pub has_native_item: bool,
    /// True if an item can be read.
    pub has_readable_item: bool,
    /// True if items with content were dropped because they cannot be read.
    pub dropped_unknown: bool,
    /// The most specific foreign format of an item, or of the body; the first of several.
    pub foreign: Option<ForeignFormat>,
    /// Readable items that contain a block of a foreign format: the item's index, the item, and the format.
    pub foreign_blocks: Vec<(usize, JsonRef<'a>, ForeignFormat)>,
    /// A finding for each foreign item.
    pub report: LimitedReport,
    /// The byte offset of the item of each listed finding.
    pub starts: Vec<usize>,
    /// True if the id of a call without a result was found where no result can be read.
    pub has_unread_mention: bool,
    /// True if a list stands in place of an item.
    pub has_nested_list: bool,
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
            report: LimitedReport::default(),
            starts: Vec::new(),
            has_unread_mention: false,
            has_nested_list: false,
        }
    }
}
