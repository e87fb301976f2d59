//! Hints for texts that SQLite cannot prepare: the nearest name that exists, functions that nobody registered, lists that are
//! no lists, and the placeholders of other libraries.
//!
//! Owns: which message gets which hint, and looking the names up. Runs on the thread that has the connection, after a
//! prepare failed. Invariant: a name is suggested only if it exists and is like the wrong one. Leaves out: texts that the
//! policy refuses.

use flatwater_sqlite::Sqlite;

use crate::connection::rows;
use flatwater_base::error::hint::{Hint, Sentence, hint};
use flatwater_base::error::kind::SINGLE_QUOTES;
use flatwater_base::error::{Error, beginning};
use flatwater_base::growth_counter::step;
use flatwater_sql::pragma::{self, Pragma};
use flatwater_sql::tokens::has_in_with_one_parameter;

const JSON_LIST: &str = "use IN (SELECT value FROM json_each(?)) with a JSON list";

/// The hint where one parameter takes the place of a list.
pub(crate) const ONE_FOR_A_LIST: &str =
    "IN (?) takes one value; use one ? for each, or IN (SELECT value FROM json_each(?)) with a JSON list";

const REGISTERED: &Sentence =
    hint!["functions and collations of the program are registered with " OnConnect " or " CreateFunctions];

/// Of Rust alone: the packages for other languages have it.
const NO_REGEXP: &str =
    "the cargo feature `regexp` of flatwater has it; or create a function `regexp` of two arguments, the pattern first";

const FOREIGN_PLACEHOLDER: &str = "a value is bound to `?`, or to a name such as `:name`; not to `%s` or `{}`";

const TABLES: &str = "SELECT name, name FROM sqlite_schema WHERE type IN ('table', 'view') LIMIT 1000";
/// Only of tables that the text names, which is in lower case. Not all views can be asked: one of a table that is gone fails.
const COLUMNS: &str = "SELECT c.name, c.name || ' in ' || t.name FROM sqlite_schema t, pragma_table_info(t.name) c
    WHERE t.type IN ('table', 'view') AND instr(?1, lower(t.name)) LIMIT 1000";
/// The beginning of a text in which tables are looked for: each table of the schema is.
const LOOKED_AT_BYTES: usize = 4096;
/// A longer name is taken for none that was mistyped: comparing two names takes a time that grows with their product.
const NAME_BYTES: usize = 64;
const FUNCTIONS: &str = "SELECT DISTINCT name, name FROM pragma_function_list";
const PRAGMAS: &str = "SELECT name, name FROM pragma_pragma_list";

/// Returns the hint for `sql`, which SQLite refused with this error.
#[cold]
pub(super) fn hint(sqlite: &Sqlite, error: &Error, sql: &str) -> Option<Hint> {
    let message = error.message();
    if message.starts_with("too many SQL variables") || message.starts_with("variable number must be") {
        return Some(format!("for a long list {JSON_LIST}").into());
    }
    if is_at_foreign_placeholder(message, sql) {
        return Some(FOREIGN_PLACEHOLDER.into());
    }
    let is_at_parameter = ["?", ":", "@", "$"].iter().any(|mark| message.starts_with(&format!("near \"{mark}")));
    if is_at_parameter && has_in_with_one_parameter(sql) {
        return Some(ONE_FOR_A_LIST.into());
    }
    if let Some(wanted) = message.strip_prefix("no such table: ") {
        return nearest(sqlite, "table", TABLES, last(wanted), None).map(Hint::from);
    }
    if let Some(wanted) = message.strip_prefix("no such function: ") {
        if wanted.eq_ignore_ascii_case("regexp") && !cfg!(feature = "regexp") {
            return Some(NO_REGEXP.into());
        }
        let nearest = nearest(sqlite, "function", FUNCTIONS, wanted, None);
        return Some(nearest.map_or_else(|| REGISTERED.into(), Hint::from));
    }
    // Functions and collations of the schema: of a check, a generated column, an index.
    if message.starts_with("unknown function: ") || message.starts_with("no such collation sequence: ") {
        return Some(REGISTERED.into());
    }
    let column = message.strip_prefix("no such column: ").and_then(|name| match name.strip_suffix(SINGLE_QUOTES) {
        // What has no place in the text is in a view or in a trigger.
        Some(quoted) => quoted.strip_prefix('"').filter(|_| error.offset().is_some()),
        None => Some(last(name)),
    });
    let column = column.or_else(|| message.rsplit_once(" has no column named ").map(|(_, name)| name))?;
    let begin = beginning(sql, LOOKED_AT_BYTES).to_lowercase();
    nearest(sqlite, "column", COLUMNS, column, Some(&begin)).map(Hint::from)
}

/// Returns the hint for a PRAGMA that does not exist.
#[cold]
pub(super) fn nearest_pragma(sqlite: &Sqlite, wanted: &str) -> Option<String> {
    let hint = nearest(sqlite, "PRAGMA", PRAGMAS, wanted, None)?;
    let is_known = hint.rsplit(' ').next().is_some_and(|name| pragma::class(name, false) != Pragma::Unknown);
    is_known.then_some(hint)
}

/// Returns the hint with the name that is most like `wanted`, if one is. `list` returns names and how each is shown.
fn nearest(sqlite: &Sqlite, what: &str, list: &str, wanted: &str, parameter: Option<&str>) -> Option<String> {
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let names = sqlite.patiently_with(|sqlite| rows(sqlite, list, rusqlite::params_from_iter(parameter), pair));
    let names: Vec<(String, String)> = names.ok()?;
    let shown = most_alike(wanted, names)?;
    Some(format!("there is a {what} {shown}"))
}

/// Returns how the name that is most like `wanted` is shown, if one is like it. `names` are names and how each is shown.
pub(crate) fn most_alike<S: Ord>(wanted: &str, names: impl IntoIterator<Item = (String, S)>) -> Option<S> {
    if wanted.len() > NAME_BYTES {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let near = names.into_iter().filter_map(|(name, shown)| Some((distance(&name.to_lowercase(), &wanted)?, shown)));
    near.min().map(|(_, shown)| shown)
}

/// Returns in how many letters the names differ, if that is in a third of the longer one and in three at most.
fn distance(name: &str, wanted: &str) -> Option<usize> {
    let most = (name.len().max(wanted.len()) / 3).min(3);
    let may_be_near = name.len().abs_diff(wanted.len()) <= most;
    let compare = || {
        step(name.len() * wanted.len());
        strsim::damerau_levenshtein(name, wanted)
    };
    may_be_near.then(compare).filter(|distance| *distance <= most)
}

/// Returns true if SQLite failed at what is the place of a value elsewhere: `%s`, `%(name)s`, `{}` or `{name}`.
fn is_at_foreign_placeholder(message: &str, sql: &str) -> bool {
    let has = |begins: &[&str]| begins.iter().any(|begin| sql.contains(begin));
    message.starts_with("near \"%\"") && has(&["%s", "%d", "%("]) || message.starts_with("unrecognized token: \"{\"")
}

/// Returns the last part of a name that SQLite may have qualified.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_proposed_only_if_it_is_near() {
        let nearest = |wanted: &str, known: &str| most_alike(wanted, [(known.to_owned(), ())]).is_some();
        for (wanted, known) in [("nmae", "name"), ("ids", "id"), ("USRES", "users"), ("name_ofship", "name_of_ship")] {
            assert!(nearest(wanted, known), "{known} for {wanted}");
        }
        for (wanted, known) in
            [("ab", "a"), ("ip", "id"), ("age", "name"), ("user_settings", "user_sessions"), ("", "a"), ("foo", "bar")]
        {
            assert!(!nearest(wanted, known), "{known} for {wanted}");
        }
        let long = "n".repeat(NAME_BYTES + 1);
        assert!(!nearest(&long, &long[1..]) && nearest(&long[1..], &long));
    }
}
