//! The search for sessions by title and text (R79).

use super::branches::replace;
use super::erasure::{KINDS, Kind, Service, append, ids};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{both, in_mode, start};
use crate::encrypted_store::{TWO, over, over_memory};
use crate::spy_store::Spy;
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::run::{ARCHIVE_DESCRIPTIONS, Persistence, RunStatus};
use rethread::session::{
    AppendOrigin, OpenSession, SessionSettings, clear, delete_messages, read_archive, restore_archive, search_sessions,
    switch_to,
};
use rethread::session_head::SessionHead;
use rethread::store::{
    Batch, LogStore, MAX_CHANGED_HEADS, MemoryStore, Page, RecencyQuery, RecordKind, SearchHit, SessionArchive,
    open_record, seal_record,
};
use rethread::term_filter::TermFilter;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

pub fn opened(world: &World, process: &Process, id: &str) -> Rc<OpenSession> {
    world.run(process.open.open_session(id, SessionSettings::default())).unwrap()
}

pub fn say(world: &World, session: &OpenSession, role: &str, text: &str) {
    world.pass(1_000);
    append(world, session, &json!([{ "role": role, "content": text }]));
}

pub fn titled(world: &World, session: &OpenSession, title: &'static str) {
    world.run(session.update(Box::new(move |head| head.title = Some(title.into())))).unwrap();
}

fn page(world: &World, process: &Process, text: &str, query: &RecencyQuery) -> Page<SearchHit> {
    world.run(search_sessions(&process.open.context, text, query)).unwrap()
}

pub fn found(world: &World, process: &Process, text: &str) -> Vec<String> {
    page(world, process, text, &RecencyQuery::default()).items.into_iter().map(|hit| hit.head.id).collect()
}

/// The marked texts of a hit: of its title, then of its messages.
fn marked(hit: &SearchHit) -> Vec<Vec<String>> {
    let excerpts = hit.title.iter().chain(hit.messages.iter().map(|message| &message.excerpt));
    excerpts
        .map(|excerpt| {
            let units: Vec<u16> = excerpt.text.encode_utf16().collect();
            let text = |&(from, to): &(usize, usize)| String::from_utf16(units.get(from..to).unwrap()).unwrap();
            excerpt.ranges.iter().map(text).collect()
        })
        .collect()
}

/// Sessions in several languages, "a" written first.
fn fill(world: &World, process: &Process) {
    let a = opened(world, process, "a");
    say(world, &a, "user", "What is the weather in Paris?");
    say(world, &a, "assistant", "Sunny, 24 degrees.");
    let b = opened(world, process, "b");
    say(world, &b, "user", "Übersetze: 天気はどうですか");
    titled(world, &b, "Paris weather in Japanese");
    let c = opened(world, process, "c");
    append(world, &c, &super::erasure::turn(1, "invoices"));
    say(world, &c, "assistant", "The weather in Rome, then Paris.");
}

#[test]
fn r79_sessions_are_found_by_title_and_text_on_every_kind_of_store() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        fill(&world, &service.process(&world));
        // Another process, so that nothing is known of what was written.
        let process = service.process(&world);
        let find = |text: &str| found(&world, &process, text);
        assert_eq!(find("paris WEATHER"), ["b", "c", "a"], "{kind:?}: a title with all words, then by recency");
        assert_eq!(find("sunny"), ["a"]);
        assert_eq!(find("degree"), ["a"], "the beginning of the last word");
        assert_eq!(find("weather sunny"), ["a"], "words of two messages");
        assert_eq!(find("japanese 天気"), ["b"], "of title and text");
        assert_eq!(find("ubersetze"), ["b"]);
        assert_eq!(find("invoices question"), ["c"]);
        assert!(find("found").is_empty() && find("snow").is_empty(), "{kind:?}: a tool's result is not searched");
        assert!(find(" ?! ").is_empty());
        let hits = page(&world, &process, "paris weather", &RecencyQuery::default()).items;
        assert_eq!(marked(&hits[0]), [["Paris", "weather"]]);
        assert_eq!(marked(&hits[1]), [["weather", "Paris"]]);
        let message = &hits[2].messages[0];
        assert_eq!(message.excerpt.text, "What is the weather in Paris?");
        assert_eq!(message.id, ids(&opened(&world, &process, "a"))[0]);
    }
}

#[test]
fn r79_r80_an_encrypted_store_is_searched_alike_and_shows_no_term() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::over(&world, over_memory(&data), 1);
    fill(&world, &process);
    let process = Process::over(&world, over_memory(&data), 2);
    assert_eq!(found(&world, &process, "paris weather"), ["b", "c", "a"]);
    assert_eq!(found(&world, &process, "天気"), ["b"]);
    let head = block_on(data.head("a")).unwrap().unwrap();
    assert!(open_record::<SessionHead>(RecordKind::Head, &head.value).is_err(), "its filter is sealed");
}

#[test]
fn r79_only_sessions_whose_filter_has_all_words_are_read() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let process = Process::new(&world, &data, 1);
    for at in 0..60 {
        let session = opened(&world, &process, &format!("s{at:02}"));
        say(&world, &session, "user", &format!("A question about topic{at} and a common word"));
    }
    let spy = Rc::new(Spy::new(&data));
    let process = Process::over(&world, spy.clone(), 2);
    assert_eq!(found(&world, &process, "common topic17"), ["s17"]);
    let one = spy.reads.take();
    assert!(found(&world, &process, "nowhere").is_empty());
    assert_eq!(spy.reads.take(), 0, "nothing is read if no session has it");
    assert_eq!(found(&world, &process, "word topic59"), ["s59"]);
    assert_eq!(spy.reads.take(), one);
}

/// They wait for a service together, and no more than four of them are in memory.
#[test]
fn r79_the_texts_of_four_sessions_are_read_at_once_and_none_for_nothing() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let process = Process::new(&world, &data, 1);
    for at in 0..30 {
        let session = opened(&world, &process, &format!("s{at:02}"));
        let text = if at % 3 == 0 { "pears and their trees" } else { "pears" };
        say(&world, &session, "user", text);
    }
    let spy = Rc::new(Spy::new(&data));
    let process = Process::over(&world, spy.clone(), 2);
    spy.waits.set(true);
    let hits = |text, limit| {
        let query = RecencyQuery { limit, ..RecencyQuery::default() };
        let page = block_on(search_sessions(&process.open.context, text, &query)).unwrap();
        page.items.into_iter().map(|hit| hit.head.id).collect::<Vec<_>>()
    };
    assert_eq!(hits("pears", 1), ["s29"]);
    let one = spy.reads.take();
    for limit in [1_u32, 3, 4, 7, 30] {
        spy.reads.set(0);
        spy.most_reading.set(0);
        let newest: Vec<String> = (0..30).rev().take(limit as usize).map(|at| format!("s{at:02}")).collect();
        assert_eq!(hits("pears", limit as usize), newest);
        assert_eq!(spy.reads.get(), limit * one, "a session was read that has no place in the page");
        assert_eq!(spy.most_reading.get(), limit.min(4));
    }
    assert_eq!(hits("trees", 30).len(), 10);
}

#[test]
fn r79_the_pages_of_a_search_have_each_session_once() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    for at in 0..230 {
        let session = opened(&world, &process, &format!("s{at:03}"));
        say(&world, &session, "user", if at % 2 == 0 { "apples and pears" } else { "pears" });
        if at % 50 == 0 {
            titled(&world, &session, "Pears");
        }
    }
    for limit in [7, 50, 300] {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let query = RecencyQuery { cursor, limit, ..RecencyQuery::default() };
            let page = page(&world, &process, "pears", &query);
            assert!(page.items.len() <= limit);
            all.extend(page.items.into_iter().map(|hit| hit.head.id));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        let mut want: Vec<usize> = (0..230).rev().collect();
        want.sort_by_key(|at| at % 50 != 0);
        assert_eq!(all, want.iter().map(|at| format!("s{at:03}")).collect::<Vec<_>>(), "pages of {limit}");
    }
    let wrong = RecencyQuery { cursor: Some("x5:s".into()), ..RecencyQuery::default() };
    let error = world.run(search_sessions(&process.open.context, "pears", &wrong)).err();
    assert_eq!(error.map(|error| error.code), Some(ErrorCode::InvalidInput));
}

#[test]
fn r79_archived_sessions_and_those_of_other_channels_are_found_when_asked_for() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    fill(&world, &process);
    let a = opened(&world, &process, "a");
    world.run(a.update(Box::new(|head| head.is_archived = true))).unwrap();
    let c = opened(&world, &process, "c");
    world.run(c.update(Box::new(|head| head.channel = Some("web".into())))).unwrap();
    let find = |archived, channel: Option<&str>| {
        let query = RecencyQuery { archived, channel: channel.map(Into::into), ..RecencyQuery::default() };
        let hits = page(&world, &process, "paris", &query).items;
        hits.iter().map(|hit| hit.head.id.as_str()).collect::<String>()
    };
    assert_eq!(find(None, None), "bca");
    assert_eq!(find(Some(false), None), "bc");
    assert_eq!(find(Some(true), None), "a");
    assert_eq!(find(None, Some("web")), "c");
}

/// Writes the head as another build does.
fn rewrite_head(data: &MemoryStore, id: &str, edit: impl Fn(&mut SessionHead)) {
    let stored = block_on(data.head(id)).unwrap().unwrap();
    let mut head: SessionHead = open_record(RecordKind::Head, &stored.value).unwrap();
    edit(&mut head);
    let batch = Batch { head: seal_record(RecordKind::Head, &head), ..Batch::default() };
    let operation = format!("other build {}", stored.revision);
    block_on(data.append(id, stored.revision, batch, &operation)).unwrap();
}

fn filter(data: &MemoryStore, id: &str) -> (TermFilter, bool) {
    let stored = block_on(data.head(id)).unwrap().unwrap();
    let head: SessionHead = open_record(RecordKind::Head, &stored.value).unwrap();
    let covers = head.term_filter.covers(head.history_revision);
    (head.term_filter, covers)
}

#[test]
fn r79_r67_sessions_of_an_older_build_are_found_and_their_next_message_makes_the_filter() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let process = Process::new(&world, &data, 1);
    fill(&world, &process);
    let (made, _) = filter(&data, "a");
    // It never had a filter, or an older build went on and left it behind.
    rewrite_head(&data, "a", |head| head.term_filter = TermFilter::default());
    let mut behind = made;
    behind.set_revision(1);
    rewrite_head(&data, "c", move |head| head.term_filter.clone_from(&behind));
    for id in ["a", "c"] {
        assert!(!filter(&data, id).1);
    }
    let process = Process::new(&world, &data, 2);
    assert_eq!(found(&world, &process, "paris weather"), ["b", "c", "a"]);
    assert_eq!(found(&world, &process, "sunny"), ["a"]);
    let a = opened(&world, &process, "a");
    say(&world, &a, "user", "Paris?");
    assert!(filter(&data, "a").1);
    let spy = Rc::new(Spy::new(&data));
    let process = Process::over(&world, spy.clone(), 3);
    assert_eq!(found(&world, &process, "degrees"), ["a"], "of the messages before, too");
    rewrite_head(&data, "c", |head| head.term_filter = TermFilter::empty(head.history_revision));
    let with_c = spy.reads.take();
    assert_eq!(found(&world, &process, "degrees"), ["a"]);
    assert!(spy.reads.take() < with_c, "the filter of \"c\" excludes it");
}

#[test]
fn r79_r59_erased_and_cleared_texts_are_not_found_and_leave_no_terms() {
    for kind in [Kind::Memory, Kind::WriteOnce] {
        let (world, service) = (World::new(false), Service::new(kind));
        let process = service.process(&world);
        fill(&world, &process);
        let a = opened(&world, &process, "a");
        world.run(delete_messages(&a, &[ids(&a)[0].clone()])).unwrap();
        assert_eq!(a.log.borrow().head.term_filter, TermFilter::default(), "{kind:?}");
        assert_eq!(found(&world, &process, "weather"), ["b", "c"]);
        say(&world, &a, "user", "Snow");
        assert!(a.log.borrow().head.term_filter.covers(a.log.borrow().head.history_revision));
        assert_eq!(found(&world, &process, "snow sunny"), ["a"], "{kind:?}: what was not erased is found, too");
        assert_eq!(found(&world, &process, "weather"), ["b", "c"]);
        let c = opened(&world, &process, "c");
        world.run(clear(&c)).unwrap();
        assert_eq!(found(&world, &process, "weather"), ["b"], "{kind:?}");
        say(&world, &c, "user", "Rain");
        assert_eq!(found(&world, &service.process(&world), "rain"), ["c"]);
    }
}

#[test]
fn r79_the_branch_that_is_shown_is_searched() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    let session = opened(&world, &process, "s");
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Tell me of whales")).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("They sing.")))).status, RunStatus::Finished);
    let first = ids(&session)[0].clone();
    let run = world.run(replace(&session, in_mode(Persistence::Run, CHAT), &first, Some("Tell me of owls"))).unwrap();
    assert_eq!(world.run(process.drive(&run, &|_| Answer::Say(text("They hunt.")))).status, RunStatus::Finished);
    assert_eq!(found(&world, &process, "owls hunt"), ["s"]);
    assert!(found(&world, &process, "whales").is_empty());
    world.run(switch_to(&session, "main")).unwrap();
    assert_eq!(found(&world, &process, "whales sing"), ["s"]);
    assert!(found(&world, &process, "owls").is_empty());
}

#[test]
fn r79_a_session_that_is_moved_is_found_where_it_is() {
    let world = World::new(false);
    let process = Process::new(&world, &MemoryStore::default(), 1);
    fill(&world, &process);
    let target = Process::new(&world, &MemoryStore::default(), 2);
    for id in ["a", "b"] {
        let archive = world.run(read_archive(&process.open.context, None, id)).unwrap();
        let archive = SessionArchive::from_json_lines(&archive.to_json_lines(&ARCHIVE_DESCRIPTIONS)).unwrap();
        world.run(restore_archive(&target.open.context, archive, Some(format!("{id}2")))).unwrap();
    }
    assert_eq!(found(&world, &target, "paris weather"), ["b2", "a2"]);
    assert_eq!(found(&world, &target, "sunny"), ["a2"]);
}

#[test]
fn r79_what_two_processes_append_at_once_is_found() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let processes = [1, 2].map(|number| Process::new(&world, &data, number));
    let sessions = [0, 1].map(|at| opened(&world, &processes[at], "s"));
    for round in 0..6 {
        let say = |at: usize| {
            let text = json!([{ "role": "user", "content": format!("word{at}x{round}") }]).to_string();
            let session = sessions[at].clone();
            async move {
                let origin = session.origin(AppendOrigin::default());
                session.append(&Json::parse(&text).unwrap(), Some(CHAT), (&origin, None)).await.unwrap();
            }
        };
        world.run(both(say(0), say(1)));
    }
    for round in 0..6 {
        for (at, process) in processes.iter().enumerate() {
            assert_eq!(found(&world, process, &format!("word{at}x{round}")), ["s"]);
        }
    }
    assert!(filter(&data, "s").1);
}

#[test]
fn r79_a_further_search_reads_the_heads_that_have_changed() {
    let world = World::new(false);
    let data = MemoryStore::default();
    fill(&world, &Process::new(&world, &data, 1));
    let spy = Rc::new(Spy::new(&data));
    let process = Process::over(&world, spy.clone(), 2);
    assert_eq!(found(&world, &process, "paris weather"), ["b", "c", "a"]);
    assert_eq!(spy.listed_heads.take(), 3);
    assert_eq!(found(&world, &process, "sunny"), ["a"]);
    assert_eq!(spy.listed_heads.take(), 0, "nothing has changed");
    let other = Process::new(&world, &data, 3);
    say(&world, &opened(&world, &other, "a"), "user", "And in Rome?");
    assert_eq!(found(&world, &process, "rome"), ["a", "c"]);
    assert_eq!(spy.listed_heads.take(), 1);
    // More than a store returns as changed: all heads are read, and none is missed.
    for at in 0..=MAX_CHANGED_HEADS {
        say(&world, &opened(&world, &other, &format!("new{at:03}")), "user", &format!("Q{at:03}"));
    }
    for at in [0, MAX_CHANGED_HEADS] {
        assert_eq!(found(&world, &process, &format!("q{at:03}")), [format!("new{at:03}")]);
    }
    assert_eq!(spy.listed_heads.take(), MAX_CHANGED_HEADS + 4, "by the first of the two");
}

#[test]
fn r79_what_another_process_changes_between_two_searches_is_found() {
    for kind in KINDS {
        let (world, service) = (World::new(false), Service::new(kind));
        let (process, other) = (service.process(&world), service.process(&world));
        fill(&world, &other);
        let find = |text: &str| found(&world, &process, text);
        assert_eq!(find("paris weather"), ["b", "c", "a"], "{kind:?}");
        let a = opened(&world, &other, "a");
        say(&world, &a, "user", "Snow in Oslo");
        assert_eq!(find("oslo"), ["a"], "{kind:?}: a message");
        assert_eq!(find("paris weather"), ["b", "a", "c"], "{kind:?}: the order");
        titled(&world, &a, "Paris weather");
        assert_eq!(find("paris weather"), ["a", "b", "c"], "{kind:?}: a title");
        world.run(a.update(Box::new(|head| head.is_archived = true))).unwrap();
        let query = RecencyQuery { archived: Some(true), ..RecencyQuery::default() };
        let archived = page(&world, &process, "oslo", &query).items;
        assert_eq!(archived.len(), 1, "{kind:?}: archived");
        world.run(delete_messages(&a, &[ids(&a)[2].clone()])).unwrap();
        assert!(find("oslo").is_empty(), "{kind:?}: an erasure");
        say(&world, &opened(&world, &other, "d"), "user", "Oslo");
        assert_eq!(find("oslo"), ["d"], "{kind:?}: a new session");
        world.run(other.open.delete_session("b")).unwrap();
        assert_eq!(find("paris weather"), ["a", "c"], "{kind:?}: a deletion");
        say(&world, &opened(&world, &other, "b"), "user", "Bergen");
        assert_eq!(find("bergen"), ["b"], "{kind:?}: a session of the deleted one's id");
        assert_eq!(find("japanese"), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn r79_searches_at_once_find_the_same_while_another_process_writes() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let other = Process::new(&world, &data, 1);
    fill(&world, &other);
    let spy = Rc::new(Spy::new(&data));
    spy.waits.set(true);
    let process = Process::over(&world, spy, 2);
    for round in 0..4 {
        let text = format!("q{round}zz");
        say(&world, &opened(&world, &other, "a"), "user", &text);
        let query = RecencyQuery::default();
        let search = |text: String| {
            let (context, query) = (process.open.context.clone(), query.clone());
            async move {
                let page = search_sessions(&context, &text, &query).await.unwrap();
                assert_eq!(page.items.len(), 1, "{text} in round {round}");
            }
        };
        let mut searches = pin!(both(search(text.clone()), search("sunny".into())));
        // The store waits without waking anybody.
        while searches.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    }
}

#[test]
fn r79_changes_that_a_slower_search_has_read_do_not_replace_newer_ones() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let other = Process::new(&world, &data, 1);
    fill(&world, &other);
    let spy = Rc::new(Spy::new(&data));
    let process = Process::over(&world, spy.clone(), 2);
    let writes = |id: &str, text: &str| say(&world, &opened(&world, &other, id), "user", text);
    assert_eq!(found(&world, &process, "sunny"), ["a"]);
    spy.waits.set(true);
    let query = RecencyQuery::default();
    let mut polled = Context::from_waker(Waker::noop());
    let search = || search_sessions(&process.open.context, "newest", &query);
    writes("a", "first");
    let mut slow = pin!(search());
    assert!(slow.as_mut().poll(&mut polled).is_pending(), "it has read the first change");
    writes("a", "newest");
    let mut fast = pin!(search());
    while fast.as_mut().poll(&mut polled).is_pending() {}
    writes("b", "another");
    let mut next = pin!(search());
    assert!(next.as_mut().poll(&mut polled).is_pending());
    while slow.as_mut().poll(&mut polled).is_pending() {}
    while next.as_mut().poll(&mut polled).is_pending() {}
    spy.waits.set(false);
    assert_eq!(found(&world, &process, "newest"), ["a"]);
}

#[test]
fn r79_r80_a_session_of_another_key_ends_no_search() {
    let (world, data) = (World::new(false), MemoryStore::default());
    fill(&world, &Process::over(&world, over_memory(&data), 1));
    let foreign = Process::over(&world, over(Rc::new(data.clone()), &[TWO]), 2);
    say(&world, &opened(&world, &foreign, "foreign"), "user", "sunny");
    let process = Process::over(&world, over_memory(&data), 3);
    for _ in 0..3 {
        assert_eq!(found(&world, &process, "sunny"), ["a"]);
    }
    assert!(process.heard.borrow().warnings.iter().any(|warning| warning.message.contains("\"foreign\"")));
}

#[test]
fn r79_r07_a_damaged_head_is_rebuilt_for_each_search() {
    let world = World::new(false);
    let data = MemoryStore::default();
    fill(&world, &Process::new(&world, &data, 1));
    let stored = block_on(data.head("a")).unwrap().unwrap();
    let batch = Batch { head: b"no head".as_slice().into(), ..Batch::default() };
    block_on(data.append("a", stored.revision, batch, "damage")).unwrap();
    let process = Process::new(&world, &data, 2);
    for _ in 0..2 {
        assert_eq!(found(&world, &process, "sunny"), ["a"]);
        assert_eq!(found(&world, &process, "invoices question"), ["c"]);
    }
    assert!(!process.heard.borrow().warnings.is_empty());
}

#[test]
fn r79_r07_what_cannot_be_read_is_reported_and_the_others_are_found() {
    let world = World::new(false);
    let data = MemoryStore::default();
    fill(&world, &Process::new(&world, &data, 1));
    let spy = Rc::new(Spy::new(&data));
    spy.unreadable.replace(vec![0]);
    let process = Process::over(&world, spy.clone(), 2);
    // The first record of each session cannot be read.
    assert_eq!(found(&world, &process, "sunny"), ["a"]);
    assert!(found(&world, &process, "weather").contains(&"c".to_owned()));
    assert!(!found(&world, &process, "weather").contains(&"a".to_owned()));
    let warnings = process.heard.borrow().warnings.clone();
    let names = |id: &str| {
        warnings.iter().any(|warning| warning.message.contains(&format!("session \"{id}\" cannot be searched")))
    };
    assert!(names("a") && names("c"), "{warnings:?}");
    spy.reading_fails.set(true);
    let failed = world.run(search_sessions(&process.open.context, "weather", &RecencyQuery::default()));
    assert_eq!(failed.err().map(|error| error.code), Some(ErrorCode::StoreError));
}

#[test]
fn r79_a_filter_is_not_made_of_what_is_readable_and_survives_a_restore() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let process = Process::new(&world, &data, 1);
    fill(&world, &process);
    // A session that was restored over its tombstone keeps its filter.
    let archive = world.run(read_archive(&process.open.context, None, "a")).unwrap();
    world.run(process.open.delete_session("a")).unwrap();
    world.run(restore_archive(&process.open.context, archive, None)).unwrap();
    assert!(filter(&data, "a").1);
    assert_eq!(found(&world, &process, "sunny"), ["a"]);
    // One without a filter does not get one while a record cannot be read.
    rewrite_head(&data, "c", |head| head.term_filter = TermFilter::default());
    let spy = Rc::new(Spy::new(&data));
    spy.unreadable.replace(vec![0]);
    spy.unreadable_code.set(Some(ErrorCode::CorruptRecord));
    let damaged = Process::over(&world, spy, 2);
    let c = opened(&world, &damaged, "c");
    let origin = c.origin(AppendOrigin::default());
    let more = Json::parse(r#"[{"role":"user","content":"More"}]"#).unwrap();
    if world.run(c.append(&more, Some(CHAT), (&origin, None))).is_ok() {
        assert!(!filter(&data, "c").1);
    }
    let process = Process::new(&world, &data, 3);
    assert!(found(&world, &process, "invoices").contains(&"c".to_owned()));
}

#[test]
fn r79_the_cursor_of_a_session_of_any_time_is_accepted() {
    let world = World::new(false);
    let data = MemoryStore::default();
    let process = Process::new(&world, &data, 1);
    fill(&world, &process);
    rewrite_head(&data, "c", |head| head.updated_at = 1 << 60);
    let query = RecencyQuery { limit: 2, ..RecencyQuery::default() };
    let cursor = page(&world, &process, "weather", &query).cursor;
    let query = RecencyQuery { cursor, ..query };
    assert_eq!(page(&world, &process, "weather", &query).items.len(), 1);
}
