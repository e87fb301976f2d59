//! The table that rows go to.
//!
//! Owns: the statement that makes it, with types that fit the first rows, and the one that inserts a row. Invariant: what does not fit
//! the table is an error before a row is inserted. Leaves out: values, which SQLite brings into the type of their column.

use clap::ValueEnum;
use flatwater::{Database, Value, ValueRef};

use super::Target;
use super::chunk::Chunk;
use crate::failure::{Failure, Outcome};
use crate::output::text::quoted;
use crate::sql::parameters::value;

/// What happens to a row that a constraint refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conflict {
    /// The import ends
    #[default]
    Abort,
    /// The row is left out
    Ignore,
    /// The row takes the place of the one that is there
    Replace,
}

/// Makes the table if it is to be made, and returns the statement that inserts a row.
pub(crate) fn prepared(db: &Database, names: &[String], first: &Chunk, target: &Target) -> Outcome<String> {
    let twice =
        names.iter().enumerate().find(|(at, name)| names[..*at].iter().any(|other| other.eq_ignore_ascii_case(name)));
    if let Some((_, name)) = twice {
        return Err(Failure::Usage(format!("two columns of the file are named {name}")));
    }
    let existing = columns(db, &target.table)?;
    let (names, width) = match (existing.is_empty(), names.is_empty()) {
        (true, _) if !target.creates => {
            let message = format!("there is no table {}: --create makes it", target.table);
            return Err(Failure::Usage(message));
        }
        (true, true) => {
            let width = if first.is_empty() { 0 } else { first.row(0).count() };
            let names: Vec<String> = (1..=width).map(|number| format!("column{number}")).collect();
            db.execute(create(&names, first, target), ()).wait()?;
            (names, width)
        }
        (true, false) => {
            db.execute(create(names, first, target), ()).wait()?;
            (names.to_vec(), names.len())
        }
        (false, true) => (existing, if first.is_empty() { 0 } else { first.row(0).count() }),
        (false, false) => {
            let is_there = |name: &String| existing.iter().any(|column| column.eq_ignore_ascii_case(name));
            if let Some(missing) = names.iter().find(|name| !is_there(name)) {
                let there = existing.join(", ");
                let message = format!("the table {} has no column {missing}; it has {there}", target.table);
                return Err(Failure::Usage(message));
            }
            (names.to_vec(), names.len())
        }
    };
    if names.len() != width {
        let message = format!("the table {} has {} columns, and a line {width} fields", target.table, names.len());
        return Err(Failure::Usage(message));
    }
    Ok(insert(&names, target))
}

/// The columns of a table that can be written.
fn columns(db: &Database, table: &str) -> Outcome<Vec<String>> {
    Ok(db.query_values("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,)).wait()?)
}

fn insert(names: &[String], target: &Target) -> String {
    let verb = match target.conflict {
        Conflict::Abort => "INSERT",
        Conflict::Ignore => "INSERT OR IGNORE",
        Conflict::Replace => "INSERT OR REPLACE",
    };
    let columns: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let values = vec!["?"; names.len()].join(",");
    format!("{verb} INTO {} ({}) VALUES ({values})", quoted(&target.table), columns.join(","))
}

fn create(names: &[String], first: &Chunk, target: &Target) -> String {
    let column = |(at, name): (usize, &String)| {
        let given = target.types.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
        let kind = given.map_or_else(|| kind(first, at), |(_, kind)| kind);
        format!("{} {kind}", quoted(name))
    };
    let columns: Vec<String> = names.iter().enumerate().map(column).collect();
    format!("CREATE TABLE {} ({})", quoted(&target.table), columns.join(", "))
}

/// The type that all values of a column have, in the first rows.
fn kind(chunk: &Chunk, column: usize) -> &'static str {
    let mut kind = None;
    for row in 0..chunk.rows() {
        let of_value = match chunk.row(row).nth(column).expect("all rows are as long") {
            ValueRef::Null => continue,
            ValueRef::Integer(_) => "INTEGER",
            ValueRef::Real(_) => "REAL",
            ValueRef::Text(text) => of_text(&String::from_utf8_lossy(text)),
            ValueRef::Blob(_) => "BLOB",
        };
        kind = match kind {
            None => Some(of_value),
            Some(before) if before == of_value => kind,
            Some("INTEGER" | "REAL") if of_value != "TEXT" => Some("REAL"),
            _ => return "TEXT",
        };
    }
    kind.unwrap_or("TEXT")
}

/// A text is a number only if the number is written as that: digits with a zero before them name something.
fn of_text(text: &str) -> &'static str {
    match value(text) {
        Value::Integer(_) => "INTEGER",
        Value::Real(_) => "REAL",
        // As many digits behind the point as there are in the file.
        _ => match text.split_once('.') {
            Some((whole, part)) => {
                let is_whole = matches!(value(whole), Value::Integer(_)) || whole == "-0";
                let is_part = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                if is_whole && is_part { "REAL" } else { "TEXT" }
            }
            None => "TEXT",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::Cell;
    use super::*;

    fn target(conflict: Conflict) -> Target {
        let types = vec![("C".to_owned(), "BLOB".to_owned())];
        Target { table: "t".to_owned(), creates: true, types, conflict, atomic: false }
    }

    #[test]
    fn types_fit_the_first_rows() {
        let mut chunk = Chunk::default();
        for row in [["1", "1.50", "x", "007"], ["-2", "3", "4", "8"]] {
            chunk.begin_row(1);
            for text in row {
                let begin = chunk.add_text(text);
                chunk.add(Cell::Text(begin, begin + text.len()));
            }
        }
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let expected = r#"CREATE TABLE "t" ("a" INTEGER, "b" REAL, "c" BLOB, "d" TEXT)"#;
        assert_eq!(create(&names, &chunk, &target(Conflict::Abort)), expected);
        assert_eq!(["1.", ".5", "1e3", "-0.5", "00.5"].map(of_text), ["TEXT", "TEXT", "TEXT", "REAL", "TEXT"]);
    }

    #[test]
    fn a_row_that_is_refused_ends_the_import_or_not() {
        let names = ["a".to_owned(), "b\"".to_owned()];
        let sql = |conflict| insert(&names, &target(conflict));
        assert_eq!(sql(Conflict::Abort), r#"INSERT INTO "t" ("a","b""") VALUES (?,?)"#);
        assert!(sql(Conflict::Ignore).starts_with("INSERT OR IGNORE INTO"));
        assert!(sql(Conflict::Replace).starts_with("INSERT OR REPLACE INTO"));
    }
}
