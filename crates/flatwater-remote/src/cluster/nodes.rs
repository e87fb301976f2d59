//! The nodes of a cluster, and who is asked next.
//!
//! Owns: which node is the leader, as far as is known, and how long to wait between attempts. Pure. Invariants: a node that failed
//! is not asked again before the others, but for a primary that nobody replaces; the list does not grow without bound. Leaves out:
//! asking.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Nodes that are learnt from redirects are forgotten when there are more.
const MOST: usize = 64;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A replica that failed is not asked for so long.
const REST: Duration = Duration::from_secs(5);
/// A request that was redirected so often in a row has gone in a circle.
pub(crate) const MOST_REDIRECTS: u32 = 5;

pub(crate) struct Nodes {
    all: Vec<Arc<str>>,
    leader: usize,
    any: usize,
    /// The first one leads for ever, and the others are its replicas.
    is_fixed: bool,
    /// Until when each is not asked, of replicas.
    rests: Vec<Option<Instant>>,
}

impl Nodes {
    /// `all` has at least one.
    pub(crate) fn new(all: impl IntoIterator<Item = String>) -> Self {
        let all: Vec<Arc<str>> = all.into_iter().map(Arc::from).collect();
        Self { rests: vec![None; all.len()], all, leader: 0, any: 0, is_fixed: false }
    }

    /// The same for servers of which the first is the only one that writes.
    pub(crate) fn with_primary(all: impl IntoIterator<Item = String>) -> Self {
        Self { is_fixed: true, ..Self::new(all) }
    }

    /// The node that is the leader, as far as is known.
    pub(crate) fn leader(&self) -> Arc<str> {
        self.all[self.leader].clone()
    }

    /// Any node, the next time another one. A primary is left to its writes, unless there is no replica that can be asked.
    pub(crate) fn any(&mut self, now: Instant) -> Arc<str> {
        for _ in 0..self.all.len() {
            self.any = (self.any + 1) % self.all.len();
            let rests = self.rests.get(self.any).copied().flatten().is_some_and(|until| now < until);
            if !self.is_fixed || self.any != self.leader && !rests {
                return self.all[self.any].clone();
            }
        }
        self.leader()
    }

    /// A node named this one as the leader.
    pub(crate) fn is_leader(&mut self, node: &str) {
        let known = self.all.iter().position(|known| **known == *node);
        self.leader = known.unwrap_or_else(|| {
            if self.all.len() == MOST {
                self.all.pop();
            }
            self.all.push(node.into());
            self.all.len() - 1
        });
    }

    /// This node did not answer, or does not know a leader: another one is asked next.
    pub(crate) fn failed(&mut self, node: &str, now: Instant) {
        if !self.is_fixed {
            if *self.all[self.leader] == *node {
                self.leader = (self.leader + 1) % self.all.len();
            }
        } else if *self.all[self.leader] == *node {
            // Then the others are better than nobody.
            self.rests.fill(None);
        } else if let Some(at) = self.all.iter().position(|known| **known == *node) {
            self.rests[at] = Some(now + REST);
        }
    }
}

/// How long to wait before the next attempt, after so many. `random` is below 1: clients that failed together do not come back
/// together.
pub(crate) fn pause(attempts: u32, random: f64) -> Duration {
    let longest = FIRST_PAUSE.mul_f64(1.6_f64.powi(attempts.min(16).cast_signed())).min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(of: &[&str]) -> Nodes {
        Nodes::new(of.iter().map(|node| (*node).to_owned()))
    }

    #[test]
    fn the_leader_is_asked_until_it_fails_and_then_the_others_in_turn() {
        let mut nodes = nodes(&["a", "b", "c"]);
        assert_eq!(&*nodes.leader(), "a");
        nodes.failed("b", Instant::now());
        assert_eq!(&*nodes.leader(), "a", "another one failed");
        nodes.is_leader("c");
        assert_eq!(&*nodes.leader(), "c");
        for expected in ["a", "b", "c"] {
            let failed = nodes.leader();
            nodes.failed(&failed, Instant::now());
            assert_eq!(&*nodes.leader(), expected);
        }
        nodes.is_leader("d");
        assert_eq!(&*nodes.leader(), "d");
    }

    #[test]
    fn a_primary_stays_and_its_replicas_take_turns_unless_one_has_failed() {
        let mut nodes = Nodes::with_primary(["p", "a", "b"].map(str::to_owned));
        let now = Instant::now();
        nodes.failed("p", now);
        let seen = |nodes: &mut Nodes, at| (0..4).map(|_| nodes.any(at).to_string()).collect::<Vec<_>>();
        assert_eq!((&*nodes.leader(), seen(&mut nodes, now)), ("p", ["a", "b", "a", "b"].map(str::to_owned).to_vec()));
        nodes.failed("b", now);
        assert_eq!(seen(&mut nodes, now), ["a"; 4]);
        nodes.failed("a", now);
        assert_eq!(seen(&mut nodes, now), ["p"; 4], "there is no other");
        let mut failing = Nodes::with_primary(["p", "a"].map(str::to_owned));
        failing.failed("a", now);
        failing.failed("p", now);
        assert_eq!(&*failing.any(now), "a", "better than nobody");
        let mut again = seen(&mut nodes, now + REST);
        again.sort();
        assert_eq!(again, ["a", "a", "b", "b"]);
        assert_eq!(&*Nodes::with_primary(["p".to_owned()]).any(now), "p");
    }

    #[test]
    fn the_list_has_a_bound() {
        let mut nodes = nodes(&["a"]);
        for number in 0..1_000 {
            nodes.is_leader(&number.to_string());
        }
        assert_eq!((nodes.all.len(), &*nodes.all[0], &*nodes.leader()), (MOST, "a", "999"));
    }

    #[test]
    fn any_node_is_another_one_each_time() {
        let mut nodes = nodes(&["a", "b", "c"]);
        let mut seen: Vec<_> = (0..3).map(|_| nodes.any(Instant::now()).to_string()).collect();
        seen.sort();
        assert_eq!(seen, ["a", "b", "c"]);
    }

    #[test]
    fn pauses_become_longer_up_to_a_bound() {
        assert_eq!((pause(0, 0.0), pause(0, 1.0)), (FIRST_PAUSE / 2, FIRST_PAUSE));
        assert_eq!(pause(u32::MAX, 1.0), LONGEST_PAUSE);
        assert!((0..20).all(|attempts| pause(attempts, 0.5) <= pause(attempts + 1, 0.5)));
    }
}
