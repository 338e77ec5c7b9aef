//! One of the two builds that the test runs on one database, which is a file. The feature `next` is the later build.
//!
//! `program FILE append TEXT` | `show` | `append-variant TEXT` | `write-journal` | `read-journal`

use rethread::error::Error;
use rethread::history::{Incoming, IncomingMessage, IncomingPart, JoinBase, Origin, join};
use rethread::id::{IdSource, Seed};
use rethread::json::{Json, JsonStr, ObjectWriter};
use rethread::message::{Message, PartBody, Role};
use rethread::run::{JournalEntry, recover};
use rethread::store::{
    Batch, Change, LogStore, MemoryStore, Query, Record, SessionLog, Table, commit, open_session,
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

fn append(store: &MemoryStore, log: &RefCell<SessionLog>, text: &str, has_new_variant: bool) -> Result<(), Error> {
    let message = |role, text: &str| {
        let parts = vec![IncomingPart::Part(PartBody::Text(JsonStr::new(text)).into())];
        Incoming::Message(IncomingMessage { role, parts, dialect: None, template: None })
    };
    let items = vec![message(Role::User, text), message(Role::Assistant, "ok")];
    let ids = NamedIds(text, Cell::new(0));
    let mut entries = join(JoinBase::history(&log.borrow().history), items, &Origin { at: 1_000, ..Origin::default() }, &ids).entries;
    for entry in &mut entries {
        if let rethread::history::HistoryEntry::Message(message) = entry {
            change_message(message, has_new_variant);
        }
    }
    let edit: Box<dyn Fn(&mut rethread::session_head::SessionHead)> = Box::new(change_head);
    let change = Change { operation: text.to_owned(), at: 1_000, entries, edit: Some(edit), ..Change::default() };
    block_on(commit(store, log, &change)).map(|_| ())
}

#[cfg(not(feature = "next"))]
fn change_message(message: &mut Message, _: bool) {
    message.parent_id = Some("parent".into());
}

#[cfg(feature = "next")]
fn change_message(message: &mut Message, has_new_variant: bool) {
    message.mood = Some("calm".into());
    if has_new_variant {
        message.source.kind = rethread::message::SourceKind::Plugin;
    }
}

#[cfg(not(feature = "next"))]
fn change_head(head: &mut rethread::session_head::SessionHead) {
    head.title = Some("Title".into());
}

#[cfg(feature = "next")]
fn change_head(head: &mut rethread::session_head::SessionHead) {
    head.mood = Some("bright".into());
}

fn show(log: &SessionLog) -> Json {
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
        #[cfg(feature = "next")]
        {
            let moods = log.history.messages().iter().filter(|message| message.mood.is_some()).count();
            out.number("moods", moods as u64).text_or_null("mood", log.head.mood.as_deref());
        }
    })
}

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
        let error = recover(&[record.into()], Seed(7)).unwrap_err();
        return println!("{{\"code\":\"{}\"}}", error.code.as_str());
    }
    let store = load(file);
    let log = RefCell::new(block_on(open_session(&store, "s", Seed(7), 1)).unwrap());
    match command {
        "show" => println!("{}", show(&log.borrow()).as_str()),
        _ => match append(&store, &log, &arguments[2], command == "append-variant") {
            Ok(()) => {
                save(file, &store);
                println!("{{\"code\":null}}");
            }
            Err(error) => println!("{{\"code\":\"{}\"}}", error.code.as_str()),
        },
    }
}
