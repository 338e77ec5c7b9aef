//! A budget of tokens: oversized results shrink first, oldest first; then the oldest turns go, whole; then the oldest rounds of
//! the running turn. Arguments count, results count, system messages count and stay (R14).

use super::Bench;
use super::counts::Tally;
use super::groups::Groups;
use super::pending::{Ask, Callback, Pending, Question};
use super::tool_results::{cut, shown_bytes};
use crate::finding::{Action, Finding, Report};
use crate::replay::draft::Draft;

/// A result that is longer is oversized; so much of it stays, in bytes.
const SHRUNK: u32 = 1_000;

/// What a message costs.
struct Cost {
    words: u64,
    /// By call: its result, and its result shrunk where that is less.
    results: Vec<(u64, Option<u64>)>,
}

fn total_of(costs: &[Cost]) -> u64 {
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
    bench: &Bench<'h, '_>,
    report: &mut Report,
) -> Result<Option<String>, Box<Pending<'h>>> {
    if let Some(why) = bench.progress.failure(bench.place) {
        return Ok(Some(why));
    }
    let mut tally = Tally::new(counter, bench.memory);
    // The texts of results as they would be shrunk are counted in the same batch.
    let mut costs: Vec<Cost> = Vec::with_capacity(draft.messages.len());
    for item in &draft.messages {
        let words = tally.words(item);
        let mut results = Vec::with_capacity(item.calls.len());
        for call in &item.calls {
            let oversized = shown_bytes(call) > usize::try_from(SHRUNK).unwrap_or(usize::MAX);
            results.push((tally.result(call, None), oversized.then(|| tally.result(call, Some(SHRUNK)))));
        }
        costs.push(Cost { words, results });
    }
    if let Some(counter) = counter.filter(|_| !tally.texts.is_empty() && bench.progress.told(bench.place).is_none()) {
        let mut ask = Ask::new(bench.place, counter, Question::Count(tally.texts), bench.history);
        ask.wanted = tally.wanted;
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
    let mut groups = Groups::of(draft);
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
        report.push(Finding::warning("reduced", text).did(Action::Kept));
    }
    Ok(None)
}
