//! What an answer in the background needs of its request.

use super::RunData;
use crate::clock::Ms;
use crate::run::background_answer::BackgroundAnswer;

impl RunData {
    /// Returns the answer of this id to the newest request.
    pub fn background_answer(&self, response: String, asked_at: Ms) -> BackgroundAnswer {
        let provider = &self.setup.provider;
        BackgroundAnswer {
            response,
            call: self.totals.model_calls.saturating_sub(1),
            dialect: provider.dialect,
            url: provider.url.clone(),
            is_streamed: provider.stream,
            asked_at,
            until: self.history_end,
            pending: self.held_back.clone(),
            kept_head: self.kept_head,
            prefix: self.prefix_mark,
            late_results: self.late_results.clone(),
        }
    }

    /// Restores what the request of an answer contained, which another process has built.
    pub fn restore_request(&mut self, answer: &BackgroundAnswer) {
        self.history_end = answer.until;
        self.held_back.clone_from(&answer.pending);
        self.kept_head = answer.kept_head;
        self.prefix_mark = answer.prefix;
        self.late_results.clone_from(&answer.late_results);
    }
}
