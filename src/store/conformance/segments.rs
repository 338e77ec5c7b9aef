//! Checks of reading: ranges, limits, segments, pages, and the largest keys.

use super::context::{StoreCheckContext, audit, batch, both, ensure, log, range, replacement, segment, summary};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{AuditQuery, Batch, LogKey, MAX_KEY, Query, Table};

pub(super) async fn segments_are_found_by_what_they_span(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    // 0 to 9, 10 to 14, two ordinary ones, 20 to 29; and one that was left behind inside the first.
    let all = [
        segment(0, 9, b"a"),
        log(4, b"left"),
        segment(10, 14, b"b"),
        log(15, b"c"),
        log(16, b"d"),
        segment(20, 29, b"e"),
    ];
    context.written(session, 0, batch(b"1", all.to_vec())).await?;
    context.expect_log(session, &all).await?;
    let cases: [(u64, u64, &[u64]); 10] = [
        (0, 0, &[0]),
        (5, 5, &[0]),
        (4, 9, &[0, 4]),
        (9, 10, &[0, 10]),
        (14, 15, &[10, 15]),
        (16, 16, &[16]),
        (17, 19, &[]),
        (17, 25, &[20]),
        (29, MAX_KEY, &[20]),
        (30, MAX_KEY, &[]),
    ];
    for (from, to, want) in cases {
        let mut got = context.keys(session, range(from, to)).await?;
        ensure!(got == want, "{from}..={to} gave {got:?}, and should give {want:?}");
        got = context.keys(session, Query { reverse: true, ..range(from, to) }).await?;
        got.reverse();
        ensure!(got == want, "{from}..={to} in reverse gave {got:?} (turned), and should give {want:?}");
    }
    let tail = context.keys(session, Query { reverse: true, limit_bytes: 2, ..range(12, 16) }).await?;
    ensure!(tail == [16, 15], "two bytes from the end gave {tail:?}");
    let first = context.keys(session, Query { limit_bytes: 1, ..range(12, 16) }).await?;
    ensure!(first == [10], "one byte from within a segment gave {first:?}");
    Ok(())
}

pub(super) async fn log_records_are_found_by_their_keys(context: &StoreCheckContext) -> Result<()> {
    let (one, two, long) = (context.session("one"), context.session("two"), context.session(&"l".repeat(2000)));
    let large = usize::try_from(context.store.capabilities().max_value_bytes.min(1_200_000)).unwrap_or(usize::MAX);
    // One was left behind inside a segment.
    let stored = [log(0, b"0"), segment(1, 9, b"1 to 9"), log(4, b"left"), log(20, b"20"), log(30, &vec![3; large])];
    let (small, all) = (stored.get(..4).unwrap_or_default(), &stored[..]);
    for (session, records) in [(&one, small), (&two, all), (&long, small)] {
        context.written(session, 0, batch(b"h", records.to_vec())).await?;
    }
    // More keys than one statement of a database takes.
    let absent = context.session("absent");
    let keys_of = |session: &String| {
        [0, 1, 4, 5, 9, 10, 19, 20, 21, 30, MAX_KEY].map(|key| LogKey { session: session.clone(), key })
    };
    let keys: Vec<_> = [&one, &absent, &two, &long].into_iter().flat_map(keys_of).collect();
    let found = context.other.log_records(&keys).await?;
    for LogKey { session, key } in &keys {
        let mut got = found.iter().filter(|(of, record)| of == session && record.spans(*key));
        let records = if *session == two { all } else { small };
        let is_stored = *session != absent && records.iter().any(|record| record.spans(*key));
        ensure!(got.clone().next().is_some() == is_stored, "key {key} of {session:?} is stored: {is_stored}");
        ensure!(got.all(|(_, record)| stored.contains(record)), "key {key} of {session:?} gave another record");
    }
    ensure!(
        context.store.log_records(&[]).await?.is_empty(),
        "`log_records` returned records for an empty list of keys"
    );
    Ok(())
}

pub(super) async fn segments_replace_and_are_replaced(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, batch(b"1", (0..8).map(|key| log(key, b"row")).collect())).await?;
    let gather = |last: u64, value: &[u8]| Batch {
        remove: (0..=last).map(|key| (Table::Log, key)).collect(),
        ..batch(b"2", vec![segment(0, last, value)])
    };
    context.written(session, 1, gather(3, b"four")).await?;
    context
        .expect_log(session, &[segment(0, 3, b"four"), log(4, b"row"), log(5, b"row"), log(6, b"row"), log(7, b"row")])
        .await?;
    context.written(session, 2, gather(6, b"seven")).await?;
    context.expect_log(session, &[segment(0, 6, b"seven"), log(7, b"row")]).await?;
    context.written(session, 3, replacement(b"3", vec![segment(0, 2, b"shorter")])).await?;
    ensure!(
        context.keys(session, range(3, 6)).await?.is_empty(),
        "a segment that was replaced still spans what it spanned"
    );
    context.written(session, 4, replacement(b"4", vec![log(0, b"row again")])).await?;
    context.expect_log(session, &[log(0, b"row again"), log(7, b"row")]).await
}

pub(super) async fn a_reader_misses_nothing_while_segments_are_made(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    const COUNT: u64 = 192;
    context.written(session, 0, batch(b"h", (0..COUNT).map(|key| log(key, &[1; 700])).collect())).await?;
    let writer = async {
        for at in 0..COUNT / 16 {
            let first = at.saturating_mul(16);
            let last = first.saturating_add(15);
            let swap = Batch {
                remove: (first..=last).map(|key| (Table::Log, key)).collect(),
                ..batch(b"h", vec![segment(first, last, &[2; 16 * 700])])
            };
            context.written(session, at.saturating_add(1), swap).await?;
        }
        Ok(())
    };
    let reader = async {
        for at in 0..24_u64 {
            let from = at.saturating_mul(7);
            let query = Query { reverse: at % 3 == 1, ..range(from, MAX_KEY) };
            let mut records = Vec::new();
            if at % 3 == 2 {
                context.other.read_parts(session, query, &mut |part| records.extend(part)).await?;
            } else {
                records = context.other.read(session, query).await?;
            }
            if query.reverse {
                records.reverse();
            }
            let mut next = from;
            for record in &records {
                ensure!(record.key <= next, "a read from {from} during a merge misses {next}: {}", summary(&records));
                next = next.max(record.last_key.unwrap_or(record.key).saturating_add(1));
            }
            ensure!(next == COUNT, "a read from {from} during a merge ends before {next}: {}", summary(&records));
        }
        Ok(())
    };
    let (wrote, read) = both(writer, reader).await;
    wrote?;
    read
}

pub(super) async fn ranges_and_limits_hold(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context
        .written(session, 0, batch(b"1", (0..30).map(|at: u64| log(at.saturating_mul(10), &[7; 100])).collect()))
        .await?;
    let limited = |from, to, reverse, limit_bytes| Query {
        table: Table::Log,
        from,
        to,
        reverse,
        limit_bytes,
        expected_records: 0,
    };
    let cases = [
        (limited(0, 0, false, u64::MAX), vec![0]),
        (limited(1, 9, false, u64::MAX), vec![]),
        (limited(20, 40, false, u64::MAX), vec![20, 30, 40]),
        (limited(20, 40, true, u64::MAX), vec![40, 30, 20]),
        (limited(271, MAX_KEY, true, u64::MAX), vec![290, 280]),
        (limited(40, 20, false, u64::MAX), vec![]),
        (limited(0, MAX_KEY, false, 0), vec![0]),
        (limited(1, 9, false, 0), vec![]),
        (limited(0, MAX_KEY, false, 1), vec![0]),
        (limited(0, MAX_KEY, false, 100), vec![0]),
        (limited(0, MAX_KEY, false, 101), vec![0, 10]),
        (limited(0, MAX_KEY, true, 300), vec![290, 280, 270]),
        (limited(15, 35, true, 1000), vec![30, 20]),
    ];
    for (query, want) in cases {
        let got = context.keys(session, query).await?;
        ensure!(got == want, "{query:?} gave {got:?}, and should give {want:?}");
    }
    Ok(())
}

pub(super) async fn the_largest_keys_are_kept(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let keys = [0, 9, 10, 255, 256, 65_536, 1 << 31, 1 << 32, MAX_KEY.saturating_sub(1), MAX_KEY];
    let records = keys.map(|key| log(key, &key.to_le_bytes()));
    context.written(session, 0, batch(b"h", records.to_vec())).await?;
    context.expect_log(session, &records).await?;
    let top = context.keys(session, range(MAX_KEY, MAX_KEY)).await?;
    ensure!(top == [MAX_KEY], "the largest key alone gave {top:?}");
    let beyond = context.keys(session, range(0, u64::MAX)).await?;
    ensure!(beyond == keys, "a range up to the largest number gave {beyond:?}");
    Ok(())
}

pub(super) async fn a_thousand_records_are_read(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let records: Vec<_> =
        (0..1000).map(|key: u64| log(key, &vec![u8::try_from(key % 256).unwrap_or(0); 1024])).collect();
    context.written(session, 0, batch(b"h", records.clone())).await?;
    context.expect_log(session, &records).await?;
    let mut back = context.store.read(session, Query { reverse: true, ..Query::all(Table::Log) }).await?;
    back.reverse();
    ensure!(back == records, "a thousand records in reverse are {}", summary(&back));
    let tail = context.keys(session, Query { reverse: true, limit_bytes: 50 * 1024, ..Query::all(Table::Log) }).await?;
    ensure!(tail.iter().copied().eq((950..1000).rev()), "the last fifty are {tail:?}");
    let mut parts = Vec::new();
    context.store.read_parts(session, range(7, MAX_KEY), &mut |part| parts.extend(part)).await?;
    ensure!(parts.as_slice() == records.get(7..).unwrap_or_default(), "`read_parts` returned {}", summary(&parts));
    for expected_records in [0, 1, 50, 1000] {
        let tail = Query { reverse: true, limit_bytes: 50 * 1024, expected_records, ..range(0, 999) };
        let found = context.store.head_and_records(session, Box::new(move |_| Some(tail))).await?;
        let Some((head, found)) = found else { return Err(Error::new(ErrorCode::Internal, "there is no head")) };
        let newest: Vec<_> = found.iter().map(|record| record.key).collect();
        ensure!(newest.iter().copied().eq((950..1000).rev()), "the last fifty with the head are {newest:?}");
        ensure!(
            Some(head) == context.store.head(session).await?,
            "`head_and_records` and `head` returned different heads"
        );
    }
    let absent = context.store.head_and_records(&context.session("absent"), Box::new(|_| None)).await?;
    ensure!(absent.is_none(), "`head_and_records` returned a head for an absent session");
    Ok(())
}

pub(super) async fn pages_meet_where_the_records_end(context: &StoreCheckContext) -> Result<()> {
    // Sizes at and about which stores page; each with a limit that is reached nowhere, and one that is at the last
    // record.
    for count in [1_u64, 15, 16, 17, 63, 64, 65, 128] {
        let session = &context.session(&count.to_string());
        let row = |key| audit(key, "t", "done", None, 1);
        context
            .written(session, 0, batch(b"h", (0..count).flat_map(|key| [log(key, &[1; 10]), row(key)]).collect()))
            .await?;
        for limit_bytes in [u64::MAX, count.saturating_mul(10), count.saturating_mul(10).saturating_sub(9)] {
            for reverse in [false, true] {
                for (from, to) in [(0, MAX_KEY), (0, count.saturating_sub(1))] {
                    let mut got = context.keys(session, Query { reverse, limit_bytes, ..range(from, to) }).await?;
                    if reverse {
                        got.reverse();
                    }
                    ensure!(
                        got.iter().copied().eq(0..count),
                        "{count} records, up to {limit_bytes} bytes, reverse {reverse}: {got:?}"
                    );
                }
            }
        }
        let rows =
            context.audited(AuditQuery { session: Some(session.clone()), limit: 16, ..AuditQuery::default() }).await?;
        ensure!(rows.iter().map(|(_, key)| *key).eq(0..count), "{count} audit rows: {rows:?}");
    }
    Ok(())
}
