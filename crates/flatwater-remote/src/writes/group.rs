//! The writes of several callers in one request.
//!
//! Owns: how many go together, and what follows when one of them fails. Pure. Invariants: writes keep their order; a write that
//! fails has failed alone; all in all, a write is sent a bounded number of times, however many fail. Leaves out: sending.
//!
//! A request commits as a whole or not at all, so nothing was applied when a member failed. Those before it are sent again, then
//! it, alone, and the rest joins what waits; the error that its caller gets is that of the time when it was alone.

/// So many writes go together at most.
const MOST_MEMBERS: usize = 128;
/// No further write joins a request that is as long.
pub(crate) const FULL_BYTES: usize = 1 << 20;

/// How many writes may go together now: half as many after each failure, and twice as many after a success.
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_MEMBERS)
    }
}

impl Room {
    pub(crate) fn members(&self) -> usize {
        self.0
    }

    /// A request of so many members was applied.
    pub(crate) fn succeeded(&mut self, members: usize) {
        if members == self.0 {
            self.0 = (self.0 * 2).min(MOST_MEMBERS);
        }
    }

    /// A member has failed beside others.
    pub(crate) fn failed(&mut self) {
        self.0 = (self.0 / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Returns how many statements were sent, and the order in which the members were done.
    fn run(fails: &[bool]) -> (usize, Vec<usize>) {
        let (mut sent, mut done, mut room) = (0, Vec::new(), Room::default());
        let mut waiting: VecDeque<usize> = (0..fails.len()).collect();
        while !waiting.is_empty() {
            let members: Vec<usize> = waiting.drain(..room.members().min(waiting.len())).collect();
            sent += members.len();
            match members.iter().position(|member| fails[*member]) {
                Some(failed) if members.len() > 1 => {
                    room.failed();
                    sent += failed + 1;
                    done.extend(&members[..=failed]);
                    members[failed + 1..].iter().rev().for_each(|member| waiting.push_front(*member));
                }
                Some(_) => done.extend(members),
                None => {
                    room.succeeded(members.len());
                    done.extend(members);
                }
            }
        }
        (sent, done)
    }

    #[test]
    fn writes_go_together_while_none_fails() {
        assert_eq!(run(&[false; 1_000]).0, 1_000);
    }

    proptest! {
        #[test]
        fn members_keep_their_order_and_no_work_grows_faster_than_their_number(
            fails in prop_oneof![
                prop::collection::vec(any::<bool>(), 0..600),
                prop::collection::vec(prop::bool::weighted(0.02), 0..600),
                prop::collection::vec(prop::bool::weighted(0.98), 0..600),
            ]
        ) {
            let (sent, done) = run(&fails);
            prop_assert_eq!(done, (0..fails.len()).collect::<Vec<_>>());
            prop_assert!(sent <= 6 * fails.len() + 3 * MOST_MEMBERS, "{} for {}", sent, fails.len());
        }
    }
}
