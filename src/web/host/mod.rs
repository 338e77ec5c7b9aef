//! The platform as a host of sessions: clock, ids, locks, timers, other tabs, and the application's functions.

pub mod answer_channel;
pub mod callbacks;
pub mod change_feed;
pub mod cipher;
pub mod listeners;
pub mod owned_runs;
pub mod platform;
pub mod surface;
pub mod tab_channel;
pub mod view_state;
pub mod web_host;
