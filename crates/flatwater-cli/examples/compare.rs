//! The command beside the `sqlite3` shell: a million rows to CSV and back, the first row, and an import beside a service.
//!
//! Owns: the lanes, and the goals that they have. `make bench-cli` runs it with the command as it is released. The sides run in turn, and
//! medians count. Skipped where there is no `sqlite3`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use flatwater::Database;

const ROWS: u64 = 1_000_000;
const RUNS: usize = 5;
const SCHEMA: &str = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT)";
const QUERY: &str = "SELECT * FROM items";

/// The most that a lane may have: a ratio, or milliseconds.
const QUERY_RATIO: f64 = 1.0;
const IMPORT_RATIO: f64 = 1.0;
const FIRST_ROW_MS: f64 = 15.0;
const WRITE_P99_MS: f64 = 5.0;

struct Bench {
    flatwater: PathBuf,
    folder: PathBuf,
    failed: bool,
}

fn main() -> ExitCode {
    let flatwater = PathBuf::from(std::env::args().nth(1).expect("the path of the command is given"));
    if Command::new("sqlite3").arg("--version").output().is_err() {
        println!("skipped: there is no sqlite3");
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut bench = Bench { flatwater, folder: folder.path().to_owned(), failed: false };
    bench.fill();
    bench.query();
    bench.first_row();
    bench.import();
    bench.import_beside_a_service();
    ExitCode::from(u8::from(bench.failed))
}

impl Bench {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("the path is UTF-8").to_owned()
    }

    /// Makes the database, and the file of its rows.
    fn fill(&self) {
        let db = Database::open(self.path("items.db")).wait().expect("it opens");
        let rows = format!(
            "{SCHEMA}; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
             INSERT INTO items SELECT i, 'item number ' || i, i * 0.25, 'a note, with a comma, of item ' || i FROM n"
        );
        db.execute_script(&rows).wait().expect("the rows are made");
        db.close().wait().expect("it closes");
        run(self.ours(&["export", &self.path("items.db"), "items", "-o", "csv", "--to", &self.path("items.csv")]));
    }

    fn ours(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.flatwater);
        command.args(arguments);
        command
    }

    fn query(&mut self) {
        let db = self.path("items.db");
        let sides = in_turn(
            || run(sqlite3(&["-csv", &db, QUERY])),
            || run(self.ours(&["query", &db, QUERY, "-o", "csv", "--no-header"])),
        );
        self.ratio("query of a million rows to CSV", sides, QUERY_RATIO);
    }

    fn first_row(&mut self) {
        let db = self.path("items.db");
        let sides = in_turn(
            || first_byte(sqlite3(&["-csv", &db, QUERY])),
            || first_byte(self.ours(&["query", &db, QUERY, "-o", "csv", "--no-header"])),
        );
        println!("start to first row: sqlite3 {:.1} ms, flatwater {:.1} ms", ms(sides.0), ms(sides.1));
        self.goal(ms(sides.1), FIRST_ROW_MS);
    }

    fn import(&mut self) {
        let csv = self.path("items.csv");
        let made = |name: &str| {
            let path = self.path(name);
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _ = std::fs::remove_file(format!("{path}{suffix}"));
            }
            run(sqlite3(&[&path, &format!("PRAGMA journal_mode = WAL; {SCHEMA}")]));
            path
        };
        let import = format!(".import --csv --skip 1 {csv} items");
        let sides = in_turn(
            || {
                let path = made("theirs.db");
                run(sqlite3(&[&path, "PRAGMA synchronous = NORMAL", &import]))
            },
            || run(self.ours(&["import", &made("ours.db"), &csv, "items"])),
        );
        self.ratio("import of a million rows", sides, IMPORT_RATIO);
    }

    fn import_beside_a_service(&mut self) {
        let path = self.path("service.db");
        let db = Database::open(&path).wait().expect("it opens");
        db.execute_script(format!("{SCHEMA}; CREATE TABLE log (text)")).wait().expect("the tables are made");
        let mut import = self.ours(&["import", &path, &self.path("items.csv"), "items"]);
        let mut import = import.stderr(Stdio::null()).spawn().expect("the import begins");
        let mut waited = Vec::new();
        while import.try_wait().expect("it is a child").is_none() {
            let began = Instant::now();
            db.execute("INSERT INTO log VALUES ('a line')", ()).wait().expect("the service writes");
            waited.push(began.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        waited.sort();
        let (p99, most) = (waited[waited.len() * 99 / 100], waited[waited.len() - 1]);
        println!(
            "writes of a service beside an import: {} writes, p99 {:.2} ms, longest {:.2} ms",
            waited.len(),
            ms(p99),
            ms(most)
        );
        self.goal(ms(p99), WRITE_P99_MS);
        db.close().wait().expect("it closes");
    }

    fn ratio(&mut self, what: &str, (theirs, ours): (Duration, Duration), most: f64) {
        println!("{what}: sqlite3 {:.0} ms, flatwater {:.0} ms", ms(theirs), ms(ours));
        self.goal(ours.as_secs_f64() / theirs.as_secs_f64(), most);
    }

    fn goal(&mut self, is: f64, most: f64) {
        let verdict = if is <= most { "reached" } else { "MISSED" };
        println!("  {is:.2}, and may be {most}: {verdict}");
        self.failed |= is > most;
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Runs both sides in turn, and returns their medians.
fn in_turn(theirs: impl Fn() -> Duration, ours: impl Fn() -> Duration) -> (Duration, Duration) {
    let (mut of_theirs, mut of_ours): (Vec<Duration>, Vec<Duration>) = (0..RUNS).map(|_| (theirs(), ours())).unzip();
    of_theirs.sort();
    of_ours.sort();
    (of_theirs[RUNS / 2], of_ours[RUNS / 2])
}

fn sqlite3(arguments: &[&str]) -> Command {
    let mut command = Command::new("sqlite3");
    // No file of settings of the user.
    command.args(["-batch", "-init"]).arg(Path::new("/dev/null")).args(arguments);
    command
}

/// Runs a command to its end, whose output nobody reads.
fn run(mut command: Command) -> Duration {
    let began = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the command begins");
    assert!(status.success(), "{command:?}");
    began.elapsed()
}

/// The time until the first byte of its output.
fn first_byte(mut command: Command) -> Duration {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command begins");
    child.stdout.as_mut().expect("it is piped").read_exact(&mut [0]).expect("there is a row");
    let took = began.elapsed();
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    took
}
