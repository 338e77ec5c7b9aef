//! What depends on the model of a request.

use crate::provider::models::ModelFacts;
use crate::provider::request::{ProviderRequest, Settings};

/// What a dialect knows of models.
pub(crate) struct ModelTable {
    /// Returns what a model accepts, by its name or the URL of a request to it.
    pub facts: fn(&str) -> ModelFacts,
    /// Returns the request's settings, completed with what its model and URL imply.
    pub settings: fn(&ProviderRequest) -> Settings,
}

impl ModelTable {
    /// Returns what the model of a request accepts. The model is named by the parameters, or else by the URL.
    pub fn facts_of(&self, request: &ProviderRequest) -> ModelFacts {
        let named = request.params.view().text("model").filter(|name| !name.is_empty());
        (self.facts)(named.as_deref().unwrap_or(&request.url))
    }

    /// The table of a dialect that knows no models.
    pub const NONE: Self = Self { facts: |_| ModelFacts::PERMISSIVE, settings: |request| request.settings };
}
