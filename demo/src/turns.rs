//! The act of the turns: sixteen processes write to one file as fast as they can, first with plain SQLite, then with
//! Flatwater.
//!
//! Owns: the processes, which begin and end at the same moments, and the table of their turns. A turn is one committed
//! transaction, which holds the lock for 200 us between its insert and its commit. Invariant: the file has one row for
//! each turn, or the demo ends with an error. Leaves out: other numbers of processes and other ways to wait for a lock,
//! which the lab measures.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flatwater::rusqlite::Connection;
use flatwater::{Database, Error};

use crate::TAKE_TURNS;
use crate::clock::{age, now};
use crate::progress::Progress;
use crate::side::Result;
use crate::table;

/// The number of steps that the progress bar counts.
pub(crate) const ACTS: u64 = 2;
/// About how many seconds the act takes.
pub(crate) const TAKES: f64 = 5.0;

const PROCESSES: usize = 16;
const LASTS: Duration = Duration::from_secs(2);
/// How long the lock is held in each turn.
const HOLD: Duration = Duration::from_micros(200);
/// From when the last process is ready until all begin.
const AHEAD: Duration = Duration::from_millis(50);

const TABLE: &str = "CREATE TABLE turns (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";
const TURN: &str = "INSERT INTO turns (text) VALUES ('a turn')";

/// With what a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    /// A plain connection, with SQLite's busy timeout.
    Sqlite,
    Flatwater,
}

impl Library {
    const BOTH: [Self; 2] = [Self::Sqlite, Self::Flatwater];

    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Flatwater => "Flatwater",
        }
    }
}

/// What the processes of one library did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Turns {
    all: u64,
    fewest: u64,
    most: u64,
    /// The longest wait for the lock, in nanoseconds.
    longest: u64,
}

/// Returns the report.
pub(crate) fn act(directory: &Path, progress: &Progress) -> Result<String> {
    let mut sides = Vec::new();
    for library in Library::BOTH {
        progress.act(&format!("{PROCESSES} processes write with {}.", library.name()));
        let path = directory.join(format!("turns-{}.db", library.name()));
        sides.push((library.name(), one(library, &path, PROCESSES, LASTS)?));
    }
    Ok(report(&sides))
}

fn one(library: Library, path: &Path, processes: usize, lasts: Duration) -> Result<Turns> {
    let plain = Connection::open(path)?;
    plain.pragma_update(None, "journal_mode", "wal")?;
    plain.execute(TABLE, [])?;
    plain.close().map_err(|(_, error)| error)?;
    let mut writers = (0..processes).map(|_| Writer::start(library, path)).collect::<Result<Vec<_>>>()?;
    writers.iter_mut().try_for_each(Writer::is_ready)?;
    let starts = now() + nanoseconds(AHEAD);
    let ends = starts + nanoseconds(lasts);
    writers.iter_mut().try_for_each(|writer| writer.begin(starts, ends))?;
    let done = writers.into_iter().map(Writer::end).collect::<Result<Vec<_>>>()?;
    let turns = turns(&done);
    let found: u64 = Connection::open(path)?.query_row("SELECT count(*) FROM turns", [], |row| row.get(0))?;
    if found == turns.all {
        return Ok(turns);
    }
    Err(format!("{} processes had {} turns, and the file has {found} rows", library.name(), turns.all).into())
}

/// Adds up what each process said: its turns, and its longest wait.
fn turns(done: &[(u64, u64)]) -> Turns {
    let counts = || done.iter().map(|(turns, _)| *turns);
    Turns {
        all: counts().sum(),
        fewest: counts().min().unwrap_or(0),
        most: counts().max().unwrap_or(0),
        longest: done.iter().map(|(_, longest)| *longest).max().unwrap_or(0),
    }
}

fn report(sides: &[(&str, Turns)]) -> String {
    let mut text = format!(
        "\n{PROCESSES} processes write to one file for {} s, each again as soon as it has written.\n\
         Each transaction holds the lock for {} us. How often does a process get it?\n\n",
        LASTS.as_secs(),
        HOLD.as_micros(),
    );
    text += &table::headed("turns", ["all", "fewest", "most", "", "longest wait"]);
    for (name, turns) in sides {
        let [all, fewest, most] = [turns.all, turns.fewest, turns.most].map(table::thousands);
        let longest = table::duration(turns.longest);
        text += &table::line(&format!("  {name}"), [all, fewest, most, String::new(), longest]);
    }
    text + "\nSQLite     plain connections, which wait as SQLite does by default\n\
            Flatwater  opened with its defaults\n"
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// One of the processes, as this one has it.
struct Writer {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    fn start(library: Library, path: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(TAKE_TURNS).arg(path).arg(library.name()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("a writing process has no output")?);
        Ok(Self { child, answers })
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    fn is_ready(&mut self) -> Result<()> {
        if self.hear()?.trim() == "ready" { Ok(()) } else { Err("a writing process did not begin".into()) }
    }

    fn begin(&mut self, starts: i64, ends: i64) -> Result<()> {
        let mut orders = self.child.stdin.take().ok_or("a writing process takes no orders")?;
        Ok(writeln!(orders, "{starts} {ends}")?)
    }

    /// Returns its turns, and its longest wait in nanoseconds.
    fn end(mut self) -> Result<(u64, u64)> {
        let line = self.hear()?;
        let status = self.child.wait()?;
        match pair(&line) {
            Ok(done) if status.success() => Ok(done),
            _ => Err(format!("a writing process failed: {status}").into()),
        }
    }
}

/// One that has not ended is not left behind.
impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pair<T: std::str::FromStr>(line: &str) -> Result<(T, T)> {
    let numbers = line.trim().split_once(' ').and_then(|(one, other)| Some((one.parse().ok()?, other.parse().ok()?)));
    numbers.ok_or_else(|| format!("{line:?} is not two numbers").into())
}

/// The child: takes turns from the first moment to the second that it is sent, and says how many there were. The turn that
/// is begun at the end is finished.
pub(crate) fn take_turns(path: &Path, library: &str) -> Result<()> {
    let library = Library::BOTH.into_iter().find(|known| known.name() == library).ok_or("there is no such library")?;
    let mut turn = way_to(library, path)?;
    println!("ready");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let (starts, ends) = pair::<i64>(&line)?;
    thread::sleep(Duration::from_nanos(u64::try_from(starts - now()).unwrap_or(0)));
    let (mut turns, mut longest) = (0_u64, Duration::ZERO);
    while turns == 0 || age(ends) == 0 {
        longest = longest.max(turn()?);
        turns += 1;
    }
    println!("{turns} {}", longest.as_nanos());
    Ok(())
}

/// Opens the file. Returns what takes one turn, and answers how long it waited for the lock.
fn way_to(library: Library, path: &Path) -> Result<Box<dyn FnMut() -> Result<Duration>>> {
    if library == Library::Flatwater {
        let db = Database::open(path).wait()?;
        return Ok(Box::new(move || {
            let asked = Instant::now();
            let written = db.write_with(move |transaction| {
                let waited = asked.elapsed();
                insert(transaction)?;
                Ok::<_, Error>(waited)
            });
            Ok(written.wait()?)
        }));
    }
    let plain = Connection::open(path)?;
    plain.pragma_update(None, "synchronous", "normal")?;
    Ok(Box::new(move || {
        let asked = Instant::now();
        plain.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let waited = asked.elapsed();
        insert(&plain)?;
        plain.prepare_cached("COMMIT")?.execute([])?;
        Ok(waited)
    }))
}

fn insert(connection: &Connection) -> flatwater::rusqlite::Result<()> {
    connection.prepare_cached(TURN)?.execute([])?;
    let began = Instant::now();
    while began.elapsed() < HOLD {
        std::hint::spin_loop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_and_the_most_are_of_one_process_each() {
        let expected = Turns { all: 12, fewest: 1, most: 8, longest: 40 };
        assert_eq!(turns(&[(8, 2), (1, 40), (3, 7)]), expected);
        assert_eq!(pair::<u64>("8 2\n").unwrap(), (8, 2));
        assert!(pair::<u64>("8").is_err() && pair::<i64>("").is_err());
    }

    #[test]
    fn a_turn_of_either_library_is_a_row() {
        for library in Library::BOTH {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("x.db");
            Connection::open(&path).unwrap().execute(TABLE, []).unwrap();
            let mut turn = way_to(library, &path).unwrap();
            for _ in 0..3 {
                turn().unwrap();
            }
            drop(turn);
            let rows: u64 =
                Connection::open(&path).unwrap().query_row("SELECT count(*) FROM turns", [], |row| row.get(0)).unwrap();
            assert_eq!(rows, 3, "{library:?}");
        }
    }

    #[test]
    fn the_report_fits_into_80_columns() {
        let slow = || Turns { all: 9_999_999, fewest: 999_999, most: 9_999_999, longest: 3_599_000_000_000 };
        for line in report(&[("SQLite", slow()), ("Flatwater", slow())]).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
