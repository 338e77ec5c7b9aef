//! The interface `conformance`: the suite for stores, over a bucket of the host.

use super::super::Component;
use super::super::bindings::exports::rethread::history::conformance as wit;
use super::host::ComponentHost;
use super::keyvalue::open_bucket;
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use crate::store::conformance::{CHECKS, check_one};
use std::cell::RefCell;
use std::rc::Rc;

impl wit::Guest for Component {
    fn checks() -> Vec<String> {
        CHECKS.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn check(name: String, bucket: String, run: String, random: Vec<u8>) -> std::result::Result<(), wit::Error> {
        Ok(run_check(&name, bucket, run, &random)?)
    }
}

fn run_check(name: &str, bucket: String, run: String, random: &[u8]) -> Result<()> {
    let check = CHECKS.iter().find(|(known, _)| *known == name);
    let (name, check) = *check.ok_or_else(|| Error::invalid(format!("there is no check \"{name}\"")))?;
    let host = ComponentHost::new(true);
    host.random.mix(random)?;
    let (outcome, stores) = (Rc::new(RefCell::new(None)), host.clone());
    let ended = outcome.clone();
    host.executor.spawn(Box::pin(async move {
        let open = || -> StoreFuture<'static, _> {
            let store = open_bucket(&bucket, &stores);
            Box::pin(async move { store })
        };
        ended.replace(Some(check_one(&run, name, check, &open).await));
    }));
    loop {
        host.executor.run();
        if let Some(outcome) = outcome.take() {
            host.executor.clear();
            return outcome;
        }
        // Pauses between attempts are over at once.
        let Some(next) = host.executor.next_timer() else {
            host.executor.clear();
            return Err(Error::new(ErrorCode::Internal, "the check waits for something that never comes"));
        };
        host.executor.set_now(next);
    }
}
