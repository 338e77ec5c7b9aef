//! Parameters that several dialects have, and their translation. Each dialect says where it has them, by a match over
//! [`Parameter`], so a parameter that a dialect forgets does not compile.

use crate::json::JsonRef;
use crate::message::Dialect;
use crate::provider::registry::codec;

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A parameter of a request that means the same in several dialects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Parameter {
            $($(#[$doc])* $name,)*
        }

        impl Parameter {
            /// Every parameter. Where one place stands for two, the first one counts.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

parameters! {
    /// The model.
    Model,
    /// Whether to stream.
    Stream,
    /// The most tokens of an answer.
    MaxTokens,
    /// The older name of the same, the only one that many servers of OpenAI's format know.
    MaxTokensLegacy,
    /// Sampling temperature.
    Temperature,
    /// Nucleus sampling.
    TopP,
    /// Sampling among the likeliest tokens.
    TopK,
    /// Stop sequences.
    Stop,
    /// The seed of sampling.
    Seed,
    /// Frequency penalty.
    FrequencyPenalty,
    /// Presence penalty.
    PresencePenalty,
    /// How many answers.
    CandidateCount,
    /// Whether an answer may hold several calls.
    ParallelToolCalls,
    /// The same, said as a part of the tool choice, which is translated as a whole.
    SerialToolChoice,
    /// The format of the answer: text, JSON, or a schema.
    ResponseFormat,
    /// How much to reason.
    ReasoningEffort,
    /// How much to say.
    Verbosity,
    /// The end user.
    User,
    /// Metadata of the request.
    Metadata,
    /// A predicted output.
    Prediction,
    /// Whether the provider keeps the response.
    Store,
    /// The service tier.
    ServiceTier,
    /// The key of the prompt cache.
    PromptCacheKey,
    /// The end user, for safety checks.
    SafetyIdentifier,
    /// How many log probabilities a token.
    TopLogprobs,
}

/// A parameter and its place in the body of the dialect that it is translated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslatedParameter {
    /// The parameter.
    pub parameter: Parameter,
    /// Its place: a member, or `group.member`.
    pub place: &'static str,
}

/// Translates the parameter at `place` of one dialect; `None` if the other one does not have it.
#[must_use]
pub fn translate_parameter(from: Dialect, place: &str, to: Dialect) -> Option<TranslatedParameter> {
    let from = codec(from);
    let place = &*from.parameter_name(place);
    let parameter = Parameter::ALL.iter().copied().find(|parameter| from.parameter(*parameter) == Some(place))?;
    let place = codec(to).parameter(parameter)?;
    Some(TranslatedParameter { parameter, place })
}

/// Returns the JSON of a translated parameter's value.
#[must_use]
pub fn translate_value(parameter: Parameter, value: JsonRef<'_>, to: Dialect) -> String {
    codec(to).parameter_value(parameter, value)
}

/// Returns true if a member of that name is an object that holds parameters of the dialect.
#[must_use]
pub fn is_group(dialect: Dialect, name: &str) -> bool {
    let codec = codec(dialect);
    let name = &*codec.parameter_name(name);
    let places = Parameter::ALL.iter().filter_map(|parameter| codec.parameter(*parameter));
    places.filter_map(|place| place.split_once('.')).any(|(group, _)| group == name)
}
