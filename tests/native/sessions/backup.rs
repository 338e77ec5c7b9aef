//! All sessions of a store as a text, and back (R59).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, start};
use proptest::prelude::*;
use rethread::error::{Error, ErrorCode};
use rethread::finding::FindingCode;
use rethread::json::Json;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus};
use rethread::session::{AppendOrigin, Backup, BackupRestore, OnExisting, RestoredBackup, SessionSettings, fork};
use rethread::session_head::SessionHead;
use rethread::store::{Batch, LogStore, MemoryStore, RecordKind, seal_record};
use std::rc::Rc;

/// A process over a store of its own.
fn process(world: &Rc<World>) -> Process {
    Process::new(world, &MemoryStore::default(), 1)
}

fn say(world: &World, process: &Process, id: &str, text: &str) {
    let settings = SessionSettings { title: Some(format!("Chat {id}")), ..SessionSettings::default() };
    let session = world.run(process.open.open_session(id, settings)).unwrap();
    let origin = session.origin(AppendOrigin::default());
    let part = serde_json::json!([{ "role": "user", "parts": [{ "type": "text", "text": text }] }]);
    world.run(session.append(&Json::parse(&part.to_string()).unwrap(), None, (&origin, None))).unwrap();
}

/// Sessions "a" to the last letter, of which "b" has a branch and an unfinished run.
fn filled(world: &Rc<World>, count: u8) -> Process {
    let process = Process::new(world, &MemoryStore::default(), 9);
    for at in 0..count {
        let id = char::from(b'a' + at).to_string();
        say(world, &process, &id, &format!("“{id}”\u{1F600}\n\"rethread\":\"backup_end\""));
    }
    let session = world.run(process.open.open_session("b", SessionSettings::default())).unwrap();
    let run = world.run(start(&session, in_mode(Persistence::Result, CHAT), "Go")).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("Yes.")))).status, RunStatus::Finished);
    world.run(fork(&session, None)).unwrap();
    let run = world.run(start(&session, in_mode(Persistence::Result, CHAT), "And?")).unwrap();
    let cut_off = world.run_steps(process.drive(&run, &|_| Answer::Hang), 1_000);
    assert!(cut_off.is_none());
    process
}

/// The parts of a backup.
fn parts(world: &World, process: &Process, after: Option<&str>) -> Vec<String> {
    let mut backup = Backup::new(process.open.clone(), after.map(Into::into), &ARCHIVE_DESCRIPTIONS);
    let mut parts = Vec::new();
    while let Some(part) = world.run(backup.next()).unwrap() {
        parts.push(part);
    }
    parts
}

fn restore(
    world: &World,
    process: &Process,
    on_existing: OnExisting,
    chunks: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<RestoredBackup, Error> {
    let mut restore = BackupRestore::new(process.open.clone(), on_existing);
    for chunk in chunks {
        world.run(restore.push(chunk.as_ref()))?;
    }
    world.run(restore.end())
}

/// What is not restored, in words.
fn missing(restored: &RestoredBackup) -> Vec<&str> {
    let lost = restored.report.iter().filter(|finding| finding.code == FindingCode::NotRestored);
    lost.map(|finding| &*finding.message).collect()
}

fn listed(world: &World, process: &Process) -> Vec<String> {
    let rows = world.run(process.store.data.sessions(None, 0, None)).unwrap();
    rows.items.into_iter().map(|row| row.id).collect()
}

#[test]
fn r59_a_backup_restores_every_session_and_is_equal_to_that_of_the_copy() {
    let world = World::new(false);
    let original = filled(&world, 5);
    let backup = parts(&world, &original, None);
    assert_eq!(backup.len(), 7);
    let copy = process(&world);
    let restored = restore(&world, &copy, OnExisting::Skip, &backup).unwrap();
    assert_eq!(restored, RestoredBackup { sessions: 5, ..RestoredBackup::default() });
    assert_eq!(parts(&world, &copy, None), backup);
    let again = restore(&world, &copy, OnExisting::Skip, &backup).unwrap();
    assert_eq!(again, RestoredBackup { skipped: 5, ..RestoredBackup::default() });
    let empty = process(&world);
    assert_eq!(restore(&world, &empty, OnExisting::Skip, parts(&world, &process(&world), None)).unwrap().sessions, 0);
}

#[test]
fn r59_a_stored_session_is_kept_replaced_or_copied_as_asked() {
    let world = World::new(true);
    let original = filled(&world, 3);
    let backup = parts(&world, &original, None);
    original.kill();
    let target = process(&world);
    say(&world, &target, "b", "Another conversation");
    say(&world, &target, "b", "with two messages");
    let open = world.run(target.open.open_session("b", SessionSettings::default())).unwrap();
    let texts = || open.log.borrow().history.messages().len();

    let skipped = restore(&world, &target, OnExisting::Skip, &backup).unwrap();
    assert_eq!((skipped.sessions, skipped.skipped, texts()), (2, 1, 2));
    let copied = restore(&world, &target, OnExisting::Copy, &backup).unwrap();
    assert_eq!((copied.sessions, copied.report.len(), listed(&world, &target).len()), (3, 3, 6));
    assert!(copied.report.iter().all(|finding| finding.code == FindingCode::RestoredAsCopy));

    // While a run of it is under way it is not replaced, and the others are.
    let run = world.run(start(&open, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    let kept = restore(&world, &target, OnExisting::Replace, &backup).unwrap();
    assert_eq!((kept.sessions, missing(&kept).len()), (2, 1));
    assert!(missing(&kept)[0].contains("\"b\"") && missing(&kept)[0].contains("under way"), "{kept:?}");
    assert_eq!(world.run(target.drive(&run, &|_| Answer::Say(text("Done.")))).status, RunStatus::Finished);
    assert_eq!(texts(), 4);
    let replaced = restore(&world, &target, OnExisting::Replace, &backup).unwrap();
    assert_eq!((replaced.sessions, missing(&replaced).len()), (3, 0));
    world.run(open.refresh()).unwrap();
    // Nor while another process drives one: the restored run is not under way, and that of the other process is.
    let other = Process::new(&world, &target.store.data, 3);
    let elsewhere = world.run(other.open.open_session("c", SessionSettings::default())).unwrap();
    let run = world.run(start(&elsewhere, in_mode(Persistence::Result, CHAT), "Go")).unwrap();
    assert!(world.run_steps(other.drive(&run, &|_| Answer::Hang), 1_000).is_none());
    let kept = restore(&world, &target, OnExisting::Replace, &backup).unwrap();
    assert_eq!((kept.sessions, missing(&kept).len()), (2, 1));
    assert!(missing(&kept)[0].contains("\"c\""), "{kept:?}");
    // The open session shows the other one, and can go on.
    assert_eq!(open.log.borrow().head.runs.len(), 1);
    say(&world, &target, "b", "And on");
    let fresh = Process::new(&world, &target.store.data, 2);
    let read = world.run(fresh.open.open_session("b", SessionSettings::default())).unwrap();
    assert_eq!(read.log.borrow().history.messages().len(), texts());
}

#[test]
fn r59_a_backup_that_was_cut_off_is_an_error_and_is_continued() {
    let world = World::new(false);
    let original = filled(&world, 4);
    let backup = parts(&world, &original, None);
    let text = backup.concat();
    let whole: Vec<_> = (0..backup.len()).map(|count| backup[..count].concat().len()).collect();
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(97) {
        let copy = process(&world);
        let error = restore(&world, &copy, OnExisting::Skip, [&text[..end]]).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        if end >= whole[1] {
            let details = error.details.clone().unwrap();
            assert_eq!(
                details.view().get("sessions").and_then(|count| count.as_u64()),
                Some(listed(&world, &copy).len() as u64)
            );
        }
        // A last line without its end may be there.
        let sessions = listed(&world, &copy).len();
        let complete = whole.iter().filter(|at| **at <= end + 1).count().saturating_sub(2);
        assert!(sessions == complete, "{sessions} of {complete} at {end}");
        if sessions == 0 {
            continue;
        }
        let after = char::from(b'a' + u8::try_from(sessions - 1).unwrap()).to_string();
        let mut chunks = vec![text[..end].to_owned()];
        chunks.extend(parts(&world, &original, Some(&after)));
        let other = process(&world);
        let restored = restore(&world, &other, OnExisting::Skip, &chunks).unwrap();
        assert_eq!((restored.sessions, restored.report), (4, Vec::new()));
        assert_eq!(parts(&world, &other, None), backup);
    }
    // What is not whole before the part that goes on is named.
    let rest = parts(&world, &original, Some("b"));
    let chunks: [&[String]; 3] = [&backup[..2], &[], &backup[..1]];
    for chunks in chunks.map(|first| [first, &rest].concat()) {
        let restored = restore(&world, &process(&world), OnExisting::Skip, &chunks).unwrap();
        assert!(missing(&restored)[0].contains("\"b\""), "{restored:?}");
    }
    // A session that comes again is the same one, also where copies are made.
    let twice = [&backup[..3], &parts(&world, &original, Some("a"))].concat();
    let restored = restore(&world, &process(&world), OnExisting::Copy, &twice).unwrap();
    assert_eq!((restored.sessions, restored.report), (4, Vec::new()));
    let unknown = Backup::new(original.open.clone(), Some("z".into()), &ARCHIVE_DESCRIPTIONS);
    let mut unknown = unknown;
    assert!(world.run(unknown.next()).unwrap().is_some());
    assert_eq!(world.run(unknown.next()).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn r59_damaged_lines_cost_their_sessions_and_are_named() {
    let world = World::new(false);
    let original = filled(&world, 4);
    let backup = parts(&world, &original, None);
    let lines: Vec<_> = backup.concat().lines().map(ToOwned::to_owned).collect();
    for at in 1..lines.len() - 1 {
        for damage in ["", "{", "[]", "{\"rethread\":\"unknown\"}"] {
            let mut damaged = lines.clone();
            damaged[at] = damage.to_owned();
            let copy = process(&world);
            let restored = restore(&world, &copy, OnExisting::Skip, [damaged.join("\n")]).unwrap();
            assert_eq!(restored.sessions, 3, "line {at} is {damage:?}: {restored:?}");
            assert!(!missing(&restored).is_empty());
        }
    }
    for (text, code) in [
        ("", ErrorCode::InvalidInput),
        ("\n\n", ErrorCode::InvalidInput),
        ("{\"a\":1}", ErrorCode::InvalidInput),
        (lines[2].as_str(), ErrorCode::InvalidInput),
        ("{\"rethread\":\"backup\",\"version\":2}", ErrorCode::UnsupportedVersion),
        ("{\"rethread\":\"backup\"}", ErrorCode::UnsupportedVersion),
    ] {
        assert_eq!(restore(&world, &process(&world), OnExisting::Skip, [text]).unwrap_err().code, code, "{text}");
    }
}

#[test]
fn r59_a_session_that_cannot_be_read_does_not_end_the_backup() {
    let world = World::new(false);
    let original = filled(&world, 3);
    // Of a newer build: its head cannot be read, and must not be rebuilt.
    let mut head = seal_record(RecordKind::Head, &SessionHead::new("aa", 0)).to_vec();
    head[0] += 1;
    world.run(original.store.data.append("aa", 0, Batch { head: head.into(), ..Batch::default() }, "newer")).unwrap();
    let backup = parts(&world, &original, None);
    let copy = process(&world);
    let restored = restore(&world, &copy, OnExisting::Skip, &backup).unwrap();
    assert_eq!((restored.sessions, listed(&world, &copy)), (3, vec!["a".into(), "b".into(), "c".into()]));
    let missing = missing(&restored);
    assert!(missing.len() == 1 && missing[0].contains("\"aa\"") && missing[0].contains("version"), "{missing:?}");
}

#[test]
fn r59_a_stored_session_of_a_newer_build_is_not_replaced() {
    let world = World::new(false);
    let original = filled(&world, 3);
    let backup = parts(&world, &original, None);
    let stored = world.run(original.store.data.head("c")).unwrap().unwrap();
    let mut head = stored.value.to_vec();
    head[0] += 1;
    let newer = Batch { head: head.into(), ..Batch::default() };
    world.run(original.store.data.append("c", stored.revision, newer, "newer")).unwrap();
    let before = world.run(original.store.data.head("c")).unwrap();
    let second = Process::new(&world, &original.store.data, 2);
    // The run of "b" is nobody's now.
    original.kill();
    world.pass(3_600_000);
    let restored = restore(&world, &second, OnExisting::Replace, &backup).unwrap();
    assert_eq!((restored.sessions, missing(&restored).len()), (2, 1));
    assert!(missing(&restored)[0].contains("\"c\""), "{restored:?}");
    assert_eq!(world.run(original.store.data.head("c")).unwrap(), before);
}

#[test]
fn r59_a_damaged_session_is_restored_as_such_and_replaces_none() {
    let world = World::new(false);
    let original = filled(&world, 3);
    let stored = world.run(original.store.data.head("c")).unwrap().unwrap();
    let mut head = stored.value.to_vec();
    head[20] ^= 1;
    let damaged = Batch { head: head.into(), ..Batch::default() };
    world.run(original.store.data.append("c", stored.revision, damaged, "damage")).unwrap();
    let backup = parts(&world, &Process::new(&world, &original.store.data, 2), None);
    let copy = process(&world);
    let restored = restore(&world, &copy, OnExisting::Skip, &backup).unwrap();
    assert_eq!((restored.sessions, missing(&restored).len()), (3, 1));
    assert!(missing(&restored)[0].contains("\"c\""), "{restored:?}");
    let target = process(&world);
    say(&world, &target, "c", "The good one");
    let before = world.run(target.store.data.head("c")).unwrap();
    assert_eq!(restore(&world, &target, OnExisting::Replace, &backup).unwrap().sessions, 2);
    assert_eq!(world.run(target.store.data.head("c")).unwrap(), before);
}

#[test]
fn r59_a_forged_backup_stores_nothing_under_another_id() {
    let world = World::new(false);
    let backup = parts(&world, &filled(&world, 3), None);
    let forged: Vec<_> = backup.iter().map(|part| part.replacen("\"id\":\"b\"", "\"id\":\"shared\"", 1)).collect();
    let target = process(&world);
    let restored = restore(&world, &target, OnExisting::Replace, &forged).unwrap();
    assert_eq!((restored.sessions, listed(&world, &target)), (2, vec!["a".into(), "c".into()]));
    let huge = "{\"rethread\":\"backup_session\",\"number\":18446744073709551615,\"id\":\"x\"}";
    for lines in [vec![huge, huge], vec!["{\"rethread\":\"backup_session\"}", "{\"rethread\":\"backup_end\"}"]] {
        let text = [
            &[backup[0].trim_end()],
            lines.as_slice(),
            &["{\"rethread\":\"backup_end\",\"sessions\":18446744073709551615}"],
        ]
        .concat();
        let restored = restore(&world, &process(&world), OnExisting::Skip, [text.join("\n")]).unwrap();
        assert!(restored.sessions == 0 && !missing(&restored).is_empty());
    }
}

proptest! {
    #[test]
    fn r59_a_backup_may_come_in_any_chunks(cuts in proptest::collection::vec(0_usize..60_000, 0..30)) {
        let world = World::new(false);
        let backup = parts(&world, &filled(&world, 3), None);
        let text = backup.concat().replace('\n', if cuts.len() % 2 == 0 { "\n" } else { "\r\n" });
        let mut cuts: Vec<_> = cuts.into_iter().filter(|at| text.is_char_boundary(*at)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let copy = process(&world);
        let restored = restore(&world, &copy, OnExisting::Skip, chunks).unwrap();
        prop_assert_eq!((restored.sessions, restored.report.len()), (3, 0));
        prop_assert_eq!(parts(&world, &copy, None), backup);
    }
}
