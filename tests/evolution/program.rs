//! One of the two builds that the test runs on one database, which is a file. The feature `next` is the later build.
//!
//! `program FILE append TEXT` | `append-call` | `append-result` | `append-variant TEXT` | `show` | `write-journal` |
//! `read-journal`

use rethread::error::Error;
use rethread::history::{HistoryEntry, JoinBase, Origin, join};
use rethread::id::{IdSource, Seed};
use rethread::json::{Json, JsonRef, ObjectWriter};
use rethread::message::{Dialect, Message, PartBody, Role};
use rethread::provider::decode_body;
use rethread::run::{JournalEntry, StoredRun};
use rethread::session_head::SessionHead;
use rethread::store::{
    AuditRow, Batch, Change, LogStore, MemoryStore, Query, Record, RecordKind, SessionLog, Table, commit, open_record,
    open_session,
};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}

struct NamedIds<'n>(&'n str, Cell<u32>);

impl IdSource for NamedIds<'_> {
    fn new_id(&self) -> String {
        self.1.set(self.1.get() + 1);
        format!("{}-{}", self.0, self.1.get())
    }
}

const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The database: the revision and the head, then a record per line, all as bytes that this build has not looked into.
fn load(file: &str) -> MemoryStore {
    let store = MemoryStore::default();
    let Ok(text) = std::fs::read_to_string(file) else { return store };
    let mut lines = text.lines();
    let (revision, head) = lines.next().unwrap().split_once(' ').unwrap();
    let put = lines.map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let table = TABLES[fields[0].parse::<usize>().unwrap()];
        Record { table, key: fields[1].parse().unwrap(), last_key: None, index: None, value: from_hex(fields[2]).into() }
    });
    let batch = Batch {
        head: from_hex(head).into(),
        at_least: revision.parse().unwrap(),
        put: put.collect(),
        ..Batch::default()
    };
    block_on(store.append("s", 0, batch, "load")).unwrap();
    store
}

fn save(file: &str, store: &MemoryStore) {
    let head = block_on(store.head("s")).unwrap().unwrap();
    let mut text = format!("{} {}\n", head.revision, hex(&head.value));
    for (number, table) in TABLES.into_iter().enumerate() {
        for record in block_on(store.read("s", Query::all(table))).unwrap() {
            text.push_str(&format!("{number} {} {}\n", record.key, hex(&record.value)));
        }
    }
    std::fs::write(file, text).unwrap();
}

/// Appends messages in the format of chat completions. `name` begins the ids.
fn append(store: &MemoryStore, log: &RefCell<SessionLog>, name: &str, messages: &str, has_new_variant: bool) -> Result<(), Error> {
    let items = decode_body(Dialect::OpenAiChat, JsonRef::parse(messages).unwrap())?;
    let ids = NamedIds(name, Cell::new(0));
    let mut entries = join(JoinBase::history(&log.borrow().history), items, &Origin { at: 1_000, ..Origin::default() }, &ids).entries;
    for entry in &mut entries {
        if let HistoryEntry::Message(message) = entry {
            change_message(message, has_new_variant);
        }
    }
    let edit: Box<dyn Fn(&mut SessionHead)> = Box::new(change_head);
    let change = Change { operation: name.to_owned(), at: 1_000, entries, edit: Some(edit), ..Change::default() };
    block_on(commit(store, log, &change)).map(|_| ())
}

/// Sets a field that the later build does not have.
#[cfg(not(feature = "next"))]
fn change_message(message: &mut Message, _: bool) {
    message.parent_id = Some("parent".into());
}

/// Sets a variant that the current build does not have. The source of this build sets the new fields itself.
#[cfg(feature = "next")]
fn change_message(message: &mut Message, has_new_variant: bool) {
    if has_new_variant {
        message.source.kind = rethread::message::SourceKind::Plugin;
    }
}

#[cfg(not(feature = "next"))]
fn change_head(head: &mut SessionHead) {
    head.title = Some("Title".into());
}

#[cfg(feature = "next")]
fn change_head(_: &mut SessionHead) {}

/// The audit rows of the session, as `status` or, in the later build, as `status, mood`.
fn audit_rows(store: &MemoryStore) -> Vec<String> {
    let records = block_on(store.read("s", Query::all(Table::ToolInvocations))).unwrap();
    let rows = records.iter().map(|record| open_record::<AuditRow>(RecordKind::Audit, &record.value).unwrap());
    #[cfg(feature = "next")]
    let texts = rows.map(|row| format!("{}, {}", row.status.as_str(), row.mood.unwrap_or_default()));
    #[cfg(not(feature = "next"))]
    let texts = rows.map(|row| row.status.as_str().to_owned());
    texts.collect()
}

fn show(store: &MemoryStore, log: &SessionLog) -> Json {
    ObjectWriter::build(|out| {
        out.array("texts", |array| {
            for message in log.history.messages().iter().filter(|message| message.role == Role::User) {
                let Some(PartBody::Text(text)) = message.parts.first().map(|part| &part.body) else { continue };
                array.text(&text.decode());
            }
        });
        out.text_or_null("readOnly", log.writable().err().map(|error| error.code.as_str()));
        out.number("findings", log.findings.len() as u64);
        out.text_or_null("title", log.head.title.as_deref());
        let parents = log.history.messages().iter().filter(|message| message.parent_id.is_some()).count();
        out.number("parents", parents as u64);
        out.array("calls", |array| {
            for row in audit_rows(store) {
                array.text(&row);
            }
        });
        #[cfg(feature = "next")]
        {
            let moods = log.history.messages().iter().filter(|message| message.mood.is_some()).count();
            out.number("moods", moods as u64).text_or_null("mood", log.head.mood.as_deref());
        }
    })
}

const CALL: &str = r#"[{"role":"user","content":"call"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}]"#;
const RESULT: &str = r#"[{"role":"tool","tool_call_id":"c","content":"done"}]"#;

fn answered() -> JournalEntry {
    let mut message = Message::from_text(Role::Assistant, "answer");
    change_message(&mut message, false);
    JournalEntry::Answered { message, invocations: Vec::new() }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, command) = (arguments[0].as_str(), arguments[1].as_str());
    if command == "write-journal" {
        return std::fs::write(file, hex(&answered().seal())).unwrap();
    }
    if command == "read-journal" {
        let record = from_hex(&std::fs::read_to_string(file).unwrap());
        // A journal begins with another entry, so this one is never enough: what matters is which error comes first.
        let error = StoredRun::read(&[record.into()], Seed(7)).unwrap_err();
        return println!("{{\"code\":\"{}\"}}", error.code.as_str());
    }
    let store = load(file);
    let log = RefCell::new(block_on(open_session(&store, "s", Seed(7), 1)).unwrap());
    let turn = |text: &str| format!(r#"[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":"ok"}}]"#);
    let outcome = match command {
        "show" => return println!("{}", show(&store, &log.borrow()).as_str()),
        "append-call" => append(&store, &log, "call", CALL, false),
        "append-result" => append(&store, &log, "result", RESULT, false),
        "append-variant" => append(&store, &log, &arguments[2], &turn(&arguments[2]), true),
        _ => append(&store, &log, &arguments[2], &turn(&arguments[2]), false),
    };
    match outcome {
        Ok(()) => {
            save(file, &store);
            println!("{{\"code\":null}}");
        }
        Err(error) => println!("{{\"code\":\"{}\"}}", error.code.as_str()),
    }
}
