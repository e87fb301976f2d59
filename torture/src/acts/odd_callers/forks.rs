//! Processes forked without exec while databases are open: the child cannot use the databases, and cannot damage them; it
//! opens its own.

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flatwater::{Error, ErrorKind, Options, Transaction};
use flatwater_torture_fork::{Ending, fork};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rand::RngExt;
use rand::rngs::StdRng;

use super::Piece;
use super::scene::Scene;
use super::waiting::{finish, poll_once};
use crate::finding::Finding;
use crate::writes::{INSERT, Op};

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("a child that uses its parent's database", |scene, rng| child(scene, rng, Ending::AtOnce, false)),
    Piece::new("a child that drops its parent's handles", |scene, rng| child(scene, rng, Ending::AtOnce, true)),
    Piece::new("a child that exits", |scene, rng| child(scene, rng, Ending::AfterHandlers, false)),
    Piece::new("a child that drops its parent's handles and exits", |scene, rng| {
        child(scene, rng, Ending::AfterHandlers, true)
    }),
    Piece::new("a child that outlives its parent's close", outlives),
];

/// A child that takes longer counts as hung.
const WATCHDOG_SECONDS: u32 = 60;
/// The exit code of a child whose call succeeded, or failed for another reason than the fork.
const SERVED: u8 = 1;
const WAITS: u8 = 2;
const OTHER_ERROR: u8 = 3;
/// The exit code of a child that could not use a database of its own.
const OWN: u8 = 4;

/// What exists at the fork in addition to the database.
struct Handles {
    transaction: Option<Transaction<'static>>,
    waiting: Option<(i64, Op)>,
    new: (i64, Op),
}

fn child(scene: &Arc<Scene>, rng: &mut StdRng, ending: Ending, drops: bool) -> Result<(), Finding> {
    let transaction = if rng.random_bool(0.5) { Some(finish("begin", scene.db.begin())??) } else { None };
    let (number, mut op) = scene.write(rng);
    let waiting = match poll_once(&mut op) {
        Poll::Pending => Some((number, op)),
        Poll::Ready(answer) => scene.note(number, &answer).map(|()| None)?,
    };
    let mut handles = Handles { transaction, waiting, new: scene.write(rng) };
    let own = scene.new_path();
    crate::writes::with_table(&own)?;
    let in_child = || {
        let found = match uses(scene, &mut handles) {
            0 if opens(&scene.path, &own).is_err() => OWN,
            found => found,
        };
        if drops {
            let empty: Op = Box::pin(async { Ok(()) });
            drop(std::mem::replace(&mut handles, Handles { transaction: None, waiting: None, new: (0, empty) }));
        }
        found
    };
    let child = fork(ending, WATCHDOG_SECONDS, in_child)?;
    scene.count("forks", 1);
    // The parent continues while its child runs.
    let Handles { transaction, waiting, new } = handles;
    drop(transaction);
    for (number, op) in waiting.into_iter().chain([new]) {
        let answer = finish("a write of a parent", op)?;
        scene.note(number, &answer)?;
    }
    scene.write_now(rng)?;
    join(child)?;
    let found = crate::writes::rows(&own)?;
    if found == [1] { Ok(()) } else { Err(Finding::new(format!("a forked child wrote 1, {found:?} is there"))) }
}

/// Runs in the child: it reads the same file, and writes another one. It starts no thread that it waits for: a runtime of
/// the program may just have started or ended one at the fork.
fn opens(same: &Path, own: &Path) -> Result<(), Error> {
    let again = Options::new(same).open().wait()?;
    again.query("SELECT count(*) FROM t", ()).wait()?;
    let db = Options::new(own).open().wait()?;
    db.execute(INSERT, (1,)).wait()?;
    std::mem::forget((again, db));
    Ok(())
}

/// Runs in the child: every use must be refused at once, with the reason.
fn uses(scene: &Scene, handles: &mut Handles) -> u8 {
    let blocking = &scene.db;
    let mut codes = vec![
        at_once(scene.db.execute(INSERT, (0,))),
        at_once(scene.db.query("SELECT 1", ())),
        at_once(scene.db.begin()),
        at_once(scene.db.close()),
        at_once(scene.db.read_with(|_| Ok::<_, Error>(()))),
        at_once(&mut handles.new.1),
        code(&blocking.execute(INSERT, (0,)).wait()),
        code(&blocking.query("SELECT 1", ()).wait()),
        code(&blocking.close().wait()),
    ];
    if let Some((_, waiting)) = &mut handles.waiting {
        codes.push(at_once(waiting));
    }
    if let Some(transaction) = &handles.transaction {
        codes.push(at_once(transaction.execute(INSERT, (0,))));
    }
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}

fn at_once<T>(call: impl Future<Output = Result<T, Error>>) -> u8 {
    match poll_once(&mut Box::pin(call)) {
        Poll::Ready(answer) => code(&answer),
        Poll::Pending => WAITS,
    }
}

fn code<T>(answer: &Result<T, Error>) -> u8 {
    match answer {
        Ok(_) => SERVED,
        Err(error) if error.kind() == ErrorKind::Misuse && error.message().contains("forked") => 0,
        // The deadline passed before the fork.
        Err(error) if error.kind() == ErrorKind::Timeout => 0,
        Err(_) => OTHER_ERROR,
    }
}

fn join(child: i32) -> Result<(), Finding> {
    let what = match waitpid(Pid::from_raw(child), None)? {
        WaitStatus::Exited(_, 0) => return Ok(()),
        WaitStatus::Exited(_, code) if code == i32::from(SERVED) => "was served".to_owned(),
        WaitStatus::Exited(_, code) if code == i32::from(WAITS) => "waits for an answer that never comes".to_owned(),
        WaitStatus::Exited(_, code) if code == i32::from(OTHER_ERROR) => "was answered another error".to_owned(),
        WaitStatus::Exited(_, code) if code == i32::from(OWN) => "cannot use a database of its own".to_owned(),
        WaitStatus::Signaled(_, Signal::SIGALRM, _) => "hangs".to_owned(),
        ended => format!("ended with {ended:?}"),
    };
    Err(Finding::new(format!("a forked child of a process with an open database {what}")))
}

/// The child has its parent's descriptors, but must not lock other processes out of the file after the parent has
/// closed it.
fn outlives(scene: &Arc<Scene>, _: &mut StdRng) -> Result<(), Finding> {
    let path = scene.new_path();
    crate::writes::with_table(&path)?;
    let db = Options::new(&path).open().wait()?;
    db.execute(INSERT, (1,)).wait()?;
    // The child does nothing until it is killed.
    let child = fork(Ending::AtOnce, WATCHDOG_SECONDS, || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    })?;
    scene.count("forks", 1);
    let closed = finish("close", db.close())?;
    let gets_in = flatwater::rusqlite::Connection::open(&path)
        .and_then(|plain| plain.execute_batch("PRAGMA locking_mode = EXCLUSIVE; INSERT INTO t (n) VALUES (2)"));
    let again = Options::new(&path).open().wait().and_then(|db| db.execute(INSERT, (3,)).wait());
    kill(Pid::from_raw(child), Signal::SIGKILL)?;
    waitpid(Pid::from_raw(child), None)?;
    closed?;
    gets_in?;
    again?;
    let mut found = crate::writes::rows(&path)?;
    found.sort_unstable();
    if found == [1, 2, 3] { Ok(()) } else { Err(Finding::new(format!("1, 2 and 3 were written, {found:?} is there"))) }
}
