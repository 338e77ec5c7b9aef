//! Runs tasks in one thread, in the order in which they were woken, and keeps their timers. The host tells the time.

use crate::clock::Ms;
use crate::session::LocalFuture;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The numbers of the tasks that can go on. A component has one thread; the types of wakers ask for the lock.
#[derive(Default)]
struct ReadyTasks(Mutex<VecDeque<u64>>);

impl ReadyTasks {
    fn push(&self, task: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
    }

    fn pop(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Wakes one task.
struct TaskWaker {
    task: u64,
    is_ready: AtomicBool,
    ready: Arc<ReadyTasks>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.ready.push(self.task);
        }
    }
}

struct Task {
    work: LocalFuture<'static, ()>,
    waker: Arc<TaskWaker>,
}

/// The tasks and timers of an engine.
#[derive(Default)]
pub struct Executor {
    ready: Arc<ReadyTasks>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    timers: RefCell<BTreeMap<(Ms, u64), Waker>>,
    now: Cell<Ms>,
    last_number: Cell<u64>,
}

impl Executor {
    /// Returns the time that the host told last.
    pub fn now(&self) -> Ms {
        self.now.get()
    }

    /// Takes the time from the host. A clock that goes back is taken at its word, as everywhere else.
    pub fn set_now(&self, now: Ms) {
        self.now.set(now);
    }

    fn number(&self) -> u64 {
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }

    /// Adds a task. It begins with the next [`run`](Self::run).
    pub fn spawn(&self, work: LocalFuture<'static, ()>) {
        let task = self.number();
        let waker = Arc::new(TaskWaker { task, is_ready: AtomicBool::new(true), ready: self.ready.clone() });
        self.tasks.borrow_mut().insert(task, Task { work, waker });
        self.ready.push(task);
    }

    /// Polls tasks until none can go on before time passes.
    pub fn run(&self) {
        loop {
            while let Some(task) = self.ready.pop() {
                self.poll(task);
            }
            if !self.fire_timer() {
                return;
            }
        }
    }

    fn poll(&self, number: u64) {
        // Taken out: a task may spawn others.
        let Some(mut task) = self.tasks.borrow_mut().remove(&number) else { return };
        task.waker.is_ready.store(false, Ordering::Relaxed);
        let waker = Waker::from(task.waker.clone());
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().insert(number, task);
        }
    }

    /// Wakes the first sleeper whose time has come.
    fn fire_timer(&self) -> bool {
        let first = self.timers.borrow().first_key_value().map(|(key, _)| *key);
        let Some(key) = first.filter(|(at, _)| *at <= self.now()) else { return false };
        if let Some(waker) = self.timers.borrow_mut().remove(&key) {
            waker.wake();
        }
        true
    }

    /// Returns when the first sleeper wakes.
    pub fn next_timer(&self) -> Option<Ms> {
        self.timers.borrow().first_key_value().map(|((at, _), _)| *at)
    }

    /// Resolves after `ms` milliseconds.
    pub fn sleep(self: &Rc<Self>, ms: Ms) -> Sleep {
        Sleep { key: (self.now().saturating_add(ms), self.number()), executor: self.clone() }
    }

    /// Drops all tasks, which may own this executor.
    pub fn clear(&self) {
        let tasks = self.tasks.take();
        drop(tasks);
        self.timers.take();
    }
}

/// A timer, removed when it is dropped.
pub struct Sleep {
    key: (Ms, u64),
    executor: Rc<Executor>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        if self.executor.now() >= self.key.0 {
            return Poll::Ready(());
        }
        self.executor.timers.borrow_mut().insert(self.key, task.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // While all tasks are dropped nothing else has the timers.
        if let Ok(mut timers) = self.executor.timers.try_borrow_mut() {
            timers.remove(&self.key);
        }
    }
}
