//! SQL that is put together at run time: text that the program contains, and values that are bound.
//!
//! Owns: `Sql`, a text and its parameters in one order. Runs on the caller's thread. Invariant: nothing that was made
//! at run time gets into the text but quoted identifiers. Leaves out: parsing the text.

use flatwater_sqlite::Bindings;

use flatwater_base::error::location::at_parameter;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::convert::ToSql;
use flatwater_base::values::params::Params;

/// The most parameters of a statement.
const MOST: usize = 32_766;

/// From this length on a list has a multiple of it.
const LONG: usize = 1024;

/// Returns how long a list of `count` values becomes, with `before` values before it: few lengths, and never too many values.
fn padded(before: usize, count: usize) -> usize {
    let length =
        if count > LONG { count.next_multiple_of(LONG) } else { count.checked_next_power_of_two().unwrap_or(count) };
    let length = if count == 0 { 0 } else { length };
    if before + length > MOST { count } else { length }
}

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
                self.params = Err((number.map(|number| params.row().count() + number), error.clone()));
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

    /// Appends a list for `IN` or `NOT IN`, `(?, ?, ?, ?)`, and binds the values to it. The list may be empty: `IN ()` matches
    /// no row, and `NOT IN ()` every row.
    ///
    /// One of the values is repeated until the list has a length of few, 1, 2, 4, 8 and so on, so that lists of many lengths have few
    /// texts, each of which is prepared once. `IN` takes a list as a set; where the number of values counts, there is
    /// [`bind_row`](Self::bind_row). SQLite takes at most [32,766](https://sqlite.org/limits.html#max_variable_number) values in one
    /// statement; for more, bind a JSON list: `IN (SELECT value FROM json_each(?))`.
    pub fn bind_list<I: IntoIterator<Item: ToSql>>(self, values: I) -> Self {
        self.bind_values(values, padded)
    }

    /// Appends a row in parentheses, `(?, ?, ?)`, and binds the values to it, each once: for VALUES, or as arguments.
    pub fn bind_row<I: IntoIterator<Item: ToSql>>(self, values: I) -> Self {
        self.bind_values(values, |_, count| count)
    }

    /// Binds values, and repeats one of them until there are as many as `wanted` says of how many were bound before, and are in the list.
    fn bind_values<I: IntoIterator<Item: ToSql>>(mut self, values: I, wanted: fn(usize, usize) -> usize) -> Self {
        let before = self.params.as_ref().map_or(0, |params| params.row().count());
        let mut count = 0;
        for value in values {
            self.add(&value);
            count += 1;
        }
        let all = wanted(before, count);
        if let Ok(params) = &mut self.params {
            params.repeat_smallest(before, all - count);
        }
        self.text.push('(');
        (0..all).for_each(|at| self.text.push_str(if at == 0 { "?" } else { ", ?" }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_many_lengths_have_few() {
        let lengths: std::collections::BTreeSet<_> = (0..=31_744).map(|count| padded(0, count)).collect();
        assert_eq!(lengths.len(), 12 + 30);
        assert_eq!([0, 1, 3, 9, 1024, 1025, 20_000].map(|count| padded(0, count)), [0, 1, 4, 16, 1024, 2048, 20_480]);
        assert_eq!([padded(0, 32_000), padded(32_703, 40), padded(32_702, 40)], [32_000, 40, 64]);
        for count in 0..2000 {
            assert!(padded(0, count) >= count && padded(MOST, count) == count);
        }
    }
}
