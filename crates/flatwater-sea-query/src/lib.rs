//! Statements of the query builder [sea-query](https://docs.rs/sea-query), with their values, for Flatwater.
//!
//! ```
//! use flatwater::{Database, FromRow};
//! use flatwater_sea_query::Build;
//! use sea_query::{Expr, ExprTrait, Iden, Query, SqliteQueryBuilder};
//!
//! #[derive(Iden)]
//! enum Users { Table, Id, Name }
//!
//! #[derive(FromRow)]
//! struct User { id: i64, name: String }
//!
//! # async fn example(db: Database) -> flatwater::Result<()> {
//! let insert = Query::insert().into_table(Users::Table).columns([Users::Name]).values_panic(["Ada".into()]).take();
//! let (sql, values) = insert.build_flatwater(SqliteQueryBuilder);
//! db.execute(&sql, values).await?;
//!
//! let select = Query::select().columns([Users::Id, Users::Name]).from(Users::Table).and_where(Expr::col(Users::Id).gt(0)).take();
//! let (sql, values) = select.build_flatwater(SqliteQueryBuilder);
//! let users: Vec<User> = db.query_as(&sql, values).await?;
//! # assert_eq!((users[0].id, users[0].name.as_str()), (1, "Ada"));
//! # Ok(()) }
//! # let db = Database::open(":memory:").wait().unwrap();
//! # db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)", ()).wait().unwrap();
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example(db)).unwrap();
//! ```
//!
//! Statements without values, such as those that create tables, are texts: `Table::create()....to_string(SqliteQueryBuilder)`.
//! Values are bound and never become part of the text, so a statement that is built again is a text that Flatwater knows.
//!
//! The features of this crate have the names of sea-query's, and each turns on both sea-query's and Flatwater's: values of
//! `chrono`, `time`, `jiff`, `serde_json`, `rust_decimal` and `uuid` have the form that Flatwater gives them everywhere.
//!
//! Runs on the caller's thread. Leaves out the builder, and running what it built.

#![forbid(unsafe_code)]

mod stored;

use flatwater::{Params, Result};
use sea_query::{QueryBuilder, QueryStatementWriter};

use crate::stored::Stored;

/// Builds a statement for the calls of Flatwater.
pub trait Build: QueryStatementWriter {
    /// Returns the text and its values: what [`query`](flatwater::Session::query), [`execute`](flatwater::Session::execute)
    /// and the others take. Does not block.
    ///
    /// The call that gets the values fails with `Misuse`, before it begins, if one cannot be stored: an integer beyond 64 bits
    /// with a sign, NaN, a value of another database such as an array.
    fn build_flatwater(&self, builder: impl QueryBuilder) -> (String, Result<Params>) {
        let (sql, values) = self.build(builder);
        (sql, Params::positional(values.iter().map(Stored)))
    }
}

impl<T: QueryStatementWriter> Build for T {}
