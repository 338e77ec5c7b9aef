//! What a message or a result says, for a dialect that it did not come in.

use super::media::rejected_media;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Message, Part, PartBody, Role};
use crate::provider::dialect::Codec;
use crate::provider::registry::codec;
use crate::replay::{DraftCall, DraftResult, shortened};
use crate::text;
use crate::tool::ToolInvocation;

/// The text of a part that is one.
pub fn text_of(part: &Part) -> Option<&JsonStr> {
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => Some(text),
        _ => None,
    }
}

/// The sayable of a message.
pub struct MessageText<'m> {
    texts: Vec<(bool, &'m JsonStr)>,
    reasoning: Vec<&'m JsonStr>,
    /// A refusal, which some dialects tell apart from text.
    pub refusal: Option<&'m JsonStr>,
    /// Whether there are images, files, or blocks of the own dialect.
    pub has_media: bool,
    /// No part is left out that the own dialect takes.
    whole: bool,
}

impl<'m> MessageText<'m> {
    /// Of that message, for `target`, which may be its own dialect. What cannot go there is reported.
    pub fn of(message: &'m Message, target: &dyn Codec, report: &mut Report) -> Self {
        let own = message.dialect == Some(target.dialect());
        let refusal_is_text = !target.has_refusals();
        let whole = !own || message.parts.len() == 1;
        let mut words = Self { texts: Vec::new(), reasoning: Vec::new(), refusal: None, has_media: false, whole };
        let mut apart = false;
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) if !text.is_empty() => {
                    words.texts.push((std::mem::take(&mut apart), text));
                    continue;
                }
                PartBody::Refusal(text) if refusal_is_text && !text.is_empty() => words.texts.push((true, text)),
                PartBody::Refusal(text) if !text.is_empty() => words.refusal = Some(text),
                PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, target) {
                    Some(finding) if message.role != Role::Assistant => report.push(finding.of_message(&message.id)),
                    _ => words.has_media = true,
                },
                PartBody::Opaque(_) => words.has_media |= own,
                PartBody::Reasoning(text) if !text.is_empty() => words.reasoning.push(text),
                PartBody::Text(_)
                | PartBody::Refusal(_)
                | PartBody::Reasoning(_)
                | PartBody::Data { .. }
                | PartBody::ToolCall { .. } => {}
            }
            apart = true;
        }
        words
    }

    /// Whether nothing can be sent.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && !self.has_media && self.refusal.is_none()
    }

    /// The one text that is all there is.
    pub fn single(&self) -> Option<&'m JsonStr> {
        match self.texts.as_slice() {
            [(_, text)] if self.whole && !self.has_media && self.refusal.is_none() => Some(text),
            _ => None,
        }
    }

    /// All text as one: blocks side by side belong together, blocks apart become paragraphs.
    pub fn joined(&self) -> JsonStr {
        let mut inside = String::new();
        for (apart, text) in &self.texts {
            if *apart && !inside.is_empty() {
                inside.push_str("\\n\\n");
            }
            inside.push_str(text.inside());
        }
        JsonStr::from_inside(&inside)
    }

    /// All text as one, if there is any.
    pub fn text(&self) -> Option<JsonStr> {
        (!self.texts.is_empty()).then(|| self.joined())
    }

    /// All reasoning as one, if there is any.
    pub fn reasoning(&self) -> Option<JsonStr> {
        (!self.reasoning.is_empty()).then(|| JsonStr::joined(&mut self.reasoning.iter().copied(), "\\n\\n"))
    }
}

/// Stands in a result for an image or a file that cannot be shown.
const UNSHOWN: &str = "The tool showed an image or a file here that cannot be passed on.";

/// What a result says.
pub struct ResultText {
    /// Its texts: one, unless it came as a list of blocks; of a value that is no text, its JSON.
    pub texts: Vec<JsonStr>,
    /// Its images and files.
    pub media: Vec<Part>,
    /// Whether it is a failure.
    pub is_error: bool,
}

/// What answers a call, for `target`. What cannot go there is reported, and said in its place.
pub fn result_text(target: &dyn Codec, call: &DraftCall<'_>, report: &mut Report) -> ResultText {
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
                texts: vec![JsonStr::new(crate::replay::INTERRUPTED)],
                media: Vec::new(),
                is_error: true,
            };
        }
    };
    let (mut texts, mut media) = match result.dialect {
        Some(dialect) => codec(dialect).decode_result(result),
        None => (vec![text_or_json(&result.content)], Vec::new()),
    };
    media.retain(|part| match rejected_media(part, result.dialect, target) {
        Some(finding) => {
            report.push(finding.of_call(&call.invocation.call_id));
            texts.push(JsonStr::new(UNSHOWN));
            false
        }
        None => true,
    });
    // Without a member for it, the text must say that the tool failed.
    let flagless = !target.flags_errors() && result.dialect != Some(target.dialect());
    if result.is_error && flagless && !texts.iter().any(|said| text::has(&said.decode().to_ascii_lowercase(), "error"))
    {
        let first = texts.first().map_or("", JsonStr::inside);
        let said = JsonStr::from_inside(&format!("Error: {first}"));
        match texts.first_mut() {
            Some(first) => *first = said,
            None => texts.push(said),
        }
    }
    if let Some(bytes) = cut {
        texts = vec![JsonStr::new(&shortened(&texts, bytes))];
        media.clear();
    }
    ResultText { texts, media, is_error: result.is_error }
}

/// The arguments as the object that some dialects want; what is none goes out wrapped in one.
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

/// Returns a result's content as one text: the string that it is, or its JSON.
pub(crate) fn text_or_json(content: &Json) -> JsonStr {
    content.view().as_json_str().unwrap_or_else(|| JsonStr::new(content.as_str()))
}

/// Splits the blocks of a result into texts, and images and files. An opaque block becomes its JSON text.
pub(crate) fn split_media(parts: impl IntoIterator<Item = Part>) -> (Vec<JsonStr>, Vec<Part>) {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        match part.body {
            PartBody::Text(text) => texts.push(text),
            PartBody::Image(_) | PartBody::File(_) => media.push(part),
            PartBody::Opaque(value) => texts.push(JsonStr::new(value.as_str())),
            _ => {}
        }
    }
    (texts, media)
}
