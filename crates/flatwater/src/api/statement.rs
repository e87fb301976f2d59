//! What can be passed as SQL.
//!
//! Owns: the trait, refusing a statement that brings its values where it must not, and naming the text whose values are refused.
//! Runs on the caller's thread. Leaves out: looking the text up (`session`).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sql::statement_info::StatementInfo;
use crate::values::into_params::IntoParams;
use crate::values::params::Params;
use crate::values::sql::Sql;

/// What a statement was given as. Other crates cannot name it.
pub enum Given<'a> {
    Text(&'a str),
    Sql(&'a Sql),
    Known(Known<'a>),
}

/// A text that was looked up, and the number of its database.
pub struct Known<'a> {
    pub(crate) text: &'a Arc<StatementInfo>,
    pub(crate) database: usize,
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

/// Returns the parameters that are given with a text.
pub(crate) fn bound(text: Arc<StatementInfo>, params: impl IntoParams) -> Result<(Arc<StatementInfo>, Params)> {
    let params = params.into_params().map_err(|error| error.with_sql(&text.sql))?;
    Ok((text, params))
}

/// Returns the error for a statement that has its values, with which others were given.
#[cold]
pub(crate) fn bound_twice() -> Error {
    Error::misuse("the `Sql` has values, but the call has parameters too")
        .with_hint("pass `()` as the parameters of an `Sql`")
}

/// Returns the error for a statement that has its values, where none may be given.
#[cold]
pub(crate) fn has_values() -> Error {
    Error::misuse("an `Sql` that has values cannot be used here").with_hint("pass the text alone")
}
