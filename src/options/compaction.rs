//! The option `compaction` of a session.

use super::option_types::OptionTypes;
use super::reducer::ReducerOptions;
use super::values::AtLeastOne;
use super::words::words;
use crate::session::{AutomaticCompaction, CompactionMode};
use serde::Deserialize;

words!(
    /// `mode` of a compaction.
    CompactionModeOption: CompactionMode {
        "auto" => CompactionMode::Auto,
        "input" => CompactionMode::Input,
        "previous_response_id" => CompactionMode::PreviousResponseId,
        "provider" => CompactionMode::Provider,
    }
);

/// `compaction`: what is compacted when a run is over.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
pub struct CompactionOptions<T: OptionTypes> {
    tokens: AtLeastOne,
    mode: Option<CompactionModeOption>,
    summarize: T::Function,
    fallback: Option<Vec<ReducerOptions<T>>>,
}

impl<T: OptionTypes> From<CompactionOptions<T>> for AutomaticCompaction {
    fn from(options: CompactionOptions<T>) -> Self {
        let mode = options.mode.map_or(CompactionMode::Auto, |option| option.0);
        let fallback = options.fallback.unwrap_or_default().into_iter().map(Into::into).collect();
        Self::new(options.tokens.0, mode, options.summarize.into(), fallback)
    }
}
