//! What `update` changes of a session.

use super::option_types::OptionTypes;
use super::values::given;
use crate::error::Result;
use crate::store::HeadEdit;
use serde::Deserialize;

/// The fields of `Session.update`: absent keeps, null clears.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
pub struct UpdateFields<T: OptionTypes> {
    #[serde(default, deserialize_with = "given")]
    title: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    channel: Option<Option<String>>,
    #[serde(default = "Option::default", deserialize_with = "given")]
    metadata: Option<Option<T::Value>>,
    #[serde(default)]
    archived: Option<bool>,
}

impl<T: OptionTypes> UpdateFields<T> {
    /// Returns the edit of the session's head.
    ///
    /// # Errors
    /// `invalid_input`, `too_large`: the metadata.
    pub fn into_edit(self) -> Result<HeadEdit> {
        let Self { title, channel, metadata, archived } = self;
        let to_json = |value: Option<T::Value>| value.as_ref().map(T::value_to_json).transpose();
        let metadata = metadata.map(to_json).transpose()?;
        Ok(Box::new(move |head| {
            if let Some(title) = &title {
                head.title.clone_from(title);
            }
            if let Some(channel) = &channel {
                head.channel.clone_from(channel);
            }
            if let Some(metadata) = &metadata {
                head.metadata.clone_from(metadata);
            }
            head.is_archived = archived.unwrap_or(head.is_archived);
        }))
    }
}
