//! Answers on which the service works when nobody reads them: `"background": true`. It refuses an interaction that it
//! does not have, as the real one, and a background answer that is not stored, as the real one is assumed to.

use super::{InteractionService, invalid_request, streamed};
use crate::background_service::{Reply, Serves};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The interactions on which it works.
#[derive(Default)]
pub struct Works {
    pub by_id: BTreeMap<String, Work>,
    /// The addresses of the interactions that were asked for.
    pub gets: Vec<String>,
    /// The number of events by which each request advances them.
    pub pace: usize,
}

/// An interaction on which it works.
pub struct Work {
    interaction: Value,
    events: Vec<Vec<u8>>,
    done: usize,
}

impl Serves for InteractionService {
    fn request(&mut self, method: &str, url: &str, body: &[u8]) -> Reply {
        let reply = match method {
            "POST" => self.post(&serde_json::from_slice(body).unwrap()),
            "GET" => self.get(url, body),
            other => panic!("no method {other}"),
        };
        let pace = self.works.pace;
        self.works.by_id.values_mut().for_each(|work| work.done = (work.done + pace).min(work.events.len()));
        reply
    }
}

impl InteractionService {
    fn post(&mut self, body: &Value) -> Reply {
        let is_background = body["background"] == true;
        let accepted = match is_background && body["store"] == false {
            true => Err(invalid_request("store=false is incompatible with background=true.".into())),
            false => self.accept(body),
        };
        let interaction = match accepted {
            Ok(interaction) => interaction,
            Err((status, error)) => return refused(status, &error),
        };
        let id = interaction["id"].as_str().unwrap().to_owned();
        let events = streamed(&interaction, false);
        let done = if is_background { 1 } else { events.len() };
        self.works.by_id.insert(id.clone(), Work { interaction, events, done });
        self.answer_of(&id, body["stream"] == true)
    }

    fn get(&mut self, url: &str, body: &[u8]) -> Reply {
        assert!(body.is_empty(), "a GET has no body");
        self.works.gets.push(url.to_owned());
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let id = path.rsplit('/').next().unwrap();
        if !self.works.by_id.contains_key(id) {
            return refused(404, &json!({ "message": "Requested entity was not found.", "code": "not_found" }));
        }
        self.answer_of(id, query.split('&').any(|member| member == "stream=true"))
    }

    /// An answer as it is now: its events so far, or whole.
    fn answer_of(&self, id: &str, is_streamed: bool) -> Reply {
        let Work { interaction, events, done } = &self.works.by_id[id];
        if is_streamed {
            return Reply { status: 200, events: events[..*done].to_vec(), body: Vec::new() };
        }
        let begun = json!({ "id": id, "status": "in_progress", "model": "m", "steps": [] });
        let now = if *done == events.len() { interaction } else { &begun };
        Reply { status: 200, events: Vec::new(), body: now.to_string().into_bytes() }
    }
}

fn refused(status: u16, error: &Value) -> Reply {
    Reply { status, events: Vec::new(), body: json!({ "error": error }).to_string().into_bytes() }
}
