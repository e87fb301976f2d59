//! The list of what has connections, in the order in which its use is looked at, and how many there may be: the clock
//! algorithm.
//!
//! Owns: the list, the counts beside it, and the hand of the clock. Pure; guarded by the lock of its owner. Invariants: what is
//! listed, looked at or being opened counts; a hand visits each at most twice, and again when another one was listed; nothing
//! is taken from a list that is short enough. Leaves out: what is listed, and closing its connections (`parking`).

use std::collections::VecDeque;

/// How many threads close connections at a time while others wait for that: a disk syncs the files of several at once.
const PARKERS: usize = 4;
/// Whoever opens connections waits while there are this many times as many as there may be.
const ROOM: usize = 2;
/// How many may be in the list unless it is set.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Clock<T> {
    /// What the hand visits next is the first.
    pub(super) entries: VecDeque<T>,
    /// How many were put into the list up to now.
    listed: u64,
    /// How many may be in the list, if that was set.
    most: Option<usize>,
    /// Taken from the list, to be looked at.
    looked_at: usize,
    /// Those whose connections are being opened.
    pub(super) opening: usize,
    /// Those that wait for room.
    pub(super) waiting: usize,
    parkers: usize,
    /// How often a hand visited each without finding one that will be free: all were held by their callers.
    pub(super) in_vain: u64,
}

/// The hand of the clock, while a thread closes connections.
#[derive(Default)]
pub(super) struct Hand {
    /// How many it still visits.
    steps: usize,
    /// How many had been listed when the steps were counted.
    listed: u64,
    has_seen_free: bool,
}

/// What became of one that the hand visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visited {
    /// It has no connections any more.
    Parked,
    /// It serves requests, or did lately: it will be free without its callers.
    Busy,
    /// Its callers have a transaction, a snapshot or a cursor open, or it must not be closed.
    Held,
}

impl<T> Clock<T> {
    pub(super) fn may_have(&mut self, most: usize) {
        self.most = Some(most.min(usize::MAX / ROOM));
    }

    pub(super) fn most(&self) -> usize {
        self.most.unwrap_or(MOST)
    }

    /// Adds one that got connections.
    pub(super) fn list(&mut self, entry: T) {
        self.entries.push_back(entry);
        self.listed += 1;
    }

    pub(super) fn has_room(&self) -> bool {
        self.entries.len() + self.looked_at + self.opening < ROOM * self.most()
    }

    /// Returns true if one more thread is to close connections: it counts from here on.
    pub(super) fn starts_parker(&mut self) -> bool {
        let most = if self.waiting > 0 { PARKERS } else { 1 };
        let starts = self.entries.len() > self.most() && self.parkers < most;
        self.parkers += usize::from(starts);
        starts
    }

    /// A thread that closes connections has ended, or could not be started.
    pub(super) fn parker_failed(&mut self) {
        self.parkers -= 1;
        self.in_vain += 1;
    }

    /// Takes the next one from the list. Returns `None` if few enough are left, or the hand has visited each twice since the
    /// last one was listed; then the thread must end.
    pub(super) fn next(&mut self, hand: &mut Hand) -> Option<T> {
        if hand.listed != self.listed {
            *hand = Hand { steps: self.entries.len() * 2, listed: self.listed, has_seen_free: false };
        }
        let next = if self.entries.len() > self.most() && hand.steps > 0 { self.entries.pop_front() } else { None };
        if next.is_some() {
            hand.steps -= 1;
            self.looked_at += 1;
        } else {
            self.parkers -= 1;
            self.in_vain += u64::from(hand.steps == 0 && !hand.has_seen_free);
        }
        next
    }

    /// Notes what became of the one that the hand visited, and that was not put back yet.
    pub(super) fn visited(&mut self, hand: &mut Hand, visited: Visited) {
        hand.has_seen_free |= visited != Visited::Held;
        self.looked_at -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(most: usize, entries: u32) -> Clock<u32> {
        let mut clock = Clock::default();
        clock.may_have(most);
        (0..entries).for_each(|entry| clock.list(entry));
        clock
    }

    /// Moves the hand until its thread ends. Returns what it visited.
    fn turn(clock: &mut Clock<u32>, mut becomes: impl FnMut(u32) -> Visited) -> Vec<u32> {
        assert!(clock.starts_parker());
        let (mut hand, mut all) = (Hand::default(), Vec::new());
        while let Some(entry) = clock.next(&mut hand) {
            let visited = becomes(entry);
            clock.visited(&mut hand, visited);
            if visited != Visited::Parked {
                clock.entries.push_back(entry);
            }
            all.push(entry);
        }
        all
    }

    #[test]
    fn it_takes_the_first_ones_until_few_enough_are_left() {
        let mut clock = clock(2, 5);
        assert_eq!(turn(&mut clock, |_| Visited::Parked), [0, 1, 2]);
        assert!(!clock.starts_parker() && clock.in_vain == 0);
    }

    #[test]
    fn it_visits_each_twice_and_notes_whether_all_are_held() {
        let mut clock = clock(1, 3);
        assert_eq!(turn(&mut clock, |_| Visited::Busy), [0, 1, 2, 0, 1, 2]);
        assert_eq!(clock.in_vain, 0, "they will be free");
        assert_eq!(turn(&mut clock, |_| Visited::Held).len(), 6);
        assert_eq!(clock.in_vain, 1);
    }

    #[test]
    fn there_is_room_up_to_twice_the_bound_for_what_is_listed_looked_at_or_opening() {
        let mut clock = clock(2, 2);
        assert!(clock.has_room());
        clock.opening += 1;
        clock.opening += 1;
        assert!(!clock.has_room());
        clock.opening -= 1;
        clock.list(9);
        assert!(!clock.has_room());
        assert!(clock.starts_parker());
        let mut hand = Hand::default();
        assert_eq!(clock.next(&mut hand), Some(0));
        assert!(!clock.has_room(), "what is looked at has connections");
        clock.visited(&mut hand, Visited::Parked);
        assert!(clock.has_room());
    }

    #[test]
    fn several_threads_park_while_somebody_waits() {
        let mut clock = clock(1, 10);
        assert!(clock.starts_parker() && !clock.starts_parker());
        clock.waiting = 1;
        assert_eq!((0..9).filter(|_| clock.starts_parker()).count(), PARKERS - 1);
    }
}
