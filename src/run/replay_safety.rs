//! Whether a model call that failed may be sent again (R27). The rule is here alone.

/// What is known of the request of a model call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvidence {
    /// No byte of it reached the service.
    NotSent,
    /// The service answered it with this error status, so that there is no answer of the model.
    ErrorStatus(u16),
    /// The service may have processed it.
    MaybeProcessed,
    /// The stream of its answer has begun.
    AnswerBegan,
    /// The host aborted it.
    Aborted,
}

/// What is known of a run's newest request to a service that keeps the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestDelivery {
    /// Its answer is stored, or there was none.
    Answered,
    /// The service may have it, and its answer is not stored.
    Unconfirmed,
    /// The service does not have it: it refused it, or the run failed before it was sent.
    NotDelivered,
}

/// Whether a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySafety {
    /// It may be sent again.
    Safe,
    /// The service might process it twice: only the application can approve that.
    NeedsApproval,
    /// It is never sent again.
    Never,
}

impl ReplaySafety {
    /// Decides whether a request may be sent again. `is_stateful`: it changes a conversation that the service keeps, so
    /// that processing it twice adds its input twice. A stateless request has no effect at the service.
    #[must_use]
    pub fn of(evidence: RequestEvidence, is_stateful: bool) -> Self {
        match evidence {
            RequestEvidence::Aborted | RequestEvidence::AnswerBegan => Self::Never,
            RequestEvidence::NotSent => Self::Safe,
            RequestEvidence::ErrorStatus(_) | RequestEvidence::MaybeProcessed if !is_stateful => Self::Safe,
            // A 4xx rejects what was sent; a 5xx may come from a service that had begun to process it, or from a proxy.
            RequestEvidence::ErrorStatus(status) if status < 500 => Self::Safe,
            RequestEvidence::ErrorStatus(_) | RequestEvidence::MaybeProcessed => Self::NeedsApproval,
        }
    }
}

/// Returns the evidence in a host's report of a failure. `sent` says whether a byte of the request may have reached the
/// service.
#[must_use]
pub fn evidence_of_failure(code: Option<&str>, sent: Option<bool>) -> RequestEvidence {
    match (code, sent) {
        // The name of the error that an `AbortSignal` causes.
        (Some("AbortError"), _) => RequestEvidence::Aborted,
        (_, Some(false)) => RequestEvidence::NotSent,
        (_, Some(true) | None) => RequestEvidence::MaybeProcessed,
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r27_a_stateless_request_is_repeated_unless_it_was_aborted_or_its_answer_began() {
        use RequestEvidence::{Aborted, AnswerBegan, ErrorStatus, MaybeProcessed, NotSent};
        for evidence in [NotSent, ErrorStatus(429), ErrorStatus(503), MaybeProcessed] {
            assert_eq!(ReplaySafety::of(evidence, false), ReplaySafety::Safe, "{evidence:?}");
        }
        for evidence in [Aborted, AnswerBegan] {
            assert_eq!(ReplaySafety::of(evidence, false), ReplaySafety::Never);
            assert_eq!(ReplaySafety::of(evidence, true), ReplaySafety::Never);
        }
    }

    #[test]
    fn r27_a_stateful_request_is_repeated_only_if_it_was_not_processed() {
        use RequestEvidence::{ErrorStatus, MaybeProcessed, NotSent};
        for evidence in [NotSent, ErrorStatus(400), ErrorStatus(409), ErrorStatus(429)] {
            assert_eq!(ReplaySafety::of(evidence, true), ReplaySafety::Safe, "{evidence:?}");
        }
        for evidence in [MaybeProcessed, ErrorStatus(500), ErrorStatus(502), ErrorStatus(529)] {
            assert_eq!(ReplaySafety::of(evidence, true), ReplaySafety::NeedsApproval, "{evidence:?}");
        }
    }

    #[test]
    fn r27_a_failure_without_evidence_may_have_been_processed() {
        assert_eq!(evidence_of_failure(None, None), RequestEvidence::MaybeProcessed);
        assert_eq!(evidence_of_failure(Some("ECONNRESET"), Some(true)), RequestEvidence::MaybeProcessed);
        assert_eq!(evidence_of_failure(Some("ECONNREFUSED"), Some(false)), RequestEvidence::NotSent);
        assert_eq!(evidence_of_failure(Some("AbortError"), Some(false)), RequestEvidence::Aborted);
    }
}
