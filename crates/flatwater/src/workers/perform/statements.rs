//! Running the statements of one work on the writer's connection, inside the transaction that the caller set up.
//!
//! Owns: what each kind of work does statement by statement, and which statements a call refuses. Runs on the thread
//! that holds the slot. Invariant: every statement that `perform` runs is recorded in `Effects`. Leaves out:
//! transactions, savepoints, failed commits.

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Policy;

use super::scans::note_scan;
use crate::connection::learn::analyse::{learn, learn_before};
use crate::connection::run::blobs::use_blob;
use crate::connection::run::execute::{Bounds, Output, StatementRun};
use crate::connection::run::prepare::{refuse_nul, refuse_told_of_earlier};
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::hint::hint;
use crate::error::location::in_script;
use crate::error::{Error, Result};
use crate::sql::catalogue::Catalogue;
use crate::sql::class::Route;
use crate::sql::policy;
use crate::sql::script::terminated;
use crate::sql::statement_info::StatementInfo;
use crate::thread::run_time::RunTime;
use crate::values::batch_statements::BatchStatements;
use crate::values::executed::BatchResult;
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::workers::Answer;
use crate::workers::shared_errors::{lost_meanwhile, returns_no_rows, returns_rows, snapshot_writes};
use crate::workers::work::Work;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::writer_connection::WriterConnection;

/// The rules under which a text is prepared, and whether what is learnt from it is shared.
#[derive(Clone, Copy)]
pub(crate) enum Rules<'a> {
    /// Outside a transaction of the user.
    Statement(&'a Catalogue),
    /// The same, for a handle that may only read.
    Reading(&'a Catalogue),
    /// Inside a transaction of the user. A text may see a schema there that is never committed, so what is learnt stays
    /// private.
    Transaction,
    /// The same, in a transaction that stands for a snapshot.
    Snapshot,
}

impl Rules<'_> {
    fn policy(self) -> Policy {
        match self {
            Self::Statement(_) | Self::Reading(_) => policy::statement,
            Self::Transaction | Self::Snapshot => policy::transaction,
        }
    }
}

/// Returns true if a write that failed may have left a part of a row.
pub(crate) fn may_leave_part(writer: &WriterConnection, error: &Error) -> bool {
    writer.connection.as_ref().is_some_and(|connection| connection.may_leave_part(error))
}

/// Returns the answer of the work, if it consists of statements. What the statements did is recorded in `effects`.
pub(crate) fn perform(
    writer: &mut WriterConnection,
    effects: &mut Effects,
    rules: Rules<'_>,
    work: &Work,
) -> Result<Answer> {
    if matches!((rules, work), (Rules::Snapshot, Work::Many { .. } | Work::Batch(_) | Work::Script(_))) {
        return Err(snapshot_writes());
    }
    // Of the statements before it in the transaction, one statement can ask.
    let is_first = !matches!((rules, work), (Rules::Transaction, _) | (_, Work::Batch(_) | Work::Script(_)));
    let mut performer = Performer { writer, effects, rules, is_first };
    match work {
        Work::Execute { text, .. } | Work::Query { text, .. } => performer.single(text, work),
        Work::Many { text, rows } => performer.many(text, rows).map(Answer::Changes),
        Work::Batch(statements) => performer.batch(statements).map(Answer::Batch),
        Work::Prepare(text) if text.tells_of_its_prepare => Ok(Answer::Prepared(text.clone(), None)),
        Work::Prepare(text) => {
            performer.with_ready(text, |_, ready| Ok(Answer::Prepared(text.clone(), Some(ready.names.clone()))))
        }
        Work::Blob(blob) if matches!(rules, Rules::Snapshot) && !blob.only_reads() => Err(snapshot_writes()),
        Work::Blob(blob) => use_blob(performer.writer.connection()?, blob).map(|used| Answer::Blob(Box::new(used))),
        Work::Script(text) => performer.script(text).map(|()| Answer::Done),
        _ => Err(Error::misuse("this is not possible inside a transaction")),
    }
}

/// Runs the one statement of the work.
pub(crate) fn run_one(
    writer: &mut WriterConnection,
    statement: &CachedStatement,
    work: &Work,
    bounds: Bounds,
) -> Result<Answer> {
    let (params, output) = wanted(statement, work)?;
    Ok(writer.connection()?.execute(&StatementRun { statement, params: params.row(), output, bounds })?.into())
}

/// Returns the parameters of the work's one statement, and what the call wants of its rows. Refuses a statement with
/// rows if the call wants none, and one without rows if it wants some.
fn wanted<'a>(statement: &CachedStatement, work: &'a Work) -> Result<(&'a Params, Output<'a>)> {
    match work {
        Work::Execute { params, .. } => refuse_rows(statement).map(|()| (params, work.output())),
        Work::Query { params, .. } => need_rows(statement).map(|()| (params, work.output())),
        _ => Err(Error::misuse("this is not one statement")),
    }
}

/// Statements that run on the writer's connection, in one transaction.
struct Performer<'a> {
    writer: &'a mut WriterConnection,
    effects: &'a mut Effects,
    rules: Rules<'a>,
    /// No statement of the caller can have run before.
    is_first: bool,
}

impl Performer<'_> {
    /// Returns the statement of a text, and records what was learnt from it.
    fn ready(&mut self, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
        let (connection, facts) = self.writer.parts()?;
        let ready = connection.ready(text, self.rules.policy(), facts)?;
        if let Rules::Statement(catalogue) | Rules::Reading(catalogue) = self.rules {
            if ready.class.makes_temp {
                connection.done_with(&ready);
                return Err(policy::temp_refusal().with_sql(&text.sql));
            }
            text.learn(&ready.class, catalogue.epoch());
        }
        if self.is_first {
            refuse_told_of_earlier(&ready).inspect_err(|_| connection.done_with(&ready))?;
        }
        self.effects.note(&ready.class, self.writer);
        Ok(ready)
    }

    /// Runs `f` with the statement of a text, and then gives the statement back.
    fn with_ready<T>(
        &mut self,
        text: &Arc<StatementInfo>,
        f: impl FnOnce(&mut WriterConnection, &CachedStatement) -> Result<T>,
    ) -> Result<T> {
        let was_open = !self.writer.is_autocommit();
        let ready = self.ready(text)?;
        // If SQLite could not read a page, nothing may run after it that would be committed by itself.
        let is_lost = was_open && self.writer.is_autocommit();
        let result = if is_lost { Err(lost_meanwhile().with_sql(&text.sql)) } else { f(self.writer, &ready) };
        if let Ok(connection) = self.writer.connection() {
            connection.done_with(&ready);
        }
        result
    }

    fn single(&mut self, text: &Arc<StatementInfo>, work: &Work) -> Result<Answer> {
        let (only_reads, rules) = (matches!(self.rules, Rules::Reading(_)), self.rules);
        self.with_ready(text, |writer, ready| {
            if matches!(rules, Rules::Snapshot) && ready.class.route == Route::Write && !ready.class.asks {
                return Err(snapshot_writes().with_sql(&text.sql));
            }
            if only_reads && ready.class.route == Route::Write {
                return Err(Error::misuse("the database was opened read-only")
                    .with_hint(hint!["open it without " ReadOnly " to write"])
                    .with_sql(&text.sql));
            }
            let (params, _) = wanted(ready, work)?;
            learn_before(writer.connection()?, ready, params.row())?;
            let time = RunTime::begin();
            let answer = run_one(writer, ready, work, Bounds::Armed)?;
            // Outside of a transaction the time includes the commit, and those who commit record it.
            if matches!(rules, Rules::Transaction) && ready.class.route == Route::Write {
                let took = time.took();
                text.took(took);
                note_scan(writer, ready, took);
            }
            learn(writer.connection()?, ready, params.row(), Some(time))?;
            Ok(answer)
        })
    }

    fn many(&mut self, text: &Arc<StatementInfo>, rows: &ParamRows) -> Result<u64> {
        self.with_ready(text, |writer, ready| {
            refuse_rows(ready)?;
            if let Some(first) = rows.rows().next() {
                learn_before(writer.connection()?, ready, first)?;
            }
            let began = Instant::now();
            let changes = writer.connection()?.execute_many(ready, rows)?;
            ready.text.took_for(began.elapsed(), rows.len());
            Ok(changes)
        })
    }

    fn batch(&mut self, statements: &BatchStatements<Arc<StatementInfo>>) -> Result<Vec<BatchResult>> {
        let mut results = Vec::with_capacity(statements.len());
        for (text, rows) in statements.texts() {
            let mut rows = rows.rows().peekable();
            while let Some(first) = rows.peek().copied() {
                self.with_ready(text, |writer, ready| {
                    let connection = writer.connection()?;
                    learn_before(connection, ready, first)?;
                    let (began, before) = (Instant::now(), results.len());
                    connection.execute_each(ready, &mut rows, &mut |result| results.push(result))?;
                    text.took_for(began.elapsed(), results.len() - before);
                    Ok(())
                })?;
            }
        }
        Ok(results)
    }

    /// Runs one statement after the other. Each is prepared after the earlier ones ran. Rows are dropped.
    fn script(&mut self, text: &Arc<StatementInfo>) -> Result<()> {
        refuse_nul(text)?;
        let sql = terminated(&text.sql);
        let mut begin = 0;
        loop {
            let (connection, facts) = self.writer.parts()?;
            let first = connection.prepare_first(text, &sql[begin..], begin, self.rules.policy(), facts)?;
            let Some((ready, length)) = first else { return Ok(()) };
            if ready.class.makes_temp && !matches!(self.rules, Rules::Transaction) {
                connection.sqlite.statement(ready.id).finalize();
                return Err(in_script(policy::temp_refusal(), &text.sql, begin));
            }
            let result = connection.execute(&StatementRun {
                statement: &ready,
                params: Params::default().row(),
                output: Output::Nothing,
                bounds: Bounds::Armed,
            });
            connection.sqlite.statement(ready.id).finalize();
            self.effects.note(&ready.class, self.writer);
            result.map_err(|error| failed_in_script(error, &text.sql, begin))?;
            begin += length;
        }
    }
}

/// The error of the statement that begins at `begin` in a script.
pub(crate) fn failed_in_script(error: Error, script: &str, begin: usize) -> Error {
    let error = in_script(error, script, begin);
    if error.sqlite_code().is_none() { error.with_hint("a script has no parameters") } else { error }
}

pub(crate) fn need_rows(ready: &CachedStatement) -> Result<()> {
    if ready.class.columns > 0 || ready.class.asks {
        return Ok(());
    }
    Err(returns_no_rows().with_sql(&ready.text.sql))
}

pub(crate) fn refuse_rows(ready: &CachedStatement) -> Result<()> {
    if ready.class.columns == 0 || ready.class.asks {
        return Ok(());
    }
    Err(returns_rows(ready.class.route == Route::Write).with_sql(&ready.text.sql))
}
