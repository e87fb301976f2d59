//! The act of the live query: its result appears after each change of its row, by this process and by another one.
//!
//! Owns: the live query, and the process that changes the row. That process knows nothing of Flatwater: its connection is
//! SQLite's own. Each change writes into the row when it began, by a clock that all processes share, so a result tells its
//! age. Invariant: each change is waited for, and one that does not appear ends the demo with an error. Leaves out: many
//! live queries, and queries that a change does not concern, which the lab measures.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use flatwater::rusqlite::Connection;
use flatwater::{Live, Options};
use hdrhistogram::Histogram;
use rand::RngExt;
use tokio::time::timeout;

use crate::CHANGE_ROW;
use crate::clock::{age, now};
use crate::progress::Progress;
use crate::side::Result;
use crate::table;
use crate::traffic::histogram;

/// The number of steps that the progress bar counts.
pub(crate) const ACTS: u64 = 2;

const TABLE: &str = "CREATE TABLE shown (id INTEGER PRIMARY KEY, changed_at INTEGER NOT NULL) STRICT";
const FIRST: &str = "INSERT INTO shown VALUES (1, 0)";
const SHOWN: &str = "SELECT changed_at FROM shown WHERE id = 1";
const CHANGE: &str = "UPDATE shown SET changed_at = ? WHERE id = 1";

const OUR_CHANGES: usize = 1000;
const THEIR_CHANGES: usize = 50;
/// Flatwater looks this often for commits of other processes.
const LOOK: Duration = Duration::from_millis(20);
/// A change that has not appeared after this time never does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the report.
pub(crate) async fn act(path: &Path, progress: &Progress) -> Result<String> {
    let db = Options::new(path).open().await?;
    db.execute(TABLE, ()).await?;
    db.execute(FIRST, ()).await?;
    let mut shown = db.live(SHOWN, ());
    next(&mut shown).await?;

    progress.act("This process changes the row of a live query.");
    let mut ours = histogram();
    for _ in 0..OUR_CHANGES {
        db.execute(CHANGE, (now(),)).await?;
        ours.saturating_record(age(next(&mut shown).await?));
    }

    progress.act("Another process changes the row of a live query.");
    let (mut theirs, mut other) = (histogram(), Other::start(path)?);
    for _ in 0..THEIR_CHANGES {
        other.change_the_row()?;
        theirs.saturating_record(age(next(&mut shown).await?));
    }
    other.end()?;
    db.close().await?;
    Ok(report(&ours, &theirs))
}

/// Returns the next result: when the change of the row began.
async fn next(shown: &mut Live) -> Result<i64> {
    let row = timeout(PATIENCE, shown.next_as::<(i64,)>()).await.map_err(|_| "a change of the row did not appear")?;
    let row = row.ok_or("the live query has ended")??;
    Ok(row.first().ok_or("the row is gone")?.0)
}

fn report(ours: &Histogram<u64>, theirs: &Histogram<u64>) -> String {
    format!(
        "\nThe result of a live query appears whenever its row has changed. One task waits\n\
         for the next result; another process or this one changes the row.\n\n{}{}{}\n\
         this process  a call: execute\n\
         another one   a plain SQLite connection; its commits are looked for every {} ms\n",
        table::heading("until shown", "changes"),
        table::alone("this process", ours),
        table::alone("another one", theirs),
        LOOK.as_millis(),
    )
}

/// The other process, as this one has it.
struct Other {
    child: Child,
    orders: ChildStdin,
}

impl Other {
    fn start(path: &Path) -> Result<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg(CHANGE_ROW).arg(path).stdin(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().ok_or("the other process takes no orders")?;
        Ok(Self { child, orders })
    }

    fn change_the_row(&mut self) -> Result<()> {
        Ok(self.orders.write_all(b"\n")?)
    }

    fn end(self) -> Result<()> {
        let Self { mut child, orders } = self;
        drop(orders);
        let status = child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the other process failed: {status}").into()) }
    }
}

/// The child: changes the row once for each line that it is sent. It lets some time pass before, so that its changes
/// come at any time between two looks.
pub(crate) fn change_when_told(path: &Path) -> Result<()> {
    let plain = Connection::open(path)?;
    for line in std::io::stdin().lock().lines() {
        line?;
        thread::sleep(rand::rng().random_range(Duration::ZERO..LOOK));
        plain.execute(CHANGE, [now()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_plain_connection_appears() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let db = Options::new(&path).open().await.unwrap();
            db.execute(TABLE, ()).await.unwrap();
            db.execute(FIRST, ()).await.unwrap();
            let mut shown = db.live(SHOWN, ());
            assert_eq!(next(&mut shown).await.unwrap(), 0);
            Connection::open(&path).unwrap().execute(CHANGE, [7]).unwrap();
            assert_eq!(next(&mut shown).await.unwrap(), 7);
            db.execute("DELETE FROM shown", ()).await.unwrap();
            assert!(next(&mut shown).await.unwrap_err().to_string().contains("gone"));
            db.close().await.unwrap();
            assert!(next(&mut shown).await.unwrap_err().to_string().contains("ended"));
        });
    }

    #[test]
    fn the_report_fits_into_80_columns() {
        let mut slow = histogram();
        slow.record_n(3_599_000_000_000, 9_999).unwrap();
        for line in report(&slow, &slow).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
