//! The plain check: a scenario of plain SQL does the same on SQLite without Flatwater.
//!
//! Owns: which scenarios are plain, and running them on a connection of rusqlite. Invariant: Flatwater takes no part but
//! in naming errors. Leaves out: hints, messages, JSON documents, and what Flatwater refuses.

use flatwater::{Error, ToSql};
use rusqlite::types::{ToSqlOutput, Value as Stored, ValueRef};
use rusqlite::{Connection, Statement};

use crate::check::{self, Checked};
use crate::fields::{Options, Params, RunResult, Text};
use crate::format::Scenario;
use crate::step::{Step, Verb};
use crate::value::Value;

/// Returns true if each step is plain SQL on the database, or is refused by Flatwater before it does anything.
pub(crate) fn is_plain(scenario: &Scenario) -> bool {
    scenario.needs_a_file.is_none()
        && scenario.options == Options::default()
        && scenario.steps.iter().all(|step| {
            let common = &step.common;
            let kind = common.error.as_ref().map(|error| &*error.kind);
            let is_call = is_of_several(&step.verb) || matches!(step.verb.text(), Some(Text::Sql(_)));
            is_call
                && common.start.is_none()
                && (common.is_plain() || kind == Some("timeout"))
                && matches!(kind, None | Some("sql" | "constraint" | "misuse" | "timeout" | "row_not_found"))
        })
}

/// Runs the steps of a plain scenario.
pub(crate) fn run(scenario: &Scenario) -> Checked {
    let connection = Connection::open_in_memory().map_err(|error| error.to_string())?;
    connection.pragma_update(None, "foreign_keys", true).map_err(|error| error.to_string())?;
    for (number, step) in (1..).zip(&scenario.steps) {
        let kind = step.common.error.as_ref().map(|error| &*error.kind);
        if !matches!(kind, Some("misuse" | "timeout")) {
            self::step(&connection, step).map_err(|wrong| format!("step {number}, on plain SQLite: {wrong}"))?;
        }
    }
    Ok(())
}

fn step(connection: &Connection, step: &Step) -> Checked {
    let end = if is_of_several(&step.verb) {
        let all = || {
            connection.execute_batch("BEGIN")?;
            let ran = several(connection, &step.verb)?;
            connection.execute_batch("COMMIT").map(|()| ran)
        };
        let end = all();
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").map_err(|error| error.to_string())?;
        }
        end
    } else {
        one(connection, &step.verb).map(|ran| vec![ran])
    };
    match (end, &step.common.error) {
        (Ok(ran), None) => compare(&step.verb, &ran),
        // A missing row is no error of SQLite's.
        (Ok(ran), Some(expected)) if expected.kind == "row_not_found" && ran.iter().all(|ran| ran.rows.is_empty()) => {
            Ok(())
        }
        (Ok(_), Some(_)) => Err("it did not fail".to_owned()),
        (Err(error), None) => Err(error.to_string()),
        (Err(error), Some(expected)) => {
            let error = Error::from(error);
            let code = expected.code.as_ref().is_none_or(|code| Some(&**code) == error.sqlite_name());
            if code && error.kind().name() == expected.kind { Ok(()) } else { Err(error.to_string()) }
        }
    }
}

/// What one statement did.
struct Ran {
    columns: Vec<String>,
    rows: Vec<Vec<Stored>>,
    changes: u64,
    rowid: i64,
}

/// Returns true for a call that runs statements in a transaction of its own.
fn is_of_several(verb: &Verb) -> bool {
    matches!(verb, Verb::ExecuteMany { .. } | Verb::QueryMany { .. } | Verb::Batch { .. } | Verb::ExecuteScript { .. })
}

fn several(connection: &Connection, verb: &Verb) -> rusqlite::Result<Vec<Ran>> {
    match verb {
        Verb::ExecuteMany { of, rows, .. } | Verb::QueryMany { of, rows, .. } => {
            rows.iter().map(|params| statement(connection, of, params)).collect()
        }
        Verb::Batch { of, .. } => of.iter().map(|(sql, params)| statement(connection, sql, params)).collect(),
        Verb::ExecuteScript { of } => connection.execute_batch(of).map(|()| Vec::new()),
        _ => Ok(Vec::new()),
    }
}

fn one(connection: &Connection, verb: &Verb) -> rusqlite::Result<Ran> {
    match verb {
        Verb::Execute { of: Text::Sql(sql), params, .. }
        | Verb::Run { of: Text::Sql(sql), params, .. }
        | Verb::Query { of: Text::Sql(sql), params, .. }
        | Verb::QueryOne { of: Text::Sql(sql), params, .. }
        | Verb::QueryValue { of: Text::Sql(sql), params, .. }
        | Verb::QueryOptional { of: Text::Sql(sql), params, .. }
        | Verb::QueryOptionalValue { of: Text::Sql(sql), params, .. }
        | Verb::QueryValues { of: Text::Sql(sql), params, .. }
        | Verb::QueryJson { of: Text::Sql(sql), params, .. } => statement(connection, sql, params),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

fn statement(connection: &Connection, sql: &str, params: &Params) -> rusqlite::Result<Ran> {
    let before = connection.total_changes();
    let mut statement = connection.prepare(sql)?;
    bind(&mut statement, params)?;
    let names = (0..statement.column_count()).map(|column| statement.column_name(column).map(str::to_owned));
    let columns: Vec<_> = names.collect::<rusqlite::Result<_>>()?;
    let mut rows = Vec::new();
    let mut stepped = statement.raw_query();
    while let Some(row) = stepped.next()? {
        rows.push((0..columns.len()).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?);
    }
    drop(stepped);
    let changes = if connection.total_changes() == before { 0 } else { connection.changes() };
    Ok(Ran { columns, rows, changes, rowid: connection.last_insert_rowid() })
}

fn bind(statement: &mut Statement<'_>, params: &Params) -> rusqlite::Result<()> {
    match params {
        Params::Positional(values) => {
            (1..).zip(values).try_for_each(|(at, value)| statement.raw_bind_parameter(at, Bound(value)))
        }
        Params::Named(values) => values.iter().try_for_each(|(name, value)| {
            let at = ["", ":", "@", "$"]
                .iter()
                .find_map(|sign| statement.parameter_index(&format!("{sign}{name}")).ok().flatten());
            let at = at.ok_or_else(|| rusqlite::Error::InvalidParameterName(name.clone()))?;
            statement.raw_bind_parameter(at, Bound(value))
        }),
    }
}

/// A value in the form in which Flatwater binds it.
struct Bound<'a>(&'a Value);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        ToSql::to_sql(self.0)
    }
}

fn compare(verb: &Verb, ran: &[Ran]) -> Checked {
    let first = ran.first();
    match (verb, first) {
        (Verb::Execute { changes, last_insert_rowid, .. }, Some(first)) => {
            executed(*changes, *last_insert_rowid, first)
        }
        (Verb::Run { columns, result, .. }, Some(first)) => {
            columns.as_ref().map_or(Ok(()), |columns| equal("columns", columns, &first.columns))?;
            result.as_ref().map_or(Ok(()), |expected| one_result(expected, first))
        }
        (Verb::ExecuteMany { changes: Some(changes), .. }, _) => {
            equal("changes", *changes, ran.iter().map(|ran| ran.changes).sum())
        }
        (Verb::QueryMany { returned: Some(expected), .. }, _) => {
            rows(expected, &ran.iter().flat_map(|ran| ran.rows.iter().cloned()).collect::<Vec<_>>())
        }
        (Verb::Batch { results: Some(results), .. }, _) => {
            results.iter().zip(ran).try_for_each(|(expected, ran)| one_result(expected, ran))
        }
        (Verb::Query { columns, rows: expected, .. }, Some(first)) => {
            columns.as_ref().map_or(Ok(()), |columns| equal("columns", columns, &first.columns))?;
            expected.as_ref().map_or(Ok(()), |expected| rows(expected, &first.rows))
        }
        (Verb::QueryOne { row: Some(expected), .. } | Verb::QueryOptional { row: Some(expected), .. }, Some(first)) => {
            let expected = expected.as_ref().map(std::slice::from_ref).unwrap_or_default();
            rows(expected, first.rows.get(..1).unwrap_or_default())
        }
        (
            Verb::QueryValue { value: Some(expected), .. } | Verb::QueryOptionalValue { value: Some(expected), .. },
            Some(first),
        ) => {
            let is = first.rows.first().map_or(ValueRef::Null, |row| ValueRef::from(&row[0]));
            check::cells(std::slice::from_ref(expected), &[is])
        }
        (Verb::QueryValues { values: Some(expected), .. }, Some(first)) => {
            check::cells(expected, &first.rows.iter().map(|row| ValueRef::from(&row[0])).collect::<Vec<_>>())
        }
        _ => Ok(()),
    }
}

fn one_result(expected: &RunResult, ran: &Ran) -> Checked {
    executed(expected.changes, expected.last_insert_rowid, ran)?;
    expected.rows.iter().flatten().try_for_each(|expected| rows(expected, &ran.rows))
}

fn executed(changes: Option<u64>, rowid: Option<Option<i64>>, ran: &Ran) -> Checked {
    changes.map_or(Ok(()), |changes| equal("changes", changes, ran.changes))?;
    rowid.flatten().map_or(Ok(()), |rowid| equal("last_insert_rowid", rowid, ran.rowid))
}

fn rows(expected: &[Vec<Value>], are: &[Vec<Stored>]) -> Checked {
    equal("the number of rows", expected.len(), are.len())?;
    expected
        .iter()
        .zip(are)
        .try_for_each(|(expected, is)| check::cells(expected, &is.iter().map(ValueRef::from).collect::<Vec<_>>()))
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, is: T) -> Checked {
    if expected == is { Ok(()) } else { Err(format!("{what} is {is:?}, and {expected:?} is expected")) }
}
