//! The interface `wire`: its functions.

use super::Component;
use super::bindings::exports::rethread::history::wire as wit;
use super::finding::report;
use super::stream::StreamResource;
use crate::provider::{Dangling, RepairOptions, heal, leave_out_refused, repair, validate};
use crate::render::convert;

impl From<wit::RepairOptions> for RepairOptions {
    fn from(options: wit::RepairOptions) -> Self {
        Self {
            dangling: match options.dangling_calls {
                wit::DanglingCalls::Synthesize => Dangling::Synthesize,
                wit::DanglingCalls::Omit => Dangling::Omit,
            },
            dangling_text: options.dangling_text,
        }
    }
}

impl wit::Guest for Component {
    type StreamAssembler = StreamResource;

    fn validate(body: Vec<u8>, dialect: wit::Dialect) -> Vec<wit::Finding> {
        report(validate(&body, dialect.into()))
    }

    fn repair(
        body: Vec<u8>,
        dialect: wit::Dialect,
        options: Option<wit::RepairOptions>,
    ) -> Result<wit::Repaired, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let (body, found) = repair(&body, dialect.into(), &options)?;
        Ok(wit::Repaired { body, report: report(found) })
    }

    fn heal(
        body: Vec<u8>,
        dialect: wit::Dialect,
        answer: Vec<u8>,
        options: Option<wit::RepairOptions>,
    ) -> Option<wit::Healed> {
        let options = options.map(Into::into).unwrap_or_default();
        let healed = heal(&body, dialect.into(), &answer, &options)?;
        Some(wit::Healed { body: healed.body, report: report(healed.report), refused: healed.refused })
    }

    fn leave_out_refused(
        body: Vec<u8>,
        dialect: wit::Dialect,
        refused: Vec<String>,
        options: Option<wit::RepairOptions>,
    ) -> Option<wit::Repaired> {
        let options = options.map(Into::into).unwrap_or_default();
        let (body, found) = leave_out_refused(&body, dialect.into(), &refused, &options)?;
        Some(wit::Repaired { body, report: report(found) })
    }

    fn convert(
        body: Vec<u8>,
        source: wit::Dialect,
        target: wit::Dialect,
        options: Option<wit::RepairOptions>,
    ) -> Result<wit::Repaired, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let (body, found) = convert(&body, source.into(), target.into(), &options)?;
        Ok(wit::Repaired { body, report: report(found) })
    }
}
