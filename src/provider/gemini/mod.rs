//! Google Gemini generateContent.

pub(crate) mod rules;
