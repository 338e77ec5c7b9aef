//! What is left out of a composed request: what was refused before (R74), and reasoning that the provider would not
//! accept (R70).

use crate::finding::{PrefixChange, Report};
use crate::provider::{Healed, ProviderRequest};
use crate::render::{BodyLedger, RenderRequest, SettledBody};
use crate::run::answer::next_provider;
use crate::run::context::RunContext;
use crate::run::next_state::ComposedRequest;
use crate::run::turn::RunData;
use std::borrow::Cow;
use std::rc::Rc;

/// A composed body that is changed before it is sent.
pub(super) struct ChangedBody {
    /// The answers in the composed body.
    pub ledger: Option<Box<BodyLedger>>,
    /// What the application's filter returned, if it changed the body.
    pub filtered: Option<Vec<u8>>,
}

/// Returns the request that is sent instead of a composed one. `of_session` are the marks of what was refused in other
/// runs.
pub(super) fn settle(
    turn: &mut RunData,
    composed: ComposedRequest,
    changed: ChangedBody,
    of_session: &[String],
) -> ComposedRequest {
    let ChangedBody { ledger, filtered } = changed;
    let changed_by = if filtered.is_some() { PrefixChange::Filter } else { PrefixChange::Repair };
    let mut body = filtered.unwrap_or_else(|| composed.body.to_vec());
    let dialect = turn.setup().provider.dialect;
    if let Some((without, report)) = turn.healing_mut().leave_out(&body, dialect, of_session) {
        // The event `warning` was that of the first time.
        turn.add_to_report(&report);
        body = without;
    }
    let ComposedRequest { mut report, attempt, prefix, .. } = composed;
    let settled = match ledger {
        Some(ledger) => ledger.settle(body, changed_by, &mut report),
        None => SettledBody { body, mark: None },
    };
    ComposedRequest { attempt, body: Rc::new(settled.body), report, prefix, mark: settled.mark }
}

/// Returns the body that is sent after one was refused, and keeps its mark: reasoning after what the repair changed is
/// left out, too.
pub(super) fn settle_healed(turn: &mut RunData, refused: &[u8], healed: Healed) -> Vec<u8> {
    let provider = next_provider(turn);
    let ledger = BodyLedger::of_sent(refused, turn.prefix_mark(), &render_request(turn, &provider));
    let mut report = healed.report;
    let SettledBody { body, mark } = ledger.settle(healed.body, PrefixChange::Repair, &mut report);
    report_healing(turn, report);
    turn.set_prefix_mark(mark);
    body
}

/// Returns the headers of the next request.
pub(super) fn request_headers(turn: &RunData, context: &RunContext<'_>) -> Vec<(String, String)> {
    let request = render_request(turn, &turn.setup().provider);
    let sent = request.provider_for(&turn.setup().owner, context.history);
    // The compaction that the run began with may be in force no more.
    let repeats = turn.history_choice().has_provider_compaction();
    repeats.then(|| sent.with_compaction_header()).flatten().map_or(sent, Cow::Owned).wire_headers()
}

/// Returns what the next request is rendered for.
pub(super) fn render_request<'r>(turn: &'r RunData, provider: &'r ProviderRequest) -> RenderRequest<'r> {
    let setup = turn.setup();
    RenderRequest { provider, instructions: setup.instructions.as_deref(), tools: &setup.tools, policy: &setup.policy }
}

/// Emits the finding about the healing, and adds the others to the report.
fn report_healing(turn: &mut RunData, report: Report) {
    let mut findings = report.into_iter();
    if let Some(first) = findings.next() {
        turn.warn(first);
    }
    turn.add_to_report(&findings.collect::<Vec<_>>());
}
