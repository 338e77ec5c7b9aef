//! The messages that stand at one place in the branches of a session: edits of a question, answers that were asked for
//! again.

use std::collections::BTreeMap;

/// Which messages follow a message in any branch of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternatives {
    /// By the id of the message before them.
    after: BTreeMap<String, Place>,
    /// What the branches begin with that share nothing.
    first: Place,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// The oldest first.
    ids: Vec<String>,
    /// True if the message of the branch that was forked is among them.
    has_original: bool,
}

/// Those of a session with one branch.
pub static NO_ALTERNATIVES: Alternatives =
    Alternatives { after: BTreeMap::new(), first: Place { ids: Vec::new(), has_original: false } };

impl Alternatives {
    /// Adds a fork after a message: the message in whose place the new branch has another one, and this one.
    pub fn add(&mut self, after: Option<&str>, beside: Option<&str>, first: Option<&str>) {
        let place = match after {
            Some(id) => self.after.entry(id.to_owned()).or_default(),
            None => &mut self.first,
        };
        place.has_original |= beside.is_some();
        for id in [beside, first].into_iter().flatten() {
            if !place.ids.iter().any(|known| known == id) {
                place.ids.push(id.to_owned());
            }
        }
    }

    /// Returns the ids of all messages at the place of one, the oldest first, and its index among them. `previous` is
    /// the id of the message before it.
    #[must_use]
    pub fn of<'a>(&'a self, previous: Option<&str>, own: &'a str) -> (Vec<&'a str>, usize) {
        let place = match previous {
            Some(id) => self.after.get(id),
            None => Some(&self.first).filter(|first| !first.ids.is_empty()),
        };
        let Some(place) = place else { return (vec![own], 0) };
        let mut ids: Vec<&str> = place.ids.iter().map(String::as_str).collect();
        let index = ids.iter().position(|id| *id == own).unwrap_or_else(|| {
            // The branch that was forked went on after the fork, or the message is not stored yet.
            let at = if place.has_original { ids.len() } else { 0 };
            ids.insert(at, own);
            at
        });
        (ids, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn r57_siblings_are_in_the_order_in_which_they_were_made() {
        let mut all = Alternatives::default();
        all.add(Some("q"), Some("a1"), Some("a2"));
        all.add(Some("q"), Some("a1"), Some("a3"));
        assert_eq!(all.of(Some("q"), "a2"), (vec!["a1", "a2", "a3"], 1));
        assert_eq!(all.of(Some("q"), "new"), (vec!["a1", "a2", "a3", "new"], 3));
        assert_eq!(all.of(Some("a2"), "b"), (vec!["b"], 0));
        // Forked at the end of a branch that went on later.
        all.add(None, None, Some("f"));
        assert_eq!(all.of(None, "m"), (vec!["m", "f"], 0));
    }
}
