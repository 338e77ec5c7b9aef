//! The options of `compact`.

use super::compaction::CompactionModeOption;
use super::option_types::OptionTypes;
use super::run::{DialectOption, request_without_url};
use super::values::AtLeastOne;
use crate::error::{Error, Result};
use crate::session::{CompactionMode, CompactionRequest};
use serde::Deserialize;
use std::rc::Rc;

/// The options of `Session.compact`.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields)]
pub struct CompactOptions<T: OptionTypes> {
    mode: Option<CompactionModeOption>,
    force: Option<bool>,
    tokens: Option<AtLeastOne>,
    summarize: T::Function,
    dialect: Option<DialectOption>,
    params: Option<T::Object>,
}

impl<T: OptionTypes> CompactOptions<T> {
    /// Converts the options.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn into_request(self) -> Result<Rc<CompactionRequest>> {
        let Self { mode, force, tokens, summarize, dialect, params } = self;
        if params.is_some() && dialect.is_none() {
            return Err(Error::config("`params` of `compact` belong to a `dialect`; pass both, or neither"));
        }
        let provider = dialect.map(|dialect| request_without_url::<T>(dialect, params)).transpose()?;
        Ok(Rc::new(CompactionRequest {
            mode: mode.map_or(CompactionMode::Auto, |option| option.0),
            is_forced: force.unwrap_or(false),
            tokens: tokens.map(|option| option.0),
            summarize: summarize.into(),
            provider,
        }))
    }
}
