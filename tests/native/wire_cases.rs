//! The 79 conformance cases of wire formats, each by its number, on every dialect that it says something about.
//!
//! A body is repaired, converted, or stored and rendered; no way may end in a body that `validate` refuses.

#![allow(clippy::new_without_default)]

mod content;
mod ids;
mod names;
mod order;
mod parts;
mod sequence;
mod stream_ends;
mod streams;

pub use bodies::*;
pub use talk::{id_of, list_name, raw, read, words, write};

use crate::wire_bodies as bodies;
use crate::wire_talk as talk;
use rethread::finding::{Finding, Report, Severity};
use rethread::history::{History, Incoming, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, RepairOptions, Settings, ToolDefinition, decode_body, repair, validate};
use rethread::render::{RenderRequest, Renderer, convert};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::Value;

pub const ALL: [Dialect; Dialect::ALL.len()] = Dialect::ALL;

/// A session without a store.
pub struct Stored {
    pub history: History,
    pub report: Report,
    ids: CountingIds,
}

impl Stored {
    pub fn new() -> Self {
        Self { history: History::new(Seed(3)), report: Report::new(), ids: CountingIds::default() }
    }

    pub fn of(dialect: Dialect, body: &Value) -> Self {
        let mut own = Self::new();
        own.append(dialect, &body.to_string());
        own
    }

    pub fn append(&mut self, dialect: Dialect, body: &str) {
        self.append_items(decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap());
    }

    pub fn append_items(&mut self, items: Vec<Incoming>) {
        let origin = Origin { at: 1_000, ..Origin::default() };
        let joined = join(JoinBase::history(&self.history), items, &origin, &self.ids);
        self.report.extend(joined.report);
        joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
    }

    /// The next body of a dialect, by its bytes; its rules take it.
    pub fn bytes(&self, dialect: Dialect) -> (String, Report) {
        self.bytes_for(&request(dialect), &[])
    }

    pub fn bytes_for(&self, provider: &ProviderRequest, tools: &[ToolDefinition]) -> (String, Report) {
        self.bytes_by(provider, tools, &always())
    }

    pub fn bytes_by(&self, provider: &ProviderRequest, tools: &[ToolDefinition], policy: &Policy) -> (String, Report) {
        let asked = RenderRequest { provider, instructions: None, tools, policy };
        let rendered = Renderer::default().render(&self.history, None, &asked, 2_000).unwrap();
        let text = String::from_utf8(rendered.body).unwrap();
        accepted(text.as_bytes(), provider.dialect);
        (text, rendered.report)
    }

    pub fn body(&self, dialect: Dialect) -> Value {
        serde_json::from_str(&self.bytes(dialect).0).unwrap()
    }
}

pub fn always() -> Policy {
    let call = PolicyLayer {
        freshness: Some(Window::Always),
        error_freshness: Some(Window::Always),
        ..PolicyLayer::default()
    };
    Policy { call, ..Policy::default() }
}

pub fn request(dialect: Dialect) -> ProviderRequest {
    let params = match dialect {
        Dialect::Anthropic => r#"{"model":"m","max_tokens":9}"#,
        Dialect::Gemini | Dialect::Bedrock => "{}",
        _ => r#"{"model":"m"}"#,
    };
    with_params(dialect, params)
}

pub fn with_params(dialect: Dialect, params: &str) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(params).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

/// The rules take a body.
pub fn accepted(body: &[u8], dialect: Dialect) {
    let found = validate(body, dialect);
    assert!(codes(&found, Severity::Error).is_empty(), "{dialect:?} {found:?}\n{}", String::from_utf8_lossy(body));
}

pub fn converted(body: &Value, from: Dialect, to: Dialect) -> (Value, Report) {
    let (out, report) = convert(body.to_string().as_bytes(), from, to, &RepairOptions::default()).unwrap();
    accepted(&out, to);
    (serde_json::from_slice(&out).unwrap(), report)
}

pub fn repaired(body: &Value, dialect: Dialect) -> (Value, Report) {
    repaired_body(body, dialect);
    let (out, report) = repair(body.to_string().as_bytes(), dialect, &RepairOptions::default()).unwrap();
    (serde_json::from_slice(&out).unwrap(), report)
}

pub fn has(report: &[Finding], codes: &[&str]) -> bool {
    codes.is_empty() || report.iter().any(|found| codes.contains(&found.code.as_str()))
}

/// Checks that a conversation in each dialect, repaired, stored and rendered, and converted to each dialect, reads as
/// `want`. Each report has one of the codes, if there are any.
pub fn assert_converts(given: &str, want: &str, codes: &[&str]) {
    assert_converts_from(&ALL, given, want, codes);
}

/// Like `assert_converts`, for a conversation that only the dialects `from` can represent.
pub fn assert_converts_from(from: &[Dialect], given: &str, want: &str, codes: &[&str]) {
    for from in from.iter().copied() {
        let body = write(from, given);
        let (out, report) = repaired(&body, from);
        assert_eq!(read(from, &out), want, "{from:?} repaired: {out}");
        assert!(has(&report, codes), "{from:?} {report:?}");
        let stored = Stored::of(from, &body);
        for to in ALL {
            let (text, report) = stored.bytes(to);
            assert_eq!(read(to, &serde_json::from_str(&text).unwrap()), want, "{from:?} stored, to {to:?}: {text}");
            let reports = [&stored.report[..], &report[..]].concat();
            // A stored history cannot have some of the problems, so they are not reported.
            assert!(are_positional(codes) || has(&reports, codes), "{from:?} {to:?} {reports:?}");
            let (out, report) = converted(&body, from, to);
            // Messages of the user in a row are one in a valid body of Bedrock, with two texts.
            let merged = want.replace("q; u again", "qagain").replace("p; u n", "pn");
            let reads = read(to, &out);
            let want =
                if from == Dialect::Bedrock && merges(&body) && reads == merged { merged.as_str() } else { want };
            assert_eq!(reads, want, "{from:?} converted to {to:?}: {out}");
            assert!(has(&report, codes), "{from:?} to {to:?} {report:?}");
        }
    }
}

/// Returns true if messages of a body in a row have one role.
fn merges(body: &Value) -> bool {
    let list = body["messages"].as_array().unwrap();
    list.windows(2).any(|pair| pair[0]["role"] == pair[1]["role"])
}

/// Returns true for problems of a result's position. In a history a result belongs to its call and has no position.
fn are_positional(codes: &[&str]) -> bool {
    codes.iter().all(|code| matches!(*code, "interposed_message" | "result_before_call"))
}
