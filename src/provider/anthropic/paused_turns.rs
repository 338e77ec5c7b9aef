//! Answers that Anthropic pauses.

use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::spec::{Pause, PausedTurns};

pub(super) const PAUSED_TURNS: PausedTurns = PausedTurns { pause_after, params_in_container, tokens: None };

/// `pause_turn` stops the loop of server tools; `compaction` follows a summary, which is the whole answer if it was
/// asked for.
fn pause_after(finish_reason: &str, params: JsonRef<'_>) -> Option<Pause> {
    match finish_reason {
        "pause_turn" => Some(Pause::Resumes),
        "compaction" if params.find("compaction").is_some() => Some(Pause::Ends),
        "compaction" => Some(Pause::Resumes),
        _ => None,
    }
}

/// Code that called a tool waits in its container, and the API rejects a request that does not name it.
fn params_in_container(params: JsonRef<'_>, container: &str) -> Option<Json> {
    params.get("container").is_none().then(|| {
        ObjectWriter::build(|object| {
            object.copy_all(params, "");
            object.text("container", container);
        })
    })
}
