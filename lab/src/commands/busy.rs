//! `busy`: the tables of a result's `busy_*` lanes.
//!
//! Owns: the form of the published study's table, and of one table for each setting of the hot loops, with medians over
//! the runs. Pure but for reading the file. Leaves out: measuring, which the peers `busy-*` do.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::figures::result::{Figures, Measured, Row};
use crate::figures::statistics::median;

/// `busy`.
#[derive(Args, Debug)]
pub struct BusyArgs {
    /// A result that has lanes named `busy_*`
    pub file: PathBuf,
}

/// Prints the tables.
pub fn busy(args: &BusyArgs) -> Result<bool> {
    let tables = tables(&Measured::read(&args.file)?);
    if tables.is_empty() {
        bail!("{} has no lane of the peers `busy-*`", args.file.display());
    }
    print!("{tables}");
    Ok(true)
}

/// The figures of one peer in one lane: of each, the median over the runs.
pub(super) struct Side<'a>(Vec<&'a Figures>);

impl<'a> Side<'a> {
    pub(super) fn of(measured: &'a Measured, lane: &'a str, peer: &'a str) -> Self {
        Self(measured.rows(lane, peer).filter_map(Row::figures).collect())
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let numbers: Vec<f64> = self.0.iter().filter_map(|figures| figures.number(name)).collect();
        (!numbers.is_empty()).then(|| median(&numbers))
    }

    fn mode(&self) -> &str {
        self.0.iter().find_map(|figures| figures.extra.get("mode")).and_then(Value::as_str).unwrap_or("-")
    }

    /// What the mode is for a reader.
    fn title(&self) -> String {
        match self.mode() {
            "default" => "SQLite's busy timeout",
            "backoff" => "a linear back-off",
            "constant_1ms" => "every 1 ms",
            "constant_100us" => "every 100 us",
            "ring" => "a ring of pipes",
            "busy_handler" => "Flatwater with `fairness` off",
            "turnstile" => "Flatwater",
            other => other,
        }
        .to_owned()
    }

    fn whole(&self, name: &str) -> String {
        self.number(name).map_or_else(|| "-".to_owned(), |number| format!("{number:.0}"))
    }

    fn share(&self, name: &str) -> String {
        self.number(name).map_or_else(|| "-".to_owned(), |number| format!("{number:.3}"))
    }

    /// A time in milliseconds, from one in microseconds.
    fn milliseconds(&self, name: &str) -> String {
        self.number(name).map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1000.0))
    }
}

fn sides<'a>(measured: &'a Measured, lane: &'a str) -> Vec<Side<'a>> {
    measured.peers().into_iter().map(|peer| Side::of(measured, lane, peer)).filter(|side| !side.0.is_empty()).collect()
}

fn tables(measured: &Measured) -> String {
    let lanes: Vec<&str> = measured.lane_names().into_iter().filter(|lane| lane.starts_with("busy_")).collect();
    let (study, loops): (Vec<&str>, Vec<&str>) = lanes.into_iter().partition(|lane| lane.starts_with("busy_study_"));
    let mut text = String::new();
    if !study.is_empty() {
        text += "Milliseconds. Contention: children, threads of each, slow transactions of the parent.\n\n";
        text += &heading(&["mode", "contention", "parent", "fastest", "slowest", "script", "delta"]);
        for lane in study {
            sides(measured, lane).iter().for_each(|side| text += &study_line(side));
        }
        text.push('\n');
    }
    for lane in loops {
        let about = measured.lanes.get(lane).map_or("", |lane| lane.about.as_str());
        let sides = sides(measured, lane);
        let _ = writeln!(text, "{lane}: {about}. Waits in milliseconds.\n");
        text += &heading(&["mode", "turns/s", "fewest", "most", "spread", "p50", "p99", "p99.9", "longest"]);
        sides.iter().for_each(|side| text += &loop_line(side));
        if lane.starts_with("busy_mixed_") {
            text += "\nOf these, the plain programs:\n\n";
            text += &heading(&[
                "mode of the others",
                "share",
                "fewest",
                "most",
                "spread",
                "p50",
                "p99",
                "p99.9",
                "longest",
            ]);
            sides.iter().for_each(|side| text += &plain_line(side));
        }
        text.push('\n');
    }
    text
}

/// The setting of the README's table.
const SHOWN: &str = "busy_16_hold_200";

/// Returns the README's table: sixteen processes that want the lock again at once.
pub fn turns_table(measured: &Measured) -> Result<String> {
    let sides = sides(measured, SHOWN);
    if sides.is_empty() {
        bail!("the result has not the lane {SHOWN}");
    }
    let mut text = heading(&["waiting for the lock", "fewest turns", "most turns", "longest wait", "turns/s"]);
    for side in sides {
        let longest = side.number("max_us").map_or_else(|| "-".to_owned(), |us| format!("{:.0} ms", us / 1000.0));
        let counts = ["turns_min", "turns_max"].map(|name| side.whole(name));
        text += &line([vec![side.title()], counts.to_vec(), vec![longest, side.whole("ops_per_second")]].concat());
    }
    Ok(text)
}

fn study_line(side: &Side<'_>) -> String {
    let counted = ["processes", "threads", "slow"].map(|name| side.number(name).unwrap_or(0.0));
    let [processes, threads, slow] = counted;
    let contention = format!("{} ({processes}/{threads}/{slow})", counted.iter().sum::<f64>());
    let times = ["parent_ms", "fastest_ms", "slowest_ms", "script_ms", "delta"].map(|name| side.whole(name));
    line([vec![side.mode().to_owned(), contention], times.to_vec()].concat())
}

fn loop_line(side: &Side<'_>) -> String {
    let counts = ["ops_per_second", "turns_min", "turns_max"].map(|name| side.whole(name));
    let waits = ["p50_us", "p99_us", "p999_us", "max_us"].map(|name| side.milliseconds(name));
    line([vec![side.mode().to_owned()], counts.to_vec(), vec![side.share("turns_spread")], waits.to_vec()].concat())
}

fn plain_line(side: &Side<'_>) -> String {
    let counts = ["plain_turns_min", "plain_turns_max"].map(|name| side.whole(name));
    let waits = ["plain_p50_us", "plain_p99_us", "plain_p999_us", "plain_max_us"].map(|name| side.milliseconds(name));
    let begin = vec![side.mode().to_owned(), side.share("plain_share")];
    line([begin, counts.to_vec(), vec![side.share("plain_turns_spread")], waits.to_vec()].concat())
}

fn heading(columns: &[&str]) -> String {
    let names = columns.iter().map(|column| (*column).to_owned()).collect();
    let rule = columns.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }.to_owned()).collect();
    line(names) + &line(rule)
}

fn line(cells: Vec<String>) -> String {
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A result with these lanes of one peer; no figure here was measured.
    fn measured(lanes: &[(&str, Value)]) -> Measured {
        let row = |(lane, extra): &(&str, Value)| {
            let percentiles =
                json!({"p50_us": 1, "p90_us": 2, "p95_us": 3, "p99_us": 4000, "p999_us": 5000, "max_us": 6000});
            let mut row =
                json!({"lane": lane, "peer": "busy-turnstile", "run": 0, "order": 0, "ops": 10, "seconds": 2});
            row["extra"] = extra.clone();
            row.as_object_mut().unwrap().extend(percentiles.as_object().unwrap().clone());
            row
        };
        let machine =
            json!({"cpu": "", "cores": 2, "memory_gib": 1, "os": "", "kernel": "", "arch": "", "filesystem": ""});
        let rows: Vec<Value> = lanes.iter().map(row).collect();
        let result = json!({
            "format": 1, "id": "x", "started": "", "kind": "run", "machine": machine, "versions": {}, "flags": {},
            "commit": null, "dirty": false, "partial": false, "quick": true, "runs": 1, "lanes": {}, "results": rows,
        });
        serde_json::from_value(result).unwrap()
    }

    #[test]
    fn a_scenario_is_a_line_of_the_study_s_table() {
        let extra = json!({
            "mode": "turnstile", "processes": 8, "threads": 4, "slow": 2, "parent_ms": 2001.4,
            "fastest_ms": 800.0, "slowest_ms": 1801.0, "script_ms": 2003.0, "delta": 200.4,
        });
        let text = tables(&measured(&[("busy_study_8_4_2", extra)]));
        assert!(text.contains("| turnstile | 14 (8/4/2) | 2001 | 800 | 1801 | 2003 | 200 |\n"), "{text}");
    }

    #[test]
    fn a_hot_loop_is_a_table_and_a_mixed_one_has_another_of_the_plain_programs() {
        let extra =
            json!({"mode": "turnstile", "turns_min": 3, "turns_max": 4, "turns_spread": 0.75, "plain_share": 0.5});
        let text = tables(&measured(&[("busy_mixed_4_hold_200", extra), ("point_query", json!({}))]));
        assert!(text.contains("| turnstile | 5 | 3 | 4 | 0.750 | 0.001 | 4.000 | 5.000 | 6.000 |\n"), "{text}");
        assert!(text.contains("| turnstile | 0.500 | - |") && !text.contains("point_query"), "{text}");
        assert!(tables(&measured(&[])).is_empty());
    }
}
