//! Who answers a request: its host and its model (R76).

use super::provider_request::ProviderRequest;
use crate::message::{AnswerMaker, AnswerMeta, HostGroup, host_name};
use crate::provider::spec::{DialectSpec, ReasoningFormat};

/// The segments of a path that precede a model's name: `/v1beta/models/gemini-3-pro:generateContent`,
/// `/model/anthropic.claude…/invoke`, `/openai/deployments/gpt-5/chat/completions`.
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

/// Returns the host of a URL in lower case, with a port that is not the scheme's own: two servers of one machine differ
/// by it. `None` if the URL has no host.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.to_ascii_lowercase();
    let name = host_name(&host);
    let is_own = match host.get(name.len()..).unwrap_or_default() {
        "" | ":" => true,
        ":443" => scheme.eq_ignore_ascii_case("https"),
        ":80" => scheme.eq_ignore_ascii_case("http"),
        _ => false,
    };
    (!name.is_empty()).then(|| if is_own { name.to_owned() } else { host.clone() })
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
    /// Hosts that serve the same models, as the application says.
    groups: Vec<HostGroup>,
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
    /// Creates the reader of a request. `groups`: hosts of which the application says that they serve the same models.
    pub(crate) fn of(spec: &DialectSpec, request: &ProviderRequest, groups: &[HostGroup]) -> Self {
        let binds = spec.models.facts_of(request).binds_reasoning();
        Self { maker: request.maker(), binds, groups: groups.to_vec() }
    }

    /// Returns true if the provider binds reasoning to what precedes it.
    #[must_use]
    pub fn binds_reasoning(&self) -> bool {
        self.binds
    }

    /// Returns whether the provider of the request can read the reasoning of an answer in its dialect.
    pub(crate) fn reads(&self, format: &dyn ReasoningFormat, answer: Option<&AnswerMeta>) -> Readability {
        let Some((answer, made_by)) = answer.and_then(|answer| Some((answer, answer.maker.as_ref()?))) else {
            return Readability::Readable;
        };
        if let (Some(own), Some(other)) = (&self.maker.host, &made_by.host)
            && own != other
            && !self.serve_the_same(format, own, other)
        {
            return Readability::OtherProvider;
        }
        let (Some(own), Some(asked)) = (&self.maker.model, &made_by.model) else { return Readability::Readable };
        // A deployment or an alias was asked for; the answer names the model.
        let made_by = [Some(asked), answer.model.as_ref()];
        let reads = |made_by: &String| format.reads_reasoning(made_by, own);
        if made_by.into_iter().flatten().any(reads) { Readability::Readable } else { Readability::OtherModel }
    }

    /// Returns true if two hosts are of one service, or in one group of the application. A group with a host of a
    /// service has all of them.
    fn serve_the_same(&self, format: &dyn ReasoningFormat, own: &str, other: &str) -> bool {
        let [own_service, other_service] = [own, other].map(|host| format.service_of(host_name(host)));
        if own_service.is_some() && own_service == other_service {
            return true;
        }
        let is_in = |group: &HostGroup, host: &str, service: Option<&str>| {
            group.contains(host) || service.is_some() && group.names().any(|name| format.service_of(name) == service)
        };
        self.groups.iter().any(|group| is_in(group, own, own_service) && is_in(group, other, other_service))
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn r76_a_host_has_its_port_unless_it_is_the_own_one_of_the_scheme() {
        for (url, host) in [
            ("https://API.Example.com/v1/messages", Some("api.example.com")),
            ("https://api.example.com:443/v1", Some("api.example.com")),
            ("http://api.example.com:80", Some("api.example.com")),
            ("http://localhost:4000/v1", Some("localhost:4000")),
            ("https://api.example.com:80?x=1", Some("api.example.com:80")),
            ("http://u:p@localhost:3000#x", Some("localhost:3000")),
            ("http://[::1]:4000/v1", Some("[::1]:4000")),
            ("http://[::1]/v1", Some("[::1]")),
            ("https://", None),
            ("/api/chat", None),
            ("about:render", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
