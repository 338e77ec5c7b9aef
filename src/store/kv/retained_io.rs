//! Reads and replaces the values of earlier appends: the only case in which a written key is written again.
//!
//! An append stays the same in everything but records that later ones have replaced or removed, so it does not matter
//! which of its values a stale service shows. Packs repeat appends, so those that have an earlier value of one are
//! written anew.

use super::driver::KvDriver;
use super::load::MOST_AT_ONCE;
use super::pack::{PackName, open_pack, pack_prefix, seal_pack};
use super::stored_append::{AppendId, StoredAppend};
use super::write_once::WriteOnceStore;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Page, RetainedAppend};
use bytes::Bytes;
use std::collections::BTreeMap;

impl WriteOnceStore {
    /// Returns a page of the appends of a session, read from their own keys.
    pub(super) async fn read_retained(&self, session: &str, cursor: Option<&str>) -> Result<Page<RetainedAppend>> {
        self.refresh(session).await?;
        let after = cursor.and_then(AppendId::of_name);
        let (ids, history) = self.with_tree(session, |tree| {
            let floor = tree.floor();
            let is_next = |id: &&AppendId| id.revision >= floor && after.as_ref().is_none_or(|after| *id > after);
            let ids: Vec<_> = tree.ids().filter(is_next).take(MOST_AT_ONCE + 1).cloned().collect();
            (ids, tree.history())
        });
        let values = self.own_values(session, ids.get(..MOST_AT_ONCE).unwrap_or(&ids)).await?;
        let mut page = Page { items: Vec::new(), cursor: None };
        for (id, value) in values {
            let append = StoredAppend::open(session, &id, &value)?;
            page.items.push(RetainedAppend {
                id: id.name(),
                parent: append.parent.as_ref().map(AppendId::name),
                is_of_conflict: !history.contains(&id),
                is_damaged: append.is_damaged,
                head: append.batch.head,
                records: append.batch.replace,
            });
        }
        if ids.len() > MOST_AT_ONCE {
            page.cursor = page.items.last().map(|append| append.id.clone());
        }
        Ok(page)
    }

    async fn own_values(&self, session: &str, ids: &[AppendId]) -> Result<Vec<(AppendId, Bytes)>> {
        let values = self.driver.get_many(ids.iter().map(|id| id.key(session)).collect()).await?;
        ids.iter().cloned().zip(values).map(|(id, value)| Ok((id, value.ok_or_else(|| self.stale_read())?))).collect()
    }

    /// Writes appends with other records.
    pub(super) async fn write_retained(&self, session: &str, changed: Vec<RetainedAppend>) -> Result<()> {
        let limit = self.driver.limits().max_value_bytes;
        for RetainedAppend { id, head, records, .. } in changed {
            let unknown = || Error::new(ErrorCode::Internal, "no append of the session has this name");
            let id = AppendId::of_name(&id).ok_or_else(unknown)?;
            for (id, value) in self.own_values(session, std::slice::from_ref(&id)).await? {
                let mut append = StoredAppend::open(session, &id, &value)?;
                if !append.is_damaged {
                    (append.batch.head, append.batch.replace) = (head.clone(), records.clone());
                    self.driver.put(id.key(session), append.seal(session, limit)?).await?;
                }
            }
        }
        // What was read of the earlier values is read again, and what waits for a pack.
        self.with_tree(session, |tree| tree.drop_cached_values());
        Ok(())
    }

    /// Writes packs anew that have another value of an append than its own key.
    pub(super) async fn correct_packs(&self, session: &str) -> Result<()> {
        let limit = self.driver.limits().max_value_bytes;
        let names: Vec<_> =
            self.list(&pack_prefix(session)).await?.iter().filter_map(|key| PackName::of_key(key)).collect();
        let mut wrong = Vec::new();
        for name in names {
            let Some(value) = self.driver.get(name.key(session)).await?.map(|entry| entry.value) else { continue };
            let Some(packed) = open_pack(session, &value) else {
                // It repeats what its appends have, whatever it is.
                wrong.push(name);
                continue;
            };
            let (appends, is_same) = self.corrected(session, packed).await?;
            if is_same {
                continue;
            }
            if let Some((corrected, value)) = seal_pack(session, &appends, limit)? {
                self.driver.put(corrected.key(session), value).await?;
                let ids: Vec<_> = appends.into_keys().collect();
                self.with_tree(session, |tree| tree.packed.add_pack(corrected, &ids));
            }
            wrong.push(name);
        }
        if wrong.is_empty() {
            return Ok(());
        }
        self.with_tree(session, |tree| {
            for name in &wrong {
                tree.packed.drop_pack(name);
                tree.packed.forget_replaced(name);
            }
            tree.packed.manifest_is_due = true;
        });
        for name in wrong {
            self.driver.delete(name.key(session)).await?;
        }
        Ok(())
    }

    /// Returns the appends of a pack with the values of their own keys, and true if it has these.
    async fn corrected(
        &self,
        session: &str,
        packed: Vec<(AppendId, Bytes)>,
    ) -> Result<(BTreeMap<AppendId, Bytes>, bool)> {
        let (mut appends, mut is_same) = (BTreeMap::new(), true);
        for part in packed.chunks(MOST_AT_ONCE) {
            let values = self.driver.get_many(part.iter().map(|(id, _)| id.key(session)).collect()).await?;
            for ((id, known), own) in part.iter().zip(values) {
                // A key that a stale service does not show has not been written again.
                let own = own.unwrap_or_else(|| known.clone());
                let is_readable = StoredAppend::open(session, id, &own).is_ok_and(|append| !append.is_damaged);
                let value = if is_readable { own } else { known.clone() };
                is_same &= value == *known;
                appends.insert(id.clone(), value);
            }
        }
        Ok((appends, is_same))
    }
}
