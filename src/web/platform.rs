//! What the platform gives: time, randomness, locks, a channel to other tabs. The only place that asks for them.

use super::convert::{function, member, set};
use super::foreign::{await_settled, items};
use super::platform_hold::PlatformHold;
use super::promise::{Work, deferred, in_background};
use crate::clock::{Clock, Ms};
use crate::error::Result;
use crate::id::IdSource;
use js_sys::{Function, Promise};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn random_values(bytes: &mut [u8]) -> std::result::Result<JsValue, JsValue>;
}

/// Drawn at once: a call to the platform costs more than the bytes.
const POOL: usize = 1024;

/// Random bytes; where the platform has none, the time and a count, which still differ.
fn entropy() -> [u8; 16] {
    thread_local! {
        // Not dropped: the thread lives as long as the page.
        static LEFT: ManuallyDrop<RefCell<Vec<u8>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    let drawn = LEFT.with(|left| {
        let mut left = left.borrow_mut();
        if left.len() < 16 {
            left.resize(POOL, 0);
            if random_values(&mut left).is_err() {
                left.clear();
            }
        }
        let rest = left.len().checked_sub(16)?;
        <[u8; 16]>::try_from(left.split_off(rest).as_slice()).ok()
    });
    drawn.unwrap_or_else(|| {
        let count = COUNT.with(|count| count.replace(count.get() + 1));
        let time = js_sys::Date::now().to_bits(); // proof: the adapter that may
        (u128::from(time) << 64 | u128::from(count)).to_le_bytes()
    })
}

/// A seed for maps.
pub fn seed() -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = entropy();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The time, from the application's `now` or the platform's.
pub struct PlatformClock(Option<Function>);

impl PlatformClock {
    /// Reads the option `now`.
    ///
    /// # Errors
    /// `invalid_input` when it is no function.
    pub fn from_options(options: &JsValue) -> Result<Self> {
        Ok(Self(function(options, "now")?))
    }
}

impl Clock for PlatformClock {
    fn now(&self) -> Ms {
        let own = self.0.as_ref().and_then(|now| now.call0(&JsValue::NULL).ok()).and_then(|now| now.as_f64());
        let now = own.filter(|now| now.is_finite() && *now >= 0.0).unwrap_or_else(js_sys::Date::now); // proof: the adapter that may
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let now = now as Ms;
        now
    }
}

/// Ids, from the application's `newId` or at random. They are drawn before a step, never in it: a callback may call back.
pub struct PlatformIds {
    own: Option<Function>,
    drawn: RefCell<VecDeque<String>>,
}

/// More than any step takes at once, calls of one answer included.
const DRAWN: usize = 64;

impl PlatformIds {
    /// Reads the option `newId`.
    ///
    /// # Errors
    /// `invalid_input` when it is no function.
    pub fn from_options(options: &JsValue) -> Result<Self> {
        Ok(Self { own: function(options, "newId")?, drawn: RefCell::new(VecDeque::new()) })
    }

    /// Draws ahead from the application's source.
    pub fn draw(&self) {
        let Some(own) = &self.own else { return };
        while self.drawn.borrow().len() < DRAWN {
            let Some(id) = own.call0(&JsValue::NULL).ok().and_then(|id| id.as_string()).filter(|id| !id.is_empty())
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
pub fn random_id() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    entropy()
        .iter()
        .map(|byte| char::from(LETTERS.get(usize::from(byte % 32)).copied().unwrap_or(b'0')))
        .collect::<String>()
}

/// A lock that is held until it is dropped; the platform lets go of it when the tab dies.
pub struct WebLock {
    release: Function,
    _hold: PlatformHold,
}

impl Drop for WebLock {
    fn drop(&mut self) {
        // Resolving a promise does not throw.
        let _ = self.release.call0(&JsValue::NULL);
    }
}

/// What came of asking for a lock.
pub enum LockOutcome {
    /// Held.
    Acquired(WebLock),
    /// Somebody else holds it.
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

/// Takes the lock of that name, if it is free.
pub async fn try_acquire_lock(name: &str) -> LockOutcome {
    let Some(locks) = locks() else { return LockOutcome::Unsupported };
    let Some(request) = method(&locks, "request") else { return LockOutcome::Unsupported };
    let ((held, Some(release)), (granted, Some(grant))) = (deferred(), deferred()) else {
        return LockOutcome::Unsupported;
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
        return LockOutcome::Unsupported;
    };
    // The request itself ends first where the lock is somebody else's, and where it is refused (an opaque origin).
    let first = Promise::race(&js_sys::Array::of2(&request, &granted));
    if JsFuture::from(first).await.is_ok_and(|granted| granted.is_truthy()) {
        LockOutcome::Acquired(WebLock { _hold: PlatformHold::new(release.clone()), release })
    } else {
        LockOutcome::HeldElsewhere
    }
}

/// Requests a lock without waiting for it. It is held from the time it is granted until the value is dropped.
pub fn request_lock(name: &str) -> Option<WebLock> {
    let locks = locks()?;
    let request = method(&locks, "request")?;
    let (held, release) = deferred();
    let callback = Closure::once_into_js(move |_: JsValue| -> JsValue { held.into() });
    let asked = request.call2(&locks, &JsValue::from_str(name), &callback).ok()?;
    // Where it is refused (an opaque origin), nobody can wait for it either.
    in_background(Box::pin(async move {
        let _ = await_settled(asked).await;
    }));
    let release = release?;
    Some(WebLock { _hold: PlatformHold::new(release.clone()), release })
}

/// Waits until no exclusive holder of the lock is left, without keeping it. Returns false if the platform has no locks.
pub fn wait_until_released(name: &str) -> Work<'_, bool> {
    Box::pin(async move {
        let Some(locks) = locks() else { return false };
        let Some(request) = method(&locks, "request") else { return false };
        let options = js_sys::Object::new();
        set(&options, "mode", &JsValue::from_str("shared"));
        let callback = Closure::once_into_js(|_: JsValue| JsValue::UNDEFINED);
        let Ok(asked) = request.call3(&locks, &JsValue::from_str(name), &options, &callback) else { return false };
        await_settled(asked).await.is_ok()
    })
}

/// Resolves after so many milliseconds; at once where the platform has no timers.
pub async fn sleep(ms: Ms) {
    let Some(timer) = method(&js_sys::global(), "setTimeout") else { return };
    let (over, Some(resolve)) = deferred() else { return };
    // Longer than a timer counts, it would fire at once.
    let ms = i32::try_from(ms).unwrap_or(i32::MAX);
    if timer.call2(&JsValue::UNDEFINED, &resolve, &JsValue::from(ms)).is_ok() {
        // A resolved promise does not fail.
        let _ = JsFuture::from(over).await;
    }
}

/// The names of all locks that are held, in any tab; none where the platform has no locks.
pub fn held_locks() -> Work<'static, Option<Vec<String>>> {
    Box::pin(async {
        let locks = locks()?;
        let asked = method(&locks, "query")?.call0(&locks).ok()?;
        let answer = await_settled(asked).await.ok()?;
        let held = items("the held locks", &member(&answer, "held"), u32::MAX).ok()??;
        Some(held.iter().filter_map(|lock| member(lock, "name").as_string()).collect())
    })
}
