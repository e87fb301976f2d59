//! Metrics: which figures of a trial can be judged, which direction is better, and how small a difference still counts.
//!
//! Owns: the table of floors, and the rule for lane-specific figures, whose name ends with the unit. Pure. Leaves out:
//! the judgement (`verdict`).

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Lower values are better: latencies, seconds, bytes.
    LowerIsBetter,
    /// Higher values are better: rates.
    HigherIsBetter,
}

/// The properties of a figure that a judgement needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The figure's name in a result file.
    pub name: String,
    /// The direction in which the figure improves.
    pub direction: Direction,
    /// A smaller relative change is no effect, even if it is certain: 0.05 is five percent.
    pub effect_floor: f64,
    /// A smaller absolute difference is no effect either, in the metric's own unit.
    pub absolute_floor: f64,
    /// Whether only a few samples of a trial determine the figure, so that it needs more runs.
    pub tail: bool,
}

/// The rate of a trial. The row does not contain it; it is computed.
pub const OPS_PER_SECOND: &str = "ops_per_second";

const CENTRE: f64 = 0.05;
const TAIL: f64 = 0.10;
/// Two readings of the clock, and the effect of the cache on them.
const MICROSECONDS: f64 = 0.1;
/// The stack of one thread.
const BYTES: f64 = 512.0 * 1024.0;
/// One tick of a kernel that counts CPU time in ticks.
const CPU_SECONDS: f64 = 0.01;

/// Returns the metric of that name, or `None` if the name does not determine which direction is better.
pub fn metric(name: &str) -> Option<Metric> {
    use Direction::{HigherIsBetter, LowerIsBetter};
    let tail = ["p95", "p99", "max", "longest", "slowest"].iter().any(|word| name.contains(word));
    let many_samples = name == "p95_us";
    let (direction, absolute_floor) = match name {
        "cpu_seconds" => (LowerIsBetter, CPU_SECONDS),
        // The noise of the percentile and of the noop floor add up.
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

/// Lanes of a mix of calls, or of several callers: if their names have a number, it is that of the callers.
pub fn is_of_callers(lane: &str) -> bool {
    lane.contains("concurrent") || ["chat", "service_"].iter().any(|mix| lane.starts_with(mix))
}

/// Returns the main figure of a lane, which the page's first table shows.
pub fn headline(lane: &str) -> &'static str {
    match lane {
        _ if lane.starts_with("caller_blocking") => "longest_gap_us",
        "loop_gap" | "loop_gap_ready" => "excess_gap_p999_us",
        "loop_holds" => "longest_cpu_us",
        "long_queries" | "large_results" | "live_large" | "cold_keys" => "longest_poll_us",
        _ if lane.starts_with("caller_polls") => "longest_poll_us",
        _ if lane.starts_with("memory") => "peak_rss_bytes",
        _ if lane.starts_with("burst") || lane.starts_with("sustained") => "p99_us",
        _ if lane.starts_with("busy_study") => "slowest_ms",
        _ if lane.starts_with("busy_") => "max_us",
        "live_burst" => OPS_PER_SECOND,
        _ if lane.starts_with("live_writers") => OPS_PER_SECOND,
        _ if is_of_callers(lane) => OPS_PER_SECOND,
        _ => "p50_us",
    }
}

/// Returns whether the metric's verdict counts for the verdict of the lane. The others are only shown.
pub fn decides(lane: &str, metric: &str) -> bool {
    let also = match lane {
        "random_keys" => ["update_p50_us", "update_p99_us"].contains(&metric),
        "loop_gap" | "loop_gap_ready" => ["excess_gap_p999_us", "excess_longest_gap_us"].contains(&metric),
        "sustained_saturated" => ["p999_us", "wal_bytes_max"].contains(&metric),
        _ if lane.starts_with("live_keyed") => ["same_p50_us", "unwatched_p50_us"].contains(&metric),
        _ => metric == headline(lane),
    };
    also || [OPS_PER_SECOND, "p50_us", "p99_us"].contains(&metric)
}

/// Returns whether the lane measures nothing that a change is meant to improve.
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
        assert!(decides("loop_gap", "excess_longest_gap_us") && decides("large_results", "longest_poll_us"));
        assert!(decides("live_large", "longest_poll_us") && decides("live_foreign", "p50_us"));
        assert!(decides("loop_holds", "longest_cpu_us") && !decides("loop_holds", "idle_longest_cpu_us"));
        assert!(decides("sustained_saturated", "wal_bytes_max") && !decides("sustained_8k", "wal_bytes_max"));
        assert!(decides("live_keyed_10k", "same_p50_us") && !decides("live_keyed_10k", "same_max_us"));
        assert!(decides("busy_16_hold_200", "max_us") && decides("busy_study_8_4_2", "slowest_ms"));
        assert!(!decides("point_query", "peak_rss_bytes"));
    }

    #[test]
    fn only_lanes_named_noop_are_guards_by_themselves() {
        assert!(is_noop("noop_execute") && is_noop("noop"));
        assert!(!is_noop("noopener") && !is_noop("point_query"));
    }
}
