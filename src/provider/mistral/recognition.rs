//! How JavaScript recognizes Mistral's URLs and bodies.

use crate::provider::spec::{Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[
        // Gateways put the provider's name before Mistral's path, which is OpenAI's.
        r"\/mistral\/v1\/chat\/completions$",
        r"\/publishers\/mistralai\/models\/([^/:]+):(?:streamR|r)awPredict$",
    ],
    domain: Some(("mistral.ai", r"\/v1\/(?:chat|agents)\/completions$")),
    marks: Marks {
        flag: Some("prefix"),
        list_in_block: Some("thinking"),
        models: Some(r"^(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral)"),
        // Both services use one format; ids of nine letters and digits are Mistral's.
        call_ids: Some((r"^[A-Za-z0-9]{9}$", "ids of nine characters")),
        ..Marks::NONE
    },
};
