//! The functions of wire formats by the name of a dialect, which is looked up in the registry. What they do is in
//! `rules`, `healing`, `request` and `stream`, which take a [`DialectSpec`](super::DialectSpec) and know no list of
//! dialects.

use super::healing::{self, Healed};
use super::models::ModelFacts;
use super::registry::{ALL, named, spec};
use super::request::{
    self, Parameter, ProviderRequest, ReasoningReader, RequestHead, ToolDefinition, TranslatedParameter, Withheld,
};
use super::rules::{self, RepairOptions};
use super::spec::ProviderSummary;
use super::stream::{self, Assembled, StreamAssembler};
use crate::error::Result;
use crate::finding::Report;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::{Dialect, HostGroup, Message};
use crate::owner::StateOwner;

/// Returns what the model of a request accepts. The model is named by the parameters, or else by the URL.
#[must_use]
pub fn model_facts(request: &ProviderRequest) -> ModelFacts {
    spec(request.dialect).models.facts_of(request)
}

/// Returns the violations in a request's body. If none has the severity error, the provider accepts the messages. If
/// the body as a whole has a foreign format, only `unknown_shape` is reported. After
/// [`MAX_FINDINGS`](crate::finding::MAX_FINDINGS) findings the others are counted (`findings_omitted`), and a body with
/// too many errors is not read to its end (`too_many_edits`).
#[must_use]
pub fn validate(body: &[u8], dialect: Dialect) -> Report {
    rules::validate(body, named(dialect))
}

/// Repairs a request's body. Returns the valid body and a report of the violations and their repairs. A body without
/// errors is returned byte for byte, as is text that is not JSON. A JSON value that is not an object becomes an object
/// with an empty list. An empty list is only a warning, since no edit can fix it. A body with too many errors is
/// returned byte for byte, with the finding `too_many_edits` alone.
///
/// # Errors `invalid_input` for a body in a foreign format: its items are those of another dialect or SDK, or of no
/// known one, or lists, or it may hold the result of a call in a form that cannot be read. Also for a body of which
/// nothing would be left, one of calls and results that were all removed.
pub fn repair(body: &[u8], dialect: Dialect, options: &RepairOptions) -> Result<(Vec<u8>, Report)> {
    rules::repair(body, named(dialect), options)
}

/// Repairs a body that this crate rendered. Like [`repair`], but never refuses: items that cannot be read are dropped.
#[must_use]
pub(crate) fn repair_rendered(body: &[u8], dialect: Dialect, options: &RepairOptions) -> (Vec<u8>, Report) {
    rules::repair_rendered(body, named(dialect), options)
}

/// Repairs the members of a body beside its list, which the rules of some models limit. `model` is the one that the
/// request names elsewhere. Returns `None` if the rules accept them.
pub(crate) fn repair_head(head: JsonRef<'_>, dialect: Dialect, model: Option<&str>) -> Option<(Json, Report)> {
    rules::repair_head(head, named(dialect), model)
}

/// Repairs a body that its provider refused, by the status (`RuleSet::refusal_statuses`). `answer` is the body of that
/// answer. Returns `None` for an error that is in no table, and if the repair would change nothing: such a request must
/// not be repeated.
#[must_use]
pub fn heal(body: &[u8], dialect: Dialect, answer: &[u8], options: &RepairOptions) -> Option<Healed> {
    healing::heal(body, named(dialect), answer, options)
}

/// Returns the rule that an answer with an error is about, by the table of the dialect: the heading of its entry in the
/// page of rules.
#[must_use]
pub fn refused_rule(answer: &[u8], dialect: Dialect) -> Option<&'static str> {
    healing::refused_rule(answer, spec(dialect))
}

/// Repairs a body from which something is to be left out that its provider refused before: what the marks of
/// [`Healed::refused`] name. Returns `None` if the body contains none of it.
#[must_use]
pub fn leave_out_refused(
    body: &[u8],
    dialect: Dialect,
    refused: &[String],
    options: &RepairOptions,
) -> Option<(Vec<u8>, Report)> {
    healing::leave_out_refused(body, named(dialect), refused, options)
}

/// Reads a whole response. Bytes that are not a response result in the status `failed` and an error.
#[must_use]
pub fn read_response(dialect: Dialect, body: &[u8]) -> Assembled {
    read_whole(dialect, body).0
}

/// Returns true if one event of a stream, or a whole body, reports an error instead of content.
#[must_use]
pub fn is_error_response(dialect: Dialect, bytes: &[u8]) -> bool {
    read_whole(dialect, bytes).0.error.is_some()
}

/// Reads a whole response and its [`container`](StreamAssembler::container).
pub(crate) fn read_whole(dialect: Dialect, body: &[u8]) -> (Assembled, Option<String>) {
    stream::read_whole((spec(dialect).answer_reader)(), body)
}

impl StreamAssembler {
    /// Creates an assembler for one response of a dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self::of((spec(dialect).answer_reader)())
    }
}

impl ReasoningReader {
    /// Creates the reader of a request. `groups`: hosts of which the application says that they serve the same models.
    #[must_use]
    pub fn new(request: &ProviderRequest, groups: &[HostGroup]) -> Self {
        Self::of(spec(request.dialect), request, groups)
    }
}

impl ProviderRequest {
    fn head(&self) -> RequestHead<'_> {
        RequestHead { request: self, dialect: named(self.dialect) }
    }

    /// Rejects requests that cannot work, and credentials where they would be stored.
    ///
    /// # Errors
    /// `config_invalid`, never with the credential in its message; `state_owner_conflict`.
    pub fn check(&self) -> Result<()> {
        self.head().check()
    }

    /// Returns the headers of the request.
    #[must_use]
    pub fn wire_headers(&self) -> Vec<(String, String)> {
        self.head().headers()
    }

    /// Writes the body's members up to the messages, into an object that stays open. Returns the tools.
    ///
    /// # Errors
    /// `config_invalid` for a tool that is named twice.
    pub fn write_head(
        &self,
        object: &mut ObjectWriter<'_>,
        tools: &[ToolDefinition],
        report: &mut Report,
    ) -> Result<Option<Json>> {
        self.head().write(object, tools, report)
    }

    /// Returns the request with the parameter and the header that let the service drop reasoning whose prefix has
    /// changed; `None` if the dialect or the model has none, or the request does not think.
    #[must_use]
    pub fn dropping_unbound(&self) -> Option<Self> {
        request::dropping_unbound(spec(self.dialect), self)
    }

    /// Returns the request with the header that the service of its owner needs to keep the conversation; `None` if it
    /// needs none.
    #[must_use]
    pub fn with_service_header(&self, owner: &StateOwner) -> Option<Self> {
        request::with_service_header(spec(self.dialect), self, owner)
    }

    /// Returns the request with the parameter that has the service of its owner keep it; `None` if it needs none.
    #[must_use]
    pub fn kept_by_service(&self) -> Option<Self> {
        request::kept_by_service(spec(self.dialect), self)
    }

    /// Returns the request with the header that it needs if it contains what the provider's own compaction returned;
    /// `None` if it needs none.
    #[must_use]
    pub fn with_compaction_header(&self) -> Option<Self> {
        request::with_compaction_header(spec(self.dialect), self)
    }
}

/// Rejects an owner that the request's dialect or parameters cannot have.
///
/// # Errors
/// `config_invalid`.
pub fn check_owner(provider: &ProviderRequest, owner: &StateOwner) -> Result<()> {
    request::check_owner(spec(provider.dialect), provider, owner)
}

/// Rejects an input that refers to what a service keeps: the request would not contain the reference, and the model
/// would lack its content.
///
/// # Errors
/// `state_owner_conflict`.
pub fn check_input_body(dialect: Dialect, input: JsonRef<'_>) -> Result<()> {
    request::check_input_body(spec(dialect), input)
}

/// Translates the parameter at `place` of one dialect; `None` if the other one does not have it.
#[must_use]
pub fn translate_parameter(from: Dialect, place: &str, to: Dialect) -> Option<TranslatedParameter> {
    request::translate_parameter(spec(from), place, spec(to))
}

/// Returns the JSON of a translated parameter's value.
#[must_use]
pub fn translate_value(parameter: Parameter, value: JsonRef<'_>, to: Dialect) -> String {
    spec(to).parameters.value(parameter, value)
}

/// Returns true if a member of that name is an object that holds parameters of the dialect.
#[must_use]
pub fn is_group(dialect: Dialect, name: &str) -> bool {
    request::is_group(spec(dialect), name)
}

/// Returns true if a body's member of that name holds the tool choice in some dialect.
#[must_use]
pub fn names_tool_choice(member: &str) -> bool {
    request::names_tool_choice(ALL, member)
}

/// Returns parameters without a tool choice that names a tool for which `has_tool` returns false; `None` if they have
/// none.
#[must_use]
pub fn drop_unavailable_tool_choice(params: JsonRef<'_>, has_tool: &dyn Fn(&str) -> bool) -> Option<Json> {
    request::drop_unavailable_tool_choice(ALL, params, has_tool)
}

/// Returns the body of a request that has the service shorten its chain of responses up to `previous`; `None` if
/// services of the dialect do not do that.
#[must_use]
pub fn compaction_request(dialect: Dialect, model: Option<&str>, previous: &str) -> Option<Vec<u8>> {
    request::compaction_request(spec(dialect), model, previous)
}

/// Returns the items that stand for the conversation, from the body of the answer to a [`compaction_request`]; `None`
/// for any other text.
#[must_use]
pub fn compacted_items(dialect: Dialect, answer: &str) -> Option<Vec<Json>> {
    request::compacted_items(spec(dialect), answer)
}

/// Returns true if providers of the dialect compact a conversation themselves.
#[must_use]
pub fn can_compact(dialect: Dialect) -> bool {
    spec(dialect).provider_compaction.is_some()
}

/// Returns true for a message that has what a provider returned in place of earlier messages.
#[must_use]
pub fn has_compaction(message: &Message) -> bool {
    message.dialect.is_some_and(|dialect| spec(dialect).has_compaction(message))
}

/// Reads the body of a provider's answer to a request for its own compaction.
#[must_use]
pub fn read_provider_summary(dialect: Dialect, answer: &str) -> ProviderSummary {
    let compaction = spec(dialect).provider_compaction.as_ref();
    let read = compaction.and_then(|compaction| Some((compaction.read)(JsonRef::parse(answer).ok()?)));
    read.unwrap_or(ProviderSummary::Unknown)
}

/// Removes the members that contain credentials from `params`.
pub(crate) fn withhold(dialect: Dialect, params: &Json) -> Withheld {
    request::withhold(spec(dialect), params)
}

/// Returns the first path in `members` that `params` do not contain. Indexes of lists are ignored: the caller may
/// reorder its tools.
pub(crate) fn first_missing<'m>(dialect: Dialect, members: &'m [String], params: &Json) -> Option<&'m String> {
    request::first_missing(spec(dialect), members, params)
}
