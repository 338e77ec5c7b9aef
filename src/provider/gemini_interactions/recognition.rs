//! How JavaScript recognizes URLs and bodies of the Interactions API.

use crate::provider::spec::{BodyMember, Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    // Of the Gemini API, and of Vertex.
    paths: &[r"\/v\d\w*\/(?:projects\/[^/]+\/locations\/[^/]+\/)?interactions$"],
    domain: None,
    marks: Marks {
        item_types: &["user_input", "model_output", "thought", "function_result"],
        body_member: Some(BodyMember { without: &["contents"], ..BodyMember::of("system_instruction") }),
        ..Marks::NONE
    },
};
