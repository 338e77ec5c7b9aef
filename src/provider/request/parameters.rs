//! Parameters that several dialects have. Each dialect says where it has them, by a match over
//! [`Parameter`], so a parameter that a dialect forgets does not compile.

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
