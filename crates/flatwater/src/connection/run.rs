//! Preparing a text on a connection and running it: what it changed, what it answered, how its failure reads.
//!
//! Owns: the step from a text to a result on one connection, and the words of its errors. Runs on the thread that has
//! the connection. Invariant: a text is judged before it has any effect. Leaves out: transactions, groups, and where
//! rows go.

use std::sync::Arc;

use flatwater_sqlite::{Discard, Policy, Sink};
use rusqlite::ffi;

use super::learnt::Learnt;
use super::open::Connection;
use super::statements::CachedStatement;
use crate::error::{Error, Result};
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::{Class, Schema, classify, names_other_tables};
use crate::sql::policy;
use crate::sql::tokens::has_in_with_one_parameter;
use crate::values::executed::Executed;
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::Names;

impl Connection {
    /// The statement of `text`, prepared now if it is not yet. A text of several statements is refused.
    pub(crate) fn ready(
        &mut self,
        text: &Arc<StatementInfo>,
        policy: Policy,
        schema: &impl Schema,
    ) -> Result<Arc<CachedStatement>> {
        if text.tells_of_its_prepare {
            self.load_newest_schema()?;
        } else if let Some(ready) = self.statements.find(&mut self.sqlite, text) {
            return Ok(ready.clone());
        }
        let (ready, length) = self
            .prepare_first(text, &text.sql, policy, schema)?
            .ok_or_else(|| Error::misuse("the SQL has no statement").with_sql(&text.sql))?;
        if self.sqlite.has_statement(&text.sql[length..]) {
            self.sqlite.finalize(ready.id);
            return Err(Error::misuse("the SQL has several statements, and one is expected")
                .with_hint("use `execute_script`, or `batch` if they have parameters")
                .with_sql(&text.sql));
        }
        let ready = Arc::new(ready);
        if is_kept(&ready) {
            self.statements.keep(&mut self.sqlite, ready.clone());
        }
        Ok(ready)
    }

    /// Gives back what `ready` gave out: ends a statement that is not kept.
    pub(crate) fn done_with(&mut self, ready: &CachedStatement) {
        if !is_kept(ready) {
            self.sqlite.finalize(ready.id);
        }
    }

    /// Prepares the first statement of `sql`, the rest of `text`, and answers how many bytes of it that took.
    pub(crate) fn prepare_first(
        &mut self,
        text: &Arc<StatementInfo>,
        sql: &str,
        policy: Policy,
        schema: &impl Schema,
    ) -> Result<Option<(CachedStatement, usize)>> {
        if sql.contains('\0') {
            return Err(Error::misuse("the SQL has a NUL byte").with_hint("bind the value instead").with_sql(sql));
        }
        let before = self.sqlite.set_policy(policy);
        let mut prepared = self.sqlite.prepare(sql);
        if let Ok(Some(first)) = &prepared
            && names_other_tables(first)
        {
            // The first use of a virtual table on a connection prepares its own statements, whose events are among
            // ours. The second time it is there already.
            self.sqlite.finalize(first.id);
            prepared = self.sqlite.prepare(sql);
        }
        self.sqlite.set_policy(before);
        let prepared = match prepared {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.explain_prepare(error, &text.sql, text.sql.len() - sql.len())),
        };
        let class: Arc<Class> = classify(&sql[..prepared.length], &prepared, schema).into();
        let names = self.sqlite.column_names(prepared.id)?.into();
        Ok(Some((
            CachedStatement { id: prepared.id, class, names, text: text.clone(), learnt: Learnt::default() },
            prepared.length,
        )))
    }

    /// Runs a statement to its end.
    pub(crate) fn run<S: Sink>(&mut self, ready: &CachedStatement, params: &Params, sink: &mut S) -> Result<Executed> {
        let rowid_before = self.sqlite.last_insert_rowid();
        if let Some(table) = &ready.class.inserts_into {
            self.sqlite.watch_inserts(table);
        }
        self.sqlite.run(ready.id, params.bindings(), sink).map_err(|e| explain_run(e, ready, params))?;
        if !ready.class.changes_rows {
            return Ok(Executed::default());
        }
        let rowid = self.sqlite.last_insert_rowid();
        // A virtual table whose rows are not seen tells a rowid for a row, and 0 for a command.
        let is_new = || rowid != rowid_before && rowid != 0;
        let inserted = ready.class.inserts_into.is_some() && (self.sqlite.saw_insert() || is_new());
        Ok(Executed { changes: self.sqlite.changes(), last_insert_rowid: inserted.then_some(rowid) })
    }

    /// The column names of what was just run. SQLite may have prepared the statement again at its first step, because the
    /// schema had changed, and `SELECT *` then has other columns than it was prepared with.
    pub(crate) fn names_after_run(&self, ready: &CachedStatement) -> Result<Names> {
        if self.sqlite.reprepares(ready.id) == 0 {
            return Ok(ready.names.clone());
        }
        Ok(self.sqlite.column_names(ready.id)?.into())
    }

    /// Runs a statement once per row, and adds up what it changed.
    pub(crate) fn run_many(&mut self, ready: &CachedStatement, rows: &ParamRows) -> Result<u64> {
        let mut changes = 0;
        let mut values = Vec::new();
        for row in 0..rows.len() {
            let ran = self.sqlite.run(ready.id, rows.bindings(row, &mut values), &mut Discard);
            ran.map_err(|e| explain_run(e, ready, &rows.params(row)))?;
            if ready.class.changes_rows {
                changes += self.sqlite.changes();
            }
        }
        Ok(changes)
    }

    #[cold]
    fn explain_prepare(&mut self, error: flatwater_sqlite::Error, sql: &str, before: usize) -> Error {
        if let Some(denied) = self.sqlite.take_denied() {
            return policy::refusal(&denied).with_sql(sql);
        }
        let mut error = Error::from(error).with_sql(sql).offset_by(before);
        if let Some(wanted) = error.message().strip_prefix("no such table: ")
            && let Some(nearest) = self.nearest_table(wanted)
        {
            error = error.with_hint(format!("there is a table {nearest}"));
        }
        error
    }

    /// The table whose name is most like `wanted`, if one is.
    fn nearest_table(&mut self, wanted: &str) -> Option<String> {
        let list = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') LIMIT 1000";
        let names = self.sqlite.patiently_with(|sqlite| {
            sqlite.prepare(list)?.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
        });
        let wanted = wanted.rsplit('.').next().unwrap_or(wanted).to_lowercase();
        names
            .ok()?
            .into_iter()
            .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &wanted), name))
            .filter(|(distance, _)| *distance <= 2.max(wanted.len() / 3))
            .min()
            .map(|(_, name)| name)
    }
}

/// Whether the statement is kept prepared. A PRAGMA and a listing answer what was so when they were prepared, and what
/// creates TEMP objects was judged for a transaction and must be judged again.
pub(super) fn is_kept(ready: &CachedStatement) -> bool {
    ready.text.is_kept() && !ready.class.makes_temp && !ready.text.tells_of_its_prepare
}

#[cold]
fn explain_run(error: flatwater_sqlite::Error, ready: &CachedStatement, params: &Params) -> Error {
    let is_count = matches!(error, flatwater_sqlite::Error::ParameterCount { .. });
    let mut error = Error::from(error).with_sql(&ready.text.sql);
    if is_count && has_in_with_one_parameter(&ready.text.sql) {
        error = error.with_hint(
            "IN (?) takes one value; use one ? for each, or IN (SELECT value FROM json_each(?)) with a JSON list",
        );
    }
    // Functions, virtual tables, RAISE and VACUUM INTO may quote what they were given.
    let may_quote = matches!(
        error.sqlite_code(),
        Some(ffi::SQLITE_ERROR | ffi::SQLITE_CONSTRAINT_TRIGGER | ffi::SQLITE_CONSTRAINT_VTAB | ffi::SQLITE_CANTOPEN)
    );
    if may_quote && let Some(hidden) = hide_values(error.message(), &ready.text.sql, params) {
        error = error.with_message(hidden);
    }
    error
}

/// A fragment this short is taken for a coincidence, unless it stands in quotes.
const TELLING_BYTES: usize = 4;

/// The message without fragments of bound texts, or `None` if it has none. What is part of the SQL itself may be shown.
fn hide_values(message: &str, sql: &str, params: &Params) -> Option<String> {
    let secret = |fragment: &str| !fragment.is_empty() && params.reveals(fragment) && !sql.contains(fragment);
    let mut hidden = String::new();
    let mut rest = message;
    let mut quoted = false;
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let longest = ends.take_while(|end| secret(&rest[..*end]) || *end < TELLING_BYTES).last().unwrap_or(0);
        let alone = quoted && rest[longest..].starts_with(['"', '\'']);
        if longest > 0 && secret(&rest[..longest]) && (longest >= TELLING_BYTES || alone) {
            hidden.push_str("(a bound value)");
            rest = &rest[longest..];
            quoted = false;
        } else {
            hidden.push(first);
            rest = &rest[first.len_utf8()..];
            quoted = matches!(first, '"' | '\'');
        }
    }
    (hidden != message).then_some(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_what_was_bound_and_keep_what_stands_in_the_sql() {
        let params = crate::params!["secret AND", "name"].unwrap();
        let hide = |message, sql| hide_values(message, sql, &params);
        assert_eq!(
            hide("fts5: syntax error near \"AND\"", "SELECT * FROM f(?)").unwrap(),
            "fts5: syntax error near \"(a bound value)\""
        );
        assert_eq!(hide("no such column: secret", "SELECT 1").unwrap(), "no such column: (a bound value)");
        assert_eq!(hide("UNIQUE constraint failed: t.name", "INSERT INTO t (name) VALUES (?)"), None);
    }
}
