//! How JavaScript recognizes URLs and bodies of the Interactions API.

use crate::provider::spec::{Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[r"\/interactions$"],
    domain: None,
    marks: Marks {
        item_types: &["user_input", "model_output", "thought", "function_result"],
        beside_messages: None,
        body_member: Some(("system_instruction", Some("contents"))),
        ..Marks::NONE
    },
};
