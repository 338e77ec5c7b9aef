//! How JavaScript recognizes URLs and bodies of the Responses API.

use crate::provider::spec::{BodyMember, Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[r"\/responses$"],
    domain: None,
    marks: Marks {
        item_types: &[
            "function_call",
            "function_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
            "reasoning",
            "item_reference",
        ],
        block_types: Some((r"^(input_text|output_text|input_image|input_file)$", "part")),
        body_member: Some(BodyMember { without: &["messages"], ..BodyMember::of("input") }),
        ..Marks::NONE
    },
};
