//! Recorded exchanges with real providers, through a history: every accepted request comes back as it was, and every
//! step that extends an earlier one is made again from that step's history, its answer, and what the step adds.

mod wires;

use crate::event_frames;

use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{
    AnswerStatus, Assembled, ProviderRequest, Settings, StreamAssembler, decode_body, read_response,
};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wires::{WIRES, Wire};

/// One recorded conversation.
struct Exchange {
    file: String,
    steps: Vec<Value>,
}

/// The number of recorded exchanges below which some were lost.
fn least_files(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Anthropic => 55,
        Dialect::Bedrock => 27,
        Dialect::Gemini => 38,
        // Those that are recorded are of another project, and are not copied.
        Dialect::GeminiInteractions => 0,
        Dialect::Mistral => 14,
        // No traffic of it was recorded.
        Dialect::MistralConversations => 0,
        Dialect::OpenAiChat => 70,
        Dialect::OpenAiResponses => 55,
    }
}

fn exchanges(dialect: Dialect) -> Vec<Exchange> {
    let bundled = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpora");
    let folder = std::env::var_os("RETHREAD_DATA").map_or_else(bundled, PathBuf::from);
    let folder = folder.join("exchanges").join(dialect.as_str());
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{folder:?}: {error}"))
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json") && !path.ends_with("index.json"))
        .collect();
    files.sort();
    let least = least_files(dialect);
    assert!(files.len() >= least, "{} exchanges in {folder:?}, {least} at least", files.len());
    let read = |path: PathBuf| {
        let exchange: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        Exchange { file, steps: exchange["steps"].as_array().unwrap().clone() }
    };
    files.into_iter().map(read).collect()
}

/// A session as a test has it: a history and what gives its ids.
struct Session {
    dialect: Dialect,
    history: History,
    ids: CountingIds,
}

impl Session {
    fn new(dialect: Dialect) -> Self {
        Self { dialect, history: History::new(Seed(5)), ids: CountingIds::default() }
    }

    fn append(&mut self, body: &str) {
        let items = decode_body(self.dialect, JsonRef::parse(body).unwrap()).unwrap();
        let joined =
            join(JoinBase::history(&self.history), items, &Origin { at: 1_000, ..Origin::default() }, &self.ids);
        joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
    }

    /// The body, with no result too old for it.
    fn render(&self) -> String {
        let provider = ProviderRequest {
            dialect: self.dialect,
            url: "https://model.example/v1".into(),
            params: Json::parse("{}").unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let call = PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() };
        let policy = Policy { call, ..Policy::default() };
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
        let rendered = Renderer::default().render(&self.history, None, &request, 2_000_000).unwrap();
        String::from_utf8(rendered.body).unwrap()
    }
}

/// The answer of a step, streamed or whole.
fn answer(dialect: Dialect, step: &Value) -> Assembled {
    if let Some(events) = step["aws_events"].as_array() {
        let mut assembler = StreamAssembler::new(dialect);
        for event in events {
            let frame = event_frames::frame(event["event"].as_str().unwrap(), &event["payload"].to_string());
            frame.chunks(7).for_each(|piece| assembler.push(piece, &mut Vec::new()));
        }
        return assembler.finish();
    }
    match step["sse"].as_str() {
        Some(stream) => {
            let mut assembler = StreamAssembler::new(dialect);
            assembler.push(stream.as_bytes(), &mut Vec::new());
            assembler.finish()
        }
        None => read_response(dialect, step["response"].to_string().as_bytes()),
    }
}

/// The list of a body, and what it says beside it, as the wire compares them.
fn parts_of(wire: &Wire, body: &Value) -> (Value, Value) {
    let system: Vec<Value> = wire
        .system
        .iter()
        .filter_map(|name| body.get(name).filter(|said| *said != "" && **said != Value::Array(Vec::new())).cloned())
        .collect();
    // One plain text is a text.
    let plain = |value: Value| match value.as_array().map(Vec::as_slice) {
        Some([block]) if block["type"] == "text" && block.as_object().is_some_and(|block| block.len() == 2) => {
            block["text"].clone()
        }
        _ => value,
    };
    let system = system.into_iter().map(|value| plain((wire.usual)(value))).collect::<Vec<_>>();
    ((wire.usual)(body[wire.list].clone()), Value::from(system))
}

/// Where two bodies begin to differ.
fn difference(name: &str, got: &(Value, Value), want: &(Value, Value)) -> String {
    let (got, want) = (format!("{} {}", got.1, got.0), format!("{} {}", want.1, want.0));
    let same = got.bytes().zip(want.bytes()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(80);
    let cut = |text: &str| String::from_utf8_lossy(&text.as_bytes()[from..text.len().min(same + 240)]).into_owned();
    format!("{name}\n  want {}\n  got  {}", cut(&want), cut(&got))
}

#[test]
fn r43_r45_every_accepted_request_returns_unchanged() {
    for wire in &WIRES {
        let (mut same, mut bytes, mut tidied, mut refused, mut wrong) = (0, 0, 0, 0, Vec::new());
        for exchange in exchanges(wire.dialect) {
            for (at, step) in exchange.steps.iter().enumerate() {
                if step["status"] != 200 {
                    refused += 1;
                    continue;
                }
                let name = format!("{} step {at}", exchange.file);
                let given = step["request"].to_string();
                let mut session = Session::new(wire.dialect);
                session.append(&given);
                let out = session.render();
                let body = serde_json::from_str(&out).unwrap();
                let (mut got, mut want) = (parts_of(wire, &body), parts_of(wire, &step["request"]));
                if got != want && wire.dialect == Dialect::OpenAiChat {
                    // An empty answer says nothing: no request needs it.
                    (got.0, want.0) = (wires::without_empty(got.0), wires::without_empty(want.0));
                    tidied += 1;
                }
                if got != want {
                    wrong.push(difference(&name, &got, &want));
                    continue;
                }
                same += 1;
                let list = |text: &str| JsonRef::parse(text).unwrap().get(wire.list).unwrap().as_raw().to_owned();
                bytes += usize::from(list(&out) == list(&given));
            }
        }
        println!(
            "{}: {same} accepted requests came back the same, {bytes} of them byte for byte, {tidied} without their empty answers; {refused} were refused",
            wire.dialect.as_str()
        );
        assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), wire.dialect.as_str(), wrong.join("\n"));
        assert!(same > 0);
        assert!(!wire.byte_for_byte || bytes == same, "{}: {bytes} of {same}", wire.dialect.as_str());
    }
}

/// What a step adds to the step that it extends, after its answer: results and what the user says.
fn added<'v>(wire: &Wire, before: &Value, after: &'v Value) -> Result<&'v [Value], &'static str> {
    let (before, after) = (before[wire.list].as_array().unwrap(), after[wire.list].as_array().unwrap());
    let tail = after.get(before.len()..).ok_or("it is shorter than the step that it extends")?;
    let start = (wire.usual)(Value::from(after[..before.len()].to_vec()));
    if start != (wire.usual)(Value::from(before.clone())) {
        return Err("the client changed what it had sent before");
    }
    let answered = tail.iter().take_while(|item| (wire.is_answer)(item)).count();
    if answered == 0 {
        return Err("the client did not send the answer back");
    }
    Ok(&tail[answered..])
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, read from top to bottom")]
fn r20_r45_every_step_is_made_from_the_one_that_it_extends() {
    for wire in &WIRES {
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        let mut wrong = Vec::new();
        for exchange in exchanges(wire.dialect) {
            for (at, step) in exchange.steps.iter().enumerate() {
                let Some(before) = step["extends"].as_u64() else { continue };
                let before = &exchange.steps[usize::try_from(before).unwrap()];
                let name = format!("{} step {at}", exchange.file);
                let new = match added(wire, &before["request"], &step["request"]) {
                    _ if step["status"] != 200 => Err("it was refused"),
                    _ if before["status"] != 200 => Err("it extends a step that was refused"),
                    _ if before["response"]["status"] == "queued" => Err("the answer was not there yet"),
                    new => new,
                };
                let named = |(end, step, _): &&(&str, usize, &str)| exchange.file.ends_with(end) && *step == at;
                let new = match wire.left.iter().find(named).map_or(new, |(.., why)| Err(why)) {
                    Ok(new) => new,
                    Err(why) => {
                        *left.entry(why).or_default() += 1;
                        println!("  left out: {name}: {why}");
                        continue;
                    }
                };
                let mut session = Session::new(wire.dialect);
                session.append(&before["request"].to_string());
                let assembled = answer(wire.dialect, before);
                let nameless = assembled.calls.iter().any(|call| call.call_id.is_empty());
                let why = match assembled.status {
                    AnswerStatus::Failed => Some("the answer failed; the client made a message of the failure"),
                    _ if nameless && wire.ids_needed => Some("the client made up ids for calls that had none"),
                    _ if assembled.wire.is_none() => Some("the answer was cut; the client took its calls for whole"),
                    _ => None,
                };
                let Some(answered) = assembled.wire.filter(|_| why.is_none()) else {
                    let why = why.unwrap_or_default();
                    *left.entry(why).or_default() += 1;
                    println!("  left out: {name}: {why}");
                    continue;
                };
                match answered.view().items().next() {
                    Some(_) => session.append(answered.as_str()),
                    None => session.append(&format!("[{}]", answered.as_str())),
                }
                session.append(&Value::from(new.to_vec()).to_string());
                let body: Value = serde_json::from_str(&session.render()).unwrap();
                let (mut got, mut want) = (parts_of(wire, &body), parts_of(wire, &step["request"]));
                // What stands beside the list is the client's to change from step to step.
                if parts_of(wire, &before["request"]).1 != want.1 {
                    got.1 = want.1.clone();
                }
                // What this client does to an answer, one habit after the other, until the two are the same.
                let mut habits = wire.habits.iter();
                let mut habit = "the same";
                while got != want {
                    let Some((next, undo)) = habits.next() else {
                        wrong.push(difference(&name, &got, &want));
                        break;
                    };
                    habit = next;
                    got.0 = undo(got.0);
                    want.0 = undo(want.0);
                }
                if got == want {
                    *made.entry(habit).or_default() += 1;
                }
            }
        }
        println!("{}: steps made from the one before: {made:?}; left out: {left:?}", wire.dialect.as_str());
        assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), wire.dialect.as_str(), wrong.join("\n"));
    }
}
