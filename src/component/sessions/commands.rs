//! The commands of the host.

use super::effects::Effects;
use super::host::ComponentHost;
use super::json_bytes::{json_of_bytes, json_of_text};
use super::render::render;
use super::results::{branches_json, compaction_json, erasure_json, pruned_json, write_hit, write_summary};
use super::runs::Runs;
use super::wit;
use crate::error::{Error, Result};
use crate::history::{Annotation, NewResult};
use crate::json::ArrayWriter;
use crate::options::{
    CompactOptions, HandoffOptions, InvocationQuery, JsonOptions, MAX_PAGE, PruneOptions, RunOptions, SessionOptions,
    UpdateFields, audit_query, read_options,
};
use crate::run::{ApprovalDecision, RunInput, RunSnapshot};
use crate::session::{
    Answer, AppendOrigin, DEFAULT_HITS, JsonPage, MAX_HITS, OpenSession, OpenStore, RunDriver, annotate, audit_page,
    branches, clear, compact, delete_messages, discard_run, fork, mark_read, prune, read_archive, restore_archive,
    resume_run, resume_snapshot, search_sessions, switch_to,
};
use crate::store::{RecencyQuery, SessionArchive, recent_sessions};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The sessions and runs of an engine.
pub struct Sessions {
    pub store: Rc<OpenStore>,
    pub host: Rc<ComponentHost>,
    pub effects: Rc<Effects>,
    pub runs: Runs,
    /// Sessions that the host has open.
    open: RefCell<BTreeMap<String, Rc<OpenSession>>>,
}

fn limit_of(limit: Option<u32>) -> usize {
    let limit = u64::from(limit.unwrap_or(100)).clamp(1, MAX_PAGE);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn page(page: JsonPage) -> wit::Outcome {
    wit::Outcome::Page(wit::JsonPage { items: page.items, cursor: page.cursor })
}

impl Sessions {
    pub fn new(store: Rc<OpenStore>, host: Rc<ComponentHost>, effects: Rc<Effects>) -> Rc<Self> {
        Rc::new(Self { store, host, effects, runs: Runs::default(), open: RefCell::default() })
    }

    /// Forgets all sessions and runs.
    pub fn forget(&self) {
        self.runs.clear();
        let open = self.open.take();
        drop(open);
    }

    /// Performs a command.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn perform(&self, command: wit::Command) -> Result<wit::Outcome> {
        self.store.context.check_open()?;
        match command {
            wit::Command::OpenSession(asked) => self.open_session(asked).await,
            wit::Command::Append(asked) => self.append(asked).await,
            wit::Command::AnswerCall(asked) => self.answer_call(asked).await,
            wit::Command::Messages(asked) => self.messages(asked).await,
            wit::Command::Render(asked) => {
                let session = self.session(&asked.session).await?;
                render(&session, &asked.options).await.map(wit::Outcome::Rendered)
            }
            wit::Command::Run(asked) => self.run(asked).await,
            wit::Command::Resume(asked) => self.resume(asked).await,
            wit::Command::Discard(asked) => {
                let session = self.session(&asked.session).await?;
                discard_run(&session, &asked.run, asked.keep).await?;
                session.notify();
                session.run_deferred_compaction();
                Ok(wit::Outcome::Done)
            }
            wit::Command::Decide(asked) => {
                let decision =
                    if asked.approved { ApprovalDecision::Approve } else { ApprovalDecision::Reject(asked.reason) };
                self.runs.get(&asked.run)?.decide(asked.call, decision).await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::HandOff(asked) => {
                let agent: HandoffOptions<JsonOptions> = read_options("a handoff", &asked.agent)?;
                let stored = self.runs.get(&asked.run)?.hand_off(agent.into_handoff()?)?;
                // An event reports what cannot be written yet.
                let _ = stored.await;
                Ok(wit::Outcome::Done)
            }
            wit::Command::Cancel(run) => {
                self.runs.get(&run)?.cancel().await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::Save(run) => {
                self.runs.get(&run)?.handle(RunInput::RetrySave).await?;
                Ok(wit::Outcome::Done)
            }
            other => self.perform_on_content(other).await,
        }
    }

    /// Performs a command about what a session has: its entry in the list, its branches, its messages.
    async fn perform_on_content(&self, command: wit::Command) -> Result<wit::Outcome> {
        match command {
            wit::Command::Clear(id) => {
                clear(&*self.session(&id).await?).await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::MarkRead(id) => {
                let session = self.session(&id).await?;
                let read = session.log.borrow().read_mark();
                if let Some(read) = read {
                    mark_read(&session, read).await?;
                }
                Ok(wit::Outcome::Done)
            }
            wit::Command::Annotate(asked) => {
                let metadata = json_of_text("the metadata", asked.metadata.as_deref().unwrap_or("null"))?;
                let session = self.session(&asked.session).await?;
                let turn = session.writes.enter();
                let _turn = turn.start().await;
                annotate(&session, &Annotation::new(&asked.message_id, metadata)).await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::Update(asked) => {
                let fields: UpdateFields<JsonOptions> = read_options("what is to change", &asked.fields)?;
                let edit = fields.into_edit()?;
                let session = self.session(&asked.session).await?;
                let turn = session.writes.enter();
                let _turn = turn.start().await;
                session.update(edit).await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::Compact(asked) => {
                let options: CompactOptions<JsonOptions> = read_options("the options of `compact`", &asked.options)?;
                let request = options.into_request()?;
                let session = self.session(&asked.session).await?;
                let outcome = compact(&session, request).await?;
                Ok(wit::Outcome::Receipt(compaction_json(outcome).as_str().to_owned()))
            }
            wit::Command::DeleteMessages(asked) => {
                let session = self.session(&asked.session).await?;
                let receipt = delete_messages(&session, &asked.message_ids).await?;
                Ok(wit::Outcome::Receipt(erasure_json(&receipt).as_str().to_owned()))
            }
            other => self.perform_on_branches(other).await,
        }
    }

    /// Performs a command about the branches of a session.
    async fn perform_on_branches(&self, command: wit::Command) -> Result<wit::Outcome> {
        match command {
            wit::Command::Fork(asked) => {
                let session = self.session(&asked.session).await?;
                let turn = session.writes.enter();
                let _turn = turn.start().await;
                Ok(wit::Outcome::Branch(fork(&session, asked.after.as_deref()).await?))
            }
            wit::Command::SwitchTo(asked) => {
                let session = self.session(&asked.session).await?;
                let turn = session.writes.enter();
                let _turn = turn.start().await;
                switch_to(&session, &asked.branch).await?;
                Ok(wit::Outcome::Done)
            }
            wit::Command::Branches(id) => {
                let session = self.session(&id).await?;
                Ok(wit::Outcome::Items(branches_json(&branches(&session).await?)))
            }
            other => self.perform_on_store(other).await,
        }
    }

    /// Performs a command about whole sessions or the store.
    async fn perform_on_store(&self, command: wit::Command) -> Result<wit::Outcome> {
        match command {
            wit::Command::CloseSession(id) => {
                self.open.borrow_mut().remove(&id);
                Ok(wit::Outcome::Done)
            }
            wit::Command::Serialize(id) => {
                let open = self.store.session(&id);
                let archive = read_archive(&self.store.context, open.as_deref(), &id).await?;
                Ok(wit::Outcome::Bytes(archive.seal().to_vec()))
            }
            wit::Command::Restore(asked) => {
                let archive = SessionArchive::open(&asked.archive.into())?;
                let id = restore_archive(&self.store.context, archive, asked.session).await?;
                Ok(session_info(&*self.session(&id).await?))
            }
            wit::Command::DeleteSession(id) => {
                self.store.delete_session(&id).await?;
                self.open.borrow_mut().remove(&id);
                Ok(wit::Outcome::Done)
            }
            wit::Command::Sessions(asked) => self.list_sessions(asked).await,
            wit::Command::Search(asked) => self.search(asked).await,
            wit::Command::PendingRuns(session) => Ok(wit::Outcome::Items(self.store.pending_runs(session).await?)),
            wit::Command::Invocations(query) => {
                let mut query: InvocationQuery = read_options("the query", &query)?;
                let (message, payload) = (query.message_id.take(), query.payload.unwrap_or(false));
                let query = audit_query(query, None);
                Ok(page(audit_page(&self.store.context, &query, (message.as_deref(), payload)).await?))
            }
            wit::Command::Prune(options) => {
                let options: PruneOptions = read_options("the options", &options)?;
                let pruned = prune(&self.store, &options.into_request(self.store.context.now())).await?;
                Ok(wit::Outcome::Receipt(pruned_json(&pruned).as_str().to_owned()))
            }
            wit::Command::Close => {
                self.store.end_holds().await;
                self.store.context.disconnect();
                self.store.close().await?;
                Ok(wit::Outcome::Done)
            }
            _ => Err(Error::invalid("a command that this version does not have")),
        }
    }

    /// Returns a session, which is opened unless it is open.
    async fn session(&self, id: &str) -> Result<Rc<OpenSession>> {
        let kept = self.open.borrow().get(id).filter(|session| !session.is_deleted()).cloned();
        match kept {
            Some(session) => Ok(session),
            None => self.open(id, SessionOptions::default()).await,
        }
    }

    async fn open(&self, id: &str, options: SessionOptions<JsonOptions>) -> Result<Rc<OpenSession>> {
        let session = self.store.open_session(id, options.into_settings()?).await?;
        self.open.borrow_mut().insert(id.to_owned(), session.clone());
        Ok(session)
    }

    async fn open_session(&self, asked: wit::OpenSession) -> Result<wit::Outcome> {
        let session = self.open(&asked.session, read_options("the options", &asked.options)?).await?;
        Ok(session_info(&session))
    }

    async fn append(&self, asked: wit::Append) -> Result<wit::Outcome> {
        let dialect = asked.dialect.as_deref().map(crate::message::Dialect::read).transpose()?;
        let body = json_of_bytes("the body", asked.body)?;
        let session = self.session(&asked.session).await?;
        let turn = session.writes.enter();
        let _turn = turn.start().await;
        let origin = session.origin(AppendOrigin::default());
        let place = (&origin, asked.expected_revision);
        let (_, revision, content) = session.append_to(asked.branch.as_deref(), (&body, dialect), place).await?;
        let message_ids = content.message_ids;
        Ok(wit::Outcome::Appended(wit::AppendedMessages { revision, message_ids }))
    }

    async fn answer_call(&self, asked: wit::CallResult) -> Result<wit::Outcome> {
        let answer = json_of_text("the answer", &asked.answer)?;
        let result = NewResult::read_answer(&asked.call, answer.view())?;
        let session = self.session(&asked.session).await?;
        let turn = session.writes.enter();
        let _turn = turn.start().await;
        let origin = session.origin(AppendOrigin::default());
        let answer = Answer { result, origin, expected: None, persist: Vec::new() };
        let (revision, _) = session.append_answer(answer).await?;
        Ok(wit::Outcome::Revision(revision))
    }

    async fn messages(&self, asked: wit::Page) -> Result<wit::Outcome> {
        let before = match asked.cursor.map(|cursor| cursor.parse::<u64>()) {
            Some(Err(_)) => return Err(Error::invalid("`cursor` is not one that an earlier page returned")),
            Some(Ok(before)) => before,
            None => u64::MAX,
        };
        let session = self.session(&asked.session).await?;
        Ok(page(session.message_page(asked.branch.as_deref(), limit_of(asked.limit), before).await?))
    }

    async fn run(&self, asked: wit::Request) -> Result<wit::Outcome> {
        let options: RunOptions<JsonOptions> = read_options("a run's request", &asked.options)?;
        let session = self.session(&asked.session).await?;
        let waits = options.waits_if_busy();
        let run = RunDriver::send(&session, waits, |id| options.into_new_run(&session, id, (None, None))).await?;
        Ok(self.started(run))
    }

    async fn resume(&self, asked: wit::Resume) -> Result<wit::Outcome> {
        let options: RunOptions<JsonOptions> = read_options("a run's request", &asked.options)?;
        if options.input.is_some() {
            return Err(Error::config("`input` is not an option of `resume`: the run has its input already"));
        }
        let session = self.session(&asked.session).await?;
        let snapshot = match asked.snapshot {
            Some(bytes) => Some(RunSnapshot::open(&bytes.into(), &session.id)?),
            None => None,
        };
        if let Some(id) = snapshot.as_ref().map(|snapshot| snapshot.run.clone()).or_else(|| asked.run.clone())
            && session.is_queued(&id).await?
        {
            let request = options.into_resume(&session, id)?;
            return Ok(self.started(RunDriver::take_up(&session, request, (None, None)).await?));
        }
        let resuming = async {
            match (snapshot, asked.run) {
                (Some(snapshot), _) => {
                    let id = snapshot.run.clone();
                    resume_snapshot(&session, snapshot, || options.into_resume(&session, id)).await
                }
                (None, Some(id)) => resume_run(&session, None, options.into_resume(&session, id)?).await,
                (None, None) => Err(Error::config("`resume` needs the id of a run, or a snapshot")),
            }
        };
        let run = RunDriver::launch(&session, resuming).await?;
        Ok(self.started(run))
    }

    fn started(&self, run: Rc<RunDriver>) -> wit::Outcome {
        let id = run.id.clone();
        self.runs.add(run, &self.effects);
        wit::Outcome::Run(id)
    }

    async fn list_sessions(&self, asked: wit::SessionQuery) -> Result<wit::Outcome> {
        let context = &self.store.context;
        // A host that does not know what is archived loses no session.
        let limit = limit_of(asked.limit);
        let query = RecencyQuery { channel: asked.channel, archived: None, cursor: asked.cursor, limit };
        let rows = recent_sessions(&*context.store, &query).await?;
        let mut items = String::new();
        let mut list = ArrayWriter::new(&mut items);
        for row in rows.items {
            let head = context.head(&row.id, &row.head).await?;
            list.object(|out| write_summary(out, &row.id, &head));
        }
        list.end();
        Ok(wit::Outcome::Page(wit::JsonPage { items, cursor: rows.cursor }))
    }

    async fn search(&self, asked: wit::SearchQuery) -> Result<wit::Outcome> {
        let limit =
            usize::try_from(asked.limit.map_or(DEFAULT_HITS, u64::from).clamp(1, MAX_HITS)).unwrap_or(usize::MAX);
        let query = RecencyQuery { channel: asked.channel, archived: None, cursor: asked.cursor, limit };
        let found = search_sessions(&self.store.context, &asked.text, &query).await?;
        let mut items = String::new();
        let mut list = ArrayWriter::new(&mut items);
        for hit in &found.items {
            list.object(|out| write_hit(out, hit));
        }
        list.end();
        Ok(wit::Outcome::Page(wit::JsonPage { items, cursor: found.cursor }))
    }
}

fn session_info(session: &OpenSession) -> wit::Outcome {
    let log = session.log.borrow();
    wit::Outcome::Session(wit::SessionInfo {
        id: session.id.clone(),
        revision: log.head.history_revision,
        title: log.head.title.clone(),
        channel: log.head.channel.clone(),
    })
}
