//! How JavaScript recognizes Anthropic's URLs and bodies.

use crate::provider::spec::{Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[
        r"\/(?:v1|anthropic)\/messages$",
        // `count-tokens` is Vertex's pseudo-model for counting tokens.
        r"\/publishers\/anthropic\/models\/(?!count-tokens:)([^/:]+):(?:streamR|r)awPredict$",
        // Bedrock: `anthropic.claude-…`, or a region's `eu.anthropic.claude-…`.
        r"\/model\/((?:[\w-]+\.)?anthropic\.[^/]+)\/invoke(?:-with-response-stream)?$",
    ],
    domain: None,
    marks: Marks {
        block_with_member: Some(("image", "source")),
        block_types: Some((
            r"^(tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|container_upload|search_result|mcp_tool_(use|result)|\w+_tool_result)$",
            "block",
        )),
        beside_messages: Some("system"),
        tool_member: Some("input_schema"),
        ..Marks::NONE
    },
};
