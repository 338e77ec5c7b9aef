//! Platform services: clock, randomness, Web Locks and timers. No other file asks the platform for them.

use crate::clock::{Clock, Ms};
use crate::error::{Error, ErrorCode, Result};
use crate::id::IdSource;
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::{items, member};
use crate::web::promise::{await_settled, deferred, in_background};
use crate::web::trap_cleanup::TrapCleanup;
use js_sys::{Function, Promise};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Number of random bytes that are drawn at once: a call to the platform costs more than the bytes.
const POOL_BYTES: usize = 1024;

thread_local! {
    /// Random bytes that were drawn and not used yet. Never dropped: the thread lives as long as the page.
    static POOL: ManuallyDrop<RefCell<Vec<u8>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Takes 16 random bytes.
///
/// # Errors
/// `store_error` if the platform has no source of randomness.
fn random_bytes() -> Result<[u8; 16]> {
    let missing = || {
        Error::new(
            ErrorCode::StoreError,
            "this platform has no source of random numbers, which ids need: `globalThis.crypto.getRandomValues` is missing or fails",
        )
    };
    POOL.with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < 16 {
            let mut drawn = vec![0; POOL_BYTES];
            getrandom::fill(&mut drawn).map_err(|_| missing())?; // proof: the adapter that may
            *pool = drawn;
        }
        let rest = pool.len().saturating_sub(16);
        pool.split_off(rest).try_into().map_err(|_| missing())
    })
}

/// Draws a seed for maps.
///
/// # Errors
/// `store_error` if the platform has no source of randomness.
pub fn seed() -> Result<u64> {
    let [a, b, c, d, e, f, g, h, ..] = random_bytes()?;
    Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}

/// The clock: the option `now`, or the platform's.
pub struct PlatformClock(pub Option<Function>);

impl Clock for PlatformClock {
    fn now(&self) -> Ms {
        let given = self.0.as_ref().and_then(|now| now.call0(&JsValue::NULL).ok()).and_then(|now| now.as_f64());
        let now = given.filter(|now| now.is_finite() && *now >= 0.0).unwrap_or_else(js_sys::Date::now); // proof: the adapter that may
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let now = now as Ms;
        now
    }
}

/// The id source: the option `newId`, or random ids. `newId` is called before a step and never in it, since it may call
/// back.
pub struct PlatformIds {
    new_id: Option<Function>,
    drawn: RefCell<VecDeque<String>>,
}

/// Number of ids that are drawn ahead: more than a step takes, the calls of one answer included.
const DRAWN_AHEAD: usize = 64;

impl PlatformIds {
    /// Makes a source of ids that calls `new_id` if there is one.
    pub fn new(new_id: Option<Function>) -> Self {
        Self { new_id, drawn: RefCell::new(VecDeque::new()) }
    }

    /// Draws ids ahead from `newId`.
    pub fn draw(&self) {
        let Some(new_id) = &self.new_id else { return };
        while self.drawn.borrow().len() < DRAWN_AHEAD {
            let Some(id) = new_id.call0(&JsValue::NULL).ok().and_then(|id| id.as_string()).filter(|id| !id.is_empty())
            else {
                return;
            };
            self.drawn.borrow_mut().push_back(id);
        }
    }
}

impl IdSource for PlatformIds {
    fn new_id(&self) -> String {
        self.drawn.borrow_mut().pop_front().unwrap_or_else(random_id)
    }
}

/// Returns a random id, independent of the application's id source. Used where correctness requires a unique id.
///
/// Opening a store fails without randomness. If it is gone later, this throws and the instance stops, since any other
/// id could be another tab's.
pub fn random_id() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bytes = random_bytes().unwrap_or_else(|error| wasm_bindgen::throw_str(&error.message));
    let letter = |byte: &u8| char::from(LETTERS.get(usize::from(byte % 32)).copied().unwrap_or(b'0'));
    bytes.iter().map(letter).collect()
}

/// A Web Lock, held until this is dropped. The platform releases it when the tab dies.
pub struct WebLock {
    release: Function,
    _hold: TrapCleanup,
}

impl Drop for WebLock {
    fn drop(&mut self) {
        // Resolving a promise does not throw.
        let _ = self.release.call0(&JsValue::NULL);
    }
}

/// The outcome of a request for a lock.
pub enum WebLockOutcome {
    /// This tab holds it now.
    Acquired(WebLock),
    /// Another holder has it.
    HeldElsewhere,
    /// The platform has no locks.
    Unsupported,
}

fn locks() -> Option<JsValue> {
    Some(member(&member(&js_sys::global(), "navigator"), "locks")).filter(JsValue::is_object)
}

fn method(object: &JsValue, name: &str) -> Option<Function> {
    Some(member(object, name)).filter(JsValue::is_function).map(JsCast::unchecked_into)
}

/// Acquires the lock of that name if it is free.
pub async fn try_acquire_lock(name: &str) -> WebLockOutcome {
    let Some(locks) = locks() else { return WebLockOutcome::Unsupported };
    let Some(request) = method(&locks, "request") else { return WebLockOutcome::Unsupported };
    let ((held, Some(release)), (granted, Some(grant))) = (deferred(), deferred()) else {
        return WebLockOutcome::Unsupported;
    };
    let callback = Closure::once_into_js(move |lock: JsValue| -> JsValue {
        if lock.is_null() {
            return JsValue::UNDEFINED;
        }
        // Resolving a promise does not throw.
        let _ = grant.call1(&JsValue::NULL, &JsValue::TRUE);
        held.into()
    });
    let options = js_sys::Object::new();
    set(&options, "ifAvailable", &JsValue::TRUE);
    let Ok(request) = request.call3(&locks, &JsValue::from_str(name), &options, &callback) else {
        return WebLockOutcome::Unsupported;
    };
    // The request itself settles first if another holder has the lock, or if the origin is opaque and has no locks.
    let first = Promise::race(&js_sys::Array::of2(&request, &granted));
    if JsFuture::from(first).await.is_ok_and(|granted| granted.is_truthy()) {
        WebLockOutcome::Acquired(WebLock { _hold: TrapCleanup::new(release.clone()), release })
    } else {
        WebLockOutcome::HeldElsewhere
    }
}

/// Requests a lock without waiting for it. It is held from the time it is granted until the value is dropped.
pub fn request_lock(name: &str) -> Option<WebLock> {
    let locks = locks()?;
    let request = method(&locks, "request")?;
    let (held, release) = deferred();
    let callback = Closure::once_into_js(move |_: JsValue| -> JsValue { held.into() });
    let requested = request.call2(&locks, &JsValue::from_str(name), &callback).ok()?;
    // It is rejected on an opaque origin, where nobody can wait for it either.
    in_background(async move {
        let _ = await_settled(requested).await;
    });
    let release = release?;
    Some(WebLock { _hold: TrapCleanup::new(release.clone()), release })
}

/// Waits until no exclusive holder of the lock is left, without keeping it. Returns false if the platform has no locks.
pub async fn wait_until_released(name: &str) -> bool {
    let Some(locks) = locks() else { return false };
    let Some(request) = method(&locks, "request") else { return false };
    let options = js_sys::Object::new();
    set(&options, "mode", &JsValue::from_str("shared"));
    let callback = Closure::once_into_js(|_: JsValue| JsValue::UNDEFINED);
    let Ok(requested) = request.call3(&locks, &JsValue::from_str(name), &options, &callback) else { return false };
    await_settled(requested).await.is_ok()
}

/// Resolves after `ms` milliseconds. Returns false at once on a platform without timers. The timer does not
/// keep a Node process alive.
pub async fn sleep(ms: Ms) -> bool {
    wait_for_timer(ms, true).await
}

/// Waits for a random time of at most `longest` milliseconds. The timer keeps a Node process alive.
pub async fn random_pause(longest: Ms) {
    let [a, b, ..] = random_bytes().unwrap_or_default();
    wait_for_timer(u64::from(u16::from_le_bytes([a, b])) % longest.saturating_add(1), false).await;
}

async fn wait_for_timer(ms: Ms, may_exit: bool) -> bool {
    let Some(timer) = method(&js_sys::global(), "setTimeout") else { return false };
    let (over, Some(resolve)) = deferred() else { return false };
    // A timer with a longer time fires at once.
    let ms = i32::try_from(ms).unwrap_or(i32::MAX);
    let Ok(timer) = timer.call2(&JsValue::UNDEFINED, &resolve, &JsValue::from(ms)) else { return false };
    if let Some(unref) = method(&timer, "unref").filter(|_| may_exit) {
        // In Node it does not throw, and nowhere else is it there.
        let _ = unref.call0(&timer);
    }
    JsFuture::from(over).await.is_ok()
}

/// Returns the names of all locks that are held in any tab, and none if the platform has no locks.
pub async fn held_locks() -> Option<Vec<String>> {
    let locks = locks()?;
    let requested = method(&locks, "query")?.call0(&locks).ok()?;
    let answer = await_settled(requested).await.ok()?;
    let held = items("the held locks", &member(&answer, "held"), u32::MAX).ok()??;
    Some(held.iter().filter_map(|lock| member(lock, "name").as_string()).collect())
}
