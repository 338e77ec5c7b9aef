//! What the model is shown: a draft of the history, changed by passes in a fixed order, one file per pass.
//!
//! A pass is a pure function of draft, policy and report. Stored history never changes.

mod citations;
mod draft;
mod freshness;
mod pairing;
mod policy;
mod reduce;
mod select;

pub use citations::{TrimmedResults, UNCITED_NOTE, drop_uncited_sources};
pub use draft::{Draft, DraftCall, DraftMessage, DraftOrigin, DraftResult, names_reasoning};
pub use pairing::{INTERRUPTED, NOT_RUN};
pub use policy::{Citations, DanglingCalls, OnStale, Policy, PolicyLayer, StaleUnit};
pub use reduce::{
    CUT_NOTE, Callback, PendingQuestion, QuestionKind, Reducer, ReducerCache, ReducerQuestion, ReducerReplies,
    ReducerReply, shortened,
};

use crate::clock::Ms;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::History;
use crate::message::{Part, PartBody, Role};

/// Drafts what is shown: `history`, and behind it `live`, a turn that is not in it yet. `trimmed` has caught up with
/// both history and policy; `told` is what the application answered so far.
///
/// # Errors
/// What the application must be asked first; then this runs again from the start.
pub fn replay<'h>(
    history: &'h History,
    live: Option<&'h History>,
    trimmed: Option<&'h TrimmedResults>,
    policy: &Policy,
    now: Ms,
    told: (&'h ReducerCache, &'h ReducerReplies),
    report: &mut Report,
) -> Result<Draft<'h>, Box<PendingQuestion<'h>>> {
    let mut draft = select::select(history, live, report);
    freshness::freshness(
        &mut draft,
        history,
        live.is_some_and(|live| live.messages().first().is_some_and(|first| first.role != Role::Assistant)),
        policy,
        now,
        report,
    );
    citations::citations(&mut draft, history, trimmed, policy, report);
    reduce::reduce(&mut draft, history, policy, told.0, told.1, report)?;
    for item in &draft.messages {
        // As its provider signed it.
        let signed = |part: &Part| matches!(part.body, PartBody::Reasoning(_)) && part.template.is_some();
        let parts = &item.message.parts;
        if !parts.is_empty() && parts.iter().all(signed) && !item.says(true) {
            let finding = Finding::info(
                FindingCode::OrphanReasoning,
                "a message of reasoning alone says nothing; it is left out",
            );
            report.push(finding.of_message(&item.message.id).with_action(Action::Dropped));
        }
    }
    pairing::pairing(&mut draft, policy, report);
    Ok(draft)
}

#[cfg(test)]
mod tests;
