//! The text and media of a message or a result, for a dialect that it was not received in.

use super::rejected_media::rejected_media;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Message, Part, PartBody, Role};
use crate::provider::spec::{ContentProfile, DecodeResult};
use crate::replay::{DraftCall, DraftResult, shortened};
use crate::tool::ToolInvocation;

/// The content of a message, by kind.
pub struct MessageText<'m> {
    texts: Vec<TextPart<'m>>,
    reasoning: Vec<&'m JsonStr>,
    /// A refusal, for targets that have a form for it.
    pub refusal: Option<&'m JsonStr>,
    /// True if there are images or files, or blocks that only the message's own dialect has.
    pub has_media: bool,
    /// True if `texts` cannot lack a part that the target has a form for: the message is of another dialect, or has one
    /// part.
    is_complete: bool,
}

/// A text of a message.
struct TextPart<'m> {
    text: &'m JsonStr,
    /// Another part is between this text and the one before.
    starts_paragraph: bool,
}

impl<'m> MessageText<'m> {
    /// Reads a message for `target`, which may be the message's own dialect. Reports media that the target rejects.
    pub fn of(message: &'m Message, target: &ContentProfile, report: &mut Report) -> Self {
        let native = message.dialect == Some(target.dialect);
        let refusal_is_text = !target.has_refusals;
        let mut content = Self {
            texts: Vec::new(),
            reasoning: Vec::new(),
            refusal: None,
            has_media: false,
            is_complete: !native || message.parts.len() == 1,
        };
        let mut starts_paragraph = false;
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) if !text.is_empty() => {
                    let starts_paragraph = std::mem::take(&mut starts_paragraph);
                    content.texts.push(TextPart { text, starts_paragraph });
                    continue;
                }
                PartBody::Refusal(text) if refusal_is_text && !text.is_empty() => {
                    content.texts.push(TextPart { text, starts_paragraph: true });
                }
                PartBody::Refusal(text) if !text.is_empty() => content.refusal = Some(text),
                PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, target) {
                    Some(finding) if message.role != Role::Assistant => report.push(finding.of_message(&message.id)),
                    _ => content.has_media = true,
                },
                PartBody::Opaque(_) => content.has_media |= native,
                PartBody::Reasoning(text) if !text.is_empty() => content.reasoning.push(text),
                PartBody::Text(_)
                | PartBody::Refusal(_)
                | PartBody::Reasoning(_)
                | PartBody::Data { .. }
                | PartBody::ToolCall { .. } => {}
            }
            starts_paragraph = true;
        }
        content
    }

    /// Returns true if there is no text, no media and no refusal.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && !self.has_media && self.refusal.is_none()
    }

    /// Returns the text if the message consists of a single text.
    pub fn single(&self) -> Option<&'m JsonStr> {
        match self.texts.as_slice() {
            [TextPart { text, .. }] if self.is_complete && !self.has_media && self.refusal.is_none() => Some(text),
            _ => None,
        }
    }

    /// Returns all texts as one. Adjacent texts are concatenated; texts with other parts between them become
    /// paragraphs.
    pub fn joined(&self) -> JsonStr {
        let mut inside = String::new();
        for TextPart { text, starts_paragraph } in &self.texts {
            if *starts_paragraph && !inside.is_empty() {
                inside.push_str("\\n\\n");
            }
            inside.push_str(text.inside());
        }
        JsonStr::from_inside(&inside)
    }

    /// Returns all texts as one, if there is any.
    pub fn text(&self) -> Option<JsonStr> {
        (!self.texts.is_empty()).then(|| self.joined())
    }

    /// Returns all reasoning as one text, if there is any.
    pub fn reasoning(&self) -> Option<JsonStr> {
        (!self.reasoning.is_empty()).then(|| JsonStr::joined(&mut self.reasoning.iter().copied(), "\\n\\n"))
    }
}

/// The text in a result in place of an image or a file that the target rejects.
const REJECTED_MEDIA_TEXT: &str = "The tool showed an image or a file here that cannot be passed on.";

/// The content of a result, by kind.
pub struct ResultText {
    /// The texts of its blocks, or its only text: the string that it is, or its JSON.
    pub texts: Vec<JsonStr>,
    /// Images and files that the target accepts.
    pub media: Vec<Part>,
    /// True if the tool failed.
    pub is_error: bool,
}

/// Returns the content of a call's result for `target`. Reports media that the target rejects, and puts a text in their
/// place.
pub fn result_text(
    target: &ContentProfile,
    call: &DraftCall<'_>,
    decode_result: DecodeResult,
    report: &mut Report,
) -> ResultText {
    let (result, cut) = match call.result {
        Some(DraftResult::Stored(result)) => (result, None),
        Some(DraftResult::Cut { result, bytes }) => (result, Some(bytes)),
        Some(DraftResult::Closing(text)) => {
            return ResultText { texts: vec![JsonStr::new(text)], media: Vec::new(), is_error: true };
        }
        Some(DraftResult::Placeholder(text)) => {
            return ResultText { texts: vec![JsonStr::new(text)], media: Vec::new(), is_error: false };
        }
        None => {
            return ResultText {
                texts: vec![JsonStr::new(crate::synthetic_result::INTERRUPTED)],
                media: Vec::new(),
                is_error: true,
            };
        }
    };
    let (mut texts, mut media) = decode_result(result);
    media.retain(|part| match rejected_media(part, result.dialect, target) {
        Some(finding) => {
            report.push(finding.of_call(&call.invocation.call_id));
            texts.push(JsonStr::new(REJECTED_MEDIA_TEXT));
            false
        }
        None => true,
    });
    let lacks_error_flag = !target.flags_errors && result.dialect != Some(target.dialect);
    if result.is_error && lacks_error_flag {
        mark_error(&mut texts);
    }
    if let Some(bytes) = cut {
        texts = vec![JsonStr::new(&shortened(&texts, bytes))];
        media.clear();
    }
    ResultText { texts, media, is_error: result.is_error }
}

/// Puts `Error: ` before the first text, unless a text has that word already. For targets without a member that says
/// so.
fn mark_error(texts: &mut Vec<JsonStr>) {
    if texts.iter().any(|text| text.decode().to_ascii_lowercase().contains("error")) {
        return;
    }
    let first = texts.first().map_or("", JsonStr::inside);
    let marked = JsonStr::from_inside(&format!("Error: {first}"));
    match texts.first_mut() {
        Some(first) => *first = marked,
        None => texts.push(marked),
    }
}

/// Returns the arguments as an object, for dialects that require one. Other JSON is wrapped as `{"value":…}`, other
/// text as `{"invalid_json":"…"}`, and reported.
pub fn arguments_object(call: &ToolInvocation, report: &mut Report) -> Json {
    call.arguments.object().unwrap_or_else(|| {
        report.push(
            Finding::warning(
                FindingCode::InvalidArguments,
                "the arguments are no JSON object; they go out wrapped in one",
            )
            .of_call(&call.call_id)
            .with_action(Action::Rewritten),
        );
        let text = call.arguments.text();
        ObjectWriter::build(|object| {
            match JsonRef::parse(&text) {
                Ok(value) => object.json("value", value),
                Err(_) => object.text("invalid_json", &text),
            };
        })
    })
}
