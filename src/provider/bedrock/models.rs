//! What differs by model, as of 2026-11-26. Claude's facts are those of Anthropic's own table: its blocks are bound and
//! signed there in the same way.

use crate::provider::anthropic::models as claude;
use crate::provider::models::ModelFacts;
use crate::provider::request::{ProviderRequest, Settings};
use crate::provider::rules::Fields;

/// The vendor of a model, as far as rules depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    Claude,
    Nova,
    /// A vendor whose models reject text beside results.
    Other,
    /// No vendor is known, or nothing about it.
    Unknown,
}

/// Words of ids whose models answer "Conversation blocks and tool result blocks cannot be provided in the same turn"
/// (strands harness-sdk#1223, 2025-12: models of Meta, Mistral AI and others than Anthropic). Nova accepts both
/// (recorded).
const OTHERS: [&str; 4] = ["meta.llama", "mistral.", "cohere.", "ai21."];

/// The names that [`settings`] gives to vendors. Each has the words by which [`Vendor::of`] finds it.
const CLAUDE: &str = "claude";
const NOVA: &str = "nova";

impl Vendor {
    /// Returns the vendor of a model, by its id, its ARN or the URL of a request to it.
    pub fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if name.contains(CLAUDE) {
            Self::Claude
        } else if name.contains(NOVA) {
            Self::Nova
        } else if OTHERS.iter().any(|word| name.contains(word)) {
            Self::Other
        } else {
            Self::Unknown
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Claude => CLAUDE,
            Self::Nova => NOVA,
            Self::Other => "meta.llama",
            Self::Unknown => "",
        }
    }
}

/// Returns the model's id in the path of a URL: `…/model/us.amazon.nova-lite-v1%3A0/converse`.
pub(super) fn model_in(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let after = path.rsplit_once("/model/").map_or("", |(_, rest)| rest);
    after.split('/').next().unwrap_or_default()
}

/// Returns the model that a body names. As a rule only the URL does, which the rules do not see; the input of the AWS
/// SDK has `modelId`.
pub(super) fn named_model(body: &Fields<'_>) -> String {
    let model = body.owned_text("modelId");
    if model.is_empty() { body.owned_text("model") } else { model }
}

/// Returns what a model accepts, by its id or the URL of a request to it. Models of other vendors bind nothing.
pub(super) fn model_facts(name: &str) -> ModelFacts {
    if Vendor::of(name) == Vendor::Claude { claude::model_facts(name) } else { ModelFacts::PERMISSIVE }
}

/// Reads the vendor from `params.model`, or else from the URL.
pub(super) fn settings(request: &ProviderRequest) -> Settings {
    let named = request.params.view().text("model").filter(|name| !name.is_empty());
    let vendor = Vendor::of(named.as_deref().unwrap_or_else(|| model_in(&request.url)));
    Settings { model: vendor.name(), ..request.settings }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r73_a_vendor_is_known_by_its_models_ids() {
        for (name, vendor) in [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Vendor::Claude),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
                Vendor::Claude,
            ),
            ("amazon.nova-micro-v1:0", Vendor::Nova),
            ("us.meta.llama3-3-70b-instruct-v1:0", Vendor::Other),
            ("mistral.mistral-large-2407-v1:0", Vendor::Other),
            ("moonshot.kimi-k2-thinking", Vendor::Unknown),
            ("", Vendor::Unknown),
        ] {
            assert_eq!(Vendor::of(name), vendor, "{name}");
            assert_eq!(Vendor::of(vendor.name()), vendor, "{name}");
        }
        let url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse-stream?x=1";
        assert_eq!(model_in(url), "amazon.nova-lite-v1%3A0");
    }
}
