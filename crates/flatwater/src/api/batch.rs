//! The statements of a batch, as they are given.
//!
//! Owns: looking their texts up, and making their parameters owned. Runs on the caller's thread. Invariant: a text that
//! follows itself is looked up once. Leaves out: the call (`session`).

use std::sync::Arc;

use crate::api::statement::{Given, Statement};
use crate::error::{Error, Result};
use crate::sql::statement_info::StatementInfo;
use crate::values::batch_statements::BatchStatements;
use crate::values::into_params::IntoParams;
use crate::values::params::Params;

/// Returns the entries of statements, and their parameters. `text` looks a text up, and `bind` what has values of its own.
pub(crate) fn statements_of<S: Statement, P: IntoParams>(
    given: impl IntoIterator<Item = (S, P)>,
    text: impl Fn(&str) -> Result<Arc<StatementInfo>>,
    bind: impl Fn(&S, P) -> Result<(Arc<StatementInfo>, Params)>,
) -> Result<BatchStatements<Arc<StatementInfo>>> {
    let mut all = BatchStatements::<Arc<StatementInfo>>::default();
    for (sql, params) in given {
        if let Given::Text(sql) = sql.given() {
            let rows = all.rows(|last| *last.sql == *sql, || text(sql))?;
            params.add_to(rows).map_err(|error| error.with_sql(sql))?;
        } else {
            let (text, params) = bind(&sql, params)?;
            all.rows(|last| Arc::ptr_eq(last, &text), || Ok::<_, Error>(text.clone()))?.take(params);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use crate::api::database::Database;
    use crate::growth_counter::counted::steps;

    /// On the thread of the caller, which runs it: by the catalogue, and by the connection.
    #[test]
    fn each_text_of_a_batch_is_looked_up_once() {
        let db = Database::open(":memory:").wait().unwrap();
        db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
        let (one, other) = ("INSERT INTO t VALUES (?)", "INSERT INTO t SELECT ?");
        let looked_up = |texts: &[&str]| {
            let batch = texts.iter().map(|sql| (*sql, (1,)));
            steps(|| assert_eq!(db.batch(batch).wait().unwrap().len(), texts.len()))
        };
        // Later they are prepared.
        looked_up(&[one, other]);
        assert_eq!(looked_up(&[one]), 2);
        assert_eq!(looked_up(&[one; 100]), 2);
        assert_eq!(looked_up(&[[one; 50], [other; 50]].concat()), 4);
        assert_eq!(looked_up(&[one, other].repeat(50)), 200);
        let prepared = db.prepare(one).wait().unwrap();
        assert_eq!(
            steps(|| db.batch((0..100).map(|a| (&prepared, (a,)))).wait().unwrap()),
            1,
            "it was looked up before"
        );
        db.close().wait().unwrap();
    }
}
