//! The tables of the report: the sides and their comparison, in 80 columns.
//!
//! Owns: the layout of a table, the mark of who wins in a column, and the format of figures. A loss is formatted like a
//! gain. Leaves out: measuring.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::flatwater_side::FlatwaterSide;
use crate::mutex_side::MutexSide;
use crate::side::Side;
use crate::traffic::{Record, SHARES};

/// Returns the averages, what makes the difference, and the table.
pub(crate) fn report(ours: &Record, theirs: &Record) -> String {
    let sides = [ours, theirs];
    let rates = sides.map(|record| record.all().len() as f64 / record.elapsed.as_secs_f64());
    let mut report = averages(rates, sides.map(|record| record.all().mean())) + WHY;
    report += &heading("time to answer", "answered");
    report += &block("all requests", &ours.all(), &theirs.all());
    for (operation, _) in SHARES {
        report += &block(operation.name(), ours.of(operation), theirs.of(operation));
    }
    report + LEGEND
}

/// What makes the difference in this traffic, whichever side wins.
const WHY: &str = "
With a Mutex every request waits for all before it, and for a thread of the
pool and back. With Flatwater a short one runs at once on the thread that asks,
reads run beside the writer, and writes that wait together share one commit.

";

/// Returns the lines with the answers per second and the time per answer, from means in nanoseconds. The mean is
/// separate from the percentiles, because a queue that is not fair can have a short p50 and a long mean.
fn averages(rates: [f64; 2], means: [f64; 2]) -> String {
    let gains = [compared(rates[0] / rates[1]), compared(means[1] / means[0])];
    let rates = rates.map(|rate| thousands(rate as u64));
    let means = means.map(|mean| duration(mean as u64));
    format!(
        "per second   Flatwater {}, one Mutex {}: {}\nmean         Flatwater {}, one Mutex {}: {}\n",
        rates[0], rates[1], gains[0], means[0], means[1], gains[1],
    )
}

/// Returns the heading: what is measured, and the columns.
pub(crate) fn heading(name: &str, counted: &str) -> String {
    headed(name, [counted, "p50", "p99", "p99.9", "max"])
}

/// Returns the heading of a table with other columns.
pub(crate) fn headed(name: &str, columns: [&str; 5]) -> String {
    line(name, columns.map(str::to_owned)) + &format!("{}\n", "-".repeat(80))
}

/// The legend of the mark.
pub(crate) const LEGEND: &str = "* the best of its column, and who is within 5 % of it\n";

/// Returns the lines of one operation: its name, a line for each side, and the comparison.
fn block(name: &str, ours: &Histogram<u64>, theirs: &Histogram<u64>) -> String {
    let sides = [(FlatwaterSide::NAME, ours.len(), ours), (MutexSide::NAME, theirs.len(), theirs)];
    format!("{name}\n") + &rows(&sides) + &comparison(ours, theirs)
}

/// Returns a line for each side, with its count and its times. The best cells of each column are marked.
pub(crate) fn rows(sides: &[(&str, u64, &Histogram<u64>)]) -> String {
    let counts: Vec<u64> = sides.iter().map(|(_, count, _)| *count).collect();
    let times: Vec<[u64; 4]> = sides.iter().map(|(.., latencies)| times(latencies)).collect();
    let cell = |side: usize, at: usize| {
        let column: Vec<f64> = times.iter().map(|times| times[at] as f64).collect();
        marked(duration(times[side][at]), wins(column[side], &column, Best::Lowest))
    };
    let line = |side: usize| {
        let column: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
        let count = marked(counted(counts[side]), wins(column[side], &column, Best::Highest));
        line(&format!("  {}", sides[side].0), cells(count, std::array::from_fn(|at| cell(side, at))))
    };
    (0..sides.len()).map(line).collect()
}

/// Returns the line of one side that takes part in no comparison, and has no count.
pub(crate) fn control(name: &str, latencies: &Histogram<u64>) -> String {
    unmarked(name, "-".to_owned(), latencies)
}

/// Returns the line of one side that takes part in no comparison.
pub(crate) fn alone(name: &str, latencies: &Histogram<u64>) -> String {
    unmarked(name, counted(latencies.len()), latencies)
}

fn unmarked(name: &str, count: String, latencies: &Histogram<u64>) -> String {
    let times = times(latencies).map(|time| marked(duration(time), false));
    line(&format!("  {name}"), cells(marked(count, false), times))
}

/// Returns a line for each side of figures of which the lowest is the best. The other cells stay empty.
pub(crate) fn lowest<const N: usize>(sides: &[(&str, [f64; N])], show: impl Fn(f64) -> String) -> String {
    let line = |(name, figures): &(&str, [f64; N])| {
        let cell = |at: usize| {
            let column: Vec<f64> = sides.iter().map(|(_, figures)| figures[at]).collect();
            marked(show(figures[at]), wins(figures[at], &column, Best::Lowest))
        };
        line(&format!("  {name}"), std::array::from_fn(|at| if at < N { cell(at) } else { String::new() }))
    };
    sides.iter().map(line).collect()
}

#[derive(Clone, Copy)]
enum Best {
    Lowest,
    Highest,
}

/// Returns whether a figure is the best of its column or within 5 % of it.
fn wins(figure: f64, column: &[f64], best: Best) -> bool {
    let near = |best: f64| (figure - best).abs() <= best.abs() * 0.05;
    match best {
        Best::Lowest => near(column.iter().copied().fold(f64::INFINITY, f64::min)),
        Best::Highest => near(column.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    }
}

/// Puts the mark behind a figure, or the space that keeps the column straight.
fn marked(figure: String, wins: bool) -> String {
    figure + if wins { "*" } else { " " }
}

/// Returns the line that compares Flatwater with the other side in each column.
pub(crate) fn comparison(ours: &Histogram<u64>, theirs: &Histogram<u64>) -> String {
    let count = compared(ours.len() as f64 / theirs.len() as f64);
    let [our_times, their_times] = [ours, theirs].map(times);
    let times = std::array::from_fn::<_, 4, _>(|at| compared(their_times[at] as f64 / our_times[at] as f64));
    line("  Flatwater is", cells(count, times))
}

fn cells(count: String, [p50, p99, p999, max]: [String; 4]) -> [String; 5] {
    [count, p50, p99, p999, max]
}

/// Returns one line: a name, and its cells.
pub(crate) fn line(name: &str, cells: [String; 5]) -> String {
    let mut line = format!("{name:<15}");
    for cell in cells {
        let _ = write!(line, "{cell:>13}");
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Returns p50, p99, p99.9 and max in nanoseconds.
fn times(latencies: &Histogram<u64>) -> [u64; 4] {
    [0.5, 0.99, 0.999, 1.0].map(|quantile| latencies.value_at_quantile(quantile))
}

/// Returns in words how much better Flatwater is. `gain` is above 1 if it is better.
fn compared(gain: f64) -> String {
    let (factor, word) = if gain >= 1.0 { (gain, "better") } else { (1.0 / gain, "worse") };
    match factor {
        factor if !factor.is_finite() => "-".to_owned(),
        ..1.05 => "equal".to_owned(),
        ..9.95 => format!("{factor:.1}x {word}"),
        ..999.5 => format!("{factor:.0}x {word}"),
        _ => format!(">999x {word}"),
    }
}

pub(crate) fn duration(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match us {
        ..9.95 => format!("{us:.1} us"),
        ..999.5 => format!("{us:.0} us"),
        ..9_995.0 => format!("{:.2} ms", us / 1e3),
        ..99_950.0 => format!("{:.1} ms", us / 1e3),
        ..999_500.0 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.1} s", us / 1e6),
    }
}

/// Returns a count, in millions if it would not fit into its column.
fn counted(number: u64) -> String {
    if number < 1_000_000_000 { thousands(number) } else { format!("{} M", thousands(number / 1_000_000)) }
}

pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        times.iter().for_each(|&(ns, count)| histogram.record_n(ns, count).unwrap());
        histogram
    }

    #[test]
    fn large_figures_fit_into_80_columns() {
        let slow = histogram(&[(3_599_000_000_000, 9_999_999_999)]);
        let fast = histogram(&[(1, 1)]);
        let blocks = block("last 20 messages", &slow, &fast) + &block("last 20 messages", &fast, &slow);
        assert!(blocks.contains("9,999 M") && blocks.contains(">999x worse"), "{blocks}");
        let averages = averages([9_999_999_999.0, 1.0], [3_599_000_000_000.0, 1.0]);
        assert!(averages.contains(">999x better") && averages.contains(">999x worse"), "{averages}");
        for line in (blocks + &averages + &report(&Record::new(), &Record::new())).lines() {
            assert!(line.len() <= 80, "{} columns: {line}", line.len());
        }
    }

    #[test]
    fn figures_keep_apart_from_each_other() {
        let block = block("x", &histogram(&[(3_599_000_000_000, 999_999_999)]), &histogram(&[(1, 1)]));
        for line in block.lines().skip(1).map(|line| format!("{line:<80}")) {
            let cells: Vec<&str> = (0..5).map(|at| &line[15 + 13 * at..28 + 13 * at]).collect();
            assert!(cells.iter().all(|cell| cell.starts_with(' ')), "{cells:?}");
        }
    }

    #[test]
    fn the_best_of_each_column_is_marked_and_who_is_near_it() {
        let sides = [("a", [100.0, 7.0]), ("b", [104.0, 5.0]), ("c", [106.0, -1.0])];
        let lines = lowest(&sides, |figure| figure.to_string());
        let marks: Vec<Vec<bool>> = lines
            .lines()
            .map(|line| line.split_whitespace().skip(1).map(|cell| cell.ends_with('*')).collect())
            .collect();
        assert_eq!(marks, [[true, false], [true, false], [false, true]], "{lines}");
        let (slow, fast) = (histogram(&[(9_000, 4)]), histogram(&[(1_000, 2)]));
        let lines = rows(&[("a", 4, &slow), ("b", 2, &fast)]);
        let marks: Vec<usize> = lines.lines().map(|line| line.matches('*').count()).collect();
        assert_eq!(marks, [1, 4], "{lines}");
    }

    #[test]
    fn a_gain_and_a_loss_are_written_alike() {
        assert_eq!(compared(2.04), "2.0x better");
        assert_eq!(compared(1.0 / 2.04), "2.0x worse");
        assert_eq!(compared(0.97), "equal");
        assert_eq!(compared(1.04), "equal");
        assert_eq!(compared(12.3), "12x better");
        assert_eq!(compared(0.0), "-");
        assert_eq!(compared(f64::NAN), "-");
    }

    #[test]
    fn times_have_three_digits_at_most() {
        let text = [1, 940, 12_345, 999_400, 1_234_000, 12_340_000, 123_400_000, 12_340_000_000].map(duration);
        assert_eq!(text, ["0.0 us", "0.9 us", "12 us", "999 us", "1.23 ms", "12.3 ms", "123 ms", "12.3 s"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
