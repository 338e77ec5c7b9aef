//! Backups: all sessions of a store as a text, and back (R59).

use super::archive::{read_archive, restore_archive};
use super::open_store::OpenStore;
use super::run_lock::acquire_run_lock;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, LimitedReport, Report, Severity};
use crate::store::{
    ArchiveDescriptions, BackupItem, BackupReader, BackupWriter, SessionArchive, SessionRow, check_lease, read_head,
};
use std::collections::VecDeque;
use std::rc::Rc;

/// Conflicts after which a session is not replaced.
const MAX_CONFLICTS: u32 = 20;

/// A backup under way. It holds the ids of a page of sessions, and one session at a time.
pub struct Backup {
    open: Rc<OpenStore>,
    descriptions: &'static ArchiveDescriptions,
    writer: BackupWriter,
    /// The session after which it begins, until that was listed.
    after: Option<String>,
    ids: VecDeque<String>,
    progress: Progress,
}

enum Progress {
    New,
    /// A page of sessions is to be listed: the first one, or that of a cursor.
    Listing(Option<String>),
    /// The last page was listed.
    Listed,
    Ended,
}

impl Backup {
    /// A backup of all sessions, or of those that the store lists after one.
    #[must_use]
    pub fn new(open: Rc<OpenStore>, after: Option<String>, descriptions: &'static ArchiveDescriptions) -> Self {
        Self {
            open,
            descriptions,
            writer: BackupWriter::default(),
            after,
            ids: VecDeque::new(),
            progress: Progress::New,
        }
    }

    /// Returns the next part of the text: the first line, a session, or the last line. None after that.
    ///
    /// A session that cannot be read has the error in its place, and a session that was deleted meanwhile is left out.
    ///
    /// # Errors
    /// `not_found` if there is no session to begin after; the store's own. The next call tries again.
    pub async fn next(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(id) = self.ids.pop_front() {
                if let Some(text) = self.read_session(id).await? {
                    return Ok(Some(text));
                }
                continue;
            }
            match &self.progress {
                Progress::New => {
                    self.progress = Progress::Listing(None);
                    return Ok(Some(BackupWriter::begin(self.after.as_deref())));
                }
                Progress::Listing(cursor) => {
                    let page = self.open.context.store.sessions(cursor.as_deref(), 0, None).await?;
                    self.progress = page.cursor.map_or(Progress::Listed, |cursor| Progress::Listing(Some(cursor)));
                    for SessionRow { id, .. } in page.items {
                        match &self.after {
                            Some(after) if *after == id => self.after = None,
                            Some(_) => {}
                            None => self.ids.push_back(id),
                        }
                    }
                }
                Progress::Listed => {
                    if let Some(after) = self.after.take() {
                        return Err(not_listed(&after));
                    }
                    self.progress = Progress::Ended;
                    return Ok(Some(self.writer.end()));
                }
                Progress::Ended => return Ok(None),
            }
        }
    }

    async fn read_session(&mut self, id: String) -> Result<Option<String>> {
        let open = self.open.session(&id);
        let archive = read_archive(&self.open.context, open.as_deref(), &id).await;
        let lines = match archive {
            Ok(archive) => Ok(archive.to_json_lines(self.descriptions)),
            Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
            Err(error) if is_of_one_session(error.code) => Err(error),
            Err(error) => {
                self.ids.push_front(id);
                return Err(error);
            }
        };
        Ok(Some(self.writer.session(&id, &lines)))
    }
}

fn not_listed(after: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("`after`: the store lists no session \"{after}\"; name another one that the backup has"),
    )
}

/// Returns true if other sessions of the store are not affected.
fn is_of_one_session(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::InvalidInput
            | ErrorCode::UnsupportedVersion
            | ErrorCode::CorruptRecord
            | ErrorCode::WrongKey
            | ErrorCode::TooLarge
            | ErrorCode::Conflict
            | ErrorCode::Busy
    )
}

/// What is done with a session of a backup whose id is stored already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExisting {
    /// The stored one stays. A restore that was interrupted is continued so.
    #[default]
    Skip,
    /// It takes the place of the stored one.
    Replace,
    /// It gets a new id.
    Copy,
}

/// What was restored of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredBackup {
    /// The number of sessions that were restored.
    pub sessions: u64,
    /// The number of sessions that were stored already.
    pub skipped: u64,
    /// The sessions that were not restored, and those that have another id.
    pub report: Report,
}

/// A backup that is being restored, a part of the text at a time.
pub struct BackupRestore {
    open: Rc<OpenStore>,
    on_existing: OnExisting,
    reader: BackupReader,
    sessions: u64,
    skipped: u64,
    report: LimitedReport,
}

impl BackupRestore {
    /// Begins to restore a backup.
    #[must_use]
    pub fn new(open: Rc<OpenStore>, on_existing: OnExisting) -> Self {
        let reader = BackupReader::default();
        Self { open, on_existing, reader, sessions: 0, skipped: 0, report: LimitedReport::default() }
    }

    /// Restores the sessions that are complete with this part, each in one append.
    ///
    /// # Errors
    /// Those of [`BackupReader::push`]; the store's own. Sessions before stay restored.
    pub async fn push(&mut self, text: &str) -> Result<()> {
        let items = self.reader.push(text)?;
        self.restore_items(items).await
    }

    /// Reads the end of the text, and returns what was restored.
    ///
    /// # Errors
    /// Those of [`BackupReader::end`], with what was restored in `details`.
    pub async fn end(mut self) -> Result<RestoredBackup> {
        let items = std::mem::take(&mut self.reader).end().map_err(|error| {
            error.with(|details| {
                details.number("sessions", self.sessions).number("skipped", self.skipped);
            })
        })?;
        self.restore_items(items).await?;
        Ok(RestoredBackup { sessions: self.sessions, skipped: self.skipped, report: self.report.into_report() })
    }

    async fn restore_items(&mut self, items: Vec<BackupItem>) -> Result<()> {
        for item in items {
            match item {
                BackupItem::Missing(what) => self.report(FindingCode::NotRestored, what),
                BackupItem::Session { id, lines } => match self.restore_session(&lines).await {
                    Err(error) if is_of_one_session(error.code) => {
                        let what = format!("session \"{id}\" of the backup is not restored: {}", error.message);
                        self.report(FindingCode::NotRestored, what);
                    }
                    restored => restored?,
                },
            }
        }
        Ok(())
    }

    fn report(&mut self, code: FindingCode, what: String) {
        let severity = if code == FindingCode::NotRestored { Severity::Error } else { Severity::Info };
        self.report.push(Finding::new(severity, code, what));
    }

    async fn restore_session(&mut self, lines: &str) -> Result<()> {
        let archive = SessionArchive::from_json_lines(lines)?;
        let context = &self.open.context;
        let id = archive.head.id.clone();
        if context.store.head(&id).await?.is_none() {
            restore_archive(context, archive, None).await?;
        } else {
            match self.on_existing {
                OnExisting::Skip => {
                    self.skipped += 1;
                    return Ok(());
                }
                OnExisting::Replace => self.replace_session(archive).await?,
                OnExisting::Copy => {
                    let copy = restore_archive(context, archive, Some(context.host.random_id())).await?;
                    let what = format!("session \"{id}\" is restored as \"{copy}\", since one of its id exists");
                    self.report(FindingCode::RestoredAsCopy, what);
                }
            }
        }
        self.sessions += 1;
        Ok(())
    }

    /// Restores a session in the place of the stored one, whose runs nobody drives.
    async fn replace_session(&self, archive: SessionArchive) -> Result<()> {
        let context = &self.open.context;
        let id = archive.head.id.clone();
        if self.open.session(&id).is_some_and(|session| session.has_live_run()) {
            return Err(Error::new(ErrorCode::Busy, "a run of the stored session is under way here; cancel it first"));
        }
        let operation = context.host.random_id();
        for attempt in 0..MAX_CONFLICTS {
            let Some(stored) = context.store.head(&id).await? else {
                return restore_archive(context, archive, None).await.map(drop);
            };
            let (head, _) = read_head(&*context.store, &id, &stored, context.settings.seed).await?;
            // Held until the session is replaced.
            let mut locks = Vec::with_capacity(head.runs.len());
            for run in &head.runs {
                check_lease(run, context.now())?;
                locks.push(acquire_run_lock(context, &id, &run.id).await?);
            }
            let name = format!("{operation}.{attempt}");
            let replaced = archive.clone().replace(&*context.store, &stored, (&name, context.notice_of(&id))).await?;
            if let Some(revision) = replaced {
                self.open.on_change_elsewhere(&id);
                context.announce_append(&id, revision);
                return Ok(());
            }
        }
        Err(Error::new(ErrorCode::Busy, "other writers keep changing the stored session; try again in a moment"))
    }
}
