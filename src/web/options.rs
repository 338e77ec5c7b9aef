//! Options, read with care: what is misspelt in type is refused, what is not built yet is refused rather than ignored.

use super::convert::{given, member, number, text};
use super::foreign::members;
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

/// One of several words, as the value that stands in its place.
pub fn word<T: Copy>(options: &JsValue, key: &str, words: &[&str], values: &[T]) -> Result<Option<T>> {
    Ok(place_of_word(options, key, words)?.and_then(|place| values.get(place)).copied())
}

fn place_of_word(options: &JsValue, key: &str, words: &[&str]) -> Result<Option<usize>> {
    let Some(given) = text(options, key)? else { return Ok(None) };
    let place = words.iter().position(|word| *word == given);
    if place.is_none() {
        return Err(Error::config(format!(
            "`{key}` is \"{}\", not \"{given}\"",
            joined(&mut words.iter().copied(), "\" or \"")
        )));
    }
    Ok(place)
}

/// Refuses any word but this one, which is the usual one.
pub fn only(options: &JsValue, key: &str, usual: &str, what: &str) -> Result<()> {
    match place_of_word(options, key, &[usual]) {
        Ok(_) => Ok(()),
        Err(_) => Err(unbuilt(what)),
    }
}

/// A freshness window.
pub fn window(options: &JsValue, key: &str) -> Result<Option<Window>> {
    match number(options, key)? {
        Some(ms) => Window::from_millis(ms).map(Some),
        None => Ok(None),
    }
}

/// Reads a `ReplayPolicy`.
fn policy(options: &JsValue, layer: &mut PolicyLayer) -> Result<()> {
    layer.freshness = window(options, "freshness")?;
    layer.error_freshness = window(options, "errorFreshness")?;
    layer.on_stale = word(options, "onStale", &["omit", "placeholder"], &[OnStale::Omit, OnStale::Placeholder])?;
    let units = [StaleUnit::Call, StaleUnit::Round, StaleUnit::Turn];
    layer.stale_unit = word(options, "staleUnit", &["call", "round", "turn"], &units)?;
    let dangling = [DanglingCalls::Synthesize, DanglingCalls::Omit];
    layer.dangling_calls = word(options, "danglingCalls", &["synthesize", "omit"], &dangling)?;
    let citations = [Citations::Off, Citations::Replay, Citations::Store];
    layer.citations = word(options, "citations", &["off", "replay", "store"], &citations)?;
    let tools = member(options, "toolFreshness");
    for (name, _) in members("`toolFreshness`", &tools)? {
        if let Some(window) = window(&tools, &name)? {
            layer.tool_freshness.insert(name, window);
        }
    }
    layer.reducers = super::reducers::reducers(options)?;
    Ok(())
}

/// The policy under `key`, empty where there is none.
pub fn policy_at(options: &JsValue, key: &str) -> Result<PolicyLayer> {
    let mut layer = PolicyLayer::default();
    if let Some(given) = given(options, key) {
        policy(&given, &mut layer)?;
    }
    Ok(layer)
}

/// `channels`: a policy each.
pub fn channels(options: &JsValue) -> Result<Sorted<String, PolicyLayer>> {
    let given = member(options, "channels");
    let mut channels = Sorted::new();
    for (name, _) in members("`channels`", &given)? {
        let layer = policy_at(&given, &name)?;
        channels.insert(name, layer);
    }
    Ok(channels)
}

/// `onStop`.
pub fn on_stop(options: &JsValue) -> Result<Option<OnStop>> {
    word(options, "onStop", &["discard", "keep"], &[OnStop::Discard, OnStop::Keep])
}
