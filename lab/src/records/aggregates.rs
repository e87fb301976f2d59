//! What a record keeps of a result: its circumstances, the median of every figure of the record's lanes, and of each
//! verdict the figures it was computed from.
//!
//! Owns: the committed form, one line for each lane and side and for each lane and metric, and reading it back. Rows,
//! charts and latencies over time are left behind with the result. Leaves out: the record's text (`record`), and what a
//! verdict is (`verdict`).

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::figures::lines;
use crate::figures::result::Measured;
use crate::records::record::Record;
use crate::verdicts::compare::Comparison;
use crate::verdicts::summary::{Circumstances, LaneSummary, summarize};
use crate::verdicts::verdict::{Judgement, Pair, Verdict};

/// The figures of one record.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregates {
    /// The circumstances; the versions are without their compile options.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// Each set of compile options once, with the sides that were built with it.
    pub compile_options: Vec<Build>,
    /// The medians of the record's lanes, for each side.
    pub medians: Vec<Medians>,
    /// The two sides that were compared, if two were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// The verdict of every lane that was compared, the guards included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Decided>,
    /// The verdict on every metric of these lanes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judgements: Vec<Judged>,
}

/// One set of compile options of SQLite.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Build {
    pub sides: Vec<String>,
    pub options: Vec<String>,
}

/// The medians of one side in one lane, by figure.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Medians {
    pub lane: String,
    pub side: String,
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

/// Which sides were compared, and what holds for all lanes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they are those of a comparison")]
pub struct Compared {
    pub base: String,
    pub candidate: String,
    pub paired: bool,
    pub notes: Vec<String>,
    pub veto: Option<String>,
}

/// The verdict of one lane.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they are those of a lane's verdict")]
pub struct Decided {
    pub lane: String,
    pub guard: bool,
    pub verdict: Verdict,
    pub reason: String,
}

/// The verdict on one metric of one lane, and what it was computed from.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they are those of a judgement")]
pub struct Judged {
    pub lane: String,
    pub metric: String,
    pub verdict: Verdict,
    pub base: f64,
    pub candidate: f64,
    pub ratio: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub threshold: Option<f64>,
    pub drift: bool,
    pub base_cv: Option<f64>,
    pub candidate_cv: Option<f64>,
    pub pairs: usize,
    /// The pairs themselves; records from before they were kept have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Pair>,
}

impl Aggregates {
    /// Returns what the record keeps of the result it rests on.
    pub fn of(measured: &Measured, record: &Record, comparison: Option<&Comparison>) -> Self {
        let mut summary = summarize(measured);
        let wanted = |lane: &&LaneSummary| record.lanes.iter().chain(&record.controls).any(|name| *name == lane.name);
        let medians = summary.lanes.iter().filter(wanted).flat_map(Medians::of).collect();
        let compile_options = builds(&mut summary.circumstances);
        let lanes = comparison.into_iter().flat_map(|comparison| &comparison.lanes);
        let judgements =
            lanes.clone().flat_map(|lane| lane.metrics.iter().map(|metric| Judged::of(&lane.lane, metric)));
        Self {
            circumstances: summary.circumstances,
            compile_options,
            medians,
            compared: comparison.map(Compared::of),
            judgements: judgements.collect(),
            lanes: lanes.map(Decided::of).collect(),
        }
    }

    /// Reads the committed form.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("it is not what a record keeps")
    }

    /// Returns the committed form.
    pub fn text(&self) -> Result<String> {
        lines::text(self)
    }
}

/// Takes the compile options out of the versions, each set once.
fn builds(circumstances: &mut Circumstances) -> Vec<Build> {
    let mut builds: Vec<Build> = Vec::new();
    for (side, version) in &mut circumstances.versions {
        let options = std::mem::take(&mut version.compile_options);
        match builds.iter_mut().find(|build| build.options == options) {
            Some(build) => build.sides.push(side.clone()),
            None => builds.push(Build { sides: vec![side.clone()], options }),
        }
    }
    builds
}

impl Medians {
    fn of(lane: &LaneSummary) -> impl Iterator<Item = Self> {
        lane.peers.iter().map(|peer| Self {
            lane: lane.name.clone(),
            side: peer.peer.clone(),
            figures: peer.figures.iter().map(|(name, spread)| (name.clone(), rounded(spread.median))).collect(),
        })
    }
}

impl Compared {
    fn of(comparison: &Comparison) -> Self {
        let Comparison { base, candidate, paired, notes, veto, lanes: _ } = comparison.clone();
        Self { base, candidate, paired, notes, veto }
    }
}

impl Decided {
    fn of(lane: &crate::verdicts::compare::LaneVerdict) -> Self {
        let crate::verdicts::compare::LaneVerdict { lane, guard, verdict, reason, metrics: _ } = lane.clone();
        Self { lane, guard, verdict, reason }
    }
}

impl Judged {
    fn of(lane: &str, judgement: &Judgement) -> Self {
        let Judgement { metric, pairs, base, candidate, base_cv, candidate_cv, ratio, .. } = judgement.clone();
        let Judgement { interval, threshold, drift, verdict, runs, .. } = judgement.clone();
        let lane = lane.to_owned();
        Self {
            lane,
            metric,
            verdict,
            base,
            candidate,
            ratio,
            interval,
            threshold,
            drift,
            base_cv,
            candidate_cv,
            pairs,
            runs,
        }
    }
}

/// Rounds to six significant figures.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
