//! How JavaScript recognizes the URLs and bodies of conversations.

use super::entry::TYPES;
use crate::provider::spec::{Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[],
    domain: Some(("mistral.ai", r"\/v1\/conversations(?:\/[^/]+(?:\/restart)?)?$")),
    marks: Marks { item_types: &TYPES, body_member: Some(("inputs", Some("messages"))), ..Marks::NONE },
};
