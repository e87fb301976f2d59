//! What each kind of work does, statement by statement, on any connection that writes.
//!
//! Owns: the statements of one work, from their texts to the answer, and which a call refuses because of their rows. Runs on the
//! thread that has the connection. Invariant: each statement is prepared after the earlier ones ran, and given back however it
//! ended. Leaves out: where they run, what is noted of them and what undoes them (`Frame`, of `frame` and of
//! `own_connections::statements`), transactions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::Policy;

use crate::connection::EngineConnection;
use crate::connection::learn::analyse::{learn, learn_before};
use crate::connection::run::blobs::use_blob;
use crate::connection::run::execute::{Bounds, Outcome, Output, StatementRun, output_of};
use crate::connection::run::execute_rows::query_many;
use crate::connection::run::prepare::refuse_nul;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use crate::workers::shared_errors::{lost_meanwhile, returns_no_rows, returns_rows, returns_rows_of_many};
use crate::workers::work::{WantedOfRuns, Work};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::location::in_script;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::RunTime;
use flatwater_base::values::outcome::{ExecuteResult, RunResult};
use flatwater_base::values::param_rows::{BatchStatements, ParamRows};
use flatwater_base::values::params::{ParamRow, Params};
use flatwater_sql::class::Route;
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::text::terminated;

/// What stands around the statements of one work: where they run, and what of them is allowed, noted and undone.
pub(crate) trait Frame {
    /// Where that is, in messages.
    const PLACE: &'static str;

    /// What many rows show of their text is noted for its next use. Where it is not, nothing else runs on the connection before them.
    const LEARNS_FROM_ROWS: bool;

    /// The connection on which they run.
    fn writer(&mut self) -> Result<&mut WriterConnection>;

    /// Called before a text is prepared. Returns what it may do.
    fn before(&mut self) -> Result<Policy>;

    /// Called with the prepared statement of a text.
    fn prepared(&mut self, _: &StatementInfo, _: &CachedStatement) -> Result<()> {
        Ok(())
    }

    /// Refuses a statement that must not run here. `is_only`: it is the one statement of its work.
    fn may_run(&mut self, ready: &CachedStatement, is_only: bool) -> Result<()>;

    /// Called before a statement runs: notes what it does.
    fn note(&mut self, ready: &CachedStatement);

    fn execute(&mut self, run: &StatementRun<'_>) -> Result<Outcome> {
        self.writer()?.connection()?.execute(run)
    }

    /// Called after the one statement of its work, which took so long.
    fn ran(&mut self, text: &StatementInfo, ready: &CachedStatement, took: Duration) -> Result<()>;
}

/// Returns the answer of the work, if it consists of statements.
pub(crate) fn perform<F: Frame>(frame: &mut F, work: &Work) -> Result<Answer> {
    match work {
        Work::Execute { text, params } | Work::Query { text, params, .. } => {
            single(frame, text, params.row(), Expected::of(work)).and_then(|outcome| work.answer(outcome))
        }
        Work::Many { text, rows, wanted } => many(frame, text, rows, *wanted),
        Work::Batch(statements) => batch(frame, statements).map(Answer::Batch),
        Work::Prepare(text) if text.tells_of_its_prepare => Ok(Answer::Prepared(text.clone(), None)),
        Work::Prepare(text) => {
            with_ready(frame, text, |_, ready| Ok(Answer::Prepared(text.clone(), Some(ready.names.clone()))))
        }
        Work::Script(text) => script(frame, text).map(|()| Answer::Done),
        Work::Blob(blob) => {
            frame.before()?;
            use_blob(frame.writer()?.connection()?, blob).map(|used| Answer::Blob(Box::new(used)))
        }
        _ => Err(Error::new(ErrorCode::Unsupported, format!("this is not possible {}", F::PLACE))),
    }
}

/// What a call expects of one statement.
pub(crate) enum Expected<'a> {
    /// That it has no rows.
    NoRows,
    /// That it has rows, and these of them.
    Rows(Output<'a>),
    /// All its rows, if it has any.
    Any,
}

impl<'a> Expected<'a> {
    fn of(work: &'a Work) -> Self {
        match work {
            Work::Execute { .. } => Self::NoRows,
            _ if work.takes_any() => Self::Any,
            _ => Self::Rows(work.output()),
        }
    }

    /// Returns what is wanted of the rows of this statement. Refuses one with rows if the call wants none, and one without if it
    /// wants some.
    fn output(&self, ready: &CachedStatement) -> Result<Output<'a>> {
        match *self {
            Self::NoRows => {
                let error = || returns_rows(ready.class.route == Route::Write);
                refuse_rows(ready, error).map(|()| Output::Nothing)
            }
            Self::Rows(output) => need_rows(ready).map(|()| output),
            Self::Any => Ok(output_of(ready)),
        }
    }
}

/// Runs the one statement of the work, which is prepared, in these bounds.
pub(crate) fn run_one(
    writer: &mut WriterConnection,
    statement: &CachedStatement,
    work: &Work,
    bounds: Bounds,
) -> Result<Answer> {
    let Some((_, params)) = work.statement() else {
        return Err(Error::new(ErrorCode::Internal, "this is not one statement"));
    };
    let output = Expected::of(work).output(statement)?;
    let run = StatementRun { statement, params: params.row(), output, bounds };
    writer.connection()?.execute(&run).and_then(|outcome| work.answer(outcome))
}

/// Returns the statement of a text.
fn ready(frame: &mut impl Frame, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
    let policy = frame.before()?;
    let (connection, facts) = frame.writer()?.parts()?;
    let ready = connection.ready(text, policy, facts)?;
    let allowed = frame.prepared(text, &ready);
    if allowed.is_err() {
        done_with(frame, &ready);
    }
    allowed.map(|()| ready)
}

/// Gives the statement back.
fn done_with(frame: &mut impl Frame, ready: &CachedStatement) {
    // It is gone together with its connection.
    if let Some(connection) = frame.writer().ok().and_then(|writer| writer.connection.as_mut()) {
        connection.done_with(ready);
    }
}

/// Runs `f` with the statement of a text, and then gives the statement back.
fn with_ready<F: Frame, T>(
    frame: &mut F,
    text: &Arc<StatementInfo>,
    f: impl FnOnce(&mut F, &CachedStatement) -> Result<T>,
) -> Result<T> {
    let was_open = !frame.writer()?.is_autocommit();
    let ready = ready(frame, text)?;
    // If SQLite could not read a page, nothing may run after it that would be committed by itself.
    let is_lost = was_open && frame.writer()?.is_autocommit();
    let result = if is_lost { Err(lost_meanwhile().with_sql(&text.sql)) } else { f(frame, &ready) };
    done_with(frame, &ready);
    result
}

/// Runs the one statement of a work.
pub(crate) fn single(
    frame: &mut impl Frame,
    text: &Arc<StatementInfo>,
    params: ParamRow<'_>,
    expected: Expected<'_>,
) -> Result<Outcome> {
    with_ready(frame, text, |frame, ready| {
        frame.may_run(ready, true)?;
        let output = expected.output(ready)?;
        frame.note(ready);
        learn_before(frame.writer()?.connection()?, ready, params)?;
        let time = RunTime::begin();
        let outcome = frame.execute(&StatementRun { statement: ready, params, output, bounds: Bounds::Armed })?;
        frame.ran(text, ready, time.took())?;
        learn(frame.writer()?.connection()?, ready, params, Some(time))?;
        Ok(outcome)
    })
}

fn many(frame: &mut impl Frame, text: &Arc<StatementInfo>, rows: &ParamRows, wanted: WantedOfRuns) -> Result<Answer> {
    with_ready(frame, text, |frame, ready| {
        frame.may_run(ready, false)?;
        match wanted {
            WantedOfRuns::Changes => refuse_rows(ready, returns_rows_of_many)?,
            WantedOfRuns::Rows => need_rows(ready)?,
            WantedOfRuns::Any => {}
        }
        let collects = match wanted {
            WantedOfRuns::Changes => false,
            WantedOfRuns::Rows => true,
            WantedOfRuns::Any => ready.class.columns > 0 && rows.len() > 0,
        };
        let (mut changes, mut returned) = (0, None);
        run_rows(frame, text, ready, rows.rows().next(), |connection| {
            if collects {
                let (rows, changed) = query_many(connection, ready, rows)?;
                (changes, returned) = (changed, Some(rows));
            } else {
                changes = connection.execute_many(ready, rows)?;
            }
            Ok(rows.len())
        })?;
        Ok(match returned {
            Some(rows) if wanted == WantedOfRuns::Rows => Answer::Rows(rows),
            Some(rows) => Answer::Ran(Box::new(RunResult::of(ExecuteResult::of(changes, None), Some(rows)))),
            None => Answer::Changes(changes),
        })
    })
}

fn batch(frame: &mut impl Frame, statements: &BatchStatements<Arc<StatementInfo>>) -> Result<Vec<RunResult>> {
    let mut results = Vec::with_capacity(statements.len());
    for (text, rows) in statements.texts() {
        let mut rows = rows.rows().peekable();
        while let Some(first) = rows.peek().copied() {
            with_ready(frame, text, |frame, ready| {
                frame.may_run(ready, false)?;
                run_rows(frame, text, ready, Some(first), |connection| {
                    let before = results.len();
                    connection.execute_each(ready, &mut rows, &mut |result| results.push(result))?;
                    Ok(results.len() - before)
                })
            })?;
        }
    }
    Ok(results)
}

/// Runs rows of a statement by `run`, which returns how many, and records what they show of their text.
fn run_rows<F: Frame>(
    frame: &mut F,
    text: &StatementInfo,
    ready: &CachedStatement,
    first: Option<ParamRow<'_>>,
    run: impl FnOnce(&mut EngineConnection) -> Result<usize>,
) -> Result<()> {
    frame.note(ready);
    let connection = frame.writer()?.connection()?;
    if !F::LEARNS_FROM_ROWS {
        return run(connection).map(drop);
    }
    if let Some(first) = first {
        learn_before(connection, ready, first)?;
    }
    let began = Instant::now();
    let rows = run(connection)?;
    text.took_for(began.elapsed(), rows);
    Ok(())
}

/// Runs one statement after the other. Each is prepared after the earlier ones ran. Rows are dropped.
fn script(frame: &mut impl Frame, text: &Arc<StatementInfo>) -> Result<()> {
    refuse_nul(text)?;
    let sql = terminated(&text.sql);
    let mut begin = 0;
    loop {
        let policy = frame.before()?;
        let (connection, facts) = frame.writer()?.parts()?;
        let first = connection.prepare_first(text, &sql[begin..], begin, policy, facts)?;
        let Some((statement, length)) = first else { return Ok(()) };
        let (params, output) = (Params::default(), Output::Nothing);
        let run = StatementRun { statement: &statement, params: params.row(), output, bounds: Bounds::Armed };
        let ran = frame.may_run(&statement, false).and_then(|()| {
            frame.note(&statement);
            frame.execute(&run)
        });
        if let Some(connection) = frame.writer()?.connection.as_mut() {
            connection.sqlite.statement(statement.id).finalize();
        }
        ran.map_err(|error| failed_in_script(error, &text.sql, begin))?;
        begin += length;
    }
}

/// The error of the statement that begins at `begin` in a script.
fn failed_in_script(error: Error, script: &str, begin: usize) -> Error {
    let error = in_script(error, script, begin);
    if error.sqlite_code().is_none() { error.with_hint("a script has no parameters") } else { error }
}

fn need_rows(ready: &CachedStatement) -> Result<()> {
    if ready.class.columns > 0 || ready.class.reads_setting {
        return Ok(());
    }
    Err(returns_no_rows().with_sql(&ready.text.sql))
}

fn refuse_rows(ready: &CachedStatement, error: impl FnOnce() -> Error) -> Result<()> {
    if ready.class.columns == 0 || ready.class.reads_setting {
        return Ok(());
    }
    Err(error().with_sql(&ready.text.sql))
}
