//! `Rethread.backup` and `Rethread.restoreBackup`: the facade makes streams of them.

use crate::error::{Error, ErrorCode, Result};
use crate::run::ARCHIVE_DESCRIPTIONS;
use crate::session::{Backup, BackupRestore, OpenStore, StoreContext};
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::options::{BackupOptions, RestoreBackupOptions};
use crate::web::conversion::results::{RestoredBackupResult, result_to_js};
use crate::web::wire::report_to_js;
use js_sys::Promise;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A backup under way.
#[wasm_bindgen(js_name = Backup, skip_typescript)]
pub struct JsBackup {
    context: Rc<StoreContext>,
    /// None while a call is under way.
    inner: Rc<RefCell<Option<Backup>>>,
}

impl JsBackup {
    pub fn begin(open: Rc<OpenStore>, options: &JsValue) -> Result<Self> {
        let BackupOptions { after } = read_optional("the options", options)?;
        let context = open.context.clone();
        let backup = Backup::new(open, after, &ARCHIVE_DESCRIPTIONS);
        Ok(Self { context, inner: Rc::new(RefCell::new(Some(backup))) })
    }
}

#[wasm_bindgen(js_class = Backup)]
impl JsBackup {
    /// Resolves to the next part of the text; undefined after the last one.
    pub fn next(&self) -> Promise {
        let inner = self.inner.clone();
        self.context.promise(async move {
            let mut backup = inner.take().ok_or_else(under_way)?;
            let part = backup.next().await;
            inner.replace(Some(backup));
            Ok(part?.map_or(JsValue::UNDEFINED, Into::into))
        })
    }
}

/// A backup that is being restored.
#[wasm_bindgen(js_name = BackupRestore, skip_typescript)]
pub struct JsBackupRestore {
    context: Rc<StoreContext>,
    /// None while a call is under way, and after `end`.
    inner: Rc<RefCell<Option<BackupRestore>>>,
}

impl JsBackupRestore {
    pub fn begin(open: Rc<OpenStore>, options: &JsValue) -> Result<Self> {
        let RestoreBackupOptions { on_existing } = read_optional("the options", options)?;
        let context = open.context.clone();
        let restore = BackupRestore::new(open, on_existing.map(|option| option.0).unwrap_or_default());
        Ok(Self { context, inner: Rc::new(RefCell::new(Some(restore))) })
    }
}

#[wasm_bindgen(js_class = BackupRestore)]
impl JsBackupRestore {
    /// Restores the sessions that are complete with this part of the text.
    pub fn push(&self, text: String) -> Promise {
        let inner = self.inner.clone();
        self.context.promise(async move {
            let mut restore = inner.take().ok_or_else(under_way)?;
            let restored = restore.push(&text).await;
            inner.replace(Some(restore));
            restored.map(|()| JsValue::UNDEFINED)
        })
    }

    /// Resolves to what was restored.
    pub fn end(&self) -> Promise {
        let inner = self.inner.clone();
        self.context.promise(async move {
            let restore = inner.take().ok_or_else(under_way)?;
            let restored = restore.end().await?;
            Ok(result_to_js(&RestoredBackupResult {
                sessions: restored.sessions,
                skipped: restored.skipped,
                report: report_to_js(&restored.report),
            }))
        })
    }
}

fn under_way() -> Error {
    Error::new(ErrorCode::WrongState, "the backup's last part is still under way, or the backup has ended")
}
