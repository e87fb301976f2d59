//! The choice of the waiting writes that form a group. Pure.
//!
//! Owns: the choice of a group from the front of the queue. Runs on the writer's thread. Invariants: order is kept, so
//! a write that cannot be grouped ends the group before it; a group has at most as many writes and bytes as its limits
//! allow. The third limit, the group's time, is checked while the group runs (`group`). Leaves out: taking the requests
//! and running them.

use crate::options::GroupLimits;

/// The properties of a waiting write that matter for the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) groupable: bool,
    pub(crate) bytes: usize,
}

/// Takes candidates from the front, until one is not taken.
pub(crate) struct Choice {
    limits: Option<GroupLimits>,
    members: usize,
    bytes: usize,
    ended: bool,
}

impl Choice {
    pub(crate) fn new(limits: Option<GroupLimits>) -> Self {
        Self { limits, members: 0, bytes: 0, ended: false }
    }

    /// A choice that takes no more candidates.
    pub(crate) fn made() -> Self {
        Self { ended: true, ..Self::new(None) }
    }

    /// Returns true if the next candidate may be taken: what was taken may be a group.
    pub(crate) fn is_open(&self) -> bool {
        self.members > 0 && !self.ended
    }

    /// Returns true if the candidate is taken. The first one always is, and then runs ungrouped if it is not groupable.
    pub(crate) fn takes(&mut self, candidate: Candidate) -> bool {
        if self.ended {
            return false;
        }
        let bytes = self.bytes.saturating_add(candidate.bytes);
        let fits = match self.limits {
            _ if self.members == 0 => true,
            None => false,
            Some(limits) => candidate.groupable && self.members < limits.members && bytes <= limits.bytes,
        };
        self.ended = !fits || !candidate.groupable || self.limits.is_none();
        if fits {
            self.members += 1;
            self.bytes = bytes;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MEMBER: Candidate = Candidate { groupable: true, bytes: 10 };
    const ALONE: Candidate = Candidate { groupable: false, bytes: 10 };

    fn taken(limits: Option<GroupLimits>, candidates: &[Candidate]) -> usize {
        let mut choice = Choice::new(limits);
        candidates.iter().take_while(|candidate| choice.takes(**candidate)).count()
    }

    #[test]
    fn members_are_taken_up_to_what_must_run_alone() {
        let limits = Some(GroupLimits::default());
        assert_eq!(taken(limits, &[MEMBER, MEMBER, ALONE, MEMBER]), 2);
        assert_eq!(taken(limits, &[ALONE, MEMBER]), 1);
        assert_eq!(taken(limits, &[MEMBER]), 1);
        assert_eq!(taken(limits, &[]), 0);
    }

    #[test]
    fn a_choice_is_open_from_its_first_member_to_what_it_does_not_take() {
        let limits = Some(GroupLimits { members: 2, ..GroupLimits::default() });
        let open = |of: &[Candidate]| {
            let mut choice = Choice::new(limits);
            of.iter().for_each(|candidate| _ = choice.takes(*candidate));
            choice.is_open()
        };
        assert!(open(&[MEMBER]) && open(&[MEMBER; 2]));
        assert!(!open(&[]), "what was handed over is in no choice");
        assert!(!open(&[ALONE]) && !open(&[MEMBER, ALONE]) && !open(&[MEMBER; 3]));
        let mut made = Choice::made();
        assert!(!made.is_open() && !made.takes(MEMBER));
    }

    #[test]
    fn a_group_keeps_to_its_limits_and_a_single_write_has_none() {
        let limits = GroupLimits { members: 3, time: Duration::ZERO, bytes: 25 };
        assert_eq!(taken(Some(limits), &[MEMBER; 5]), 2, "25 bytes");
        assert_eq!(taken(Some(GroupLimits { bytes: 1000, ..limits }), &[MEMBER; 5]), 3, "3 members");
        assert_eq!(taken(Some(GroupLimits { bytes: 1, ..limits }), &[MEMBER; 5]), 1);
        assert_eq!(taken(None, &[MEMBER; 5]), 1);
    }
}
