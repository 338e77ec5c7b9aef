//! Options, read with care: what is misspelt in type is refused, what is not built yet is refused rather than ignored.

use super::convert::{given, member, members, number, text};
use crate::error::{Error, Result};
use crate::replay::{Citations, DanglingCalls, OnStale, PolicyLayer, StaleUnit};
use crate::run::OnStop;
use crate::sorted::Sorted;
use crate::text::joined;
use crate::tool::Window;
use wasm_bindgen::JsValue;

/// Refuses an option that would be ignored.
pub fn refuse(options: &JsValue, keys: &[&str]) -> Result<()> {
    match keys.iter().find(|key| given(options, key).is_some()) {
        Some(key) => Err(unbuilt(&format!("`{key}`"))),
        None => Ok(()),
    }
}

/// The error of something that a later version has.
pub fn unbuilt(what: &str) -> Error {
    Error::config(format!("{what} is not built in this version; leave it out (see the changelog for what is there)"))
}

/// One of several words.
pub fn word<T: Copy>(options: &JsValue, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
    let Some(given) = text(options, key)? else { return Ok(None) };
    match words.iter().find(|(word, _)| *word == given) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            Err(Error::config(format!(
                "`{key}` is {}, not \"{given}\"",
                joined(&mut words.iter().map(String::as_str), " or ")
            )))
        }
    }
}

/// A freshness window.
pub fn window(options: &JsValue, key: &str) -> Result<Option<Window>> {
    number(options, key)?.map(Window::from_millis).transpose()
}

/// A `ReplayPolicy`.
pub fn policy(options: &JsValue) -> Result<PolicyLayer> {
    let mut layer = PolicyLayer {
        freshness: window(options, "freshness")?,
        error_freshness: window(options, "errorFreshness")?,
        on_stale: word(options, "onStale", &[("omit", OnStale::Omit), ("placeholder", OnStale::Placeholder)])?,
        stale_unit: word(
            options,
            "staleUnit",
            &[("call", StaleUnit::Call), ("round", StaleUnit::Round), ("turn", StaleUnit::Turn)],
        )?,
        dangling_calls: word(
            options,
            "danglingCalls",
            &[("synthesize", DanglingCalls::Synthesize), ("omit", DanglingCalls::Omit)],
        )?,
        citations: word(
            options,
            "citations",
            &[("off", Citations::Off), ("replay", Citations::Replay), ("store", Citations::Store)],
        )?,
        ..PolicyLayer::default()
    };
    let tools = member(options, "toolFreshness");
    for (name, _) in members(&tools) {
        if let Some(window) = window(&tools, &name)? {
            layer.tool_freshness.insert(name, window);
        }
    }
    layer.reducers = super::reducers::reducers(options)?;
    Ok(layer)
}

/// The policy under `key`, empty where there is none.
pub fn policy_at(options: &JsValue, key: &str) -> Result<PolicyLayer> {
    given(options, key).map_or_else(|| Ok(PolicyLayer::default()), |value| policy(&value))
}

/// `channels`: a policy each.
pub fn channels(options: &JsValue) -> Result<Sorted<String, PolicyLayer>> {
    members(&member(options, "channels")).into_iter().map(|(name, value)| Ok((name, policy(&value)?))).collect()
}

/// `onStop`.
pub fn on_stop(options: &JsValue) -> Result<Option<OnStop>> {
    word(options, "onStop", &[("discard", OnStop::Discard), ("keep", OnStop::Keep)])
}
