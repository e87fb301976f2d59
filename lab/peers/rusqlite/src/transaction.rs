//! A lane's transaction body on a connection.
//!
//! The body is written for peers that await between statements; here every future is ready at its first poll. BEGIN and
//! the others are run as rusqlite's own transactions run them. Leaves out: the statements inside.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use lab_kit::{Body, Record, Result, Rows, Step, Sum, Transaction, Value, bail, record};
use rusqlite::Connection;

use crate::{each, execute, query};

/// Runs `body` between BEGIN IMMEDIATE and COMMIT.
pub fn transaction<B: Body>(connection: &mut Connection, body: B) -> Result<B::Answer> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut open = Open(connection);
    let answer = now(body.run(&mut open));
    connection.execute_batch(if answer.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    answer
}

fn now<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => bail!("a transaction's body waited for something besides its transaction"),
    }
}

struct Open<'a>(&'a mut Connection);

impl Transaction for Open<'_> {
    async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        execute(self.0, sql, params)
    }

    async fn many(&mut self, sql: &'static str, rows: &Rows) -> Result<u64> {
        each(self.0, sql, rows)
    }

    async fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Sum> {
        Ok(record::sum_of(&query::<R>(self.0, sql, params)?))
    }

    async fn integer(&mut self, sql: &'static str) -> Result<i64> {
        Ok(self.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    async fn savepoint<S: Step>(&mut self, step: S) -> Result<()> {
        self.0.execute_batch("SAVEPOINT step")?;
        let answer = step.run(self).await;
        let end = if answer.is_ok() { "RELEASE step" } else { "ROLLBACK TO step; RELEASE step" };
        self.0.execute_batch(end)?;
        answer
    }
}
