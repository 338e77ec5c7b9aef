//! Reducers and `persist`: what the application plugged in is read, called, and its answer read. Nothing is borrowed meanwhile.

use super::convert::{flag, function, given, object_to_js, text, to_js, to_json, whole};
use super::foreign::{await_settled, items, member_of, string};
use super::options::word;
use super::promise::Work;
use super::rethread::callback_failed;
use crate::error::{Error, Result};
use crate::replay::{Callback, QuestionKind, Reducer, ReducerQuestion, ReducerReply};
use crate::run::{PersistQuestion, PersistReply};
use js_sys::{Array, Function, Uint8Array};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A function, and the object that it is a member of.
struct BoundFunction {
    this: JsValue,
    function: Function,
}

/// Functions that were given, each with a number of its own.
struct FunctionNumbers {
    next: u32,
    functions: Vec<(u32, Function)>,
}

impl FunctionNumbers {
    fn id(&mut self, function: &Function) -> u32 {
        if let Some((id, _)) = self.functions.iter().find(|(_, own)| own == function) {
            return *id;
        }
        if self.functions.len() >= MAX_NUMBERED_FUNCTIONS {
            self.functions.remove(0);
        }
        self.next += 1;
        self.functions.push((self.next, function.clone()));
        self.next
    }
}

/// How many functions are known again: by that, what one has counted is kept.
const MAX_NUMBERED_FUNCTIONS: usize = 32;

thread_local! {
    // Not dropped: the thread lives as long as the page.
    static FUNCTION_NUMBERS: ManuallyDrop<RefCell<FunctionNumbers>> = const { ManuallyDrop::new(RefCell::new(FunctionNumbers { next: 0, functions: Vec::new() })) };
}

/// The callback under `key`.
///
/// # Errors
/// `config_invalid` where it is no function.
pub fn callback(object: &JsValue, key: &str) -> Result<Option<Callback>> {
    let Some(function) = function(object, key).map_err(|error| Error::config(error.into_message()))? else {
        return Ok(None);
    };
    let id = FUNCTION_NUMBERS.with(|known| known.borrow_mut().id(&function));
    Ok(Some(Callback { id, hook: Rc::new(BoundFunction { this: object.clone(), function }) }))
}

fn needed(reducer: &JsValue, key: &str) -> Result<Callback> {
    callback(reducer, key)?.ok_or_else(|| Error::config(format!("the reducer has a function `{key}`")))
}

/// A whole number, at least `least`.
fn at_least(reducer: &JsValue, key: &str, least: u64) -> Result<u64> {
    let wrong = || Error::config(format!("`{key}` of a reducer is a whole number, at least {least}"));
    whole(reducer, key).ok().flatten().filter(|number| *number >= least).ok_or_else(wrong)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Reads `reducers`.
///
/// # Errors
/// `config_invalid`.
pub fn reducers(options: &JsValue) -> Result<Option<Vec<Reducer>>> {
    let Some(list) = given(options, "reducers") else { return Ok(None) };
    let list = items("`reducers`", &list, 1000).map_err(|error| Error::config(error.into_message()))?;
    let list = list.ok_or_else(|| Error::config("`reducers` is a list"))?;
    list.iter().map(read).collect::<Result<_>>().map(Some)
}

fn read(reducer: &JsValue) -> Result<Reducer> {
    Ok(match text(reducer, "type").ok().flatten().as_deref() {
        Some("message_count") => Reducer::MessageCount {
            count: size(at_least(reducer, "count", 1)?),
            keep_tools: given(reducer, "keepTools").is_none() || flag(reducer, "keepTools"),
            first_system_only: word(reducer, "systems", &["all", "first"], &[false, true])?.unwrap_or(false),
        },
        Some("token_budget") => {
            Reducer::TokenBudget { tokens: at_least(reducer, "tokens", 1)?, count: callback(reducer, "count")? }
        }
        Some("sliding_turns") => Reducer::SlidingTurns { turns: size(at_least(reducer, "turns", 1)?) },
        Some("tool_results") => Reducer::ToolResults {
            keep_newest_turns: size(at_least(reducer, "keepNewestTurns", 0)?),
            max_bytes: u32::try_from(at_least(reducer, "maxBytes", 0)?).unwrap_or(u32::MAX),
        },
        Some("summarize") => Reducer::Summarize {
            target: size(at_least(reducer, "target", 1)?),
            threshold: if given(reducer, "threshold").is_some() { size(at_least(reducer, "threshold", 0)?) } else { 0 },
            summarize: needed(reducer, "summarize")?,
        },
        Some("custom") => Reducer::Custom { reduce: needed(reducer, "reduce")? },
        other => return Err(Error::config(format!("\"{}\" is no reducer", other.unwrap_or("nothing")))),
    })
}

fn call(callback: &Callback, arguments: &Array) -> std::result::Result<JsValue, JsValue> {
    match callback.hook.downcast_ref::<BoundFunction>() {
        Some(hook) => hook.function.apply(&hook.this, arguments),
        None => Err(JsValue::from_str("it is no function")),
    }
}

/// Asks the application a reducer's question.
pub fn ask_application(ask: &ReducerQuestion) -> Work<'_, ReducerReply> {
    Box::pin(ask_callback(ask))
}

async fn ask_callback(ask: &ReducerQuestion) -> ReducerReply {
    let argument: JsValue = match &ask.question {
        QuestionKind::Count(texts) => {
            let list = Array::new();
            for text in texts {
                list.push(&JsValue::from_str(text));
            }
            list.into()
        }
        QuestionKind::Summarize(body) => Uint8Array::from(body.as_slice()).into(),
        QuestionKind::Reduce(messages) => to_js(messages.view()),
    };
    let said = match call(&ask.callback, &Array::of1(&argument)) {
        Ok(said) => await_settled(said).await,
        Err(error) => Err(error),
    };
    match said {
        Ok(said) => read_answer(&ask.question, &said),
        Err(error) => ReducerReply::Failed(callback_failed("it threw", &error).into_message()),
    }
}

fn read_answer(question: &QuestionKind, said: &JsValue) -> ReducerReply {
    match question {
        QuestionKind::Count(texts) => {
            let most = u32::try_from(texts.len()).unwrap_or(u32::MAX);
            counts(said, most).map_or_else(|error| ReducerReply::Failed(error.into_message()), ReducerReply::Counts)
        }
        QuestionKind::Summarize(_) => match string("the summary", said) {
            Ok(Some(summary)) => ReducerReply::Summary(summary),
            Ok(None) => ReducerReply::Failed("it gave no text".into()),
            Err(error) => ReducerReply::Failed(error.into_message()),
        },
        QuestionKind::Reduce(_) => {
            to_json(said).map_or_else(|error| ReducerReply::Failed(error.into_message()), ReducerReply::Messages)
        }
    }
}

fn counts(said: &JsValue, most: u32) -> Result<Vec<u64>> {
    let none = || Error::invalid("it gave no list of numbers");
    let mut counts = Vec::new();
    for count in items("what it gave", said, most)?.ok_or_else(none)? {
        let number = count.as_f64().filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(none)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        counts.push(number.ceil() as u64);
    }
    Ok(counts)
}

/// Asks a tool's `persist`.
pub fn persist(ask: &PersistQuestion) -> PersistReply {
    let invocation = object_to_js(&|out| {
        out.text("name", &ask.name).json("arguments", ask.arguments.view());
    });
    let result = ask.result.as_ref().map_or(JsValue::UNDEFINED, |result| to_js(result.view()));
    let said = match call(&ask.callback, &Array::of2(&invocation, &result)) {
        Ok(said) => said,
        Err(error) => return PersistReply::Failed(callback_failed("it threw", &error).into_message()),
    };
    if said.is_null() {
        return PersistReply::Nothing;
    }
    let part = |key: &str| {
        let value = member_of(&said, key)?;
        (!value.is_undefined()).then(|| to_json(&value)).transpose()
    };
    match member_of(&said, "then") {
        Ok(then) if said.is_object() && !then.is_function() => {}
        Ok(_) => return PersistReply::Failed("it gave neither an object nor null, at once".into()),
        Err(error) => return PersistReply::Failed(error.into_message()),
    }
    match (part("arguments"), part("result")) {
        (Ok(arguments), Ok(result)) => match unknown_member(&said) {
            None => PersistReply::Replaced { arguments, result },
            Some(member) => PersistReply::Failed(format!(
                "it gave `{member}`, where `arguments` and `result` are expected; what it meant to replace is not known"
            )),
        },
        (Err(error), _) | (_, Err(error)) => PersistReply::Failed(error.into_message()),
    }
}

/// A member of the answer of `persist` that says nothing about what is stored: `args` for `arguments`, say, which would store the real
/// ones. What is no plain object has one, too.
fn unknown_member(said: &JsValue) -> Option<String> {
    let Ok(keys) = js_sys::Reflect::own_keys(said) else { return Some("what cannot be read".to_owned()) };
    let mut names = keys.iter().filter_map(|key| key.as_string());
    names.find(|name| !matches!(name.as_str(), "name" | "arguments" | "result"))
}
