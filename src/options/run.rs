//! The options of a run, of resuming one, and of a render.

use super::handoff::HandoffOptions;
use super::option_types::OptionTypes;
use super::replay::ReplayOptions;
use super::session::{OnStopOption, PersistenceOption};
use super::tools::{RequestTools, ToolOptions, add_tools_of_params, windows};
use super::values::{AtLeastOne, OptionEntries};
use super::words::words;
use crate::error::{Error, Result};
use crate::json::{Json, JsonRef};
use crate::message::{Dialect, Role};
use crate::provider::{ProviderRequest, ReasoningField, Settings, ToolDefinition, api_request, check_known_headers};
use crate::replay::{Callback, Policy, PolicyLayer};
use crate::run::{DEFAULT_MAX_RESPONSE_BYTES, HIGHEST_MAX_RESPONSE_BYTES, Handoff, RetryPolicy, RunSetup};
use crate::session::{NewRun, OpenSession, RequestSetup, ResumeRequest};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Number of model calls of a run unless `maxTurns` is set.
const DEFAULT_MAX_TURNS: u64 = 20;

words!(
    /// `whenBusy`: true if the run waits for the run before it.
    WhenBusyOption: bool { "throw" => false, "queue" => true }
);
words!(
    /// `compat.reasoningField` of a provider.
    ReasoningFieldOption: ReasoningField {
        "reasoning_content" => ReasoningField::Named("reasoning_content"),
        "reasoning" => ReasoningField::Named("reasoning"),
        "drop" => ReasoningField::Drop,
    }
);
words!(
    /// `compat.systemRole` of a provider.
    SystemRoleOption: Role { "system" => Role::System, "developer" => Role::Developer }
);

/// The name of a dialect.
pub struct DialectOption(Dialect);

impl<'de> Deserialize<'de> for DialectOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Dialect::read(&name).map(Self).map_err(|error| D::Error::custom(error.into_message()))
    }
}

/// The request of `Session.run` and `Session.resume`.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
pub struct RunOptions<T: OptionTypes> {
    pub input: Option<T::Value>,
    pub input_id: Option<String>,
    branch: Option<String>,
    replace: Option<String>,
    when_busy: Option<WhenBusyOption>,
    on_stop: Option<OnStopOption>,
    instructions: Option<String>,
    provider: ProviderOptions<T>,
    tools: Option<OptionEntries<ToolOptions<T>>>,
    max_turns: Option<AtLeastOne>,
    replay: Option<ReplayOptions<T>>,
    persistence: Option<PersistenceOption>,
    /// Read by the facade.
    #[serde(rename = "providers")]
    _providers: Option<T::Value>,
    input_filter: Option<T::Function>,
    retry: Option<RetryOptions<T>>,
    handoffs: Option<Vec<HandoffOptions<T>>>,
    max_response_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
struct RetryOptions<T: OptionTypes> {
    attempts: Option<AtLeastOne>,
    backoff_ms: Option<u64>,
    approve_unsafe_replay: Option<T::HostOnlyFunction>,
}

#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
struct ProviderOptions<T: OptionTypes> {
    dialect: DialectOption,
    url: Option<String>,
    params: Option<T::Object>,
    stream: Option<bool>,
    headers: Option<OptionEntries<String>>,
    allow_headers: Option<Vec<String>>,
    compat: Option<CompatOptions>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct CompatOptions {
    reasoning_field: Option<ReasoningFieldOption>,
    system_role: Option<SystemRoleOption>,
    stream_usage: Option<bool>,
}

/// The request of `Session.render`.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
pub struct RenderOptions<T: OptionTypes> {
    dialect: DialectOption,
    params: Option<T::Object>,
    pub input: Option<T::Value>,
    /// The branch of which the request is.
    pub branch: Option<String>,
    instructions: Option<String>,
    tools: Option<OptionEntries<ToolOptions<T>>>,
    replay: Option<ReplayOptions<T>>,
}

/// A render request without its input.
pub struct RenderParts {
    pub provider: ProviderRequest,
    pub instructions: Option<String>,
    pub tools: Vec<ToolDefinition>,
    pub policy: Policy,
}

impl<T: OptionTypes> RenderOptions<T> {
    /// Converts the request for rendering in a session.
    pub fn into_parts(self, session: &OpenSession) -> Result<RenderParts> {
        let provider = request_without_url::<T>(self.dialect, self.params)?;
        let tools = RequestTools::read(self.tools)?;
        let setup = RequestSetup {
            provider: provider.clone(),
            instructions: self.instructions.clone(),
            tools: tools.definitions.clone(),
        };
        session.last_request_setup.replace(Some(setup));
        let policy = session.policy(self.replay.map(Into::into).unwrap_or_default(), windows(&tools.tool_settings));
        Ok(RenderParts { provider, instructions: self.instructions, tools: tools.definitions, policy })
    }
}

/// Returns the request that a body is rendered for. It is not sent from here, so it has no URL of a service.
///
/// # Errors
/// `config_invalid`.
pub fn request_without_url<T: OptionTypes>(
    dialect: DialectOption,
    params: Option<T::Object>,
) -> Result<ProviderRequest> {
    let DialectOption(dialect) = dialect;
    let params = api_params::<T>(params, dialect)?;
    let provider = ProviderRequest {
        dialect,
        url: "about:render".into(),
        stream: asks_for_stream(params.view()),
        params,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    provider.check()?;
    Ok(provider)
}

impl<T: OptionTypes> RunOptions<T> {
    /// Returns true if the run waits while another one is under way.
    pub fn waits_if_busy(&self) -> bool {
        self.when_busy.as_ref().is_some_and(|option| option.0)
    }

    /// Converts the request of a new run. `provide` and `store` call the history providers.
    ///
    /// # Errors
    /// `config_invalid` and `invalid_input`.
    pub fn into_new_run(
        mut self,
        session: &OpenSession,
        id: String,
        (provide, store): (Option<Callback>, Option<Callback>),
    ) -> Result<NewRun> {
        let (input, input_id) = (self.input.take(), self.input_id.take());
        if !self.take_handoffs()?.is_empty() {
            return Err(Error::config("`handoffs` is an option of `resume`; a new run is handed off by `Run.handoff`"));
        }
        let (branch, replace) = (self.branch.take(), self.replace.take());
        let setup = self.into_setup(session, id)?;
        let input = T::input_items(input.as_ref(), setup.provider.dialect)?;
        Ok(NewRun { setup, input, input_id, branch, replace, provide, store })
    }

    /// Converts the request of a resume of the run `id`.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn into_resume(mut self, session: &OpenSession, id: String) -> Result<ResumeRequest> {
        if self.branch.is_some() || self.replace.is_some() {
            let message = "`branch` and `replace` are no options of `resume`: the run goes on in its branch";
            return Err(Error::config(message));
        }
        let persistence = self.persistence.map(|option| option.0);
        let handoffs = self.take_handoffs()?;
        Ok(ResumeRequest { setup: self.into_setup(session, id)?, persistence, handoffs })
    }

    fn take_handoffs(&mut self) -> Result<Vec<Handoff>> {
        self.handoffs.take().unwrap_or_default().into_iter().map(HandoffOptions::into_handoff).collect()
    }

    /// Converts the request, except its input, to the setup of the run `id`.
    fn into_setup(self, session: &OpenSession, id: String) -> Result<RunSetup> {
        let RequestTools { definitions, mut tool_settings, persist, approval_callbacks } =
            RequestTools::read(self.tools)?;
        let call: PolicyLayer = self.replay.map(Into::into).unwrap_or_default();
        let policy = session.policy(call, windows(&tool_settings));
        let provider = self.provider.into_request()?;
        add_tools_of_params(&provider.params, &mut tool_settings);
        session.persist_callbacks.borrow_mut().extend(persist.clone());
        let max_response_bytes = self.max_response_bytes.unwrap_or(DEFAULT_MAX_RESPONSE_BYTES);
        if !(1..=HIGHEST_MAX_RESPONSE_BYTES).contains(&max_response_bytes) {
            let message =
                format!("`maxResponseBytes` must be a number of bytes from 1 to {HIGHEST_MAX_RESPONSE_BYTES}");
            return Err(Error::config(message));
        }
        Ok(RunSetup {
            id,
            provider,
            instructions: self.instructions,
            tools: definitions,
            tool_settings,
            persist,
            approval_callbacks,
            max_turns: saturating_u32(self.max_turns.map_or(DEFAULT_MAX_TURNS, |option| option.0)),
            max_response_bytes,
            persistence: self.persistence.map_or(session.persistence.get(), |option| option.0),
            trim_trailing_results: session.trim_trailing_results.get(),
            on_stop: self.on_stop.map_or(session.on_stop.get(), |option| option.0),
            input_filter: self.input_filter.map(Into::into),
            retry: self.retry.map(Into::into).unwrap_or_default(),
            policy,
            channel: session.channel(),
            owner: session.owner()?,
            on_conflict: session.on_conflict(),
        })
    }
}

fn saturating_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<T: OptionTypes> From<RetryOptions<T>> for RetryPolicy {
    fn from(options: RetryOptions<T>) -> Self {
        let mut policy = Self::default();
        policy.attempts = options.attempts.map_or(policy.attempts, |option| saturating_u32(option.0));
        policy.backoff_ms = options.backoff_ms.unwrap_or(policy.backoff_ms);
        policy.approve_unsafe_replay = options.approve_unsafe_replay.map(Into::into);
        policy
    }
}

impl<T: OptionTypes> ProviderOptions<T> {
    fn into_request(self) -> Result<ProviderRequest> {
        let DialectOption(dialect) = self.dialect;
        let compat = self.compat.unwrap_or_default();
        let settings = Settings {
            system_role: compat.system_role.map(|option| option.0),
            reasoning: compat.reasoning_field.map(|option| option.0).unwrap_or_default(),
            no_stream_usage: compat.stream_usage == Some(false),
            ..Settings::default()
        };
        let params = api_params::<T>(self.params, dialect)?;
        let stream = self.stream.unwrap_or_else(|| asks_for_stream(params.view()));
        let lower_case = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
        let headers: Vec<_> = self.headers.unwrap_or_default().0.into_iter().map(lower_case).collect();
        check_known_headers(&headers, &self.allow_headers.unwrap_or_default())?;
        Ok(ProviderRequest { dialect, url: self.url.unwrap_or_default(), params, stream, headers, settings })
    }
}

/// Returns `params` in the form of the provider's HTTP API.
fn api_params<T: OptionTypes>(params: Option<T::Object>, dialect: Dialect) -> Result<Json> {
    let params = match params {
        Some(params) => T::object_to_json(&params)?,
        None => Json::trusted("{}".into()),
    };
    Ok(api_request(dialect, params.view()).unwrap_or(params))
}

fn asks_for_stream(params: JsonRef<'_>) -> bool {
    params.get("stream").and_then(JsonRef::as_bool).unwrap_or(false)
}
