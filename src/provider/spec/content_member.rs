//! Members of messages and blocks that say more than the neutral form of a message has.

/// A member of the items of a dialect.
pub(crate) struct ContentMember {
    /// The path in an item, such as `content/*/image_url/detail`. A `*` stands for each element of a list.
    pub path: &'static str,
    pub meaning: ContentMeaning,
}

impl ContentMember {
    /// Creates the member at a path.
    pub const fn new(path: &'static str, meaning: ContentMeaning) -> Self {
        Self { path, meaning }
    }

    /// Returns the member's name.
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('/').map_or(self.path, |(_, name)| name)
    }
}

/// What such a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentMeaning {
    /// Who of several users or assistants speaks.
    Speaker,
    /// How closely the model looks at an image.
    ImageDetail,
    /// The number of tokens that an image or a video becomes, in the terms of one provider.
    MediaResolution,
    /// The name or title of a file.
    FileName,
    /// What the user says about a document.
    DocumentContext,
    /// Whether the answer cites a document. It is not taken over to a dialect that has the member too, as requests that
    /// were accepted would be rejected: Anthropic wants it for all documents of a request or for none
    /// (platform.claude.com, "Citations", November 2026), and a document of another dialect has none. Converse refuses
    /// it in tool results (boto/boto3#4648, 2025-10) and with models that do not cite (boto/boto3#4608).
    DocumentCitations,
    /// The part of a video that is meant.
    VideoClip,
    /// The sources that an answer cites.
    Citations,
}
