//! Closures that misuse a connection, or the thread they run on.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flatwater::rusqlite::Connection;
use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::{Error, ErrorKind};
use rand::RngExt;
use rand::rngs::StdRng;

use super::Piece;
use super::scene::Scene;
use super::waiting::{finish, panic_quietly, poll_once};
use crate::finding::Finding;
use crate::writes::INSERT;

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("closures that panic", panics),
    Piece::new("closures that hold things and panic in their drop", holds_a_bomb),
    Piece::new("closures that leave something open", |scene, rng| leaves(scene, rng, LEFT_OPEN)),
    Piece::new("closures that change their connection", |scene, rng| leaves(scene, rng, CHANGED)),
    Piece::new("closures that register what panics", |scene, rng| leaves(scene, rng, REGISTERED)),
    Piece::new("closures that take long", takes_long),
    Piece::new("closures that are given up", given_up),
    Piece::new("closures that wait for a thread that reads", waits_for_a_reader),
];

/// SQLite refuses to close a connection with a forgotten statement. The connection remains until the process ends.
pub(crate) const FORGETFUL_PIECES: &[Piece] =
    &[Piece::new("closures that forget a statement", |scene, rng| leaves(scene, rng, FORGOTTEN))];

type Mischief = fn(&Connection);

/// Forgets a statement that is positioned on its first row.
fn forget_stepped(connection: &Connection, sql: &str) {
    let Ok(mut statement) = connection.prepare(sql) else { return };
    let Ok(mut rows) = statement.query([]) else { return };
    let _ = rows.next();
    std::mem::forget(rows);
    std::mem::forget(statement);
}

const LEFT_OPEN: &[Mischief] = &[
    |c| drop(c.execute_batch("SAVEPOINT a; SAVEPOINT b")),
    |c| drop(c.execute_batch("SAVEPOINT a; DELETE FROM t; ROLLBACK TO a")),
    |c| drop(c.execute_batch("BEGIN IMMEDIATE")),
    |c| drop(c.execute_batch("COMMIT; BEGIN")),
    |c| drop(c.execute_batch("CREATE TEMP TABLE t (a); CREATE TEMP VIEW v AS SELECT 7 AS n")),
    |c| drop(c.execute_batch("ATTACH ':memory:' AS other")),
];

const FORGOTTEN: &[Mischief] = &[
    |c| forget_stepped(c, "SELECT n FROM t"),
    |c| forget_stepped(c, "WITH n(x) AS (VALUES (1), (2)) SELECT x FROM n"),
    |c| std::mem::forget(c.prepare("SELECT n FROM t")),
];

const CHANGED: &[Mischief] = &[
    |c| drop(c.busy_timeout(Duration::ZERO)),
    |c| drop(c.busy_timeout(Duration::from_secs(3600))),
    |c| drop(c.execute_batch("PRAGMA foreign_keys = OFF")),
    |c| drop(c.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE")),
    |c| drop(c.execute_batch("PRAGMA query_only = 1")),
    |c| drop(c.execute_batch("PRAGMA wal_autocheckpoint = 1; PRAGMA wal_checkpoint(TRUNCATE)")),
    |c| c.set_prepared_statement_cache_capacity(0),
];

/// rusqlite registers hooks and handlers only through an owned connection, which a closure does not have.
const REGISTERED: &[Mischief] = &[
    |c| {
        let panics = |_: &rusqlite::functions::Context<'_>| -> rusqlite::Result<i64> { panic_quietly() };
        drop(c.create_scalar_function("oops", 0, FunctionFlags::SQLITE_UTF8, panics));
        drop(c.query_row("SELECT oops()", [], |_| Ok(())));
    },
    |c| {
        drop(c.create_collation("upside_down", |_, _| panic_quietly()));
        drop(c.query_row("SELECT 'a' < 'b' COLLATE upside_down", [], |_| Ok(())));
    },
];

/// The closure writes, misuses the connection, and may fail because of that. If it succeeds, its write must be present.
/// The next user of the connection must notice nothing.
fn leaves(scene: &Arc<Scene>, rng: &mut StdRng, odd: &'static [Mischief]) -> Result<(), Finding> {
    let mischief = odd[rng.random_range(0..odd.len())];
    let number = scene.ledger.begin(false);
    let wrote = scene.db.write_with(move |tx| {
        tx.execute(INSERT, [number])?;
        mischief(tx);
        Ok::<_, Error>(())
    });
    let wrote = finish("a closure that leaves its connection changed", wrote)?;
    scene.ledger.answered(number, &wrote);
    let read = scene.db.read_with(move |c| {
        mischief(c);
        Ok::<_, Error>(())
    });
    finish("a read closure that leaves its connection changed", read)??;
    next_notices_nothing(scene, rng)
}

fn next_notices_nothing(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..3 {
        scene.write_now(rng)?;
        let long = "x".repeat(1000);
        let length = scene.db.query_optional_value::<i64>("SELECT length(?) + (SELECT count(*) FROM t) * 0", (long,));
        let length = finish("a read after an odd closure", length)??;
        if length != Some(1000) {
            return Err(Finding::new(format!("after an odd closure a read answered {length:?}")));
        }
    }
    Ok(())
}

fn panics(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let number = scene.ledger.begin(false);
    scene.ledger.refused(number);
    let wrote = scene.db.write_with(move |tx| -> Result<(), Error> {
        tx.execute(INSERT, [number])?;
        panic_quietly()
    });
    let read = scene.db.read_with(|_| -> Result<(), Error> { panic_quietly() });
    for answer in [finish("a closure that panics", wrote)?, finish("a read closure that panics", read)?] {
        if answer.as_ref().err().map(Error::kind) != Some(ErrorKind::Misuse) {
            return Err(Finding::new(format!("a closure that panicked was answered {answer:?}")));
        }
    }
    next_notices_nothing(scene, rng)
}

/// Panics when it is dropped, unless its thread is already panicking.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic_quietly();
        }
    }
}

fn holds_a_bomb(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let (number, bomb) = (scene.ledger.begin(false), Bomb);
    let wrote = scene.db.write_with(move |tx| {
        let _ = &bomb;
        tx.execute(INSERT, [number]).map_err(Error::from)
    });
    scene.ledger.answered(number, &finish("a closure that holds a bomb", wrote)?);
    let bomb = Bomb;
    let read = scene.db.read_with(move |_| {
        let _ = &bomb;
        Ok::<_, Error>(())
    });
    let _ = finish("a read closure that holds a bomb", read)?;
    // The result panics when it is dropped. The database drops it, because the caller has dropped the call.
    let db = scene.db.clone();
    let mut left = Box::pin(async move { db.read_with(|_| Ok::<_, Error>(Bomb)).await.map(std::mem::forget) });
    let _ = poll_once(&mut left);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(left)));
    next_notices_nothing(scene, rng)
}

fn takes_long(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let (number, pause) = (scene.ledger.begin(false), Duration::from_millis(rng.random_range(1..40)));
    let wrote = scene.db.write_with(move |tx| {
        thread::sleep(pause);
        tx.execute(INSERT, [number]).map_err(Error::from)
    });
    scene.note(number, &finish("a closure that takes long", wrote)?)?;
    Ok(())
}

/// The caller drops the call before the closure begins, while it runs, or after it.
fn given_up(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..rng.random_range(1..6) {
        let (number, db) = (scene.ledger.begin(true), scene.db.clone());
        let both = "INSERT INTO t (n) VALUES (?1), (-?1)";
        let mut call = Box::pin(async move {
            db.write_with(move |tx| {
                thread::sleep(Duration::from_micros(300));
                tx.execute(both, [number]).map_err(Error::from)
            })
            .await
        });
        let _ = poll_once(&mut call);
        thread::sleep(Duration::from_micros(rng.random_range(0..600)));
        drop(call);
    }
    next_notices_nothing(scene, rng)
}

/// A write closure that waits for another thread's read: readers do not wait for the writer.
fn waits_for_a_reader(scene: &Arc<Scene>, _: &mut StdRng) -> Result<(), Finding> {
    let (number, db) = (scene.ledger.begin(false), scene.db.clone());
    let wrote = scene.db.write_with(move |tx| {
        tx.execute(INSERT, [number])?;
        let seen = "SELECT count(*) FROM t WHERE n = ?";
        let reads = thread::spawn(move || db.query_optional_value::<i64>(seen, (number,)).wait());
        Ok::<_, Error>(reads.join().map_err(|_| "the read panicked"))
    });
    let wrote = finish("a closure that waits for a reader", wrote)?;
    scene.note(number, &wrote)?;
    match wrote?.map_err(Finding::new)?? {
        Some(0) => Ok(()),
        seen => Err(Finding::new(format!("a reader saw an open transaction's row: {seen:?}"))),
    }
}
