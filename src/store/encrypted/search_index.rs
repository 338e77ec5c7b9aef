//! The index of a search, with a key of its own, which a key of the application wraps.

use super::EncryptedStore;
use super::cipher::{Cipher, PlacedValue};
use super::frame::{Form, Frame, index_key_place, index_place};
use crate::store::{SearchIndexStore, StoreFuture};
use bytes::Bytes;

impl<C: Cipher> SearchIndexStore for EncryptedStore<C> {
    fn read_index(&self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let Some(store) = self.store.search_index_store() else { return Ok(None) };
            let Some(record) = store.read_index().await? else { return Ok(None) };
            // What cannot be opened, or has a replaced key, is rebuilt from the heads.
            let Form::Encrypted(Frame { wrapped, sealed }) = Form::of(&record) else { return Ok(None) };
            match self.cipher.unwrap_key(wrapped, index_key_place()).await? {
                Some(unwrapped) if unwrapped.rewrapped.is_none() => {
                    self.open_with(unwrapped.key, &index_place(), &sealed).await
                }
                _ => Ok(None),
            }
        })
    }

    fn write_index(&self, mark: u64, record: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let Some(store) = self.store.search_index_store() else { return Ok(false) };
            let (key, wrapped) = self.cipher.generate(index_key_place()).await?;
            let value = PlacedValue { key, place: index_place(), value: record };
            let sealed = self.cipher.seal(vec![value]).await?.into_iter().next();
            match sealed {
                Some(sealed) => store.write_index(mark, Frame { wrapped, sealed }.write()).await,
                None => Ok(false),
            }
        })
    }

    fn remove_index(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            match self.store.search_index_store() {
                Some(store) => store.remove_index().await,
                None => Ok(()),
            }
        })
    }
}
