//! Whatever two writers do to a session, at once or killed at any step, each branch is what was done to it (R38, R59):
//! appends, runs, edits, forks, switches, erasures, prunings and merges, on each kind of store.

use super::branches::replace;
use super::erasure::{KINDS, Kind, Service};
use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, run_ids, start};
use rethread::error::{Error, ErrorCode};
use rethread::finding::FindingCode;
use rethread::json::Json;
use rethread::run::{Persistence, RunStatus};
use rethread::session::{
    AppendOrigin, BranchKind, LocalFuture, OpenSession, PruneRequest, RunDriver, SessionSettings, branches,
    delete_messages, discard_run, fork, prune, switch_to,
};
use rethread::store::merge_oldest;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Stands in each message, in its calls and their results.
type Mark = u32;

fn mark(number: Mark) -> String {
    format!("mark{number}z")
}

/// The mark of a message.
fn mark_of(message: &Value) -> Mark {
    let text = message["parts"].to_string();
    let start = text.find("mark").unwrap_or_else(|| panic!("no mark: {message}")) + 4;
    let end = start + text[start..].find('z').unwrap();
    text[start..end].parse().unwrap()
}

/// What a writer does.
#[derive(Clone, Debug)]
enum Deed {
    /// A turn with a call: a question, the call with its result, an answer.
    Append([Mark; 3]),
    /// A turn that a run adds: a question and an answer.
    Run([Mark; 2]),
    /// The same in place of a message.
    Edit(Mark, [Mark; 2]),
    Fork(Mark),
    Switch(String),
    Erase(BTreeSet<Mark>),
    /// The newest turns of each branch are kept.
    Prune(usize),
    Merge,
}

/// The branches of a session: the marks of each.
type Branches = BTreeMap<String, Vec<Mark>>;

/// What a session is to have.
#[derive(Clone, Debug)]
struct Expected {
    branches: Branches,
    /// Which messages are a user's.
    questions: BTreeSet<Mark>,
}

impl Expected {
    /// What is there after a deed of a writer that showed `shown`. A branch that it makes is the one of `found` that is
    /// not known yet. None if it cannot have been done.
    fn after(&self, deed: &Deed, shown: &str, found: &Branches) -> Option<Self> {
        let mut next = self.clone();
        let branch = next.branches.get(shown)?.clone();
        let until = |mark: Mark| branch.iter().position(|other| *other == mark);
        let new_name = || found.keys().find(|name| !self.branches.contains_key(*name)).cloned();
        match deed {
            Deed::Append(marks) => next.add(shown, marks),
            Deed::Run(marks) => next.add(shown, marks),
            Deed::Edit(place, marks) => {
                let name = new_name()?;
                next.branches.insert(name.clone(), branch[..until(*place)?].to_vec());
                next.add(&name, marks);
            }
            Deed::Fork(last) => {
                next.branches.insert(new_name()?, branch[..=until(*last)?].to_vec());
            }
            Deed::Erase(marks) => next.remove(marks),
            Deed::Prune(_) => next.remove(&self.pruned(found)?),
            Deed::Switch(_) | Deed::Merge => {}
        }
        Some(next)
    }

    fn add(&mut self, branch: &str, marks: &[Mark]) {
        self.questions.insert(marks[0]);
        self.branches.get_mut(branch).unwrap().extend(marks);
    }

    fn remove(&mut self, marks: &BTreeSet<Mark>) {
        self.branches.values_mut().for_each(|branch| branch.retain(|mark| !marks.contains(mark)));
    }

    /// What a pruning has erased: in all branches alike, and of none its end. Other tests say how much it is.
    fn pruned(&self, found: &Branches) -> Option<BTreeSet<Mark>> {
        let left: BTreeSet<Mark> = found.values().flatten().copied().collect();
        let all = self.branches.values();
        let has_ends = all.clone().all(|branch| branch.last().is_none_or(|mark| left.contains(mark)));
        has_ends.then(|| all.flatten().copied().filter(|mark| !left.contains(mark)).collect())
    }
}

/// What a process that opens the session finds.
struct Found {
    branches: Branches,
    ids: BTreeMap<Mark, String>,
}

struct Writer {
    process: Rc<Process>,
    session: Rc<OpenSession>,
}

fn writer(world: &Rc<World>, service: &Service) -> Writer {
    let process = Rc::new(service.process(world));
    let session = world.run(process.session(SessionSettings::default()));
    Writer { process, session }
}

fn found(world: &Rc<World>, service: &Service) -> Found {
    let Writer { process, session } = writer(world, service);
    world.run(session.refresh()).unwrap();
    let mut found = Found { branches: Branches::new(), ids: BTreeMap::new() };
    for branch in world.run(branches(&session)).unwrap() {
        let page = world.run(session.message_page(Some(&branch.id), 1_000, u64::MAX)).unwrap();
        let messages: Vec<Value> = serde_json::from_str(&page.items).unwrap();
        found.ids.extend(messages.iter().map(|message| (mark_of(message), message["id"].as_str().unwrap().to_owned())));
        found.branches.insert(branch.id, messages.iter().map(mark_of).collect());
    }
    let heard = process.heard.borrow();
    let warnings: Vec<_> = heard.warnings.iter().filter(|finding| finding.code != FindingCode::SecondWriter).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    drop(heard);
    found
}

fn turn_with_a_call(marks: &[Mark; 3]) -> Json {
    let [asked, called, answered] = marks.map(mark);
    let call = json!({ "id": format!("call-{called}"), "type": "function",
        "function": { "name": "get", "arguments": json!({ "of": called }).to_string() } });
    let messages = json!([
        { "role": "user", "content": asked },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": format!("call-{called}"), "content": called },
        { "role": "assistant", "content": answered },
    ]);
    Json::parse(&messages.to_string()).unwrap()
}

async fn driven(process: &Process, run: &Rc<RunDriver>, answer: Mark) -> Result<(), Error> {
    let outcome = process.drive(run, &|_| Answer::Say(text(&mark(answer)))).await;
    if outcome.status == RunStatus::Finished {
        return Ok(());
    }
    Err(outcome.error.unwrap_or_else(|| panic!("{:?} without an error", outcome.status)))
}

/// Does it, with what the writer shows. `ids`: of the messages.
async fn done(
    process: Rc<Process>,
    session: Rc<OpenSession>,
    deed: Deed,
    ids: BTreeMap<Mark, String>,
) -> Result<(), Error> {
    match deed {
        Deed::Append(marks) => {
            let origin = session.origin(AppendOrigin::default());
            session.append(&turn_with_a_call(&marks), Some(CHAT), (&origin, None)).await.map(drop)
        }
        Deed::Run([asked, answered]) => {
            let run = start(&session, in_mode(Persistence::Run, CHAT), &mark(asked)).await?;
            driven(&process, &run, answered).await
        }
        Deed::Edit(place, [asked, answered]) => {
            let setup = in_mode(Persistence::Run, CHAT);
            let run = replace(&session, setup, &ids[&place], Some(&mark(asked))).await?;
            driven(&process, &run, answered).await
        }
        Deed::Fork(last) => fork(&session, Some(&ids[&last])).await.map(drop),
        Deed::Switch(name) => switch_to(&session, &name).await.map(drop),
        Deed::Erase(marks) => {
            let ids: Vec<String> = marks.iter().map(|mark| ids[mark].clone()).collect();
            delete_messages(&session, &ids).await.map(drop)
        }
        Deed::Prune(turns) => {
            let request = PruneRequest { keep_newest_turns: turns, ..PruneRequest::default() };
            prune(&process.open, &request).await.map(drop)
        }
        Deed::Merge => {
            let operation = format!("merge {}", process.world.now.get());
            let store = process.open.context.store.clone();
            merge_oldest(&*store, &session.log, &operation).await.map(drop)
        }
    }
}

/// A session of two writers, and what it is to have.
struct Story {
    world: Rc<World>,
    service: Service,
    writers: [Writer; 2],
    expected: Expected,
    ids: BTreeMap<Mark, String>,
    erased: BTreeSet<Mark>,
    marks: Mark,
    state: u64,
    /// What was done, for the message of a failure.
    deeds: Vec<String>,
}

impl Story {
    fn new(kind: Kind, seed: u64) -> Self {
        let (world, service) = (World::new(false), Service::new(kind));
        let writers = [writer(&world, &service), writer(&world, &service)];
        let branches = Branches::from([("main".to_owned(), Vec::new())]);
        Self {
            world,
            service,
            writers,
            expected: Expected { branches, questions: BTreeSet::new() },
            ids: BTreeMap::new(),
            erased: BTreeSet::new(),
            marks: 0,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            deeds: vec![format!("{kind:?}, seed {seed}")],
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below.max(1) as u64).unwrap()
    }

    fn new_marks<const N: usize>(&mut self) -> [Mark; N] {
        std::array::from_fn(|_| {
            self.marks += 1;
            self.marks
        })
    }

    fn shown(&self, at: usize) -> String {
        self.world.run(self.writers[at].session.refresh()).unwrap();
        self.writers[at].session.branch_name()
    }

    /// Something that can be done with the branch that a writer shows.
    fn deed(&mut self, shown: &str) -> Deed {
        let branch = self.expected.branches[shown].clone();
        let any = |story: &mut Self| branch[story.random(branch.len())];
        match (self.random(11), branch.is_empty()) {
            (0, false) => Deed::Fork(any(self)),
            (1, _) => {
                let names: Vec<_> = self.expected.branches.keys().cloned().collect();
                Deed::Switch(names[self.random(names.len())].clone())
            }
            (2 | 3, false) => {
                let asked = branch.iter().copied().filter(|mark| self.expected.questions.contains(mark));
                let asked: Vec<_> = asked.collect();
                if asked.is_empty() {
                    Deed::Merge
                } else {
                    Deed::Edit(asked[self.random(asked.len())], self.new_marks())
                }
            }
            (4 | 5, false) => {
                let count = 1 + self.random(3);
                Deed::Erase((0..count).map(|_| any(self)).collect())
            }
            (6, false) => Deed::Prune(2 + self.random(3)),
            (7, _) => Deed::Merge,
            (8, _) => Deed::Run(self.new_marks()),
            _ => Deed::Append(self.new_marks()),
        }
    }

    fn future(&self, at: usize, deed: &Deed) -> LocalFuture<'static, Result<(), Error>> {
        let Writer { process, session } = &self.writers[at];
        Box::pin(done(process.clone(), session.clone(), deed.clone(), self.ids.clone()))
    }

    /// What is found is one of what may have come of it.
    fn accept(&mut self, candidates: impl Fn(&Expected, &Branches) -> Vec<Option<Expected>>) {
        let found = found(&self.world, &self.service);
        let possible: Vec<_> = candidates(&self.expected, &found.branches).into_iter().flatten().collect();
        let Some(next) = possible.iter().find(|expected| expected.branches == found.branches) else {
            let possible: Vec<_> = possible.iter().map(|expected| &expected.branches).collect();
            panic!("{:#?}\nhas {:?}\nnot one of {possible:?}", self.deeds, found.branches);
        };
        let all = |branches: &Branches| branches.values().flatten().copied().collect::<BTreeSet<_>>();
        self.erased.extend(all(&self.expected.branches).difference(&all(&next.branches)));
        (self.expected, self.ids) = (next.clone(), found.ids);
        for at in 0..2 {
            let shown = self.shown(at);
            let session = &self.writers[at].session;
            let page = self.world.run(session.message_page(Some(&shown), 1_000, u64::MAX)).unwrap();
            let messages: Vec<Value> = serde_json::from_str(&page.items).unwrap();
            let marks: Vec<_> = messages.iter().map(mark_of).collect();
            assert_eq!(marks, self.expected.branches[&shown], "{:#?}: {shown} of writer {at}", self.deeds);
        }
    }

    fn one_after_another(&mut self) {
        let at = self.random(2);
        let shown = self.shown(at);
        let deed = self.deed(&shown);
        self.deeds.push(format!("writer {at} in {shown}: {deed:?}"));
        let result = self.world.run(self.future(at, &deed));
        assert!(result.is_ok(), "{:#?}: {result:?}", self.deeds);
        self.accept(|before, found| vec![before.after(&deed, &shown, found)]);
    }

    /// Two deeds at once: what comes of them is what one after the other would have done. One that fails has done
    /// nothing.
    fn at_once(&mut self) {
        let shown = [self.shown(0), self.shown(1)];
        let deeds = [0, 1].map(|at| {
            loop {
                let deed = self.deed(&shown[at]);
                if !matches!(deed, Deed::Switch(_)) {
                    break deed;
                }
            }
        });
        let steps = self.random(30);
        self.deeds.push(format!("at once, {steps} steps before: {deeds:?} in {shown:?}"));
        let mut first = self.future(0, &deeds[0]);
        let second = self.future(1, &deeds[1]);
        let result = Rc::new(RefCell::new(self.world.run_steps(&mut first, steps)));
        if result.borrow().is_none() {
            let result = result.clone();
            let rest = async move {
                let ended = first.await;
                *result.borrow_mut() = Some(ended);
            };
            self.writers[0].process.open.context.host.spawn(Box::pin(rest));
        }
        let results = [self.world.run(second), {
            self.world.pass(2_000);
            result.take().expect("the first one has ended")
        }];
        let [second, first] = results.map(|result| match result {
            Ok(()) => true,
            Err(error) => {
                let codes = [ErrorCode::Busy, ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::WrongState];
                assert!(codes.contains(&error.code), "{:#?}: {error:?}", self.deeds);
                false
            }
        });
        self.settle();
        let apply = |expected: &Expected, at: usize, has_ended: bool, found: &Branches| {
            if has_ended { expected.after(&deeds[at], &shown[at], found) } else { Some(expected.clone()) }
        };
        self.accept(|before, found| {
            let orders = [[(0, first), (1, second)], [(1, second), (0, first)]];
            let both = |order: [(usize, bool); 2]| {
                let one = apply(before, order[0].0, order[0].1, found)?;
                apply(&one, order[1].0, order[1].1, found)
            };
            orders.into_iter().map(both).collect()
        });
    }

    /// Two writers do not see each other's appends, where there is no compare-and-append. One adopts the side of which
    /// the history has nothing.
    fn parted(&mut self) {
        let shown = [self.shown(0), self.shown(1)];
        let (side, one, two) = (self.new_marks::<3>(), self.new_marks(), self.new_marks());
        let [adopter, steps] = [self.random(2), self.random(60)];
        self.deeds.push(format!("parted in {shown:?}: {side:?} is adopted, {one:?}, {two:?} is history"));
        let known = self.service.appends();
        self.world.run(self.future(0, &Deed::Append(side))).unwrap();
        self.service.hide_appends_but(&known);
        for marks in [one, two] {
            self.world.run(self.future(1, &Deed::Append(marks))).unwrap();
        }
        self.service.show_all();
        let session = self.writers[adopter].session.clone();
        self.world.run(session.refresh()).unwrap();
        let listed = self.world.run(branches(&session)).unwrap();
        let conflict = listed.iter().find(|branch| branch.kind == BranchKind::Conflict).unwrap().id.clone();
        // It is killed before it has ended, and done again.
        if self.world.run_steps(switch_to(&session, &conflict), steps).is_none() {
            drop(session);
            self.writers[adopter].process.kill();
            self.world.pass(31_000);
            self.writers[adopter] = writer(&self.world, &self.service);
            self.world.run(switch_to(&self.writers[adopter].session, &conflict)).unwrap();
        }
        self.accept(|before, found| {
            let adopted = before.branches[&shown[0]].clone();
            let after = before.after(&Deed::Append(one), &shown[1], found);
            let after = after.and_then(|after| after.after(&Deed::Append(two), &shown[1], found));
            vec![after.and_then(|mut after| {
                let name = found.keys().find(|name| !after.branches.contains_key(*name))?.clone();
                after.branches.insert(name.clone(), adopted);
                after.add(&name, &side);
                Some(after)
            })]
        });
    }

    /// A writer is killed within its deed, which was done or was not.
    fn killed(&mut self) {
        let at = self.random(2);
        let shown = self.shown(at);
        let (deed, steps) = (self.deed(&shown), self.random(60));
        self.deeds.push(format!("writer {at} in {shown}: {deed:?}, killed after {steps} steps"));
        let mut work = self.future(at, &deed);
        let ended = self.world.run_steps(&mut work, steps);
        drop(work);
        self.writers[at].process.kill();
        // The lease of a run ends.
        self.world.pass(31_000);
        self.writers[at] = writer(&self.world, &self.service);
        self.settle();
        self.accept(|before, found| {
            let after = before.after(&deed, &shown, found);
            if ended.is_some() { vec![after] } else { vec![after, Some(before.clone())] }
        });
    }

    /// Runs that were cut off are discarded.
    fn settle(&mut self) {
        let session = &self.writers[0].session;
        self.world.run(session.refresh()).unwrap();
        for id in run_ids(session) {
            self.world.run(discard_run(session, &id, false)).unwrap();
        }
        self.world.run(session.refresh()).unwrap();
    }

    fn check_end(&mut self) {
        for name in self.expected.branches.keys().cloned().collect::<Vec<_>>() {
            // The rules of the provider check the body.
            self.world.run(switch_to(&self.writers[0].session, &name)).unwrap();
            let deed = Deed::Run(self.new_marks());
            self.world.run(self.future(0, &deed)).unwrap();
            self.accept(|before, found| vec![before.after(&deed, &name, found)]);
        }
        for erased in self.erased.clone() {
            let places = self.service.places_of(mark(erased).as_bytes());
            assert!(places.is_empty(), "{:#?}: {} is in {places:?}", self.deeds, mark(erased));
        }
    }
}

fn each_branch_is_what_was_done_to_it(kind: Kind, seed: u64) {
    let mut story = Story::new(kind, seed);
    for _ in 0..12 {
        match story.random(4) {
            // Where there is no compare-and-append both sides of a conflict are kept.
            0 if kind == Kind::WriteOnce => story.parted(),
            0 => story.at_once(),
            1 => story.killed(),
            _ => story.one_after_another(),
        }
    }
    story.check_end();
}

#[test]
fn r38_r59_whatever_two_writers_do_at_once_or_killed_each_branch_is_what_was_done_to_it() {
    let seeds = if std::env::var("RETHREAD_LONG").is_ok() { 10_000 } else { 40 };
    for kind in KINDS {
        for seed in 1..=seeds {
            each_branch_is_what_was_done_to_it(kind, seed);
        }
    }
}
