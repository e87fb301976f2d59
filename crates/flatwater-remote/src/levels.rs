//! The levels of a cluster's sessions, by number: a call has its number with it.
//!
//! Owns: the numbers. Used by callers and by the thread of the connection. Invariant: a number is that of one level, for ever. Leaves out:
//! what a level promises (`options`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::options::Level;

#[derive(Default)]
pub(crate) struct Levels(Mutex<Vec<Level>>);

impl Levels {
    /// Returns the number of a level. When all numbers are taken it is that of one that promises at least as much.
    pub(crate) fn number(&self, level: Level) -> u16 {
        let mut levels = self.lock();
        if levels.is_empty() {
            levels.push(Level::Linearizable);
        }
        let known = levels.iter().position(|known| *known == level);
        let number = known.or_else(|| {
            levels.push(level);
            Some(levels.len() - 1)
        });
        match number.and_then(|number| u16::try_from(number).ok()) {
            Some(number) => number,
            None => {
                levels.pop();
                0
            }
        }
    }

    pub(crate) fn get(&self, number: u16) -> Level {
        self.lock().get(usize::from(number)).copied().unwrap_or(Level::Linearizable)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Level>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fresh(us: u64) -> Level {
        Level::None { freshness: Some(Duration::from_micros(us)) }
    }

    #[test]
    fn a_level_has_a_number_of_its_own_and_keeps_it() {
        let levels = Levels::default();
        let all =
            [Level::Weak, Level::Strong, fresh(1), Level::Linearizable, Level::None { freshness: None }, fresh(2)];
        let numbers = all.map(|level| levels.number(level));
        assert_eq!(all.map(|level| levels.number(level)), numbers);
        assert_eq!(numbers.map(|number| levels.get(number)), all);
    }

    #[test]
    fn there_are_so_many_numbers_and_no_more_is_kept() {
        let levels = Levels(Mutex::new(Vec::new()));
        levels.number(Level::Weak);
        levels.lock().extend((0..65_534).map(fresh));
        assert_eq!(levels.number(fresh(1_000_000)), 0);
        assert_eq!((levels.get(0), levels.lock().len()), (Level::Linearizable, 65_536));
    }
}
