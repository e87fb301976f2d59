//! The oracle: the same calls on plain rusqlite, one after the other, and what each must have told.
//!
//! Owns: what our calls mean in plain SQL. A batch, `execute_many` and a script are one transaction; each call inside a
//! transaction is undone as a whole when it fails, unless its text says OR FAIL; a transaction that failed to commit is
//! rolled back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::op::{End, Leave, Op, Statement, Step, Told, Work};
use super::schema::SCHEMA;
use super::statement::{Wants, closure, failed, run};
use super::ticks::{self, Ticks};

pub(super) struct Plain {
    pub(super) connection: Connection,
    /// The tables that the last statement inserted a row into.
    inserted: Arc<Mutex<BTreeSet<String>>>,
}

/// Where the replay of one operation stands: what ours told, and which of the calls that nobody waited for were done.
struct Replay<'a> {
    told: &'a [Told],
    done: &'a [bool],
    left: usize,
    /// What plain SQLite tells; as long as what was replayed so far.
    plainly: Vec<Told>,
    lost: bool,
}

/// No step is replayed beyond what ours told.
struct Over;

impl Plain {
    pub(super) fn new() -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        let inserted = Arc::<Mutex<BTreeSet<String>>>::default();
        let noted = inserted.clone();
        connection.update_hook(Some(move |action, _: &str, table: &str, _| {
            if action == rusqlite::hooks::Action::SQLITE_INSERT {
                noted.lock().unwrap_or_else(PoisonError::into_inner).insert(table.to_owned());
            }
        }))?;
        ticks::add_function(&connection, &Ticks::default())?;
        connection.execute_batch("PRAGMA foreign_keys = 1; PRAGMA temp_store = MEMORY")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection, inserted })
    }

    /// A copy of the content.
    pub(super) fn saved(&self) -> rusqlite::Result<Connection> {
        let mut copy = Connection::open_in_memory()?;
        Backup::new(&self.connection, &mut copy)?.step(-1)?;
        Ok(copy)
    }

    pub(super) fn restore(&mut self, saved: &Connection) -> rusqlite::Result<()> {
        Backup::new(saved, &mut self.connection)?.step(-1).map(drop)
    }

    /// What the operation must have told, if of the calls that nobody waited for those were done.
    pub(super) fn replay(&mut self, op: &Op, told: &[Told], done: &[bool]) -> rusqlite::Result<Vec<Told>> {
        let mut replay = Replay { told, done, left: 0, plainly: Vec::new(), lost: false };
        match op {
            Op::Call(work, _) => {
                let plainly = match replay.runs() {
                    Ok(Ok(())) => self.call(work)?,
                    Ok(Err(open)) => open,
                    Err(Over) => return Ok(replay.plainly),
                };
                replay.tell(plainly);
            }
            Op::Together(works) => {
                for work in works {
                    replay.plainly.push(self.call(work)?);
                }
            }
            Op::Transaction { steps, end, .. } => self.transaction(&mut replay, steps, *end)?,
            Op::Count(..) | Op::ReadCount(_) => replay.plainly = told.to_vec(),
        }
        Ok(replay.plainly)
    }

    fn control(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }

    fn one(&self, statement: &Statement, wants: Wants) -> Result<(u64, Option<i64>, Option<super::op::Table>), Told> {
        self.inserted.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let (changes, rows) = run(&self.connection, statement, wants)?;
        let inserted = self.inserted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = target(&statement.sql).is_some_and(|table| {
            // Of a virtual table the hook sees the tables behind it.
            inserted.contains(table) || (table == "text" && inserted.contains("text_content"))
        });
        Ok((changes, is_new.then(|| self.connection.last_insert_rowid()), rows))
    }

    /// Statements in the transaction that is open.
    fn body(&self, work: &Work) -> Result<Told, Told> {
        match work {
            Work::Execute(one) => {
                self.one(one, Wants::Nothing).map(|(changes, rowid, _)| Told::Executed(changes, rowid))
            }
            Work::Query(one) => self.one(one, Wants::All).map(|(.., rows)| Told::Rows(rows.unwrap_or_default())),
            Work::QueryOne(one) => {
                let (.., rows) = self.one(one, Wants::First)?;
                Ok(Told::Row(rows.and_then(|(_, rows)| rows.into_iter().next())))
            }
            Work::Many(sql, rows) => {
                // Without rows the text is judged all the same.
                self.connection.prepare(sql).map_err(failed)?;
                let one = |row: &Vec<_>| Statement { sql: sql.clone(), params: row.clone() };
                let changes = rows.iter().map(|row| self.one(&one(row), Wants::Nothing).map(|(changes, ..)| changes));
                changes.sum::<Result<u64, Told>>().map(Told::Changes)
            }
            Work::Batch(all) => {
                all.iter().map(|one| self.one(one, Wants::Any)).collect::<Result<_, _>>().map(Told::Batch)
            }
            Work::Script(sql) => {
                for text in sql.split_terminator(';') {
                    self.one(&Statement { sql: text.trim().into(), params: Vec::new() }, Wants::Any)?;
                }
                Ok(Told::Done)
            }
            Work::Closure(..) | Work::Reads(_) => Err(Told::Other("closures are not for transactions".into())),
        }
    }

    /// One call outside of a transaction.
    fn call(&self, work: &Work) -> rusqlite::Result<Told> {
        match work {
            Work::Execute(_) | Work::Query(_) | Work::QueryOne(_) => Ok(either(self.body(work))),
            Work::Many(..) | Work::Batch(_) | Work::Script(_) => {
                self.control("BEGIN IMMEDIATE")?;
                let told = self.body(work);
                let keeps = told.is_ok();
                self.end(keeps, either(told))
            }
            Work::Closure(all, commits) => {
                self.control("BEGIN IMMEDIATE")?;
                let (mut told, keeps) = closure(&self.connection, all, *commits);
                if !keeps {
                    told.push(Told::OwnError);
                }
                self.end(keeps, Told::Each(told))
            }
            Work::Reads(all) => {
                self.control("BEGIN")?;
                let (told, _) = closure(&self.connection, all, true);
                self.end(false, Told::Each(told))
            }
        }
    }

    /// Ends the transaction that is open, if it still is. A COMMIT that fails is what is told.
    fn end(&self, keeps: bool, told: Told) -> rusqlite::Result<Told> {
        let failure = if keeps { self.control("COMMIT").err() } else { None };
        if !self.connection.is_autocommit() {
            self.control("ROLLBACK")?;
        }
        Ok(failure.map_or(told, failed))
    }

    fn transaction(&self, replay: &mut Replay<'_>, steps: &[Step], end: End) -> rusqlite::Result<()> {
        let Ok(Ok(())) = replay.runs() else { return Ok(replay.tell_open()) };
        self.control("BEGIN IMMEDIATE")?;
        replay.tell(Told::Done);
        if self.steps(replay, steps)?.is_ok() {
            let keeps = match end {
                End::Commit(_) | End::Body(true) => replay.runs().is_ok_and(|runs| runs.is_ok()),
                _ => false,
            };
            let told = match end {
                End::Body(false) => Told::OwnError,
                End::Drops => Told::Done,
                _ if replay.lost => Told::Lost,
                _ => Told::Done,
            };
            let told = self.end(keeps && !replay.lost, told)?;
            replay.tell(told);
        } else if !self.connection.is_autocommit() {
            self.control("ROLLBACK")?;
        }
        Ok(())
    }

    fn steps(&self, replay: &mut Replay<'_>, steps: &[Step]) -> rusqlite::Result<Result<(), Over>> {
        for step in steps {
            let went_on = match step {
                Step::Call(work, leave) => self.step(replay, work, *leave)?,
                Step::Nested(inside, end) => self.nested(replay, inside, *end)?,
            };
            if went_on.is_err() {
                return Ok(went_on);
            }
            replay.lost |= self.connection.is_autocommit();
        }
        Ok(Ok(()))
    }

    fn step(&self, replay: &mut Replay<'_>, work: &Work, _: Leave) -> rusqlite::Result<Result<(), Over>> {
        match replay.runs() {
            Err(Over) => return Ok(Err(Over)),
            Ok(Err(_)) => {
                replay.tell_open();
                return Ok(Ok(()));
            }
            Ok(Ok(())) => {}
        }
        // A deadline that interrupts a write ends the transaction, which only the next call tells.
        if replay.lost {
            replay.tell(Told::Lost);
            return Ok(Ok(()));
        }
        self.control("SAVEPOINT call")?;
        let told = self.body(work);
        if !self.connection.is_autocommit() {
            self.control(if told.is_ok() || keeps_part(work) {
                "RELEASE call"
            } else {
                "ROLLBACK TO call; RELEASE call"
            })?;
        }
        replay.tell(either(told));
        Ok(Ok(()))
    }

    fn nested(&self, replay: &mut Replay<'_>, steps: &[Step], end: End) -> rusqlite::Result<Result<(), Over>> {
        match replay.runs() {
            Err(Over) => return Ok(Err(Over)),
            Ok(Err(_)) => {
                replay.tell_open();
                return Ok(Ok(()));
            }
            Ok(Ok(())) if replay.lost => {
                replay.tell(Told::Lost);
                return Ok(Ok(()));
            }
            Ok(Ok(())) => {}
        }
        self.control("SAVEPOINT nested")?;
        replay.tell(Told::Done);
        if self.steps(replay, steps)?.is_err() {
            return Ok(Err(Over));
        }
        let keeps = match end {
            End::Commit(_) | End::Body(true) => match replay.runs() {
                Err(Over) => return Ok(Err(Over)),
                Ok(runs) => runs.is_ok(),
            },
            _ => false,
        };
        if !self.connection.is_autocommit() {
            self.control(if keeps { "RELEASE nested" } else { "ROLLBACK TO nested; RELEASE nested" })?;
        }
        replay.tell(match end {
            End::Body(false) => Told::OwnError,
            End::Drops => Told::Done,
            _ if replay.lost => Told::Lost,
            _ => Told::Done,
        });
        Ok(Ok(()))
    }
}

impl Replay<'_> {
    /// Whether the next call was done: `Ok(Err)` if its deadline passed, or if nobody waited for it and it was not.
    fn runs(&mut self) -> Result<Result<(), Told>, Over> {
        match self.told.get(self.plainly.len()) {
            None => Err(Over),
            Some(Told::TimedOut) => {
                // An interrupted write ends the transaction.
                self.lost |= self.told.get(self.plainly.len() + 1) == Some(&Told::Lost);
                Ok(Err(Told::TimedOut))
            }
            Some(Told::Left) => {
                let done = self.done.get(self.left).copied().unwrap_or(false);
                self.left += 1;
                Ok(if done { Ok(()) } else { Err(Told::Left) })
            }
            Some(_) => Ok(Ok(())),
        }
    }

    /// What plain SQLite told; of a call that nobody waited for nothing is compared.
    fn tell(&mut self, plainly: Told) {
        let at = self.plainly.len();
        let open = self.told.get(at).filter(|told| told.is_open());
        self.plainly.push(open.cloned().unwrap_or(plainly));
    }

    fn tell_open(&mut self) {
        self.tell(Told::Left);
    }
}

fn either(told: Result<Told, Told>) -> Told {
    told.unwrap_or_else(|failure| failure)
}

/// The table that an INSERT names.
fn target(sql: &str) -> Option<&str> {
    let is_insert = sql.starts_with("INSERT") || sql.starts_with("REPLACE");
    let rest = sql.split_once("INTO ").filter(|_| is_insert)?.1;
    rest.split([' ', '(']).next()
}

/// Inside a transaction a failed statement keeps a part if its own text says so.
fn keeps_part(work: &Work) -> bool {
    matches!(work, Work::Execute(one) | Work::Query(one) | Work::QueryOne(one) if one.sql.contains("OR FAIL"))
}
