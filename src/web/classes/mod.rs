//! The classes of sessions and runs, as JavaScript sees them.

pub mod annotations;
pub mod answer;
pub mod append;
pub mod audit;
pub mod backup;
pub mod branches;
pub mod external;
pub mod message_page;
pub mod offered_effects;
pub mod open_store;
pub mod provider_hooks;
pub mod render;
pub mod restore;
pub mod rethread;
pub mod run;
pub mod session;
pub mod state_bag;
pub mod view;
