//! Opens and closes: thousands of them, at the same time, of one file under many names, dropped, doubled, and with
//! calls in flight.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use flatwater::{Database, Error, ErrorKind, Options};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Piece;
use super::scene::{Scene, options};
use super::waiting::{finish, poll_once};
use crate::checks::is_sound;
use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::writes::{INSERT, rows, with_table};

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("one file opened by many threads at once", at_once),
    Piece::new("one file opened by many names", by_many_names),
    Piece::new("many files opened and closed", many_files),
    Piece::new("a file opened and closed again and again", again_and_again),
    Piece::new("opens that are given up", given_up),
    Piece::new("a close with calls in flight", close_in_flight),
    Piece::new("a close that is made twice, and in a waker", close_twice),
    Piece::new("an open while the file is being closed", open_while_closing),
    Piece::new("clones that are dropped in odd orders", odd_orders),
];

/// Another file with its own ledger, and one random setting for all who open it.
struct Other {
    path: PathBuf,
    options: Options,
    ledger: Ledger,
}

impl Other {
    fn new(scene: &Scene, rng: &mut StdRng) -> Result<Self, Finding> {
        let path = scene.new_path();
        with_table(&path)?;
        Ok(Self { options: options(&path, rng), path, ledger: Ledger::default() })
    }

    fn open(&self, scene: &Scene) -> Result<Database, Finding> {
        scene.count("opens", 1);
        Ok(self.options.clone().open().wait()?)
    }

    /// Writes and reads one row.
    fn visit(&self, db: &Database) -> Result<(), Finding> {
        let (number, db) = (self.ledger.begin(false), db);
        let wrote = db.execute(INSERT, (number,)).wait();
        self.ledger.answered(number, &wrote);
        wrote?;
        let seen = db.query_optional_value::<i64>("SELECT count(*) FROM t WHERE n = ?", (number,)).wait()?;
        if seen == Some(1) {
            Ok(())
        } else {
            Err(Finding::new(format!("a row that was written is there {seen:?} times")))
        }
    }

    /// After the last handle is dropped: checks that the file contains what its callers were told, and deletes it.
    fn end(self) -> Result<(), Finding> {
        self.ledger.agrees_with(&rows(&self.path)?)?;
        is_sound(&self.path)
    }
}

/// Returns the result; `None` if the call was refused because the database is closed.
fn closed_or<T>(answer: Result<T, Error>) -> Result<Option<T>, Finding> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::Closed => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn at_once(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    let threads = rng.random_range(2..12);
    let (together, closes) = (Barrier::new(threads), rng.random_bool(0.5));
    thread::scope(|scope| {
        let opens: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> Result<(), Finding> {
                    together.wait();
                    let db = other.open(scene)?;
                    other.visit(&db)?;
                    if closes {
                        finish("close", db.close())??;
                    }
                    Ok(())
                })
            })
            .collect();
        opens.into_iter().try_for_each(|open| open.join().map_err(|_| Finding::new("an open panicked"))?)
    })?;
    other.end()
}

/// Returns names of the same file: its path, a link, a second hard link, a path through a directory and back, and a
/// path relative to a link.
fn names(path: &Path) -> Result<Vec<PathBuf>, Finding> {
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let (link, second) = (beside("-link"), beside("-second"));
    std::os::unix::fs::symlink(path, &link)?;
    std::fs::hard_link(path, &second)?;
    let (directory, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    let around = directory.join(".").join("..").join(directory.file_name().unwrap_or_default()).join(name);
    let uri = PathBuf::from(format!("file:{}", path.display()));
    Ok(vec![path.to_owned(), link, second, around, uri])
}

fn by_many_names(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let path = scene.new_path();
    with_table(&path)?;
    let mut names = names(&path)?;
    names.shuffle(rng);
    let ledger = Ledger::default();
    let mut open = Vec::new();
    // The file's WAL is found by the first name.
    let first = names[0].clone();
    for name in &names {
        open.push(Options::new(name).open().wait()?);
        scene.count("opens", 1);
    }
    for _ in 0..names.len() {
        for db in &open {
            let number = ledger.begin(false);
            let wrote = finish("a write by one of many names", db.execute(INSERT, (number,)))?;
            ledger.answered(number, &wrote);
            wrote?;
            // All handles refer to one database, so every other handle sees the write.
            let reader = &open[rng.random_range(0..open.len())];
            let seen = reader.query_optional_value::<i64>("SELECT count(*) FROM t WHERE n = ?", (number,));
            if finish("a read by one of many names", seen)?? != Some(1) {
                return Err(Finding::new("a row that was written by one name is not seen by another"));
            }
        }
        let gone = open.remove(rng.random_range(0..open.len()));
        if open.is_empty() || rng.random_bool(0.5) {
            finish("close", gone.close())??;
        }
    }
    ledger.agrees_with(&rows(&first)?)?;
    is_sound(&first)
}

fn many_files(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let others = (0..rng.random_range(2..10)).map(|_| Other::new(scene, rng)).collect::<Result<Vec<_>, _>>()?;
    let open = others.iter().map(|other| other.open(scene)).collect::<Result<Vec<_>, _>>()?;
    for (other, db) in others.iter().zip(&open) {
        other.visit(db)?;
    }
    let mut open: Vec<_> = open.into_iter().map(Some).collect();
    open.shuffle(rng);
    for db in &mut open {
        if let Some(db) = db.take_if(|_| rng.random_bool(0.5)) {
            finish("close", db.close())??;
        }
    }
    drop(open);
    others.into_iter().try_for_each(Other::end)
}

fn again_and_again(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    for _ in 0..rng.random_range(5..40) {
        let db = other.open(scene)?;
        if rng.random_bool(0.5) {
            other.visit(&db)?;
        }
        if rng.random_bool(0.5) {
            finish("close", db.close())??;
        }
    }
    other.end()
}

/// The open continues without its caller, and closes what it opened.
fn given_up(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    for _ in 0..rng.random_range(2..20) {
        let mut open = Box::pin(other.options.clone().open());
        scene.count("opens", 1);
        for _ in 0..rng.random_range(0..3) {
            if let Poll::Ready(db) = poll_once(&mut open) {
                other.visit(&db?)?;
                break;
            }
            thread::sleep(std::time::Duration::from_micros(rng.random_range(0..500)));
        }
    }
    // A later open succeeds.
    other.visit(&other.open(scene)?)?;
    other.end()
}

/// Writes that began before the close must return a result, and must be present if acknowledged.
fn close_in_flight(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    let db = other.open(scene)?;
    let tx = if rng.random_bool(0.5) { Some(finish("begin", db.begin())??) } else { None };
    let mut calls = Vec::new();
    for _ in 0..rng.random_range(1..30) {
        let number = other.ledger.begin(false);
        let mut call = db.execute(INSERT, (number,));
        match poll_once(&mut call) {
            Poll::Ready(answer) => other.ledger.answered(number, &answer),
            Poll::Pending => calls.push((number, call)),
        }
    }
    let mut close = Box::pin(db.close());
    let closed = poll_once(&mut close);
    let late = other.ledger.begin(false);
    let answer = finish("a write after the close began", db.execute(INSERT, (late,)))?;
    other.ledger.answered(late, &answer);
    if answer.is_ok() {
        return Err(Finding::new("a write that began after the close was done"));
    }
    drop(tx);
    for (number, call) in calls {
        let answer = finish("a write that was begun before the close", call)?;
        other.ledger.answered(number, &answer);
        closed_or(answer)?;
    }
    if closed.is_pending() {
        finish("close", close)??;
    } else {
        drop(close);
    }
    drop(db);
    other.end()
}

/// A waker that closes the database by one poll, and drops the call.
struct Closes(Mutex<Option<Database>>);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        let db = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(db) = db {
            let _ = poll_once(&mut Box::pin(db.close()));
        }
    }
}

fn close_twice(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    let db = other.open(scene)?;
    other.visit(&db)?;
    if rng.random_bool(0.5) {
        let waker = Waker::from(Arc::new(Closes(Mutex::new(Some(db.clone())))));
        let mut read = db.query("SELECT count(*) FROM t", ());
        let _ = std::pin::Pin::new(&mut read).poll(&mut Context::from_waker(&waker));
    }
    thread::scope(|scope| {
        let closes: Vec<_> = (0..rng.random_range(1..5)).map(|_| scope.spawn(|| db.close().wait())).collect();
        closes
            .into_iter()
            .try_for_each(|close| close.join().map_err(|_| Finding::new("a close panicked"))?.map_err(Finding::from))
    })?;
    for _ in 0..2 {
        finish("a close after the close", db.close())??;
    }
    match finish("a read after the close", db.query("SELECT 1", ()))? {
        Err(error) if error.kind() == ErrorKind::Closed => {}
        other => return Err(Finding::new(format!("a read after the close was answered {other:?}"))),
    }
    drop(db);
    other.end()
}

fn open_while_closing(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    for _ in 0..rng.random_range(1..10) {
        let db = other.open(scene)?;
        other.visit(&db)?;
        let mut close = Box::pin(db.close());
        let closed = poll_once(&mut close);
        let again = other.open(scene)?;
        other.visit(&again)?;
        match closed {
            Poll::Ready(closed) => closed?,
            Poll::Pending if rng.random_bool(0.5) => finish("close", close)??,
            Poll::Pending => {}
        }
    }
    other.end()
}

fn odd_orders(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let other = Other::new(scene, rng)?;
    let db = other.open(scene)?;
    let number = other.ledger.begin(false);
    let mut call = db.execute(INSERT, (number,));
    let tx = finish("begin", db.begin())??;
    let mut clones: Vec<Database> =
        (0..rng.random_range(1..30)).map(|n| if n % 2 == 0 { db.clone() } else { db.ungrouped() }).collect();
    drop(db);
    clones.shuffle(rng);
    let last = clones.split_off(clones.len() / 2);
    thread::scope(|scope| {
        scope.spawn(move || drop(clones));
        scope.spawn(move || drop(last));
    });
    // Only the call and the transaction remain of the handle.
    let _ = poll_once(&mut call);
    drop(tx);
    let answer = finish("a write whose handles are gone", call)?;
    other.ledger.answered(number, &answer);
    answer?;
    other.end()
}
