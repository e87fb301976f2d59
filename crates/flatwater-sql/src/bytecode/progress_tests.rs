//! Tests of what SQLite does between two checks of the progress handler.
//!
//! Owns: the property that no short query runs for long without a check, and the figures for opaque programs. Leaves
//! out: which text has which shape (`shape_tests`).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flatwater_sqlite::rusqlite::limits::Limit;
use flatwater_sqlite::rusqlite::{Statement, StatementStatus};
use flatwater_sqlite::{Interrupt, Sqlite};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::analysis::ProgramAnalysis;
use super::graph::{INLINE_VALUE_BYTES, Shape, Strange};
use super::shape_tests::{analysis, memory};

/// Stops the statement at check number `look`.
struct StopAt {
    look: u32,
    looks: AtomicU32,
}

impl Interrupt for StopAt {
    fn should_stop(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) + 1 >= self.look
    }
}

/// Runs a statement until it ends or is stopped. Returns the number of steps at each row and at the end, and whether it
/// ended.
fn steps_at_rows(statement: &mut Statement<'_>) -> (Vec<i32>, bool) {
    statement.reset_status(StatementStatus::VmStep);
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    let ended = loop {
        match rows.next().map(|row| row.is_some()) {
            Ok(true) => steps.push(rows.as_ref().unwrap().get_status(StatementStatus::VmStep)),
            end => break end.is_ok(),
        }
    };
    drop(rows);
    steps.push(statement.get_status(StatementStatus::VmStep));
    (steps, ended)
}

/// Returns the longest run of steps between two moments when the caller could have stopped the statement: a check or a
/// row.
fn longest_gap(sqlite: &Sqlite, sql: &str) -> i32 {
    let mut statement = sqlite.rusqlite().prepare(sql).unwrap();
    let (mut moments, _) = steps_at_rows(&mut statement);
    sqlite.hooks().set_progress_steps(1);
    for look in 1.. {
        sqlite.hooks().interrupts.arm(Arc::new(StopAt { look, looks: AtomicU32::new(0) }));
        let (steps, ended) = steps_at_rows(&mut statement);
        sqlite.hooks().interrupts.disarm();
        if ended {
            break;
        }
        moments.extend(steps.last());
    }
    moments.push(0);
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "t\\.(id|a|c) (=|<|>|<>) [0-9]",
        "t\\.b (=|<|>=) 'b[0-9]'",
        "t\\.(id|a|c) IN \\([0-9], [0-9], 1[0-9]\\)",
        "t\\.(a|b|c) IS (NOT )?NULL",
        "t\\.id BETWEEN [0-9] AND 1[0-9]",
        Just("EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id)".to_owned()),
        Just("t.a = (SELECT max(n) FROM u WHERE u.t_id = t.id)".to_owned()),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        (inner.clone(), prop_oneof!["AND", "OR", "AND NOT"], inner).prop_map(|(a, op, b)| format!("({a} {op} {b})"))
    })
}

fn query() -> impl Strategy<Value = String> {
    let columns = prop_oneof![
        Just("t.*"),
        Just("t.id, upper(t.b), coalesce(t.c, 0)"),
        Just("count(*), sum(t.a), group_concat(t.b)"),
        Just("max(t.id)"),
        Just("min(t.b)"),
        Just("DISTINCT t.b"),
        Just("t.a, (SELECT sum(n) FROM u AS x WHERE x.t_id = t.id)"),
        Just("CASE WHEN t.a > 5 THEN 'x' ELSE t.b END"),
    ];
    let from = prop_oneof![
        Just("t"),
        Just("t JOIN u ON u.t_id = t.id"),
        Just("t LEFT JOIN u ON u.t_id = t.id"),
        Just("u LEFT JOIN t ON u.t_id = t.id"),
        Just("u RIGHT JOIN t ON u.t_id = t.id"),
        Just("(SELECT * FROM t LIMIT 9) AS t"),
        Just("(SELECT * FROM t WHERE id < 5 UNION ALL SELECT * FROM t WHERE id > 9) AS t"),
        Just("t JOIN (VALUES (1), (2), (3)) ON column1 = t.id"),
        Just("(WITH x AS MATERIALIZED (SELECT * FROM t) SELECT * FROM x) AS t"),
    ];
    let tail = prop_oneof![
        Just(""),
        Just("ORDER BY t.id"),
        Just("ORDER BY t.b DESC"),
        Just("ORDER BY t.c"),
        Just("GROUP BY t.b"),
        Just("LIMIT 3"),
        Just("ORDER BY t.id LIMIT 2 OFFSET 1"),
    ];
    (columns, from, condition(), tail).prop_map(|(c, f, w, t)| format!("SELECT {c} FROM {f} WHERE {w} {t}"))
}

#[test]
fn a_short_query_never_goes_far_without_a_look() {
    let sqlite = memory();
    sqlite
        .execute_batch(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 12)
             INSERT INTO t SELECT x, x*2, 'b' || x, nullif(x % 5, 0) FROM n;
             INSERT INTO u SELECT id, (id * 7) % 12 + 1, id FROM t",
        )
        .unwrap();
    let sqlite = RefCell::new(sqlite);
    // What is opaque is rejected and not counted, so that the seed does not decide how many are tried.
    let mut runner = TestRunner::new(Config {
        cases: 60,
        max_global_rejects: 10_000,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&query(), |sql| {
        let programs = sqlite.borrow_mut().explain(&sql).unwrap();
        let shape = ProgramAnalysis::of(&programs, &Strange::default()).shape;
        prop_assume!(!matches!(shape, Shape::Opaque(_)));
        let onces = programs[0].iter().filter(|op| &*op.opcode == "Once").count();
        let most = programs[0].len() * (onces + 1);
        let gap = longest_gap(&sqlite.borrow(), &sql);
        prop_assert!(usize::try_from(gap).unwrap() <= most, "{sql}: {gap} steps, and at most {most} expected");
        Ok(())
    });
    result.unwrap();
}

/// Records the times between two moments when the statement could have been stopped.
struct Clock(Mutex<(Instant, Vec<Duration>)>);

impl Interrupt for Clock {
    fn should_stop(&self) -> bool {
        let mut clock = self.0.lock().unwrap();
        let waited = clock.0.elapsed();
        clock.1.push(waited);
        clock.0 = Instant::now();
        false
    }
}

/// Returns the longest time between two checks or rows, in microseconds, and how the statement ended. Each time is the
/// minimum of several runs, because the machine may have run other work meanwhile.
fn longest_wait(sqlite: &Sqlite, sql: &str, values: &[&str]) -> (u128, &'static str) {
    let runs: Vec<_> = (0..4).map(|_| waits(sqlite, sql, values)).collect();
    let shortest = (0..runs[0].0.len()).filter_map(|at| runs.iter().filter_map(|(waits, _)| waits.get(at)).min());
    (shortest.max().map_or(0, Duration::as_micros), runs[0].1)
}

/// Returns the times between checks or rows of one run.
fn waits(sqlite: &Sqlite, sql: &str, values: &[&str]) -> (Vec<Duration>, &'static str) {
    let mut statement = sqlite.rusqlite().prepare(sql).unwrap();
    for (index, value) in (1..).zip(values) {
        statement.raw_bind_parameter(index, value).unwrap();
    }
    let clock = Arc::new(Clock(Mutex::new((Instant::now(), Vec::new()))));
    sqlite.hooks().set_progress_steps(1);
    sqlite.hooks().interrupts.arm(clock.clone());
    let mut rows = statement.raw_query();
    let end = loop {
        match rows.next() {
            Ok(Some(_)) => _ = clock.should_stop(),
            Ok(None) => break "done",
            Err(_) => break "too big",
        }
    };
    drop(rows);
    clock.should_stop();
    sqlite.hooks().interrupts.disarm();
    let waits = std::mem::take(&mut clock.0.lock().unwrap().1);
    (waits, end)
}

/// Prints figures for comparison with a new SQLite, and asserts no time. Shown with `--nocapture`.
#[test]
fn the_longest_waits_of_what_is_opaque() {
    let mut sqlite = memory();
    sqlite
        .execute_batch(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 20000)
             INSERT INTO t SELECT x, x*2, 'b' || x, abs(random()) FROM n; INSERT INTO plain SELECT id, c FROM t",
        )
        .unwrap();
    println!("longest time without a look, 20,000 rows");
    for (sql, is_opaque) in WAITS {
        let shape = analysis(&mut sqlite, sql).shape;
        assert_eq!(matches!(shape, Shape::Opaque(_)), *is_opaque, "{sql}: {shape:?}");
        let (wait, _) = longest_wait(&sqlite, sql, &[]);
        println!("{wait:>8} us  {shape:?}  {sql}");
    }
}
const WAITS: &[(&str, bool)] = &[
    ("SELECT * FROM t ORDER BY c", true),
    ("SELECT c, count(*) FROM t GROUP BY c", true),
    ("SELECT DISTINCT c FROM t", true),
    ("SELECT a FROM t UNION SELECT id FROM plain", true),
    ("SELECT count(*) FROM t", false),
    ("SELECT sum(a) OVER (ORDER BY id) FROM t", true),
    ("SELECT * FROM t WHERE a = 1 OR b = 'b2'", true),
    ("SELECT * FROM t JOIN plain ON plain.v = t.c", true),
    ("WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x+1 FROM n LIMIT 20000) SELECT sum(x) FROM n", true),
    ("SELECT json_group_array(a) FROM t", true),
    ("SELECT * FROM t", false),
    ("SELECT sum(a), max(b) FROM t", false),
    ("SELECT * FROM t WHERE c < 0", false),
    ("SELECT b, count(*) FROM t GROUP BY b", false),
];

#[test]
fn the_longest_waits_for_functions_under_the_limit() {
    let mut sqlite = memory();
    let bytes = INLINE_VALUE_BYTES;
    sqlite.rusqlite().set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes).unwrap();
    let long = |part: &str| part.repeat(65_000 / part.len());
    let [a, e, nines, quotes] = ["a", "\u{e9}", "9", "'"].map(long);
    let almost = |first: &str, last: &str, bytes: usize| format!("{first}{}{last}", "a".repeat(bytes));
    let numbers = format!("[{}1]", "1,".repeat(32_000));
    let object =
        |key: char| format!("{{{}\"end\":1}}", (0..2_000).map(|n| format!("\"{key}{n}\":1,")).collect::<String>());
    let (ours, theirs, half) = (object('k'), object('z'), &a[..32_000]);
    let tail = almost("", "b", 32_000);
    let waits: &[(&str, &[&str], bool)] = &[
        ("SELECT upper(?)", &[&a], false),
        ("SELECT length(?)", &[&e], false),
        ("SELECT substr(?, 60000)", &[&e], false),
        ("SELECT quote(?)", &[&a], false),
        ("SELECT quote(?)", &[&quotes[..32_000]], false),
        ("SELECT hex(?)", &[half], false),
        ("SELECT unhex(?)", &[&a], false),
        ("SELECT unistr(?)", &[&long("\\0041")], false),
        ("SELECT trim(?)", &[&long(" ")], false),
        ("SELECT soundex(?)", &[&a], false),
        ("SELECT randomblob(65000)", &[], false),
        ("SELECT randomblob(1000000000)", &[], false),
        ("SELECT ? || ?", &[half, half], false),
        ("SELECT concat_ws(',', ?, ?)", &[half, half], false),
        ("SELECT CAST(? AS INTEGER)", &[&nines], false),
        ("SELECT sum(?)", &[&nines], false),
        ("SELECT date('now', ?)", &[&long("+1 day ")], false),
        ("SELECT group_concat(?, ?)", &[half, half], false),
        ("SELECT ? = ? COLLATE NOCASE", &[&a, &a], false),
        ("SELECT ? LIKE ?", &[&a, &almost("%", "b", 100)], true),
        ("SELECT ? LIKE ?", &[half, &almost("%", "b", 4_000)], true),
        ("SELECT ? GLOB ?", &[half, &almost("*", "b", 4_000)], true),
        ("SELECT instr(?, ?)", &[&a, &tail], true),
        ("SELECT replace(?, ?, 'x')", &[&a, &tail], true),
        ("SELECT trim(?, ?)", &[half, &format!("{}a", &long("xyzw")[..4_000])], true),
        ("SELECT unhex(?, ?)", &[&e[..8_000], &almost("", "\u{e9}", 8_000)], true),
        ("SELECT strftime(?, 'now')", &[&long("%W")], true),
        ("SELECT printf(?)", &[&long("%e")], true),
        ("SELECT json(?)", &[&numbers], true),
        ("SELECT ? ->> '$[30000]'", &[&numbers], true),
        ("SELECT json_patch(?, ?)", &[&ours, &theirs], true),
    ];
    println!("longest time without a look, values up to {bytes} bytes");
    for (sql, values, is_opaque) in waits {
        let shape = analysis(&mut sqlite, sql).shape;
        assert_eq!(matches!(shape, Shape::Opaque(_)), *is_opaque, "{sql}: {shape:?}");
        let (wait, end) = longest_wait(&sqlite, sql, values);
        println!("{wait:>8} us  {end:<8} {shape:?}  {sql}");
    }
}
