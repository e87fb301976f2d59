//! Which constraint failed.
//!
//! Owns: the constraint that an error names, and reading it from SQLite's message. Pure: what the schema has is asked of the caller.
//! Invariants: the kind is that of SQLite's code, but for a foreign key with RESTRICT; a name is reported only if the message can be
//! read in one way. Leaves out: asking the schema (`connection::run::failures`), and messages that code of the program writes, RAISE
//! among it.

use rusqlite::ffi;

use super::Error;

/// The kind of a constraint that failed (<https://sqlite.org/rescode.html#constraint>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConstraintKind {
    /// UNIQUE, or a unique index; or a rowid that is in use.
    Unique,
    /// PRIMARY KEY.
    PrimaryKey,
    /// NOT NULL.
    NotNull,
    /// CHECK.
    Check,
    /// A foreign key.
    ForeignKey,
    /// A trigger called RAISE.
    Trigger,
    /// The type of a column of a STRICT table.
    DataType,
    /// A virtual table, a function or a commit hook refused the write.
    Other,
}

impl ConstraintKind {
    /// Returns the kind's name in lower case, such as `primary_key`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::PrimaryKey => "primary_key",
            Self::NotNull => "not_null",
            Self::Check => "check",
            Self::ForeignKey => "foreign_key",
            Self::Trigger => "trigger",
            Self::DataType => "data_type",
            Self::Other => "other",
        }
    }

    fn of_code(code: i32) -> Self {
        match code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_ROWID => Self::Unique,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY => Self::PrimaryKey,
            ffi::SQLITE_CONSTRAINT_NOTNULL => Self::NotNull,
            ffi::SQLITE_CONSTRAINT_CHECK => Self::Check,
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Self::ForeignKey,
            ffi::SQLITE_CONSTRAINT_TRIGGER => Self::Trigger,
            ffi::SQLITE_CONSTRAINT_DATATYPE => Self::DataType,
            _ => Self::Other,
        }
    }
}

/// The constraint that failed, as far as SQLite tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    kind: ConstraintKind,
    table: Option<String>,
    columns: Vec<String>,
    name: Option<String>,
}

impl Constraint {
    /// Returns the kind of the constraint.
    #[must_use]
    pub fn kind(&self) -> ConstraintKind {
        self.kind
    }

    /// Returns the table. SQLite does not name that of a foreign key and of a trigger; that of a CHECK is known if the statement
    /// writes one table.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// Returns the columns, in the order of the constraint. There are none where SQLite names none: for an index on an
    /// expression, a CHECK, a foreign key and a trigger.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the name of the index on an expression, or of the CHECK; of a CHECK without a name, its text. SQLite names no other
    /// index.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The constraint of an error with this code and message.
    pub(super) fn of_message(code: i32, message: &str, schema: Option<&dyn Schema>) -> Option<Self> {
        if code & 0xff != ffi::SQLITE_CONSTRAINT {
            return None;
        }
        let kind = match ConstraintKind::of_code(code) {
            // A foreign key with RESTRICT fails by a RAISE of SQLite's own (`fkActionTrigger`).
            ConstraintKind::Trigger if message == FOREIGN_KEY => ConstraintKind::ForeignKey,
            kind => kind,
        };
        let mut new = Self { kind, table: None, columns: Vec::new(), name: None };
        let begin = match new.kind {
            ConstraintKind::Unique | ConstraintKind::PrimaryKey => "UNIQUE constraint failed: ",
            ConstraintKind::NotNull => "NOT NULL constraint failed: ",
            ConstraintKind::Check => "CHECK constraint failed: ",
            ConstraintKind::DataType => "cannot store ",
            _ => return Some(new),
        };
        let Some(said) = message.strip_prefix(begin) else { return Some(new) };
        match new.kind {
            ConstraintKind::Check => {
                new.name = Some(said.to_owned());
                new.table = schema.and_then(Schema::only_table);
            }
            ConstraintKind::DataType => {
                // "cannot store TEXT value in INT column t.a"
                if let Some((_, column)) = said.split_once(" column ") {
                    new.set_columns(column, schema);
                }
            }
            _ => match index_of(said).filter(|_| new.kind == ConstraintKind::Unique) {
                Some(index) if schema.is_none_or(|schema| schema.table_of(&index).is_some()) => {
                    new.table = schema.and_then(|schema| schema.table_of(&index));
                    new.name = Some(index);
                }
                index => {
                    new.set_columns(said, schema);
                    // The index may be gone by now, with the statement that was to make it.
                    new.name = index.filter(|_| new.table.is_none());
                }
            },
        }
        Some(new)
    }

    fn set_columns(&mut self, said: &str, schema: Option<&dyn Schema>) {
        let (table, columns) = match schema {
            Some(schema) => in_schema(said, schema),
            None => in_plain_names(said),
        };
        (self.table, self.columns) = (table, columns);
    }
}

/// What a schema has, for reading names that stand in a message without quotes.
#[doc(hidden)]
pub trait Schema {
    /// Returns true if a table has a column.
    fn has(&self, table: &str, column: &str) -> bool;

    /// Returns the table of an index.
    fn table_of(&self, index: &str) -> Option<String>;

    /// Returns the table that the statement writes, if it can write no other.
    fn only_table(&self) -> Option<String>;
}

const FOREIGN_KEY: &str = "FOREIGN KEY constraint failed";
/// Names with more dots are not looked up.
const MOST_DOTS: usize = 64;
/// Lists with more parts are read as having no separator within a name.
const MOST_PARTS: usize = 12;

type Names = (Option<String>, Vec<String>);

/// Reads `index 'its name'`, in which a quote is doubled.
fn index_of(said: &str) -> Option<String> {
    Some(said.strip_prefix("index '")?.strip_suffix('\'')?.replace("''", "'"))
}

/// Reads `t.a, t.b` if no name can have a dot in it: there are as many dots as columns.
fn in_plain_names(said: &str) -> Names {
    let Some((table, rest)) = said.split_once('.') else { return Names::default() };
    let columns: Vec<String> = rest.split(&format!(", {table}.")).map(str::to_owned).collect();
    let is_plain = said.matches('.').count() == columns.len();
    if is_plain { (Some(table.to_owned()), columns) } else { Names::default() }
}

/// Reads `t.a, t.b` as the schema has the names. If it has them in several ways, what these share is reported.
fn in_schema(said: &str, schema: &dyn Schema) -> Names {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for (dot, _) in said.match_indices('.').take(MOST_DOTS) {
        let (table, rest) = (&said[..dot], &said[dot + 1..]);
        let separator = format!(", {table}.");
        let parts: Vec<&str> = rest.split(&separator).collect();
        let mut readings = Vec::new();
        join(&parts, &separator, &|column| schema.has(table, column), &mut Vec::new(), &mut readings);
        found.extend(readings.into_iter().map(|columns| (table, columns)));
        if found.len() > 1 {
            break;
        }
    }
    match &mut *found {
        [(table, columns)] => (Some((*table).to_owned()), std::mem::take(columns)),
        [(table, _), others @ ..] if others.iter().all(|(other, _)| other == table) => {
            (Some((*table).to_owned()), Vec::new())
        }
        _ => Names::default(),
    }
}

/// Finds up to two ways in which the parts, some of them joined by the separator again, are columns.
fn join(
    parts: &[&str],
    separator: &str,
    is_column: &dyn Fn(&str) -> bool,
    before: &mut Vec<String>,
    readings: &mut Vec<Vec<String>>,
) {
    if readings.len() > 1 {
        return;
    }
    if parts.is_empty() {
        readings.push(before.clone());
        return;
    }
    let most = if before.len() + parts.len() > MOST_PARTS { 1 } else { parts.len() };
    for taken in 1..=most {
        let column = parts[..taken].join(separator);
        if is_column(&column) {
            before.push(column);
            join(&parts[taken..], separator, is_column, before, readings);
            before.pop();
        }
    }
}

impl Error {
    /// Returns the constraint that failed, for an [`ErrorKind::Constraint`](super::ErrorKind::Constraint).
    #[must_use]
    pub fn constraint(&self) -> Option<&Constraint> {
        self.0.constraint.as_deref()
    }

    /// Returns true if a UNIQUE or a PRIMARY KEY constraint failed, or a unique index.
    #[must_use]
    pub fn is_unique_violation(&self) -> bool {
        self.constraint().is_some_and(|it| matches!(it.kind, ConstraintKind::Unique | ConstraintKind::PrimaryKey))
    }

    /// Returns true if a foreign key constraint failed.
    #[must_use]
    pub fn is_foreign_key_violation(&self) -> bool {
        self.constraint().is_some_and(|it| it.kind == ConstraintKind::ForeignKey)
    }

    /// Returns true if a NOT NULL constraint failed.
    #[must_use]
    pub fn is_not_null_violation(&self) -> bool {
        self.constraint().is_some_and(|it| it.kind == ConstraintKind::NotNull)
    }

    /// Returns true if a CHECK constraint failed.
    #[must_use]
    pub fn is_check_violation(&self) -> bool {
        self.constraint().is_some_and(|it| it.kind == ConstraintKind::Check)
    }
}

/// Reads the constraint of an error from SQLite's message again, with the names that the schema has.
pub fn with_names_of(mut error: Error, schema: &dyn Schema) -> Error {
    if let Some(code) = error.sqlite_code() {
        error.0.constraint = Constraint::of_message(code, error.message(), Some(schema)).map(Box::new);
    }
    error
}

/// The same error of a foreign key of this table.
pub fn of_foreign_key(mut error: Error, table: String) -> Error {
    let kind = ConstraintKind::ForeignKey;
    error.0.constraint = Some(Box::new(Constraint { kind, table: Some(table), columns: Vec::new(), name: None }));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tables(&'static [(&'static str, &'static str)]);

    impl Schema for Tables {
        fn has(&self, table: &str, column: &str) -> bool {
            self.0.contains(&(table, column))
        }

        fn table_of(&self, index: &str) -> Option<String> {
            (index == "of 'x'").then(|| "t".to_owned())
        }

        fn only_table(&self) -> Option<String> {
            None
        }
    }

    const UNIQUE: i32 = ffi::SQLITE_CONSTRAINT_UNIQUE;

    fn read(message: &str, schema: &'static [(&'static str, &'static str)]) -> (Option<String>, Vec<String>) {
        let message = format!("UNIQUE constraint failed: {message}");
        let read = Constraint::of_message(UNIQUE, &message, Some(&Tables(schema))).unwrap();
        (read.table, read.columns)
    }

    fn names(table: &str, columns: &[&str]) -> (Option<String>, Vec<String>) {
        (Some(table.to_owned()), columns.iter().map(|&column| column.to_owned()).collect())
    }

    #[test]
    fn names_with_dots_and_commas_are_those_of_the_schema() {
        assert_eq!(read("t.a, t.b", &[("t", "a"), ("t", "b")]), names("t", &["a", "b"]));
        assert_eq!(read("a.b.c", &[("a.b", "c")]), names("a.b", &["c"]));
        assert_eq!(read("a.b.c", &[("a", "b.c")]), names("a", &["b.c"]));
        assert_eq!(read("t.a, t.b", &[("t", "a, t.b")]), names("t", &["a, t.b"]));
        assert_eq!(read("x, y.a, x, y.b", &[("x, y", "a"), ("x, y", "b")]), names("x, y", &["a", "b"]));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_reported() {
        assert_eq!(read("a.b.c", &[("a.b", "c"), ("a", "b.c")]), (None, vec![]));
        assert_eq!(read("t.a, t.b", &[("t", "a"), ("t", "b"), ("t", "a, t.b")]), names("t", &[]));
        assert_eq!(read("t.a", &[]), (None, vec![]));
    }

    #[test]
    fn without_a_schema_only_plain_names_are_read() {
        let read = |said: &str| {
            let read = Constraint::of_message(UNIQUE, &format!("UNIQUE constraint failed: {said}"), None).unwrap();
            (read.table, read.columns, read.name)
        };
        let (table, columns) = names("t", &["a", "b"]);
        assert_eq!(read("t.a, t.b"), (table, columns, None));
        assert_eq!(read("a.b.c"), (None, vec![], None));
        assert_eq!(read("index 'of ''x'''"), (None, vec![], Some("of 'x'".to_owned())));
    }

    #[test]
    fn an_index_on_an_expression_has_a_name_and_may_be_a_table_with_a_strange_name() {
        let of = |said: &str| {
            let message = format!("UNIQUE constraint failed: {said}");
            Constraint::of_message(UNIQUE, &message, Some(&Tables(&[("index 'a", "b'")]))).unwrap()
        };
        let index = of("index 'of ''x'''");
        assert_eq!((index.table(), index.name()), (Some("t"), Some("of 'x'")));
        let table = of("index 'a.b'");
        assert_eq!((table.table(), table.columns(), table.name()), (Some("index 'a"), &["b'".to_owned()][..], None));
    }

    #[test]
    fn the_kind_is_that_of_the_code_whatever_the_message_says() {
        let message = "UNIQUE constraint failed: t.a";
        let raised = Constraint::of_message(ffi::SQLITE_CONSTRAINT_TRIGGER, message, None).unwrap();
        assert_eq!((raised.kind(), raised.table()), (ConstraintKind::Trigger, None));
        assert!(Constraint::of_message(ffi::SQLITE_ERROR, message, None).is_none());
        let check = Constraint::of_message(ffi::SQLITE_CONSTRAINT_CHECK, "CHECK constraint failed: a > 0", None);
        assert_eq!(check.unwrap().name(), Some("a > 0"));
        let strict = "cannot store TEXT value in INT column t.a";
        let strict = Constraint::of_message(ffi::SQLITE_CONSTRAINT_DATATYPE, strict, None).unwrap();
        assert_eq!((strict.kind().name(), strict.table(), strict.columns().len()), ("data_type", Some("t"), 1));
    }

    #[test]
    fn a_long_list_of_names_takes_no_long_search() {
        let said = vec!["t.a"; 2_000].join(", ");
        let (table, columns) = read(&said, &[("t", "a"), ("t", "a, t.a"), ("t", "a, t.a, t.a")]);
        assert_eq!((table.as_deref(), columns.len()), (Some("t"), 2_000), "no name has a separator");
        let (table, columns) = read(&said, &[("t", "a")]);
        assert_eq!((table.as_deref(), columns.len()), (Some("t"), 2_000));
    }
}
