//! How JavaScript recognizes Bedrock's URLs and bodies.

use crate::provider::spec::{BodyMember, Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    // The id of a model, or its ARN, which has a `%2F` in place of a slash.
    paths: &[r"\/model\/([^/]+)\/converse(?:-stream)?$"],
    domain: None,
    marks: Marks {
        block_members: &[
            "toolUse",
            "toolResult",
            "reasoningContent",
            "cachePoint",
            "citationsContent",
            "guardContent",
            "text",
            "image",
            "document",
            "video",
            "audio",
        ],
        body_member: Some(BodyMember::of("inferenceConfig")),
        beside_messages: Some("system"),
        ..Marks::NONE
    },
};
