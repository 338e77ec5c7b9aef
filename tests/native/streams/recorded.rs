//! Every recorded stream, in every split.

use crate::streams::gemini;
use crate::streams::reference::{self, Reference, data_lines};
use crate::streams::{events_of, frame};
use rethread::history::IncomingPart;
use rethread::message::{Dialect, Part, PartBody};
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, decode_answer, read_response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

const SPLITS: usize = 20;

/// A file of the recorded streams.
struct Recorded {
    dialect: Dialect,
    entry: Value,
    /// One response each.
    responses: Vec<Vec<u8>>,
}

impl Recorded {
    fn name(&self) -> &str {
        self.entry["file"].as_str().unwrap()
    }

    fn reference(&self, bytes: &[u8]) -> Reference {
        match self.dialect {
            Dialect::Anthropic => reference::anthropic(&data_lines(bytes)),
            Dialect::Gemini => gemini::reference(&data_lines(bytes)),
            Dialect::OpenAiResponses => reference::responses(&data_lines(bytes)),
            _ => reference::chat(&data_lines(bytes)),
        }
    }
}

pub fn data_folder() -> PathBuf {
    let bundled = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpora");
    std::env::var_os("RETHREAD_DATA").map_or_else(bundled, PathBuf::from)
}

fn recorded() -> Vec<Recorded> {
    let mut all = Vec::new();
    // Bedrock's recorded streams are events without their bytes: `exchanges` reads them. Those of Gemini's interactions and
    // of Mistral's conversations are of other projects: `interactions` and `conversations` have texts of their form.
    let unrecorded = [Dialect::Bedrock, Dialect::GeminiInteractions, Dialect::MistralConversations];
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !unrecorded.contains(dialect)) {
        let folder = data_folder().join("streams").join(dialect.as_str());
        let index = std::fs::read_to_string(folder.join("index.json")).unwrap();
        for entry in serde_json::from_str::<Vec<Value>>(&index).unwrap() {
            let file = entry["file"].as_str().unwrap();
            let mut bytes = std::fs::read(folder.join(file)).unwrap();
            if file.ends_with(".jsonl") {
                let lines: Vec<&str> =
                    std::str::from_utf8(&bytes).unwrap().lines().filter(|line| !line.is_empty()).collect();
                bytes = frame(&lines).into_bytes();
            }
            let several = entry["responses_in_file"].as_u64().unwrap_or(1) > 1;
            let responses = if several { split_responses(&bytes) } else { vec![bytes] };
            all.push(Recorded { dialect, entry, responses });
        }
    }
    assert!(all.len() > 100, "the recorded streams are missing");
    all
}

/// A new response begins at each `message_start` or `response.created`.
fn split_responses(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = data_lines(bytes);
    let begins = |line: &String| {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|event| event["type"] == "message_start" || event["type"] == "response.created")
    };
    let mut starts: Vec<usize> = (0..lines.len()).filter(|at| begins(&lines[*at])).collect();
    starts.push(lines.len());
    starts.windows(2).map(|range| frame(&lines[range[0]..range[1]]).into_bytes()).collect()
}

fn assemble<'a>(dialect: Dialect, pushes: impl Iterator<Item = &'a [u8]>) -> (Assembled, Vec<StreamEvent>) {
    let (mut assembler, mut events) = (StreamAssembler::new(dialect), Vec::new());
    pushes.for_each(|bytes| assembler.push(bytes, &mut events));
    (assembler.finish(), events)
}

/// A small generator: the same seed gives the same splits everywhere.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }

    fn cut<'a>(&mut self, mut bytes: &'a [u8], longest: usize) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((self.below(longest) + 1).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

#[test]
fn r44_every_split_of_every_recorded_stream_gives_the_same_message() {
    let seed = std::env::var("RETHREAD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
    println!("RETHREAD_SEED={seed}");
    let mut random = Seeded(seed);
    for file in recorded() {
        for bytes in &file.responses {
            let whole = assemble(file.dialect, std::iter::once(bytes.as_slice()));
            assert_eq!(assemble(file.dialect, bytes.chunks(1)), whole, "{} byte by byte", file.name());
            for split in 0..SPLITS {
                let longest = [3, 17, 200, 1024, 5000][split % 5];
                let pieces = random.cut(bytes, longest).into_iter();
                assert_eq!(assemble(file.dialect, pieces), whole, "{} in split {split}, seed {seed}", file.name());
            }
            // Another line end, no last blank line.
            let text = std::str::from_utf8(bytes).unwrap().trim_end().replace("\r\n", "\n");
            for ends in ["\r\n", "\r", "\n"] {
                let other = text.replace('\n', ends);
                let got = assemble(file.dialect, other.as_bytes().chunks(61));
                assert_eq!(got.0, whole.0, "{} with line ends {ends:?}", file.name());
            }
            assert_events_add_up(&whole, file.name());
        }
    }
}

/// Events that repeat the one before are compared and not read: something else between each two changes nothing.
#[test]
fn r44_skipping_repeated_events_changes_nothing() {
    for file in recorded() {
        for bytes in &file.responses {
            let compared = assemble(file.dialect, std::iter::once(bytes.as_slice()));
            let lines: Vec<String> = data_lines(bytes).into_iter().flat_map(|line| [line, "{}".to_owned()]).collect();
            let read = assemble(file.dialect, std::iter::once(frame(&lines).as_bytes()));
            assert_eq!(read, compared, "{}", file.name());
        }
    }
}

fn assert_events_add_up((assembled, events): &(Assembled, Vec<StreamEvent>), name: &str) {
    assert_eq!(events_of(events).text, assembled.text.decode(), "{name}: text");
    let usage = events.iter().rev().find_map(|event| match event {
        StreamEvent::Usage(usage) => Some(*usage),
        _ => None,
    });
    assert_eq!(usage, assembled.usage, "{name}: usage");
    for (at, call) in assembled.calls.iter().enumerate() {
        let (told, place) = (events_of(events), u32::try_from(at).unwrap());
        assert_eq!(told.started.get(&place), Some(&(call.call_id.clone(), call.name.clone())), "{name}: start");
        let arguments = told.arguments.get(&place).cloned().unwrap_or_default();
        assert!(
            arguments == call.arguments.decode() || arguments.is_empty() && call.arguments.decode() == "{}",
            "{name}"
        );
    }
    let errors = events.iter().filter(|event| matches!(event, StreamEvent::Error(_))).count();
    assert_eq!(errors, usize::from(assembled.error.is_some()), "{name}: errors");
}

#[test]
fn r44_every_recorded_stream_equals_a_simple_accumulation() {
    for file in recorded() {
        let mut calls = 0;
        for (place, bytes) in file.responses.iter().enumerate() {
            let name = format!("{} response {place}", file.name());
            let (got, _) = assemble(file.dialect, std::iter::once(bytes.as_slice()));
            let expected = file.reference(bytes);
            calls += expected.calls.len();
            assert_eq!(got.text.decode(), expected.text, "{name}: text");
            let own = got
                .calls
                .iter()
                .map(|call| (call.call_id.clone(), call.name.clone(), call.arguments.decode().into_owned()));
            // Gemini's arguments are no text, but the value itself.
            let plain = |(id, call, arguments): (String, String, String)| match file.dialect {
                Dialect::Gemini => (id, call, serde_json::from_str::<Value>(&arguments).unwrap().to_string()),
                _ => (id, call, arguments),
            };
            assert_eq!(own.map(plain).collect::<Vec<_>>(), expected.calls, "{name}: calls");
            if file.dialect == Dialect::Gemini {
                assert_eq!(value_of(&got)["parts"], Value::from(expected.blocks.clone()), "{name}: parts");
            }
            assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), expected.usage, "{name}: usage");
            assert_eq!(got.finish_reason, expected.terminal, "{name}: reason");
            assert_eq!(got.response_id.as_ref(), expected.ids.first(), "{name}: id");
            assert_eq!(got.error.as_ref().map(|error| &error.message), expected.error.as_ref(), "{name}: error");
            assert_wire(&got, &name);
        }
        // The index counts parts there, of which a call may have many.
        let pieces = file.entry["quirks"].as_array().unwrap().iter().any(|quirk| quirk == "partialArgs/willContinue");
        if pieces {
            assert!(calls > 0);
            continue;
        }
        // Of several responses with the same places the index has counted the places.
        if file.dialect != Dialect::OpenAiResponses || file.responses.len() == 1 {
            assert_eq!(Some(calls as u64), file.entry["tool_calls"].as_u64(), "{}: calls", file.name());
        }
    }
}

#[test]
fn r44_a_recorded_stream_ends_as_the_index_says() {
    for file in recorded() {
        // Of several responses the last is the one that the index is about.
        let (got, _) = assemble(file.dialect, std::iter::once(file.responses.last().unwrap().as_slice()));
        let terminal = file.entry["terminal"].as_str();
        let quirks = file.entry["quirks"].as_array().unwrap();
        let truncated = terminal.is_none() || quirks.iter().any(|quirk| quirk.as_str().unwrap().contains("TRUNCATED"));
        let status = match (file.entry["error"].as_str(), terminal) {
            (Some(words), _) => {
                assert!(got.error.as_ref().unwrap().message.starts_with(words), "{}", file.name());
                AnswerStatus::Failed
            }
            (None, _) if truncated => AnswerStatus::Truncated,
            (
                None,
                Some(
                    "max_output_tokens"
                    | "length"
                    | "model_length"
                    | "max_tokens"
                    | "model_context_window_exceeded"
                    | "pause_turn",
                ),
            ) => AnswerStatus::Incomplete,
            (None, Some("content_filter")) => AnswerStatus::Blocked,
            (None, Some("refusal")) => AnswerStatus::Refused,
            (None, _) => AnswerStatus::Complete,
        };
        assert_eq!(got.status, status, "{}", file.name());
        assert!(got.calls.iter().all(|call| call.executable == (status == AnswerStatus::Complete)), "{}", file.name());
    }
}

/// What a next request may carry: whole pairs can be made of it, and nothing in it is empty.
fn assert_wire(got: &Assembled, name: &str) {
    let runnable = got.calls.iter().filter(|call| call.executable).count();
    let Some(wire) = &got.wire else {
        assert!(got.text.is_empty() && runnable == 0, "{name}: no wire");
        return;
    };
    let wire: Value = serde_json::from_str(wire.as_str()).unwrap();
    if let Some(parts) = wire["parts"].as_array() {
        assert_eq!(wire["role"], "model", "{name}");
        let calls = parts.iter().filter(|part| part["functionCall"]["name"].is_string()).count();
        assert_eq!((calls, parts.is_empty()), (runnable, false), "{name}");
        assert!(
            parts.iter().all(|part| part["text"] != "" || part["thoughtSignature"].is_string()),
            "{name}: empty text"
        );
        return;
    }
    if let Some(items) = wire.as_array() {
        let calls =
            items.iter().filter(|item| matches!(item["type"].as_str().unwrap(), "function_call" | "custom_tool_call"));
        assert_eq!(calls.count(), runnable, "{name}");
        let mut said = items.iter().filter(|item| item["type"] == "message");
        assert!(said.all(|item| !item["content"].as_array().unwrap().is_empty()), "{name}: empty message");
        return;
    }
    assert_eq!(wire["role"], "assistant", "{name}");
    if let Some(blocks) = wire["content"].as_array() {
        assert!(!blocks.is_empty(), "{name}");
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        assert_eq!(calls.filter(|call| call["input"].is_object()).count(), runnable, "{name}");
        assert!(blocks.iter().all(|block| block["type"] != "text" || block["text"] != ""), "{name}: empty text");
    } else {
        let calls = wire.get("tool_calls").map(|calls| calls.as_array().unwrap());
        assert_ne!(calls.map(Vec::len), Some(0), "{name}: empty calls");
        assert_eq!(calls.map_or(0, Vec::len), runnable, "{name}");
        assert!(calls.into_iter().flatten().all(|call| call["function"]["arguments"].is_string()), "{name}");
        assert!(wire["content"].is_string() || runnable > 0, "{name}: content");
    }
}

#[test]
fn r20_a_recorded_stream_and_its_whole_response_give_the_same_message() {
    for file in recorded() {
        for bytes in &file.responses {
            let (streamed, _) = assemble(file.dialect, std::iter::once(bytes.as_slice()));
            if streamed.status != AnswerStatus::Complete {
                continue;
            }
            let expected = file.reference(bytes);
            let body = whole_body(file.dialect, &streamed, &expected);
            let whole = read_response(file.dialect, body.to_string().as_bytes());
            let name = file.name();
            assert_eq!(value_of(&whole), value_of(&streamed), "{name}: wire");
            assert_eq!(whole.text.decode(), streamed.text.decode(), "{name}");
            let calls = |of: &Assembled| {
                let call = |call: &rethread::provider::AssembledCall| {
                    let arguments: Value = serde_json::from_str(&call.arguments.decode()).unwrap_or(Value::Null);
                    (call.call_id.clone(), call.name.clone(), arguments, call.executable)
                };
                of.calls.iter().map(call).collect::<Vec<_>>()
            };
            assert_eq!(calls(&whole), calls(&streamed), "{name}");
            let rest = |of: &Assembled| {
                (of.status, of.finish_reason.clone(), of.response_id.clone(), of.usage.map(|u| (u.input, u.output)))
            };
            assert_eq!(rest(&whole), rest(&streamed), "{name}");
            // The same body where a stream was asked for.
            let (unasked, events) = assemble(file.dialect, body.to_string().as_bytes().chunks(7));
            assert_eq!((unasked, events.len()), (whole, 0), "{name}");
        }
    }
}

fn value_of(assembled: &Assembled) -> Value {
    assembled.wire.as_ref().map_or(Value::Null, |wire| serde_json::from_str(wire.as_str()).unwrap())
}

/// The whole response that the provider would have sent: its words from the simple accumulation.
fn whole_body(dialect: Dialect, streamed: &Assembled, expected: &Reference) -> Value {
    let (id, reason) = (&streamed.response_id, &expected.terminal);
    let (input, output) = expected.usage.unzip();
    if dialect == Dialect::Anthropic {
        let usage = json!({"input_tokens": input, "output_tokens": output});
        return json!({"type": "message", "id": id, "role": "assistant", "model": streamed.model, "content": expected.blocks,
            "stop_reason": reason, "stop_sequence": null, "usage": usage});
    }
    if dialect == Dialect::Gemini {
        let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output});
        return json!({"responseId": id, "modelVersion": streamed.model, "usageMetadata": usage, "candidates": [
            {"content": {"role": "model", "parts": Value::from(expected.blocks.clone())}, "finishReason": reason}]});
    }
    if dialect == Dialect::OpenAiResponses {
        let usage = json!({"input_tokens": input, "output_tokens": output});
        return json!({"id": id, "object": "response", "status": "completed", "error": null, "incomplete_details": null,
            "model": streamed.model, "output": expected.blocks, "usage": usage});
    }
    let mut message =
        json!({"role": "assistant", "content": expected.text, "refusal": null, "annotations": [], "audio": null});
    let wire = value_of(streamed);
    for (key, value) in wire.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("reasoning")) {
        message[key] = value.clone();
    }
    let calls = expected.calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    });
    message["tool_calls"] = calls.collect();
    if !expected.calls.is_empty() && expected.text.is_empty() {
        message["content"] = Value::Null;
    }
    // Mistral's reasoning is a part of the content.
    if expected.blocks.iter().any(|block| block["type"] != "text") {
        message["content"] = json!(expected.blocks);
    }
    let usage = expected.usage.map(|(input, output)| json!({"prompt_tokens": input, "completion_tokens": output}));
    json!({"id": id, "object": "chat.completion", "model": streamed.model, "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}]})
}

/// A whole response of Bedrock: the message is sent back as it was received, but for the `type` of calls.
fn check_bedrock(got: &Assembled, body: &Value, path: &std::path::Path) {
    if body["output"].is_null() {
        assert_eq!(got.status, AnswerStatus::Failed, "{}", path.display());
        assert_eq!(got.error.as_ref().unwrap().message, body["message"].as_str().unwrap());
        return;
    }
    let mut message = body["output"]["message"].clone();
    for block in message["content"].as_array_mut().unwrap() {
        if let Some(call) = block.get_mut("toolUse").filter(|call| call["type"] == "tool_use") {
            call.as_object_mut().unwrap().shift_remove("type");
        }
    }
    assert_eq!(value_of(got), message, "{}", path.display());
    let count = |name: &str| body["usage"][name].as_u64().unwrap_or(0);
    let usage = got.usage.unwrap();
    let input = count("inputTokens") + count("cacheReadInputTokens") + count("cacheWriteInputTokens");
    assert_eq!((usage.input, usage.output), (input, count("outputTokens")), "{}", path.display());
}

/// Whole responses as providers sent them.
#[test]
fn r20_recorded_whole_responses_are_read() {
    let unrecorded = [Dialect::Gemini, Dialect::GeminiInteractions, Dialect::MistralConversations];
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !unrecorded.contains(dialect)) {
        let folder = data_folder().join("exchanges").join(dialect.as_str());
        let files = std::fs::read_dir(&folder).unwrap();
        let mut read = 0;
        for path in files.map(|file| file.unwrap().path()).filter(|path| !path.ends_with("index.json")) {
            let exchange: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for step in exchange["steps"].as_array().unwrap().iter().filter(|step| step["response"].is_object()) {
                read += 1;
                let body = &step["response"];
                let got = read_response(dialect, body.to_string().as_bytes());
                let message = if dialect == Dialect::Anthropic { body } else { &body["choices"][0]["message"] };
                if dialect == Dialect::Bedrock {
                    check_bedrock(&got, body, &path);
                } else if body["error"].is_object() {
                    assert_eq!(got.status, AnswerStatus::Failed);
                    assert_eq!(got.error.unwrap().message, body["error"]["message"].as_str().unwrap());
                } else if dialect == Dialect::OpenAiResponses {
                    let whole = body["status"] == "completed";
                    assert_eq!(got.status == AnswerStatus::Complete, whole, "{}", path.display());
                    if whole {
                        assert_eq!(value_of(&got), body["output"], "{}", path.display());
                    }
                } else if let Some(wire) = value_of(&got).as_object() {
                    for (key, value) in wire.iter().filter(|(key, _)| !matches!(key.as_str(), "audio" | "tool_calls")) {
                        // Beside calls, an empty content and none are the same.
                        if key != "content" || value != "" && !value.is_null() || message[key] != "" {
                            assert_eq!(&message[key], value, "{} {key}", path.display());
                        }
                    }
                    let calls = wire.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
                    for (call, sent) in calls.zip(message["tool_calls"].as_array().into_iter().flatten()) {
                        let mut sent = sent.clone();
                        sent.as_object_mut().unwrap().shift_remove("index");
                        // Blank beside `function`.
                        sent.as_object_mut().unwrap().shift_remove("custom");
                        // Mistral leaves it out.
                        sent.as_object_mut().unwrap().entry("type").or_insert("function".into());
                        assert_eq!(*call, sent, "{}", path.display());
                    }
                } else {
                    println!("no message in {}: {message}", path.display());
                }
            }
        }
        let least = match dialect {
            Dialect::Mistral => 25,
            Dialect::Bedrock => 50,
            _ => 110,
        };
        assert!(read >= least, "{read} whole responses of {}, {least} at least", dialect.as_str());
    }
}

/// What is shown of a block: its key, its revision, and its part.
fn blocks_of(assembler: &StreamAssembler) -> Vec<(u64, u32, Part)> {
    let mut blocks = Vec::new();
    assembler.visit_blocks(&mut |block| blocks.push((block.key, block.revision, block.to_part())));
    blocks
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => Some(text.inside()),
        _ => None,
    }
}

#[test]
fn r56_the_blocks_of_every_recorded_stream_become_the_parts_of_its_message() {
    for file in recorded() {
        for bytes in &file.responses {
            let mut assembler = StreamAssembler::new(file.dialect);
            assembler.push(bytes, &mut Vec::new());
            let shown: Vec<_> = blocks_of(&assembler).into_iter().map(|(.., part)| (part.body, part.phase)).collect();
            let wire = assembler.finish().wire;
            let message = wire.as_ref().and_then(|wire| decode_answer(file.dialect, wire.view()));
            let parts: Vec<_> = message.into_iter().flat_map(|message| message.parts).collect();
            let parts: Vec<_> = (parts.into_iter())
                .filter_map(|part| match part {
                    IncomingPart::Part(part) => Some((part.body, part.phase)),
                    IncomingPart::Call(_) => None,
                })
                .collect();
            assert_eq!(shown, parts, "{}", file.name());
        }
    }
}

#[test]
fn r56_a_block_of_one_revision_only_grows_and_blocks_are_in_the_order_of_their_keys() {
    for file in recorded() {
        for bytes in &file.responses {
            let mut assembler = StreamAssembler::new(file.dialect);
            let mut before: BTreeMap<u64, (u32, Part)> = BTreeMap::new();
            for piece in bytes.chunks(97) {
                assembler.push(piece, &mut Vec::new());
                let blocks = blocks_of(&assembler);
                assert!(blocks.is_sorted_by(|one, next| one.0 < next.0), "{}", file.name());
                for (key, revision, part) in &blocks {
                    if let Some((_, old)) = before.get(key).filter(|(old, _)| old == revision) {
                        let grows = match (text_of(old), text_of(part)) {
                            (Some(old_text), Some(text)) => {
                                text.starts_with(old_text)
                                    && std::mem::discriminant(&old.body) == std::mem::discriminant(&part.body)
                            }
                            _ => old == part,
                        };
                        assert!(grows, "{}: {old:?}, then {part:?}", file.name());
                    }
                }
                before = blocks.into_iter().map(|(key, revision, part)| (key, (revision, part))).collect();
            }
        }
    }
}
