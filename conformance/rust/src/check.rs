//! Comparing what a call did with what its step expects.
//!
//! Owns: the comparison, and the words for a difference. Pure. Invariant: what a step does not give is not compared; an
//! error that it does not give is a difference. Leaves out: making the call.

use flatwater::calls::TimeoutEffect;
use flatwater::values::ExecuteResult;
use flatwater::{Error, ErrorCode, Row, Rows, ValueRef};

use crate::fields::{Constraint, Failure, RunResult};
use crate::outcome::{Handle, Outcome};
use crate::step::{Step, Verb};
use crate::value::Value;

pub(crate) type Checked = Result<(), String>;

/// Compares the end of the call of `step`.
pub(crate) fn end(step: &Step, end: &Result<Outcome, Error>) -> Checked {
    match (end, &step.common.error) {
        (Err(error), Some(expected)) => failure(expected, error),
        (Err(error), None) => Err(format!("it failed: {error}")),
        (Ok(_), Some(expected)) => Err(format!("it did not fail, and {} is expected", expected.kind)),
        (Ok(outcome), None) => of(&step.verb, outcome),
    }
}

fn of(verb: &Verb, outcome: &Outcome) -> Checked {
    match (verb, outcome) {
        (Verb::Execute { changes, last_insert_rowid, .. }, Outcome::Executed(is)) => {
            executed(*changes, *last_insert_rowid, is)
        }
        (Verb::Run { columns, result, .. }, Outcome::Ran(is)) => {
            let names = is.rows.as_ref().map_or_else(Vec::new, |rows| rows.columns().map(str::to_owned).collect());
            same("columns", columns.as_ref(), &names)?;
            result.as_ref().map_or(Ok(()), |expected| ran(expected, is))
        }
        (Verb::ExecuteMany { changes, .. }, Outcome::Changes(is)) => same("changes", changes.as_ref(), is),
        (Verb::QueryMany { returned: Some(expected), .. }, Outcome::Rows(is)) => rows(expected, is),
        (Verb::Batch { results: Some(expected), .. }, Outcome::Batch(is)) => batch(expected, is),
        (Verb::Query { columns, rows: expected, .. }, Outcome::Rows(is)) => {
            let names: Vec<_> = is.columns().map(str::to_owned).collect();
            same("columns", columns.as_ref(), &names)?;
            expected.as_ref().map_or(Ok(()), |expected| rows(expected, is))
        }
        (
            Verb::QueryOne { row: Some(expected), .. } | Verb::QueryOptional { row: Some(expected), .. },
            Outcome::Row(is),
        ) => match (expected, is) {
            (Some(expected), Some(is)) => row(expected, is),
            (None, None) => Ok(()),
            (expected, is) => Err(format!("the row is {is:?}, and {expected:?} is expected")),
        },
        (
            Verb::QueryValue { value: Some(expected), .. } | Verb::QueryOptionalValue { value: Some(expected), .. },
            Outcome::Value(is),
        ) => cells(std::slice::from_ref(expected), &[is.as_ref().map_or(ValueRef::Null, ValueRef::from)]),
        (Verb::QueryValues { values: Some(expected), .. }, Outcome::Values(is)) => {
            cells(expected, &is.iter().map(ValueRef::from).collect::<Vec<_>>())
        }
        (Verb::QueryJson { json: expected, .. }, Outcome::Json(is)) => same("json", expected.as_ref(), is),
        (Verb::IncrementalVacuum { pages, .. }, Outcome::Changes(is)) => same("pages", pages.as_ref(), is),
        (Verb::OpenBlob { bytes, .. }, Outcome::Made(Handle::Blob(blob))) => same("bytes", bytes.as_ref(), &blob.len()),
        (Verb::ReadBlob { value: Some(expected), .. }, Outcome::Bytes(is)) => {
            cells(std::slice::from_ref(expected), &[ValueRef::Blob(is)])
        }
        (Verb::Migrate { applied, .. }, Outcome::Names(is)) => same("applied", applied.as_ref(), is),
        _ => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: Option<&T>, is: &T) -> Checked {
    match expected {
        Some(expected) if expected != is => Err(format!("{what} is {is:?}, and {expected:?} is expected")),
        _ => Ok(()),
    }
}

fn executed(changes: Option<u64>, rowid: Option<Option<i64>>, is: &ExecuteResult) -> Checked {
    same("changes", changes.as_ref(), &is.changes)?;
    same("last_insert_rowid", rowid.as_ref(), &is.last_insert_rowid)
}

fn batch(expected: &[RunResult], is: &[flatwater::values::RunResult]) -> Checked {
    same("the number of results", Some(&expected.len()), &is.len())?;
    expected.iter().zip(is).try_for_each(|(expected, is)| ran(expected, is))
}

fn ran(expected: &RunResult, is: &flatwater::values::RunResult) -> Checked {
    same("changes", expected.changes.as_ref(), &is.changes)?;
    same("last_insert_rowid", expected.last_insert_rowid.as_ref(), &is.last_insert_rowid)?;
    match (&expected.rows, &is.rows) {
        (None, _) | (Some(None), None) => Ok(()),
        (Some(Some(expected)), Some(is)) => rows(expected, is),
        (Some(expected), is) => Err(format!("the rows are {is:?}, and {expected:?} is expected")),
    }
}

pub(crate) fn rows(expected: &[Vec<Value>], is: &Rows) -> Checked {
    same("the number of rows", Some(&expected.len()), &is.len())?;
    expected.iter().zip(is).try_for_each(|(expected, is)| row(expected, &is))
}

pub(crate) fn row(expected: &[Value], is: &Row<'_>) -> Checked {
    cells(expected, &is.values().collect::<Vec<_>>())
}

pub(crate) fn cells(expected: &[Value], are: &[ValueRef<'_>]) -> Checked {
    if expected.len() == are.len() && expected.iter().zip(are).all(|(expected, is)| expected.is(*is)) {
        return Ok(());
    }
    Err(format!("the values are {}, and {} is expected", short(&are), short(&expected)))
}

/// Debug output, without the rest of a large value.
fn short(values: &impl std::fmt::Debug) -> String {
    let text = format!("{values:?}");
    text.char_indices().nth(400).map_or(text.clone(), |(end, _)| format!("{}...", &text[..end]))
}

/// Compares an error with the one that is expected.
pub(crate) fn failure(expected: &Failure, error: &Error) -> Checked {
    let wrong = |what: &str| Err(format!("{what} of another error is expected ({expected:?}), and it is: {error:?}"));
    let has = |expected: &Option<String>, text: Option<&str>| {
        expected.as_ref().is_none_or(|part| text.is_some_and(|text| text.contains(&**part)))
    };
    let plain = |text: &str| text.to_lowercase().replace('_', "");
    if expected.kind != error.kind().name() {
        return wrong("the kind");
    }
    let code = error.code().map(ErrorCode::name).or(error.sqlite_name());
    if expected.code.is_some() && expected.code.as_deref() != code {
        return wrong("the code");
    }
    let constraint = error.constraint().map(|is| Constraint {
        kind: is.kind().name().to_owned(),
        table: is.table().map(str::to_owned),
        columns: is.columns().to_vec(),
        name: is.name().map(str::to_owned),
    });
    if expected.constraint.is_some() && expected.constraint != constraint {
        return wrong("the constraint");
    }
    if !has(&expected.message_contains, Some(error.message())) {
        return wrong("the message");
    }
    let hint = error.hint().map(plain);
    if !has(&expected.hint_contains.as_deref().map(plain), hint.as_deref())
        || expected.hint.is_some_and(|has_hint| has_hint != error.hint().is_some())
    {
        return wrong("the hint");
    }
    let at =
        |at: &String| error.sql().zip(error.offset()).and_then(|(sql, offset)| sql.get(offset..)?.strip_prefix(&**at));
    if !has(&expected.sql_contains, error.sql()) || expected.at.as_ref().is_some_and(|text| at(text).is_none()) {
        return wrong("the SQL");
    }
    let applied = error.applied().map(|applied| match applied {
        TimeoutEffect::No => "no",
        TimeoutEffect::Yes => "yes",
        TimeoutEffect::Unknown => "unknown",
    });
    if expected.applied.is_some() && expected.applied.as_deref() != applied {
        return wrong("`applied`");
    }
    if expected.retryable.is_some_and(|retryable| retryable != error.is_retryable()) {
        return wrong("`retryable`");
    }
    match &expected.hides {
        Some(secret) if format!("{error} {error:?}").contains(&**secret) => wrong("the text"),
        _ => Ok(()),
    }
}
