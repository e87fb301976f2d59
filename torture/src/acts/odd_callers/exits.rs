//! Processes that end in every state and in every way: they must end at once, and lose nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::{Database, Error};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Piece;
use super::scene::{Scene, options};
use super::waiting::{HANGS, finish, poll_once};
use crate::checks::is_sound;
use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::parts;
use crate::writes::{INSERT, rows, with_table};

pub(crate) const PIECES: &[Piece] = &[Piece::new("a process that ends in the middle of it", ends)];

const STATES: [&str; 8] = [
    "calls queued",
    "transaction open",
    "checkpoint running",
    "read running",
    "closing",
    "closure running",
    "opening",
    "idle",
];
const ENDINGS: [&str; 9] = [
    "exit",
    "exit on another thread",
    "exit in a closure",
    "exit in a waker",
    "exit twice",
    "return",
    "return and leak",
    "panic",
    "abort",
];

/// The words the process prints with a number: an acknowledged write, or one that must not be present.
const ACKNOWLEDGED: &str = "acknowledged";
const REFUSED: &str = "refused";

fn ends(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let path = scene.new_path();
    with_table(&path)?;
    let state = STATES[rng.random_range(0..STATES.len())];
    let ending = ENDINGS[rng.random_range(0..ENDINGS.len())];
    let seed: u64 = rng.random();
    let named = |finding: Finding| {
        let history = format!("state: {state}, ending: {ending}, seed {seed}\n{}", finding.history);
        finding.with_history(history)
    };
    scene.count("sudden exits", 1);
    one_end(&path, state, ending, seed).map_err(named)
}

fn one_end(path: &Path, state: &str, ending: &str, seed: u64) -> Result<(), Finding> {
    let mut child = parts::part("odd-exit")
        .arg(path)
        .args([state, ending, &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let said = child
        .stdout
        .take()
        .map(|out| thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).collect::<Vec<_>>()));
    let status = ended(&mut child)?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    // A panic of the main thread gives code 101, and `abort` a signal; otherwise the code is the one that was
    // requested.
    let expected = match ending {
        "panic" => status.code() == Some(101),
        "abort" => status.code().is_none(),
        _ => status.code() == Some(7),
    };
    if !expected {
        return Err(Finding::new(format!("the process ended otherwise than it should: {status}")));
    }
    let ledger = heard(&said);
    // The next process can open the file, and finds the acknowledged writes.
    let again = options(path, &mut StdRng::seed_from_u64(seed)).open().wait()?;
    let number = ledger.begin(false);
    let wrote = finish("a write after a process ended", again.execute(INSERT, (number,)))?;
    ledger.answered(number, &wrote);
    wrote?;
    finish("close", again.close())??;
    ledger.agrees_with(&rows(path)?)?;
    is_sound(path)
}

fn ended(child: &mut Child) -> Result<ExitStatus, Finding> {
    parts::ended_or_killed(child, HANGS)?.ok_or_else(|| Finding::new("a process that exits hangs"))
}

/// Returns the ledger of the process, as far as it was printed.
fn heard(said: &[String]) -> Ledger {
    let ledger = Ledger::default();
    // The process numbers its writes from 1 up to this.
    for _ in 0..WRITES {
        ledger.begin(false);
    }
    for line in said {
        match line.split_once(' ').map(|(word, number)| (word, number.parse())) {
            Some((ACKNOWLEDGED, Ok(number))) => ledger.acknowledged(number),
            Some((REFUSED, Ok(number))) => ledger.refused(number),
            _ => {}
        }
    }
    ledger
}

/// The maximum number of writes of such a process.
const WRITES: usize = 1000;

fn say(word: &str, number: i64) {
    let mut out = std::io::stdout().lock();
    // The reader of the output may have ended.
    let _ = writeln!(out, "{word} {number}").and_then(|()| out.flush());
}

/// The process: reaches a state, and ends.
pub(crate) fn part(args: &[String]) -> ExitCode {
    let [path, state, ending, seed] = args else { return ExitCode::from(2) };
    let Ok(seed) = seed.parse() else { return ExitCode::from(2) };
    let mut rng = StdRng::seed_from_u64(seed);
    match ends_so(Path::new(path), state, ending, &mut rng) {
        Ok(()) => ExitCode::from(7),
        Err(finding) => {
            eprintln!("{}", finding.what);
            ExitCode::from(3)
        }
    }
}

/// Calls in flight, which a process keeps until its end.
type InFlight = Vec<Box<dyn std::any::Any>>;

fn ends_so(path: &Path, state: &str, ending: &str, rng: &mut StdRng) -> Result<(), Finding> {
    let db = options(path, rng).tuning(|t| t.close_wait(Duration::from_millis(200))).open().wait()?;
    let before = rng.random_range(1..200);
    for number in 1..=before {
        finish("a write", db.execute(INSERT, (number,)))??;
        say(ACKNOWLEDGED, number);
    }
    let writers: Vec<_> = (0..2).map(|n| writer(&db, before + 1 + n * 300)).collect();
    let in_flight = come_into(&db, state, before + 700, rng)?;
    thread::sleep(Duration::from_micros(rng.random_range(0..5000)));
    end(&db, ending);
    if ending == "return and leak" {
        std::mem::forget((db, in_flight));
    }
    // The threads continue until the process ends.
    drop(writers);
    Ok(())
}

/// Starts a thread that writes, and prints its writes, until the process ends.
fn writer(db: &Database, first: i64) -> thread::JoinHandle<()> {
    let db = db.clone();
    thread::spawn(move || {
        for number in first..first + 250 {
            if db.execute(INSERT, (number,)).wait().is_err() {
                return;
            }
            say(ACKNOWLEDGED, number);
        }
    })
}

const LONG: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";

fn come_into(db: &Database, state: &str, first: i64, rng: &mut StdRng) -> Result<InFlight, Finding> {
    let mut in_flight: InFlight = Vec::new();
    match state {
        "calls queued" => {
            in_flight.push(Box::new(finish("begin", db.begin())??));
            for number in first..first + rng.random_range(1..100) {
                let mut call = db.execute(INSERT, (number,));
                let _ = poll_once(&mut call);
                in_flight.push(Box::new(call));
            }
        }
        "transaction open" => {
            let tx = finish("begin", db.begin())??;
            for number in first..first + 20 {
                say(REFUSED, number);
                finish("a write in a transaction", tx.execute(INSERT, (number,)))??;
            }
            in_flight.push(Box::new(tx));
        }
        "checkpoint running" => {
            let mut call = db.checkpoint(CheckpointMode::Truncate);
            let _ = poll_once(&mut call);
            in_flight.push(Box::new(call));
        }
        "read running" => {
            for _ in 0..3 {
                let mut call = db.query(LONG, ());
                let _ = poll_once(&mut call);
                in_flight.push(Box::new(call));
            }
        }
        "closing" => {
            let db = db.clone();
            let mut close = Box::pin(async move { db.close().await });
            let _ = poll_once(&mut close);
            in_flight.push(Box::new(close));
        }
        "closure running" => {
            say(REFUSED, first);
            let (begins, begun) = std::sync::mpsc::channel();
            let db = db.clone();
            let mut call = Box::pin(async move {
                db.write_with(move |tx| {
                    tx.execute(INSERT, [first])?;
                    let _ = begins.send(());
                    // Longer than any caller waits for the end.
                    thread::sleep(3 * HANGS);
                    Err::<(), _>(Error::from(rusqlite::Error::QueryReturnedNoRows))
                })
                .await
            });
            let _ = poll_once(&mut call);
            begun.recv()?;
            in_flight.push(Box::new(call));
        }
        "opening" => {
            let mut open = Box::pin(Database::open(":memory:"));
            let _ = poll_once(&mut open);
            in_flight.push(Box::new(open));
        }
        _ => {}
    }
    Ok(in_flight)
}

struct Exits;

impl Wake for Exits {
    fn wake(self: Arc<Self>) {
        std::process::exit(7)
    }
}

/// Ends the process; if it returns, the process ends afterwards.
fn end(db: &Database, ending: &str) {
    match ending {
        "exit" => std::process::exit(7),
        "exit on another thread" => {
            let _ = thread::spawn(|| std::process::exit(7)).join();
        }
        "exit twice" => {
            thread::spawn(|| std::process::exit(7));
            std::process::exit(7);
        }
        "exit in a closure" => {
            let db = db.clone();
            let mut read =
                Box::pin(async move { db.read_with(|_| -> Result<(), Error> { std::process::exit(7) }).await });
            let _ = poll_once(&mut read);
            exit_later();
        }
        "exit in a waker" => {
            let mut read = db.query("SELECT count(*) FROM t", ());
            let waker = Waker::from(Arc::new(Exits));
            let _ = std::pin::Pin::new(&mut read).poll(&mut std::task::Context::from_waker(&waker));
            exit_later();
        }
        "panic" => panic!("on purpose"),
        "abort" => std::process::abort(),
        _ => {}
    }
}

/// Ends the process after a while in any case: readers may run reads that never end, or the database may be closed.
fn exit_later() {
    thread::sleep(Duration::from_millis(200));
    std::process::exit(7);
}
