//! The options of `prune`.

use super::values::{AtLeastOne, MillisOption};
use crate::clock::Ms;
use crate::session::PruneRequest;
use crate::store::MAX_KEY;
use serde::Deserialize;

/// The options of `Rethread.prune`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PruneOptions {
    older_than: Option<MillisOption<0, MAX_KEY>>,
    keep_newest_turns: Option<AtLeastOne>,
    session: Option<String>,
    channel: Option<String>,
    dry_run: bool,
}

impl PruneOptions {
    /// Returns what to erase, if it is `now`.
    pub fn into_request(self, now: Ms) -> PruneRequest {
        PruneRequest {
            until: self.older_than.map(|age| now.saturating_sub(age.0)),
            keep_newest_turns: self.keep_newest_turns.map_or(0, |turns| usize::try_from(turns.0).unwrap_or(usize::MAX)),
            session: self.session,
            channel: self.channel,
            is_dry_run: self.dry_run,
        }
    }
}
