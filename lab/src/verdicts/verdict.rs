//! The verdict on one metric: accepted, rejected, inconclusive, no effect, or no verdict, with the reason in a
//! sentence.
//!
//! Pure: the input is figures, the output is a judgement. Changes are compared as logarithms of ratios, so that twice
//! as slow and twice as fast have the same weight. Leaves out: the vetoes, which need more than one lane (`compare`).

use serde::{Deserialize, Serialize};

use crate::figures::metric::{Direction, Metric};
use crate::figures::statistics::{median, median_absolute_deviation, ratio_interval, variation};

/// With fewer pairs there is no verdict.
pub const PAIRS_FOR_A_VERDICT: usize = 3;
/// The same for p99, p99.9, the maximum and the longest stall.
pub const PAIRS_FOR_A_TAIL: usize = 5;
/// The share of pairs that must have the same direction as their median.
const AGREEMENT: f64 = 0.8;

/// What the figures show about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better, by more than the noise.
    Accepted,
    /// Worse, by more than the noise.
    Rejected,
    /// The noise is too large to decide.
    Inconclusive,
    /// The measurement would have shown a relevant effect, and shows none.
    NoEffect,
    /// Not enough runs, or not paired: there are only figures.
    NoVerdict,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Inconclusive => "inconclusive",
            Self::NoEffect => "no effect",
            Self::NoVerdict => "no verdict",
        })
    }
}

/// One run of a lane on both sides. In a file it is an array of three.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64, bool)", into = "(f64, f64, bool)")]
pub struct Pair {
    /// The figure of the base.
    pub base: f64,
    /// The figure of the candidate.
    pub candidate: f64,
    /// Whether the base ran first.
    pub base_first: bool,
}

impl From<(f64, f64, bool)> for Pair {
    fn from((base, candidate, base_first): (f64, f64, bool)) -> Self {
        Self { base, candidate, base_first }
    }
}

impl From<Pair> for (f64, f64, bool) {
    fn from(pair: Pair) -> Self {
        (pair.base, pair.candidate, pair.base_first)
    }
}

/// The judgement of one metric of one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The metric's name.
    pub metric: String,
    /// How many pairs of runs there are.
    pub pairs: usize,
    /// Median over the runs of the base.
    pub base: f64,
    /// Median over the runs of the candidate.
    pub candidate: f64,
    /// Coefficient of variation of the base.
    pub base_cv: Option<f64>,
    /// Coefficient of variation of the candidate.
    pub candidate_cv: Option<f64>,
    /// Candidate over base; `None` if one of them is not above zero.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio.
    pub interval: Option<(f64, f64)>,
    /// The change that counts as an effect: 0.05 is five percent in either direction.
    pub threshold: Option<f64>,
    /// Whether the ratio changed its direction with the order of the sides.
    pub drift: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// The pairs that the verdict is computed from.
    #[serde(skip)]
    pub runs: Vec<Pair>,
}

impl Judgement {
    /// Returns the figures of both sides without a verdict.
    pub fn figures(metric: &Metric, bases: &[f64], candidates: &[f64], reason: &str) -> Self {
        let (base, candidate) = (median(bases), median(candidates));
        Self {
            metric: metric.name.clone(),
            pairs: bases.len().min(candidates.len()),
            base,
            candidate,
            base_cv: variation(bases),
            candidate_cv: variation(candidates),
            ratio: (base > 0.0 && candidate > 0.0).then(|| candidate / base),
            interval: None,
            threshold: None,
            drift: false,
            verdict: Verdict::NoVerdict,
            reason: reason.to_owned(),
            runs: Vec::new(),
        }
    }

    fn decided(self, verdict: Verdict, reason: String) -> Self {
        Self { verdict, reason, ..self }
    }
}

/// Judges one metric from the paired runs of one lane. There must be at least one pair.
pub fn judge(metric: &Metric, pairs: &[Pair]) -> Judgement {
    let (bases, candidates): (Vec<f64>, Vec<f64>) = pairs.iter().map(|pair| (pair.base, pair.candidate)).unzip();
    let figures = Judgement { runs: pairs.to_vec(), ..Judgement::figures(metric, &bases, &candidates, "") };
    if metric.tail && pairs.len() < PAIRS_FOR_A_TAIL {
        return figures.decided(Verdict::NoVerdict, too_few(metric, pairs.len(), PAIRS_FOR_A_TAIL));
    }
    if pairs.iter().all(|pair| pair.base == pair.candidate) {
        return figures.decided(Verdict::NoEffect, format!("{} is the same on both sides in every run", metric.name));
    }
    if pairs.len() < PAIRS_FOR_A_VERDICT {
        return figures.decided(Verdict::NoVerdict, too_few(metric, pairs.len(), PAIRS_FOR_A_VERDICT));
    }
    if bases.iter().chain(&candidates).any(|figure| *figure <= 0.0) {
        return without_ratio(metric, figures);
    }
    by_ratio(metric, pairs, figures)
}

fn too_few(metric: &Metric, pairs: usize, needed: usize) -> String {
    format!("{} takes {needed} runs a side, there are {pairs}", metric.name)
}

/// A figure at or below zero has no ratio, so only the absolute floor is used.
fn without_ratio(metric: &Metric, figures: Judgement) -> Judgement {
    let difference = (figures.candidate - figures.base).abs();
    if difference < metric.absolute_floor {
        let reason = format!("{} differs by less than what counts", metric.name);
        return figures.decided(Verdict::NoEffect, reason);
    }
    let reason = format!("{} is not above zero in every run, so there is no ratio", metric.name);
    figures.decided(Verdict::Inconclusive, reason)
}

fn by_ratio(metric: &Metric, pairs: &[Pair], figures: Judgement) -> Judgement {
    let ratio = figures.candidate / figures.base;
    let changes: Vec<f64> = pairs.iter().map(|pair| (pair.candidate / pair.base).ln()).collect();
    let (low, high) = ratio_interval(&pairs.iter().map(|pair| (pair.base, pair.candidate)).collect::<Vec<_>>());
    let half_width = (high.ln() - low.ln()) / 2.0;
    let floor = metric.effect_floor.ln_1p();
    let threshold = floor.max(3.0 * median_absolute_deviation(&changes)).max(half_width);
    let drift = drifts(pairs, floor);
    let judged = Judgement { interval: Some((low, high)), threshold: Some(threshold.exp_m1()), drift, ..figures };

    let name = &metric.name;
    let seen = describe(metric, ratio);
    let size = ratio.ln().abs();
    if drift {
        let reason = format!("{name} drifts: which side is better changes with which side runs first");
        return judged.decided(Verdict::Inconclusive, reason);
    }
    let difference = (judged.candidate - judged.base).abs();
    let reach = |low: f64, high: f64| (low - 1.0).abs().max((high - 1.0).abs()) * judged.base;
    if difference < metric.absolute_floor && reach(low, high) < 2.0 * metric.absolute_floor {
        return judged.decided(Verdict::NoEffect, format!("{name} differs by less than what counts"));
    }
    if size < floor && low.ln() > -2.0 * floor && high.ln() < 2.0 * floor {
        let reason = format!("{name} is within {} of the base", percent((2.0 * floor).exp_m1()));
        return judged.decided(Verdict::NoEffect, reason);
    }
    if size < threshold || difference < metric.absolute_floor {
        let reason = format!("{name} is {seen}, which the noise of {} hides", percent(threshold.exp_m1()));
        return judged.decided(Verdict::Inconclusive, reason);
    }
    let agreeing = changes.iter().filter(|change| change.signum() == ratio.ln().signum()).count();
    if (agreeing as f64) < AGREEMENT * changes.len() as f64 || (low <= 1.0 && high >= 1.0) {
        let reason = format!("{name} is {seen}, but only {agreeing} of {} runs agree", changes.len());
        return judged.decided(Verdict::Inconclusive, reason);
    }
    let verdict = if better(metric, ratio) { Verdict::Accepted } else { Verdict::Rejected };
    let reason = format!("{name} is {seen}, beyond the threshold of {}", percent(threshold.exp_m1()));
    judged.decided(verdict, reason)
}

/// Returns whether both orders of the sides show an effect, but different ones.
fn drifts(pairs: &[Pair], floor: f64) -> bool {
    let (first, second): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| pair.base_first);
    let middle =
        |side: &[&Pair]| median(&side.iter().map(|pair| (pair.candidate / pair.base).ln()).collect::<Vec<_>>());
    let (first, second) = match (first.len(), second.len()) {
        (0..2, _) | (_, 0..2) => return false,
        _ => (middle(&first), middle(&second)),
    };
    first.signum() != second.signum() && first.abs().min(second.abs()) > floor
}

fn better(metric: &Metric, ratio: f64) -> bool {
    match metric.direction {
        Direction::LowerIsBetter => ratio < 1.0,
        Direction::HigherIsBetter => ratio > 1.0,
    }
}

/// Formats a ratio, such as `12 % lower (better)`.
fn describe(metric: &Metric, ratio: f64) -> String {
    let way = if ratio < 1.0 { "lower" } else { "higher" };
    let worth = if better(metric, ratio) { "better" } else { "worse" };
    format!("{} {way} ({worth})", percent((ratio - 1.0).abs()))
}

/// Formats a share, such as `12 %`, with one decimal below ten.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
