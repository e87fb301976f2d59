//! Running a script that has a transaction of its own, as the dump of a database has.
//!
//! Owns: the steps from BEGIN to COMMIT. Runs on the thread that holds the slot. Invariants: the whole script is one
//! transaction, whatever it says of transactions; foreign keys hold at its end; the connection on which it ran serves no
//! other request. Leaves out: scripts without a transaction (`perform`).

use std::collections::HashSet;
use std::sync::Arc;

use flatwater_sqlite::{Discard, Prepared};

use super::connection::{take_back, with_foreign_keys};
use super::migration::table;
use crate::connection::exclusive::import_statements::{
    Mark, changes_rows, mark, misplaced, prepare_dumped, renew_schema, writes_schema,
};
use crate::connection::exclusive::migration::{tables, violations};
use crate::connection::run::prepare::refuse_nul;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::commit;
use crate::workers::writer::interrupts::{arm, disarm};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::location::in_script;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::text::{Dump, terminated};

/// Runs the script, all of it or nothing.
pub(crate) fn load(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    text: &Arc<StatementInfo>,
    dump: Dump,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    refuse_nul(text)?;
    let load = Load { shared, text, script: terminated(&text.sql), dump, ticket };
    let result = load.run(writer);
    disarm(writer);
    let taken_back = take_back(writer, shared, ticket);
    result.and(taken_back).map(|_| Answer::Done)
}

struct Load<'a> {
    shared: &'a WriterShared,
    text: &'a Arc<StatementInfo>,
    /// The text with a NUL behind it.
    script: String,
    dump: Dump,
    ticket: &'a Arc<Ticket>,
}

/// How the script is tried.
#[derive(Clone, Copy)]
struct Attempt {
    /// Foreign keys are off, and checked at the end: a dump has rows before the rows, and the tables, that they refer to.
    without_foreign_keys: bool,
    /// Violations were found, and it must be known which of them are old.
    looks_first: bool,
}

impl Load<'_> {
    fn run(&self, writer: &mut WriterConnection) -> Result<()> {
        let mut attempt =
            Attempt { without_foreign_keys: self.shared.context.options.foreign_keys, looks_first: false };
        while let Some(next) = self.shared.twice(writer, |writer| self.attempt(writer, attempt))? {
            attempt = next;
        }
        Ok(())
    }

    /// Returns how the script is to be tried again, if it was not applied.
    fn attempt(&self, writer: &mut WriterConnection, attempt: Attempt) -> Result<Option<Attempt>> {
        let enforced = self.shared.context.options.foreign_keys && !attempt.without_foreign_keys;
        with_foreign_keys(writer, self.ticket, enforced, |writer| self.in_transaction(writer, attempt))
    }

    fn in_transaction(&self, writer: &mut WriterConnection, attempt: Attempt) -> Result<Option<Attempt>> {
        writer.begin()?;
        match self.statements(writer, attempt) {
            Ok(None) => commit(writer, self.shared, Some(self.ticket)).map(|()| None),
            again => {
                writer.rollback();
                again
            }
        }
    }

    fn statements(&self, writer: &mut WriterConnection, attempt: Attempt) -> Result<Option<Attempt>> {
        let connection = writer.connection()?;
        connection.schema.load_newest(&mut connection.sqlite)?;
        let before = if attempt.looks_first { Some(violations(&connection.sqlite, |_| true)?) } else { None };
        let existing = tables(&connection.sqlite)?;
        let mut touched = HashSet::new();
        let (mut at, mut is_open, mut wrote_schema) = (0, false, false);
        while let Some(prepared) = self.prepare(writer, at)? {
            let sql = &self.text.sql[at..at + prepared.length];
            let Prepared { id, length, .. } = prepared;
            let needs_keys = attempt.without_foreign_keys && !self.dump.without_foreign_keys;
            if needs_keys && changes_rows(&prepared.events, sql) {
                writer.connection()?.sqlite.statement(id).finalize();
                return Ok(Some(Attempt { without_foreign_keys: false, looks_first: false }));
            }
            let ran = match (mark(&prepared.events), is_open) {
                (Mark::Begin, false) | (Mark::Commit, true) => {
                    is_open = !is_open;
                    Ok(())
                }
                (Mark::None, _) => {
                    let ran = writer.connection()?.sqlite.statement(id).run(&(), &mut Discard);
                    ran.map(drop).map_err(Error::from)
                }
                (mark, _) => Err(misplaced(&mark)),
            };
            writer.connection()?.sqlite.statement(id).finalize();
            ran.map_err(|error| self.place(error, at))?;
            touched.extend(prepared.events.iter().filter_map(table));
            wrote_schema |= writes_schema(&prepared.events);
            at += length;
        }
        if is_open {
            return Err(misplaced(&Mark::None).with_sql(&self.text.sql));
        }
        if writer.is_autocommit() {
            return Err(Error::new(ErrorCode::EndedTransaction, "a statement of the script ended its transaction")
                .with_sql(&self.text.sql));
        }
        let connection = writer.connection()?;
        if wrote_schema {
            renew_schema(connection)?;
        }
        if attempt.without_foreign_keys {
            let after = violations(&connection.sqlite, |name| touched.contains(name) || !existing.contains(name))?;
            match before {
                None if !after.is_empty() => return Ok(Some(Attempt { looks_first: true, ..attempt })),
                before => after.refuse_new_since(&before.unwrap_or_default()).map_err(of_script)?,
            }
        }
        Ok(None)
    }

    fn prepare(&self, writer: &mut WriterConnection, at: usize) -> Result<Option<Prepared>> {
        writer.connection()?;
        arm(writer, self.ticket);
        prepare_dumped(writer.connection()?, &self.script[at..]).map_err(|error| self.place(error, at))
    }

    /// Adds the place of a statement to its error.
    fn place(&self, error: Error, at: usize) -> Error {
        let error = in_script(error, &self.text.sql, at);
        if error.sqlite_code().is_none() { error.with_hint("a script has no parameters") } else { error }
    }
}

fn of_script(error: Error) -> Error {
    let message = format!("the script was not applied: {}", error.message());
    error.with_message(message)
}
