//! Reads appends from packs where there are some, and writes packs.

use super::driver::KvDriver;
use super::load::MOST_AT_ONCE;
use super::pack::{PackName, manifest_key, open_manifest, open_pack, pack_prefix, seal_pack};
use super::packing::MIN_PACKED;
use super::stored_append::{AppendId, StoredAppend};
use super::write_once::{KEYS_IN_PAGE, WriteOnceStore};
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Appends that are read one by one rather than from packs.
const MAX_SINGLE_READS: usize = MIN_PACKED;

/// The most packs that are got at once. Each may have 8 MB.
const PACKS_AT_ONCE: usize = 4;

/// Number of unpacked appends from which an append itself writes a pack.
const MAX_UNPACKED: usize = 64;

/// The least time between two writes of a manifest, in milliseconds.
const MANIFEST_INTERVAL: u64 = 1000;

/// Appends that are still to be read, and what was read.
struct PackReader<'r> {
    session: &'r str,
    wanted: BTreeSet<AppendId>,
    found: Vec<(AppendId, StoredAppend)>,
}

impl PackReader<'_> {
    /// Takes the appends that are wanted out of a pack. A damaged one is read from its own key.
    fn take(&mut self, appends: &[(AppendId, Bytes)]) -> Result<()> {
        for (id, value) in appends {
            if !self.wanted.contains(id) {
                continue;
            }
            let append = StoredAppend::open(self.session, id, value)?;
            if !append.is_damaged {
                self.wanted.remove(id);
                self.found.push((id.clone(), append));
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.wanted.len() <= MAX_SINGLE_READS
    }
}

impl WriteOnceStore {
    /// Reads appends that are known to exist: from packs if they are many, else each by its key.
    ///
    /// # Errors
    /// `maybe_stale` if the service does not show one of them.
    pub(super) async fn get_appends(&self, session: &str, ids: Vec<AppendId>) -> Result<Vec<(AppendId, StoredAppend)>> {
        let mut reader = PackReader { session, wanted: ids.into_iter().collect(), found: Vec::new() };
        if !reader.is_done() {
            self.read_packs(&mut reader).await?;
        }
        let PackReader { wanted, mut found, .. } = reader;
        let wanted: Vec<_> = wanted.into_iter().collect();
        for ids in wanted.chunks(MOST_AT_ONCE) {
            let values = self.driver.get_many(ids.iter().map(|id| id.key(session)).collect()).await?;
            for (id, value) in ids.iter().zip(values) {
                let value = value.ok_or_else(|| self.stale_read())?;
                let append = StoredAppend::open(session, id, &value)?;
                if !append.is_damaged {
                    self.with_tree(session, |tree| tree.packed.add_single(id, value));
                }
                found.push((id.clone(), append));
            }
        }
        // Parents before children: the tree finds the parent of a damaged append among those before it.
        let mut appends = BTreeMap::new();
        appends.extend(found.into_iter().map(|(id, append)| (id, Box::new(append))));
        Ok(appends.into_iter().map(|(id, append)| (id, *append)).collect())
    }

    pub(super) fn stale_read(&self) -> Error {
        let name = self.driver.name();
        let message = format!(
            "the {name} store does not return an append that is known to exist; its reads are stale: try again in a minute"
        );
        Error::new(ErrorCode::MaybeStale, message)
    }

    /// Reads the packs that the manifest names; if they are not enough, those that a list has.
    async fn read_packs(&self, reader: &mut PackReader<'_>) -> Result<()> {
        let session = reader.session;
        let value = self.driver.get(manifest_key(session)).await?.map(|entry| entry.value);
        if let Some(manifest) = value.and_then(|value| open_manifest(session, &value)) {
            self.with_tree(session, |tree| tree.packed.add_manifest(&manifest));
            self.read_named(reader, manifest.packs).await?;
        }
        if reader.is_done() {
            return Ok(());
        }
        let (mut names, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.driver.list(&pack_prefix(session), cursor.as_deref(), KEYS_IN_PAGE).await?;
            names.extend(page.keys.iter().filter_map(|key| PackName::of_key(key)));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        if !names.is_empty() {
            self.with_tree(session, |tree| tree.packed.manifest_is_due = true);
        }
        self.read_named(reader, names).await
    }

    /// Reads packs, the largest first, as long as they may have an append that is wanted.
    async fn read_named(&self, reader: &mut PackReader<'_>, mut names: Vec<PackName>) -> Result<()> {
        let session = reader.session;
        names.sort_by_cached_key(|name| name.count as usize);
        names.reverse();
        let mut names = names.into_iter().peekable();
        while names.peek().is_some() && !reader.is_done() {
            let is_useful =
                |name: &PackName| reader.wanted.range(name.lowest_id()..).next().is_some_and(|id| name.spans(id));
            let chosen: Vec<_> = names.by_ref().filter(is_useful).take(PACKS_AT_ONCE).collect();
            if chosen.is_empty() {
                break;
            }
            let values = self.driver.get_many(chosen.iter().map(|name| name.key(session)).collect()).await?;
            for (name, value) in chosen.iter().zip(values) {
                let Some(appends) = value.and_then(|value| open_pack(session, &value)) else {
                    self.with_tree(session, |tree| tree.packed.drop_pack(name));
                    continue;
                };
                reader.take(&appends)?;
                let ids: Vec<_> = appends.into_iter().map(|(id, _)| id).collect();
                self.with_tree(session, |tree| tree.packed.add_pack(*name, &ids));
            }
        }
        Ok(())
    }

    /// Writes packs after an append if many appends are in none. Nothing depends on packs, so a failure is not one of
    /// the append: it is tried again after as many appends as are worth a pack.
    pub(super) async fn pack_if_due(&self, session: &str) {
        let is_due = self.with_tree(session, |tree| {
            tree.packed.unpacked_count() >= MAX_UNPACKED.max(tree.packed.failed_at.saturating_add(MIN_PACKED))
        });
        if is_due && self.write_packs(session).await.is_err() {
            self.with_tree(session, |tree| tree.packed.failed_at = tree.packed.unpacked_count());
        }
    }

    /// Writes the appends that are in no pack to packs, merges packs, and writes the manifest. No append is removed: a
    /// reader who does not find a pack reads them.
    ///
    /// # Errors
    /// The driver's own. What was written is used.
    pub(super) async fn write_packs(&self, session: &str) -> Result<()> {
        let limit = self.driver.limits().max_value_bytes;
        let released = self.with_tree(session, |tree| tree.packed.released());
        for ids in released.chunks(MOST_AT_ONCE) {
            let values = self.driver.get_many(ids.iter().map(|id| id.key(session)).collect()).await?;
            for (id, value) in ids.iter().zip(values) {
                let value = value.ok_or_else(|| self.stale_read())?;
                self.with_tree(session, |tree| tree.packed.restore(id, value));
            }
        }
        while self.with_tree(session, |tree| tree.packed.unpacked_count() >= MIN_PACKED) {
            let appends = self.with_tree(session, |tree| tree.packed.next_pack(limit));
            let ids: Vec<_> = appends.keys().cloned().collect();
            let Some((name, value)) = seal_pack(session, &appends, limit)? else {
                self.with_tree(session, |tree| tree.packed.drop_unpacked(&ids));
                continue;
            };
            self.driver.put(name.key(session), value).await?;
            self.with_tree(session, |tree| {
                tree.packed.add_pack(name, &ids);
                tree.packed.manifest_is_due = true;
                tree.packed.failed_at = 0;
            });
        }
        // Packs that this call replaces stay: a reader may have the manifest that names them.
        let mut removable = self.with_tree(session, |tree| tree.packed.replaced());
        if !self.merge_packs(session).await? {
            removable.clear();
        }
        if !self.write_manifest(session, &removable).await? {
            return Ok(());
        }
        for name in removable {
            self.driver.delete(name.key(session)).await?;
            self.with_tree(session, |tree| tree.packed.forget_replaced(&name));
        }
        Ok(())
    }

    /// Merges packs into larger ones. Returns true if any were merged.
    async fn merge_packs(&self, session: &str) -> Result<bool> {
        let limit = self.driver.limits().max_value_bytes;
        let mut has_merged = false;
        while let Some(names) = self.with_tree(session, |tree| tree.packed.next_merge(limit)) {
            let mut appends = BTreeMap::new();
            let keys: Vec<_> = names.iter().map(|name| name.key(session)).collect();
            let mut is_whole = true;
            for (name, value) in names.iter().zip(self.driver.get_many(keys).await?) {
                match value.and_then(|value| open_pack(session, &value)) {
                    Some(packed) => appends.extend(packed),
                    None => {
                        // Another process removed or damaged it.
                        self.with_tree(session, |tree| tree.packed.drop_pack(name));
                        is_whole = false;
                    }
                }
            }
            let Some((merged, value)) = (if is_whole { seal_pack(session, &appends, limit)? } else { None }) else {
                break;
            };
            self.driver.put(merged.key(session), value).await?;
            self.with_tree(session, |tree| tree.packed.replace(&names, merged));
            has_merged = true;
        }
        Ok(has_merged)
    }

    /// Writes the manifest, at most once a second: what it lacks then is in the next one, and in a list until then.
    /// It does not name the packs that are removed next. Returns true if it was written.
    async fn write_manifest(&self, session: &str, removable: &[PackName]) -> Result<bool> {
        let now = self.driver.timer().map(|timer| timer.now());
        let limit = self.driver.limits().max_value_bytes;
        let value = self.with_tree(session, |tree| {
            let is_early = |written: u64| now.is_some_and(|now| now < written.saturating_add(MANIFEST_INTERVAL));
            if !tree.packed.manifest_is_due || tree.packed.manifest_written_at.is_some_and(is_early) {
                return Ok(None);
            }
            tree.packed.manifest_written_at = now;
            tree.packed.seal_manifest(session, removable, limit)
        })?;
        let Some(value) = value else { return Ok(false) };
        self.driver.put_without_retry(manifest_key(session), value).await?;
        self.with_tree(session, |tree| tree.packed.manifest_is_due = false);
        Ok(true)
    }
}
