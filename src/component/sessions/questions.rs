//! Functions of the host that the options name: each call is an effect `ask`, and its answer is checked here.

use super::host::ComponentHost;
use super::wit;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::Finding;
use crate::json::{Json, JsonKind};
use crate::options::FunctionName;
use crate::render::BodyFilterReply;
use crate::replay::{Callback, QuestionKind, ReducerQuestion, ReducerReply};
use crate::run::{ApprovalQuestion, ApprovalReply, BodyFilterQuestion, PersistQuestion, PersistReply, ReplayQuestion};
use crate::session::{Application, LocalFuture};

/// The error of a function that only a host in JavaScript passes. No option of a component has one.
fn no_function() -> Error {
    failed("a component has no such function of its host")
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::CallbackFailed, message)
}

/// Asks the host to call a function.
///
/// # Errors
/// `callback_failed` if it failed.
async fn ask(host: &ComponentHost, callback: &Callback, question: wit::Question) -> Result<Json> {
    let name = callback.hook.downcast_ref::<FunctionName>().ok_or_else(no_function)?;
    let call = wit::FunctionCall { function: name.0.clone(), question };
    let returned = host.effects.ask(call).await;
    returned.map_err(|failure| failed(format!("`{}`: {}", name.0, failure.message)))
}

/// Returns the numbers of a list, rounded up.
fn numbers(list: &Json) -> Option<Vec<u64>> {
    let number = |raw: &str| raw.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = |number: f64| number.ceil() as u64;
    let view = list.view();
    (view.kind() == JsonKind::Array).then_some(())?;
    view.items().map(|item| number(item.as_raw()).map(whole)).collect()
}

fn text(value: &Json) -> Option<String> {
    value.view().as_text().map(|text| text.into_owned()).filter(|text| !text.trim().is_empty())
}

fn body_text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

async fn reduce(host: &ComponentHost, asked: &ReducerQuestion) -> ReducerReply {
    let question = match &asked.question {
        QuestionKind::Count(texts) => wit::Question::Count(texts.clone()),
        QuestionKind::Summarize(body) => {
            wit::Question::Summarize(wit::SummaryRequest { body: body_text(body), mode: None })
        }
        QuestionKind::Reduce(messages) => wit::Question::Reduce(messages.as_str().to_owned()),
    };
    let returned = match ask(host, &asked.callback, question).await {
        Ok(returned) => returned,
        Err(error) => return ReducerReply::Failed(error.into_message()),
    };
    let reply = match &asked.question {
        QuestionKind::Count(_) => numbers(&returned).map(ReducerReply::Counts).ok_or("it gave no list of numbers"),
        QuestionKind::Summarize(_) => text(&returned).map(ReducerReply::Summary).ok_or("it gave no text"),
        QuestionKind::Reduce(_) => Ok(ReducerReply::Messages(returned)),
    };
    reply.unwrap_or_else(|reason| ReducerReply::Failed(reason.to_owned()))
}

impl Application for ComponentHost {
    fn reduce<'q>(&'q self, question: &'q ReducerQuestion) -> LocalFuture<'q, ReducerReply> {
        Box::pin(reduce(self, question))
    }

    fn filter_body<'q>(&'q self, question: &'q BodyFilterQuestion) -> LocalFuture<'q, Result<BodyFilterReply>> {
        Box::pin(async {
            let body = wit::Question::FilterBody(question.body.as_str().to_owned());
            let output = ask(self, &question.callback, body).await?;
            Ok(BodyFilterReply { input: question.body.clone(), output })
        })
    }

    fn needs_approval<'q>(&'q self, question: &'q ApprovalQuestion) -> LocalFuture<'q, ApprovalReply> {
        Box::pin(async {
            let arguments = wit::Question::NeedsApproval(question.arguments.as_str().to_owned());
            match ask(self, &question.callback, arguments).await.map(|returned| returned.view().as_bool()) {
                Ok(Some(true)) => ApprovalReply::Needed,
                Ok(Some(false)) => ApprovalReply::NotNeeded,
                Ok(None) => ApprovalReply::Failed("it returned neither true nor false".into()),
                Err(error) => ApprovalReply::Failed(error.into_message()),
            }
        })
    }

    fn approves_replay(&self, _: &ReplayQuestion) -> Result<bool> {
        Ok(false)
    }

    fn persist(&self, _: &PersistQuestion) -> PersistReply {
        PersistReply::Nothing
    }

    fn summarize<'q>(
        &'q self,
        callback: &'q Callback,
        body: &'q [u8],
        mode: &'q str,
    ) -> LocalFuture<'q, Result<String>> {
        Box::pin(async move {
            let request = wit::SummaryRequest { body: body_text(body), mode: Some(mode.to_owned()) };
            let returned = ask(self, callback, wit::Question::Summarize(request)).await?;
            text(&returned)
                .ok_or_else(|| failed("the summary is no text; nothing was compacted. Return the model's answer"))
        })
    }

    fn title<'q>(&'q self, _: &'q Callback, _: Json) -> LocalFuture<'q, Result<Option<String>>> {
        Box::pin(async { Err(no_function()) })
    }

    fn provide<'q>(&'q self, _: &'q Callback, _: Json) -> LocalFuture<'q, Result<Json>> {
        Box::pin(async { Err(no_function()) })
    }

    fn give_to_providers<'q>(&'q self, _: &'q Callback, _: Json) -> LocalFuture<'q, Vec<Finding>> {
        Box::pin(async { Vec::new() })
    }
}
