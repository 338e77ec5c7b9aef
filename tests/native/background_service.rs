//! A stand-in for a service that works on answers in the background, as OpenAI Responses does. It goes on when nobody
//! reads, and refuses what the real one refuses: an unknown id, a stream of an answer that was not created with one or
//! is too old, and a background answer that is not stored. It knows nothing of the core.

use super::stateful_service::Service;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the service answers to a request.
pub struct Reply {
    pub status: u16,
    /// The events of a stream, each with its bytes.
    pub events: Vec<Vec<u8>>,
    /// The body of what is no stream.
    pub body: Vec<u8>,
}

/// A service that answers requests, and gives answers that are picked up.
pub trait Serves {
    /// Says what the next request is, before anything becomes of it.
    fn expect(&mut self, _method: &str) {}
    fn request(&mut self, method: &str, url: &str, body: &[u8]) -> Reply;
}

/// An answer on which the service works.
struct Work {
    /// The events, of which the last one has the whole response.
    events: Vec<Value>,
    /// The number of events so far.
    done: usize,
    is_streamed: bool,
    is_too_old: bool,
    /// The status with which it ends.
    end: &'static str,
}

pub struct BackgroundService {
    /// Conversations and chains, as a service without background answers keeps them.
    pub kept: Service,
    works: BTreeMap<String, Work>,
    /// The requests that were accepted.
    pub posts: usize,
    /// The addresses of the answers that were picked up, or asked for.
    pub gets: Vec<String>,
    /// The number of events by which each request advances the answers.
    pub pace: usize,
    /// The status with which the next answers end.
    pub end: &'static str,
    /// True while the next request picks an answer up.
    pub is_picking_up: bool,
    /// The number of events that a resumed stream repeats.
    pub repeats: usize,
    /// True if the answers name no `sequence_number`.
    pub is_unnumbered: bool,
    /// The items that a whole answer has before those of its stream.
    pub earlier_items: Vec<Value>,
}

/// The number of events of an answer with text.
pub const EVENTS: usize = 12;

impl Serves for BackgroundService {
    fn expect(&mut self, method: &str) {
        self.is_picking_up = method == "GET";
    }

    fn request(&mut self, method: &str, url: &str, body: &[u8]) -> Reply {
        let reply = match method {
            "POST" => self.post(&serde_json::from_slice(body).unwrap()),
            "GET" => self.get(url, body),
            other => panic!("no method {other}"),
        };
        self.work(self.pace);
        reply
    }
}

impl BackgroundService {
    pub fn new(kept: Service) -> Self {
        Self {
            kept,
            works: BTreeMap::new(),
            posts: 0,
            gets: Vec::new(),
            pace: 0,
            end: "completed",
            is_picking_up: false,
            repeats: 0,
            is_unnumbered: false,
            earlier_items: Vec::new(),
        }
    }

    /// Works on all answers: `events` more of each.
    pub fn work(&mut self, events: usize) {
        for work in self.works.values_mut() {
            work.done = (work.done + events).min(work.events.len());
        }
    }

    /// Forgets all answers.
    pub fn forget(&mut self) {
        self.works.clear();
    }

    /// Streams no answer any more that it has.
    pub fn grow_old(&mut self) {
        self.works.values_mut().for_each(|work| work.is_too_old = true);
    }

    fn post(&mut self, body: &Value) -> Reply {
        let is_streamed = body["stream"] == true;
        if body["background"] == true && body["store"] == false {
            return refused(400, "Background mode requires store to be true.");
        }
        let mut response = match self.kept.accept(body) {
            Ok(response) => response,
            Err(message) => return refused(400, &message),
        };
        self.posts += 1;
        response["background"] = body["background"].clone();
        let id = response["id"].as_str().unwrap().to_owned();
        let work = Work { events: self.events(response), done: 0, is_streamed, is_too_old: false, end: self.end };
        let mut work = Work { done: 1, ..work };
        if body["background"] != true {
            work.done = work.events.len();
        }
        self.works.insert(id.clone(), work);
        self.work(self.pace);
        self.answer(&id, is_streamed.then_some(0))
    }

    fn get(&mut self, url: &str, body: &[u8]) -> Reply {
        assert!(body.is_empty(), "a GET has no body");
        self.gets.push(url.to_owned());
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let id = path.rsplit('/').next().unwrap().to_owned();
        let members: BTreeMap<&str, &str> = query.split('&').filter_map(|member| member.split_once('=')).collect();
        let Some(work) = self.works.get(&id) else {
            return refused(404, &format!("Response with id '{id}' not found."));
        };
        if members.get("stream") != Some(&"true") {
            assert!(!members.contains_key("starting_after"));
            return self.answer(&id, None);
        }
        if !work.is_streamed {
            return refused(400, "This response was not created with streaming.");
        }
        if work.is_too_old {
            return refused(400, "This response can no longer be streamed because it is more than 5 minutes old");
        }
        let after = members
            .get("starting_after")
            .map_or(0, |number| (number.parse::<usize>().unwrap() + 1).saturating_sub(self.repeats));
        self.answer(&id, Some(after))
    }

    /// An answer as it is now: whole, or its events from one on.
    fn answer(&self, id: &str, from: Option<usize>) -> Reply {
        let work = &self.works[id];
        let is_ended = work.done == work.events.len();
        if let Some(from) = from {
            let events = work.events.get(from..work.done).unwrap_or_default().iter().map(event_bytes).collect();
            return Reply { status: 200, events, body: Vec::new() };
        }
        let mut response = work.events.last().unwrap()["response"].clone();
        if !is_ended {
            response["status"] = json!(if work.done < 2 { "queued" } else { "in_progress" });
            response["output"] = json!([]);
            response["error"] = Value::Null;
        } else {
            response["status"] = json!(work.end);
            let items = response["output"].as_array_mut().unwrap();
            items.splice(0..0, self.earlier_items.iter().cloned());
        }
        Reply { status: 200, events: Vec::new(), body: response.to_string().into_bytes() }
    }

    /// The events of a response.
    fn events(&self, mut response: Value) -> Vec<Value> {
        let output = response["output"].clone();
        let mut begun = response.clone();
        begun["output"] = json!([]);
        begun["status"] = json!("queued");
        let mut events = vec![json!({ "type": "response.created", "response": begun })];
        begun["status"] = json!("in_progress");
        events.push(json!({ "type": "response.in_progress", "response": begun }));
        for (at, item) in output.as_array().unwrap().iter().enumerate() {
            let mut opened = item.clone();
            opened["status"] = json!("in_progress");
            let is_message = item["type"] == "message";
            let (kind, text) = match is_message {
                true => ("output_text", item["content"][0]["text"].as_str().unwrap()),
                false => ("function_call_arguments", item["arguments"].as_str().unwrap()),
            };
            opened[if is_message { "content" } else { "arguments" }] = if is_message { json!([]) } else { json!("") };
            events.push(json!({ "type": "response.output_item.added", "output_index": at, "item": opened }));
            let place = json!({ "item_id": item["id"], "output_index": at, "content_index": 0 });
            for piece in pieces(text) {
                events.push(with(&place, json!({ "type": format!("response.{kind}.delta"), "delta": piece })));
            }
            let member = if is_message { "text" } else { "arguments" };
            events.push(with(&place, json!({ "type": format!("response.{kind}.done"), member: text })));
            events.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
        }
        response["status"] = json!(self.end);
        if self.end == "failed" {
            response["error"] = json!({ "code": "server_error", "message": "The model broke." });
        }
        events.push(json!({ "type": format!("response.{}", self.end), "response": response }));
        if !self.is_unnumbered {
            events.iter_mut().enumerate().for_each(|(at, event)| event["sequence_number"] = json!(at));
        }
        events
    }
}

/// A text in six pieces.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(letters.len().div_ceil(6).max(1)).map(|piece| piece.iter().collect()).collect()
}

fn with(place: &Value, mut event: Value) -> Value {
    for (name, value) in place.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn event_bytes(event: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).into_bytes()
}

fn refused(status: u16, message: &str) -> Reply {
    let code = message.split(' ').next().filter(|code| *code == "previous_response_not_found");
    let error = json!({ "error": { "message": message, "code": code.unwrap_or("refused") } });
    Reply { status, events: Vec::new(), body: error.to_string().into_bytes() }
}
