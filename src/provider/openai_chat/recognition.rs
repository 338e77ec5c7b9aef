//! How JavaScript recognizes URLs and bodies of Chat Completions.

use crate::provider::spec::{Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    // OpenAI and Azure (deployments and v1), OpenRouter, Groq, Together, vLLM, and the compatible endpoints of Gemini
    // and Vertex.
    paths: &[r"\/chat\/completions$"],
    domain: None,
    marks: Marks {
        list: Some("tool_calls"),
        roles: &[("tool", Some("tool_call_id")), ("developer", None)],
        block_types: Some((r"^(image_url|input_audio|refusal)$", "part")),
        tool_member: Some("function"),
        ..Marks::NONE
    },
};
