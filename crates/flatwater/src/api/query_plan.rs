//! How SQLite would run a statement.
//!
//! Owns: asking for the plan, and its form as text. Runs on a reader. Leaves out: when one asks.

use std::fmt::Write as _;

use flatwater_sqlite::statement_start;

use crate::api::call::Call;
use crate::api::closures::read_closure;
use crate::api::database::Database;
use crate::error::Error;
use crate::error::location::offset_by;

const EXPLAIN: &str = "EXPLAIN QUERY PLAN ";

impl Database {
    /// Returns how SQLite would run a statement, without running it: the rows of EXPLAIN QUERY PLAN as lines, indented
    /// as a tree (<https://sqlite.org/eqp.html>). Parameters need no values.
    ///
    /// The call runs on a reader, and does not see the changes of an open transaction. Dropping the call ends it.
    ///
    /// # Errors
    /// Errors of preparing the SQL; `Misuse` for several statements.
    pub fn query_plan(&self, sql: &str) -> Call<String> {
        let sql = sql.to_owned();
        read_closure(self, "query_plan", move |connection| {
            let start = statement_start(&sql);
            let prepared = connection.prepare(&format!("{EXPLAIN}{}", &sql[start..]));
            let before = start.cast_signed() - EXPLAIN.len().cast_signed();
            let mut statement = prepared.map_err(|error| offset_by(error.into(), before).with_sql(&sql))?;
            let mut steps = statement.raw_query();
            let (mut plan, mut parents) = (String::new(), Vec::new());
            while let Some(step) = steps.next()? {
                let (id, parent, detail): (i64, i64, String) = (step.get(0)?, step.get(1)?, step.get(3)?);
                while parents.last().is_some_and(|open| *open != parent) {
                    parents.pop();
                }
                let _ = writeln!(plan, "{:indent$}{detail}", "", indent = 2 * parents.len());
                parents.push(id);
            }
            Ok::<_, Error>(plan)
        })
    }
}
