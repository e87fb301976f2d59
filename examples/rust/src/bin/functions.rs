//! SQL functions: one for each connection, in an index, and an aggregate that is created while the database is open.

use flatwater::rusqlite::functions::{Aggregate, Context, FunctionFlags};
use flatwater::{Options, rusqlite};

/// It returns the same for the same arguments, and does nothing else.
const PURE: FunctionFlags =
    FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC).union(FunctionFlags::SQLITE_INNOCUOUS);

struct Median;

impl Aggregate<Vec<f64>, Option<f64>> for Median {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> rusqlite::Result<()> {
        values.push(context.get(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> rusqlite::Result<Option<f64>> {
        let mut values = values.unwrap_or_default();
        values.sort_by(f64::total_cmp);
        Ok(values.get(values.len() / 2).copied())
    }
}

#[tokio::main]
async fn main() -> flatwater::Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let options = Options::new(directory.path().join("functions.db")).on_connect(|connection| {
        let vowels = |context: &Context<'_>| {
            let word: String = context.get(0)?;
            Ok(word.chars().filter(|c| "aeiou".contains(*c)).count() as i64)
        };
        connection.create_scalar_function("vowels", 1, PURE, vowels)
    });
    let db = options.open().await?;

    // The schema may use it, because every connection has it.
    db.execute_script("CREATE TABLE words (word TEXT NOT NULL); CREATE INDEX by_vowels ON words (vowels(word))")
        .await?;
    db.execute_many("INSERT INTO words VALUES (?)", [["ebb"], ["flood"], ["tide"], ["estuary"]]).await?;
    let two: Vec<(String,)> = db.query("SELECT word FROM words WHERE vowels(word) = 2", ()).await?.read()?;
    println!("{two:?}");

    db.functions().create_aggregate_function("median", 1, PURE, Median)?;
    let median: f64 = db.query_value("SELECT median(length(word)) FROM words", ()).await?;
    println!("median {median}");

    db.functions().remove_function("median", 1)?;
    let error = db.query("SELECT median(1)", ()).await.expect_err("it was removed");
    println!("{}", error.message());
    db.close().await
}
