use super::{Transfer, decode};
use crate::error::ErrorCode;
use crate::store::remote::call::StoreCall;
use crate::store::{
    Appended, AuditIndex, AuditQuery, Batch, ListedBy, LogKey, MAX_KEY, Page, Query, RecencyQuery, Record, SessionRow,
    StoredBranch, StoredHead, Table,
};
use bytes::Bytes;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn record(key: u64) -> Record {
    let index = AuditIndex { tool: "lööp".into(), status: "ok".into(), channel: Some(String::new()), at: MAX_KEY };
    let last_key = (key > 0).then_some(key + 7);
    Record {
        table: Table::ToolInvocations,
        key,
        last_key,
        index: Some(index),
        value: Bytes::from(vec![0, 255, key as u8]),
    }
}

fn head() -> StoredHead {
    StoredHead { revision: 3, value: Bytes::from_static(b"head") }
}

/// Checks that a value is read as it was written, and no part of its bytes as a value.
fn crosses<T: Transfer + PartialEq + std::fmt::Debug>(value: T) {
    let bytes = Bytes::from(value.encode());
    assert_eq!(decode::<T>(bytes.clone()).unwrap(), value);
    for length in 0..bytes.len() {
        assert_eq!(decode::<T>(bytes.slice(..length)).unwrap_err().code, ErrorCode::Internal, "{value:?} to {length}");
    }
    let longer = Bytes::from([bytes.as_ref(), &[0]].concat());
    assert_eq!(decode::<T>(longer).unwrap_err().code, ErrorCode::Internal, "{value:?} and a byte more");
}

#[test]
fn r46_all_values_of_the_contract_cross_unchanged() {
    let batch = Batch {
        head: Bytes::from_static(b"h"),
        channel: Some("web".into()),
        listed_by: ListedBy { updated_at: MAX_KEY, is_archived: true },
        at_least: 9,
        put: vec![record(0), record(1)],
        replace: vec![record(MAX_KEY)],
        remove: vec![(Table::Log, 1), (Table::Runs, 2)],
        erases: true,
        notice: Some("notice".into()),
    };
    crosses(batch);
    crosses(Some(head()));
    crosses(None::<StoredHead>);
    crosses(Query { reverse: true, limit_bytes: u64::MAX, expected_records: 5, ..Query::all(Table::Runs) });
    crosses(AuditQuery {
        session: Some("s".into()),
        tool: Some("t".into()),
        status: Some("ok".into()),
        channel: None,
        since: Some(1),
        until: Some(u64::MAX),
        cursor: Some("c".into()),
        limit: 7,
    });
    crosses(RecencyQuery { channel: Some("web".into()), archived: Some(true), cursor: Some("c".into()), limit: 7 });
    for appended in [Appended::Revision(1), Appended::Conflict(2), Appended::Occupied] {
        crosses(appended);
    }
    crosses(vec![LogKey { session: "s".into(), key: 4 }]);
    crosses(Page { items: vec![SessionRow { id: "s".into(), head: head() }], cursor: Some("next".into()) });
    crosses(Page { items: vec![("s".to_owned(), record(2))], cursor: None });
    crosses(vec![StoredBranch {
        id: "b".into(),
        head: Bytes::from_static(b"x"),
        fork_head: Some(Bytes::from_static(b"y")),
        log: vec![record(3)],
    }]);
}

#[test]
fn r62_bytes_that_are_no_call_are_an_error() {
    for bytes in
        [&[][..], &[12], &[255, 1, 2], &[0, 255, 255, 255, 255, 255, 255, 255, 255], &[5, 0, 0, 0, 0, 0, 0, 0, 127]]
    {
        let error = decode::<StoreCall>(Bytes::copy_from_slice(bytes)).err().unwrap();
        assert_eq!(error.code, ErrorCode::Internal, "{bytes:?}");
    }
}
