//! Replays one operation on plain SQLite with the same outcome as in Flatwater: which calls were done, and which were
//! dropped.
//!
//! Owns: what transactions mean in plain SQL. If a call inside one fails, it is undone completely, unless its text says
//! OR FAIL. A call whose deadline passed did nothing. For a dropped call, the replay is given an assumption of whether
//! it was done.

use super::op::{End, Op, Step, Told, Work};
use super::plain::{Plain, either};

/// The state of a replay: Flatwater's results, and which dropped calls are assumed to be done.
struct Replay<'a> {
    told: &'a [Told],
    done: &'a [bool],
    left: usize,
    /// The results of plain SQLite so far.
    plainly: Vec<Told>,
    lost: bool,
    /// The last call that was not done may have ended its transaction.
    may_be_lost: bool,
}

impl Plain {
    /// Returns the expected results of the operation, if the dropped calls were done as `done` says.
    pub(super) fn replay(&mut self, op: &Op, told: &[Told], done: &[bool]) -> rusqlite::Result<Vec<Told>> {
        let mut replay = Replay { told, done, left: 0, plainly: Vec::new(), lost: false, may_be_lost: false };
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
            // Their results are compared elsewhere.
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
        replay.look();
        let keeps = replay.is_kept(end) && !replay.lost;
        let told = self.end(keeps, replay.told_by(end))?;
        replay.tell(told);
        Ok(())
    }

    fn steps(&self, replay: &mut Replay<'_>, steps: &[Step]) -> rusqlite::Result<()> {
        for step in steps {
            replay.look();
            if !replay.is_done() {
                replay.tell_nothing();
            } else if replay.lost {
                replay.tell(Told::Lost);
            } else {
                match step {
                    Step::Call(work, _) => {
                        replay.may_be_lost = false;
                        replay.tell(self.step(work)?);
                    }
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
        replay.may_be_lost = false;
        replay.tell(Told::Done);
        self.steps(replay, steps)?;
        replay.look();
        let keeps = replay.is_kept(end);
        if !self.connection.is_autocommit() {
            self.control(if keeps { "RELEASE nested" } else { "ROLLBACK TO nested; RELEASE nested" })?;
        }
        replay.tell(replay.told_by(end));
        Ok(())
    }
}

impl Replay<'_> {
    /// Returns whether the next call was done: not if its deadline passed, nor if it was dropped and is assumed not to
    /// be done.
    fn is_done(&mut self) -> bool {
        let at = self.plainly.len();
        match self.told.get(at) {
            Some(Told::TimedOut) => {
                // A deadline that interrupts a write ends the transaction, which only the next call reports.
                self.lost |= self.told.get(at + 1) == Some(&Told::Lost);
                self.may_be_lost = true;
                false
            }
            Some(Told::Left) => {
                self.left += 1;
                let is_done = self.done.get(self.left - 1).copied().unwrap_or(false);
                // So does a caller who leaves; of several it is not known which.
                let next = self.told.iter().skip(at).find(|told| **told != Told::Left);
                self.lost |= !is_done && next == Some(&Told::Lost);
                self.may_be_lost |= !is_done;
                is_done
            }
            _ => true,
        }
    }

    /// Notices that a call which was not done took its transaction along. A rollback in between does not report that.
    fn look(&mut self) {
        self.lost |= self.may_be_lost && self.told.get(self.plainly.len()) == Some(&Told::Lost);
    }

    /// Returns whether a transaction with this end keeps its changes.
    fn is_kept(&mut self, end: End) -> bool {
        matches!(end, End::Commit(_) | End::Body(true)) && self.is_done()
    }

    fn told_by(&self, end: End) -> Told {
        match end {
            End::Body(false) => Told::OwnError,
            End::Commit(_) | End::Body(true) if self.lost => Told::Lost,
            _ => Told::Done,
        }
    }

    /// Records a result of plain SQLite. The result of a dropped call is not compared.
    fn tell(&mut self, plainly: Told) {
        let open = self.told.get(self.plainly.len()).filter(|told| told.is_open());
        self.plainly.push(open.cloned().unwrap_or(plainly));
    }

    /// Records the result of a call that was not done.
    fn tell_nothing(&mut self) {
        self.tell(Told::Left);
    }
}

/// Returns whether a failed statement inside a transaction keeps part of its work, because its text says so.
fn keeps_part(work: &Work) -> bool {
    matches!(work, Work::Execute(one) | Work::Query(one) | Work::QueryOne(one) if one.sql.contains("OR FAIL"))
}
