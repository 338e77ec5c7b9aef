//! Values of earlier appends, of an encrypted store that keeps them.

use super::cipher::Cipher;
use super::frame::{head_place, record_place};
use super::{EncryptedStore, SealedValue, wrong_key};
use crate::error::Result;
use crate::store::{Batch, LogStore, RetainedAppend};

impl<C: Cipher> EncryptedStore<C> {
    /// Decrypts appends. One with a value that does not open counts as damaged, so that nothing is written over it.
    pub(super) async fn open_retained(&self, session: &str, appends: &mut [RetainedAppend]) -> Result<()> {
        for append in appends.iter_mut().filter(|append| !append.is_damaged) {
            let count = |append: &RetainedAppend| {
                let values = append.records.iter().map(|record| &record.value).chain([&append.head]);
                values.filter(|value| value.is_empty()).count()
            };
            let empty = count(append);
            let mut values = Vec::with_capacity(append.records.len() + 1);
            values.push(SealedValue { session, place: head_place(session), value: &mut append.head });
            values.extend(append.records.iter_mut().map(|record| {
                let place = record_place(session, record);
                SealedValue { session, place, value: &mut record.value }
            }));
            self.open_values(values).await?;
            append.is_damaged = count(append) != empty;
        }
        Ok(())
    }

    /// Encrypts appends that were changed.
    pub(super) async fn seal_retained(
        &self,
        session: &str,
        mut appends: Vec<RetainedAppend>,
    ) -> Result<Vec<RetainedAppend>> {
        if appends.is_empty() {
            return Ok(appends);
        }
        self.head(session).await?;
        let writing = self.keys.writing(session).ok_or_else(|| wrong_key(session))?;
        for append in &mut appends {
            let head = std::mem::take(&mut append.head);
            let mut batch = Batch { head, put: std::mem::take(&mut append.records), ..Batch::default() };
            self.seal_batch(session, &writing, &mut batch).await?;
            (append.head, append.records) = (batch.head, batch.put);
        }
        Ok(appends)
    }
}
