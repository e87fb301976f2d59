//! Errors on their way to JavaScript, as data: the `Error` is made there, in the code that awaits, so that its stack shows the
//! caller.
//!
//! Owns: which fields an error has. Runs on the loop's thread. Invariant: bound values are in none. Leaves out: the class.

use std::error::Error as _;
use std::io;

use flatwater::bindings::shown;
use flatwater::calls::TimeoutEffect;
use flatwater::{Constraint, Error, ErrorCode};
use flatwater_bridge::{Language, hint, spelled};

use crate::capi::value::{Env, Result, Value};
use crate::functions::threw::Threw;

pub(crate) enum Failure {
    Engine(Error),
    /// Of the front end itself.
    Own(Own),
    /// The call was given up, and what it began is undone.
    GivenUp,
}

/// A failure of the front end itself.
pub(crate) struct Own {
    code: ErrorCode,
    message: String,
    hint: Option<&'static str>,
    /// The text whose values were refused.
    sql: Option<String>,
    /// The call was executed all the same.
    is_applied: bool,
}

impl Failure {
    fn own(code: ErrorCode, message: String, hint: Option<&'static str>) -> Self {
        Self::Own(Own { code, message, hint, sql: None, is_applied: false })
    }

    pub(crate) fn misuse(message: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self::refused(ErrorCode::InvalidArgument, message, hint)
    }

    pub(crate) fn refused(code: ErrorCode, message: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self::own(code, message.into(), hint)
    }

    /// A value of the result has no form in JavaScript.
    fn undecoded(message: String, hint: &'static str) -> Self {
        Self::own(ErrorCode::UnreadableValue, message, Some(hint))
    }

    fn changed(mut self, change: impl FnOnce(&mut Own)) -> Self {
        if let Self::Own(own) = &mut self {
            change(own);
        }
        self
    }

    /// Says in which of many rows or statements a value was refused.
    pub(crate) fn at(self, what: &str, number: usize) -> Self {
        self.changed(|own| own.message = format!("{what} {number}: {}", own.message))
    }

    /// Says of which text the values were refused.
    pub(crate) fn of(self, text: Option<&str>) -> Self {
        self.changed(|own| own.sql = text.map(|text| shown(text).into_owned()))
    }

    /// Says that the call was executed, though it has no result.
    pub(crate) fn applied(self) -> Self {
        self.changed(|own| {
            own.message.push_str("; the call was executed");
            own.is_applied = true;
        })
    }

    /// Returns the fields: `{ message, kind, code, errcode, sql, offset, hint, applied, retryable, cause }`.
    pub(crate) fn fields<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        let fields = env.object()?;
        let text = |name: &str, value: Option<&str>| match value {
            Some(value) => env.set(fields, name, env.text(value)?),
            None => Ok(()),
        };
        let of_code = |code: ErrorCode| {
            text("kind", Some(code.kind().name()))?;
            text("code", Some(&code_of(code)))
        };
        match self {
            Self::Own(Own { code, message, hint, sql, is_applied }) => {
                text("message", Some(message))?;
                text("sql", sql.as_deref())?;
                of_code(*code)?;
                text("hint", *hint)?;
                text("applied", is_applied.then_some("yes"))?;
            }
            Self::GivenUp => {
                text("message", Some("the call was given up"))?;
                of_code(ErrorCode::GivenUp)?;
            }
            Self::Engine(error) => {
                text("message", Some(&spelled(error.message(), Language::Node)))?;
                text("kind", Some(error.kind().name()))?;
                text("code", error.code().map(code_of).as_deref().or(error.sqlite_name()))?;
                if let Some(constraint) = error.constraint() {
                    env.set(fields, "constraint", fields_of(env, constraint)?)?;
                }
                text("sql", error.sql())?;
                text(
                    "hint",
                    hint(error, Language::Node).map(|hint| spelled(&hint, Language::Node).into_owned()).as_deref(),
                )?;
                text("applied", error.applied().map(applied))?;
                let number = |name, number: Option<f64>| match number {
                    Some(number) => env.set(fields, name, env.number(number)?),
                    None => Ok(()),
                };
                number("errcode", error.sqlite_code().map(f64::from))?;
                number("offset", error.offset().map(|offset| offset as f64))?;
                env.set(fields, "retryable", env.boolean(error.is_retryable())?)?;
                if let Some(thrown) = Threw::thrown_in(error) {
                    env.set(fields, "thrown", env.buffer(thrown)?)?;
                }
                if let Some(cause) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
                    env.set(fields, "cause", system_error(env, cause)?)?;
                }
            }
        }
        Ok(fields)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The code as an error of Node has it.
fn code_of(code: ErrorCode) -> String {
    format!("FLATWATER_{}", code.name().to_ascii_uppercase())
}

fn fields_of<'e>(env: Env<'e>, constraint: &Constraint) -> Result<Value<'e>> {
    let fields = env.object()?;
    env.set(fields, "kind", env.text(constraint.kind().name())?)?;
    for (name, value) in [("table", constraint.table()), ("name", constraint.name())] {
        env.set(fields, name, value.map_or_else(|| env.undefined(), |value| env.text(value))?)?;
    }
    env.set(fields, "columns", env.array(constraint.columns().iter().map(|column| env.text(column)))?)?;
    Ok(fields)
}

/// A text that is no value has half of a surrogate pair: another character would stand in its place.
pub(crate) fn half_in(what: &str) -> Failure {
    Failure::misuse(
        format!("{what} has half of a surrogate pair"),
        Some("cut the text between characters, or pass text.toWellFormed()"),
    )
}

/// The texts of a row are longer than a string may be; the longest is in the column of this name.
pub(crate) fn too_long(column: &str) -> Failure {
    Failure::undecoded(
        format!("the text in column {column:?} is longer than a string of Node may be"),
        "read its parts with substr(), or its bytes with CAST(... AS BLOB)",
    )
}

/// The integer in a column of this name is beyond 2^53.
pub(crate) fn inexact(column: &str) -> Failure {
    Failure::undecoded(
        format!("an integer in column {column:?} is beyond 2^53, and would be rounded as a number"),
        "ask for bigints: { integers: 'auto' }, or 'bigint' for all integers",
    )
}

/// An error of the operating system: its text, and its number or the name that Node has for it.
fn system_error<'e>(env: Env<'e>, error: &io::Error) -> Result<Value<'e>> {
    let fields = env.object()?;
    env.set(fields, "message", env.text(&error.to_string())?)?;
    if let Some(number) = error.raw_os_error() {
        env.set(fields, "errno", env.number(f64::from(number))?)?;
    }
    let code = match error.kind() {
        io::ErrorKind::NotFound => Some("ENOENT"),
        io::ErrorKind::PermissionDenied => Some("EACCES"),
        io::ErrorKind::ReadOnlyFilesystem => Some("EROFS"),
        io::ErrorKind::StorageFull => Some("ENOSPC"),
        io::ErrorKind::OutOfMemory => Some("ENOMEM"),
        _ => None,
    };
    if let Some(code) = code {
        env.set(fields, "code", env.text(code)?)?;
    }
    Ok(fields)
}

fn applied(effect: TimeoutEffect) -> &'static str {
    match effect {
        TimeoutEffect::No => "no",
        TimeoutEffect::Yes => "yes",
        TimeoutEffect::Unknown => "unknown",
    }
}
