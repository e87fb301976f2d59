//! A bounded FIFO, and the line: the items that wait for a free place in it. Pure: no lock, no thread, no clock.
//!
//! Owns: the items in the queue and the items in the line. Invariants: at most `limit` items are in the queue, except
//! after an item was put back and after `admit_all`; an item enters the queue when a place is free and the item is the
//! first in the line. So items leave in the order in which they were pushed, in whatever order their callers are
//! polled. Leaves out: notifying a caller that its item entered. That caller waits for its reply anyway.

use std::collections::VecDeque;

/// An item's number in the line; `None` if it never waited there. Valid for one queue only.
pub(crate) type LinePlace = Option<u64>;

pub(crate) struct Bounded<T> {
    items: VecDeque<T>,
    limit: usize,
    /// In ascending order of the numbers. An item that left keeps its entry until its turn.
    line: VecDeque<(u64, Option<T>)>,
    next_number: u64,
}

impl<T> Bounded<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { items: VecDeque::new(), limit, line: VecDeque::new(), next_number: 0 }
    }

    /// The number of items in the queue, without the line.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    /// Adds the item to the queue if a place is free, otherwise to the end of the line.
    pub(crate) fn push(&mut self, item: T) -> LinePlace {
        if self.line.is_empty() && self.items.len() < self.limit {
            self.items.push_back(item);
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.line.push_back((number, Some(item)));
        Some(number)
    }

    /// Removes an item from the line, if it is still there.
    pub(crate) fn leave(&mut self, place: LinePlace) -> Option<T> {
        let number = place?;
        let at = self.line.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.line[at].1.take()
    }

    /// Puts an item back at the front of the queue, even if the queue is full.
    pub(crate) fn put_back(&mut self, item: T) {
        self.items.push_front(item);
    }

    /// Removes the first item of the queue, and moves items from the line into the free places.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.admit();
        Some(item)
    }

    fn admit(&mut self) {
        while self.items.len() < self.limit {
            let Some((_, next)) = self.line.pop_front() else { break };
            self.items.extend(next);
        }
    }

    /// Removes the items of the queue that `take` returns true for, in their order, and moves items from the line into the
    /// free places.
    pub(crate) fn take_out(&mut self, mut take: impl FnMut(&T) -> bool) -> Vec<T> {
        let (taken, kept) = std::mem::take(&mut self.items).into_iter().partition::<Vec<_>, _>(|item| take(item));
        self.items = kept.into();
        self.admit();
        taken
    }

    /// Moves the whole line into the queue, even beyond the limit, and adds `last` after it.
    pub(crate) fn admit_all(&mut self, last: Option<T>) {
        self.items.extend(self.line.drain(..).filter_map(|(_, item)| item));
        self.items.extend(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_finds_no_place_comes_in_when_its_turn_is() {
        let mut queue = Bounded::new(1);
        assert_eq!(queue.push('a'), None);
        let b = queue.push('b');
        let c = queue.push('c');
        assert!(b.is_some() && c.is_some());
        assert_eq!(queue.leave(b), Some('b'));
        assert_eq!(queue.leave(b), None);
        assert_eq!(queue.pop(), Some('a'));
        assert_eq!(queue.leave(c), None, "it is in by now");
        assert_eq!(queue.pop(), Some('c'));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn what_is_taken_out_leaves_the_others_in_their_order() {
        let mut queue = Bounded::new(8);
        for item in 1..=5 {
            queue.push(item);
        }
        assert_eq!(queue.take_out(|item| item % 2 == 0), [2, 4]);
        assert_eq!([queue.pop(), queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(3), Some(5), None]);
    }

    #[test]
    fn what_waits_in_line_takes_the_place_of_what_is_taken_out() {
        let mut queue = Bounded::new(1);
        queue.push(1);
        assert!(queue.push(2).is_some());
        assert_eq!(queue.take_out(|_| true), [1]);
        assert_eq!(queue.pop(), Some(2));
    }

    proptest! {
        /// Random pushes, departures and pops: no item is lost, none overtakes another, the limit holds.
        #[test]
        fn items_leave_in_the_order_they_came(limit in 1..4_usize, steps in prop::collection::vec((0..4_u8, 0..8_usize), 1..200)) {
            let mut queue = Bounded::new(limit);
            let (mut expected, mut places) = (VecDeque::new(), Vec::new());
            let mut next = 0_u64;
            for (action, pick) in steps {
                match action {
                    0 | 1 => {
                        places.push((next, queue.push(next)));
                        expected.push_back(next);
                        next += 1;
                    }
                    2 if !places.is_empty() => {
                        let (item, place) = places[pick % places.len()];
                        if let Some(left) = queue.leave(place) {
                            prop_assert_eq!(left, item);
                            expected.retain(|waiting| *waiting != item);
                        }
                    }
                    _ => prop_assert_eq!(queue.pop(), expected.pop_front()),
                }
                prop_assert!(queue.len() <= limit);
            }
            queue.admit_all(Some(u64::MAX));
            expected.push_back(u64::MAX);
            while let Some(item) = queue.pop() {
                prop_assert_eq!(Some(item), expected.pop_front());
            }
            prop_assert!(expected.is_empty());
        }
    }
}
