//! The queries of a file of SQL: the annotation above each, and what it was found to return and to take.
//!
//! Owns: the annotations, which are sqlc's: `-- name: GetUser :one`. Invariant: a query does what its annotation says, or is a fault.
//! Leaves out: code.

use std::collections::BTreeSet;

use flatwater_check::{Checked, Fault, Label, Schema};

use crate::sql::statements::statements;

/// What a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// The first row; none is an error.
    One,
    /// The first row, if there is one.
    Optional,
    /// All rows.
    Many,
    /// Nothing.
    Nothing,
    /// The number of rows that it changed.
    Changes,
    /// The rowid of the last row that it inserted.
    LastRowid,
}

const COMMANDS: [(&str, Returns); 6] = [
    (":one", Returns::One),
    (":optional", Returns::Optional),
    (":many", Returns::Many),
    (":exec", Returns::Nothing),
    (":execrows", Returns::Changes),
    (":execlastid", Returns::LastRowid),
];

/// A query.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) returns: Returns,
    pub(crate) sql: String,
    pub(crate) checked: Checked,
    /// The lines of comment above it, without the annotation.
    pub(crate) comment: Vec<String>,
}

impl Query {
    /// Whether a column has another name in the result than in the type of a row.
    pub(crate) fn has_labels(&self) -> bool {
        self.checked.columns.iter().any(|column| Label::of(&column.name).name != column.name)
    }
}

/// The queries of a file, and faults with their bytes in it.
pub(crate) fn queries(schema: &mut Schema, content: &str) -> (Vec<Query>, Vec<Fault>) {
    let (mut queries, mut faults, mut end) = (Vec::new(), Vec::new(), 0);
    let mut names = BTreeSet::new();
    for statement in statements(content) {
        let gap = &content[end..statement.begin];
        end = statement.begin + statement.sql.len();
        match query(schema, gap, statement.sql) {
            Ok(None) => {}
            Ok(Some(query)) if !names.insert(super::snake(&query.name)) => {
                faults.push(fault(format!("two queries are called {}", query.name), statement.begin));
            }
            Ok(Some(query)) => queries.push(query),
            Err(found) => faults.push(Fault { offset: Some(statement.begin + found.offset.unwrap_or(0)), ..found }),
        }
    }
    (queries, faults)
}

fn fault(message: String, offset: usize) -> Fault {
    Fault { message, hint: None, offset: Some(offset) }
}

/// Reads the annotation in what stands above a statement. Without one it is no query.
fn query(schema: &mut Schema, above: &str, sql: &str) -> Result<Option<Query>, Fault> {
    let comments = above.lines().filter_map(|line| line.trim().strip_prefix("--")).map(str::trim);
    let (mut annotation, mut comment) = (None, Vec::new());
    for line in comments {
        match line.strip_prefix("name:") {
            Some(rest) => annotation = Some(rest.split_whitespace().collect::<Vec<_>>()),
            None => comment.push(line.to_owned()),
        }
    }
    let Some(annotation) = annotation else { return Ok(None) };
    let known = || COMMANDS.map(|(name, _)| name).join(", ");
    let [name, command] = annotation[..] else {
        return Err(fault(format!("an annotation is `-- name: GetUser :one`; the commands are {}", known()), 0));
    };
    let returns = COMMANDS.iter().find(|(known, _)| *known == command).map(|(_, returns)| *returns);
    let returns = returns.ok_or_else(|| fault(format!("{command} is not one of {}", known()), 0))?;
    let checked = schema.check(sql)?;
    let wants_rows = matches!(returns, Returns::One | Returns::Optional | Returns::Many);
    if wants_rows == checked.columns.is_empty() {
        let says = if wants_rows { "returns no rows" } else { "returns rows" };
        return Err(fault(format!("{name} is {command} and {says}"), 0));
    }
    let mut columns = BTreeSet::new();
    if let Some(twice) = checked.columns.iter().find(|column| !columns.insert(Label::of(&column.name).name)) {
        return Err(fault(format!("{name} returns two columns called {}: use AS", twice.name), 0));
    }
    Ok(Some(Query { name: name.to_owned(), returns, sql: sql.trim().to_owned(), checked, comment }))
}
