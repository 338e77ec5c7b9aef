//! How open stores hear of each other's changes: tabs by a BroadcastChannel, processes by what their driver has.
//!
//! A notice is a hint. Whoever hears of a change reads the session again, and what nobody hears is read by `refresh`.

use super::tab_channel::TabChannel;
use crate::error::{Error, Result};
use crate::web::conversion::convert::{parse_json, set};
use crate::web::conversion::untrusted_value::{get, reason_of};
use crate::web::promise::{await_settled, in_background};
use crate::web::trap_cleanup::TrapCleanup;
use js_sys::{Function, JSON};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// The most bytes of a notice, PostgreSQL's limit of 8000 with room for what the platform adds.
const MAX_NOTICE_BYTES: usize = 7500;

/// A way to the other users of a store.
pub trait ChangeFeed {
    /// Begins to hear of the others' changes, if that has not begun yet. `on_failure` is called with a sentence if it
    /// cannot.
    fn listen(&self, on_failure: Box<dyn FnOnce(String)>);

    /// Tells the others of a change.
    fn publish(&self, change: &JsValue);

    /// Ends it.
    fn close(&self);
}

/// Tabs hear of each other from the time the channel is open.
impl ChangeFeed for TabChannel {
    fn listen(&self, _: Box<dyn FnOnce(String)>) {}

    fn publish(&self, change: &JsValue) {
        self.post(change);
    }

    fn close(&self) {
        TabChannel::close(self);
    }
}

/// Called with the change of another process, or null if any session may have changed.
pub type OnChange = Rc<dyn Fn(&JsValue)>;

/// A driver's `changes`.
pub struct DriverFeed {
    /// Names this open store in its notices.
    origin: String,
    object: JsValue,
    subscribe: Function,
    publish: Option<Function>,
    on_change: OnChange,
    subscription: Rc<Subscription>,
}

#[derive(Default)]
struct Subscription {
    began: Cell<bool>,
    closed: Cell<bool>,
    end: RefCell<Option<(Function, TrapCleanup)>>,
}

impl Subscription {
    fn close(&self) {
        self.closed.set(true);
        if let Some((end, _cleanup)) = self.end.take() {
            // What it fails with concerns nobody any more.
            let _ = end.call0(&JsValue::NULL);
        }
    }
}

/// What a driver says of its change feed.
pub struct DriverFeedMembers {
    object: JsValue,
    subscribe: Function,
    publish: Option<Function>,
}

impl DriverFeedMembers {
    /// Reads a driver's `changes`, if it has one.
    ///
    /// # Errors
    /// `config_invalid` if it is of another type.
    pub fn of_driver(driver: &JsValue) -> Result<Option<Self>> {
        let config = |error: Error| Error::config(error.into_message());
        let wrong = || {
            Error::config(
                "`store`: a driver's `changes` must be an object with the functions `subscribe` and `publish`",
            )
        };
        let object = get(driver, "changes").map_err(config)?;
        if object.is_undefined() || object.is_null() {
            return Ok(None);
        }
        if !object.is_object() {
            return Err(wrong());
        }
        let subscribe = get(&object, "subscribe").map_err(config)?.dyn_into().map_err(|_| wrong())?;
        let publish = get(&object, "publish").map_err(config)?;
        let publish = if publish.is_undefined() { None } else { Some(publish.dyn_into().map_err(|_| wrong())?) };
        Ok(Some(Self { object, subscribe, publish }))
    }
}

impl DriverFeed {
    /// A feed whose notices of others are given to `on_change`.
    pub fn new(members: DriverFeedMembers, origin: String, on_change: OnChange) -> Self {
        let DriverFeedMembers { object, subscribe, publish } = members;
        Self { origin, object, subscribe, publish, on_change, subscription: Rc::default() }
    }

    /// Returns the function that the driver calls with each notice. Notices of this open store are skipped.
    fn listener(&self) -> JsValue {
        let (origin, on_change, subscription) =
            (self.origin.clone(), self.on_change.clone(), self.subscription.clone());
        Closure::<dyn FnMut(JsValue)>::new(move |notice: JsValue| {
            if subscription.closed.get() {
                return;
            }
            let change = notice.as_string().filter(|text| text.len() <= MAX_NOTICE_BYTES);
            // A notice that cannot be read may be of a newer build: then any session may have changed.
            let change = change.and_then(|text| JSON::parse(&text).ok()).unwrap_or(JsValue::NULL);
            if get(&change, "from").ok().and_then(|from| from.as_string()).as_deref() != Some(origin.as_str()) {
                on_change(&change);
            }
        })
        .into_js_value()
    }
}

/// Returns the notice of a change. A session's id that is too long for it is left out: then all sessions are read
/// again.
pub fn notice_text(change: &JsValue, origin: &str) -> Option<String> {
    let text = |change: &JsValue| {
        set(change, "from", &JsValue::from_str(origin));
        JSON::stringify(change).ok().map(String::from)
    };
    let copy = parse_json(&String::from(JSON::stringify(change).ok()?));
    text(&copy).filter(|notice| notice.len() <= MAX_NOTICE_BYTES).or_else(|| text(&js_sys::Object::new().into()))
}

impl ChangeFeed for DriverFeed {
    fn listen(&self, on_failure: Box<dyn FnOnce(String)>) {
        let subscription = self.subscription.clone();
        if subscription.began.replace(true) {
            return;
        }
        let returned = self.subscribe.call1(&self.object, &self.listener());
        in_background(async move {
            let settled = match returned {
                Ok(returned) => await_settled(returned).await,
                Err(thrown) => Err(thrown),
            };
            match settled.map(JsCast::dyn_into::<Function>) {
                Ok(Ok(end)) => {
                    subscription.end.replace(Some((end.clone(), TrapCleanup::new(end))));
                    if subscription.closed.get() {
                        subscription.close();
                    }
                }
                Ok(Err(_)) => on_failure("its `subscribe` returned no function".into()),
                Err(thrown) => {
                    // The next listener tries again.
                    subscription.began.set(false);
                    on_failure(reason_of(&thrown));
                }
            }
        });
    }

    fn publish(&self, change: &JsValue) {
        let (Some(publish), Some(notice)) = (&self.publish, notice_text(change, &self.origin)) else { return };
        // Only a hint: whoever does not hear of the change reads it with `refresh`.
        if let Ok(returned) = publish.call1(&self.object, &JsValue::from_str(&notice)) {
            in_background(async move {
                let _ = await_settled(returned).await;
            });
        }
    }

    fn close(&self) {
        self.subscription.close();
    }
}
