//! The renderer of a session: builds request bodies from replay and a provider, with cached encodings.
//!
//! A message is encoded once per dialect. A body is a copy of cached encodings, so its cost follows what is new. The cache is in memory
//! only.

mod convert;
mod encoding_cache;

use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::finding::{Action, Finding, FindingCode, Report, Severity};
use crate::history::History;
use crate::id::hash_words;
use crate::json::{Json, JsonKind, ObjectWriter};
use crate::message::{Dialect, Message, Part, PartBody, Role};
use crate::provider::{
    Codec, EncodeContext, ProviderRequest, ReasoningField, RepairOptions, Settings, ToolDefinition, Wire, codec,
    repair_rendered, validate,
};
use crate::replay::{
    Draft, DraftCall, DraftMessage, DraftOrigin, DraftResult, PendingQuestion, Policy, QuestionKind, ReducerCache,
    ReducerQuestion, ReducerReplies, ReducerReply, ReplayInput, TrimmedResults, replay,
};
use crate::sorted::Sorted;
pub use convert::convert;
use encoding_cache::{EncodedSpan, EncodingCache, marks_in};

/// The request that a render builds.
pub struct RenderRequest<'r> {
    /// The dialect, the parameters and the server's settings.
    pub provider: &'r ProviderRequest,
    /// The system message.
    pub instructions: Option<&'r str>,
    /// The definitions of the tools.
    pub tools: &'r [ToolDefinition],
    /// What the model is shown.
    pub policy: &'r Policy,
}

/// A request body and its report.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// UTF-8 JSON.
    pub body: Vec<u8>,
    /// Every message or call that was dropped, moved, renamed or synthesized.
    pub report: Report,
    /// The number of leading messages that are byte-identical to the last body of this dialect.
    pub stable_prefix: u32,
    /// The highest source number so far. The next tool continues numbering after it (R9).
    pub max_source: Option<u64>,
}

/// The result of a step of a render.
#[derive(Clone, Debug)]
pub enum RenderStep {
    /// The body is complete.
    Done(Rendered),
    /// The application must be asked first; then [`Renderer::take_reply`], and the render goes on.
    Question(ReducerQuestion),
}

/// The renderer of a session, with cached encodings by dialect and the replies to reducers.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    dialects: Sorted<Dialect, EncodingCache>,
    trimmed: TrimmedResults,
    memory: ReducerCache,
    said_default: bool,
}

impl Renderer {
    /// Clears all caches, when the history was replaced.
    pub fn clear(&mut self) {
        self.dialects.clear();
        self.trimmed = TrimmedResults::default();
        self.memory.clear();
    }

    /// Takes the application's reply to a question of this render.
    pub fn take_reply(&mut self, question: ReducerQuestion, reply: ReducerReply, replies: &mut ReducerReplies) {
        self.memory.take_reply(question, reply, replies);
    }

    /// Builds the next body where nobody is there to be asked: a reducer that would ask is skipped.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn render(
        &mut self,
        history: &History,
        live: Option<&History>,
        request: &RenderRequest<'_>,
        now: Ms,
    ) -> Result<Rendered> {
        let mut progress = ReducerReplies::default();
        loop {
            match self.step(history, live, request, now, &progress)? {
                RenderStep::Done(rendered) => return Ok(rendered),
                RenderStep::Question(ask) => {
                    self.take_reply(ask, ReducerReply::Failed("nobody is there to be asked".into()), &mut progress);
                }
            }
        }
    }

    /// Builds the next body: `history` after the policy, then `live`. A reducer may have to ask the application first: the
    /// same step with what it was [`take_reply`](Self::take_reply) goes on.
    ///
    /// # Errors
    /// `config_invalid` from the request.
    pub fn step(
        &mut self,
        history: &History,
        live: Option<&History>,
        request: &RenderRequest<'_>,
        now: Ms,
        progress: &ReducerReplies,
    ) -> Result<RenderStep> {
        let mut report = Report::new();
        let dialect = request.provider.dialect;
        let count = history.messages().len();
        self.trimmed.catch_up(history, request.policy);
        let input = ReplayInput {
            history,
            live,
            trimmed: Some(&self.trimmed),
            policy: request.policy,
            now,
            cache: &self.memory,
            replies: progress,
        };
        let draft = match replay(&input, &mut report) {
            Ok(draft) => draft,
            Err(pending) => return ask(*pending, count, request).map(RenderStep::Question),
        };
        let Some(kept) = self.dialects.get_or_insert_with(dialect, EncodingCache::default) else {
            return Err(Error::new(Code::Internal, "no place for kept encodings"));
        };
        let (body, stable_prefix) = Self::compose(kept, count, &draft, request, &mut report)?;
        self.once_a_session(&mut report);
        let max_source = history.highest_source().max(live.and_then(History::highest_source));
        Ok(RenderStep::Done(Rendered { body, report, stable_prefix, max_source }))
    }

    /// Writes a body of a draft; gives how many leading messages are those of the last one that `kept` knows.
    fn compose(
        kept: &mut EncodingCache,
        count: usize,
        draft: &Draft<'_>,
        request: &RenderRequest<'_>,
        report: &mut Report,
    ) -> Result<(Vec<u8>, u32)> {
        let dialect = request.provider.dialect;
        let mut head = String::new();
        let mut object = ObjectWriter::new(&mut head);
        request.provider.write_head(&mut object, request.tools, report)?;
        let codec = codec(dialect);
        let settings = codec.settings(request.provider);
        let apart = place_system(codec, draft, request.instructions, report);
        if let Some((name, value)) = &apart.member {
            object.json(name, value.view());
        }
        object.key(codec.list()).push('[');

        kept.prepare(settings.signature(), count);
        let mut body = BodyBuilder { head, spans: Vec::with_capacity(draft.messages.len() + 1), fresh: String::new() };
        if let Some(instructions) = apart.instructions {
            body.push_fresh(
                codec,
                &DraftMessage {
                    message: &instructions,
                    origin: DraftOrigin::Live(0),
                    calls: Vec::new(),
                    results_go_on: false,
                },
                &[],
                &settings,
                report,
            );
        }
        let (mut may_begin, mut leading, mut newest) = (true, true, None::<&DraftMessage<'_>>);
        for (at, item) in draft.messages.iter().enumerate() {
            if apart.taken.get(at) == Some(&true) {
                continue;
            }
            let before = before_of(draft, at);
            match item.origin {
                DraftOrigin::Stored(index) => {
                    // In their order: two that are alike must not undo each other.
                    let signature = before
                        .iter()
                        .fold(item.signature(), |sum, before| hash_words(sum, &before.signature().to_le_bytes()));
                    let span = kept.span(index, signature, report, &mut |out, report| {
                        encode(codec, out, item, before, &settings, report)
                    });
                    body.spans.push((false, span));
                }
                DraftOrigin::Live(_) | DraftOrigin::Made | DraftOrigin::Summary => {
                    body.push_fresh(codec, item, before, &settings, report)
                }
            }
            if let Some((_, span)) = body.spans.last_mut().filter(|(_, span)| span.count > 0) {
                leading &= item.message.role != Role::User;
                may_begin &= !leading || codec.may_begin(item);
                span.sound &= newest.replace(item).is_none_or(|before| codec.may_follow(before, item));
            }
        }
        if let Some((_, first)) = body.spans.first_mut() {
            first.sound &= may_begin;
        }
        if let Some((_, last)) = body.spans.iter_mut().rev().find(|(_, span)| span.count > 0) {
            last.sound &= newest.is_none_or(|item| codec.may_end(item));
        }
        let marks: usize = body.spans.iter().map(|(_, span)| span.marks).sum();
        if marks > 0 && marks + marks_in(&body.head) > codec.most_marks() {
            body.spans.iter_mut().for_each(|(_, span)| span.sound &= span.marks == 0);
        }
        let mut out = body.assemble(kept);
        let mut changed = usize::MAX;
        if body.spans.iter().any(|(_, span)| !span.sound) {
            // Something came in that its dialect refuses, perhaps. The rules mend it, here and not in what is stored.
            let (mended, found) = repair_rendered(&out, dialect, &RepairOptions::default());
            if mended != out {
                changed = mended.iter().zip(&out).take_while(|(own, before)| own == before).count();
                out = mended;
            }
            for finding in found {
                if finding.severity == Severity::Error {
                    report.push(finding.with_severity(Severity::Warning));
                }
            }
        }
        Ok((out, kept.stable_prefix(&body.spans, body.head.len(), changed)))
    }

    /// The warning of the built-in window comes once a session.
    fn once_a_session(&mut self, report: &mut Report) {
        let said = self.said_default;
        self.said_default |= report.iter().any(|finding| finding.code == FindingCode::StaleDefault);
        if said {
            report.retain(|finding| finding.code != FindingCode::StaleDefault);
        }
    }
}

/// Asks the model, at the end of a body that is to be summed up.
const SUM_UP: &str = "Summarize the conversation above for someone who goes on with it: the facts, decisions, results and open questions. Answer with the summary alone.";

/// A reducer's question. What is to be summed up becomes a body that the same provider takes, whole and not streamed.
fn ask(pending: PendingQuestion<'_>, count: usize, request: &RenderRequest<'_>) -> Result<ReducerQuestion> {
    let PendingQuestion { question: mut ask, covered } = pending;
    let Some(mut draft) = covered else { return Ok(ask) };
    let last = Message::made(Role::User, SUM_UP);
    draft.messages.push(DraftMessage {
        message: &last,
        origin: DraftOrigin::Made,
        calls: Vec::new(),
        results_go_on: false,
    });
    let params = ObjectWriter::build(|out| {
        for (key, value) in request.provider.params.view().entries() {
            // A summary is text: no tool is forced, nothing streams.
            if !["tool_choice", "toolConfig", "stream_options"].iter().any(|own| key.is_text(own)) {
                out.copy(key, value);
            }
        }
    });
    let provider = ProviderRequest { params, stream: false, ..request.provider.clone() };
    let request = RenderRequest { provider: &provider, ..*request };
    let (body, _) = Renderer::compose(&mut EncodingCache::default(), count, &draft, &request, &mut Report::new())?;
    ask.question = QuestionKind::Summarize(body);
    Ok(ask)
}

/// The messages whose results stand in the wire form of the one at that place.
fn before_of<'d, 'h>(draft: &'d Draft<'h>, at: usize) -> &'d [DraftMessage<'h>] {
    let all = draft.messages.get(..at).unwrap_or(&[]);
    let own = all.iter().rev().take_while(|before| before.results_go_on).count();
    all.get(all.len() - own..).unwrap_or(&[])
}

/// Encodes a message; gives how many wire messages that makes, and whether its dialect's rules take them.
fn encode(
    codec: &dyn Codec,
    out: &mut String,
    item: &DraftMessage<'_>,
    before: &[DraftMessage<'_>],
    settings: &Settings,
    report: &mut Report,
) -> (u32, bool) {
    let (start, before_it) = (out.len(), report.len());
    let mut wire = Wire::new(out);
    codec.encode(&mut wire, item, &mut EncodeContext { deferred: before, settings, report });
    let (count, nothing) = (wire.count(), report.len() == before_it);
    let parts = &item.message.parts;
    let reasons = |part: &Part| matches!(&part.body, PartBody::Reasoning(text) if !text.is_empty());
    let named = count > 0 && matches!(settings.reasoning, ReasoningField::Named(_));
    if item.message.dialect != Some(codec.dialect()) {
        let mut left_out = |what| {
            report.push(
                Finding::info(FindingCode::UnsupportedPart, what)
                    .of_message(&item.message.id)
                    .with_action(Action::Dropped),
            );
            true
        };
        let told = !named
            && parts.iter().any(reasons)
            && left_out("reasoning stays with the provider that it came from; it is left out");
        if parts.iter().any(|part| matches!(part.body, PartBody::Opaque(_))) || nothing && !told && item.has_own(!named)
        {
            left_out("what only another dialect has a form for is left out");
        }
    }
    let text = out.get(start..).unwrap_or("");
    // Where it says nothing here, nobody else looks at the messages whose results came with it.
    (count, count == 0 && before.is_empty() || is_sound(codec, text, item, before, settings))
}

/// Whether the rules take a message. What was encoded from neutral values they take by construction; what goes out as it came
/// is looked at, once, between two messages that nobody refuses.
fn is_sound(
    codec: &dyn Codec,
    text: &str,
    item: &DraftMessage<'_>,
    before: &[DraftMessage<'_>],
    settings: &Settings,
) -> bool {
    // Half a round: it is looked at together with the message that holds its results.
    if item.results_go_on || !(as_it_came(item) || before.iter().any(as_it_came)) {
        return true;
    }
    let plain = codec.plain();
    let model = if settings.model.is_empty() { "m" } else { settings.model };
    let mut probe = format!(r#"{{"model":"{model}","max_tokens":1,"{}":[{plain},"#, codec.list());
    for (at, message) in before.iter().enumerate() {
        let mut wire = Wire::new(&mut probe);
        let deferred = before.get(..at).unwrap_or(&[]);
        codec.encode(&mut wire, message, &mut EncodeContext { deferred, settings, report: &mut Report::new() });
        probe.push(',');
    }
    if !text.is_empty() {
        probe.push_str(text);
        probe.push(',');
    }
    probe.push_str(&format!("{plain}]}}"));
    validate(probe.as_bytes(), codec.dialect()).iter().all(|finding| finding.severity != Severity::Error)
}

/// Whether something in a message goes out in a form that this crate did not give it.
fn as_it_came(item: &DraftMessage<'_>) -> bool {
    let message = item.message;
    let part = |part: &Part| {
        part.template.is_some() || matches!(part.body, PartBody::Opaque(_) | PartBody::Image(_) | PartBody::File(_))
    };
    let result = |call: &DraftCall<'_>| matches!(call.result, Some(DraftResult::Stored(result)) if result.template.is_some() || (result.dialect.is_some() && result.content.view().kind() != JsonKind::String));
    message.template.is_some()
        || message.parts.iter().any(part)
        || item.calls.iter().any(|call| call.invocation.template.is_some() || result(call))
}

/// A body in the making: its head, and the spans in their order, kept ones and fresh ones.
struct BodyBuilder {
    head: String,
    spans: Vec<(bool, EncodedSpan)>,
    fresh: String,
}

impl BodyBuilder {
    fn push_fresh(
        &mut self,
        codec: &dyn Codec,
        item: &DraftMessage<'_>,
        before: &[DraftMessage<'_>],
        settings: &Settings,
        report: &mut Report,
    ) {
        let start = self.fresh.len();
        let (count, sound) = encode(codec, &mut self.fresh, item, before, settings, report);
        self.spans.push((true, EncodedSpan::of(&self.fresh, start, count, sound)));
    }

    fn assemble(&self, kept: &EncodingCache) -> Vec<u8> {
        let bytes_of = |(fresh, span): &(bool, EncodedSpan)| {
            let from = if *fresh { self.fresh.as_str() } else { kept.text() };
            from.as_bytes().get(span.start..span.end).unwrap_or(&[])
        };
        let length: usize = self.spans.iter().map(|(_, span)| span.end - span.start + 1).sum();
        let mut body = Vec::with_capacity(self.head.len() + length + 2);
        body.extend_from_slice(self.head.as_bytes());
        let mut first = true;
        // Neighbours among the kept ones go as one piece: over an unchanged history that is one copy.
        let mut pieces: Vec<(bool, EncodedSpan)> = Vec::new();
        for (fresh, span) in self.spans.iter().filter(|(_, span)| span.end > span.start) {
            match pieces.last_mut() {
                Some((false, last)) if !fresh && last.end + 1 == span.start => last.end = span.end,
                _ => pieces.push((*fresh, *span)),
            }
        }
        for piece in &pieces {
            if !first {
                body.push(b',');
            }
            first = false;
            body.extend_from_slice(bytes_of(piece));
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// What stands outside the list of messages.
struct SystemPlacement {
    member: Option<(&'static str, Json)>,
    /// Instructions, where they are a message of the list.
    instructions: Option<Message>,
    /// By draft index: which messages are in the member.
    taken: Vec<bool>,
}

fn place_system(
    codec: &dyn Codec,
    draft: &Draft<'_>,
    instructions: Option<&str>,
    report: &mut Report,
) -> SystemPlacement {
    let mut instructions = instructions.filter(|text| !text.is_empty()).map(|text| Message::made(Role::System, text));
    let mut taken = vec![false; draft.messages.len()];
    let mut leading = true;
    let mut messages = Vec::new();
    if let Some(own) = &instructions
        && codec.stands_apart(own, true)
    {
        messages.push(own);
    }
    let listed = instructions.is_some() && messages.is_empty();
    for (item, taken) in draft.messages.iter().zip(&mut taken) {
        if codec.stands_apart(item.message, leading) {
            if !leading {
                report.push(
                    Finding::info(
                        FindingCode::InterposedMessage,
                        "this dialect takes the system text apart from the messages; it is moved there",
                    )
                    .of_message(&item.message.id)
                    .with_action(Action::Moved),
                );
            }
            messages.push(item.message);
            *taken = true;
        }
        leading &= matches!(item.message.role, Role::System | Role::Developer);
    }
    let member = if messages.is_empty() { None } else { codec.system(&messages) };
    if !listed {
        instructions = None;
    }
    SystemPlacement { member, instructions, taken }
}

#[cfg(test)]
mod tests;
