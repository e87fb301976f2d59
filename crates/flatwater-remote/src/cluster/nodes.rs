//! The nodes of a cluster, and who is asked next.
//!
//! Owns: which node is the leader, as far as is known, and how long to wait between attempts. Pure. Invariants: a node that failed
//! is not asked again before the others, and the list does not grow without bound. Leaves out: asking.

use std::sync::Arc;
use std::time::Duration;

/// Nodes that are learnt from redirects are forgotten when there are more.
const MOST: usize = 64;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A request that was redirected so often in a row has gone in a circle.
pub(crate) const MOST_REDIRECTS: u32 = 5;

pub(crate) struct Nodes {
    all: Vec<Arc<str>>,
    leader: usize,
    any: usize,
    /// The first one leads for ever, and the others are its replicas.
    is_fixed: bool,
}

impl Nodes {
    /// `all` has at least one.
    pub(crate) fn new(all: impl IntoIterator<Item = String>) -> Self {
        Self { all: all.into_iter().map(Arc::from).collect(), leader: 0, any: 0, is_fixed: false }
    }

    /// The same for servers of which the first is the only one that writes.
    pub(crate) fn with_primary(all: impl IntoIterator<Item = String>) -> Self {
        Self { is_fixed: true, ..Self::new(all) }
    }

    /// The node that is the leader, as far as is known.
    pub(crate) fn leader(&self) -> Arc<str> {
        self.all[self.leader].clone()
    }

    /// Any node, the next time another one. A primary is left to its writes, unless it is alone.
    pub(crate) fn any(&mut self) -> Arc<str> {
        self.any = (self.any + 1) % self.all.len();
        if self.is_fixed && self.any == 0 {
            self.any = 1 % self.all.len();
        }
        self.all[self.any].clone()
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
    pub(crate) fn failed(&mut self, node: &str) {
        if !self.is_fixed && *self.all[self.leader] == *node {
            self.leader = (self.leader + 1) % self.all.len();
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
        nodes.failed("b");
        assert_eq!(&*nodes.leader(), "a", "another one failed");
        nodes.is_leader("c");
        assert_eq!(&*nodes.leader(), "c");
        for expected in ["a", "b", "c"] {
            let failed = nodes.leader();
            nodes.failed(&failed);
            assert_eq!(&*nodes.leader(), expected);
        }
        nodes.is_leader("d");
        assert_eq!(&*nodes.leader(), "d");
    }

    #[test]
    fn a_primary_stays_and_its_replicas_take_turns() {
        let mut nodes = Nodes::with_primary(["p", "a", "b"].map(str::to_owned));
        nodes.failed("p");
        let seen: Vec<_> = (0..4).map(|_| nodes.any().to_string()).collect();
        assert_eq!((&*nodes.leader(), seen), ("p", ["a", "b", "a", "b"].map(str::to_owned).to_vec()));
        assert_eq!(&*Nodes::with_primary(["p".to_owned()]).any(), "p");
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
        let mut seen: Vec<_> = (0..3).map(|_| nodes.any().to_string()).collect();
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
