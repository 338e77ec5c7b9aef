//! Calls functions of the application: those of reducers, `summarize` of `compact`, `inputFilter`, `persist` and
//! `needsApproval` of a tool, `approveUnsafeReplay` and `titleSession`. Nothing is borrowed while one is called.

use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::json::Json;
use crate::options::CallbackNumbers;
use crate::render::BodyFilterReply;
use crate::replay::{Callback, QuestionKind, ReducerQuestion, ReducerReply};
use crate::run::{ApprovalQuestion, ApprovalReply, BodyFilterQuestion, PersistQuestion, PersistReply, ReplayQuestion};
use crate::web::conversion::convert::{object_to_js, to_js, to_json};
use crate::web::conversion::option_reader::BoundFunction;
use crate::web::conversion::untrusted_value::{callback_failed, get, items, reason_of, string};
use crate::web::promise::await_settled;
use js_sys::{Array, Function, Uint8Array};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Maximum number of warnings of the providers of one run.
const MAX_WARNINGS: u32 = 1000;

thread_local! {
    // Never dropped: the thread lives as long as the page.
    static FUNCTION_NUMBERS: ManuallyDrop<RefCell<CallbackNumbers<Function>>> =
        const { ManuallyDrop::new(RefCell::new(CallbackNumbers::new())) };
}

impl From<BoundFunction> for Callback {
    fn from(function: BoundFunction) -> Self {
        let id = FUNCTION_NUMBERS.with(|numbers| numbers.borrow_mut().number_of(function.function.clone()));
        Self { id, hook: Rc::new(function) }
    }
}

/// Returns a function of the facade as a callback. It is not recognized when it is given again, so it needs no number.
pub fn hook(function: Function) -> Callback {
    bound_hook(BoundFunction { function, this: JsValue::NULL })
}

/// As [`hook`], of a function with its object.
pub fn bound_hook(function: BoundFunction) -> Callback {
    Callback { id: 0, hook: Rc::new(function) }
}

/// What a function returned or threw.
type CallResult = std::result::Result<JsValue, JsValue>;

/// Awaits what a function of the application returned, unless it threw.
async fn settled(called: CallResult) -> CallResult {
    await_settled(called?).await
}

fn call(callback: &Callback, arguments: &Array) -> CallResult {
    match callback.hook.downcast_ref::<BoundFunction>() {
        Some(bound) => bound.function.apply(&bound.this, arguments),
        None => Err(JsValue::from_str("it is not a function")),
    }
}

/// Calls the function that a reducer's question is for.
pub async fn call_reducer(ask: &ReducerQuestion) -> ReducerReply {
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
    match settled(call(&ask.callback, &Array::of1(&argument))).await {
        Ok(returned) => read_reply(&ask.question, &returned),
        Err(error) => ReducerReply::Failed(callback_failed("it threw", &error).into_message()),
    }
}

/// Calls `summarize` of `compact` with the body and the mode. Returns its text, which is not empty.
///
/// # Errors
/// `callback_failed` if it throws, or returns something else.
pub async fn call_summarize(callback: &Callback, body: &[u8], mode: &str) -> Result<String> {
    let called = call(callback, &Array::of2(&Uint8Array::from(body), &mode.into()));
    let failed = |error: JsValue| callback_failed("`summarize` threw; nothing was compacted", &error);
    let returned = settled(called).await.map_err(failed)?;
    let text = string("the summary", &returned).ok().flatten().filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| {
        Error::new(
            ErrorCode::CallbackFailed,
            "`summarize` returned no text; nothing was compacted. Return the model's answer",
        )
    })
}

fn read_reply(question: &QuestionKind, returned: &JsValue) -> ReducerReply {
    match question {
        QuestionKind::Count(texts) => {
            let most = u32::try_from(texts.len()).unwrap_or(u32::MAX);
            read_counts(returned, most)
                .map_or_else(|error| ReducerReply::Failed(error.into_message()), ReducerReply::Counts)
        }
        QuestionKind::Summarize(_) => match string("the summary", returned) {
            Ok(Some(summary)) => ReducerReply::Summary(summary),
            Ok(None) => ReducerReply::Failed("it gave no text".into()),
            Err(error) => ReducerReply::Failed(error.into_message()),
        },
        QuestionKind::Reduce(_) => {
            to_json(returned).map_or_else(|error| ReducerReply::Failed(error.into_message()), ReducerReply::Messages)
        }
    }
}

fn read_counts(returned: &JsValue, most: u32) -> Result<Vec<u64>> {
    let none = || Error::invalid("it gave no list of numbers");
    let mut counts = Vec::new();
    for count in items("what it returned", returned, most)?.ok_or_else(none)? {
        let number = count.as_f64().filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(none)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        counts.push(number.ceil() as u64);
    }
    Ok(counts)
}

/// Calls `inputFilter` of a run.
///
/// # Errors
/// `callback_failed` if it throws or returns a value that JSON cannot represent.
pub async fn call_input_filter(question: &BodyFilterQuestion) -> Result<BodyFilterReply> {
    let body = to_js(question.body.view());
    // Written before the filter can change it: digits and escapes that JavaScript does not keep are no change of the
    // filter.
    let given = to_json(&body)?;
    let called = call(&question.callback, &Array::of1(&body));
    let failed = |error: JsValue| callback_failed("`inputFilter` threw", &error);
    let returned = settled(called).await.map_err(failed)?;
    let unreadable = |error: Error| match error.code {
        ErrorCode::InvalidInput => Error::new(ErrorCode::CallbackFailed, format!("`inputFilter`: {}", error.message)),
        _ => error,
    };
    Ok(BodyFilterReply { input: given, output: to_json(&returned).map_err(unreadable)? })
}

/// Calls `needsApproval` of a tool.
pub async fn call_needs_approval(question: &ApprovalQuestion) -> ApprovalReply {
    let called = call(&question.callback, &Array::of1(&to_js(question.arguments.view())));
    match settled(called).await.map(|returned| returned.as_bool()) {
        Ok(Some(true)) => ApprovalReply::Needed,
        Ok(Some(false)) => ApprovalReply::NotNeeded,
        Ok(None) => ApprovalReply::Failed("it returned neither true nor false".into()),
        Err(error) => ApprovalReply::Failed(callback_failed("it threw", &error).into_message()),
    }
}

/// Calls `approveUnsafeReplay`. Nothing but `true` approves: a promise, which an `async` function returns, does not.
///
/// # Errors
/// `callback_failed` if it throws or returns no boolean.
pub fn approves_replay(ask: &ReplayQuestion) -> Result<bool> {
    let info = object_to_js(&|out| {
        if let Some(status) = ask.status {
            out.number("status", u64::from(status));
        }
        out.object("error", |out| {
            out.text("code", ask.error.code.as_str()).text("message", &ask.error.message);
        });
    });
    let returned = call(&ask.callback, &Array::of1(&info))
        .map_err(|error| callback_failed("`retry.approveUnsafeReplay` threw", &error))?;
    let no_boolean = "`retry.approveUnsafeReplay` returns true or false, at once";
    returned.as_bool().ok_or_else(|| Error::new(ErrorCode::CallbackFailed, no_boolean))
}

/// Calls `persist` of a tool.
pub fn call_persist(ask: &PersistQuestion) -> PersistReply {
    let invocation = object_to_js(&|out| {
        out.text("name", &ask.name).json("arguments", ask.arguments.view());
    });
    let result = ask.result.as_ref().map_or(JsValue::UNDEFINED, |result| to_js(result.view()));
    let returned = match call(&ask.callback, &Array::of2(&invocation, &result)) {
        Ok(returned) => returned,
        Err(error) => return PersistReply::Failed(callback_failed("it threw", &error).into_message()),
    };
    if returned.is_null() {
        return PersistReply::Nothing;
    }
    let part = |key: &str| {
        let value = get(&returned, key)?;
        (!value.is_undefined()).then(|| to_json(&value)).transpose()
    };
    match get(&returned, "then") {
        Ok(then) if returned.is_object() && !then.is_function() => {}
        Ok(_) => return PersistReply::Failed("it gave neither an object nor null, at once".into()),
        Err(error) => return PersistReply::Failed(error.into_message()),
    }
    match (part("arguments"), part("result")) {
        (Ok(arguments), Ok(result)) => match unknown_member(&returned) {
            None => PersistReply::Replaced { arguments, result },
            Some(member) => PersistReply::Failed(format!(
                "it gave `{member}`, where `arguments` and `result` are expected; what it meant to replace is not known"
            )),
        },
        (Err(error), _) | (_, Err(error)) => PersistReply::Failed(error.into_message()),
    }
}

/// Returns a member of the return value of `persist` that is not known, such as `args` instead of `arguments`: ignoring
/// it would store the real arguments.
fn unknown_member(returned: &JsValue) -> Option<String> {
    let Ok(keys) = js_sys::Reflect::own_keys(returned) else { return Some("what cannot be read".to_owned()) };
    let mut names = keys.iter().filter_map(|key| key.as_string());
    names.find(|name| !matches!(name.as_str(), "name" | "arguments" | "result"))
}

/// Calls `titleSession`. Resolves to its title; none if it returned null or nothing.
///
/// # Errors
/// `callback_failed` if it throws, or returns something else.
pub async fn call_title(callback: &Callback, exchange: Json) -> Result<Option<String>> {
    let called = call(callback, &Array::of1(&to_js(exchange.view())));
    let failed = |error: JsValue| callback_failed("`titleSession` threw; the next turn asks again", &error);
    let returned = settled(called).await.map_err(failed)?;
    if returned.is_null() || returned.is_undefined() {
        return Ok(None);
    }
    let title = string("the title", &returned).ok().flatten();
    title.map(Some).ok_or_else(|| {
        let sentence = "`titleSession` returned neither a text nor null; the next turn asks again";
        Error::new(ErrorCode::CallbackFailed, sentence)
    })
}

/// Asks the history providers. Resolves to what they provide.
///
/// # Errors
/// `callback_failed`, which names the provider.
pub async fn call_provide(callback: &Callback, input: Json) -> Result<Json> {
    let called = call(callback, &Array::of1(&to_js(input.view())));
    let failed = |thrown: JsValue| Error::new(ErrorCode::CallbackFailed, reason_of(&thrown));
    to_json(&settled(called).await.map_err(failed)?)
}

/// Gives a turn to the history providers. Resolves to a warning for each that failed.
pub async fn call_store(callback: &Callback, turn: Json) -> Vec<Finding> {
    let called = call(callback, &Array::of1(&to_js(turn.view())));
    let failures = match settled(called).await {
        Ok(failures) => items("the warnings", &failures, MAX_WARNINGS).ok().flatten().unwrap_or_default(),
        Err(thrown) => vec![thrown],
    };
    failures.iter().map(|failure| Finding::warning(FindingCode::CallbackFailed, reason_of(failure))).collect()
}
