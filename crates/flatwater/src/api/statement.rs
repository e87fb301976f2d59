//! What can be passed as SQL, and the entry of its text with its parameters.
//!
//! Owns: the trait, looking texts up, making parameters owned, and refusing a statement that brings its values where it
//! must not. Runs on the caller's thread. Invariant: in a batch a text that follows itself is looked up once. Leaves
//! out: the calls (`session`).

use std::sync::Arc;

use crate::api::sql::Sql;
use crate::engine::caller::Caller;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::{BatchStatements, IntoParams, Params};
use flatwater_sql::statement_info::StatementInfo;

/// What a statement was given as. Other crates cannot name it.
pub enum Given<'a> {
    Text(&'a str),
    Sql(&'a Sql),
    /// A text that was looked up, and the number of its database.
    #[allow(private_interfaces, reason = "other crates cannot name the type")]
    Known(&'a Arc<StatementInfo>, usize),
}

mod sealed {
    pub trait Sealed {
        #[doc(hidden)]
        fn given(&self) -> super::Given<'_>;
    }
}

/// What an operation takes as SQL: a text; an [`Sql`], which contains its values, so the parameters are `()`; or a
/// [`Prepared`](crate::Prepared), which saves the lookup of the text.
///
/// ```no_run
/// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
/// use flatwater::Sql;
///
/// let users = db.query("SELECT name FROM users WHERE id = ?", (1,)).await?;
/// let users = db.query(Sql::new("SELECT name FROM users WHERE id IN ").bind_list([1, 2]), ()).await?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not SQL",
    label = "SQL is a `&str`, a `String`, an `Sql` or a `&Prepared`"
)]
pub trait Statement: sealed::Sealed {}

pub(crate) use sealed::Sealed as IsGiven;

impl<T: IsGiven> Statement for T {}

impl<T: AsRef<str> + ?Sized> IsGiven for &T {
    fn given(&self) -> Given<'_> {
        Given::Text((**self).as_ref())
    }
}

impl IsGiven for String {
    fn given(&self) -> Given<'_> {
        Given::Text(self)
    }
}

impl IsGiven for Sql {
    fn given(&self) -> Given<'_> {
        Given::Sql(self)
    }
}

impl IsGiven for &Sql {
    fn given(&self) -> Given<'_> {
        Given::Sql(self)
    }
}

impl Caller {
    /// Returns the entry of a text.
    pub(crate) fn text(&self, sql: &str) -> Result<Arc<StatementInfo>> {
        let handle = &self.handle;
        // A forked child process would block forever on the catalogue's lock if another thread of the parent held it.
        handle.refuse_inherited()?;
        Ok(handle.context().catalogue.text(sql))
    }

    /// Returns the entry of a statement, which has no values of its own.
    pub(crate) fn only_text(&self, sql: &impl Statement) -> Result<Arc<StatementInfo>> {
        match sql.given() {
            Given::Text(text) => self.text(text),
            Given::Sql(sql) => {
                let (text, params) = (sql.text(), sql.params()?);
                if params.is_empty() {
                    return self.text(text);
                }
                Err(Error::new(ErrorCode::InvalidArgument, "an `Sql` that has values cannot be used here")
                    .with_hint("pass the text alone"))
            }
            Given::Known(text, database) if database == self.handle.id() => Ok(text.clone()),
            Given::Known(text, _) => self.text(&text.sql),
        }
    }

    /// Returns the entry of a statement, and its parameters.
    pub(crate) fn bind(&self, sql: &impl Statement, params: impl IntoParams) -> Result<(Arc<StatementInfo>, Params)> {
        let Given::Sql(sql) = sql.given() else { return bound(self.only_text(sql)?, params) };
        let (own, (text, given)) = (sql.params()?, bound(self.text(sql.text())?, params)?);
        let params = match (own.is_empty(), given.is_empty()) {
            (_, true) => own,
            (true, false) => given,
            (false, false) => {
                return Err(Error::new(
                    ErrorCode::InvalidArgument,
                    "the `Sql` has values, but the call has parameters too",
                )
                .with_hint("pass `()` as the parameters of an `Sql`"));
            }
        };
        Ok((text, params))
    }

    /// Returns the entries of the statements of a batch, and their parameters.
    pub(crate) fn bind_each<S: Statement, P: IntoParams>(
        &self,
        given: impl IntoIterator<Item = (S, P)>,
    ) -> Result<BatchStatements<Arc<StatementInfo>>> {
        let mut all = BatchStatements::<Arc<StatementInfo>>::default();
        for (sql, params) in given {
            if let Given::Text(sql) = sql.given() {
                let rows = all.rows(|last| *last.sql == *sql, || self.text(sql))?;
                params.add_to(rows).map_err(|error| error.with_sql(sql))?;
            } else {
                let (text, params) = self.bind(&sql, params)?;
                all.rows(|last| Arc::ptr_eq(last, &text), || Ok::<_, Error>(text.clone()))?.take(params);
            }
        }
        Ok(all)
    }
}

/// Returns the parameters that are given with a text.
fn bound(text: Arc<StatementInfo>, params: impl IntoParams) -> Result<(Arc<StatementInfo>, Params)> {
    let params = params.into_params().map_err(|error| error.with_sql(&text.sql))?;
    Ok((text, params))
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::api::database::Database;
    use flatwater_base::growth_counter::counted::steps;

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
