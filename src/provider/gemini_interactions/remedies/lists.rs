//! Lists as results.

use crate::json::{JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::provider::gemini_interactions::step::{StepKind, USER_INPUT};
use crate::provider::healing::Cure;
use crate::provider::rules::BodyPiece;

/// The mark of a model that refuses lists as results.
pub(super) fn list_mark(body: JsonRef<'_>) -> String {
    format!("resultlists:{}", body.string("model"))
}

/// Makes each list that is a result the text that it has. Its other contents follow the results.
pub(super) fn unlist_results(cure: &mut Cure<'_>) {
    let (mut pieces, mut media) = (Vec::new(), Vec::new());
    let mut has_changed = false;
    for (at, step) in cure.list.items().enumerate() {
        let is_result = StepKind::of(step) == StepKind::FunctionResult;
        if !is_result {
            flush(&mut media, &mut pieces);
        }
        let list = step.get("result").filter(|result| is_result && result.kind() == JsonKind::Array);
        if let Some(list) = list {
            let texts: Vec<JsonStr> = list.items().filter_map(|content| content.json_str("text")).collect();
            media.extend(list.items().filter(|it| it.get("text").is_none()).map(|content| content.as_raw().to_owned()));
            let text = JsonStr::joined(&mut texts.iter(), "\\n\\n");
            cure.edits.replace(list, BodyPiece::New(text.token().to_owned()));
            cure.changed(|| format!("/input/{at}/result"));
            has_changed = true;
        }
        pieces.push(cure.edits.source(step));
    }
    flush(&mut media, &mut pieces);
    if has_changed {
        cure.edits.rebuild(cure.list, pieces);
        cure.refused.push(list_mark(cure.body));
    }
}

/// Adds a step with these contents.
fn flush(media: &mut Vec<String>, pieces: &mut Vec<BodyPiece>) {
    if media.is_empty() {
        return;
    }
    let mut out = String::new();
    let mut step = ObjectWriter::new(&mut out);
    step.text("type", USER_INPUT).list("content", &std::mem::take(media));
    step.end();
    pieces.push(BodyPiece::New(out));
}
