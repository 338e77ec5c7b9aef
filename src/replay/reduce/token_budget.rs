//! A budget of tokens: oversized results shrink first, oldest first; then the oldest turns go, whole; then the oldest rounds of
//! the running turn. Arguments count, results count, system messages count and stay (R14).

use super::ReducerContext;
use super::counts::TokenCounter;
use super::groups::MessageGroups;
use super::pending::{Callback, PendingQuestion, QuestionKind, ReducerQuestion};
use super::tool_results::{cut, shown_bytes};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::replay::draft::Draft;

/// A result that is longer is oversized; so much of it stays, in bytes.
const SHRUNK: u32 = 1_000;

/// What a message costs.
struct MessageCost {
    words: u64,
    /// By call: its result, and its result shrunk where that is less.
    results: Vec<(u64, Option<u64>)>,
}

fn total_of(costs: &[MessageCost]) -> u64 {
    let mut total = 0_u64;
    for cost in costs {
        total = total.saturating_add(cost.words);
        for (full, _) in &cost.results {
            total = total.saturating_add(*full);
        }
    }
    total
}

pub(super) fn reduce<'h>(
    draft: &mut Draft<'h>,
    budget: u64,
    counter: Option<&Callback>,
    context: &ReducerContext<'h, '_>,
    report: &mut Report,
) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
    if let Some(why) = context.progress.failure(context.place) {
        return Ok(Some(why));
    }
    let mut counter_state = TokenCounter::new(counter, context.memory);
    // The texts of results as they would be shrunk are counted in the same batch.
    let mut costs: Vec<MessageCost> = Vec::with_capacity(draft.messages.len());
    for item in &draft.messages {
        let words = counter_state.words(item);
        let mut results = Vec::with_capacity(item.calls.len());
        for call in &item.calls {
            let oversized = shown_bytes(call) > usize::try_from(SHRUNK).unwrap_or(usize::MAX);
            results
                .push((counter_state.result(call, None), oversized.then(|| counter_state.result(call, Some(SHRUNK)))));
        }
        costs.push(MessageCost { words, results });
    }
    if let Some(counter) =
        counter.filter(|_| !counter_state.texts.is_empty() && context.progress.told(context.place).is_none())
    {
        let mut ask =
            ReducerQuestion::new(context.place, counter, QuestionKind::Count(counter_state.texts), context.history);
        ask.wanted = counter_state.wanted;
        return Err(ask.pending(None));
    }
    let mut total = total_of(&costs);
    for (item, cost) in draft.messages.iter_mut().zip(&mut costs) {
        for (at, (full, shrunk)) in cost.results.iter_mut().enumerate() {
            let Some(less) = shrunk.filter(|less| total > budget && less < full) else { continue };
            if cut(item, at, SHRUNK, "the token budget is overrun; of a long result the beginning stays", report) {
                total -= *full - less;
                *full = less;
            }
        }
    }
    if total <= budget {
        return Ok(None);
    }
    let mut groups = MessageGroups::of(draft);
    let newest = groups.turns().saturating_sub(1);
    let mut open_turn = None;
    for at in 0..groups.list.len() {
        let end = groups.list.get(at + 1).map_or(costs.len(), |next| next.start);
        let Some(group) = groups.list.get(at) else { break };
        let price = total_of(costs.get(group.start..end).unwrap_or(&[]));
        // An older turn goes whole; of the running one, a round at a time.
        let begins = open_turn != Some(group.turn) || group.turn == newest;
        if begins && total <= budget {
            break;
        }
        open_turn = Some(group.turn);
        if groups.give_up(at) {
            total = total.saturating_sub(price);
        }
    }
    groups.apply(draft, "older than what the token budget has room for", report);
    if total > budget {
        let text = "the token budget is overrun by the system messages, the user's newest message and what it led to";
        report.push(Finding::warning(FindingCode::Reduced, text).with_action(Action::Kept));
    }
    Ok(None)
}
