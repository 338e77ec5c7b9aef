//! The class `Session`.

use super::audit::invocations;
use super::branches::branches_to_js;
use super::message_page::messages;
use super::provider_hooks::ProviderHooks;
use super::render::render;
use super::run::JsRun;
use super::state_bag::JsStateBag;
use super::view::JsSessionView;
use crate::error::{Error, Result};
use crate::options::{CompactOptions, RunOptions, UpdateFields};
use crate::run::RunSnapshot;
use crate::session::{
    OpenSession, RunDriver, branches, clear, compact, delete_messages, discard_run, fork, mark_read, read_archive,
    resume_run, resume_snapshot, switch_to,
};
use crate::web::conversion::convert::parse_json;
use crate::web::conversion::option_reader::{read_optional, read_options};
use crate::web::conversion::options::DiscardOptions;
use crate::web::conversion::results::{
    CompactResult, ErasureResult, ForkResult, OwnerResult, RevisionResult, result_to_js,
};
use crate::web::conversion::run_input::JsOptions;
use crate::web::conversion::untrusted_value;
use crate::web::promise::promise;
use js_sys::{Function, Promise, Uint8Array};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// An open session.
#[wasm_bindgen(js_name = Session, skip_typescript)]
pub struct JsSession {
    pub(super) inner: Rc<OpenSession>,
}

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Its id.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.inner.id.clone()
    }

    /// The revision of its history, as far as it is known here: 0 until something is in it.
    #[wasm_bindgen(getter)]
    pub fn revision(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let revision = self.inner.log.borrow().head.history_revision as f64;
        revision
    }

    /// Who owns the conversation's state.
    #[wasm_bindgen(getter)]
    pub fn owner(&self) -> std::result::Result<JsValue, JsValue> {
        Ok(result_to_js(&OwnerResult::from(self.inner.owner()?)))
    }

    /// The branch that is shown.
    #[wasm_bindgen(getter)]
    pub fn branch(&self) -> String {
        self.inner.branch_name()
    }

    /// Creates a branch after a message, or one that shares nothing. Gives its name.
    pub fn fork(&self, after: Option<String>) -> Promise {
        let inner = self.inner.clone();
        let turn = inner.writes.enter();
        self.inner.context.promise(async move {
            let _turn = turn.start().await;
            let branch = fork(&inner, after.as_deref()).await?;
            Ok(result_to_js(&ForkResult { branch }))
        })
    }

    /// Shows another branch.
    #[wasm_bindgen(js_name = switchTo)]
    pub fn switch_to(&self, branch: String) -> Promise {
        let inner = self.inner.clone();
        let turn = inner.writes.enter();
        self.inner.context.promise(async move {
            let _turn = turn.start().await;
            switch_to(&inner, &branch).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Lists the session's branches.
    pub fn branches(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move { Ok(branches_to_js(branches(&inner).await?)) })
    }

    /// Its title.
    #[wasm_bindgen(getter)]
    pub fn title(&self) -> Option<String> {
        self.inner.log.borrow().head.title.clone()
    }

    /// Its state bag.
    #[wasm_bindgen(getter)]
    pub fn state(&self) -> JsStateBag {
        JsStateBag::of(self.inner.clone())
    }

    /// Changes title, channel or metadata.
    pub fn update(&self, fields: JsValue) -> Promise {
        let inner = self.inner.clone();
        let turn = inner.writes.enter();
        promise(async move {
            let _turn = turn.start().await;
            let fields: UpdateFields<JsOptions> = read_options("what is to change", &fields)?;
            let edit = fields.into_edit()?;
            inner.update(edit).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Counts as read what it has now.
    #[wasm_bindgen(js_name = markRead)]
    pub fn mark_read(&self) -> Promise {
        let inner = self.inner.clone();
        let mark = inner.log.borrow().read_mark();
        self.inner.context.promise(async move {
            if let Some(mark) = mark {
                mark_read(&inner, mark).await?;
            }
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Writes the state bag now.
    pub fn save(&self) -> Promise {
        let inner = self.inner.clone();
        let turn = inner.writes.enter();
        promise(async move {
            let _turn = turn.start().await;
            inner.context.host.draw_ids();
            inner.commit(inner.new_change()).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// A page of messages, the newest first, in order within it.
    pub fn messages(&self, options: JsValue) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move { messages(&inner, &options).await })
    }

    /// For a page on screen. One a session.
    pub fn view(&self) -> JsSessionView {
        JsSessionView::of(self.inner.clone())
    }

    /// The audit rows of this session.
    pub fn invocations(&self, query: JsValue) -> Promise {
        invocations(&self.inner.context, query, Some(self.inner.id.clone()))
    }

    /// The next request's body.
    pub fn render(&self, request: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { provide, .. } = ProviderHooks::read(hooks);
        self.inner.context.promise(async move { render(&inner, &request, provide.as_ref()).await })
    }

    /// Starts a run.
    pub fn run(&self, request: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let hooks = ProviderHooks::read(hooks);
        self.inner.context.promise(async move {
            let options: RunOptions<JsOptions> = read_options("a run's request", &request)?;
            let waits = options.waits_if_busy();
            let read = |id| options.into_new_run(&inner, id, (hooks.provide, hooks.store));
            Ok(JsRun::of(RunDriver::send(&inner, waits, read).await?).into())
        })
    }

    /// Runs that were cut off, failed, or live in another tab.
    #[wasm_bindgen(js_name = pendingRuns)]
    pub fn pending_runs(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move { Ok(parse_json(&inner.pending_runs().await?)) })
    }

    /// Continues a run that was cut off.
    pub fn resume(&self, run: JsValue, request: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { provide, store } = ProviderHooks::read(hooks);
        self.inner.context.promise(async move {
            let snapshot = untrusted_value::bytes("the snapshot", &run)?;
            let options: RunOptions<JsOptions> = read_options("a run's request", &request)?;
            if options.input.is_some() {
                return Err(Error::config("`input` is not an option of `resume`: the run has its input already"));
            }
            let snapshot = match snapshot {
                Some(bytes) => Some(RunSnapshot::open(&bytes.into(), &inner.id)?),
                None => None,
            };
            if let Some(id) = snapshot.as_ref().map(|snapshot| snapshot.run.clone()).or_else(|| run.as_string())
                && inner.is_queued(&id).await?
            {
                let request = options.into_resume(&inner, id)?;
                return Ok(JsRun::of(RunDriver::take_up(&inner, request, (provide, store)).await?).into());
            }
            let resuming = async {
                let run = match (snapshot, run.as_string()) {
                    (Some(snapshot), _) => {
                        let id = snapshot.run.clone();
                        resume_snapshot(&inner, snapshot, || options.into_resume(&inner, id)).await?
                    }
                    (None, Some(id)) => resume_run(&inner, None, options.into_resume(&inner, id)?).await?,
                    (None, None) => {
                        return Err(Error::config("the first argument of `resume` must be a run's id or a snapshot"));
                    }
                };
                run.store_hook.replace(store);
                Ok(run)
            };
            Ok(JsRun::of(RunDriver::launch(&inner, resuming).await?).into())
        })
    }

    /// Gives a cut-off run up.
    pub fn discard(&self, run: String, options: JsValue, hooks: &JsValue) -> Promise {
        let inner = self.inner.clone();
        let ProviderHooks { store, .. } = ProviderHooks::read(hooks);
        self.inner.context.promise(async move {
            let options: DiscardOptions = read_optional("the options", &options)?;
            let content = discard_run(&inner, &run, options.keep).await?;
            inner.notify();
            inner.give_to_providers(store.as_ref(), &content).await;
            inner.run_deferred_compaction();
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Shortens what the model is shown.
    pub fn compact(&self, options: JsValue) -> Promise {
        let inner = self.inner.clone();
        let options: Result<CompactOptions<JsOptions>> = read_options("the options of `compact`", &options);
        self.inner.context.promise(async move {
            let outcome = compact(&inner, options?.into_request()?).await?;
            Ok(result_to_js(&CompactResult::from(outcome)))
        })
    }

    /// Erases messages with their calls.
    #[wasm_bindgen(js_name = deleteMessages)]
    pub fn delete_messages(&self, ids: JsValue) -> Promise {
        let inner = self.inner.clone();
        let ids: Result<Vec<String>> = read_options("the ids of the messages", &ids);
        self.inner.context.promise(async move {
            let receipt = delete_messages(&inner, &ids?).await?;
            Ok(result_to_js(&ErasureResult::from(receipt)))
        })
    }

    /// Removes its messages, calls and pending runs.
    pub fn clear(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move {
            clear(&inner).await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Returns the whole session as bytes.
    pub fn serialize(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move {
            let archive = read_archive(&inner.context, Some(&inner), &inner.id).await?;
            Ok(Uint8Array::from(archive.seal().as_ref()).into())
        })
    }

    /// Reads what others appended.
    pub fn refresh(&self) -> Promise {
        let inner = self.inner.clone();
        self.inner.context.promise(async move {
            if inner.refresh().await? {
                inner.notify();
            }
            let revision = inner.log.borrow().head.history_revision;
            Ok(result_to_js(&RevisionResult { revision }))
        })
    }

    /// Called after each change, here or in another tab. Gives the function that ends it.
    pub fn subscribe(&self, listener: Function) -> Function {
        self.inner.subscribe(listener)
    }
}
