//! The resource `engine`.

use super::commands::Sessions;
use super::host::ComponentHost;
use super::runs::{run_input, run_state};
use super::wit;
use crate::clock::Ms;
use crate::error::Error;
use crate::id::Seed;
use crate::options::{JsonOptions, OptionEntries, ReplayOptions, channel_layers, read_options};
use crate::run::{EffectReply, RunInput};
use crate::session::{DEFAULT_NAME, OpenStore, StoreContext, StoreSettings};
use crate::store::LogStore;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The latest time, exact as a number of JavaScript. A timer that is set close to the largest u64 would be due at once,
/// again and again.
const MAX_TIME: Ms = (1 << 53) - 1;

/// An open store with its sessions and runs, and what the host has not taken yet. Calls of a component do not overlap.
pub struct EngineResource {
    sessions: Rc<Sessions>,
    news: Rc<News>,
    last_operation: Cell<u64>,
}

/// What happened since the last step.
#[derive(Default)]
struct News {
    ended: RefCell<Vec<wit::Ended>>,
    refused: RefCell<Vec<wit::Refusal>>,
    may_run: RefCell<Vec<u64>>,
}

impl Drop for EngineResource {
    fn drop(&mut self) {
        // Tasks, sessions and effects refer to each other: nothing else ends that.
        self.sessions.store.context.disconnect();
        self.sessions.host.executor.clear();
        self.sessions.forget();
        self.sessions.effects.clear();
    }
}

/// Takes time and random bytes from the host.
///
/// # Errors `invalid_input` for a time above [`MAX_TIME`], or too few random bytes.
fn take_moment(host: &ComponentHost, at: &wit::Moment) -> Result<(), Error> {
    if at.now > MAX_TIME {
        return Err(Error::invalid(format!(
            "`now` is {} and at most {MAX_TIME}: a time in milliseconds since 1970, not in smaller units",
            at.now
        )));
    }
    host.random.mix(&at.random)?;
    host.executor.set_now(at.now);
    Ok(())
}

/// Returns the settings of an open store.
fn store_settings(settings: &wit::Settings, seed: u64) -> Result<StoreSettings, Error> {
    let defaults = StoreSettings::default();
    let replay = settings.replay.as_deref().map(|text| read_options::<ReplayOptions<JsonOptions>>("`replay`", text));
    let channels = settings
        .channels
        .as_deref()
        .map(|text| read_options::<OptionEntries<Option<ReplayOptions<JsonOptions>>>>("`channels`", text));
    let within = |name: &str, given: Option<u64>, least: u64, default: u64| match given {
        Some(ms) if !(least..=86_400_000).contains(&ms) => {
            Err(Error::config(format!("`{name}` must be from {least} to 86400000 milliseconds")))
        }
        given => Ok(given.unwrap_or(default)),
    };
    if settings.name.as_deref() == Some("") {
        return Err(Error::config("`name` is the database's name; it cannot be empty"));
    }
    Ok(StoreSettings {
        kind: "component",
        name: settings.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        seed: Seed(seed),
        global: replay.transpose()?.map(Into::into).unwrap_or_default(),
        channels: channel_layers(channels.transpose()?),
        title_session: None,
        lease_ms: within("lease-ms", settings.lease_ms, 100, defaults.lease_ms)?,
        store_timeout: within("store-timeout-ms", settings.store_timeout_ms, 10, defaults.store_timeout)?,
    })
}

/// Opens the store of an engine: the host's, by effects.
#[cfg(not(feature = "stored"))]
fn open_store(
    settings: &wit::Settings,
    _: &Rc<ComponentHost>,
    effects: &Rc<super::effects::Effects>,
) -> Result<Rc<dyn LogStore>, Error> {
    use super::effect_store::{EffectStore, capabilities};
    let capabilities = capabilities(settings.store.max_value_bytes, settings.store.durable)?;
    Ok(Rc::new(EffectStore { effects: effects.clone(), capabilities }))
}

/// Opens the store of an engine: a bucket of `wasi:keyvalue`.
#[cfg(feature = "stored")]
fn open_store(
    settings: &wit::Settings,
    host: &Rc<ComponentHost>,
    _: &Rc<super::effects::Effects>,
) -> Result<Rc<dyn LogStore>, Error> {
    super::keyvalue::open_bucket(settings.name.as_deref().unwrap_or(DEFAULT_NAME), host)
}

impl EngineResource {
    fn new(settings: &wit::Settings, at: &wit::Moment) -> Result<Self, Error> {
        let host = ComponentHost::new(settings.exclusive);
        take_moment(&host, at)?;
        let effects = host.effects.clone();
        let store_settings = store_settings(settings, host.random.next())?;
        let store = open_store(settings, &host, &effects)?;
        let store = OpenStore::new(StoreContext::new(store, host.clone(), store_settings));
        let sessions = Sessions::new(store, host, effects);
        Ok(Self { sessions, news: Rc::default(), last_operation: Cell::new(0) })
    }

    fn progress(&self, at: &wit::Moment) -> Result<wit::Progress, Error> {
        let Sessions { host, effects, runs, .. } = &*self.sessions;
        take_moment(host, at)?;
        host.executor.run();
        let events = runs.update(effects);
        let (opened, closed) = effects.take();
        Ok(wit::Progress {
            opened,
            closed,
            refused: self.news.refused.take(),
            may_run: self.news.may_run.take(),
            ended: self.news.ended.take(),
            events,
            warnings: super::super::finding::report(host.take_warnings()),
            wake_at: host.executor.next_timer(),
        })
    }

    fn take_answer(&self, id: u64, mut answer: wit::Answer) -> Result<(), Error> {
        let effects = &self.sessions.effects;
        let Some(effect) = effects.answer(id, &mut answer)? else { return Ok(()) };
        let input = run_input(&effect, answer).inspect_err(|_| effects.reopen(id))?;
        self.give(id, effect.run, input);
        Ok(())
    }

    /// Gives an input to a run, in the order of the host's calls.
    fn give(&self, id: u64, run: Rc<crate::session::RunDriver>, input: RunInput) {
        let (news, effects) = (self.news.clone(), self.sessions.effects.clone());
        self.sessions.host.executor.spawn(Box::pin(async move {
            let is_start = matches!(&input, RunInput::Answer { reply: EffectReply::Started, .. });
            let taken = match input {
                RunInput::Answer { effect, reply } => run.answer(effect, reply).await,
                input => run.feed(input).await,
            };
            match taken {
                Ok(()) if is_start => news.may_run.borrow_mut().push(id),
                Ok(()) => {}
                Err(error) => {
                    effects.reopen(id);
                    news.refused.borrow_mut().push(wit::Refusal { effect: id, error: error.into() });
                }
            }
        }));
    }

    fn take_bytes(&self, id: u64, bytes: Vec<u8>) -> Result<(), Error> {
        let effect = self.sessions.effects.fed(id)?;
        let is_too_large = bytes.len() as u64 > effect.run.machine.borrow().max_response_bytes();
        let input = if is_too_large {
            RunInput::ResponseTooLarge { effect: effect.id() }
        } else {
            RunInput::Bytes { effect: effect.id(), bytes }
        };
        self.give(id, effect.run, input);
        Ok(())
    }
}

impl wit::GuestEngine for EngineResource {
    fn open(settings: wit::Settings, at: wit::Moment) -> Result<wit::Engine, wit::Error> {
        Ok(wit::Engine::new(Self::new(&settings, &at)?))
    }

    fn begin(&self, command: wit::Command) -> Result<u64, wit::Error> {
        self.sessions.store.context.check_open()?;
        let operation = self.last_operation.get() + 1;
        self.last_operation.set(operation);
        let (sessions, news) = (self.sessions.clone(), self.news.clone());
        self.sessions.host.executor.spawn(Box::pin(async move {
            let outcome = sessions.perform(command).await.map_err(Into::into);
            news.ended.borrow_mut().push(wit::Ended { operation, outcome });
        }));
        Ok(operation)
    }

    fn step(&self, at: wit::Moment) -> Result<wit::Progress, wit::Error> {
        Ok(self.progress(&at)?)
    }

    fn answer(&self, effect: u64, answer: wit::Answer) -> Result<(), wit::Error> {
        Ok(self.take_answer(effect, answer)?)
    }

    fn feed(&self, effect: u64, bytes: Vec<u8>) -> Result<(), wit::Error> {
        Ok(self.take_bytes(effect, bytes)?)
    }

    fn effects(&self) -> Vec<wit::Effect> {
        self.sessions.effects.all()
    }

    fn run_state(&self, run: String) -> Result<wit::RunState, wit::Error> {
        Ok(run_state(&*self.sessions.runs.get(&run)?))
    }

    fn snapshot(&self, run: String) -> Result<Vec<u8>, wit::Error> {
        Ok(self.sessions.runs.get(&run)?.snapshot()?.to_vec())
    }
}
