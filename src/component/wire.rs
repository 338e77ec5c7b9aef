//! The interface `wire`: its functions.

use super::Component;
use super::bindings::exports::rethread::history::wire as wit;
use super::finding::report;
use super::stream::StreamResource;
use crate::provider::{Dangling, RepairOptions, repair, validate};
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
