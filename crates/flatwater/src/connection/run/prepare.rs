//! Preparing a text on a connection.
//!
//! Owns: the step from a text to a prepared statement, and the messages of its errors. Runs on the thread that has the
//! connection. Invariant: the policy checks a text before the text has any effect. Leaves out: running it (`execute`).

use std::collections::HashSet;
use std::sync::Arc;

use flatwater_sqlite::{Policy, Prepared, Sqlite, StatementId, drop_older_schemas, prepare_stable};
use rusqlite::ffi;

use super::hints::{hint, nearest_pragma};
use super::statement_cache::CachedStatement;
use crate::connection::learn::schema::SchemaFacts;
use crate::connection::open::pragma_answers::{Judged, judge};
use crate::connection::open::settings::AttachedFiles;
use crate::connection::{EngineConnection, rows};
use flatwater_base::error::hint::hint;
use flatwater_base::error::hint::with_other_hint;
use flatwater_base::error::location::{in_script, offset_by};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::growth_counter::step;
use flatwater_base::values::column::{ColumnNames, Names};
use flatwater_sql::class::{Class, Route, classify, lists_schema, names_other_tables};
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::tokens::{self, quoted};
use flatwater_sql::{change_functions, policy, pragma};

impl EngineConnection {
    /// Returns the statement of `text`, and prepares it if it is not prepared yet. A text of several statements is
    /// refused.
    pub(crate) fn ready(
        &mut self,
        text: &Arc<StatementInfo>,
        policy: Policy,
        schema: &SchemaFacts,
    ) -> Result<Arc<CachedStatement>> {
        step(1);
        if self.is_behind() {
            self.catch_up()?;
        }
        if text.tells_of_its_prepare {
            let handle = self.sqlite.handle();
            let has_schema = handle.is_autocommit() || handle.has_begun_in_main();
            // Loading it would begin the snapshot of a transaction that has read nothing yet.
            if has_schema || tokens::pragma(&text.sql).is_none_or(|(name, _)| pragma::lists_schema(name)) {
                self.schema.load_newest(&mut self.sqlite)?;
            }
        } else if let Some(ready) = self.statements.find(&mut self.sqlite, text) {
            return Ok(ready);
        }
        refuse_nul(text)?;
        let (ready, length) = self
            .prepare_first(text, &text.sql, 0, policy, schema)?
            .ok_or_else(|| Error::new(ErrorCode::NoStatement, "the SQL has no statement").with_sql(&text.sql))?;
        if self.sqlite.has_statement(&text.sql[length..]) {
            self.sqlite.statement(ready.id).finalize();
            return Err(Error::new(
                ErrorCode::SeveralStatements,
                "the SQL has several statements, and one is expected",
            )
            .with_hint(hint!["use " ExecuteScript ", or " Batch " if they have parameters"])
            .with_sql(&text.sql));
        }
        let ready = Arc::new(ready);
        if is_kept(&ready) {
            self.statements.keep(&mut self.sqlite, ready.clone());
        }
        Ok(ready)
    }

    /// Gives back what `ready` returned: finalizes a statement that is not kept.
    pub(crate) fn done_with(&mut self, ready: &CachedStatement) {
        if !is_kept(ready) {
            self.sqlite.statement(ready.id).finalize();
        }
    }

    /// Prepares the first statement of `sql`, which is the text from the byte `at` on, and may end with a NUL. Returns the
    /// statement and the number of bytes that it takes, or `None` if there is no statement.
    pub(crate) fn prepare_first(
        &mut self,
        text: &Arc<StatementInfo>,
        sql: &str,
        at: usize,
        policy: Policy,
        schema: &SchemaFacts,
    ) -> Result<Option<(CachedStatement, usize)>> {
        if self.is_behind() {
            self.catch_up()?;
        }
        let prepare = if text.is_stable() { prepare_stable } else { Sqlite::prepare };
        let before = self.sqlite.hooks().authorizer.set_policy(policy);
        let mut prepared = prepare(&mut self.sqlite, sql);
        if prepared.as_ref().is_err_and(|error| error.code() == Some(ffi::SQLITE_ERROR))
            && drop_older_schemas(&mut self.sqlite).is_ok()
        {
            prepared = prepare(&mut self.sqlite, sql);
        }
        let listing = if let Ok(Some(first)) = &prepared { listing_of_attached(&self.attached, first) } else { None };
        let lists_attached = listing.is_some();
        if let Some((first, of)) = listing {
            self.sqlite.statement(first).finalize();
            if let Err(error) = self.attached.load_schemas(&self.sqlite, of.as_deref()) {
                self.sqlite.hooks().authorizer.set_policy(before);
                return Err(error.with_sql(&text.sql));
            }
            prepared = prepare(&mut self.sqlite, sql);
        }
        if let Ok(Some(first)) = &prepared
            && names_other_tables(first)
        {
            // At its first use on a connection, a virtual table prepares its own statements, whose events are mixed
            // with those of this text. The second time they are prepared already.
            self.sqlite.statement(first.id).finalize();
            prepared = prepare(&mut self.sqlite, sql);
        }
        self.sqlite.hooks().authorizer.set_policy(before);
        let prepared = match prepared {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return Ok(None),
            Err(error) => return Err(explain_prepare(&self.sqlite, error, &text.sql, at)),
        };
        let Judged { prepared, reads_setting } = judge(&mut self.sqlite, &self.stated, prepared, policy)
            .map_err(|error| if at > 0 { in_script(error, &text.sql, at) } else { error.with_sql(&text.sql) })?;
        let class = classify(&sql[..prepared.length], &prepared, |table| schema.is_aborting(table));
        let called = change_function(&mut self.sqlite, &self.attached, &prepared, &class, &sql[..prepared.length]);
        let change_function = called.inspect_err(|_| self.sqlite.statement(prepared.id).finalize())?;
        let groupable = class.groupable && !self.functions.are_called(&prepared.events);
        let class = Class { groupable, lists_attached, reads_setting, change_function, ..class };
        let names = names(&self.sqlite, prepared.id, text, class.route)?;
        Ok(Some((CachedStatement::new(prepared.id, class.into(), names, text.clone()), prepared.length)))
    }

    /// Returns the column names of the statement that just ran. SQLite may have prepared it again at its first step,
    /// because the schema had changed, and `SELECT *` then has other columns than it was prepared with.
    pub(crate) fn names_after_run(&self, ready: &CachedStatement) -> Result<Names> {
        if self.sqlite.statements().reprepares(ready.id) == 0 {
            return Ok(ready.names.clone());
        }
        names(&self.sqlite, ready.id, &ready.text, ready.class.route)
    }
}

/// Returns the statement and the attached file, or `None` for all of them, if the statement lists what is in attached
/// files. SQLite looks a table or an index up in the schema that it has in memory, and does not check whether that is
/// the newest if it finds nothing (`sqlite3Pragma`). A PRAGMA that is read as a table is prepared when it runs.
fn listing_of_attached(attached: &AttachedFiles, first: &Prepared) -> Option<(StatementId, Option<Box<str>>)> {
    let listing = first.events.iter().find(|event| lists_schema(event)).filter(|_| !attached.names.is_empty())?;
    Some((first.id, listing.database.clone().filter(|_| listing.action == ffi::SQLITE_PRAGMA)))
}

/// Returns the function by which the statement reads_setting for an earlier one. A write is not explained, because that sets
/// `changes()`.
fn change_function(
    sqlite: &mut Sqlite,
    attached: &AttachedFiles,
    prepared: &Prepared,
    class: &Class,
    sql: &str,
) -> Result<Option<&'static str>> {
    if prepared.explain || !change_functions::may_ask(&prepared.events) {
        return Ok(None);
    }
    if class.route == Route::Read {
        let programs = sqlite.explain(sql)?;
        return Ok(programs.first().and_then(change_functions::called_by));
    }
    let (triggers, inserts) = (triggers(sqlite, attached)?, class.inserts_into.is_some());
    let is_trigger = |name: &str| triggers.contains(&name.to_lowercase());
    Ok(change_functions::called_by_write(&prepared.events, sql, inserts, is_trigger))
}

/// Returns the names of all triggers, in lower case.
fn triggers(sqlite: &Sqlite, attached: &AttachedFiles) -> Result<HashSet<String>> {
    let own = ["main", "temp"].into_iter().chain(attached.names.iter().map(|name| &**name));
    let of_one = |name| format!("SELECT name FROM {}.sqlite_schema WHERE type = 'trigger'", quoted(name));
    let all = own.map(of_one).collect::<Vec<_>>().join(" UNION ALL ");
    let lower = |row: &rusqlite::Row<'_>| Ok(row.get::<_, String>(0)?.to_lowercase());
    Ok(sqlite.patiently_with(|sqlite| rows(sqlite, &all, [], lower))?)
}

fn names(sqlite: &Sqlite, id: StatementId, text: &StatementInfo, route: Route) -> Result<Names> {
    let (names, sources) = (sqlite.statements().column_names(id)?, sqlite.statements().column_sources(id)?);
    Ok(ColumnNames::of(names, sources, text.sql.clone(), route == Route::Write))
}

/// Adds to the error what is known of the place in `sql`, of which the first `before` bytes were not prepared.
#[cold]
fn explain_prepare(sqlite: &Sqlite, error: flatwater_sqlite::Error, sql: &str, before: usize) -> Error {
    if let Some(denied) = sqlite.hooks().authorizer.take_denied() {
        let nearest = policy::unknown_pragma(&denied).and_then(|name| nearest_pragma(sqlite, name));
        let refusal = policy::refusal(&denied, nearest);
        return if before > 0 { in_script(refusal, sql, before) } else { refusal.with_sql(sql) };
    }
    let error = offset_by(error.into(), before.cast_signed()).with_sql(sql);
    match hint(sqlite, &error, sql) {
        Some(hint) => with_other_hint(error, hint),
        None => error,
    }
}

/// Returns the error for a text that SQLite would read up to a NUL only.
#[cold]
pub(crate) fn nul_in_sql() -> Error {
    Error::new(ErrorCode::NulByte, "the SQL has a NUL byte").with_hint("bind the value instead")
}

/// Refuses such a text.
pub(crate) fn refuse_nul(text: &StatementInfo) -> Result<()> {
    if text.sql.contains('\0') {
        return Err(nul_in_sql().with_sql(&text.sql));
    }
    Ok(())
}

/// Refuses a statement that reads_setting for an earlier statement of its connection, where that may be anybody's.
pub(crate) fn refuse_change_function(ready: &CachedStatement) -> Result<()> {
    ready
        .class
        .change_function
        .map_or(Ok(()), |function| Err(change_functions::refusal(function).with_sql(&ready.text.sql)))
}

/// Returns true if the statement is kept prepared. A PRAGMA and an EXPLAIN return what held when they were prepared. A
/// text that creates TEMP objects was checked for a transaction, and must be checked again. A definition that does nothing,
/// such as DROP TABLE IF EXISTS of no table, is one that does something when the schema has changed, which SQLite notices only
/// when it runs.
pub(crate) fn is_kept(ready: &CachedStatement) -> bool {
    let class = &ready.class;
    let may_define = class.columns == 0 && !class.changes_rows;
    ready.text.is_kept()
        && !class.makes_temp
        && !may_define
        && !class.lists_attached
        && !ready.text.tells_of_its_prepare
}
