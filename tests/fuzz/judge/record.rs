//! Stored records.

use rethread::history::LogRecord;
use rethread::run::JournalEntry;
use rethread::session_head::SessionHead;
use rethread::store::{AuditRow, JournalMark, RecordKind, open_record, seal_record};
use rethread::stored::{Reader, Stored};

/// Bytes as they are: sealed, they get a checksum that fits. No mutation would hit upon it.
struct Payload<'a>(&'a [u8]);

impl Stored for Payload<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }

    fn read(_: &mut Reader<'_>) -> Self {
        Self(&[])
    }
}

/// Any bytes are read or refused; what was read is written so that it reads the same.
pub fn record(data: &[u8]) {
    let [head, payload @ ..] = data else { return };
    match head % 5 {
        0 => read::<SessionHead>(RecordKind::Head, payload),
        1 => read::<LogRecord>(RecordKind::Log, payload),
        2 => read::<AuditRow>(RecordKind::Audit, payload),
        3 => read::<JournalEntry>(RecordKind::Journal, payload),
        _ => read::<JournalMark>(RecordKind::JournalMark, payload),
    }
}

fn read<T: Stored + std::fmt::Debug>(kind: RecordKind, payload: &[u8]) {
    assert!(open_record::<T>(kind, payload).is_err() || payload.len() > 6, "a record without its head");
    let sealed = seal_record(kind, &Payload(payload));
    let Ok(value) = open_record::<T>(kind, &sealed) else { return };
    let again = seal_record(kind, &value);
    let same: T = open_record(kind, &again).expect("what was written can be read");
    // By their words: a number may be written in more bytes than it needs, and not every type compares.
    assert_eq!(format!("{value:?}"), format!("{same:?}"));
    assert_eq!(seal_record(kind, &same), again);
}
