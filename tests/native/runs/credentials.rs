//! R68: members of `params` that hold credentials are sent, stored nowhere, quoted nowhere, and given again at a
//! resume.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::spy_store::Spy;
use rethread::error::ErrorCode;
use rethread::json::{Json, ObjectWriter};
use rethread::message::Dialect;
use rethread::run::{RunEvent, RunSetup, RunStatus, StoredRun};
use rethread::store::read_journal;

const KEY: &str = "xq7-hunter2-hunter2";

/// `params` of a dialect with the key in them, and where it stands.
const GIVEN: [(Dialect, &str, &str); 3] = [
    (CHAT, r#"{"model":"m-1","api_key":"@@","extra_headers":{"Authorization":"Bearer @@"}}"#, "params.api_key"),
    (
        CLAUDE,
        r#"{"model":"m-1","max_tokens":9,"mcp_servers":[{"type":"url","name":"n","url":"https://h/","authorization_token":"@@"}]}"#,
        "params.mcp_servers[0].authorization_token",
    ),
    (
        RESPONSES,
        r#"{"model":"m-1","tools":[{"type":"mcp","server_label":"s","server_url":"https://h/","authorization":"@@","headers":{"x":"@@"}}]}"#,
        "params.tools[0].authorization",
    ),
];

fn with_params(dialect: Dialect, stream: bool, params: &str) -> RunSetup {
    let mut setup = setup("run", dialect, stream);
    setup.provider.params = Json::parse(&params.replace("@@", KEY)).unwrap();
    setup
}

fn holds_key(bytes: &[u8]) -> bool {
    bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes())
}

fn stored(host: &Host<'_>, spy: &Spy) -> StoredRun {
    StoredRun::read(&block_on(read_journal(spy, "s", &host.pending()[0])).unwrap(), SEED).unwrap()
}

#[test]
fn r68_a_credential_in_params_is_sent_and_stored_nowhere() {
    for (dialect, params, path) in GIVEN {
        for stream in [false, true] {
            let spy = Spy::default();
            let mut host = Host::open(&spy, "s", "h");
            host.start(with_params(dialect, stream, params), "Go").unwrap();
            host.writes_left = Some(3);
            assert!(host.drive(three_tools).is_none());
            assert!(host.asked[0].to_string().contains(KEY), "{dialect:?}");
            let written = spy.written.borrow().clone();
            assert!(!written.is_empty() && !holds_key(&written), "{dialect:?}");
            // What is pending says what has to be given again.
            let mut shown = String::new();
            let mut object = ObjectWriter::new(&mut shown);
            stored(&host, &spy).write(&mut object, "s", "interrupted");
            object.end();
            assert!(shown.contains(&format!("\"withheld\":[\"{path}\"")) && !shown.contains(KEY), "{shown}");
            assert!(shown.contains("m-1"), "the other parameters are there: {shown}");
            // Without it nothing happens; with it the run goes on and sends it.
            let mut second = Host::open(&spy, "s", "second");
            let bare = with_params(dialect, stream, r#"{"model":"m-1","max_tokens":9}"#);
            let error = second.resume(bare).expect_err("it lacks the credential");
            assert_eq!(error.code, ErrorCode::ConfigInvalid);
            assert!(error.message.contains(path), "{}", error.message);
            let mut third = Host::open(&spy, "s", "third");
            third.resume(with_params(dialect, stream, params)).unwrap();
            assert_eq!(third.drive(three_tools).unwrap().status, RunStatus::Finished);
            assert!(third.asked[0].to_string().contains(KEY));
            assert!(!holds_key(&spy.written.borrow()));
        }
    }
}

#[test]
fn r68_a_credential_in_params_is_removed_from_provider_errors() {
    for (dialect, params, _) in GIVEN {
        for stream in [false, true] {
            let spy = Spy::default();
            let mut host = Host::open(&spy, "s", "h");
            let setup = with_params(dialect, stream, params);
            let body = format!(r#"{{"error":{{"message":"no\n{KEY}, {KEY}","code":"{KEY}","type":"{KEY}"}}}}"#);
            let outcome = host.ask(setup, "Go", |_| Answer::Status(400, vec![], body.clone()));
            let error = outcome.error.unwrap();
            assert!(error.message.contains("no\n[redacted], [redacted]"), "{}", error.message);
            assert!(!format!("{error:?} {:?}", host.events).contains(KEY));
            assert!(!holds_key(&spy.written.borrow()));
        }
    }
}

#[test]
fn r68_a_credential_in_params_is_removed_from_error_events() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    let stream = format!("data: {{\"error\":{{\"message\":\"bad {KEY}\",\"code\":\"c\"}}}}\n\n");
    let outcome = host.ask(with_params(CHAT, true, GIVEN[0].1), "Go", |_| Answer::Bytes(stream.clone().into_bytes()));
    assert_eq!(outcome.status, RunStatus::Failed);
    assert!(host.events.iter().any(|event| matches!(event, RunEvent::Stream { .. })));
    assert!(!format!("{:?} {:?}", outcome.error, host.events).contains(KEY));
    assert!(!holds_key(&spy.written.borrow()));
}

#[test]
fn r68_a_resume_in_another_dialect_needs_no_withheld_member() {
    let spy = Spy::default();
    let mut host = Host::open(&spy, "s", "h");
    host.start(with_params(CHAT, false, GIVEN[0].1), "Go").unwrap();
    host.writes_left = Some(2);
    assert!(host.drive(three_tools).is_none());
    let mut second = Host::open(&spy, "s", "second");
    second.resume(with_params(CLAUDE, false, r#"{"model":"m","max_tokens":9}"#)).unwrap();
    assert_eq!(second.drive(three_tools).unwrap().status, RunStatus::Finished);
}
