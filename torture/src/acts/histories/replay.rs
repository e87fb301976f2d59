//! One operation on plain SQLite, as ours says it went: which calls were done, and which were given up.
//!
//! Owns: what transactions mean in plain SQL. Each call inside one is undone as a whole when it fails, unless its text
//! says OR FAIL. A call whose deadline passed did nothing; one that nobody waited for was done or not, as is supposed.

use super::op::{End, Op, Step, Told, Work};
use super::plain::{Plain, either};

/// Where the replay of one operation stands: what ours told, and which of the calls that nobody waited for were done.
struct Replay<'a> {
    told: &'a [Told],
    done: &'a [bool],
    left: usize,
    /// What plain SQLite told of what was replayed so far.
    plainly: Vec<Told>,
    lost: bool,
}

impl Plain {
    /// What the operation must have told, if of the calls that nobody waited for those were done.
    pub(super) fn replay(&mut self, op: &Op, told: &[Told], done: &[bool]) -> rusqlite::Result<Vec<Told>> {
        let mut replay = Replay { told, done, left: 0, plainly: Vec::new(), lost: false };
        match op {
            Op::Call(work, _) => {
                if replay.is_done() {
                    replay.tell(self.call(work)?);
                } else {
                    replay.tell_nothing();
                }
            }
            Op::Together(works) => {
                for work in works {
                    replay.tell(self.call(work)?);
                }
            }
            Op::Transaction { steps, end, .. } => self.transaction(&mut replay, steps, *end)?,
            // What they tell is compared elsewhere.
            Op::Count(..) | Op::ReadCount(_) => replay.plainly = told.to_vec(),
        }
        Ok(replay.plainly)
    }

    fn transaction(&self, replay: &mut Replay<'_>, steps: &[Step], end: End) -> rusqlite::Result<()> {
        if !replay.is_done() {
            replay.tell_nothing();
            return Ok(());
        }
        self.control("BEGIN IMMEDIATE")?;
        replay.tell(Told::Done);
        self.steps(replay, steps)?;
        let keeps = replay.is_kept(end) && !replay.lost;
        let told = self.end(keeps, replay.told_by(end))?;
        replay.tell(told);
        Ok(())
    }

    fn steps(&self, replay: &mut Replay<'_>, steps: &[Step]) -> rusqlite::Result<()> {
        for step in steps {
            if !replay.is_done() {
                replay.tell_nothing();
            } else if replay.lost {
                replay.tell(Told::Lost);
            } else {
                match step {
                    Step::Call(work, _) => replay.tell(self.step(work)?),
                    Step::Nested(inside, end) => self.nested(replay, inside, *end)?,
                }
                replay.lost |= self.connection.is_autocommit();
            }
        }
        Ok(())
    }

    fn step(&self, work: &Work) -> rusqlite::Result<Told> {
        self.control("SAVEPOINT call")?;
        let told = self.body(work);
        if !self.connection.is_autocommit() {
            let keeps = told.is_ok() || keeps_part(work);
            self.control(if keeps { "RELEASE call" } else { "ROLLBACK TO call; RELEASE call" })?;
        }
        Ok(either(told))
    }

    fn nested(&self, replay: &mut Replay<'_>, steps: &[Step], end: End) -> rusqlite::Result<()> {
        self.control("SAVEPOINT nested")?;
        replay.tell(Told::Done);
        self.steps(replay, steps)?;
        let keeps = replay.is_kept(end);
        if !self.connection.is_autocommit() {
            self.control(if keeps { "RELEASE nested" } else { "ROLLBACK TO nested; RELEASE nested" })?;
        }
        replay.tell(replay.told_by(end));
        Ok(())
    }
}

impl Replay<'_> {
    /// Whether the next call was done: not if its deadline passed, nor if nobody waited for it and it is supposed so.
    fn is_done(&mut self) -> bool {
        let at = self.plainly.len();
        match self.told.get(at) {
            Some(Told::TimedOut) => {
                // A deadline that interrupts a write ends the transaction, which only the next call tells.
                self.lost |= self.told.get(at + 1) == Some(&Told::Lost);
                false
            }
            Some(Told::Left) => {
                self.left += 1;
                self.done.get(self.left - 1).copied().unwrap_or(false)
            }
            _ => true,
        }
    }

    /// Whether a transaction that ends so keeps what it did.
    fn is_kept(&mut self, end: End) -> bool {
        matches!(end, End::Commit(_) | End::Body(true)) && self.is_done()
    }

    fn told_by(&self, end: End) -> Told {
        match end {
            End::Body(false) => Told::OwnError,
            End::Commit(_) | End::Rollback | End::Body(true) if self.lost => Told::Lost,
            _ => Told::Done,
        }
    }

    /// What plain SQLite told; of a call that nobody waited for nothing is compared.
    fn tell(&mut self, plainly: Told) {
        let open = self.told.get(self.plainly.len()).filter(|told| told.is_open());
        self.plainly.push(open.cloned().unwrap_or(plainly));
    }

    /// Of a call that was not done.
    fn tell_nothing(&mut self) {
        self.tell(Told::Left);
    }
}

/// Inside a transaction a failed statement keeps a part if its own text says so.
fn keeps_part(work: &Work) -> bool {
    matches!(work, Work::Execute(one) | Work::Query(one) | Work::QueryOne(one) if one.sql.contains("OR FAIL"))
}
