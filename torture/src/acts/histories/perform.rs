//! Runs one part of a history on a database, as a caller would, and records the results.

use std::pin::Pin;

use flatwater::rusqlite;
use flatwater::values::RunResult;
use flatwater::{Database, Error, ErrorKind, Params, Row, Rows, Transaction};
use futures_util::future::join_all;
use rusqlite::types::Value;

use super::leaving::leaving;
use super::op::{End, Leave, Op, Statement, Step, Table, Told, Work};
use super::statement::closure;
use crate::gauge::Gauge;

/// Returns the results of an operation: one for each of its calls, in order. The begin and end of a transaction count
/// as calls.
pub(super) async fn perform(db: &Database, gauge: &Gauge, op: &Op) -> Vec<Told> {
    match op {
        Op::Call(work, leave) => vec![left(gauge, call(&timed(db, *leave), work), *leave).await],
        Op::Together(works) => {
            let calls: Vec<Pin<Box<dyn Future<Output = Told> + Send + '_>>> =
                works.iter().map(|work| Box::pin(call(db, work)) as _).collect();
            gauge.watch(join_all(calls)).await
        }
        Op::Transaction { steps, end, deadline } => {
            let db = deadline.map_or_else(|| db.clone(), |deadline| db.with_timeout(deadline));
            gauge.watch(transaction(&db, steps, *end)).await
        }
        Op::Count(id, leave) => {
            let sql = "UPDATE counters SET n = n + 1 WHERE id = ? RETURNING n";
            let db = timed(db, *leave);
            vec![left(gauge, async { counted(db.query_optional_value(sql, (*id,)).await) }, *leave).await]
        }
        Op::ReadCount(id) => {
            let sql = "SELECT n FROM counters WHERE id = ?";
            vec![gauge.watch(async { counted(db.query_optional_value(sql, (*id,)).await) }).await]
        }
    }
}

fn timed(db: &Database, leave: Leave) -> Database {
    if let Leave::Deadline(deadline) = leave { db.with_timeout(deadline) } else { db.clone() }
}

async fn left(gauge: &Gauge, call: impl Future<Output = Told> + Send, leave: Leave) -> Told {
    leaving(gauge.watch(call), leave).await.unwrap_or(Told::Left)
}

fn counted(value: Result<Option<i64>, Error>) -> Told {
    match value {
        Ok(value) => Told::Row(value.map(|value| vec![Value::Integer(value)])),
        Err(error) => failed(&error),
    }
}

/// Makes one call on a database.
async fn call(db: &Database, work: &Work) -> Told {
    match work {
        Work::Execute(one) => executed(db.execute(&one.sql, params(one)).await),
        Work::Query(one) => queried(db.query(&one.sql, params(one)).await),
        Work::QueryOne(one) => queried_one(db.query_optional(&one.sql, params(one)).await),
        Work::Many(sql, rows) => changed(db.execute_many(sql, rows.iter().map(Params::positional)).await),
        Work::Batch(all) => batched(db.batch(all.iter().map(|one| (one.sql.as_str(), params(one)))).await),
        Work::Script(sql) => done(db.execute_script(sql).await),
        Work::Closure(all, commits) => {
            let (all, commits) = (all.clone(), *commits);
            each(db.write_with(move |tx| ended(closure(tx, &all, commits))).await)
        }
        Work::Reads(all) => {
            let all = all.clone();
            each(db.read_with(move |connection| ended(closure(connection, &all, true))).await)
        }
    }
}

/// Makes the same call in a transaction, where there are no closures.
async fn call_inside(tx: &Transaction<'_>, work: &Work) -> Told {
    match work {
        Work::Execute(one) => executed(tx.execute(&one.sql, params(one)).await),
        Work::Query(one) => queried(tx.query(&one.sql, params(one)).await),
        Work::QueryOne(one) => queried_one(tx.query_optional(&one.sql, params(one)).await),
        Work::Many(sql, rows) => changed(tx.execute_many(sql, rows.iter().map(Params::positional)).await),
        Work::Batch(all) => batched(tx.batch(all.iter().map(|one| (one.sql.as_str(), params(one)))).await),
        Work::Script(sql) => done(tx.execute_script(sql).await),
        Work::Closure(..) | Work::Reads(_) => Told::Other("closures are not for transactions".into()),
    }
}

/// The error of a transaction's body.
enum Body {
    Own,
    Ours(Error),
}

impl From<Error> for Body {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

async fn transaction(db: &Database, inside: &[Step], end: End) -> Vec<Told> {
    let mut told = Vec::new();
    if let End::Body(keeps) = end {
        let ended = db.try_transaction(async |tx| {
            told.push(Told::Done);
            steps(tx, inside, &mut told).await;
            if keeps { Ok(()) } else { Err(Body::Own) }
        });
        let ended = body(ended.await);
        told.push(ended);
        return told;
    }
    match db.begin().await {
        Ok(mut tx) => {
            told.push(Told::Done);
            steps(&mut tx, inside, &mut told).await;
            told.push(finish(tx, end).await);
        }
        Err(error) => told.push(failed(&error)),
    }
    told
}

async fn finish(tx: Transaction<'_>, end: End) -> Told {
    match end {
        End::Commit(leave) => leaving(Box::pin(async { done(tx.commit().await) }), leave).await.unwrap_or(Told::Left),
        End::Rollback => done(tx.rollback().await),
        End::Drops | End::Body(_) => {
            drop(tx);
            Told::Done
        }
    }
}

fn body(ended: Result<(), Body>) -> Told {
    match ended {
        Ok(()) => Told::Done,
        Err(Body::Own) => Told::OwnError,
        Err(Body::Ours(error)) => failed(&error),
    }
}

fn steps<'f>(
    tx: &'f mut Transaction<'_>,
    steps: &'f [Step],
    told: &'f mut Vec<Told>,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'f>> {
    Box::pin(async move {
        for step in steps {
            match step {
                Step::Call(work, leave) => {
                    let one = leaving(Box::pin(call_inside(tx, work)), *leave).await;
                    told.push(one.unwrap_or(Told::Left));
                }
                Step::Nested(inside, end) => nested(tx, inside, *end, told).await,
            }
        }
    })
}

async fn nested(tx: &mut Transaction<'_>, inside: &[Step], end: End, told: &mut Vec<Told>) {
    if let End::Body(keeps) = end {
        let ended = tx.try_transaction(async |tx| {
            told.push(Told::Done);
            steps(tx, inside, told).await;
            if keeps { Ok(()) } else { Err(Body::Own) }
        });
        let ended = body(ended.await);
        return told.push(ended);
    }
    match tx.begin().await {
        Ok(mut tx) => {
            told.push(Told::Done);
            steps(&mut tx, inside, told).await;
            told.push(finish(tx, end).await);
        }
        Err(error) => told.push(failed(&error)),
    }
}

fn params(statement: &Statement) -> flatwater::Result<Params> {
    Params::positional(&statement.params)
}

fn executed(told: flatwater::Result<flatwater::values::ExecuteResult>) -> Told {
    told.map_or_else(|error| failed(&error), |done| Told::Executed(done.changes, done.last_insert_rowid))
}

fn queried(told: flatwater::Result<Rows>) -> Told {
    told.map_or_else(|error| failed(&error), |rows| Told::Rows(table(&rows)))
}

fn queried_one(told: flatwater::Result<Option<Row<'static>>>) -> Told {
    told.map_or_else(|error| failed(&error), |one| Told::Row(one.map(|row| cells(&row))))
}

fn changed(told: flatwater::Result<u64>) -> Told {
    told.map_or_else(|error| failed(&error), Told::Changes)
}

fn done(told: flatwater::Result<()>) -> Told {
    told.map_or_else(|error| failed(&error), |()| Told::Done)
}

fn batched(told: flatwater::Result<Vec<RunResult>>) -> Told {
    let one = |result: &RunResult| (result.changes, result.last_insert_rowid, result.rows.as_ref().map(table));
    told.map_or_else(|error| failed(&error), |all| Told::Batch(all.iter().map(one).collect()))
}

/// The outcome of a closure: the results of its statements, as an error if it rolls back.
enum Closed {
    GaveUp(Vec<Told>),
    Ours(Error),
}

impl From<Error> for Closed {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

fn ended((told, keeps): (Vec<Told>, bool)) -> Result<Vec<Told>, Closed> {
    if keeps { Ok(told) } else { Err(Closed::GaveUp(told)) }
}

fn each(told: Result<Vec<Told>, Closed>) -> Told {
    match told {
        Ok(told) => Told::Each(told),
        Err(Closed::GaveUp(mut told)) => {
            told.push(Told::OwnError);
            Told::Each(told)
        }
        Err(Closed::Ours(error)) => failed(&error),
    }
}

fn table(rows: &Rows) -> Table {
    (rows.columns().map(str::to_owned).collect(), rows.iter().map(|row| cells(&row)).collect())
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    (0..row.len()).map(|at| row.get(at).expect("every cell is a value")).collect()
}

/// Returns the part of an error that is compared.
pub(super) fn failed(error: &Error) -> Told {
    let is_lost = error.message().starts_with("SQLite rolled back the transaction");
    match (error.kind(), error.sqlite_code()) {
        (ErrorKind::Timeout, _) if error.applied() == Some(flatwater::calls::TimeoutEffect::No) => Told::TimedOut,
        (ErrorKind::Expired, _) if error.message().contains("was not used for") => Told::TimedOut,
        (ErrorKind::Misuse, None) if is_lost => Told::Lost,
        (ErrorKind::Misuse, None) => Told::Misuse,
        (ErrorKind::Sql | ErrorKind::Constraint | ErrorKind::Misuse, Some(code)) => Told::sqlite(code, error.message()),
        _ => Told::Other(error.to_string()),
    }
}
