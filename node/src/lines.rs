//! The order of calls while the rows of one of them are being read.
//!
//! Owns: for each queue of the engine the calls of this environment that were made, and are not in it yet. Runs on the loop's
//! thread. Invariants: calls begin in the order in which they were made; the first one of a line is being read, or its token was
//! noted; a line is there as long as somebody is in it. Leaves out: which calls have an order (`FrontCall::line`), and beginning
//! them (`host`).
//!
//! ```text
//! executeMany(100,000 rows)      takes the first place, and reads in slices
//! execute(...)                   is made of its arguments, joins the line, and waits
//! batch(5,000 statements)        joins the line, and reads in slices too
//!                                the rows are there: executeMany begins, and leaves; `execute` is polled, begins, leaves; ...
//! ```

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

#[derive(Default)]
pub(crate) struct Lines(RefCell<HashMap<usize, Line>>);

#[derive(Default)]
struct Line {
    /// The number of the first place.
    first: u64,
    places: VecDeque<Place>,
}

enum Place {
    /// Its rows are being read.
    Reading,
    /// It waits under this token.
    Call(u64),
    Left,
}

/// A place in a line.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    line: usize,
    at: u64,
}

impl Lines {
    /// True if a call that is made now is behind others.
    pub(crate) fn has(&self, line: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let lines = self.0.borrow();
        if lines.is_empty() { None } else { line().filter(|line| lines.contains_key(line)) }
    }

    /// Takes the last place of a line for a call whose rows are to be read.
    pub(crate) fn read(&self, line: usize) -> Spot {
        self.push(line, Place::Reading)
    }

    /// Takes the last place of a line for a call that waits under the token.
    pub(crate) fn join(&self, line: usize, token: u64) -> Spot {
        self.push(line, Place::Call(token))
    }

    fn push(&self, line: usize, place: Place) -> Spot {
        let mut lines = self.0.borrow_mut();
        let of = lines.entry(line).or_default();
        of.places.push_back(place);
        Spot { line, at: of.first + of.places.len() as u64 - 1 }
    }

    pub(crate) fn is_first(&self, spot: Spot) -> bool {
        self.0.borrow().get(&spot.line).is_some_and(|line| line.first == spot.at)
    }

    /// The rows are there, and others are before the call, which waits under the token.
    pub(crate) fn was_read(&self, spot: Spot, token: u64) {
        self.set(spot, Place::Call(token));
    }

    /// Leaves the line. Returns the token of the call that is first now, unless it was that before or its rows are being read.
    pub(crate) fn leave(&self, spot: Spot) -> Option<u64> {
        let was_first = self.is_first(spot);
        self.set(spot, Place::Left);
        let mut lines = self.0.borrow_mut();
        let line = lines.get_mut(&spot.line).filter(|_| was_first)?;
        while let Some(Place::Left) = line.places.front() {
            line.places.pop_front();
            line.first += 1;
        }
        match line.places.front() {
            Some(Place::Call(token)) => Some(*token),
            Some(_) => None,
            None => {
                lines.remove(&spot.line);
                None
            }
        }
    }

    fn set(&self, spot: Spot, place: Place) {
        if let Some(line) = self.0.borrow_mut().get_mut(&spot.line)
            && let Some(at) = spot.at.checked_sub(line.first)
            && let Some(of) = line.places.get_mut(at as usize)
        {
            *of = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_leave_in_their_order_and_a_line_ends_with_the_last() {
        let lines = Lines::default();
        assert_eq!(lines.has(|| unreachable!("there is no line")), None);
        let reading = lines.read(7);
        assert_eq!((lines.has(|| Some(7)), lines.has(|| Some(8)), lines.has(|| None)), (Some(7), None, None));
        let [one, gone, two] = [1, 2, 3].map(|token| lines.join(7, token));
        let other = lines.read(7);
        let last = lines.join(7, 5);
        assert!(lines.is_first(reading) && !lines.is_first(one));
        assert_eq!(lines.leave(gone), None, "it is not its turn");
        lines.was_read(other, 4);
        assert_eq!(lines.leave(reading), Some(1));
        assert_eq!(lines.leave(one), Some(3));
        assert_eq!(lines.leave(two), Some(4));
        assert_eq!(lines.leave(last), None);
        assert_eq!(lines.leave(other), None);
        assert_eq!(lines.has(|| Some(7)), None);
    }
}
