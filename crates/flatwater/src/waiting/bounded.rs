//! A bounded FIFO and the line of callers that wait for a place in it. Pure: no lock, no thread, no clock.
//!
//! Owns: items, the waiting callers' wakers, and places that are promised but not yet filled. Invariants:
//! `items + promised <= limit` (putting items back at the front is the exception); places are promised in the order
//! in which callers began to wait; a freed place wakes one caller. Leaves out: waking, which its owner does after
//! giving up its lock.

use std::collections::VecDeque;
use std::task::Waker;

/// A caller's number in the line; `None` while it does not stand in it. Belongs to one queue.
pub(crate) type Place = Option<u64>;

pub(crate) struct Bounded<T> {
    items: VecDeque<T>,
    limit: usize,
    /// Places given to callers that were woken and have not pushed yet.
    promised: usize,
    /// In ascending order of their numbers. A caller that left keeps its entry, without a waker, until its turn.
    line: VecDeque<(u64, Option<Waker>)>,
    /// Entries of the line that still have a waker.
    in_line: usize,
    next_number: u64,
    /// Numbers below this have been promised a place.
    admitted: u64,
}

impl<T> Bounded<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            limit,
            promised: 0,
            line: VecDeque::new(),
            in_line: 0,
            next_number: 0,
            admitted: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    /// Asks for a place. True: push now, under the same lock. False: the caller stands in the line with `waker`.
    pub(crate) fn admit(&mut self, place: &mut Place, waker: &Waker) -> bool {
        match *place {
            None if self.line.is_empty() && self.items.len() + self.promised < self.limit => true,
            None => {
                *place = Some(self.next_number);
                self.line.push_back((self.next_number, Some(waker.clone())));
                self.in_line += 1;
                self.next_number += 1;
                false
            }
            Some(number) if number < self.admitted => {
                *place = None;
                self.promised -= 1;
                true
            }
            Some(number) => {
                if let Some(entry) = self.entry(number) {
                    *entry = Some(waker.clone());
                }
                false
            }
        }
    }

    /// A caller that stood in the line is gone. Answers whom to wake, if its promised place goes to the next.
    pub(crate) fn leave(&mut self, place: &mut Place) -> Option<Waker> {
        let number = place.take()?;
        if number < self.admitted {
            self.promised -= 1;
            return self.promise_next();
        }
        if self.entry(number).is_some_and(|entry| entry.take().is_some()) {
            self.in_line -= 1;
        }
        None
    }

    /// Whether a caller stands in the line, or was promised a place it has not filled.
    pub(crate) fn has_line(&self) -> bool {
        self.in_line + self.promised > 0
    }

    fn entry(&mut self, number: u64) -> Option<&mut Option<Waker>> {
        let at = self.line.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&mut self.line[at].1)
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push_back(item);
    }

    /// Puts an item back where it came from, whether there is a place or not.
    pub(crate) fn put_back(&mut self, item: T) {
        self.items.push_front(item);
    }

    /// Takes the first item, and answers whom to wake for the freed place.
    pub(crate) fn pop(&mut self) -> Option<(T, Option<Waker>)> {
        let item = self.items.pop_front()?;
        Some((item, self.promise_next()))
    }

    fn promise_next(&mut self) -> Option<Waker> {
        while self.items.len() + self.promised < self.limit {
            let (number, waker) = self.line.pop_front()?;
            self.admitted = number + 1;
            if waker.is_some() {
                self.in_line -= 1;
                self.promised += 1;
                return waker;
            }
        }
        None
    }

    /// Everybody in the line, to be told that the queue is closed.
    pub(crate) fn dismiss(&mut self) -> Vec<Waker> {
        self.in_line = 0;
        self.line.iter_mut().filter_map(|(_, waker)| waker.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn waker() -> (Waker, Arc<Count>) {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        (count.clone().into(), count)
    }

    #[test]
    fn a_full_queue_admits_in_the_order_of_arrival() {
        let mut queue = Bounded::new(1);
        let (waker, _) = waker();
        let (mut a, mut b, mut c) = (None, None, None);
        assert!(queue.admit(&mut a, &waker));
        queue.push('a');
        assert!(!queue.admit(&mut b, &waker));
        assert!(!queue.admit(&mut c, &waker));
        let (item, wake) = queue.pop().unwrap();
        assert!(item == 'a' && wake.is_some());
        // The free place is b's: neither c nor a newcomer gets it.
        let mut newcomer = None;
        assert!(!queue.admit(&mut newcomer, &waker));
        assert!(!queue.admit(&mut c, &waker));
        assert!(queue.admit(&mut b, &waker));
    }

    #[test]
    fn a_promised_place_of_a_caller_that_left_goes_to_the_next() {
        let mut queue = Bounded::new(1);
        let (first, _) = waker();
        let (second, woken) = waker();
        queue.push('a');
        let (mut b, mut c) = (None, None);
        assert!(!queue.admit(&mut b, &first));
        assert!(!queue.admit(&mut c, &second));
        queue.pop().unwrap();
        queue.leave(&mut b).unwrap().wake();
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(queue.admit(&mut c, &second));
    }

    proptest! {
        /// Random arrivals, departures and pops: nobody is forgotten, nobody overtakes, the limit holds.
        #[test]
        fn the_line_is_fair_and_bounded(limit in 1..4_usize, steps in prop::collection::vec((0..4_u8, 0..8_usize), 1..200)) {
            let mut queue = Bounded::new(limit);
            let (waker, _) = waker();
            let mut callers: Vec<(u64, Place)> = Vec::new();
            let (mut next, mut arrived) = (0_u64, Vec::new());
            for (action, pick) in steps {
                match action {
                    0 => {
                        let mut place = None;
                        if queue.admit(&mut place, &waker) { queue.push(next); arrived.push(next) } else { callers.push((next, place)) }
                        next += 1;
                    }
                    1 if !callers.is_empty() => {
                        let at = pick % callers.len();
                        let (id, mut place) = callers[at];
                        if queue.admit(&mut place, &waker) {
                            queue.push(id);
                            arrived.push(id);
                            callers.remove(at);
                        }
                    }
                    2 if !callers.is_empty() => {
                        let (_, mut place) = callers.remove(pick % callers.len());
                        queue.leave(&mut place);
                    }
                    _ => { queue.pop(); }
                }
                prop_assert!(queue.len() + queue.promised <= limit);
                prop_assert!(queue.promised <= callers.len());
                prop_assert_eq!(queue.has_line(), !callers.is_empty());
                prop_assert_eq!(queue.in_line, queue.line.iter().filter(|(_, waker)| waker.is_some()).count());
            }
            // Everybody who still waits gets a place once the queue is emptied, first come first served.
            for (id, mut place) in callers {
                while !queue.is_empty() { queue.pop(); }
                prop_assert!(queue.admit(&mut place, &waker), "caller {id} waits for ever");
                queue.push(id);
            }
        }
    }
}
