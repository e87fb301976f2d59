//! Applying migrations: each step in a transaction of its own, with foreign keys off.
//!
//! Owns: the steps from reading the history to the last COMMIT. Runs on the thread that holds the slot, from the first
//! step to the last. Invariants: a step and its row of the history are committed together; what is next is decided
//! inside of that transaction, so whoever comes later finds it done; the connection on which steps ran serves no other
//! request. Leaves out: the decision what is next (`migrations`).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::AuthEvent;
use rusqlite::ffi;

use super::connection::{take_back, with_foreign_keys};
use crate::connection::exclusive::migration::{
    StatementPlace, add_to_history, create_history, history, run_statement, tables, violations,
};
use crate::connection::repair::exclusive_policy;
use crate::connection::run::failures::explain_write;
use crate::migrations::{ForeignKeyCheck, Migrations, Step, next};
use crate::queue::ticket::{Ticket, late, left_request};
use crate::workers::Answer;
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::{commit, settle};
use crate::workers::writer::commits_seen::changes;
use crate::workers::writer::interrupts::{arm, disarm};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result, TimeoutEffect, timed_out};
use flatwater_sql::dependencies::change::Writes;
use flatwater_sql::policy;
use flatwater_sql::text::terminated;

/// Applies what is not applied yet, and returns the names of the steps that were applied here.
pub(crate) fn migrate(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    migrations: &Migrations,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let migration = Migration { shared, migrations, ticket };
    let result = migration.run(writer).map_err(|error| named(writer, error).in_operation("migrate"));
    let error = result.as_ref().err().cloned();
    Ok(Answer::Returned(Box::new(result), error))
}

/// Names what is in the way of the history, too, which is written first.
fn named(writer: &mut WriterConnection, error: Error) -> Error {
    match writer.connection() {
        Ok(connection) if error.hint().is_none() => explain_write(&connection.sqlite, error, &Writes::Everything),
        _ => error,
    }
}

struct Migration<'a> {
    shared: &'a WriterShared,
    migrations: &'a Migrations,
    ticket: &'a Arc<Ticket>,
}

/// What one transaction did.
enum Ran<'a> {
    Nothing,
    Step(&'a Step),
    /// It was rolled back: violations were found, and it must be known which of them are old.
    LookFirst,
    /// The next step needs to run outside.
    Outside(&'a Step),
}

impl<'a> Migration<'a> {
    fn run(&self, writer: &mut WriterConnection) -> Result<Vec<String>> {
        let is_done = self.shared.twice(writer, |writer| match history(&writer.connection()?.sqlite)? {
            Some(applied) => Ok(next(self.migrations.steps()?, &applied, self.migrations.ignore_missing)?.is_none()),
            None => Ok(false),
        })?;
        let mut done = Vec::new();
        if is_done {
            return Ok(done);
        }
        let result = loop {
            match self.shared.twice(writer, |writer| self.one(writer)) {
                Ok(Some(step)) => done.push(step.name.clone()),
                Ok(None) => break Ok(()),
                Err(error) => break Err(self.ended(error, &done)),
            }
        };
        disarm(writer);
        let taken_back = take_back(writer, self.shared, self.ticket);
        result.and(taken_back).map(|_| done)
    }

    fn ended(&self, error: Error, done: &[String]) -> Error {
        let error = self.shared.ended(self.ticket.timed(error), self.ticket);
        match (error.kind(), done) {
            (_, []) => error,
            (ErrorKind::Timeout, _) => late(TimeoutEffect::Unknown),
            _ => error.with_hint("the migrations before it are applied"),
        }
    }

    /// Applies the next step, if there is one.
    fn one(&self, writer: &mut WriterConnection) -> Result<Option<&'a Step>> {
        if self.ticket.is_past_deadline() {
            return Err(late(TimeoutEffect::No));
        }
        if self.ticket.is_interrupted() {
            return Err(left_request());
        }
        let ran = match self.without_foreign_keys(writer, false)? {
            Ran::LookFirst => self.without_foreign_keys(writer, true)?,
            ran => ran,
        };
        match ran {
            Ran::Step(step) => Ok(Some(step)),
            Ran::Outside(step) => self.outside(writer, step).map(|()| Some(step)),
            Ran::Nothing | Ran::LookFirst => Ok(None),
        }
    }

    fn without_foreign_keys(&self, writer: &mut WriterConnection, looks_first: bool) -> Result<Ran<'a>> {
        with_foreign_keys(writer, self.ticket, false, |writer| self.in_transaction(writer, looks_first))
    }

    fn in_transaction(&self, writer: &mut WriterConnection, looks_first: bool) -> Result<Ran<'a>> {
        writer.begin()?;
        match self.next(writer, looks_first) {
            Ok(Ran::LookFirst) => {
                writer.rollback();
                Ok(Ran::LookFirst)
            }
            Ok(ran) => match (self.commit(writer), &ran) {
                (Err(error), Ran::Step(step)) => Err(of_step(step, error)),
                (committed, _) => committed.map(|()| ran),
            },
            Err(error) => {
                writer.rollback();
                Err(error)
            }
        }
    }

    /// Decides what is next, and runs it if that is a step in a transaction. The transaction is open.
    fn next(&self, writer: &mut WriterConnection, looks_first: bool) -> Result<Ran<'a>> {
        let connection = writer.connection()?;
        if history(&connection.sqlite)?.is_none() {
            create_history(&connection.sqlite)?;
        }
        let applied = history(&connection.sqlite)?.unwrap_or_default();
        let Some(step) = next(self.migrations.steps()?, &applied, self.migrations.ignore_missing)? else {
            return Ok(Ran::Nothing);
        };
        if self.ticket.has_left_in_commit() {
            return Err(left_request());
        }
        if !step.in_transaction {
            return Ok(Ran::Outside(step));
        }
        let checks = self.shared.context.options.foreign_keys;
        let before = if looks_first && checks { Some(violations(&connection.sqlite, |_| true)?) } else { None };
        let existing = tables(&connection.sqlite)?;
        let mut touched = HashSet::new();
        self.statements(writer, step, |place, _, ran| {
            touched.extend(ran.map_err(|error| place.explain(error))?.iter().filter_map(table));
            Ok(())
        })?;
        if writer.is_autocommit() {
            return Err(of_step(step, Error::new(ErrorCode::EndedTransaction, "a statement ended the transaction")));
        }
        let connection = writer.connection()?;
        if checks {
            let all = self.migrations.check == ForeignKeyCheck::All;
            let after =
                violations(&connection.sqlite, |name| all || touched.contains(name) || !existing.contains(name))?;
            match before {
                None if !after.is_empty() => return Ok(Ran::LookFirst),
                before => after.refuse_new_since(&before.unwrap_or_default()).map_err(|error| of_step(step, error))?,
            }
        }
        add_to_history(&connection.sqlite, step).map_err(|error| of_step(step, error))?;
        Ok(Ran::Step(step))
    }

    /// Runs a step without a transaction, and then notes it.
    fn outside(&self, writer: &mut WriterConnection, step: &Step) -> Result<()> {
        self.statements(writer, step, |place, writer, ran| {
            let Err(error) = ran else { return Ok(()) };
            disarm(writer);
            let error = place.explain(error);
            // What the statements before it did is committed.
            let is_late =
                matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Busy) && self.ticket.is_past_deadline();
            Err(if is_late { timed_out(error.message().to_owned(), TimeoutEffect::Unknown) } else { error })
        })?;
        let left_open = !writer.is_autocommit();
        writer.rollback();
        if left_open {
            return Err(of_step(
                step,
                Error::new(ErrorCode::LeftTransaction, "it left a transaction open, which was rolled back"),
            ));
        }
        writer.wait_for_locks(Instant::now(), self.ticket);
        writer.begin()?;
        if let Err(error) = add_to_history(&writer.connection()?.sqlite, step) {
            writer.rollback();
            return Err(of_step(step, error));
        }
        self.commit(writer).map_err(|error| of_step(step, error))
    }

    /// Commits one of the steps: whether the next one is finished is decided anew.
    fn commit(&self, writer: &mut WriterConnection) -> Result<()> {
        let committed = commit(writer, self.shared, Some(self.ticket));
        self.ticket.goes_on();
        committed
    }

    /// Runs the statements of a step, and calls `each` with the result of each. The deadline, and a caller who
    /// leaves, end a statement up to its commit.
    fn statements(
        &self,
        writer: &mut WriterConnection,
        step: &Step,
        mut each: impl FnMut(&StatementPlace<'_>, &mut WriterConnection, Result<Vec<AuthEvent>>) -> Result<()>,
    ) -> Result<()> {
        let policy = if step.in_transaction { policy::migration } else { exclusive_policy(writer.connection()?) };
        let script = terminated(&step.sql);
        let mut at = 0;
        loop {
            let before = changes(writer);
            writer.connection()?;
            arm(writer, self.ticket);
            let ran = run_statement(writer.connection()?, step, &script, at, policy);
            self.ticket.goes_on();
            let Some((place, ran)) = ran else { return Ok(()) };
            at = place.end();
            let ran = match ran {
                Err(error) if !step.in_transaction => Err(settle(writer, self.shared, error, &before)),
                ran => ran,
            };
            each(&place, writer, ran)?;
        }
    }
}

fn of_step(step: &Step, error: Error) -> Error {
    let message = format!("migration {}: {}", step.name, error.message());
    error.with_message(message)
}

/// Returns the name of the table that an event writes, creates, alters or drops, in lower case.
pub(crate) fn table(event: &AuthEvent) -> Option<String> {
    let name = match event.action {
        ffi::SQLITE_INSERT
        | ffi::SQLITE_UPDATE
        | ffi::SQLITE_DELETE
        | ffi::SQLITE_CREATE_TABLE
        | ffi::SQLITE_DROP_TABLE => &event.first,
        ffi::SQLITE_ALTER_TABLE => &event.second,
        _ => return None,
    };
    name.as_deref().map(str::to_lowercase)
}
