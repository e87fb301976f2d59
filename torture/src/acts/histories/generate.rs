//! Random histories: the operations of each task, in order.
//!
//! A single task does anything. With many tasks, each statement on a shared table records when it ran, through a user
//! function; a statement that records nothing only uses rows and tables of its own task.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use rusqlite::types::Value;

use super::op::{End, History, Leave, Op, Part, Statement, Step, Work};
use super::owned;
use super::palette::Palette;
use super::schema::{COUNTERS, DEFINITIONS, EXTRA, REFUSED};

/// Generates the operations of one task.
struct Maker<'a> {
    rng: &'a mut StdRng,
    palette: &'a Palette,
    task: i64,
    /// Whether other tasks write at the same time.
    shares: bool,
    /// The number of the operation that is being generated.
    unit: i64,
}

impl Maker<'_> {
    /// Returns an operation. `unit` is its number among those of all tasks.
    fn op(&mut self, unit: i64) -> Op {
        self.unit = unit;
        match self.rng.random_range(0..100) {
            0..12 => self.transaction(),
            12..17 => Op::Together((0..self.rng.random_range(2..9)).map(|at| self.member(unit + at)).collect()),
            17..21 => {
                let id = self.rng.random_range(1..=COUNTERS);
                if self.one_in(3) { Op::ReadCount(id) } else { Op::Count(id, self.leave(true)) }
            }
            21..27 => Op::Call(self.closure(), self.leave(true)),
            27..35 => Op::Call(self.several(), self.leave(true)),
            35..40 if !self.shares => Op::Call(self.read(), self.leave(true)),
            35..60 if self.shares => Op::Call(self.owned(), self.leave(true)),
            _ => {
                // If an operation leaves no trace of its own, it cannot be known whether it was done.
                let leaves = !self.shares;
                Op::Call(self.single(), self.leave(leaves))
            }
        }
    }

    /// Returns one of several calls that are made together, with its own number.
    fn member(&mut self, unit: i64) -> Work {
        self.unit = unit;
        self.single()
    }

    fn one_in(&mut self, number: u32) -> bool {
        self.rng.random_range(0..number) == 0
    }

    fn leave(&mut self, leaves: bool) -> Leave {
        if !leaves {
            return Leave::Stays;
        }
        match self.rng.random_range(0..12) {
            0 => Leave::After { polls: self.rng.random_range(0..4), at_once: self.rng.random() },
            1 => Leave::Deadline(Duration::from_micros(self.rng.random_range(0..3000))),
            _ => Leave::Stays,
        }
    }

    fn value(&mut self) -> Value {
        match self.rng.random_range(0..30) {
            0 => Value::Null,
            1 => Value::Real(f64::from(self.rng.random_range(0..6_u8)) / 2.0),
            2 => Value::Text("x".repeat(self.rng.random_range(0..6))),
            3 => Value::Blob(vec![7; self.rng.random_range(0..300)]),
            4 if self.one_in(4) => Value::Text("long ".repeat(self.rng.random_range(10..3000))),
            _ => Value::Integer(self.rng.random_range(0..12)),
        }
    }

    /// Returns a text with its placeholders replaced, and values for its parameters.
    fn rendered(&mut self, text: &str) -> Statement {
        let (mut sql, mut params) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find(['?', '@']) {
            sql.push_str(&rest[..at]);
            rest = &rest[at..];
            let mark = ["@?", "@WHERE", "@ALL", "?"].into_iter().find(|mark| rest.starts_with(mark)).unwrap_or("?");
            let is_value = mark.ends_with('?');
            if mark != "?" && self.shares {
                params.push(Value::Integer(self.unit));
            }
            if is_value {
                params.push(self.value());
            }
            sql.push_str(match (mark, self.shares) {
                ("@?", true) => "at(?, ?)",
                ("@WHERE", true) => "WHERE at(?, 1) AND",
                ("@ALL", true) => "WHERE at(?, 1)",
                ("@WHERE", false) => "WHERE",
                ("@ALL", false) => "",
                _ => "?",
            });
            rest = &rest[mark.len()..];
        }
        sql.push_str(rest);
        // Sometimes one parameter too many or too few.
        if !self.shares || !text.contains('@') {
            match self.rng.random_range(0..120) {
                0 => params.push(Value::Null),
                1 => drop(params.pop()),
                _ => {}
            }
        }
        Statement { sql, params }
    }

    fn pick(&mut self, from: &[&'static str]) -> Statement {
        let text = *from.choose(self.rng).expect("the lists are not empty");
        self.rendered(text)
    }

    fn write(&mut self) -> Statement {
        let (palette, is_hostile) = (self.palette, self.one_in(12));
        self.pick(if is_hostile { &palette.hostile } else { &palette.writes })
    }

    fn returning(&mut self) -> Statement {
        let palette = self.palette;
        self.pick(&palette.returning)
    }

    fn reading(&mut self) -> Statement {
        let palette = self.palette;
        self.pick(&palette.reads)
    }

    /// Returns a definition, or a write if `from` has none.
    fn definition(&mut self, from: &[&'static str]) -> Statement {
        if self.palette.defines { self.pick(from) } else { self.write() }
    }

    /// Returns one write with one text.
    fn single(&mut self) -> Work {
        match self.rng.random_range(0..12) {
            0 | 1 => Work::Query(self.returning()),
            2 => Work::QueryOne(self.returning()),
            3 => {
                let first = self.write();
                let count = self.rng.random_range(0..5);
                let rows = (0..count).map(|_| first.params.iter().map(|value| self.like(value)).collect()).collect();
                Work::Many(first.sql, rows)
            }
            4 if !self.shares => self.any(),
            5 => self.several(),
            _ => Work::Execute(self.write()),
        }
    }

    /// Returns another value for a parameter, unless the value is the operation's number.
    fn like(&mut self, value: &Value) -> Value {
        let is_unit = self.shares && *value == Value::Integer(self.unit);
        if is_unit { value.clone() } else { self.value() }
    }

    /// Returns a call that is wrong, is refused, or has effects on other tasks' texts.
    fn any(&mut self) -> Work {
        match self.rng.random_range(0..10) {
            0 => Work::Execute(self.pick(REFUSED)),
            1 => Work::Query(self.write()),
            2 => Work::Execute(self.reading()),
            3..6 => Work::Execute(self.definition(DEFINITIONS)),
            _ => Work::Execute(self.definition(EXTRA)),
        }
    }

    fn read(&mut self) -> Work {
        match self.rng.random_range(0..5) {
            0 => Work::QueryOne(self.reading()),
            1 => Work::Query(Statement { sql: "SELECT * FROM extra".into(), params: Vec::new() }),
            2 => Work::Reads((0..self.rng.random_range(1..4)).map(|_| self.reading()).collect()),
            _ => Work::Query(self.reading()),
        }
    }

    /// Returns the statements of one call or transaction. The first one writes the task's mark.
    fn statements(&mut self, most: usize) -> Vec<Statement> {
        let mut all = vec![owned::mark(self.task, self.unit, self.shares)];
        for _ in 0..self.rng.random_range(0..most) {
            let next = match self.rng.random_range(0..12) {
                0 => self.returning(),
                1 => self.definition(DEFINITIONS),
                2 if !self.shares => self.definition(EXTRA),
                3 => self.reading(),
                _ => self.write(),
            };
            all.push(next);
        }
        all
    }

    /// Returns a batch or a script.
    fn several(&mut self) -> Work {
        if self.one_in(4) {
            let mut all = vec![owned::mark_as_text(self.task, self.unit, self.shares)];
            let count = if self.palette.defines { self.rng.random_range(0..4) } else { 0 };
            all.extend((0..count).map(|_| self.pick(DEFINITIONS).sql));
            return Work::Script(all.join("; ") + ";");
        }
        Work::Batch(self.statements(5))
    }

    fn closure(&mut self) -> Work {
        let commits = !self.one_in(4);
        Work::Closure(self.statements(6), commits)
    }

    fn transaction(&mut self) -> Op {
        let deadline = self.one_in(8).then(|| Duration::from_micros(self.rng.random_range(0..3000)));
        let mark = owned::mark(self.task, self.unit, self.shares);
        let mut steps = vec![Step::Call(Work::Execute(mark), Leave::Stays)];
        // Each dropped call may have been done or not, and all combinations are tried.
        let mut may_leave = 2;
        steps.extend(self.steps(0, &mut may_leave));
        Op::Transaction { steps, end: self.end(&mut may_leave), deadline }
    }

    fn steps(&mut self, depth: u32, may_leave: &mut u32) -> Vec<Step> {
        let count = self.rng.random_range(0..6);
        (0..count)
            .map(|_| {
                if depth < 3 && self.one_in(4) {
                    let inside = self.steps(depth + 1, may_leave);
                    // With many tasks, the content that is compared would not show whether it was kept.
                    let mut never = 0;
                    return Step::Nested(inside, self.end(if self.shares { &mut never } else { may_leave }));
                }
                let leave = self.drops(may_leave);
                let work = match self.rng.random_range(0..4) {
                    // The content of its task must show whether it was done.
                    _ if self.shares && leave != Leave::Stays => self.owned(),
                    0 => self.read_inside(),
                    _ => self.single(),
                };
                Step::Call(work, leave)
            })
            .collect()
    }

    fn owned(&mut self) -> Work {
        owned::work(self.rng, self.task, self.unit, self.palette.defines)
    }

    fn read_inside(&mut self) -> Work {
        if self.one_in(3) { Work::QueryOne(self.reading()) } else { Work::Query(self.reading()) }
    }

    fn drops(&mut self, may_leave: &mut u32) -> Leave {
        if *may_leave > 0 && self.one_in(20) {
            *may_leave -= 1;
            return Leave::After { polls: self.rng.random_range(0..3), at_once: self.rng.random() };
        }
        Leave::Stays
    }

    fn end(&mut self, may_leave: &mut u32) -> End {
        match self.rng.random_range(0..10) {
            0 => End::Rollback,
            1 => End::Drops,
            2 => End::Body(false),
            3 | 4 => End::Body(true),
            _ => End::Commit(self.drops(may_leave)),
        }
    }
}

/// Returns a history of `tasks` tasks with about `total` operations.
pub(super) fn history(rng: &mut StdRng, tasks: usize, total: usize) -> History {
    let each = (total / tasks).max(2);
    let shares = tasks > 1;
    let palette = Palette::random(rng);
    (0..tasks)
        .map(|task| {
            let mut own = rand::SeedableRng::seed_from_u64(rng.next_u64());
            let mut maker = Maker { rng: &mut own, palette: &palette, task: task as i64, shares, unit: 0 };
            (0..each).map(|at| unit(task, at)).map(|number| Part { number, op: maker.op(number) }).collect()
        })
        .collect()
}

/// Returns the number of an operation, which is larger than any small random value. The numbers after it are for its
/// members.
fn unit(task: usize, at: usize) -> i64 {
    ((task + 1) * 1_000_000 + at * 100) as i64
}
