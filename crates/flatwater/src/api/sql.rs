//! SQL that is put together at run time: text that the program contains, and values that are bound.
//!
//! Owns: `Sql`, a text and its parameters in one order. Runs on the caller's thread. Invariant: nothing that was made
//! at run time gets into the text but quoted identifiers. Leaves out: parsing the text.

use flatwater_base::error::location::at_parameter;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::convert::ToSql;
use flatwater_base::values::params::Params;

/// SQL that depends on the call: a search with optional filters, a list of values for `IN`. Pass it as the SQL of any
/// operation, with `()` as the parameters, because it contains its values.
///
/// ```no_run
/// # async fn example(db: flatwater::Database, state: Option<&str>, ids: &[i64]) -> flatwater::Result<()> {
/// use flatwater::Sql;
///
/// let mut sql = Sql::new("SELECT id, title FROM tasks WHERE id IN ").bind_list(ids);
/// if let Some(state) = state {
///     sql = sql.push(" AND state = ").bind(state);
/// }
/// let tasks: Vec<(i64, String)> = db.query_as(sql, ()).await?;
/// # Ok(()) }
/// ```
///
/// Values and names never become part of the text by mistake, because `new` and `push` only take text that is in the
/// program:
///
/// ```compile_fail,E0716
/// # let name = "Ada";
/// let sql = flatwater::Sql::new("SELECT * FROM users WHERE name = ").push(&format!("'{name}'"));
/// # drop(sql);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Sql {
    text: String,
    /// What is wrong with the first value that cannot be stored, and the number of its parameter; or with a name.
    params: Result<Params, (Option<usize>, Error)>,
}

impl Sql {
    /// Begins with a text of the program.
    pub fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), params: Ok(Params::default()) }
    }

    /// Appends a text of the program.
    pub fn push(mut self, text: &'static str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Appends the name of a table, a column or an index in backticks. SQLite reads any text in backticks as a name,
    /// but reads an unknown column in double quotes as a string.
    pub fn push_identifier(mut self, name: &str) -> Self {
        if name.contains('\0') {
            self.params = self.params.and(Err((None, Error::new(ErrorCode::NulByte, "an identifier has a NUL byte"))));
        }
        if self.text.ends_with('`') {
            // Two backticks are one inside of a name.
            self.text.push(' ');
        }
        self.text.push('`');
        self.text.push_str(&name.replace('`', "``"));
        self.text.push('`');
        self
    }

    /// Appends other SQL with its values.
    pub fn push_sql(mut self, other: &Self) -> Self {
        self.text.push_str(&other.text);
        match (&mut self.params, &other.params) {
            (Ok(params), Ok(others)) => params.append(others),
            (Ok(params), Err((number, error))) => {
                self.params = Err((number.map(|number| params.row().values().count() + number), error.clone()));
            }
            (Err(_), _) => {}
        }
        self
    }

    /// Appends a `?` and binds the value to it. A value that SQLite cannot store unchanged is an error of the call that
    /// gets the [`params`](Self::params).
    pub fn bind(mut self, value: impl ToSql) -> Self {
        self.text.push('?');
        self.add(&value);
        self
    }

    /// Appends a list in parentheses, `(?, ?, ?)`, and binds the values to it. The list may be empty: `IN ()` matches
    /// no row. SQLite takes at most [32,766](https://sqlite.org/limits.html#max_variable_number) values in one
    /// statement; for more, bind a JSON list: `IN (SELECT value FROM json_each(?))`.
    pub fn bind_list<I: IntoIterator<Item: ToSql>>(mut self, values: I) -> Self {
        self.text.push('(');
        for (at, value) in values.into_iter().enumerate() {
            self.text.push_str(if at == 0 { "?" } else { ", ?" });
            self.add(&value);
        }
        self.text.push(')');
        self
    }

    fn add(&mut self, value: &dyn ToSql) {
        if let Ok(params) = &mut self.params
            && let Err((number, error)) = params.add(value)
        {
            self.params = Err((Some(number), error));
        }
    }

    /// The SQL text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A copy of the values, in the order of the text's parameters.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged. If you pass the result on, the operation returns
    /// this error.
    pub fn params(&self) -> Result<Params> {
        self.params.clone().map_err(|(number, error)| {
            let error = error.with_sql(&self.text);
            number.map_or(error.clone(), |number| at_parameter(error, number))
        })
    }
}
