//! Stored records.

use rethread::history::LogRecord;
use rethread::run::JournalEntry;
use rethread::session_head::SessionHead;
use rethread::store::{AuditRow, JournalMark, RecordKind, StoredValue, open_record, seal_payload, seal_record};

/// Any bytes are decoded or rejected; what was decoded is encoded so that it decodes to the same.
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

fn read<T: StoredValue + std::fmt::Debug>(kind: RecordKind, payload: &[u8]) {
    let bare = bytes::Bytes::copy_from_slice(payload);
    assert!(open_record::<T>(kind, &bare).is_err() || payload.len() > 7, "a record without its header");
    // With a checksum that fits, which no mutation would find.
    let Ok(value) = open_record::<T>(kind, &seal_payload(kind, payload)) else { return };
    let again = seal_record(kind, &value);
    let same: T = open_record(kind, &again).expect("what was written can be read");
    // As text: a number may be written in more bytes than it needs, and not every type compares.
    assert_eq!(format!("{value:?}"), format!("{same:?}"));
    assert_eq!(seal_record(kind, &same), again);
}
