//! Compaction by `POST /responses/compact`: the request has the conversation as `input`, and the answer has the items
//! that stand for it, of which one is encrypted.
//!
//! ```json
//! {"object":"response.compaction","output":[{"type":"compaction","encrypted_content":"gAAAAA…"}]}
//! ```
//!
//! Sources: `openai` 7.57.0 (`ResponseCompactParams`, `CompactedResponse`), and a recorded exchange with such an item
//! in `input`. xAI's service has the same endpoint and items (its documentation, "Context compaction", read 2026-11).

use super::service_state::compacted_items;
use super::system::INSTRUCTIONS;
use crate::json::{Json, JsonRef};
use crate::provider::spec::{CACHE_RETENTION, ProviderCompaction, ProviderSummary};

pub(super) const PROVIDER_COMPACTION: ProviderCompaction = ProviderCompaction {
    params: |params: JsonRef<'_>| params.to_owned(),
    members: Some(&MEMBERS),
    header: None,
    begins_list: false,
    stands_for_earlier,
    repeats_earlier: |item| item.has_text("type", "compaction"),
    read,
};

/// "You can drop items that came before the most recent compaction item" (OpenAI's guide "Compaction", read 2026-11).
/// With `context_management.compact_threshold` an answer may begin with one.
fn stands_for_earlier(item: JsonRef<'_>) -> bool {
    item.has_text("type", "compaction") && item.find("encrypted_content").is_some()
}

/// `ResponseCompactParams` without `previous_response_id`, in whose place the request has the items. An `image` is
/// about models that generate some.
const MEMBERS: [&str; 7] =
    ["model", "input", INSTRUCTIONS, "prompt_cache_key", "prompt_cache_options", CACHE_RETENTION, "service_tier"];

fn read(answer: JsonRef<'_>) -> ProviderSummary {
    let items: Option<Vec<Json>> = compacted_items(answer);
    items.map_or(ProviderSummary::Unknown, ProviderSummary::Items)
}
