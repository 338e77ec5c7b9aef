//! Answers that the service pauses: it gives a part, the status `requires_continuation` and a token, and the rest to
//! a request with that token. As google-genai 3.6.1 sends it, and as the service is said to check it: with the
//! interaction that issued the token and no input if that is kept, else with the original input; with the same
//! instructions, tools and parameters.

use super::{InteractionService, invalid_request, said};
use serde_json::{Value, json};

/// How the service pauses answers.
#[derive(Default)]
pub struct Pauses {
    /// How often the next answer is paused.
    pub next: usize,
    /// Accepts each token once. The real service is not known to.
    pub are_single_use: bool,
    /// Gives the token back that it got.
    pub repeats_token: bool,
    /// What takes the place of the next token.
    pub odd_token: Option<Value>,
    /// Ends a stream without its last event.
    pub without_end: bool,
    pub issued: Vec<IssuedToken>,
}

/// The steps of each part of an answer.
pub(super) type Parts = Vec<Vec<Value>>;

/// A token, and what the service keeps with it.
#[derive(Clone)]
pub struct IssuedToken {
    pub token: String,
    /// The request that got it.
    request: Value,
    /// The interaction that issued it; empty if it is not kept.
    pub interaction: String,
    /// The rest of the answer.
    rest: Parts,
    is_used: bool,
}

impl InteractionService {
    /// Returns the rest of the answer that a request continues by a token, or why the service refuses the token.
    pub(super) fn rest_of_answer(&mut self, body: &Value) -> Option<Result<Parts, (u16, Value)>> {
        let token = body.get("continuation_token")?;
        let single_use = self.pauses.are_single_use;
        let found = self.pauses.issued.iter_mut().rev().find(|issued| *token == json!(issued.token));
        let Some(issued) = found.filter(|issued| !(single_use && issued.is_used)) else {
            return Some(Err(invalid_request("Invalid continuation token.".into())));
        };
        let is_same = |name: &str| body.get(name) == issued.request.get(name);
        let names = ["model", "system_instruction", "tools", "generation_config", "store"];
        let wrong = if let Some(name) = names.into_iter().find(|name| !is_same(name)) {
            Some(format!("{name} differs from that of the request that got the token"))
        } else if body["store"] == false {
            (!is_same("input") || body.get("previous_interaction_id").is_some()).then(|| "another input".into())
        } else {
            let is_owner = body["previous_interaction_id"] == json!(issued.interaction);
            (!is_owner || body.get("input").is_some()).then(|| "not the interaction of the token alone".into())
        };
        if let Some(text) = wrong {
            self.invalid.push(text.clone());
            return Some(Err(invalid_request(format!("Invalid continuation token: {text}"))));
        }
        issued.is_used = true;
        Some(Ok(issued.rest.clone()))
    }

    /// Returns an answer in the parts in which it is given: the last one is the answer of the script.
    pub(super) fn in_parts(&mut self, last: Vec<Value>) -> Parts {
        let pauses = std::mem::take(&mut self.pauses.next);
        let count = self.count + 1;
        let part = |part: usize| vec![said(&format!("part {part} of answer {count}, "))];
        (1..=pauses).map(part).chain([last]).collect()
    }

    /// Pauses an interaction: the rest is given to a request with the token that it gets.
    pub(super) fn pause(&mut self, interaction: &mut Value, rest: Parts, body: &Value) {
        interaction["status"] = json!("requires_continuation");
        let sent = body["continuation_token"].as_str().filter(|_| self.pauses.repeats_token);
        let token = sent.map_or_else(|| format!("token_{}", self.count), Into::into);
        interaction["continuation_token"] = self.pauses.odd_token.take().unwrap_or(json!(token));
        let interaction = interaction["id"].as_str().unwrap().to_owned();
        // The original input is that of the first request.
        self.pauses.issued.push(IssuedToken { token, request: body.clone(), interaction, rest, is_used: false });
    }

    /// Returns true for an interaction that only its token continues.
    pub(super) fn is_paused(&self, interaction: &str) -> bool {
        self.pauses.issued.iter().any(|issued| issued.interaction == interaction)
    }
}
