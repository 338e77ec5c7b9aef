//! The effects that wait for a reply, by number: a round may have thousands, and each is found without a scan.

use super::effect::{Effect, EffectKind};
use std::collections::BTreeMap;

/// Open effects, in the order in which they were offered.
#[derive(Default)]
pub(super) struct OpenEffects {
    open: BTreeMap<u64, Box<Effect>>,
    /// The number of effects offered so far, which is the number of the newest one.
    offered: u64,
    /// Numbers of effects that were closed and not reported yet.
    closed: Vec<u64>,
}

impl OpenEffects {
    /// Offers an effect; returns its id.
    pub fn offer(&mut self, kind: EffectKind) -> String {
        self.offered += 1;
        let id = effect_id(self.offered);
        self.open.insert(self.offered, Box::new(Effect { id: id.clone(), kind }));
        id
    }

    /// Closes one effect.
    pub fn close(&mut self, id: &str) {
        if let Some(number) = number_of(id)
            && self.open.remove(&number).is_some()
        {
            self.closed.push(number);
        }
    }

    /// Closes all of them.
    pub fn clear(&mut self) {
        self.closed.extend(std::mem::take(&mut self.open).into_keys());
    }

    /// Returns whether the effect waits for a reply, or `None` for an id that was never offered.
    pub fn is_open(&self, id: &str) -> Option<bool> {
        let number = number_of(id).filter(|number| (1..=self.offered).contains(number))?;
        Some(self.open.contains_key(&number))
    }

    /// Returns all open effects.
    pub fn all(&self) -> Vec<&Effect> {
        self.open.values().map(|effect| &**effect).collect()
    }

    /// Returns the open effects with higher numbers than `number`.
    pub fn after(&self, number: u64) -> Vec<(u64, &Effect)> {
        self.open.range(number.saturating_add(1)..).map(|(number, effect)| (*number, &**effect)).collect()
    }

    /// Returns the open effect of this number.
    pub fn get(&self, number: u64) -> Option<&Effect> {
        self.open.get(&number).map(|effect| &**effect)
    }

    /// Takes the numbers of the effects that were closed since the last call.
    pub fn take_closed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.closed)
    }
}

/// Returns the id of the effect with this number.
#[must_use]
pub fn effect_id(number: u64) -> String {
    format!("e{number}")
}

/// Returns the number in an effect's id.
fn number_of(id: &str) -> Option<u64> {
    let number = id.strip_prefix('e')?.parse().ok()?;
    (effect_id(number) == id).then_some(number)
}
