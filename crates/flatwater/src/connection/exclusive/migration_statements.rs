//! Running the statements of a migration one by one.
//!
//! Owns: running the next statement of a script, and an error that says which one failed. Runs on the thread that has
//! the connection. Invariants: each statement is prepared after the earlier ones ran, under the policy; the rest of a script is
//! not copied for each of its statements. Leaves out: transactions.

use flatwater_sqlite::{AuthEvent, Discard, Policy, Verdict, statement_start};
use rusqlite::ffi;

use crate::connection::EngineConnection;
use crate::connection::open::pragma_answers::judge;
use crate::connection::run::failed_writes::explain_write;
use crate::dependencies::writes::{Unreported, Writes};
use crate::error::{Error, Result};
use crate::migrations::Step;
use crate::migrations::line;
use crate::sql::policy;

/// A statement of a step, by its place in the script.
pub(crate) struct StatementPlace<'a> {
    step: &'a Step,
    at: usize,
    length: usize,
}

impl StatementPlace<'_> {
    /// Adds the file, the line and the statement to an error. An offset is one in the statement's text.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let sql = &self.step.sql[self.at..self.at + self.length];
        let at = self.at + error.offset().unwrap_or(0);
        let message = format!("migration {}, line {}: {}", self.step.name, line(&self.step.sql, at), error.message());
        error.with_message(message).with_sql(sql)
    }
}

/// Runs the statement of `step` at byte `at` or after it. `script` is its SQL, terminated. Returns the statement's place
/// and what it does; `None` if there is none.
pub(crate) fn run_statement<'a>(
    connection: &mut EngineConnection,
    step: &'a Step,
    script: &str,
    at: usize,
    policy: Policy,
) -> Option<(StatementPlace<'a>, Result<Vec<AuthEvent>>)> {
    let at = at + statement_start(&step.sql[at..]);
    let before = connection.sqlite.hooks().authorizer.set_policy(policy);
    let prepared = connection.sqlite.prepare(&script[at..]);
    connection.sqlite.hooks().authorizer.set_policy(before);
    let prepared = match prepared {
        Ok(prepared) => prepared?,
        Err(error) => {
            let error = connection
                .sqlite
                .hooks()
                .authorizer
                .take_denied()
                .map_or_else(|| error.into(), |event| refusal(&event));
            return Some((StatementPlace { step, at, length: step.sql.len() - at }, Err(error)));
        }
    };
    let place = StatementPlace { step, at, length: prepared.length };
    let is_ignored = prepared.events.iter().any(|event| policy(event) == Verdict::Ignore);
    let prepared = if is_ignored {
        match judge(&mut connection.sqlite, &connection.stated, prepared, policy) {
            Ok(judged) => judged.prepared,
            Err(error) => return Some((place, Err(error))),
        }
    } else {
        prepared
    };
    let ran = connection.sqlite.statement(prepared.id).run(&(), &mut Discard);
    connection.sqlite.statement(prepared.id).finalize();
    let ran = ran.map_err(|error| {
        let writes = Writes::of_rows(&prepared.events, Unreported::default());
        explain_write(&connection.sqlite, error.into(), &writes)
    });
    Some((place, ran.map(|()| prepared.events)))
}

impl StatementPlace<'_> {
    /// Returns where the next statement begins, or what precedes it.
    pub(crate) fn end(&self) -> usize {
        self.at + self.length
    }
}

fn refusal(event: &AuthEvent) -> Error {
    if event.action != ffi::SQLITE_TRANSACTION {
        return policy::refusal(event, None);
    }
    let first = event.first.as_deref().unwrap_or_default();
    Error::misuse(format!("{first} in a migration, which runs in a transaction of its own"))
        .with_hint("leave it out, or make `-- no-transaction` the first line of the script")
}
