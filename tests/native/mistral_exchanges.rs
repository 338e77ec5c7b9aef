//! Requests that Mistral accepted: taken apart, stored, and written again to the byte.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use rethread::history::{History, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, Settings, decode_body};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::Value;

/// The messages of the next request over a history that came as that body.
fn rendered(dialect: Dialect, body: &str) -> String {
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let mut history = History::new(Seed(7));
    let joined = join(None, &history, items, &Origin { at: 1_000, ..Origin::default() }, &CountingIds::default());
    assert!(joined.report.is_empty(), "{:?}", joined.report);
    joined.entries.into_iter().for_each(|entry| history.apply(entry));
    let provider = ProviderRequest {
        dialect,
        url: "https://example.com".into(),
        params: Json::parse(r#"{"model":"m"}"#).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    };
    let policy =
        Policy { call: PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() }, ..Policy::default() };
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let rendered = Renderer::default().render(&history, None, &request, 2_000_000).unwrap();
    let text = String::from_utf8(rendered.body).unwrap();
    JsonRef::parse(&text).unwrap().get("messages").unwrap().as_raw().to_owned()
}

#[test]
fn r40_r45_every_accepted_request_comes_back_byte_for_byte() {
    let root = std::env::var_os("RETHREAD_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpora").into(), std::path::PathBuf::from);
    let mut checked = 0;
    for file in std::fs::read_dir(root.join("exchanges/mistral")).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap() == "index.json" {
            continue;
        }
        let exchange: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for step in exchange["steps"].as_array().unwrap().iter().filter(|step| step["status"] == 200) {
            let body = step["request"].to_string();
            let messages = step["request"]["messages"].to_string();
            assert_eq!(rendered(Dialect::Mistral, &body), messages, "{}", path.display());
            checked += 1;
        }
    }
    println!("{checked} accepted requests");
    assert!(checked > 0);
}
