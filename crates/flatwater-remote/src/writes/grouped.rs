//! The request of a group of writes: its body, and what its results are for each member.
//!
//! Owns: which statement is whose. Pure. Invariant: a result is that of its own statement, also if an attempt before was the one that
//! was applied. Leaves out: sending it.

use std::collections::HashMap;

use bytes::Bytes;
use flatwater::bindings::looks_like_rows;
use flatwater::bindings::server::{
    Answered, Asked, One, What, error, needs_database, of_row, of_script, of_statement, result_lost, returns_no_rows,
    returns_rows as returns_rows_error, returns_rows_of_many,
};
use flatwater::bindings::statements;
use flatwater::{Error, ErrorCode, Result};

use super::guard::{MOST_RESULTS, Recorded, Writer};
use crate::check::{changes_rows, check, check_text, has_no_rows};
use crate::dialect::Dialect;
use crate::each_node::{check_each_node, check_now};
use crate::forms::Statements;
use crate::reads::no_result;
use crate::results::{StatementResult, rows};

/// One request for several members.
pub(crate) struct Grouped {
    /// How many results are recorded.
    pub(crate) results: usize,
    /// The member of each statement of the request; `None` for one of ours.
    owners: Vec<Option<usize>>,
    /// Of each member, where its statements stand, and their numbers.
    places: Vec<Vec<Place>>,
}

#[derive(Clone, Copy)]
struct Place {
    at: usize,
    number: usize,
}

/// What was applied.
pub(crate) struct Applied {
    recorded: HashMap<usize, Recorded>,
    /// The results of all statements, unless they were lost.
    results: Option<Vec<StatementResult>>,
}

impl Applied {
    /// `None` if the rows that were recorded are not the expected ones.
    pub(crate) fn new(
        recorded: HashMap<usize, Recorded>,
        results: Option<Vec<StatementResult>>,
        expected: usize,
    ) -> Option<Self> {
        (recorded.len() == expected).then_some(Self { recorded, results })
    }
}

impl Grouped {
    /// The request of members that are one transaction.
    pub(crate) fn new(writer: &Writer, dialect: Dialect, members: &[Option<Asked>], now: i64) -> (Self, Bytes) {
        let mut statements = writer.begin(dialect, now);
        let mut grouped = Self { results: 0, owners: vec![None], places: Vec::new() };
        grouped.fill(writer, &mut statements, members.iter().map(Option::as_ref));
        (grouped, statements.finish())
    }

    /// Adds a member to the statements of a transaction that is open.
    pub(crate) fn inside(writer: &Writer, statements: &mut Statements, member: &Asked) -> Self {
        writer.set_rowid(statements);
        let mut grouped = Self { results: 0, owners: vec![None], places: Vec::new() };
        grouped.fill(writer, statements, [Some(member)].into_iter());
        grouped
    }

    fn fill<'a>(
        &mut self,
        writer: &Writer,
        statements: &mut Statements,
        members: impl Iterator<Item = Option<&'a Asked>>,
    ) {
        let (owners, places, mut number) = (&mut self.owners, &mut self.places, 0);
        for (member, asked) in members.enumerate() {
            let mut own = Vec::new();
            let Some(asked) = asked else {
                places.push(own);
                continue;
            };
            let what = asked.what();
            let is_many = matches!(what, What::Many(_));
            for (nth, one) in runs(&what).into_iter().enumerate() {
                let is_row = is_many && nth > 0;
                if is_row {
                    writer.add_row(statements, &one, number);
                } else {
                    number += 1;
                    writer.add(statements, &one, number);
                    own.push(Place { at: owners.len(), number });
                }
                owners.extend([Some(member), None]);
            }
            places.push(own);
        }
        writer.end(statements, number);
        self.results = number;
    }

    /// Returns the member of the statement that failed; the server runs none after it.
    pub(crate) fn failed(&self, results: &[StatementResult]) -> Option<usize> {
        self.owners.get(results.len().checked_sub(1)?).copied().flatten()
    }

    /// Names the statement that failed, of a member that has several.
    pub(crate) fn explain(&self, failure: Error, at: usize, member: &Asked) -> Error {
        let what = member.what();
        // It is alone in its request.
        let nth = self.owners.iter().take(at).flatten().count();
        let Some(one) = runs(&what).get(nth).copied() else { return failure };
        let failure =
            if matches!(what, What::Many(_) | What::ManyWithRows(_)) { of_row(failure, nth) } else { failure };
        of_statement(failure, one.sql)
    }

    /// Returns the answer for a member.
    pub(crate) fn answer(&self, member: usize, asked: &Asked, applied: &mut Applied) -> Result<Answered> {
        let what = asked.what();
        let recorded = |place: &Place| applied.recorded.get(&place.number).copied().ok_or_else(no_result);
        let places = &self.places[member];
        match what {
            What::Execute(one) => {
                let recorded = recorded(places.first().ok_or_else(no_result)?)?;
                Ok(Answered::Executed(recorded.of(one.sql)))
            }
            What::Many(_) => {
                let changes = places.first().map_or(Ok(0), |place| recorded(place).map(|recorded| recorded.changes));
                Ok(Answered::Changes(changes?))
            }
            What::Query(one) => {
                let place = places.first().ok_or_else(no_result)?;
                match taken(&mut applied.results, place.at)? {
                    StatementResult::Rows { columns, values } => rows(one.sql, columns, &values, true)
                        .map(Answered::Rows)
                        .ok_or_else(|| result_lost(no_result())),
                    _ => Err(result_lost(returns_no_rows())),
                }
            }
            What::Batch(ones) | What::ManyWithRows(ones) => {
                let mut all = Vec::with_capacity(ones.len());
                for (one, place) in ones.iter().zip(places) {
                    let executed = recorded_of(&applied.recorded, place)?.of(one.sql);
                    let result = match looks_like_rows(one.sql) {
                        true => Some(taken(&mut applied.results, place.at)?),
                        false => None,
                    };
                    let result = match result {
                        Some(StatementResult::Rows { columns, values }) => {
                            Some(rows(one.sql, columns, &values, true).ok_or_else(|| result_lost(no_result()))?)
                        }
                        _ => None,
                    };
                    all.push((executed, result));
                }
                Ok(Answered::Batch(all))
            }
            _ => Ok(Answered::Done),
        }
    }
}

fn recorded_of(recorded: &HashMap<usize, Recorded>, place: &Place) -> Result<Recorded> {
    recorded.get(&place.number).copied().ok_or_else(no_result)
}

/// Takes the result of a statement, which has rows.
fn taken(results: &mut Option<Vec<StatementResult>>, at: usize) -> Result<StatementResult> {
    let results = results.as_mut().ok_or_else(rows_lost)?;
    results.get_mut(at).map(|result| std::mem::replace(result, StatementResult::Done)).ok_or_else(no_result)
}

fn rows_lost() -> Error {
    let message = "the answer with the rows was lost, and the write was applied once";
    result_lost(error(ErrorCode::AnswerLost, message.into(), "read the rows with a query"))
}

/// Returns the runs of statements that are asked for.
fn runs<'a>(what: &What<'a>) -> Vec<One<'a>> {
    match what {
        What::Execute(one) | What::Query(one) => vec![*one],
        What::Many(rows) | What::ManyWithRows(rows) | What::Batch(rows) => rows.clone(),
        What::Script(script) => statements(script).map(|(sql, _, _)| One::without_values(sql)).collect(),
        What::Live(_) | What::Migrate(_) | What::Other(_) => Vec::new(),
    }
}

/// Answers what has no statement.
pub(crate) fn nothing_to_do(asked: Asked) {
    let answer = match asked.what() {
        What::Many(_) => Answered::Changes(0),
        What::Batch(_) | What::ManyWithRows(_) => Answered::Batch(Vec::new()),
        _ => Answered::Done,
    };
    asked.answer(Ok(answer));
}

/// Refuses what cannot be sent. Returns about how long its part of the request will be, or `None` if there is no statement.
pub(crate) fn checked(asked: &Asked, dialect: Dialect) -> Result<Option<usize>> {
    let what = asked.what();
    match what {
        What::Other(name) => return Err(needs_database(name)),
        What::Migrate(_) => return Err(needs_database("a migration in a transaction")),
        _ => {}
    }
    let runs = runs(&what);
    if runs.len() > MOST_RESULTS {
        return Err(error(
            ErrorCode::InvalidArgument,
            format!("{} statements are too many for one request", runs.len()),
            "send fewer at once",
        ));
    }
    let (mut checked, mut takes_time) = (None, None);
    for (nth, one) in runs.iter().enumerate() {
        // The text of many rows is read once.
        if checked != Some(one.sql.as_ptr()) {
            check_text(one.sql, dialect)?;
            check_rows(&what, one.sql, dialect)?;
            if dialect == Dialect::Rqlite {
                takes_time = check_each_node(one.sql)?;
            }
            checked = Some(one.sql.as_ptr());
        }
        if let Some(function) = takes_time {
            check_now(function, one)?;
        }
        check(one, dialect).map_err(|error| explained(error, &what, nth))?;
    }
    let bytes = runs.iter().map(|one| one.sql.len() + one.bytes()).sum();
    Ok((!runs.is_empty()).then_some(bytes))
}

/// Says which row of many it is, or that a script has no values.
fn explained(error: Error, what: &What<'_>, nth: usize) -> Error {
    match what {
        What::Many(_) | What::ManyWithRows(_) => of_row(error, nth),
        What::Script(_) => of_script(error),
        _ => error,
    }
}

fn check_rows(what: &What<'_>, sql: &str, dialect: Dialect) -> Result<()> {
    let returns_rows = looks_like_rows(sql);
    match what {
        What::Execute(_) if returns_rows => Err(returns_rows_error(changes_rows(sql))),
        What::Many(_) if returns_rows => Err(returns_rows_of_many()),
        What::Query(_) | What::ManyWithRows(_) if has_no_rows(sql) => Err(returns_no_rows()),
        _ if dialect == Dialect::Libsql => Ok(()),
        What::Batch(_) | What::ManyWithRows(_) if returns_rows && !changes_rows(sql) => {
            let hint = "read before or after it: the server returns no rows of a SELECT in a list that writes";
            Err(error(ErrorCode::Unsupported, "a batch on a server only writes".into(), hint))
        }
        // The server looks for these letters, with the space, and returns no rows otherwise.
        What::Query(_) | What::Batch(_) | What::ManyWithRows(_)
            if returns_rows && !sql.to_ascii_lowercase().contains("returning ") =>
        {
            let hint = "write RETURNING and a space after it";
            Err(error(ErrorCode::Unsupported, "the server would run the statement and return no rows".into(), hint))
        }
        _ => Ok(()),
    }
}
