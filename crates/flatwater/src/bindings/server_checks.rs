//! What is wrong with a statement for a server, as far as its text and its values tell: the errors that a file gives. Part of the
//! interface that `bindings` is, and with it not for programs.
//!
//! Owns: these checks. Pure. Invariant: no value is in an error. Leaves out: what a server refuses besides, which the crate that reaches
//! it knows.

use flatwater_sqlite::Error as Sqlite;

use super::asked::One;
use crate::connection::run::hints::ONE_FOR_A_LIST;
use crate::connection::run::prepare::nul_in_sql;
use crate::error::hint::hint;
use crate::error::{Error, Result};
use crate::sql::pragma::{self, Pragma};
use crate::sql::tokens::{self, has_in_with_one_parameter};
use crate::sql::{change_functions, parameters};
use crate::workers::shared_errors;

/// Refuses values that are not those of the parameters.
///
/// # Errors
/// `Misuse`, with the names that there are, or the number.
pub fn check_parameters(one: &One<'_>) -> Result<()> {
    let given: Vec<&str> = one.values().filter_map(|(name, _)| name).collect();
    if given.is_empty() {
        return check_count(one);
    }
    let mut known: Vec<String> = Vec::new();
    for name in parameters::signed(one.sql) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let mut bound = vec![false; known.len()];
    for name in given {
        let Some(at) = known.iter().position(|known| *known == name || known[1..] == *name) else {
            return Err(Sqlite::UnknownParameter { name: name.to_owned(), known }.into());
        };
        if std::mem::replace(&mut bound[at], true) {
            return Err(Sqlite::RepeatedParameter { name: known[at].clone() }.into());
        }
    }
    match bound.iter().position(|bound| !bound) {
        Some(at) => Err(Sqlite::MissingParameter { name: known[at].clone() }.into()),
        None if known.len() < parameters::count(one.sql) => {
            Err(Error::misuse("some parameters have names and others have none").with_hint("name all of them"))
        }
        None => Ok(()),
    }
}

fn check_count(one: &One<'_>) -> Result<()> {
    let (expected, given) = (parameters::count(one.sql), one.len());
    if expected == given {
        return Ok(());
    }
    let error = Error::from(Sqlite::ParameterCount { expected, given });
    Err(if has_in_with_one_parameter(one.sql) { error.with_hint(ONE_FOR_A_LIST) } else { error })
}

/// Refuses a text that SQLite would read up to a NUL only.
///
/// # Errors
/// `Misuse`.
pub fn check_nul(sql: &str) -> Result<()> {
    if sql.contains('\0') { Err(nul_in_sql()) } else { Ok(()) }
}

/// The function by which a text may ask for an earlier statement of its connection.
#[must_use]
pub fn asks_for_earlier(sql: &str) -> Option<&'static str> {
    let tokens: Vec<(&str, &str)> = tokens::with_gaps(sql).map(|(kind, token, _)| (kind, token)).collect();
    tokens.windows(3).find_map(|three| {
        let [(kind, name), (_, "("), (_, ")")] = three else { return None };
        let name = name.trim_matches(['"', '`', '[', ']']);
        let is_it = |function: &&str| matches!(*kind, "word" | "name") && name.eq_ignore_ascii_case(function);
        change_functions::FUNCTIONS.into_iter().find(is_it)
    })
}

/// The name of a PRAGMA that does more than answer a question.
///
/// # Errors
/// `Misuse` for one that there is not.
pub fn changing_pragma(sql: &str) -> Result<Option<&str>> {
    let Some((name, value)) = tokens::pragma(sql) else { return Ok(None) };
    match pragma::class(name, value.is_some()) {
        Pragma::Answer => Ok(None),
        Pragma::Unknown => {
            let error = Error::misuse(format!("there is no PRAGMA {name}"));
            Err(error.with_hint("SQLite ignores unknown PRAGMAs silently"))
        }
        _ => Ok(Some(name)),
    }
}

/// The error for a statement whose rows nobody has asked for.
#[must_use]
pub fn returns_rows(is_write: bool) -> Error {
    shared_errors::returns_rows(is_write)
}

/// The error for a statement that has no rows.
#[must_use]
pub fn returns_no_rows() -> Error {
    shared_errors::returns_no_rows()
}

/// The error for the control of a transaction as text, where the server has transactions.
#[must_use]
pub fn control_as_text(verb: &str) -> Error {
    let is = |words: &[&str]| words.iter().any(|word| verb.eq_ignore_ascii_case(word));
    let error =
        Error::misuse(format!("{verb} as text would have no effect on the next call, which has another connection"));
    if is(&["BEGIN"]) {
        error.with_hint(hint![BeginTransaction])
    } else if is(&["SAVEPOINT", "RELEASE"]) {
        error.with_hint(hint![NestTransaction])
    } else {
        error.with_hint(hint!["a single write is committed when its call returns; a transaction " EndsTransaction])
    }
}
