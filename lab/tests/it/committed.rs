//! The committed records: each is in the form that the tool writes, agrees with its text and its line in the index, and
//! its verdicts follow from the figures that it keeps.

use std::path::{Path, PathBuf};

use flatwater_lab::commands::experiment::{Entry, index};
use flatwater_lab::figures::metric::{Direction, metric};
use flatwater_lab::records::aggregates::{Aggregates, Judged};
use flatwater_lab::records::record::{Record, Status};
use flatwater_lab::verdicts::compare::strongest;
use flatwater_lab::verdicts::verdict::{Verdict, judge};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")
}

fn committed() -> Vec<(Entry, Record, Aggregates)> {
    let read =
        |name: &str| std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let record = |entry: Entry| {
        let (record, text) = (Record::parse(&read(&entry.record)).unwrap(), read(&entry.aggregates));
        let aggregates = Aggregates::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}", entry.aggregates));
        assert!(aggregates.text().unwrap() == text, "{} is not laid out as the tool does it", entry.aggregates);
        (entry, record, aggregates)
    };
    index(&folder()).unwrap().into_iter().map(record).collect()
}

#[test]
fn the_index_has_every_record_in_order_and_says_what_it_says() {
    let committed = committed();
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let records =
        files.filter(|name| name.starts_with(|letter: char| letter.is_ascii_digit()) && name.ends_with(".md"));
    assert_eq!(records.count(), committed.len());
    for (at, (entry, record, _)) in committed.into_iter().enumerate() {
        let name = entry.record;
        assert_eq!(entry.number as usize, at + 1);
        assert_eq!((entry.title, entry.status), (record.title, record.status), "{name}");
        assert_eq!((entry.opened, entry.decided), (record.opened, record.decided), "{name}");
        assert_eq!((entry.lanes, entry.decision), (record.lanes, record.decision), "{name}");
        assert!(entry.patch.is_none_or(|patch| folder().join(patch).is_file()), "{name}");
    }
}

#[test]
fn a_record_has_the_figures_of_its_lanes_and_an_accepted_one_a_verdict_that_bears_it() {
    for (entry, record, aggregates) in committed() {
        for lane in record.lanes.iter().chain(&record.controls) {
            for side in &aggregates.circumstances.peers {
                let medians = aggregates.medians.iter().find(|row| row.lane == *lane && row.side == *side);
                assert!(
                    medians.is_some_and(|row| row.figures.contains_key("p50_us")),
                    "{}: {lane} {side}",
                    entry.record
                );
            }
        }
        let options =
            |side: &String| aggregates.compile_options.iter().filter(|build| build.sides.contains(side)).count();
        assert!(aggregates.circumstances.peers.iter().all(|side| options(side) == 1), "{}", entry.aggregates);
        let own = || aggregates.lanes.iter().filter(|lane| record.lanes.contains(&lane.lane));
        if record.status == Status::Accepted && aggregates.compared.is_some() {
            assert!(own().any(|lane| lane.verdict == Verdict::Accepted), "{}", entry.record);
            assert!(own().all(|lane| lane.verdict != Verdict::Rejected), "{}", entry.record);
        }
    }
}

#[test]
fn the_verdicts_of_the_records_follow_from_what_they_keep() {
    let committed = committed();
    assert!(committed.iter().any(|(_, _, aggregates)| !aggregates.judgements.is_empty()));
    for (entry, _, aggregates) in &committed {
        follows(aggregates, &entry.aggregates);
    }
}

/// Every verdict follows from the figures beside it, and that of a lane from those of its metrics.
pub(crate) fn follows(aggregates: &Aggregates, name: &str) {
    for judged in &aggregates.judgements {
        if let Some(median) = median_of(aggregates, judged) {
            assert!(
                alike(judged.base, median.0) && alike(judged.candidate, median.1),
                "{name}: {judged:?}, {median:?}"
            );
        }
        let vetoed = aggregates.compared.as_ref().is_some_and(|compared| compared.veto.is_some());
        assert!(vetoed || bears(judged), "{name}: {judged:?}");
    }
    for lane in &aggregates.lanes {
        let metrics: Vec<&Judged> = aggregates.judgements.iter().filter(|judged| judged.lane == lane.lane).collect();
        let decides = strongest(&lane.lane, &metrics, |judged| (&judged.metric, judged.verdict));
        assert_eq!(lane.verdict, decides.map_or(Verdict::NoVerdict, |judged| judged.verdict), "{name}: {lane:?}");
    }
}

/// The medians of the two sides, if the lane is one of the record's own.
fn median_of(aggregates: &Aggregates, judged: &Judged) -> Option<(f64, f64)> {
    let compared = aggregates.compared.as_ref()?;
    let of = |side: &str| {
        let row = aggregates.medians.iter().find(|row| row.lane == judged.lane && row.side == side)?;
        row.figures.get(&judged.metric).copied()
    };
    Some((of(&compared.base)?, of(&compared.candidate)?))
}

/// Equal in six figures, which is what a median is rounded to.
fn alike(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs().max(other.abs()) * 1e-5
}

/// Judges the pairs again, or, where a record has none, sees whether its interval and threshold allow the verdict.
fn bears(judged: &Judged) -> bool {
    let metric = metric(&judged.metric).unwrap();
    if judged.ratio.is_some_and(|ratio| ratio != judged.candidate / judged.base) {
        return false;
    }
    if !judged.runs.is_empty() {
        let again = judge(&metric, &judged.runs);
        return (again.verdict, again.ratio, again.interval, again.threshold)
            == (judged.verdict, judged.ratio, judged.interval, judged.threshold);
    }
    let better = |ratio: f64| (ratio < 1.0) == (metric.direction == Direction::LowerIsBetter);
    match (judged.verdict, judged.ratio, judged.interval, judged.threshold) {
        (Verdict::Accepted | Verdict::Rejected, Some(ratio), Some((low, high)), Some(threshold)) => {
            let beyond = ratio.ln().abs() >= threshold.ln_1p() && (low > 1.0 || high < 1.0) && !judged.drift;
            beyond && better(ratio) == (judged.verdict == Verdict::Accepted)
        }
        (Verdict::Accepted | Verdict::Rejected, ..) => false,
        (Verdict::NoEffect, Some(ratio), ..) => {
            let small = (judged.candidate - judged.base).abs() < metric.absolute_floor;
            small || ratio.ln().abs() < metric.effect_floor.ln_1p()
        }
        (Verdict::NoVerdict, ..) => judged.interval.is_none(),
        (Verdict::NoEffect | Verdict::Inconclusive, ..) => true,
    }
}
