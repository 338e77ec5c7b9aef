//! How JavaScript recognizes Gemini's URLs and bodies.

use crate::provider::spec::{BodyMember, Marks, Recognition};

pub(super) const RECOGNITION: Recognition = Recognition {
    paths: &[r"\/(?:models|tunedModels|endpoints)\/([^/:]+):(?:generateContent|streamGenerateContent)$"],
    domain: None,
    marks: Marks {
        part_members: &[
            "text",
            "functionCall",
            "functionResponse",
            "function_call",
            "function_response",
            "inlineData",
            "inline_data",
            "fileData",
            "file_data",
            "executableCode",
            "codeExecutionResult",
        ],
        body_member: Some(BodyMember::of("contents")),
        ..Marks::NONE
    },
};
