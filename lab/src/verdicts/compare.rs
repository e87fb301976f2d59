//! Compares two sides lane by lane, and applies vetoes of lanes that the change should not affect.
//!
//! Owns: pairing, refusing results that cannot be compared, and the verdict of a lane. Leaves out: the verdict on one
//! metric (`verdict`), and printing (`table`). Pure: the input is results, the output is a comparison.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::figures::metric::{Metric, decides, is_noop, metric};
use crate::figures::result::{BASE, CANDIDATE, Figures, Kind, Measured, Row, distinct};
use crate::verdicts::verdict::{Judgement, Pair, Verdict, judge};

/// What to compare, and which differences to ignore.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The peer of the base, if it is ambiguous.
    pub base: Option<String>,
    /// The peer of the candidate, if it is ambiguous.
    pub candidate: Option<String>,
    /// Lanes that the change cannot affect, in addition to those in the base's file.
    pub controls: Vec<String>,
    /// Whether to compare even if lanes, machines or builds differ.
    pub anyway: bool,
}

/// The comparison of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The peer of the base.
    pub base: String,
    /// The peer of the candidate.
    pub candidate: String,
    /// Whether the runs of both sides were measured alternately. If not, there are figures but no verdict.
    pub paired: bool,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Why no change is accepted, if a lane that it should not affect has changed.
    pub veto: Option<String>,
    /// Every lane that both sides have.
    pub lanes: Vec<LaneVerdict>,
}

/// The result for one lane.
#[derive(Clone, Debug, Serialize)]
pub struct LaneVerdict {
    /// The lane's name.
    pub lane: String,
    /// Whether the lane can veto.
    pub guard: bool,
    /// The combined verdict of its deciding metrics.
    pub verdict: Verdict,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// The result for every metric.
    pub metrics: Vec<Judgement>,
}

/// Compares two files, peer by peer.
pub fn files(base: &Measured, candidate: &Measured, request: &Request) -> Result<Vec<Comparison>> {
    if !request.anyway {
        refuse(base, candidate)?;
    }
    let pairs = match (&request.base, &request.candidate) {
        (Some(one), Some(other)) => vec![(known(base, one)?, known(candidate, other)?)],
        (None, None) if std::ptr::eq(base, candidate) => vec![sides_of(base)?],
        (None, None) => common_peers(base, candidate)?,
        _ => bail!("--base and --candidate go together"),
    };
    Ok(pairs.into_iter().map(|(one, other)| Comparison::between(base, candidate, (one, other), request)).collect())
}

fn known<'a>(measured: &Measured, peer: &'a str) -> Result<&'a str> {
    if !measured.peers().contains(&peer) {
        bail!("no row of peer `{peer}`; the file has {}", measured.peers().join(", "));
    }
    Ok(peer)
}

/// Returns the two sides of one file.
fn sides_of(measured: &Measured) -> Result<(&str, &str)> {
    match (measured.kind, &measured.peers()[..]) {
        (Kind::Ab, _) => Ok((BASE, CANDIDATE)),
        (Kind::Run, [one, other]) => Ok((one, other)),
        (Kind::Run, _) => {
            bail!("which peers? name them with --base and --candidate: {}", measured.peers().join(", "))
        }
    }
}

/// Returns pairs of peers: each peer that both files have, or the only peer of each file.
fn common_peers<'a>(base: &'a Measured, candidate: &'a Measured) -> Result<Vec<(&'a str, &'a str)>> {
    let (bases, candidates) = (base.peers(), candidate.peers());
    let common: Vec<_> = bases.iter().filter(|peer| candidates.contains(peer)).map(|peer| (*peer, *peer)).collect();
    match (common.is_empty(), &bases[..], &candidates[..]) {
        (false, ..) => Ok(common),
        (true, [one], [other]) => Ok(vec![(*one, *other)]),
        _ => bail!("the files have no peer in common: {} against {}", bases.join(", "), candidates.join(", ")),
    }
}

/// Returns an error if the two files cannot be compared.
fn refuse(base: &Measured, candidate: &Measured) -> Result<()> {
    let sorted = |measured: &Measured| {
        let mut lanes: Vec<String> = measured.lane_names().into_iter().map(str::to_owned).collect();
        lanes.sort();
        lanes
    };
    let build = |measured: &Measured, peer: &str| {
        measured.versions.get(peer).map(|version| (version.sqlite.clone(), version.compile_options.clone()))
    };
    let common = base.peers().into_iter().filter(|peer| candidate.peers().contains(peer));
    let different = [
        ("lanes", sorted(base) != sorted(candidate)),
        ("forms of the lanes: one is quick", base.quick != candidate.quick),
        ("machines", base.machine != candidate.machine),
        ("builds", base.flags != candidate.flags),
        ("builds of SQLite", common.into_iter().any(|peer| build(base, peer) != build(candidate, peer))),
    ];
    match different.iter().find(|(_, differ)| *differ) {
        Some((what, _)) => {
            bail!("the files come from different {what}; --anyway compares them nevertheless")
        }
        None => Ok(()),
    }
}

impl Comparison {
    /// Compares two sides of one file.
    pub fn within(measured: &Measured, base: &str, candidate: &str, request: &Request) -> Self {
        Self::between(measured, measured, (base, candidate), request)
    }

    fn between(base: &Measured, candidate: &Measured, peers: (&str, &str), request: &Request) -> Self {
        let paired = base.id == candidate.id;
        let one_program = peers.0 == peers.1 || peers == (BASE, CANDIDATE);
        let controls = [request.controls.as_slice(), &base.controls].concat();
        let is_guard = |lane: &str| controls.iter().any(|control| control == lane) || one_program && is_noop(lane);
        let others = candidate.lane_names();
        let lanes = base.lane_names().into_iter().filter(|lane| others.contains(lane));
        let lanes = lanes.filter_map(|lane| {
            let rows = |measured: &Measured, peer: &str| measured.rows(lane, peer).cloned().collect::<Vec<_>>();
            lane_verdict(lane, &rows(base, peers.0), &rows(candidate, peers.1), paired, is_guard(lane))
        });
        let mut comparison = Self {
            base: peers.0.to_owned(),
            candidate: peers.1.to_owned(),
            paired,
            notes: notes(base, candidate, peers, paired),
            veto: None,
            lanes: lanes.collect(),
        };
        if one_program && !comparison.lanes.iter().any(|lane| lane.guard) {
            comparison.notes.push("no noop or control lane was measured, so nothing could veto".to_owned());
        }
        comparison.apply_vetoes(&controls);
        comparison
    }

    /// A guard that got worse rejects improvements elsewhere; a control that got better makes them inconclusive.
    fn apply_vetoes(&mut self, controls: &[String]) {
        let moved = |lane: &&LaneVerdict| match lane.verdict {
            Verdict::Rejected => lane.guard,
            Verdict::Accepted => controls.contains(&lane.lane),
            _ => false,
        };
        let worst = self.lanes.iter().filter(moved).max_by_key(|lane| lane.verdict == Verdict::Rejected);
        let Some(guard) = worst else { return };
        let (veto, instead) = match guard.verdict {
            Verdict::Rejected => (format!("{} vetoes: {}", guard.lane, guard.reason), Verdict::Rejected),
            _ => (
                format!("{} moved, which the change cannot reach: {}", guard.lane, guard.reason),
                Verdict::Inconclusive,
            ),
        };
        for lane in &mut self.lanes {
            lane.overrule(instead, &veto);
        }
        self.veto = Some(veto);
    }

    /// Returns the number of lanes with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.lanes.iter().filter(|lane| lane.verdict == verdict).count()
    }
}

impl LaneVerdict {
    fn overrule(&mut self, instead: Verdict, veto: &str) {
        if self.verdict == Verdict::Accepted {
            self.verdict = instead;
            self.reason = format!("{veto} (here {})", self.reason);
        }
        for judgement in self.metrics.iter_mut().filter(|judgement| judgement.verdict == Verdict::Accepted) {
            judgement.verdict = instead;
            judgement.reason = format!("{veto} (here {})", judgement.reason);
        }
    }
}

fn notes(base: &Measured, candidate: &Measured, peers: (&str, &str), paired: bool) -> Vec<String> {
    let mut notes = base.notes.clone();
    notes.extend(candidate.paces.iter().map(|(lane, pace)| format!("{lane} is {pace}")));
    let lanes = |measured: &Measured, peer: &str| -> Vec<String> {
        measured.results.iter().filter(|row| row.peer == peer).map(|row| row.lane.clone()).collect()
    };
    let (of_base, of_candidate) = (lanes(base, peers.0), lanes(candidate, peers.1));
    for (lanes, others, peer) in [(&of_base, &of_candidate, peers.0), (&of_candidate, &of_base, peers.1)] {
        let alone = distinct(lanes.iter().filter(|lane| !others.contains(lane)).map(String::as_str));
        if !alone.is_empty() {
            notes.push(format!("only {peer} has {}", alone.join(", ")));
        }
    }
    for (measured, peer) in [(base, peers.0), (candidate, peers.1)] {
        let failed: Vec<_> = measured.results.iter().filter(|row| row.peer == peer).filter_map(Row::error).collect();
        if let Some(first) = failed.first() {
            notes.push(format!("{} trials of {peer} failed: {first}", failed.len()));
        }
    }
    if !paired {
        notes.push("not paired: measured apart, so there are figures and no verdict".to_owned());
    }
    if base.partial || candidate.partial {
        notes.push("partial: a run was ended before its plan".to_owned());
    }
    if base.quick || candidate.quick {
        notes.push("quick: the small form of the lanes shows that they work, not how fast".to_owned());
    }
    notes
}

/// Returns the verdict of a lane, or `None` if a side has no row of it.
fn lane_verdict(lane: &str, base: &[Row], candidate: &[Row], paired: bool, guard: bool) -> Option<LaneVerdict> {
    let result =
        |verdict, reason: String, metrics| Some(LaneVerdict { lane: lane.to_owned(), guard, verdict, reason, metrics });
    if base.is_empty() || candidate.is_empty() {
        return None;
    }
    if let Some(error) =
        base.iter().chain(candidate).find_map(Row::error).filter(|_| pairs_of(base, candidate).is_empty())
    {
        return result(Verdict::NoVerdict, format!("no run of both sides was measured: {error}"), Vec::new());
    }
    let metrics: Vec<Judgement> = metrics_of(base, candidate)
        .into_iter()
        .filter_map(
            |metric| {
                if paired { judged(&metric, base, candidate) } else { side_by_side(&metric, base, candidate) }
            },
        )
        .collect();
    let (verdict, reason) = together(lane, &metrics);
    result(verdict, reason, metrics)
}

/// Combines the verdicts of the deciding metrics.
fn together(lane: &str, metrics: &[Judgement]) -> (Verdict, String) {
    match strongest(lane, metrics, |judgement| (&judgement.metric, judgement.verdict)) {
        Some(judgement) => (judgement.verdict, judgement.reason.clone()),
        None => (Verdict::NoVerdict, "it has no figure that decides".to_owned()),
    }
}

/// Returns what decides a lane among the verdicts on its metrics: worse takes precedence, then better, then
/// inconclusive, then no effect.
pub fn strongest<'a, T>(lane: &str, judged: &'a [T], of: impl Fn(&T) -> (&str, Verdict)) -> Option<&'a T> {
    let order = [Verdict::Rejected, Verdict::Accepted, Verdict::Inconclusive, Verdict::NoEffect, Verdict::NoVerdict];
    let is = |wanted: Verdict| move |(metric, verdict): (&str, Verdict)| decides(lane, metric) && verdict == wanted;
    order.into_iter().find_map(|wanted| judged.iter().find(|one| is(wanted)(of(one))))
}

fn metrics_of(base: &[Row], candidate: &[Row]) -> Vec<Metric> {
    let first = |rows: &[Row]| rows.iter().find_map(|row| row.figures().map(Figures::numbers)).unwrap_or_default();
    let others = first(candidate);
    let common = first(base).into_iter().filter(|(name, _)| others.iter().any(|(other, _)| other == name));
    common.filter_map(|(name, _)| metric(&name)).collect()
}

fn pairs_of<'a>(base: &'a [Row], candidate: &'a [Row]) -> Vec<(&'a Row, &'a Row)> {
    let measured = |row: &&Row| row.figures().is_some();
    let partner = |row: &'a Row| Some((row, candidate.iter().filter(measured).find(|other| other.run == row.run)?));
    base.iter().filter(measured).filter_map(partner).collect()
}

fn judged(metric: &Metric, base: &[Row], candidate: &[Row]) -> Option<Judgement> {
    let number = |row: &Row| row.figures()?.number(&metric.name);
    let pair = |(one, other): (&Row, &Row)| {
        Some(Pair { base: number(one)?, candidate: number(other)?, base_first: one.order < other.order })
    };
    let pairs: Vec<Pair> = pairs_of(base, candidate).into_iter().filter_map(pair).collect();
    (!pairs.is_empty()).then(|| judge(metric, &pairs))
}

fn side_by_side(metric: &Metric, base: &[Row], candidate: &[Row]) -> Option<Judgement> {
    let numbers =
        |rows: &[Row]| -> Vec<f64> { rows.iter().filter_map(|row| row.figures()?.number(&metric.name)).collect() };
    let (bases, candidates) = (numbers(base), numbers(candidate));
    let both = !bases.is_empty() && !candidates.is_empty();
    both.then(|| Judgement::figures(metric, &bases, &candidates, "not paired"))
}
