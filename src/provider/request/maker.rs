//! Who answers a request: its host and its model (R76).

use super::provider_request::ProviderRequest;
use crate::message::AnswerMaker;
use crate::provider::reasoning_format::ReasoningFormat;
use crate::provider::registry::model_facts;

/// The segments of a path that precede a model's name: `/v1beta/models/gemini-3-pro:generateContent`, `/model/anthropic.claude…/invoke`,
/// `/openai/deployments/gpt-5/chat/completions`.
const BEFORE_MODEL: [&str; 3] = ["models", "model", "deployments"];

impl ProviderRequest {
    /// Returns who answers the request.
    #[must_use]
    pub fn maker(&self) -> AnswerMaker {
        AnswerMaker { host: host_of(&self.url), model: self.model() }
    }

    /// Returns the model that the request names, in the parameters or in the URL.
    fn model(&self) -> Option<String> {
        let named = self.params.view().text("model").filter(|model| !model.is_empty());
        named.map(std::borrow::Cow::into_owned).or_else(|| model_in(&self.url))
    }
}

/// Returns the host name of a URL in lower case, without a port; `None` if the URL has none.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // An address of IPv6 has colons in brackets.
    let name = match host.split_once(']') {
        Some((address, _)) => address.trim_start_matches('['),
        None => host.split(':').next()?,
    };
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Returns the model in the path of a URL.
fn model_in(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let mut segments = path.split('/');
    segments.find(|segment| BEFORE_MODEL.contains(segment))?;
    let model = segments.next()?.split(':').next()?;
    (!model.is_empty()).then(|| model.replace("%3A", ":"))
}

/// Who answers a request, compared with who made an answer that it contains.
#[derive(Clone, Debug)]
pub struct ReasoningReader {
    maker: AnswerMaker,
    binds: bool,
}

/// Whether a provider can read reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readability {
    /// It can, or it is not known who made it.
    Readable,
    /// Another provider made it.
    OtherProvider,
    /// Another model made it.
    OtherModel,
}

impl ReasoningReader {
    /// Creates the reader of a request.
    #[must_use]
    pub fn new(request: &ProviderRequest) -> Self {
        Self { maker: request.maker(), binds: model_facts(request).binds_reasoning() }
    }

    /// Returns true if the provider binds reasoning to what precedes it.
    #[must_use]
    pub fn binds_reasoning(&self) -> bool {
        self.binds
    }

    /// Returns whether the provider of the request can read the reasoning of an answer in its dialect.
    pub(crate) fn reads(&self, format: &(impl ReasoningFormat + ?Sized), made_by: Option<&AnswerMaker>) -> Readability {
        let Some(made_by) = made_by else { return Readability::Readable };
        if let (Some(own), Some(other)) = (&self.maker.host, &made_by.host)
            && own != other
        {
            let service = format.service_of(own);
            if service.is_none() || service != format.service_of(other) {
                return Readability::OtherProvider;
            }
        }
        match (&made_by.model, &self.maker.model) {
            (Some(other), Some(own)) if own != other && !format.reads_reasoning(other, own) => Readability::OtherModel,
            _ => Readability::Readable,
        }
    }
}
