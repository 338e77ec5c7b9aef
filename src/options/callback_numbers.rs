//! The numbers of functions that were given as callbacks.

/// Maximum number of functions that are recognized when they are given again. What a recognized one has counted is
/// kept.
const MAX_NUMBERED: usize = 32;

/// The numbers of the newest functions, or of what names them.
pub struct CallbackNumbers<T> {
    last: u32,
    numbered: Vec<(u32, T)>,
}

impl<T: PartialEq> CallbackNumbers<T> {
    /// No function has a number yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: 0, numbered: Vec::new() }
    }

    /// Returns the number of a function; equal functions have one number.
    pub fn number_of(&mut self, function: T) -> u32 {
        if let Some((number, _)) = self.numbered.iter().find(|(_, numbered)| *numbered == function) {
            return *number;
        }
        if self.numbered.len() >= MAX_NUMBERED {
            self.numbered.remove(0);
        }
        self.last += 1;
        self.numbered.push((self.last, function));
        self.last
    }
}
