//! The functions and collations that scenarios name.
//!
//! Owns: their code in Rust, creating and removing them. Runs on the scenario's thread; they run on those of the database.
//! Invariant: each does what stands here, in every driver. All are deterministic.
//!
//! | name | is |
//! |---|---|
//! | `double`, `triple` | a function of one argument: two or three times the number, NULL for NULL |
//! | `checked` | a function of one argument, which it returns. For the text `bad` it fails with an error of the program's own |
//! | `arguments` | a function of any number of arguments: their number |
//! | `total` | an aggregate: the sum of whole numbers, NULL for no rows |
//! | `moving` | the same as a window function |
//! | `reversed` | a collation: the order of BINARY, reversed |

use flatwater::calls::Functions;
use flatwater::rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use flatwater::rusqlite::{self, types::Value};
use flatwater::{Database, Result};

/// Sums whole numbers. `None`: there is no row.
struct Total;

impl Aggregate<i64, Option<i64>> for Total {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<i64> {
        Ok(0)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut i64) -> rusqlite::Result<()> {
        *sum += context.get::<i64>(0)?;
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<i64>) -> rusqlite::Result<Option<i64>> {
        Ok(sum)
    }
}

impl WindowAggregate<i64, Option<i64>> for Total {
    fn value(&self, sum: Option<&mut i64>) -> rusqlite::Result<Option<i64>> {
        Ok(sum.copied())
    }

    fn inverse(&self, context: &mut Context<'_>, sum: &mut i64) -> rusqlite::Result<()> {
        *sum -= context.get::<i64>(0)?;
        Ok(())
    }
}

fn times(functions: Functions<'_>, name: &str, factor: i64) -> Result<()> {
    let flags = FunctionFlags::SQLITE_DETERMINISTIC;
    functions.create_scalar_function(name, 1, flags, move |context| {
        Ok(context.get::<Option<i64>>(0)?.map(|number| factor * number))
    })
}

/// Creates the one that scenarios call `of`, under a name. Returns `None` if there is none.
pub(super) fn create(db: &Database, of: &str, name: &str) -> Option<Result<()>> {
    let (functions, flags) = (db.functions(), FunctionFlags::SQLITE_DETERMINISTIC);
    Some(match of {
        "double" => times(functions, name, 2),
        "triple" => times(functions, name, 3),
        "checked" => functions.create_scalar_function(name, 1, flags, |context| match context.get::<Value>(0)? {
            Value::Text(text) if text == "bad" => Err(rusqlite::Error::UserFunctionError("it is bad".into())),
            value => Ok(value),
        }),
        "arguments" => functions.create_scalar_function(name, -1, flags, |context| Ok(context.len() as i64)),
        "total" => functions.create_aggregate_function(name, 1, flags, Total),
        "moving" => functions.create_window_function(name, 1, flags, Total),
        "reversed" => functions.create_collation(name, |one, other| other.cmp(one)),
        _ => return None,
    })
}

/// Removes it.
pub(super) fn remove(db: &Database, of: &str, name: &str) -> Result<()> {
    match of {
        "reversed" => db.functions().remove_collation(name),
        "arguments" => db.functions().remove_function(name, -1),
        _ => db.functions().remove_function(name, 1),
    }
}
