//! What a history consists of, and what was told of each of its parts. Leaves out: running them.

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
    /// A closure on the writer, which commits or not.
    Closure(Vec<Statement>, bool),
    /// A closure on a reader.
    Reads(Vec<Statement>),
}

/// When the caller of a call leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Leave {
    /// It stays for the answer.
    Stays,
    /// After so many polls, each as soon as the one before is over, or each when the call wakes its task.
    After { polls: u32, at_once: bool },
    /// It stays, and the call has a deadline.
    Deadline(Duration),
}

/// How a transaction, or a nested one, ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Commit(Leave),
    Rollback,
    Drops,
    /// It was the body of `transaction`, which answers Ok, or an error.
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
    /// Writes that are polled for the first time one after the other, before any is waited for.
    Together(Vec<Work>),
    /// A transaction. A deadline is one of each of its calls.
    Transaction {
        steps: Vec<Step>,
        end: End,
        deadline: Option<Duration>,
    },
    /// Adds one to a counter that all tasks share, and answers it.
    Count(i64, Leave),
    /// Reads that counter.
    ReadCount(i64),
}

/// An operation and its number, by which it is found again among those of all tasks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) number: i64,
    pub(super) op: Op,
}

/// What each task does, in order.
pub(super) type History = Vec<Vec<Part>>;

/// A result: names and cells.
pub(super) type Table = (Vec<String>, Vec<Vec<Value>>);

/// What a call told, or should have told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    Executed(u64, Option<i64>),
    Rows(Table),
    Row(Option<Vec<Value>>),
    /// By plain SQLite: the one row that was asked for may be any of these.
    AnyOf(Vec<Vec<Value>>),
    Changes(u64),
    Batch(Vec<(u64, Option<i64>, Option<Table>)>),
    /// Of the statements of a closure.
    Each(Vec<Told>),
    Done,
    /// SQLite's extended code, and its words where they do not quote values.
    Sqlite(i32, Option<String>),
    Misuse,
    /// SQLite rolled the transaction back before.
    Lost,
    /// The error of a body or a closure.
    OwnError,
    /// The deadline passed, and nothing was done.
    TimedOut,
    /// The caller left; nothing was told.
    Left,
    Other(String),
}

impl Told {
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Sqlite(..) | Self::Misuse | Self::Lost | Self::OwnError | Self::Other(_))
    }

    /// Whether content must be looked at to know, or to check, what was done.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Left | Self::TimedOut)
    }
}

impl Op {
    /// How many statements it has.
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

/// As a reader of a finding sees it.
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
