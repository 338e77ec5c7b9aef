//! What an application says of a stored message: a label, a note, a thumb.

use crate::encoding::encode_fields;
use crate::json::Json;

/// The metadata of a message, given after it was stored. The newest one of a message counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The id of the message.
    pub message: String,
    /// Its metadata from now on.
    pub metadata: Option<Json>,
}
encode_fields!(struct Annotation {
    0 => message: required,
    1 => metadata,
});

impl Annotation {
    /// Annotates a message. The metadata `null` removes what it has.
    #[must_use]
    pub fn new(message: &str, metadata: Json) -> Self {
        let metadata = Some(metadata).filter(|metadata| !metadata.view().is_null());
        Self { message: message.to_owned(), metadata }
    }
}
