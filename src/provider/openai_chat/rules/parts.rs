//! The parts of a message's content: which role may hold which.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted, quoted};

const SYSTEM_PARTS: &[&str] = &["text"];
const ASSISTANT_PARTS: &[&str] = &["text", "refusal"];
const USER_PARTS: &[&str] = &["text", "image_url", "input_audio", "file"];
const USER_PARTS_WITHOUT_AUDIO: &[&str] = &["text", "image_url", "file"];
/// Parts that may be moved to a user message.
const MEDIA: &[&str] = &["image_url", "input_audio", "file"];
/// Parts of other wire formats. A part of any other unknown type is kept: compatible servers have parts of their own.
const FOREIGN: &[&str] = &[
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "image",
    "document",
    "input_text",
    "output_text",
    "input_image",
    "input_file",
    "function_call",
    "function_call_output",
    "reasoning",
];
/// Reasoning parts of other wire formats.
const FOREIGN_REASONING: &[&str] = &["thinking", "redacted_thinking", "reasoning"];
/// Parts of compatible servers that have the name of a foreign part, by role and type, with a member that the foreign
/// part lacks.
const COMPATIBLE: [CompatiblePart; 3] = [
    CompatiblePart { role: "user", kind: "document", member: "document" }, // Groq
    CompatiblePart { role: "assistant", kind: "reasoning", member: "summary" }, // Databricks
    CompatiblePart { role: "assistant", kind: "thinking", member: "closed" }, // vLLM
];
/// A removed part of at most this many bytes is kept as its JSON text.
const MAX_QUOTED_BYTES: usize = 4096;
/// The sentence about a part of an unknown type, which is kept.
const UNKNOWN_PART: &str =
    "Content parts of type '{}' are not in OpenAI's format, but some compatible servers accept them.";
/// The beginning of a text part, up to its text.
const TEXT_PART: &str = "{\"type\":\"text\",\"text\":";

struct CompatiblePart {
    role: &'static str,
    kind: &'static str,
    member: &'static str,
}

impl CompatiblePart {
    fn is(&self, role: &str, kind: &str, part: &Fields<'_>) -> bool {
        // A part with an id is an item of OpenAI Responses.
        self.role == role && self.kind == kind && part.find(self.member).is_some() && part.find("id").is_none()
    }
}

/// Returns the types of parts that OpenAI accepts in a role. Only a user message takes more than text: "Image URLs are
/// only allowed for messages with role 'user'". Recorded: a model without audio rejects `input_audio` ("Content blocks
/// are expected to be either text or image_url type"). Models of other providers may have audio whatever their name.
pub(super) fn allowed_by_openai(role: &str, model: &str) -> Option<&'static [&'static str]> {
    let is_o_series = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_openai_model = model.starts_with("gpt-") || is_o_series;
    let names_audio = ["audio", "realtime", "omni"].iter().any(|word| model.contains(word));
    Some(match role {
        "assistant" => ASSISTANT_PARTS,
        "user" if is_openai_model && !names_audio => USER_PARTS_WITHOUT_AUDIO,
        "user" => USER_PARTS,
        _ => SYSTEM_PARTS,
    })
}

/// Returns a text part.
pub(super) fn text_part(text: &str) -> String {
    format!("{TEXT_PART}{}}}", quoted(text))
}

/// Reads the parts of one message and reports those that the provider rejects.
pub(crate) struct PartReader {
    role: &'static str,
    /// The types that the role may hold, and those of a user message; none if any are accepted.
    allowed: Option<&'static [&'static str]>,
    allowed_for_user: Option<&'static [&'static str]>,
    /// The sentence about a part of an unknown type, which is kept.
    unknown_part: &'static str,
    /// A type of another role, which is no unknown one.
    rejected: &'static str,
    /// Returns a member that an accepted part must have and lacks.
    missing_member: fn(&Fields<'_>) -> Option<&'static str>,
    kept: Vec<BodyPiece>,
    /// The list must be written anew from `kept`.
    is_changed: bool,
    /// Parts that must move to a user message after this one.
    pub moved_parts: Vec<BodyPiece>,
}

impl PartReader {
    /// Creates a reader. `allowed_parts` returns the types of parts that a role may hold.
    pub fn new(role: &'static str, allowed_parts: impl Fn(&str) -> Option<&'static [&'static str]>) -> Self {
        Self {
            role,
            allowed: allowed_parts(role),
            allowed_for_user: allowed_parts("user"),
            unknown_part: UNKNOWN_PART,
            rejected: "",
            missing_member: |_| None,
            kept: Vec::new(),
            is_changed: false,
            moved_parts: Vec::new(),
        }
    }

    /// Sets the sentence about a part of an unknown type; `{}` stands for the type.
    pub fn with_unknown_part(self, sentence: &'static str) -> Self {
        Self { unknown_part: sentence, ..self }
    }

    /// Sets a type that is accepted in another role only.
    pub fn with_rejected(self, rejected: &'static str) -> Self {
        Self { rejected, ..self }
    }

    /// Sets what finds a member that an accepted part must have and lacks.
    pub fn with_required(self, missing_member: fn(&Fields<'_>) -> Option<&'static str>) -> Self {
        Self { missing_member, ..self }
    }

    pub fn read<'a>(&mut self, plan: &mut Plan<'a, '_>, content: JsonRef<'a>) {
        for part in content.items() {
            if plan.is_over_budget() {
                return;
            }
            if part.is_object() {
                self.part(plan, &Fields::of(part));
            } else {
                self.non_object(plan, part);
            }
        }
    }

    /// Returns the new list, if it must be written anew.
    pub fn into_new_list(self) -> Option<Vec<BodyPiece>> {
        self.is_changed.then_some(self.kept)
    }

    fn keep<'a>(&mut self, plan: &Plan<'a, '_>, part: JsonRef<'a>) {
        self.kept.push(plan.edits.source(part));
    }

    /// Fixes a part that is no object: `null` is removed, anything else becomes text.
    fn non_object<'a>(&mut self, plan: &mut Plan<'a, '_>, part: JsonRef<'a>) {
        self.is_changed = true;
        let sentence = "Invalid type for a content part: expected an object.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at(part);
        if part.is_null() {
            plan.report(violation.dropped());
        } else {
            plan.report(violation.rewritten());
            self.kept.push(plan.as_text(TEXT_PART, part));
        }
    }

    fn part<'a>(&mut self, plan: &mut Plan<'a, '_>, part: &Fields<'a>) {
        let kind = part.owned_text("type");
        if kind == "text" {
            return self.text(plan, part);
        }
        let is_media = MEDIA.contains(&kind.as_str());
        let is_allowed = self.allowed.is_none_or(|types| types.contains(&kind.as_str()));
        // Mistral's file has its id in the part itself.
        if is_allowed && is_media && part.find(&kind).or_else(|| part.find("file_id")).is_none() {
            self.is_changed = true;
            let sentence = "Missing required parameter: '{}' of a content part of that type.";
            plan.report(Violation::error(FindingCode::Malformed, sentence).at(part.object).quoting(&kind).dropped());
            return;
        }
        if kind.is_empty() {
            return self.remove(plan, part, &kind);
        }
        if is_allowed {
            return self.accepted(plan, part);
        }
        let is_compatible = COMPATIBLE.iter().any(|known| known.is(self.role, &kind, part))
            || !is_media && !FOREIGN.contains(&kind.as_str()) && kind != self.rejected;
        if is_media || !is_compatible || is_unknown(plan, part, &kind) {
            return self.remove(plan, part, &kind);
        }
        plan.report(Violation::warning(FindingCode::UnsupportedPart, self.unknown_part).at(part.object).quoting(&kind));
        self.keep(plan, part.object);
    }

    /// Keeps a part of an accepted type, unless a member is missing.
    fn accepted<'a>(&mut self, plan: &mut Plan<'a, '_>, part: &Fields<'a>) {
        let Some(missing) = (self.missing_member)(part) else { return self.keep(plan, part.object) };
        self.is_changed = true;
        let sentence = "Missing required parameter: '{}' of a content part.";
        plan.report(Violation::error(FindingCode::Malformed, sentence).at(part.object).quoting(missing).dropped());
    }

    fn text<'a>(&mut self, plan: &mut Plan<'a, '_>, part: &Fields<'a>) {
        let Some(text) = part.find("text") else {
            self.is_changed = true;
            let sentence = "Missing required parameter: 'text' of a text part.";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(part.object).dropped());
            return;
        };
        if text.kind() != JsonKind::String {
            let sentence = "Invalid type for 'text': expected a string.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            plan.rewrite(violation.at_member(part.object, "text"), as_quoted(text));
        }
        self.keep(plan, part.object);
    }

    /// Removes a part that the role may not hold. Media move to a user message; of others the text is kept, or else
    /// their JSON.
    fn remove<'a>(&mut self, plan: &mut Plan<'a, '_>, part: &Fields<'a>, kind: &str) {
        self.is_changed = true;
        let allowed_for_user = self.allowed_for_user.is_none_or(|types| types.contains(&kind));
        let is_moved = self.role != "user" && MEDIA.contains(&kind) && allowed_for_user;
        let sentence = format!(
            "Invalid value: '{kind}' in a message with role '{}'. Content blocks are expected to be of the types that this role supports.",
            self.role
        );
        let is_allowed = self.allowed.is_none_or(|types| types.contains(&kind));
        let code = if !is_allowed && is_unknown(plan, part, kind) {
            FindingCode::UnknownShape
        } else {
            FindingCode::UnsupportedPart
        };
        let violation = Violation::error(code, sentence).at(part.object);
        if is_moved {
            plan.report(violation.moved());
            self.moved_parts.push(plan.edits.source(part.object));
            return;
        }
        plan.report(violation.rewritten());
        if let Some(text) = part.find("text").filter(|text| text.kind() == JsonKind::String) {
            self.kept.push(plan.as_text(TEXT_PART, text));
        } else if FOREIGN_REASONING.contains(&kind) {
            // This format cannot replay reasoning, and it is no text of the answer.
        } else if part.object.as_raw().len() <= MAX_QUOTED_BYTES {
            self.kept.push(BodyPiece::New(text_part(part.object.as_raw())));
        } else {
            let note = format!("[A part of type '{kind}' was left out: the model cannot read it.]");
            self.kept.push(BodyPiece::New(text_part(&note)));
        }
    }
}

/// Returns true if a part is of no provider's format.
fn is_unknown<'a>(plan: &Plan<'a, '_>, part: &Fields<'a>, kind: &str) -> bool {
    plan.is_foreign_block(part) || !kind.is_empty() && !is_provider_type(kind)
}
