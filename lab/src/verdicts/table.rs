//! The output of `compare` and `ab`.

use std::fmt::{Display, Formatter};

use comfy_table::{CellAlignment, Table, presets};

use crate::verdicts::compare::{Comparison, LaneVerdict};
use crate::verdicts::verdict::{Judgement, Verdict, percent};

impl Display for Comparison {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{} against {}", self.candidate, self.base)?;
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        if let Some(veto) = &self.veto {
            writeln!(out, "veto: {veto}")?;
        }
        for lane in &self.lanes {
            writeln!(out)?;
            write_lane(lane, out)?;
        }
        writeln!(out)?;
        let order =
            [Verdict::Accepted, Verdict::Rejected, Verdict::Inconclusive, Verdict::NoEffect, Verdict::NoVerdict];
        let counts = order.iter().filter(|verdict| self.count(**verdict) > 0);
        let counts: Vec<String> = counts.map(|verdict| format!("{} {verdict}", self.count(*verdict))).collect();
        write!(out, "{} lanes: {}", self.lanes.len(), counts.join(", "))
    }
}

fn write_lane(lane: &LaneVerdict, out: &mut Formatter<'_>) -> std::fmt::Result {
    let guard = if lane.guard { " (guard)" } else { "" };
    writeln!(out, "{}{guard}: {}: {}", lane.lane, lane.verdict, lane.reason)?;
    if lane.metrics.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["  metric", "base", "candidate", "ratio", "95 % interval", "takes", "CV", "runs", "verdict"]);
    for judgement in &lane.metrics {
        table.add_row(cells(judgement));
    }
    for column in 1..8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{table}")
}

fn cells(judgement: &Judgement) -> [String; 9] {
    let ratio = |ratio: f64| format!("{ratio:.3}");
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cv = [judgement.base_cv, judgement.candidate_cv].map(|cv| or_dash(cv.map(percent)));
    let drift = if judgement.drift { " (drift)" } else { "" };
    [
        format!("  {}", judgement.metric),
        number(judgement.base),
        number(judgement.candidate),
        or_dash(judgement.ratio.map(ratio)),
        or_dash(judgement.interval.map(|(low, high)| format!("{low:.3} to {high:.3}"))),
        or_dash(judgement.threshold.map(percent)),
        cv.join(" / "),
        judgement.pairs.to_string(),
        format!("{}{drift}", judgement.verdict),
    ]
}

/// Formats a figure with as many digits as are meaningful.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let grouped = thousands(whole);
    rest.map_or_else(|| grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

/// Formats a whole number in groups of three digits.
pub fn thousands_of(value: f64) -> String {
    thousands(&format!("{value:.0}"))
}

fn thousands(whole: &str) -> String {
    let (sign, figures) = whole.strip_prefix('-').map_or(("", whole), |figures| ("-", figures));
    let groups: Vec<&str> = figures
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits_that_say_something_and_groups_of_three() {
        let table =
            [(0.0, "0.00"), (1.234, "1.23"), (123.45, "123.5"), (1234.5, "1,234"), (-1_234_567.0, "-1,234,567")];
        for (value, text) in table {
            assert_eq!(number(value), text);
        }
    }
}
