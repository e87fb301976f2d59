//! The plan of a run: the order of trials. Pure.
//!
//! Each run covers all lanes, so that a slow hour of the machine affects all of them. In each lane the sides follow
//! each other directly, and every second run has them in reverse order.

/// One planned trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial<'a> {
    /// The lane.
    pub lane: &'a str,
    /// The index of the side.
    pub side: usize,
    /// The run's number, from 0.
    pub run: u32,
    /// The position among the sides in this lane and run, from 0.
    pub order: u32,
}

/// Returns all trials in order. `can` returns whether a side takes part in a lane.
pub fn plan<'a>(lanes: &'a [String], sides: usize, runs: u32, can: impl Fn(usize, &str) -> bool) -> Vec<Trial<'a>> {
    let mut trials = Vec::new();
    for run in 0..runs {
        for lane in lanes {
            let mut able: Vec<usize> = (0..sides).filter(|side| can(*side, lane)).collect();
            if run % 2 == 1 {
                able.reverse();
            }
            trials.extend((0..).zip(able).map(|(order, side)| Trial { lane, side, run, order }));
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Vec<String> {
        vec!["a".to_owned(), "b".to_owned()]
    }

    #[test]
    fn sides_follow_one_another_and_turn_round_with_every_run() {
        let lanes = lanes();
        let trials = plan(&lanes, 2, 2, |_, _| true);
        let seen: Vec<(&str, usize, u32, u32)> =
            trials.iter().map(|trial| (trial.lane, trial.side, trial.run, trial.order)).collect();
        let expected = [
            ("a", 0, 0, 0),
            ("a", 1, 0, 1),
            ("b", 0, 0, 0),
            ("b", 1, 0, 1),
            ("a", 1, 1, 0),
            ("a", 0, 1, 1),
            ("b", 1, 1, 0),
            ("b", 0, 1, 1),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_side_without_a_lane_is_left_out_of_it() {
        let lanes = lanes();
        let trials = plan(&lanes, 3, 1, |side, lane| side != 1 || lane == "b");
        let seen: Vec<(&str, usize, u32)> = trials.iter().map(|trial| (trial.lane, trial.side, trial.order)).collect();
        assert_eq!(seen, [("a", 0, 0), ("a", 2, 1), ("b", 0, 0), ("b", 1, 1), ("b", 2, 2)]);
    }
}
