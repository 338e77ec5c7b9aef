//! The options of `Session.compact`, and its result.

use crate::error::{Error, Result};
use crate::options::{AtLeastOne, CompactionModeOption, DialectOption, request_without_url};
use crate::session::{CompactionMode, CompactionOutcome, CompactionRequest};
use crate::web::conversion::option_reader::{BoundFunction, UnreadObject, read_options};
use crate::web::conversion::results::CompactResult;
use crate::web::conversion::run_input::JsOptions;
use crate::web::host::callbacks::bound_hook;
use serde::Deserialize;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// The options of `Session.compact`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactOptions {
    mode: Option<CompactionModeOption>,
    force: Option<bool>,
    tokens: Option<AtLeastOne>,
    summarize: BoundFunction,
    dialect: Option<DialectOption>,
    params: Option<UnreadObject>,
}

impl CompactOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn read(options: &JsValue) -> Result<Rc<CompactionRequest>> {
        let Self { mode, force, tokens, summarize, dialect, params } =
            read_options("the options of `compact`", options)?;
        if params.is_some() && dialect.is_none() {
            return Err(Error::config("`params` of `compact` belong to a `dialect`; pass both, or neither"));
        }
        let mode = mode.map_or(CompactionMode::Auto, |option| option.0);
        let provider = dialect.map(|dialect| request_without_url::<JsOptions>(dialect, params)).transpose()?;
        Ok(Rc::new(CompactionRequest {
            mode,
            is_forced: force.unwrap_or(false),
            tokens: tokens.map(|option| option.0),
            summarize: bound_hook(summarize),
            provider,
        }))
    }
}

impl From<CompactionOutcome> for CompactResult {
    fn from(outcome: CompactionOutcome) -> Self {
        let (compacted, reason) = match outcome {
            CompactionOutcome::Threshold => (true, "threshold"),
            CompactionOutcome::Forced => (true, "forced"),
            CompactionOutcome::WasDeferred => (true, "was_deferred"),
            CompactionOutcome::BelowThreshold => (false, "below_threshold"),
            CompactionOutcome::NothingNew => (false, "nothing_new"),
            CompactionOutcome::Deferred => (false, "deferred"),
            CompactionOutcome::NoSummary => (false, "no_summary"),
            CompactionOutcome::UnderWay => (false, "under_way"),
            CompactionOutcome::Superseded => (false, "superseded"),
        };
        Self { compacted, reason }
    }
}
