//! What is learnt from the program of a prepared statement, and when: at its second use, on a worker; and from the plans of a text that
//! SQLite prepares again for its values.
//!
//! Owns: the steps that learn it, and what the program says of a statement. Runs on the thread that has the connection; what was
//! learnt is written once. Invariants: what was learnt is dropped with the prepared statement; a text that is used once
//! costs nothing; no statement sees that a write was explained, which sets `changes()` to 0: the write runs right after
//! it, and does not call `changes()` (`explain`); plans that cannot be compared are left to SQLite. Leaves out: the place where it is
//! kept (`statement_cache`), graphs (`flatwater_sql::bytecode::graph`), choosing a form of a text (`flatwater_sql::stable_form`), running anything inline.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flatwater_sqlite::Plans;

use super::explain::{explain_write, strange};
use crate::connection::EngineConnection;
use crate::connection::run::prepare::is_kept;
use crate::connection::run::statement_cache::CachedStatement;
use flatwater_base::error::Result;
use flatwater_base::error::kind::is_passing;
use flatwater_base::inline::eligibility::InlineLimits;
use flatwater_base::thread::current::RunTime;
use flatwater_base::values::params::ParamRow;
use flatwater_sql::bytecode::analysis::{Ending, InlineWrite, ProgramAnalysis};
use flatwater_sql::class::Route;
use flatwater_sql::stable_form::StableForm;

impl CachedStatement {
    /// Returns how this read may run inline; `None` if it may not, or is not known well enough.
    pub(crate) fn inline_read(&self) -> Option<Ending> {
        if self.class.route == Route::Read { self.analysis.of_program.get()?.ending() } else { None }
    }

    /// Returns true if it may run inline, and does not end by itself.
    pub(crate) fn is_bounded(&self) -> bool {
        let ending = self.inline_read().or_else(|| self.inline_write().map(|write| write.ending));
        ending == Some(Ending::Bounded)
    }

    /// Returns true if it is a read that may run inline, and is not expected to return too many rows for that, or to pass
    /// over too many pages.
    pub(crate) fn reads_shortly(&self, limits: &InlineLimits) -> bool {
        let (cells, _) = self.text.size.get();
        self.inline_read().is_some()
            && cells <= limits.rows.saturating_mul(self.names.len())
            && (!self.needs_history() || self.text.has_short_history(limits.time))
    }

    /// Returns true if it counts the rows of a table, which takes as long as the table is large, or calls a timed function.
    fn needs_history(&self) -> bool {
        self.analysis.of_program.get().is_some_and(ProgramAnalysis::needs_history)
    }

    /// Returns true if it calls a timed function.
    pub(crate) fn calls_timed(&self) -> bool {
        self.analysis.of_program.get().is_some_and(|analysis| analysis.calls_timed)
    }

    /// Records how long the read took, if it is one whose time its history must show.
    pub(crate) fn read_took(&self, time: impl FnOnce() -> Duration) {
        if self.needs_history() {
            self.text.took(time());
        }
    }

    /// The same for an inline run. An outlier is due to the machine, unless a timed function was called: nothing ends that.
    pub(crate) fn read_inline_took(&self, time: Duration, limits: &InlineLimits) {
        self.read_took(|| if self.calls_timed() { time } else { limits.counted(time) });
    }

    /// Returns true if its program was analysed.
    pub(crate) fn is_known(&self) -> bool {
        self.analysis.of_program.get().is_some()
    }

    /// Returns how this write may run inline; `None` if it may not, or is not known well enough.
    pub(crate) fn inline_write(&self) -> Option<InlineWrite> {
        let analysis = self.analysis.of_program.get().filter(|_| self.class.changes_rows)?;
        analysis.write
    }
}

/// Counts a use of a read, and analyses its program at the second one. Called by a worker, which may take the time of a
/// prepare. If the read has just ended, its time is recorded. Fails only if the open transaction was lost meanwhile.
pub(crate) fn learn(
    connection: &mut EngineConnection,
    ready: &CachedStatement,
    params: ParamRow<'_>,
    time: Option<RunTime>,
) -> Result<()> {
    if ready.class.route != Route::Read {
        return Ok(());
    }
    if let Some(time) = time {
        ready.read_took(|| time.took());
    }
    if connection.sqlite.statements().reprepares(ready.id) != 0 {
        // Its program is of no use: the statement is prepared anew at its next use.
        return compare_plans(connection, ready, params);
    }
    learn_from(connection, ready)
}

/// The same for a write, which is to run right after with these parameters.
pub(crate) fn learn_before(
    connection: &mut EngineConnection,
    ready: &CachedStatement,
    params: ParamRow<'_>,
) -> Result<()> {
    // Outside of WAL mode no write runs inline. Parameters that do not fit are refused, and the write does nothing.
    if ready.class.route != Route::Write || connection.journal != "wal" {
        return Ok(());
    }
    // What is asked of the schema would begin to read, and SQLite waits for no lock where a read becomes a write.
    let handle = connection.sqlite.handle();
    if !handle.is_autocommit() && !handle.has_begun_in_main() {
        return Ok(());
    }
    let fits = |connection: &mut EngineConnection| connection.sqlite.statement(ready.id).fits(&params);
    if ready.text.stable.is_due() && fits(connection) {
        compare_plans(connection, ready, params)?;
    }
    if !ready.is_known() && fits(connection) {
        return learn_from(connection, ready);
    }
    Ok(())
}

/// SQLite ends the open transaction if it cannot read a page, has no memory or no space, even for an EXPLAIN
/// (`sqlite3VdbeHalt`). That is an error of the statement, because what follows would be committed by itself.
fn learn_from(connection: &mut EngineConnection, ready: &CachedStatement) -> Result<()> {
    // A PRAGMA, which is not kept, takes effect while it is prepared.
    if !is_kept(ready) || !ready.analysis.is_due(ready.text.was_analysed.load(Ordering::Relaxed)) {
        return Ok(());
    }
    let was_open = !connection.sqlite.handle().is_autocommit();
    let analysis = match analyse(connection, ready) {
        Ok(analysis) => analysis,
        Err(error) if was_open && connection.sqlite.handle().is_autocommit() => {
            return Err(error.with_sql(&ready.text.sql));
        }
        // The deadline of the call may still be armed, or another connection may hold a lock. The next use tries
        // again.
        Err(error) if error.sqlite_code().is_some_and(is_passing) => return Ok(()),
        Err(_) => ProgramAnalysis::opaque("EXPLAIN"),
    };
    if analysis.calls_timed {
        // What was timed before may have called another function of that name.
        ready.text.forget_times();
    }
    ready.text.was_analysed.store(true, Ordering::Relaxed);
    // No other thread can have set it: the statement belongs to this connection.
    let _ = ready.analysis.of_program.set(analysis);
    Ok(())
}

fn analyse(connection: &mut EngineConnection, ready: &CachedStatement) -> Result<ProgramAnalysis> {
    let strange = strange(connection)?;
    let sql = &ready.text.sql;
    let programs = if ready.class.route == Route::Write {
        explain_write(&mut connection.sqlite, &strange, sql)?
    } else {
        Some(connection.sqlite.explain(sql)?)
    };
    let analysis = programs
        .map_or_else(|| ProgramAnalysis::opaque("changes()"), |programs| ProgramAnalysis::of(&programs, &strange));
    Ok(if analysis.counts_all && !keeps_few_pages(connection)? { ProgramAnalysis::opaque("Count") } else { analysis })
}

/// Returns true if so few pages can be in memory that passing over all of them takes less than a millisecond.
fn keeps_few_pages(connection: &EngineConnection) -> Result<bool> {
    const MANY_PAGES: i64 = 4096;
    let answer =
        |pragma: &str| connection.sqlite.rusqlite().pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    // A negative size is one in KiB; `mmap_size` has no row where nothing can be mapped.
    let pages = match answer("cache_size")? {
        kib @ ..0 => kib.saturating_neg().saturating_mul(1024) / answer("page_size")?.max(1),
        pages => pages,
    };
    Ok(pages <= MANY_PAGES && answer("mmap_size").unwrap_or(0) == 0)
}

/// Compares the plans for these values, if SQLite prepared the text again often enough and they were not compared before. Fails
/// only if the open transaction was lost meanwhile.
pub(super) fn compare_plans(
    connection: &mut EngineConnection,
    ready: &CachedStatement,
    params: ParamRow<'_>,
) -> Result<()> {
    let text = &ready.text;
    // A schema of strangers may be long to prepare for, and a few prepares follow.
    let is_of_strangers = connection.sqlite.hooks().interrupts.has_limits();
    if text.is_stable() || !text.is_kept() || !text.stable.is_due() || is_of_strangers {
        return Ok(());
    }
    let was_open = !connection.sqlite.handle().is_autocommit();
    let compared = compare(connection, ready, params);
    // Of one that failed, further uses try again.
    text.stable.is_done();
    match compared {
        Err(error) if was_open && connection.sqlite.handle().is_autocommit() => Err(error.with_sql(&text.sql)),
        _ => Ok(()),
    }
}

fn compare(connection: &mut EngineConnection, ready: &CachedStatement, params: ParamRow<'_>) -> Result<()> {
    let text = &ready.text;
    if ready.class.route == Route::Write {
        let strange = strange(connection)?;
        if explain_write(&mut connection.sqlite, &strange, &text.sql)?.is_none() {
            return Ok(());
        }
    }
    let form = match text.stable.get() {
        Some(form) => form,
        None => {
            let parameters = Plans::of(&mut connection.sqlite).parameters(&text.sql)?.unwrap_or_default();
            if parameters.is_empty() {
                // It was prepared again for another schema, or too many values may matter.
                return Ok(());
            }
            let plan = Plans::of(&mut connection.sqlite).plan::<ParamRow<'_>>(&text.sql, None)?;
            let form = Arc::new(StableForm::new(parameters, plan, |outdated| Arc::new(text.stable_form(outdated))));
            text.stable.set(form.clone());
            form
        }
    };
    let kind = form.kind(&params);
    if form.is_same(kind).is_none() && form.has_room() {
        form.compared(kind, &Plans::of(&mut connection.sqlite).plan(&text.sql, Some(&params))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection::learn::schema::SchemaFacts;
    use crate::connection::open::Role;
    use crate::connection::repair::restore_handlers;
    use crate::connection::run::execute::{Bounds, Output, StatementRun};
    use crate::options::Options;
    use flatwater_base::values::params::Params;
    use flatwater_sql::policy;
    use flatwater_sql::statement_info::StatementInfo;

    fn open() -> (tempfile::TempDir, EngineConnection) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("test.db")).resolve().unwrap();
        let connection = EngineConnection::open(&options, &Arc::default(), Role::Creator, Box::new(|_| false)).unwrap();
        connection.sqlite.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE)").unwrap();
        (directory, connection)
    }

    /// Uses a text as a worker does.
    fn used(connection: &mut EngineConnection, text: &Arc<StatementInfo>) -> Arc<CachedStatement> {
        let ready = connection.ready(text, policy::statement, &SchemaFacts::default()).unwrap();
        let nothing = Params::default();
        learn_before(connection, &ready, nothing.row()).unwrap();
        let (params, output, bounds) = (nothing.row(), Output::Nothing, Bounds::Armed);
        connection.execute(&StatementRun { statement: &ready, params, output, bounds }).unwrap();
        learn(connection, &ready, params, None).unwrap();
        connection.done_with(&ready);
        ready
    }

    fn used_twice(connection: &mut EngineConnection, sql: &str) -> Arc<CachedStatement> {
        let text = Arc::new(StatementInfo::new(sql));
        used(connection, &text);
        used(connection, &text)
    }

    #[test]
    fn the_second_use_teaches_and_a_prepare_after_a_new_schema_teaches_again() {
        let (_directory, mut connection) = open();
        let text = Arc::new(StatementInfo::new("SELECT * FROM t WHERE a = 'x' ORDER BY id"));
        assert_eq!(used(&mut connection, &text).inline_read(), None);
        let before = used(&mut connection, &text);
        assert_eq!(before.inline_read(), Some(Ending::Bounded));
        connection.sqlite.execute_batch("CREATE UNIQUE INDEX t_a ON t (a)").unwrap();
        // Prepared again inside its step, then anew, then analysed.
        for _ in 0..2 {
            used(&mut connection, &text);
        }
        let after = used(&mut connection, &text);
        assert!(!Arc::ptr_eq(&before, &after));
        assert_eq!(after.inline_read(), Some(Ending::Acyclic));
    }

    #[test]
    fn reads_stay_and_writes_of_one_row_may_be_inline() {
        let (_directory, mut connection) = open();
        let read = used_twice(&mut connection, "SELECT * FROM t WHERE id = 1");
        assert_eq!((read.inline_read(), read.inline_write()), (Some(Ending::Acyclic), None));
        let write = used_twice(&mut connection, "REPLACE INTO t VALUES (1, 'x')");
        let fails_before_changes = !flatwater_sqlite::REPORTS_ALL_ROWS;
        let inline =
            InlineWrite { ending: Ending::Acyclic, changes_existing_rows: true, fails_before_changes, scans: false };
        assert_eq!((write.inline_read(), write.inline_write()), (None, Some(inline)));
        let sorts = used_twice(&mut connection, "SELECT * FROM t ORDER BY a");
        assert_eq!(sorts.inline_read(), None);
        for never in ["PRAGMA user_version", "EXPLAIN SELECT 1", "CREATE TABLE IF NOT EXISTS t (a)"] {
            let ready = used_twice(&mut connection, never);
            assert_eq!((ready.inline_read(), ready.inline_write()), (None, None), "{never}");
        }
    }

    #[test]
    fn a_function_that_has_the_name_of_sqlites_own_is_opaque() {
        let (_directory, mut connection) = open();
        let sql = "SELECT upper(a), lower(a) FROM t WHERE id = 1";
        assert_eq!(used_twice(&mut connection, sql).inline_read(), Some(Ending::Acyclic));
        let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
        let sqlite = connection.sqlite.rusqlite();
        sqlite.create_scalar_function("UPPER", 1, flags, |_| Ok(1)).unwrap();
        sqlite.create_scalar_function("mine", 0, flags, |_| Ok(1)).unwrap();
        for sql in [sql, "SELECT mine()"] {
            used_twice(&mut connection, sql);
            assert_eq!(used_twice(&mut connection, sql).inline_read(), None, "{sql}");
        }
    }

    /// The names of functions are read without them.
    #[test]
    fn a_lower_of_the_users_is_not_called_for_what_is_learnt() {
        let (_directory, mut connection) = open();
        let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
        let sqlite = connection.sqlite.rusqlite();
        let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let called = calls.clone();
        let lower = move |_: &rusqlite::functions::Context<'_>| {
            called.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok("mine")
        };
        sqlite.create_scalar_function("lower", 1, flags, lower).unwrap();
        sqlite.create_scalar_function("upper", 1, flags, |_| Ok(1)).unwrap();
        assert_eq!(used_twice(&mut connection, "SELECT upper(a) FROM t WHERE id = 1").inline_read(), None);
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn a_collation_that_may_be_the_users_is_opaque() {
        let (_directory, mut connection) = open();
        connection.sqlite.rusqlite().create_collation("mine", |a, b| a.cmp(b)).unwrap();
        assert_eq!(used_twice(&mut connection, "SELECT id FROM t WHERE a = 'x'").inline_read(), Some(Ending::Bounded));
        assert_eq!(used_twice(&mut connection, "SELECT id FROM t WHERE a = 'x' COLLATE mine").inline_read(), None);
        let _ = restore_handlers(&mut connection, Box::new(|_| false));
        connection.statements.clear(&mut connection.sqlite);
        assert_eq!(used_twice(&mut connection, "SELECT id FROM t WHERE a = 'x'").inline_read(), None);
        assert_eq!(used_twice(&mut connection, "SELECT id FROM t WHERE id = 1").inline_read(), Some(Ending::Acyclic));
    }

    #[test]
    fn nothing_is_judged_by_what_was_judged_before() {
        let (_directory, mut connection) = open();
        used_twice(&mut connection, "INSERT INTO t (a) VALUES ('x')");
        assert!(connection.sqlite.hooks().authorizer.take_denied().is_none());
        assert_eq!(connection.sqlite.handle().last_insert_rowid(), 2);
        let text = Arc::new(StatementInfo::new("ATTACH ':memory:' AS other"));
        assert!(connection.ready(&text, policy::statement, &SchemaFacts::default()).is_err());
    }
}
