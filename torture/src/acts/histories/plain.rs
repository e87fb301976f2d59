//! The oracle: the same calls on plain rusqlite, one after the other, and the expected result of each.
//!
//! Owns: what Flatwater's calls mean in plain SQL. A batch, `execute_many` and a script are one transaction, which is
//! rolled back if its commit fails. Leaves out: transactions of several calls (`replay`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::op::{Statement, Table, Told, Work};
use super::schema::SCHEMA;
use super::statement::{Wants, closure, failed, run};
use super::ticks::{self, Ticks};

pub(super) struct Plain {
    pub(super) connection: Connection,
    /// The tables that the last statement inserted into.
    inserted: Arc<Mutex<BTreeSet<String>>>,
}

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

    /// Returns a copy of the content.
    pub(super) fn saved(&self) -> rusqlite::Result<Connection> {
        let mut copy = Connection::open_in_memory()?;
        Backup::new(&self.connection, &mut copy)?.step(-1)?;
        Ok(copy)
    }

    pub(super) fn restore(&mut self, saved: &Connection) -> rusqlite::Result<()> {
        Backup::new(saved, &mut self.connection)?.step(-1).map(drop)
    }

    pub(super) fn control(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }

    fn one(&self, statement: &Statement, wants: Wants) -> Result<(u64, Option<i64>, Option<Table>), Told> {
        self.inserted.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let (changes, rows) = run(&self.connection, statement, wants)?;
        let inserted = self.inserted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = target(&statement.sql).is_some_and(|table| {
            // For a virtual table, the hook reports its shadow tables.
            inserted.contains(table) || (table == "text" && inserted.contains("text_content"))
        });
        Ok((changes, is_new.then(|| self.connection.last_insert_rowid()), rows))
    }

    /// Runs statements in the open transaction.
    pub(super) fn body(&self, work: &Work) -> Result<Told, Told> {
        match work {
            Work::Execute(one) => {
                self.one(one, Wants::Nothing).map(|(changes, rowid, _)| Told::Executed(changes, rowid))
            }
            Work::Query(one) => self.one(one, Wants::All).map(|(.., rows)| Told::Rows(rows.unwrap_or_default())),
            Work::QueryOne(one) => {
                let (.., rows) = self.one(one, Wants::First)?;
                Ok(Told::AnyOf(rows.map_or_else(Vec::new, |(_, rows)| rows)))
            }
            Work::Many(sql, rows) => {
                // Without rows, the text is still checked.
                self.connection.prepare(sql).map_err(failed)?;
                let one = |row: &Vec<_>| Statement { sql: sql.clone(), params: row.clone() };
                let changes = rows.iter().enumerate().map(|(number, row)| {
                    let told = self.one(&one(row), Wants::Nothing);
                    told.map(|(changes, ..)| changes).map_err(|failure| in_row(number, failure))
                });
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

    /// Runs one call outside a transaction.
    pub(super) fn call(&self, work: &Work) -> rusqlite::Result<Told> {
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

    /// Ends the transaction if it is still open. If COMMIT fails, its error is the result.
    pub(super) fn end(&self, keeps: bool, told: Told) -> rusqlite::Result<Told> {
        let failure = if keeps { self.control("COMMIT").err() } else { None };
        if !self.connection.is_autocommit() {
            self.control("ROLLBACK")?;
        }
        Ok(failure.map_or(told, failed))
    }
}

pub(super) fn either(told: Result<Told, Told>) -> Told {
    told.unwrap_or_else(|failure| failure)
}

/// Names the row of parameters that failed, in the words of `execute_many`.
fn in_row(number: usize, failure: Told) -> Told {
    match failure {
        Told::Sqlite(code, Some(message)) => {
            Told::Sqlite(code, Some(format!("row {number}, counted from 0: {message}")))
        }
        failure => failure,
    }
}

/// Returns the table that an INSERT names.
fn target(sql: &str) -> Option<&str> {
    let is_insert = sql.starts_with("INSERT") || sql.starts_with("REPLACE");
    let rest = sql.split_once("INTO ").filter(|_| is_insert)?.1;
    rest.split([' ', '(']).next()
}
