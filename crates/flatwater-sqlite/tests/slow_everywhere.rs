//! A disk whose reads are slow: each place where calls run on their callers' threads finds that out, and asks what the others
//! found.
//!
//! Its own program, because it puts its own `pread` in the place of the C library's, which lets each read take longer than an
//! inline run may.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/reads.rs"]
mod interposed_reads;

use std::cell::Cell;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, Inline, InlineLimits};
use flatwater::{Connection, Database, Options, rusqlite};
use futures::finish;

/// Longer than what counts as slow.
const READ: Duration = Duration::from_millis(20);

static SLOW: AtomicBool = AtomicBool::new(false);
/// Reads are slow for the whole program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    /// Since reads became slow.
    static READS: Cell<u32> = const { Cell::new(0) };
    /// How long slow reads have taken.
    static READING: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn reads(_fd: c_int) {
    if SLOW.load(Ordering::SeqCst) {
        READS.set(READS.get() + 1);
        // Two are enough to see that a thread waits for more than one.
        if READS.get() <= 2 {
            let began = Instant::now();
            std::thread::sleep(READ);
            READING.set(READING.get() + began.elapsed());
        }
    }
}

const FIND: &str = "SELECT x FROM t WHERE id = ?";
const INSERT: &str = "INSERT INTO t (x) VALUES (?)";
const UPDATE: &str = "UPDATE t SET x = ? WHERE id = ?";
const ROWS: i64 = 3_000;

struct Bench {
    db: Database,
    own: Connection,
    path: PathBuf,
    is_slow: Cell<bool>,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let limits = InlineLimits::default().time(READ / 8);
        // Nothing else happens to the WAL.
        let options =
            Options::new(&path).checkpoint(Checkpoint::External).readers(1).tuning(|t| t.inline(Inline::Auto(limits)));
        let db = options.open().wait().unwrap();
        let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE TABLE other (x);
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
                INSERT INTO t SELECT i, randomblob(900) FROM n;";
        db.execute_script(schema).wait().unwrap();
        db.checkpoint(CheckpointMode::Truncate).wait().unwrap();
        let own = db.connection();
        Self { db, own, path, is_slow: Cell::new(false), _directory: directory, _alone: alone }
    }

    /// Somebody else commits, which voids every cache.
    fn forget_pages(&self, place: Place) {
        match place {
            // The pages of a live query are forgotten by the write that it runs after.
            Place::Live => return,
            // After a commit of another process a helper thread looks at the schema.
            Place::OwnRead | Place::OwnWrite | Place::OwnReadInside | Place::OwnWriteInside | Place::OwnBegin => {
                finish(self.db.execute("INSERT INTO other VALUES (1)", ())).unwrap();
                return;
            }
            _ => {}
        }
        let other = rusqlite::Connection::open(&self.path).unwrap();
        other.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        other.execute("INSERT INTO other VALUES (1)", []).unwrap();
    }

    /// Runs the call, and returns true if this thread waited for slow reads most of the time that it took. A run of which they
    /// took less may have lost its processor, so it must not turn inline runs off.
    fn waits<T>(&self, call: impl Future<Output = flatwater::Result<T>>) -> (bool, T) {
        READS.set(0);
        READING.set(Duration::ZERO);
        SLOW.store(self.is_slow.get(), Ordering::SeqCst);
        let began = Instant::now();
        let answer = finish(call);
        let took = began.elapsed();
        SLOW.store(false, Ordering::SeqCst);
        (READING.get() > took / 2, answer.unwrap())
    }

    /// Runs a call of this place, whose pages are in no cache. Returns true if this thread waited for slow reads.
    fn runs(&self, place: Place, number: i64) -> bool {
        let id = number * 7_919 % ROWS;
        let (db, own) = (&self.db, &self.own);
        self.forget_pages(place);
        let in_transaction = |sql: &'static str, id: Option<i64>| {
            let transaction = finish(db.begin()).unwrap();
            let waits = match id {
                Some(id) if sql == FIND => self.waits(transaction.query(sql, (id,))).0,
                Some(id) => self.waits(transaction.execute(sql, ("z", id))).0,
                None => self.waits(transaction.execute(sql, ("z",))).0,
            };
            finish(transaction.rollback()).unwrap();
            waits
        };
        let on_own = |begin: &'static str, writes: bool| {
            finish(own.execute(begin, ())).unwrap();
            let waits = match writes {
                true => self.waits(own.execute(UPDATE, ("z", id))).0,
                false => self.waits(own.query(FIND, (id,))).0,
            };
            finish(own.execute("ROLLBACK", ())).unwrap();
            waits
        };
        match place {
            Place::Read => self.waits(db.query(FIND, (id,))).0,
            Place::Write => self.waits(db.execute(UPDATE, ("z", id))).0,
            Place::Rows => self.waits(async { db.execute_many(UPDATE, vec![("z", id), ("z", id + 1)]).await }).0,
            Place::Batch => self.waits(db.batch([(UPDATE, ("z", id)), (UPDATE, ("z", id + 1))])).0,
            Place::Snapshot => self.waits(async { db.snapshot().await }).0,
            Place::SnapshotRead => {
                let snapshot = finish(async { db.snapshot().await }).unwrap();
                self.waits(snapshot.query(FIND, (id,))).0
            }
            Place::Begin => {
                let (waits, transaction) = self.waits(db.begin());
                finish(transaction.rollback()).unwrap();
                waits
            }
            Place::TransactionRead => in_transaction(FIND, Some(id)),
            Place::TransactionWrite => in_transaction(UPDATE, Some(id)),
            Place::TransactionInsert => in_transaction(INSERT, None),
            Place::OwnRead => self.waits(own.query(FIND, (id,))).0,
            Place::OwnWrite => self.waits(own.execute(UPDATE, ("z", id))).0,
            Place::OwnReadInside => on_own("BEGIN", false),
            Place::OwnWriteInside => on_own("BEGIN IMMEDIATE", true),
            Place::OwnBegin => {
                let (waits, _) = self.waits(own.execute("BEGIN IMMEDIATE", ()));
                finish(own.execute("ROLLBACK", ())).unwrap();
                waits
            }
            Place::Live => {
                // A commit voids the cache of the reader that runs the query again, and not the writer's.
                let mut live = db.live(FIND, (id,));
                finish(live.next()).unwrap().unwrap();
                finish(db.execute(UPDATE, (number, id))).unwrap();
                finish(live.next()).unwrap().unwrap();
                let (waits, _) = self.waits(db.execute(UPDATE, (number + 1, id)));
                finish(live.next()).unwrap().unwrap();
                waits
            }
        }
    }

    /// Makes the texts of the place known to be short.
    fn know(&self, place: Place) {
        // A text is analysed outside of a transaction.
        let outside = match place {
            Place::OwnReadInside => Some(Place::OwnRead),
            Place::OwnWriteInside => Some(Place::OwnWrite),
            _ => None,
        };
        for place in outside.into_iter().chain([place]) {
            (1..=20).for_each(|number| _ = self.runs(place, number));
        }
    }

    /// How many calls ran on their callers' threads.
    fn runs_here(&self) -> u64 {
        let inline = self.db.stats().inline;
        inline.reads + inline.writes
    }

    fn close(self) {
        drop(self.own);
        self.db.close().wait().unwrap();
        let plain = rusqlite::Connection::open(&self.path).unwrap();
        let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Read,
    Write,
    Rows,
    Batch,
    Snapshot,
    SnapshotRead,
    Begin,
    TransactionRead,
    TransactionWrite,
    TransactionInsert,
    OwnRead,
    OwnWrite,
    OwnReadInside,
    OwnWriteInside,
    OwnBegin,
    Live,
}

const PLACES: [Place; 16] = [
    Place::Read,
    Place::Write,
    Place::Rows,
    Place::Batch,
    Place::Snapshot,
    Place::SnapshotRead,
    Place::Begin,
    Place::TransactionRead,
    Place::TransactionWrite,
    Place::TransactionInsert,
    Place::OwnRead,
    Place::OwnWrite,
    Place::OwnReadInside,
    Place::OwnWriteInside,
    Place::OwnBegin,
    Place::Live,
];

/// How often callers' threads may have waited since `began`: three slow runs turn inline runs off, and one more may not count, of
/// which the reads that are timed took less than half; and again each time that it was tried anew, which is once in a second at
/// most. A text whose run was slow is held back alone, before that, so slow runs may be less than a tenth of all `runs` here.
fn allowed(began: Instant, runs: u64) -> u64 {
    4 * (1 + began.elapsed().as_secs()) + runs / 10
}

#[test]
fn a_place_whose_reads_are_slow_stops_running_on_its_callers_threads() {
    const TRIES: i64 = 16;
    for place in PLACES {
        let bench = Bench::new();
        bench.know(place);
        bench.is_slow.set(true);
        let began = Instant::now();
        let before = bench.runs_here();
        let waited = (0..TRIES).filter(|number| bench.runs(place, 100 + number)).count() as u64;
        assert!(waited > 0, "{place:?}: none was tried on this thread");
        let runs = bench.runs_here() - before;
        assert!(waited <= allowed(began, runs), "{place:?}: {waited} of {TRIES} waited, in {runs} runs");
        bench.close();
    }
}

#[test]
fn what_one_place_finds_holds_in_all_of_them() {
    let bench = Bench::new();
    PLACES.into_iter().for_each(|place| bench.know(place));
    bench.is_slow.set(true);
    let began = Instant::now();
    let mut waited: u64 = (0..16).map(|number| u64::from(bench.runs(Place::Read, 100 + number))).sum();
    assert!(waited > 0, "none was tried on this thread");
    let waits: Vec<_> = PLACES.into_iter().filter(|place| bench.runs(*place, 200)).collect();
    waited += waits.len() as u64;
    assert!(waited <= allowed(began, 0), "{waits:?} waited, {waited} in all");
    bench.close();
}
