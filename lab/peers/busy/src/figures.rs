//! The figures of one trial, under the names of the lab's protocol.
//!
//! Owns: what all lanes of this program print. Pure. Leaves out: what is measured.

use std::time::Duration;

use lab_kit::measure::Latencies;
use serde_json::{Map, Value, json};

use crate::mode::Mode;

/// What was measured.
#[derive(Debug, Default)]
pub struct Figures {
    /// Turns, or whatever the lane counts.
    pub ops: u64,
    pub seconds: Duration,
    /// The times that the percentiles are of.
    pub times: Latencies,
    pub cpu: Duration,
    extra: Map<String, Value>,
}

impl Figures {
    /// Figures of a mode and of a number of processes.
    pub fn new(mode: Mode, processes: usize) -> Self {
        let mut figures = Self::default();
        figures.extra("mode", json!(mode));
        figures.extra("processes", processes);
        figures
    }

    /// A figure of this lane only.
    pub fn extra(&mut self, name: &str, figure: impl Into<Value>) {
        self.extra.insert(name.to_owned(), figure.into());
    }

    /// How many turns each process had: the fewest, the most, and how far they lie apart.
    pub fn turns(&mut self, prefix: &str, turns: &[u64]) {
        let (fewest, most) = (turns.iter().min().copied(), turns.iter().max().copied());
        if let (Some(fewest), Some(most)) = (fewest, most) {
            self.extra(&format!("{prefix}turns_min"), fewest);
            self.extra(&format!("{prefix}turns_max"), most);
            self.extra(&format!("{prefix}turns_spread"), fewest as f64 / most.max(1) as f64);
        }
    }

    /// The figures as an object.
    pub fn report(mut self) -> Map<String, Value> {
        self.extra("latency_quantiles", json!(self.times.curve()));
        let Self { ops, seconds, times, cpu, extra } = self;
        let figures = json!({
            "ops": ops,
            "seconds": seconds.as_secs_f64(),
            "p50_us": times.us(0.5),
            "p90_us": times.us(0.9),
            "p95_us": times.us(0.95),
            "p99_us": times.us(0.99),
            "p999_us": times.us(0.999),
            "max_us": times.max_us(),
            "work_us": null,
            "cpu_seconds": cpu.as_secs_f64(),
            "peak_rss_bytes": null,
            "extra": extra,
        });
        match figures {
            Value::Object(figures) => figures,
            _ => unreachable!("an object was made"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_one_if_all_had_the_same() {
        let mut figures = Figures::new(Mode::Constant1Ms, 3);
        figures.turns("", &[4, 2, 4]);
        figures.turns("plain_", &[3, 3]);
        figures.turns("nobody_", &[]);
        let extra = figures.report().remove("extra").unwrap();
        assert_eq!(
            (&extra["turns_min"], &extra["turns_max"], &extra["turns_spread"]),
            (&json!(2), &json!(4), &json!(0.5))
        );
        assert_eq!((&extra["plain_turns_spread"], &extra["mode"]), (&json!(1.0), &json!("constant_1ms")));
        assert!(extra.get("nobody_turns_min").is_none());
    }
}
