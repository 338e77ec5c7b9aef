//! How JavaScript recognizes the URLs and bodies of conversations.

use super::entry::TYPES;
use crate::provider::spec::{BodyMember, Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[],
    domain: Some(("mistral.ai", r"\/v1\/conversations(?:\/[^/]+(?:\/restart)?)?$")),
    marks: Marks {
        item_types: &TYPES,
        // Hugging Face's bodies have `inputs`, too: `{"inputs":"Hi","parameters":{}}`.
        body_member: Some(BodyMember {
            beside: &["model", "agent_id", "completion_args", "instructions"],
            without: &["messages", "parameters"],
            ..BodyMember::of("inputs")
        }),
        ..Marks::NONE
    },
};
