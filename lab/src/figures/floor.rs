//! The floor: the peer that others are compared with, and the share of its rate that paces a lane. Pure.
//!
//! Leaves out: measuring it (`pace`).

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// The peer that is the reference for the others.
pub const FLOOR: &str = "raw";
/// The floor of reads that keep their snapshot. It is shown wherever a peer is better than the other floor.
pub const HELD_FLOOR: &str = "raw-held";

/// What paces a lane: a share of the rate that the floor reaches in another lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacedBy {
    /// The lane in which the floor is measured.
    pub of: String,
    /// The share of its rate.
    pub share: f64,
}

/// The pace of a lane in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// What it is a share of.
    #[serde(flatten)]
    pub by: PacedBy,
    /// What the floor reached there, in operations a second.
    pub floor_per_second: f64,
}

impl std::fmt::Display for Pace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by: PacedBy { of, share }, floor_per_second: floor } = self;
        write!(out, "paced at {:.0} a second, {share} of the {floor:.0} that {FLOOR} reaches in {of}", share * floor)
    }
}

/// What the floor reaches flat out, in operations a second, or why that is not known; by the lane that measures it.
pub type Rates = BTreeMap<String, std::result::Result<f64, String>>;

impl PacedBy {
    /// Returns the pace, as far as the floor's rate is known.
    pub fn pace(&self, rates: &Rates) -> Result<Pace> {
        match rates.get(&self.of) {
            Some(Ok(rate)) => Ok(Pace { by: self.clone(), floor_per_second: *rate }),
            Some(Err(error)) => bail!("no pace, for {FLOOR} was not measured in {}: {error}", self.of),
            None => bail!("no pace, for {FLOOR} was not measured in {}", self.of),
        }
    }
}

impl Pace {
    /// Returns how many operations a second a trial begins.
    pub fn per_second(&self) -> f64 {
        self.by.share * self.floor_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_share_of_the_floor_s_rate_or_an_error_that_says_why() {
        let by = |of: &str| PacedBy { of: of.to_owned(), share: 0.5 };
        let rates = Rates::from([("known".to_owned(), Ok(24_000.4)), ("failed".to_owned(), Err("no disk".to_owned()))]);
        let pace = by("known").pace(&rates).unwrap();
        assert_eq!(pace.per_second(), 12_000.2);
        assert_eq!(pace.to_string(), "paced at 12000 a second, 0.5 of the 24000 that raw reaches in known");
        assert!(by("failed").pace(&rates).unwrap_err().to_string().ends_with("no disk"));
        assert!(by("unknown").pace(&rates).is_err());
    }
}
