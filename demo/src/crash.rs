//! The last act: kills a writing process three times, and checks that all writes it acknowledged are in the file.
//!
//! Owns: both processes. The child writes numbered rows from several tasks, and prints each number as soon as its write
//! is acknowledged. The parent reads the numbers, kills the child, and starts the next one on the same file. Invariant:
//! no number is used twice, so a row of a later child cannot hide a lost one. Leaves out: power failures.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flatwater::Database;
use tokio::runtime::Runtime;

use crate::WRITE_FOREVER;
use crate::progress::Progress;
use crate::side::Result;
use crate::table::thousands;

/// The parent kills a child after it has read this many of its numbers.
pub(crate) const KILLS: [usize; 3] = [20_000, 50_000, 80_000];

const WRITERS: i64 = 20;
const TABLE: &str = "CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, text TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO rows (number, text) VALUES (?, ?)";

/// The child: writes rows numbered from `first` until it is killed.
pub(crate) fn write_forever(path: &Path, first: &str) -> Result<()> {
    let next = Arc::new(AtomicI64::new(first.parse().map_err(|_| format!("{first:?} is not a row's number"))?));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let db = Database::open(path).await?;
        db.execute(TABLE, ()).await?;
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..WRITERS {
            writers.spawn(write(db.clone(), next.clone()));
        }
        while let Some(ended) = writers.join_next().await {
            ended??;
        }
        Ok(())
    })
}

async fn write(db: Database, next: Arc<AtomicI64>) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        db.execute(INSERT, (number, format!("row {number}"))).await?;
        // One write to the pipe, so that a kill at any time leaves the number whole or absent.
        std::io::stdout().lock().write_all(format!("{number}\n").as_bytes())?;
    }
}

/// The parent: kills, reopens, counts.
pub(crate) fn act(runtime: &Runtime, path: &Path, progress: &Progress) -> Result<Verdict> {
    let mut acknowledged = Vec::new();
    for (at, count) in KILLS.into_iter().enumerate() {
        progress.act(&format!("A process writes and is killed, {} of {}.", at + 1, KILLS.len()));
        // Skips the numbers that the killed child may have been writing, one for each writer.
        let first = acknowledged.iter().max().map_or(1, |last| last + WRITERS + 1);
        acknowledged.extend(one_life(path, first, count)?);
    }
    let (numbers, integrity) = runtime.block_on(contents(path))?;
    Ok(Verdict::new(acknowledged, &numbers, integrity))
}

/// Starts a child, kills it after it has acknowledged `count` rows, and returns all numbers it has acknowledged.
fn one_life(path: &Path, first: i64, count: usize) -> Result<Vec<i64>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(WRITE_FOREVER)
        .arg(path)
        .arg(first.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("the writing process has no output")?;
    let mut lines = BufReader::new(output).split(b'\n').map(|line| number(&line?));
    let before = lines.by_ref().take(count).collect::<Result<Vec<_>>>();
    let killed = child.kill();
    let after = lines.collect::<Result<Vec<_>>>();
    let status = child.wait()?;
    let mut numbers = before?;
    killed?;
    if numbers.len() < count {
        return Err(format!("the writing process ended by itself before it was killed: {status}").into());
    }
    numbers.extend(after?);
    Ok(numbers)
}

fn number(line: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(line)?;
    text.parse().map_err(|_| format!("the writing process printed {text:?} instead of a number").into())
}

/// Returns the numbers in the file, in order, and the result of the integrity check.
async fn contents(path: &Path) -> Result<(Vec<i64>, String)> {
    let db = Database::open(path).await?;
    let numbers: Vec<(i64,)> = db.query_as("SELECT number FROM rows ORDER BY number", ()).await?;
    let integrity = db.query_optional_value("PRAGMA integrity_check", ()).await?.unwrap_or_default();
    db.close().await?;
    Ok((numbers.into_iter().map(|(number,)| number).collect(), integrity))
}

/// The outcome: the acknowledged rows and the rows in the file.
#[derive(Debug)]
pub(crate) struct Verdict {
    acknowledged: usize,
    missing: Vec<i64>,
    integrity: String,
}

impl Verdict {
    /// `found` must be sorted.
    fn new(mut acknowledged: Vec<i64>, found: &[i64], integrity: String) -> Self {
        let count = acknowledged.len();
        acknowledged.retain(|number| found.binary_search(number).is_err());
        Self { acknowledged: count, missing: acknowledged, integrity }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(first) = self.missing.iter().min() {
            return Err(format!("{} acknowledged rows are lost, the first is {first}", self.missing.len()).into());
        }
        if self.integrity != "ok" {
            return Err("the file is damaged".into());
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.acknowledged - self.missing.len();
        let [acknowledged, found] = [self.acknowledged, found].map(|count| thousands(count as u64));
        writeln!(f, "killed {} times: {acknowledged} acknowledged, {found} found", KILLS.len())?;
        writeln!(f, "integrity_check: {}", self.integrity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_not_acknowledged_do_not_stand_for_rows_that_were() {
        let verdict = Verdict::new(vec![3, 1, 2, 5], &[1, 3, 4, 6], "ok".to_owned());
        assert_eq!(verdict.to_string(), "killed 3 times: 4 acknowledged, 2 found\nintegrity_check: ok\n");
        assert_eq!(verdict.check().unwrap_err().to_string(), "2 acknowledged rows are lost, the first is 2");
    }

    #[test]
    fn a_damaged_file_is_no_success_even_if_every_row_is_found() {
        assert!(Verdict::new(vec![1], &[1], "wrong # of entries".to_owned()).check().is_err());
        Verdict::new(vec![1], &[1, 2], "ok".to_owned()).check().unwrap();
    }
}
