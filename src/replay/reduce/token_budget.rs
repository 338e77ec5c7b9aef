//! `token_budget`: shortens long results, oldest first; then drops the oldest turns, each as a whole; then the oldest
//! rounds of the running turn. Arguments, results and system messages count; system messages are kept (R14).

use super::context::ReducerContext;
use super::groups::MessageGroups;
use super::question::{PendingQuestion, QuestionKind, ReducerQuestion};
use super::reducer::Callback;
use super::shorten::{ResultLimit, result_bytes};
use super::token_counter::TokenCounter;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::replay::policy::ReplayChanges;
use crate::replay::request_draft::RequestDraft;

/// The length in bytes above which a result is long, and to which it is shortened.
const SHORT_RESULT: u32 = 1_000;

/// The settings of the reducer.
pub(super) struct TokenBudget<'r> {
    pub tokens: u64,
    /// Counts tokens; without it they are estimated.
    pub counter: Option<&'r Callback>,
}

/// The tokens of a message.
struct MessageCost {
    /// The message and its calls.
    message: u64,
    /// By call: the tokens of its result, and of the shortened result if it is long.
    results: Vec<(u64, Option<u64>)>,
}

impl TokenBudget<'_> {
    /// Reduces a draft. Returns the reason why the reducer was skipped, if its callback failed.
    ///
    /// # Errors
    /// A question if tokens must be counted first.
    pub fn reduce<'h>(
        &self,
        draft: &mut RequestDraft<'h>,
        context: &ReducerContext<'h, '_>,
        report: &mut Report,
    ) -> Result<Option<String>, Box<PendingQuestion<'h>>> {
        if let Some(reason) = context.input.replies.failure(context.source()) {
            return Ok(Some(reason));
        }
        let costs = self.costs(draft, context)?;
        // What is sent at a cut should stay for several requests, too.
        let leaves_room = context.input.policy.changes() == ReplayChanges::AtCuts && total_of(&costs) > self.tokens;
        let target = if leaves_room { self.tokens / 4 * 3 } else { self.tokens };
        self.fit(draft, costs, target, report);
        Ok(None)
    }

    /// Reduces a draft that has grown over the budget since it was chosen, to three quarters of the budget: what is
    /// sent changes now, and should then stay for several requests (R71).
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn fit_grown<'h>(
        &self,
        draft: &mut RequestDraft<'h>,
        context: &ReducerContext<'h, '_>,
        report: &mut Report,
    ) -> Result<(), Box<PendingQuestion<'h>>> {
        if context.input.replies.failure(context.source()).is_some() {
            return Ok(());
        }
        let costs = self.costs(draft, context)?;
        if total_of(&costs) > self.tokens {
            self.fit(draft, costs, self.tokens / 4 * 3, report);
        }
        Ok(())
    }

    /// Returns the tokens of each message.
    fn costs<'h>(
        &self,
        draft: &RequestDraft<'h>,
        context: &ReducerContext<'h, '_>,
    ) -> Result<Vec<MessageCost>, Box<PendingQuestion<'h>>> {
        let input = context.input;
        let mut counter = TokenCounter::new(self.counter, input.cache);
        let costs = count(draft, &mut counter);
        let is_asked = input.replies.get(context.source()).is_some();
        if let Some(callback) = self.counter.filter(|_| !counter.missing_texts.is_empty() && !is_asked) {
            let kind = QuestionKind::Count(counter.missing_texts);
            let mut question = ReducerQuestion::new(context.source(), callback, kind, input.history);
            question.counted = counter.missing;
            return Err(question.pending(None));
        }
        Ok(costs)
    }

    /// Reduces a draft of these tokens to `target` tokens.
    fn fit(&self, draft: &mut RequestDraft<'_>, mut costs: Vec<MessageCost>, target: u64, report: &mut Report) {
        let limit = Self { tokens: target, counter: self.counter };
        let mut total = limit.shorten_results(draft, &mut costs, report);
        if total > target {
            total = limit.drop_oldest(draft, &costs, total, report);
        }
        if total > self.tokens {
            let text =
                "the token budget is overrun by the system messages, the user's newest message and what it led to";
            report.push(Finding::warning(FindingCode::Reduced, text).with_action(Action::Kept));
        }
    }

    /// Shortens long results, oldest first, until the draft fits. Returns the total of the tokens.
    fn shorten_results(&self, draft: &mut RequestDraft<'_>, costs: &mut [MessageCost], report: &mut Report) -> u64 {
        let limit = ResultLimit {
            max_bytes: SHORT_RESULT,
            reason: "the token budget is overrun; of a long result the beginning stays",
        };
        let mut total = total_of(costs);
        for (item, cost) in draft.messages.iter_mut().zip(costs) {
            for (call, (tokens, shortened)) in cost.results.iter_mut().enumerate() {
                let Some(less) = shortened.filter(|less| total > self.tokens && less < tokens) else { continue };
                if limit.apply(item, call, report) {
                    total -= *tokens - less;
                    *tokens = less;
                }
            }
        }
        total
    }

    /// Drops the oldest turns, then the oldest rounds of the running turn, until the draft fits. Returns the total of
    /// the tokens that remain of `total`.
    fn drop_oldest(
        &self,
        draft: &mut RequestDraft<'_>,
        costs: &[MessageCost],
        mut total: u64,
        report: &mut Report,
    ) -> u64 {
        let mut groups = MessageGroups::of(draft);
        let running = groups.turns().saturating_sub(1);
        let mut open_turn = None;
        for at in 0..groups.list.len() {
            let end = groups.list.get(at + 1).map_or(costs.len(), |next| next.start);
            let Some(group) = groups.list.get(at) else { break };
            let tokens = total_of(costs.get(group.start..end).unwrap_or(&[]));
            // An older turn is dropped as a whole; of the running turn, a round at a time.
            let may_stop = open_turn != Some(group.turn) || group.turn == running;
            if may_stop && total <= self.tokens {
                break;
            }
            open_turn = Some(group.turn);
            if groups.drop_group(at) {
                total = total.saturating_sub(tokens);
            }
        }
        groups.apply(draft, "older than what the token budget has room for", report);
        total
    }
}

/// Returns the cost of each message. Shortened results are counted in the same batch, so that one question is enough.
fn count(draft: &RequestDraft<'_>, counter: &mut TokenCounter<'_>) -> Vec<MessageCost> {
    let mut costs = Vec::with_capacity(draft.messages.len());
    for item in &draft.messages {
        let message = counter.count_message(item);
        let mut results = Vec::with_capacity(item.calls.len());
        for call in &item.calls {
            let is_long = result_bytes(call) > usize::try_from(SHORT_RESULT).unwrap_or(usize::MAX);
            let tokens = counter.count_result(call, None);
            results.push((tokens, is_long.then(|| counter.count_result(call, Some(SHORT_RESULT)))));
        }
        costs.push(MessageCost { message, results });
    }
    costs
}

/// Returns the sum of all tokens.
fn total_of(costs: &[MessageCost]) -> u64 {
    let mut total = 0_u64;
    for cost in costs {
        total = total.saturating_add(cost.message);
        for (tokens, _) in &cost.results {
            total = total.saturating_add(*tokens);
        }
    }
    total
}
