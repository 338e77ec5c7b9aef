//! Stored records.

use rethread::history::LogRecord;
use rethread::run::JournalEntry;
use rethread::session::Session;
use rethread::store::{AuditRow, Kind, open_record, seal_record};
use serde::de::DeserializeOwned;
use serde::ser::{Serialize, SerializeTuple, Serializer};

/// Bytes as they are: sealed, they get a checksum that fits. No mutation would hit upon it.
struct Payload<'a>(&'a [u8]);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        self.0.iter().try_for_each(|byte| tuple.serialize_element(byte))?;
        tuple.end()
    }
}

/// Any bytes are read or refused; what was read is written so that it reads the same.
pub fn record(data: &[u8]) {
    let [head, payload @ ..] = data else { return };
    match head % 4 {
        0 => read::<Session>(Kind::Head, payload),
        1 => read::<LogRecord>(Kind::Log, payload),
        2 => read::<AuditRow>(Kind::Audit, payload),
        _ => read::<JournalEntry>(Kind::Journal, payload),
    }
}

fn read<T: DeserializeOwned + Serialize + std::fmt::Debug>(kind: Kind, payload: &[u8]) {
    assert!(open_record::<T>(kind, payload).is_err() || payload.len() > 6, "a record without its head");
    let sealed = seal_record(kind, &Payload(payload)).expect("bytes can be written");
    let Ok(value) = open_record::<T>(kind, &sealed) else { return };
    let again = seal_record(kind, &value).expect("what was read can be written");
    let same: T = open_record(kind, &again).expect("what was written can be read");
    // By their words: a number may be written in more bytes than it needs, and not every type compares.
    assert_eq!(format!("{value:?}"), format!("{same:?}"));
    assert_eq!(seal_record(kind, &same).expect("it was written before"), again);
}
