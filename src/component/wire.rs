//! The interface `wire`: its functions.

use super::Component;
use super::bindings::exports::rethread::history::wire as wit;
use super::finding::{dialect, report};
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

    fn validate(body: Vec<u8>, name: wit::Dialect) -> Result<Vec<wit::Finding>, wit::Error> {
        Ok(report(validate(&body, dialect(&name)?)))
    }

    fn repair(
        body: Vec<u8>,
        name: wit::Dialect,
        options: Option<wit::RepairOptions>,
    ) -> Result<wit::Repaired, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let (body, found) = repair(&body, dialect(&name)?, &options)?;
        Ok(wit::Repaired { body, report: report(found) })
    }

    fn heal(
        body: Vec<u8>,
        name: wit::Dialect,
        answer: Vec<u8>,
        options: Option<wit::RepairOptions>,
    ) -> Result<Option<wit::Healed>, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let healed = heal(&body, dialect(&name)?, &answer, &options);
        Ok(healed.map(|healed| wit::Healed {
            body: healed.body,
            report: report(healed.report),
            refused: healed.refused,
        }))
    }

    fn leave_out_refused(
        body: Vec<u8>,
        name: wit::Dialect,
        refused: Vec<String>,
        options: Option<wit::RepairOptions>,
    ) -> Result<Option<wit::Repaired>, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let left_out = leave_out_refused(&body, dialect(&name)?, &refused, &options);
        Ok(left_out.map(|(body, found)| wit::Repaired { body, report: report(found) }))
    }

    fn convert(
        body: Vec<u8>,
        source: wit::Dialect,
        target: wit::Dialect,
        options: Option<wit::RepairOptions>,
    ) -> Result<wit::Repaired, wit::Error> {
        let options = options.map(Into::into).unwrap_or_default();
        let (body, found) = convert(&body, dialect(&source)?, dialect(&target)?, &options)?;
        Ok(wit::Repaired { body, report: report(found) })
    }
}
