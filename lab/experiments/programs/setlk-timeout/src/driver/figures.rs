//! From counted times to the figures of a row, and from rows to medians over runs.

use anyhow::{Result, ensure};
use flatwater_lab::figures::result::{Figures, Measured};
use flatwater_lab::figures::statistics::{median, quantile};
use serde::Serialize;
use serde_json::{Map, Value, json};
use setlk_timeout::Counted;

/// The figures of one trial: percentiles of what `pick` names, and the counts beside it.
pub(crate) fn figures(counted: &Counted, pick: fn(&Counted) -> &Vec<u64>) -> Result<Figures> {
    let times = microseconds(pick(counted));
    ensure!(!times.is_empty(), "it did nothing");
    let at = |share: f64| quantile(&times, share);
    let mut extra = Map::new();
    if !counted.checkpoints.is_empty() {
        let checkpoints = microseconds(&counted.checkpoints);
        extra.insert("checkpoint_p50_us".to_owned(), json!(median(&checkpoints)));
        extra.insert("checkpoint_max_us".to_owned(), json!(quantile(&checkpoints, 1.0)));
        extra.insert("checkpoints".to_owned(), json!(checkpoints.len()));
        extra.insert("checkpoints_busy".to_owned(), json!(counted.busy_checkpoints));
    }
    extra.insert("busy_calls".to_owned(), json!(counted.busy_calls));
    extra.insert("failed".to_owned(), json!(counted.failed));
    Ok(Figures {
        ops: times.len() as u64,
        seconds: counted.seconds,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p95_us: at(0.95),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: at(1.0),
        work_us: None,
        cpu_seconds: Some(counted.cpu_seconds),
        peak_rss_bytes: None,
        extra,
    })
}

fn microseconds(nanos: &[u64]) -> Vec<f64> {
    nanos.iter().map(|nanos| *nanos as f64 / 1000.0).collect()
}

/// A side of a lane: the median of each figure over its runs.
#[derive(Serialize)]
pub(crate) struct Median {
    lane: String,
    side: String,
    runs: usize,
    #[serde(flatten)]
    figures: Map<String, Value>,
}

pub(crate) fn medians(measured: &Measured) -> Vec<Median> {
    let sides = |lane| measured.peers().into_iter().map(move |side| (lane, side));
    let lanes = measured.lane_names().into_iter().flat_map(sides);
    lanes
        .map(|(lane, side)| {
            let rows: Vec<&Figures> = measured.rows(lane, side).filter_map(|row| row.figures()).collect();
            let names = rows.first().map(|first| first.numbers()).unwrap_or_default();
            let figures = names.into_iter().map(|(name, _)| {
                let values: Vec<f64> = rows.iter().filter_map(|row| row.number(&name)).collect();
                let middle = median(&values);
                (name, json!((middle * 1000.0).round() / 1000.0))
            });
            Median { lane: lane.to_owned(), side: side.to_owned(), runs: rows.len(), figures: figures.collect() }
        })
        .collect()
}

/// Prints the medians as a table that a record can take.
pub(crate) fn print(medians: &[Median]) {
    let columns = ["p50_us", "p99_us", "p999_us", "max_us", "ops_per_second", "cpu_seconds", "busy_calls", "failed"];
    println!("\nMedians over runs\n\n| lane | side | {} |", columns.join(" | "));
    println!("|---|---|{}", "---|".repeat(columns.len()));
    for row in medians {
        let cells = columns.map(|name| match row.figures.get(name).and_then(Value::as_f64) {
            Some(value) if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
            Some(value) if value >= 10.0 => format!("{value:.1}"),
            Some(value) => format!("{value:.2}"),
            None => "-".to_owned(),
        });
        println!("| {} | {} | {} |", row.lane, row.side, cells.join(" | "));
    }
}
