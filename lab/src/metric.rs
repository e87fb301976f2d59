//! Metrics: which figures of a trial can be judged, which way is better, and how small a difference still counts.
//!
//! Owns the table of floors and the rule for lane-specific figures, whose unit is the end of their name. Leaves out
//! the judging itself, which `verdict` does.

/// Which way a figure gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Latencies, seconds, bytes.
    LowerIsBetter,
    /// Rates.
    HigherIsBetter,
}

/// One figure of a trial, as the judging needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name in a result file.
    pub name: String,
    /// Which way is better.
    pub direction: Direction,
    /// A relative change below this is no effect, however sure it is: 0.05 is five percent.
    pub effect_floor: f64,
    /// Nor is an absolute difference below this, in the metric's own unit.
    pub absolute_floor: f64,
    /// A figure that few samples of a trial decide: it takes more runs.
    pub tail: bool,
}

/// The rate of a trial, which is not in the row but follows from it.
pub const OPS_PER_SECOND: &str = "ops_per_second";

const CENTRE: f64 = 0.05;
const TAIL: f64 = 0.10;
/// Two readings of a clock and what the cache does to them.
const MICROSECONDS: f64 = 0.1;
/// A thread's stack more or less.
const BYTES: f64 = 512.0 * 1024.0;
/// One tick of a kernel that counts CPU time in ticks.
const CPU_SECONDS: f64 = 0.01;

/// The metric of that name, or none if the name does not say which way is better.
pub fn metric(name: &str) -> Option<Metric> {
    use Direction::{HigherIsBetter, LowerIsBetter};
    let tail = ["p95", "p99", "max", "longest"].iter().any(|word| name.contains(word));
    let many_samples = name == "p95_us";
    let (direction, absolute_floor) = match name {
        "cpu_seconds" => (LowerIsBetter, CPU_SECONDS),
        // Of the percentile and the noop floor, each has its own noise.
        "work_us" => (LowerIsBetter, 2.0 * MICROSECONDS),
        _ if name.ends_with("per_second") => (HigherIsBetter, 0.0),
        _ if name.ends_with("_us") => (LowerIsBetter, MICROSECONDS),
        _ if name.ends_with("_ms") => (LowerIsBetter, MICROSECONDS / 1000.0),
        _ if name.contains("bytes") => (LowerIsBetter, BYTES),
        _ => return None,
    };
    let effect_floor = if tail || name.contains("bytes") { TAIL } else { CENTRE };
    Some(Metric { name: name.to_owned(), direction, effect_floor, absolute_floor, tail: tail && !many_samples })
}

/// The figure that a lane exists for: it stands on the page's first table.
pub fn headline(lane: &str) -> &'static str {
    match lane {
        _ if lane.starts_with("caller_blocking") => "longest_gap_us",
        _ if lane.starts_with("caller_polls") || lane == "long_queries" => "longest_poll_us",
        _ if lane.starts_with("memory") => "peak_rss_bytes",
        _ if lane.starts_with("burst") || lane.starts_with("sustained") => "p99_us",
        _ if lane.contains("concurrent") => OPS_PER_SECOND,
        _ => "p50_us",
    }
}

/// The metrics whose verdicts make the verdict of a lane. The others are shown beside them.
pub fn decides(lane: &str, metric: &str) -> bool {
    let also = match lane {
        "random_keys" => ["update_p50_us", "update_p99_us"].contains(&metric),
        _ => metric == headline(lane),
    };
    also || [OPS_PER_SECOND, "p50_us", "p99_us"].contains(&metric)
}

/// Whether nothing that a change is meant to improve happens in this lane.
pub fn is_noop(lane: &str) -> bool {
    lane == "noop" || lane.starts_with("noop_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_figure_says_its_direction_floor_and_whether_it_is_a_tail() {
        let table = [
            ("p50_us", Some((Direction::LowerIsBetter, false))),
            ("p95_us", Some((Direction::LowerIsBetter, false))),
            ("p99_us", Some((Direction::LowerIsBetter, true))),
            ("p999_us", Some((Direction::LowerIsBetter, true))),
            ("max_us", Some((Direction::LowerIsBetter, true))),
            ("longest_gap_us", Some((Direction::LowerIsBetter, true))),
            ("poll_cpu_p999_us", Some((Direction::LowerIsBetter, true))),
            ("recovery_ms", Some((Direction::LowerIsBetter, false))),
            ("writes_per_second", Some((Direction::HigherIsBetter, false))),
            ("read_p95_us", Some((Direction::LowerIsBetter, true))),
            ("ops_per_second", Some((Direction::HigherIsBetter, false))),
            ("peak_rss_bytes", Some((Direction::LowerIsBetter, false))),
            ("wal_bytes_max", Some((Direction::LowerIsBetter, true))),
            ("cpu_seconds", Some((Direction::LowerIsBetter, false))),
            ("ops", None),
            ("rows_seen", None),
        ];
        for (name, expected) in table {
            assert_eq!(metric(name).map(|metric| (metric.direction, metric.tail)), expected, "{name}");
        }
    }

    #[test]
    fn a_lane_is_decided_by_its_headline_too() {
        assert!(decides("caller_blocking", "longest_gap_us"));
        assert!(!decides("point_query", "longest_gap_us"));
        assert!(decides("caller_polls_mixed", "longest_poll_us") && decides("long_queries", "longest_poll_us"));
        assert!(decides("memory_query_10k", "peak_rss_bytes"));
        assert!(decides("random_keys", "update_p99_us") && decides("random_keys", "p99_us"));
        assert!(!decides("point_query", "peak_rss_bytes"));
    }

    #[test]
    fn only_lanes_named_noop_are_guards_by_themselves() {
        assert!(is_noop("noop_execute") && is_noop("noop"));
        assert!(!is_noop("noopener") && !is_noop("point_query"));
    }
}
