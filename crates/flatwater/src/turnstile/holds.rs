//! Whether a turn is held when no request waits: the caller that was answered last may write again at once, or not for
//! long.
//!
//! Owns: the decision, by what came of earlier holds (pure). Leaves out: how long a hold is.

/// After two holds in a row in which nothing came, the next turn is not held, after three of them the next three, and so on up
/// to `2^(MOST_IN_VAIN - 1) - 1`. A single one says little: a caller that writes in a loop may be late once.
const MOST_IN_VAIN: u32 = 7;

/// Whether it is worth holding a turn when no request waits.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// How many in a row were in vain.
    in_vain: u32,
    /// The turns that are not held yet.
    skips: u32,
}

impl Holds {
    pub(super) fn is_worth_it(&mut self) -> bool {
        let skipped = self.skips;
        self.skips = skipped.saturating_sub(1);
        skipped == 0
    }

    pub(super) fn was(&mut self, used: bool) {
        self.in_vain = if used { 0 } else { (self.in_vain + 1).min(MOST_IN_VAIN) };
        self.skips = (1 << self.in_vain.saturating_sub(1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_in_vain_become_rare_and_one_that_is_used_makes_them_the_rule() {
        let mut holds = Holds::default();
        let mut until_the_next = || (0..).take_while(|_| !holds.is_worth_it()).count();
        assert_eq!(until_the_next(), 0);
        let after = |holds: &mut Holds, used| {
            holds.was(used);
            (0..).take_while(|_| !holds.is_worth_it()).count()
        };
        let skipped: Vec<_> = (0..8).map(|_| after(&mut holds, false)).collect();
        assert_eq!(skipped, [0, 1, 3, 7, 15, 31, 63, 63]);
        assert_eq!(after(&mut holds, true), 0);
    }
}
