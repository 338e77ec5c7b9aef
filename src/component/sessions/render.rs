//! The body of the next request, without a run.

use super::super::finding::report;
use super::wit;
use crate::error::Result;
use crate::options::{JsonOptions, OptionTypes, RenderOptions, read_options};
use crate::render::{BodyBuffer, RenderRequest};
use crate::session::OpenSession;
use std::rc::Rc;

#[derive(Default)]
struct VecBuffer(Vec<u8>);

impl BodyBuffer for VecBuffer {
    fn reserve(&mut self, length: usize) {
        self.0 = Vec::with_capacity(length);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Renders the body of the next request.
pub async fn render(shown: &Rc<OpenSession>, options: &str) -> Result<wit::Rendered> {
    let now = shown.context.now();
    let mut options: RenderOptions<JsonOptions> = read_options("a render's request", options)?;
    let input = options.input.take();
    let branch = options.branch.take();
    let parts = options.into_parts(shown)?;
    let session = &shown.at_branch(branch.as_deref()).await?;
    session.read_readable().await?;
    let items = JsonOptions::input_items(input.as_ref(), parts.provider.dialect)?;
    let request = RenderRequest {
        provider: &parts.provider,
        instructions: parts.instructions.as_deref(),
        tools: &parts.tools,
        policy: &parts.policy,
    };
    let mut body = VecBuffer::default();
    let rendered = session.render(&request, (items, Vec::new(), now), &mut body).await?;
    shown.note_drop_of(session);
    let mut findings = rendered.report.clone();
    findings.extend(session.read_failure.borrow().iter().map(|failure| failure.finding.clone()));
    Ok(wit::Rendered {
        body: body.0,
        report: report(findings),
        headers: request
            .added_headers(&session.owner()?, &session.log.borrow().history)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        max_source_number: rendered.max_source,
        stable_prefix: rendered.stable_prefix,
    })
}
