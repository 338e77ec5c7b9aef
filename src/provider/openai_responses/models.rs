//! What differs by model, as of 2026-11-25.
//!
//! Sources: OpenAI's guide "Using GPT-6.2" (2026-11-17: reasoning whose prefix was edited is dropped, and listed in the
//! answer's `input_transformations`), and that member in openai 7.57.0. Earlier models are not in the guide.

use crate::provider::models::{ModelFacts, PrefixBinding};

/// The first version of GPT that binds reasoning to its prefix, as 100 × major + minor.
const FIRST_BINDING: u16 = 602;

/// Returns the facts of a model: `gpt-6.2-sol`, `openai/gpt-6.2-astra`. A model that is newer than the table has the
/// newest facts.
pub(super) fn model_facts(name: &str) -> ModelFacts {
    let is_bound = gpt_version(name).is_some_and(|version| version >= FIRST_BINDING);
    let prefix_binding = if is_bound { PrefixBinding::Dropped } else { PrefixBinding::Unbound };
    ModelFacts { prefix_binding, ..ModelFacts::PERMISSIVE }
}

/// Returns the version in a name, as 100 × major + minor.
fn gpt_version(name: &str) -> Option<u16> {
    let (_, rest) = name.split_once("gpt-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let mut numbers = rest.get(..end)?.split('.').map(|number| number.parse::<u16>().ok());
    let major = numbers.next()??;
    Some(major.saturating_mul(100).saturating_add(numbers.next().flatten().unwrap_or(0).min(99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r73_gpt_binds_reasoning_from_its_version_on() {
        for name in ["gpt-6.2-sol", "openai/gpt-6.2-astra-2026-11-17", "gpt-6.10", "gpt-7-nova"] {
            assert_eq!(model_facts(name).prefix_binding, PrefixBinding::Dropped, "{name}");
        }
        for name in ["gpt-6.1-sol", "gpt-6-astra", "gpt-5", "gpt-4o", "gpt-oss-120b", "o3", "grok-4", "deepseek-v4", ""]
        {
            assert_eq!(model_facts(name), ModelFacts::PERMISSIVE, "{name}");
        }
    }
}
