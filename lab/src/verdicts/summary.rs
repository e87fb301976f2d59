//! A result in the form that a page shows: per lane and peer the median of the runs, and its ratio to the floor. Pure.
//!
//! Leaves out: drawing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::floor::{FLOOR, HELD_FLOOR, Pace};
use crate::figures::metric::{Direction, OPS_PER_SECOND, headline, is_of_callers, metric};
use crate::figures::result::BASE;
use crate::figures::result::{Figures, Flags, Kind, Lane, Measured, Row, Version};
use crate::figures::statistics::{median, quantile, variation};

/// The summary of one result.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The circumstances: everything in the file except its rows.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// The lanes, release before focused, otherwise in the order of the file.
    pub lanes: Vec<LaneSummary>,
    /// Lanes that differ only in the number of concurrent callers.
    pub scalings: Vec<Scaling>,
}

/// The circumstances, without which a figure means little.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they are those of the result file")]
pub struct Circumstances {
    pub id: String,
    pub started: String,
    pub kind: Kind,
    pub machine: crate::figures::machine::Machine,
    pub versions: BTreeMap<String, Version>,
    pub flags: Flags,
    pub commit: Option<String>,
    pub dirty: bool,
    pub partial: bool,
    pub quick: bool,
    pub runs: u32,
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paces: BTreeMap<String, Pace>,
    pub peers: Vec<String>,
    pub floor: String,
}

/// The summary of one lane.
#[derive(Debug, Serialize)]
pub struct LaneSummary {
    /// The lane's name.
    pub name: String,
    /// The lane's description.
    #[serde(flatten)]
    pub lane: Lane,
    /// The lane's main metric.
    pub headline: &'static str,
    /// Whether higher values of that metric are better.
    pub higher_is_better: bool,
    /// The lane of the floor's figure: a concurrent lane is compared with the floor's single caller.
    pub floor_lane: Option<String>,
    /// Every peer that has a row.
    pub peers: Vec<PeerSummary>,
}

/// The summary of one peer in one lane.
#[derive(Debug, Serialize)]
pub struct PeerSummary {
    /// The peer's name.
    pub peer: String,
    /// The number of measured runs.
    pub runs: usize,
    /// The first error, if any.
    pub error: Option<String>,
    /// Every figure, by name.
    pub figures: BTreeMap<String, Spread>,
    /// The ratio of the main metric to the floor's.
    pub to_floor: Option<f64>,
    /// The ratio of the main metric to the held floor's.
    pub to_held_floor: Option<f64>,
    /// Whether the peer is better than the floor.
    pub beats_floor: bool,
    /// Pairs of a quantile and the latency at it, as the median over the runs.
    pub latency_quantiles: Vec<(f64, f64)>,
    /// What the lane recorded over time: pairs of seconds and a value, from the median run.
    pub over_time: BTreeMap<String, Vec<(f64, f64)>>,
}

/// The distribution of a figure over the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median of the runs.
    pub median: f64,
    /// The minimum of the runs.
    pub low: f64,
    /// The maximum of the runs.
    pub high: f64,
    /// The coefficient of variation.
    pub cv: Option<f64>,
}

/// Rates by the number of concurrent callers.
#[derive(Debug, Serialize)]
pub struct Scaling {
    /// The common part of the lanes' names.
    pub family: String,
    /// The unit of the operations.
    pub ops_unit: String,
    /// One point per peer and number of callers.
    pub points: Vec<ScalingPoint>,
}

/// One peer at one number of callers.
#[derive(Debug, Serialize)]
pub struct ScalingPoint {
    /// The peer's name.
    pub peer: String,
    /// The number of concurrent callers.
    pub at: u32,
    /// Operations per second.
    pub rate: Spread,
}

/// Summarizes a result.
pub fn summarize(measured: &Measured) -> Summary {
    let floor = if measured.kind == Kind::Ab { BASE } else { FLOOR };
    let mut lanes: Vec<LaneSummary> =
        measured.lane_names().into_iter().map(|lane| lane_summary(measured, lane, floor)).collect();
    lanes.sort_by_key(|lane| lane.lane.tag != "release");
    let scalings = scalings(&lanes);
    let Measured { id, started, kind, machine, versions, flags, commit, dirty, .. } = measured.clone();
    let Measured { partial, quick, runs, notes, paces, .. } = measured.clone();
    let peers = measured.peers().into_iter().map(str::to_owned).collect();
    let floor = floor.to_owned();
    let circumstances = Circumstances {
        id,
        started,
        kind,
        machine,
        versions,
        flags,
        commit,
        dirty,
        partial,
        quick,
        runs,
        notes,
        paces,
        peers,
        floor,
    };
    Summary { circumstances, lanes, scalings }
}

fn lane_summary(measured: &Measured, name: &str, floor: &str) -> LaneSummary {
    let mut peers: Vec<PeerSummary> = measured
        .peers()
        .into_iter()
        .map(|peer| peer_summary(peer, measured.rows(name, peer).collect()))
        .filter(|summary| summary.runs > 0 || summary.error.is_some())
        .collect();
    let wanted = headline(name);
    let has = |name: &str| peers.iter().any(|peer| peer.figures.contains_key(name));
    let headline = if has(wanted) { wanted } else { "p50_us" };
    let higher_is_better = metric(headline).is_some_and(|metric| metric.direction == Direction::HigherIsBetter);
    let alone = family(name).map(|(_, at)| name.replacen(&format!("_{at}"), "_1", 1));
    let of = |peer: &str, lane: &str| {
        let rows = measured.rows(lane, peer).filter_map(Row::figures).filter_map(|figures| figures.number(headline));
        let numbers: Vec<f64> = rows.collect();
        (!numbers.is_empty()).then(|| median(&numbers))
    };
    let floor_lane = [Some(name.to_owned()), alone].into_iter().flatten().find(|lane| of(floor, lane).is_some());
    let (floor_figure, held) = (floor_lane.as_ref().and_then(|lane| of(floor, lane)), of(HELD_FLOOR, name));
    for peer in &mut peers {
        let own = peer.figures.get(headline).map(|spread| spread.median);
        let over = |other: Option<f64>| Some(own? / other.filter(|other| *other > 0.0)?);
        peer.to_floor = over(floor_figure);
        peer.to_held_floor = over(held);
        peer.beats_floor = peer.to_floor.is_some_and(|ratio| if higher_is_better { ratio > 1.0 } else { ratio < 1.0 });
    }
    let lane = measured.lanes.get(name).cloned().unwrap_or_default();
    LaneSummary { name: name.to_owned(), lane, headline, higher_is_better, floor_lane, peers }
}

fn peer_summary(peer: &str, rows: Vec<&Row>) -> PeerSummary {
    let measured: Vec<&Figures> = rows.iter().filter_map(|row| row.figures()).collect();
    let mut numbers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, number) in measured.iter().flat_map(|figures| figures.numbers()) {
        numbers.entry(name).or_default().push(number);
    }
    PeerSummary {
        peer: peer.to_owned(),
        runs: measured.len(),
        error: rows.iter().find_map(|row| row.error()).map(str::to_owned),
        figures: numbers.into_iter().map(|(name, values)| (name, Spread::of(&values))).collect(),
        to_floor: None,
        to_held_floor: None,
        beats_floor: false,
        latency_quantiles: latency_quantiles(&measured),
        over_time: over_time(&measured),
    }
}

impl Spread {
    /// Returns the distribution of at least one value.
    pub fn of(values: &[f64]) -> Self {
        let (median, low, high) = (median(values), quantile(values, 0.0), quantile(values, 1.0));
        Self { median, low, high, cv: variation(values) }
    }
}

/// Returns an array of pairs from `extra`.
fn pairs(figures: &Figures, name: &str) -> Vec<(f64, f64)> {
    figures.extra.get(name).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
}

/// Returns, at each quantile of the first run, the median over all runs.
fn latency_quantiles(measured: &[&Figures]) -> Vec<(f64, f64)> {
    let runs: Vec<Vec<(f64, f64)>> = measured.iter().map(|figures| pairs(figures, "latency_quantiles")).collect();
    let at = |run: &[(f64, f64)], wanted: f64| run.iter().find(|(place, _)| *place >= wanted).map(|(_, us)| *us);
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let middle = |wanted: f64| median(&runs.iter().filter_map(|run| at(run, wanted)).collect::<Vec<_>>());
    first.iter().map(|(wanted, _)| (*wanted, middle(*wanted))).collect()
}

/// Returns the series of the run with the median p50. Medians over time would belong to no real run.
fn over_time(measured: &[&Figures]) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut by_median = measured.to_vec();
    by_median.sort_by(|one, other| one.p50_us.total_cmp(&other.p50_us));
    let Some(middle) = by_median.get(by_median.len() / 2) else {
        return BTreeMap::new();
    };
    let names = middle.extra.keys().filter(|name| name.ends_with("_over_time"));
    names.map(|name| (name.clone(), pairs(middle, name))).filter(|(_, points)| !points.is_empty()).collect()
}

/// Splits a lane's name: `insert_concurrent_100_full` is `insert_concurrent_full` at 100.
fn family(lane: &str) -> Option<(String, u32)> {
    let words: Vec<&str> = lane.split('_').collect();
    let place = words.iter().position(|word| word.parse::<u32>().is_ok()).filter(|_| is_of_callers(lane))?;
    let rest: Vec<&str> =
        words.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, word)| *word).collect();
    Some((rest.join("_"), words[place].parse().ok()?))
}

fn scalings(lanes: &[LaneSummary]) -> Vec<Scaling> {
    let mut scalings: Vec<Scaling> = Vec::new();
    for lane in lanes {
        let Some((family, at)) = family(&lane.name) else {
            continue;
        };
        let place = scalings.iter().position(|scaling| scaling.family == family).unwrap_or_else(|| {
            scalings.push(Scaling { family, ops_unit: lane.lane.ops_unit.clone(), points: Vec::new() });
            scalings.len() - 1
        });
        let rates = lane.peers.iter().filter_map(|peer| Some((peer, peer.figures.get(OPS_PER_SECOND)?)));
        scalings[place].points.extend(rates.map(|(peer, rate)| ScalingPoint {
            peer: peer.peer.clone(),
            at,
            rate: *rate,
        }));
    }
    let again = |one: &ScalingPoint, other: &ScalingPoint| one.peer == other.peer && one.at != other.at;
    let several =
        |scaling: &Scaling| scaling.points.iter().any(|one| scaling.points.iter().any(|other| again(one, other)));
    scalings.into_iter().filter(several).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_of_many_at_once_has_a_family_and_a_number() {
        let table = [
            ("insert_concurrent_100", Some(("insert_concurrent".to_owned(), 100))),
            ("insert_concurrent_1000_full", Some(("insert_concurrent_full".to_owned(), 1000))),
            ("concurrent_reads_8", Some(("concurrent_reads".to_owned(), 8))),
            ("query_100", None),
            ("burst_8k", None),
        ];
        for (lane, expected) in table {
            assert_eq!(family(lane), expected, "{lane}");
        }
    }
}
