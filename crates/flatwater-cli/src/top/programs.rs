//! The figures of programs that show them, as lines.
//!
//! Owns: what is said of each, and the calls per second, from two records. Pure, but for the time that it is given. Invariant: one that
//! has been silent for several periods is said to be so, because a child that it forked may have its lock. Leaves out: reading the
//! records (`figures`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::figures::{Record, Shown, State};
use crate::output::text::visible;

/// So many kinds of calls are shown, those with the most calls.
const KINDS: usize = 4;
/// After so many periods without a record a program is called silent.
const SILENT: u32 = 6;

/// What was read of a program at one moment.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    state: State,
    calls_per_second: Option<f64>,
}

/// The records of the look before, by their files.
#[derive(Default)]
pub(super) struct Before(HashMap<PathBuf, (u64, SystemTime, Option<f64>)>);

impl Before {
    /// Adds to each record how many calls were answered per second since the record before.
    pub(super) fn with_rates(&mut self, shown: Vec<Shown>) -> Vec<Program> {
        let mut now = HashMap::new();
        let program = |Shown { path, state }: Shown| {
            let mut calls_per_second = None;
            if let State::Lives(record) = &state {
                let before = self.0.get(&path);
                calls_per_second = before.and_then(|before| rate(before, record));
                now.insert(path.clone(), (record.answered(), record.at, calls_per_second));
            }
            Program { path, state, calls_per_second }
        };
        let programs = shown.into_iter().map(program).collect();
        self.0 = now;
        programs
    }
}

/// The rate since the record before; that of the look before if there is no newer record.
fn rate((answered, at, rate): &(u64, SystemTime, Option<f64>), record: &Record) -> Option<f64> {
    match record.at.duration_since(*at) {
        Ok(time) if !time.is_zero() => Some(record.answered().saturating_sub(*answered) as f64 / time.as_secs_f64()),
        _ => *rate,
    }
}

/// Says what is known of a program.
pub(super) fn lines(program: &Program, now: SystemTime) -> Vec<String> {
    let record = match &program.state {
        State::Lives(record) => record,
        State::Left => {
            let name = name(&program.path);
            return vec![format!("{name}: left over by a program that was killed; the next one removes it")];
        }
        State::Unread(why) => return vec![format!("{}: {why}", name(&program.path))],
    };
    let number = |name| record.number(name);
    let mut lines = vec![format!("{} ({})", visible(record.text("program").unwrap_or("a program")), number("process"))];
    let period = Duration::from_millis(number("period_ms"));
    if let Ok(silent) = now.duration_since(record.at)
        && silent > period * SILENT
    {
        lines.push(format!("  silent  for {} s: it is stopped, or gone and a child of it lives", silent.as_secs()));
    }
    let waiting = format!("{} writes and {} reads wait", number("writes_waiting"), number("reads_waiting"));
    lines.push(format!("  queue   {waiting}; {} readers are held", number("readers_held")));
    let rate = program.calls_per_second.map_or_else(String::new, |rate| format!(", {rate:.0} per second"));
    lines.push(format!("  calls   {}{rate}", record.answered()));
    let mut kinds: Vec<&Value> = record.calls().iter().collect();
    kinds.sort_by_key(|calls| std::cmp::Reverse(calls["count"].as_u64()));
    lines.extend(kinds.into_iter().take(KINDS).map(of_kind));
    let (groups, members) = (number("groups"), number("members"));
    if groups > 0 {
        let size = members as f64 / groups as f64;
        lines.push(format!("  groups  {groups} commits of {size:.1} writes on average"));
    }
    let backlog = format!("{} frames, {} to be copied", number("wal_frames"), number("wal_backlog"));
    lines.push(format!("  WAL     {backlog}; {} restarts were blocked", number("wal_starved")));
    let sql = |name| record.text(name).map(one_line);
    lines.extend(sql("blocker").map(|sql| format!("          the last time by {sql}")));
    let seconds = number("oldest_read_us") as f64 / 1e6;
    lines.extend(sql("oldest_read").map(|sql| format!("  oldest  a read of {seconds:.1} s: {sql}")));
    let held = record.figures["in_transaction"] == true;
    let writer = if held { "held by a transaction, whose last step was" } else { "runs" };
    lines.extend(sql("writer").map(|sql| format!("  writer  {writer} {sql}")));
    lines
}

fn of_kind(calls: &Value) -> String {
    let number = |name: &str| calls[name].as_u64().unwrap_or(0);
    let kind = visible(calls["kind"].as_str().unwrap_or("?"));
    let (half, most) = (time(number("p50_us")), time(number("p99_us")));
    format!("  {kind:<15} {} calls, half within {half}, 99 % within {most}", number("count"))
}

fn time(us: u64) -> String {
    if us < 10_000 { format!("{us} us") } else { format!("{:.1} ms", us as f64 / 1e3) }
}

fn name(path: &Path) -> String {
    visible(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// SQL on one line, without control characters.
fn one_line(sql: &str) -> String {
    visible(&sql.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(count: u64, at: SystemTime) -> Shown {
        let figures = serde_json::json!({
            "process": 7, "program": "app", "period_ms": 500, "writes_waiting": 3, "reads_waiting": 1, "readers_held": 2,
            "groups": 10, "members": 45, "wal_frames": 9, "wal_backlog": 4, "wal_starved": 1, "blocker": "SELECT 1",
            "oldest_read_us": 2_500_000, "oldest_read": "SELECT\n  a\nFROM t", "in_transaction": true, "writer": "`INSERT`",
            "calls": [{"kind": "query", "count": count, "p50_us": 12, "p99_us": 12_345, "max_us": 20_000}],
        });
        Shown { path: PathBuf::from("a.db-observe-x"), state: State::Lives(Record { figures, at }) }
    }

    #[test]
    fn a_program_is_described_with_its_rate() {
        let (mut before, began) = (Before::default(), SystemTime::UNIX_EPOCH);
        let at = |ms| began + Duration::from_millis(ms);
        before.with_rates(vec![shown(100, at(0))]);
        let programs = before.with_rates(vec![shown(200, at(500))]);
        let expected = [
            "app (7)",
            "  queue   3 writes and 1 reads wait; 2 readers are held",
            "  calls   200, 200 per second",
            "  query           200 calls, half within 12 us, 99 % within 12.3 ms",
            "  groups  10 commits of 4.5 writes on average",
            "  WAL     9 frames, 4 to be copied; 1 restarts were blocked",
            "          the last time by SELECT 1",
            "  oldest  a read of 2.5 s: SELECT a FROM t",
            "  writer  held by a transaction, whose last step was `INSERT`",
        ];
        assert_eq!(lines(&programs[0], at(600)), expected);
        // There is no newer record.
        let programs = before.with_rates(vec![shown(200, at(500))]);
        assert_eq!(programs[0].calls_per_second, Some(200.0));
        let silent = lines(&programs[0], at(60_500));
        assert!(silent[1].contains("silent  for 60 s"), "{silent:?}");
    }

    #[test]
    fn what_no_program_has_is_said_to_be_left() {
        let path = PathBuf::from("a.db-observe-x");
        let programs = Before::default().with_rates(vec![Shown { path, state: State::Left }]);
        assert!(lines(&programs[0], SystemTime::now())[0].starts_with("a.db-observe-x: left over"));
    }
}
