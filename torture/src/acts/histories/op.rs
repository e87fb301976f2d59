//! The parts of a history, and the results of each. Leaves out: running them.

use std::fmt;
use std::time::Duration;

use rusqlite::types::Value;

/// A statement with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) params: Vec<Value>,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Execute(Statement),
    Query(Statement),
    QueryOne(Statement),
    Many(String, Vec<Vec<Value>>),
    Batch(Vec<Statement>),
    Script(String),
    /// A closure on the writer; the flag says whether it commits.
    Closure(Vec<Statement>, bool),
    /// A closure on a reader.
    Reads(Vec<Statement>),
}

/// When the caller drops a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Leave {
    /// The caller waits for the result.
    Stays,
    /// After this number of polls: each directly after the one before it, or each when the call wakes its task.
    After { polls: u32, at_once: bool },
    /// The caller waits, and the call has a deadline.
    Deadline(Duration),
}

/// How a transaction, or a nested one, ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Commit(Leave),
    Rollback,
    Drops,
    /// The transaction was the body of `transaction`, which returns Ok (true) or an error.
    Body(bool),
}

/// A part of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Call(Work, Leave),
    Nested(Vec<Step>, End),
}

/// One part of a history.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Call(Work, Leave),
    /// Writes that are all polled once before any of them is awaited.
    Together(Vec<Work>),
    /// A transaction. A deadline applies to each of its calls.
    Transaction {
        steps: Vec<Step>,
        end: End,
        deadline: Option<Duration>,
    },
    /// Adds one to a counter that all tasks share, and returns it.
    Count(i64, Leave),
    /// Reads that counter.
    ReadCount(i64),
}

/// An operation and its number, which identifies it among those of all tasks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) number: i64,
    pub(super) op: Op,
}

/// The operations of each task, in order.
pub(super) type History = Vec<Vec<Part>>;

/// A result set: column names and cells.
pub(super) type Table = (Vec<String>, Vec<Vec<Value>>);

/// The result of a call, or the expected one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    Executed(u64, Option<i64>),
    Rows(Table),
    Row(Option<Vec<Value>>),
    /// By plain SQLite: the one row that was asked for may be any of these.
    AnyOf(Vec<Vec<Value>>),
    Changes(u64),
    Batch(Vec<(u64, Option<i64>, Option<Table>)>),
    /// The results of a closure's statements.
    Each(Vec<Told>),
    Done,
    /// SQLite's extended code, and its message if it does not quote values.
    Sqlite(i32, Option<String>),
    Misuse,
    /// SQLite had already rolled the transaction back.
    Lost,
    /// The error of a body or a closure.
    OwnError,
    /// The deadline passed, and nothing was done.
    TimedOut,
    /// The caller dropped the call, so there is no result.
    Left,
    Other(String),
}

impl Told {
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Sqlite(..) | Self::Misuse | Self::Lost | Self::OwnError | Self::Other(_))
    }

    /// Returns whether the content must be read to know, or to check, what was done.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Left | Self::TimedOut)
    }
}

impl Op {
    /// Returns the number of its statements.
    pub(super) fn statements(&self) -> u64 {
        match self {
            Self::Call(work, _) => work.statements(),
            Self::Together(works) => works.iter().map(Work::statements).sum(),
            Self::Transaction { steps, .. } => steps.iter().map(Step::statements).sum(),
            Self::Count(..) | Self::ReadCount(_) => 1,
        }
    }
}

impl Step {
    fn statements(&self) -> u64 {
        match self {
            Self::Call(work, _) => work.statements(),
            Self::Nested(steps, _) => steps.iter().map(Self::statements).sum(),
        }
    }
}

impl Work {
    fn statements(&self) -> u64 {
        let count = match self {
            Self::Execute(_) | Self::Query(_) | Self::QueryOne(_) => 1,
            Self::Many(_, rows) => rows.len(),
            Self::Batch(statements) | Self::Closure(statements, _) | Self::Reads(statements) => statements.len(),
            Self::Script(sql) => sql.matches(';').count(),
        };
        count as u64
    }
}

/// The form that findings show.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = format!("{self:?}");
        for (long, short) in [("Statement ", ""), ("Integer(", "("), ("Stays", "stays")] {
            told = told.replace(long, short);
        }
        let mut rest = told.as_str();
        while let Some((before, blob)) = rest.split_once("Blob([") {
            let (bytes, after) = blob.split_once("])").unwrap_or((blob, ""));
            write!(f, "{before}Blob({} bytes)", bytes.split(", ").filter(|byte| !byte.is_empty()).count())?;
            rest = after;
        }
        f.write_str(rest)
    }
}
