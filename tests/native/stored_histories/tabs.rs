//! Tabs that have one session open, each as old as it happens to be: all of them come to hold what the store holds.

use super::kept::provider;
use super::{Ids, Piece};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::Seed;
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::Policy;
use rethread::store::{Change, MemoryStore, SessionLog, commit, open_session, refresh};
use serde_json::Value;
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A memory store never waits.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store made somebody wait"),
    }
}

/// What a tab does.
#[derive(Clone, Debug)]
pub enum Act {
    Append(Piece),
    Refresh,
    Reopen,
    Render(usize),
}

struct Tab {
    log: RefCell<SessionLog>,
    renderer: Renderer,
    generation: u64,
    ids: Ids,
}

fn open(store: &MemoryStore, seed: u64) -> RefCell<SessionLog> {
    RefCell::new(now_or_never(open_session(store, "s", Seed(seed), 1)).unwrap())
}

impl Tab {
    fn body(&mut self, dialect: Dialect, policy: &Policy) -> String {
        let log = self.log.borrow();
        // As the bindings do it: what was begun anew has no kept encodings.
        if std::mem::replace(&mut self.generation, log.generation) != log.generation {
            self.renderer.clear();
        }
        body(&mut self.renderer, &log.history, dialect, policy)
    }
}

fn body(renderer: &mut Renderer, history: &History, dialect: Dialect, policy: &Policy) -> String {
    let provider = provider(dialect);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
    String::from_utf8(renderer.render(history, None, &request, 1_000_000).unwrap().body).unwrap()
}

/// Everything that a history holds, joined.
fn held(history: &History) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        history.messages().to_vec(),
        history.invocations().to_vec(),
        history.set_aside().to_vec(),
        history.open_calls().map(|call| call.id.clone()).collect::<Vec<_>>(),
        history.with_sources().to_vec(),
        history.highest_source(),
    )
}

/// Runs what the tabs do; then all of them, and one that opens the session now, hold the same and send the same.
pub fn check_tabs(acts: &[(usize, Act)], policy: &Policy) -> Result<(), TestCaseError> {
    let store = MemoryStore::default();
    let mut tabs: Vec<Tab> = (0..3)
        .map(|tab| {
            let log = open(&store, u64::from(tab));
            let generation = log.borrow().generation;
            Tab { log, renderer: Renderer::default(), generation, ids: Ids::new(tab) }
        })
        .collect();
    for (at, (tab, act)) in acts.iter().enumerate() {
        let tab = &mut tabs[*tab];
        match act {
            Act::Append(piece) => {
                let text = Value::from(piece.list.clone()).to_string();
                let items = decode_body(piece.dialect, JsonRef::parse(&text).unwrap()).unwrap();
                let origin =
                    Origin { at: piece.at, run_id: piece.run.then(|| format!("run{at}")), ..Origin::default() };
                let entries = join(JoinBase::history(&tab.log.borrow().history), items, &origin, &tab.ids).entries;
                let change = Change { operation: format!("o{at}"), at: piece.at, entries, ..Change::default() };
                now_or_never(commit(&store, &tab.log, &change)).unwrap();
                // Its own write is there at once, in its own memory as in the store.
                let stored = open(&store, 9);
                prop_assert_eq!(held(&tab.log.borrow().history), held(&stored.borrow().history));
            }
            Act::Refresh => {
                now_or_never(refresh(&store, &tab.log)).unwrap();
            }
            Act::Reopen => {
                tab.log = open(&store, 7);
                tab.renderer = Renderer::default();
                tab.generation = tab.log.borrow().generation;
            }
            Act::Render(dialect) => {
                let own = tab.body(Dialect::ALL[*dialect], policy);
                let log = tab.log.borrow();
                prop_assert_eq!(own, body(&mut Renderer::default(), &log.history, Dialect::ALL[*dialect], policy));
            }
        }
    }
    let whole = open(&store, 9);
    for tab in &mut tabs {
        now_or_never(refresh(&store, &tab.log)).unwrap();
        prop_assert_eq!(held(&tab.log.borrow().history), held(&whole.borrow().history));
        prop_assert_eq!(&tab.log.borrow().head, &whole.borrow().head);
        for dialect in Dialect::ALL {
            let new = body(&mut Renderer::default(), &whole.borrow().history, dialect, policy);
            prop_assert_eq!(tab.body(dialect, policy), new);
        }
    }
    Ok(())
}
