//! A loop that the application drives, with an SDK say, and checkpoints here (R19).
//!
//! A checkpoint has the conversation so far, in the format of a dialect. What it adds to history is appended at once in
//! modes `call` and `result`, and at the end of the loop in mode `run`. A crash loses what was not checkpointed.

use super::setup::Persistence;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{
    Continuation, ConversationUnits, History, HistoryEntry, Incoming, JoinedEntries, NoContinuation, Origin,
    continuation,
};
use crate::id::IdSource;
use crate::json::{Json, JsonRef};
use crate::message::{Dialect, Message, Role};
use crate::provider::{ProviderRequest, Settings, call_id, decode_body, spec};
use crate::render::{RenderRequest, Renderer};
use crate::replay::Policy;
use crate::tool::ToolInvocation;

/// A loop that the application drives.
#[derive(Debug)]
pub struct ExternalLoop {
    persistence: Persistence,
    has_checkpoint: bool,
    is_over: bool,
    /// The last body that was stored. The next one continues it, whatever the time has made of a request since.
    stored: Option<ConversationUnits>,
    /// In mode `run`: the newest checkpoint, which the end of the loop stores.
    pending: Option<ExternalBody>,
}

/// The body of a checkpoint.
#[derive(Clone, Debug)]
pub struct ExternalBody {
    dialect: Dialect,
    items: Vec<Incoming>,
}

/// What a checkpoint is compared with and joined to.
pub struct ExternalContext<'c> {
    /// The session's history.
    pub history: &'c History,
    /// What a request shows of the history.
    pub policy: &'c Policy,
    /// The origin of what is new.
    pub origin: &'c Origin,
    /// The current time.
    pub now: Ms,
    /// The source of new ids.
    pub ids: &'c dyn IdSource,
}

impl ExternalBody {
    /// Decodes the body of a checkpoint.
    ///
    /// # Errors
    /// `invalid_input` for a body of another format.
    pub fn decode(dialect: Dialect, body: JsonRef<'_>) -> Result<Self> {
        Ok(Self { dialect, items: decode_body(dialect, body)? })
    }

    fn wire_id(&self, call: &ToolInvocation) -> String {
        call_id(spec(self.dialect).content, call).decode().into_owned()
    }
}

impl ExternalLoop {
    /// Begins a loop.
    #[must_use]
    pub fn new(persistence: Persistence) -> Self {
        Self { persistence, has_checkpoint: false, is_over: false, stored: None, pending: None }
    }

    /// Rejects a checkpoint of a loop that has ended.
    ///
    /// # Errors
    /// `wrong_state`.
    pub fn check_open(&self) -> Result<()> {
        if !self.is_over {
            return Ok(());
        }
        let message = "this external loop has ended; call `external` again for the next one";
        Err(Error::new(ErrorCode::WrongState, message))
    }

    /// Returns true if a checkpoint is stored at once, false if the end of the loop stores it.
    #[must_use]
    pub fn stores_checkpoints(&self) -> bool {
        self.persistence != Persistence::Run
    }

    /// Returns the entries by which a checkpoint continues the history. The loop is unchanged.
    ///
    /// # Errors
    /// `invalid_input` if the body does not continue what is stored.
    pub fn join(&self, body: &ExternalBody, context: &mut ExternalContext<'_>) -> Result<JoinedEntries> {
        let found = self.find_new(body, context).map_err(rejection)?;
        Ok(found.join(context.history, context.origin, context.ids))
    }

    fn find_new(
        &self,
        body: &ExternalBody,
        context: &mut ExternalContext<'_>,
    ) -> std::result::Result<Continuation, NoContinuation> {
        let wire_id = |call: &ToolInvocation| body.wire_id(call);
        let history = context.history;
        let find = |units: &ConversationUnits| continuation(history, units, body.items.clone(), &wire_id);
        let of_history = find(&ConversationUnits::of_history(history, &wire_id));
        // Another process with the same loop may have stored more than the last checkpoint of this one: what adds less
        // is true.
        let of_stored = self.stored.as_ref().map_or(Err(NoContinuation::Diverges), find);
        let mut failure = match (of_history, of_stored) {
            (Ok(one), Ok(other)) => return Ok(if other.count() < one.count() { other } else { one }),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => return Ok(found),
            (Err(NoContinuation::Diverges), Err(NoContinuation::Diverges)) => NoContinuation::Diverges,
            (Err(NoContinuation::Diverges), Err(reason)) | (Err(reason), Err(_)) => return Err(reason),
        };
        // The application may have begun with the body that `render` gives, with or without an input.
        for has_input in [false, true] {
            match rendered_units(body.dialect, context, has_input).map(|units| find(&units)) {
                Some(Err(reason)) => failure = reason,
                Some(found) => return found,
                None => {}
            }
        }
        Err(failure)
    }

    /// Keeps a checkpoint: in mode `run` for the end of the loop; otherwise it is stored.
    pub fn accept(&mut self, body: ExternalBody, history: &History) {
        self.has_checkpoint = true;
        if self.stores_checkpoints() {
            self.stored = Some(ConversationUnits::of_items(&body.items, history.seed()));
        } else {
            self.pending = Some(body);
        }
    }

    /// Returns the checkpoint that the end of the loop stores.
    #[must_use]
    pub fn pending(&self) -> Option<ExternalBody> {
        self.pending.clone()
    }

    /// Ends the loop. Returns a warning if its mode requires checkpoints and there was none.
    pub fn end(&mut self) -> Option<Finding> {
        let was_over = std::mem::replace(&mut self.is_over, true);
        self.pending = None;
        let message = "an external loop ended without a checkpoint, so nothing of it is stored; call `checkpoint` after each model call, or pass `persistence: \"run\"`";
        let warns = !was_over && self.stores_checkpoints() && !self.has_checkpoint;
        warns.then(|| Finding::warning(FindingCode::NoCheckpoint, message))
    }
}

/// Returns the units of history that a request would have now, with an input or without; `None` if it would have none.
fn rendered_units(dialect: Dialect, context: &mut ExternalContext<'_>, has_input: bool) -> Option<ConversationUnits> {
    let provider = ProviderRequest {
        dialect,
        url: "about:external".into(),
        params: Json::trusted("{}".into()),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: context.policy };
    let mut live = History::new(context.history.seed());
    if has_input {
        live.apply(HistoryEntry::Message(Message { id: context.ids.new_id(), ..Message::from_text(Role::User, "?") }));
    }
    // Not the session's renderer: nobody sends this body, and a warning that is given once must not be spent on it.
    let rendered = Renderer::default().render(context.history, Some(&live), &request, context.now).ok()?;
    let body = Json::parse(&String::from_utf8(rendered.body).ok()?).ok()?;
    let items = decode_body(dialect, body.view()).ok()?;
    let units = ConversationUnits::of_items(&items, context.history.seed());
    let units = if has_input { units.without_last() } else { units };
    units.has_content().then_some(units)
}

fn rejection(reason: NoContinuation) -> Error {
    Error::invalid(match reason {
        NoContinuation::Diverges => {
            "the checkpoint does not continue what is stored: it lacks a stored message or has another one in its place; pass the whole conversation, from its first message, with the new messages at its end".to_owned()
        }
        NoContinuation::OrphanResult { call_id } => {
            format!("the checkpoint has a result of the call \"{call_id}\", which neither it nor the session has; pass the message with the call, too")
        }
    })
}
