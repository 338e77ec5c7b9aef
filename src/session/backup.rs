//! Backups: all sessions of a store as a text, and back (R59).

use super::archive::{read_archive_and_damage, restore_archive};
use super::open_store::OpenStore;
use super::run_lock::acquire_run_lock;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode, LimitedReport, Report};
use crate::session_head::SessionHead;
use crate::store::{
    ArchiveDescriptions, BackupItem, BackupReader, BackupWriter, RecordKind, SessionArchive, SessionRow, check_lease,
    open_record, read_head,
};
use std::collections::{BTreeSet, VecDeque};
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
        let context = &self.open.context;
        let open = self.open.session(&id).filter(|session| !session.is_deleted());
        let exported = match read_archive_and_damage(context, open.as_deref(), &id).await {
            Ok((archive, damage)) => Ok((archive.to_json_lines(self.descriptions), damage)),
            Err(error) if error.code == ErrorCode::NotFound && context.store.head(&id).await?.is_none() => {
                return Ok(None);
            }
            Err(error) if is_of_one_session(error.code) => Err(error),
            Err(error) => {
                self.ids.push_front(id);
                return Err(error);
            }
        };
        Ok(Some(self.writer.session(&id, &exported)))
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
            // Made anew while it was read.
            | ErrorCode::NotFound
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
    /// The sessions that were not restored, and after them those that have another id.
    pub report: Report,
}

/// A backup that is being restored, a part of the text at a time.
pub struct BackupRestore {
    open: Rc<OpenStore>,
    on_existing: OnExisting,
    reader: BackupReader,
    sessions: u64,
    skipped: u64,
    /// The sessions that were not restored.
    lost: LimitedReport,
    /// Those that have another id.
    copies: LimitedReport,
    /// The ids of the sessions that were restored. One that comes again, in a backup that was continued, is the same.
    restored: BTreeSet<String>,
}

impl BackupRestore {
    /// Begins to restore a backup.
    #[must_use]
    pub fn new(open: Rc<OpenStore>, on_existing: OnExisting) -> Self {
        Self {
            open,
            on_existing,
            reader: BackupReader::default(),
            sessions: 0,
            skipped: 0,
            lost: LimitedReport::default(),
            copies: LimitedReport::default(),
            restored: BTreeSet::new(),
        }
    }

    /// Restores the sessions that are complete with this part, each in one append.
    ///
    /// # Errors
    /// Those of [`BackupReader::push`]; the store's own. Sessions before stay restored.
    pub async fn push(&mut self, text: &str) -> Result<()> {
        let mut items = Vec::new();
        let read = self.reader.push(text, &mut items);
        self.restore_items(items).await?;
        read
    }

    /// Reads the end of the text, and returns what was restored.
    ///
    /// # Errors
    /// Those of [`BackupReader::end`], with what was restored in `details`.
    pub async fn end(mut self) -> Result<RestoredBackup> {
        let mut items = Vec::new();
        let read = std::mem::take(&mut self.reader).end(&mut items);
        self.restore_items(items).await?;
        self.lost.append(self.copies);
        let report = self.lost.into_report();
        match read {
            Ok(()) => Ok(RestoredBackup { sessions: self.sessions, skipped: self.skipped, report }),
            Err(error) => Err(error.with(|details| {
                details.number("sessions", self.sessions).number("skipped", self.skipped).array("report", |list| {
                    report.iter().for_each(|finding| list.object(|out| finding.write(out)));
                });
            })),
        }
    }

    async fn restore_items(&mut self, items: Vec<BackupItem>) -> Result<()> {
        for item in items {
            match item {
                BackupItem::Missing(what) => self.report_lost(what),
                BackupItem::Session { id, lines, damage } => {
                    match self.restore_session(&id, &lines, damage.as_deref()).await {
                        Err(error) if is_of_one_session(error.code) => {
                            let reason = &error.message;
                            self.report_lost(format!("session \"{id}\" of the backup is not restored: {reason}"));
                        }
                        restored => restored?,
                    }
                }
            }
        }
        Ok(())
    }

    fn report_lost(&mut self, what: String) {
        self.lost.push(Finding::error(FindingCode::NotRestored, what));
    }

    async fn restore_session(&mut self, id: &str, lines: &str, damage: Option<&str>) -> Result<()> {
        if self.restored.contains(id) {
            return Ok(());
        }
        let archive = SessionArchive::from_json_lines(lines)?;
        if archive.head.id != id {
            let other = &archive.head.id;
            return Err(Error::invalid(format!("its lines are those of a session \"{other}\"; nothing was stored")));
        }
        let context = &self.open.context;
        if context.store.head(id).await?.is_none() {
            restore_archive(context, archive, None).await?;
        } else {
            match self.on_existing {
                OnExisting::Skip => {
                    self.skipped += 1;
                    return Ok(());
                }
                OnExisting::Replace if damage.is_some() => {
                    return Err(Error::invalid("it was damaged when the backup was made; the stored one is kept"));
                }
                OnExisting::Replace => self.replace_session(archive).await?,
                OnExisting::Copy => {
                    let copy = restore_archive(context, archive, Some(context.host.random_id())).await?;
                    let what = format!("session \"{id}\" is restored as \"{copy}\", since one of its id exists");
                    self.copies.push(Finding::info(FindingCode::RestoredAsCopy, what));
                }
            }
        }
        if let Some(damage) = damage {
            self.report_lost(format!(
                "a part of session \"{id}\" could not be read when the backup was made: {damage}"
            ));
        }
        self.restored.insert(id.to_owned());
        self.sessions += 1;
        Ok(())
    }

    /// Restores a session in the place of the stored one, whose runs nobody drives.
    async fn replace_session(&self, archive: SessionArchive) -> Result<()> {
        let context = &self.open.context;
        let id = archive.head.id.clone();
        if self.open.session(&id).is_some_and(|session| session.is_run_active()) {
            return Err(Error::new(ErrorCode::Busy, "a run of the stored session is under way here; cancel it first"));
        }
        let operation = context.host.random_id();
        for attempt in 0..MAX_CONFLICTS {
            let Some(stored) = context.store.head(&id).await? else {
                return restore_archive(context, archive, None).await.map(drop);
            };
            // Of a newer build: rebuilt, it would lack what that has stored.
            if let Err(error) = open_record::<SessionHead>(RecordKind::Head, &stored.value)
                && error.code == ErrorCode::UnsupportedVersion
            {
                return Err(error);
            }
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
