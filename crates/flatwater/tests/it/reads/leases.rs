//! Leases: a reader keeps its snapshot for the next read. No caller can observe this, neither by the rows it reads nor
//! by waiting for it.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::LeaseStats;
use flatwater::{Database, Error, ErrorKind, Options};
use rand::RngExt;

use crate::support::{ENDLESS, TestFile, as_child, integer, run, wait_until};

const READERS: usize = 3;
const THREADS: usize = 4;
/// The number of writers that count: Flatwater, a plain connection of this process, another process.
const WRITERS: usize = 3;
const COUNT: &str = "UPDATE t SET n = n + 1, pad = randomblob(3000) WHERE w = ?1";
const ONE: &str = "SELECT n FROM t WHERE w = ?";

/// Options with a WAL that restarts every few dozen commits.
fn small(file: &TestFile) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(64 << 20);
    file.options().readers(READERS).checkpoint(Checkpoint::Managed(managed))
}

fn counters(options: Options) -> Database {
    let db = options.open().wait().unwrap();
    let blocking = db.clone();
    blocking.execute("CREATE TABLE t (w INTEGER PRIMARY KEY, n, pad)", ()).wait().unwrap();
    blocking.execute_many("INSERT INTO t VALUES (?, 0, NULL)", (0..WRITERS as i64).map(|w| (w,))).wait().unwrap();
    db
}

fn leases(db: &Database) -> LeaseStats {
    db.stats().leases
}

fn read(db: &Database, writer: usize) -> i64 {
    db.query_optional_value(ONE, (writer as i64,)).wait().unwrap().unwrap()
}

fn read_often(db: &Database, times: usize) {
    for _ in 0..times {
        read(db, 0);
    }
}

/// Reads until a reader holds a lease.
fn hold(db: &Database) {
    wait_until(|| {
        read_often(db, 3);
        leases(db).held > 0
    });
}

/// Another process that counts on request.
struct Foreign {
    child: Child,
    orders: ChildStdin,
    said: BufReader<std::process::ChildStdout>,
}

const PATH: &str = "FLATWATER_LEASES_PATH";

#[test]
#[ignore = "runs as the child of the tests below"]
fn child() {
    let path = PathBuf::from(std::env::var_os(PATH).expect("the parent says where"));
    let plain = rusqlite::Connection::open(&path).unwrap();
    plain.busy_timeout(Duration::from_secs(60)).unwrap();
    for order in std::io::stdin().lines() {
        match &*order.unwrap() {
            "count" => assert_eq!(plain.execute(COUNT, [2]).unwrap(), 1),
            _ => die_while_publishing(&plain, &path),
        }
        println!("done");
    }
}

/// Acts like a writer that is killed between the two copies of the wal-index header. It writes the second copy first.
fn die_while_publishing(plain: &rusqlite::Connection, database: &Path) {
    const HEADER: usize = 48;
    plain.execute_batch("BEGIN IMMEDIATE").unwrap();
    let index = database.with_file_name("test.db-shm");
    let mut index = std::fs::File::options().read(true).write(true).open(index).unwrap();
    let mut copy = [0; HEADER];
    index.read_exact(&mut copy).unwrap();
    copy.iter_mut().for_each(|byte| *byte = !*byte);
    index.seek(SeekFrom::Start(HEADER as u64)).unwrap();
    index.write_all(&copy).unwrap();
    std::process::abort();
}

impl Foreign {
    fn spawn(file: &TestFile) -> Self {
        let mut child = as_child("reads::leases::child")
            .env(PATH, file.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, said }
    }

    fn count(&mut self) {
        writeln!(self.orders, "count").unwrap();
        let done = (&mut self.said).lines().map(Result::unwrap).any(|line| line.ends_with("done"));
        assert!(done, "the other process ended");
    }

    fn die(mut self) {
        writeln!(self.orders, "die").unwrap();
        // A panic before that would be an exit code.
        assert_eq!(self.child.wait().unwrap().code(), None);
    }
}

/// The counted and acknowledged values, by writer, and the progress of the readers.
#[derive(Default)]
struct Progress {
    answered: [AtomicI64; WRITERS],
    reads: AtomicUsize,
    ended: AtomicBool,
}

/// Ends the other threads when a thread ends or fails.
struct Ends<'a>(&'a Progress);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }
}

impl Progress {
    /// Counts repeatedly, each time after a few reads.
    fn count(&self, writer: usize, mut count: impl FnMut()) {
        let mut next = 0;
        loop {
            while self.reads.load(Ordering::Relaxed) < next {
                if self.ended.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::yield_now();
            }
            count();
            self.answered[writer].fetch_add(1, Ordering::SeqCst);
            next = self.reads.load(Ordering::Relaxed) + rand::rng().random_range(1..100);
        }
    }

    fn check(&self, db: &Database, number: usize) {
        let least: Vec<i64> = self.answered.iter().map(|n| n.load(Ordering::SeqCst)).collect();
        if number.is_multiple_of(20) {
            let rows = db.query("SELECT n FROM t ORDER BY w", ()).wait().unwrap();
            for (writer, row) in rows.iter().enumerate() {
                let seen: i64 = row.get(0).unwrap();
                assert!(seen >= least[writer], "read {number}: {seen} of writer {writer}, who was answered {least:?}");
            }
        } else {
            let writer = number % WRITERS;
            let seen = read(db, writer);
            assert!(seen >= least[writer], "read {number}: {seen} of writer {writer}, who was answered {least:?}");
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}

/// A plain connection and another process increment counters while threads read. Now and then a writer of a further
/// process dies while it publishes a commit, so that the index is recovered.
fn nothing_older_is_ever_read(reads: usize) {
    let file = TestFile::new();
    let db = counters(small(&file));
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let blocking = db.clone();
        let (progress, file) = (&progress, &file);
        scope.spawn(move || progress.count(0, || assert_eq!(blocking.execute(COUNT, (0,)).wait().unwrap().changes, 1)));
        scope.spawn(move || {
            let plain = file.plain();
            plain.busy_timeout(Duration::from_secs(60)).unwrap();
            progress.count(1, || assert_eq!(plain.execute(COUNT, [1]).unwrap(), 1));
        });
        scope.spawn(move || {
            let mut foreign = Foreign::spawn(file);
            progress.count(2, || {
                foreign.count();
                if rand::rng().random_ratio(1, 200) {
                    std::mem::replace(&mut foreign, Foreign::spawn(file)).die();
                }
            });
        });
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                let _ends = Ends(progress);
                for number in 0.. {
                    if progress.ended.load(Ordering::Relaxed) {
                        return;
                    }
                    // Looked at now and then: it takes longer than a read.
                    if number >= reads / THREADS && number.is_multiple_of(1000) {
                        let (stats, wal) = (leases(db), db.stats().wal);
                        if stats.ended_by_commit > 100 && stats.reused as usize > reads / 10 && wal.resets > 3 {
                            return;
                        }
                        assert!(
                            number < 20 * reads,
                            "hardly a lease, or the WAL hardly started over: {stats:?} {wal:?}"
                        );
                    }
                    progress.check(db, number * THREADS + thread);
                }
            });
        }
    });
    for (writer, answered) in progress.answered.iter().enumerate() {
        assert_eq!(read(&db, writer), answered.load(Ordering::SeqCst));
    }
}

#[test]
fn a_read_begun_after_a_commit_of_anybody_never_sees_less() {
    nothing_older_is_ever_read(300_000);
}

#[test]
#[ignore = "takes minutes"]
fn a_read_begun_after_a_commit_of_anybody_never_sees_less_in_millions_of_reads() {
    nothing_older_is_ever_read(8_000_000);
}

#[test]
fn every_commit_is_seen_by_the_reader_that_holds_a_lease() {
    let file = TestFile::new();
    let db = counters(file.options().readers(1));
    let plain = file.plain();
    let mut foreign = Foreign::spawn(&file);
    for n in 1..=300 {
        hold(&db);
        db.execute(COUNT, (0,)).wait().unwrap();
        assert_eq!(read(&db, 0), n);
        hold(&db);
        plain.execute(COUNT, [1]).unwrap();
        assert_eq!(read(&db, 1), n);
        hold(&db);
        foreign.count();
        assert_eq!(read(&db, 2), n);
    }
    foreign.die();
    plain.execute(COUNT, [1]).unwrap();
    assert_eq!(read(&db, 1), 301, "after a recovery");
}

#[test]
fn leases_end_by_themselves_when_nobody_reads() {
    let file = TestFile::new();
    let db = counters(file.options().readers(READERS));
    // One that is used when it is old ends for that.
    wait_until(|| {
        hold(&db);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| read_often(&db, 1000));
            }
        });
        wait_until(|| leases(&db).held == 0);
        leases(&db).ended_by_idle > 0
    });
    let truncated: i64 = file.plain().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(truncated, 0, "nobody is in the way");
    assert_eq!(db.stats().wal.oldest_read, None);
}

/// Starts threads that read without a pause until the end.
fn keep_reading<'s>(scope: &'s std::thread::Scope<'s, '_>, db: &'s Database, progress: &'s Progress) {
    for _ in 0..THREADS {
        scope.spawn(|| {
            while !progress.ended.load(Ordering::Relaxed) {
                read(db, 0);
            }
        });
    }
}

#[test]
fn a_foreign_truncate_is_done_in_spite_of_reads_that_never_pause() {
    let file = TestFile::new();
    let db = counters(file.options().readers(READERS));
    let plain = file.plain();
    plain.busy_timeout(Duration::from_millis(200)).unwrap();
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let _ends = Ends(&progress);
        keep_reading(scope, &db, &progress);
        for _ in 0..20 {
            db.execute(COUNT, (0,)).wait().unwrap();
            let reused = leases(&db).reused;
            wait_until(|| leases(&db).reused > reused + 100);
            // While our own checkpointer copies it is refused at once.
            wait_until(|| integer(&plain, "PRAGMA wal_checkpoint(TRUNCATE)") == 0);
        }
        wait_until(|| leases(&db).ended_by_age > 0);
    });
}

#[test]
fn the_checkpointer_has_leases_ended_before_it_starts_the_wal_over() {
    let file = TestFile::new();
    let db = counters(small(&file));
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let _ends = Ends(&progress);
        keep_reading(scope, &db, &progress);
        let blocking = db.clone();
        for _ in 0..20_000 {
            if leases(&db).ended_by_checkpoint > 0 && db.stats().wal.resets > 0 {
                break;
            }
            blocking.execute(COUNT, (0,)).wait().unwrap();
            let reused = leases(&db).reused;
            wait_until(|| leases(&db).reused > reused);
        }
    });
    let (stats, wal) = (leases(&db), db.stats().wal);
    assert!(stats.ended_by_checkpoint > 0 && wal.resets > 0, "{stats:?} {wal:?}");
}

#[test]
fn a_database_with_leases_is_closed_as_any_other() {
    for _ in 0..20 {
        let file = TestFile::new();
        let db = counters(file.options().readers(READERS));
        hold(&db);
        run(db.close()).unwrap();
        assert!(!file.beside("-wal").exists(), "the last user of the file tidied up");
        assert_eq!(leases(&db).held, 0);
    }
}

#[test]
fn a_closure_sees_the_newest_state_and_leaves_the_reader_to_leases() {
    let file = TestFile::new();
    let db = counters(file.options().readers(1));
    for n in 1..=50_i64 {
        hold(&db);
        db.execute(COUNT, (0,)).wait().unwrap();
        let seen = db.read_with(|c| {
            c.query_row("SELECT n FROM t WHERE w = 0", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
        });
        assert_eq!(seen.wait().unwrap(), n);
    }
    assert_eq!(db.stats().replaced_connections, 0);
}

#[test]
fn a_failed_or_interrupted_read_costs_its_lease_and_nothing_else() {
    let file = TestFile::new();
    let db = counters(file.options().readers(1));
    let blocking = db.clone();
    let costs_the_lease = |fails: &dyn Fn() -> Error| {
        let before = leases(&db).ended_otherwise;
        wait_until(|| {
            hold(&db);
            fails();
            leases(&db).ended_otherwise > before
        });
    };
    let hasty = db.with_timeout(Duration::from_millis(1));
    costs_the_lease(&|| {
        let late = hasty.query(ENDLESS, ()).wait().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        late
    });
    costs_the_lease(&|| blocking.query("SELECT abs(-9223372036854775807 - n - 1) FROM t", ()).wait().unwrap_err());
    hold(&db);
    blocking.query("SELECT * FROM missing", ()).wait().unwrap_err();
    blocking.execute(COUNT, (0,)).wait().unwrap();
    assert_eq!(read(&db, 0), 1);
    assert_eq!(db.stats().replaced_connections, 0);
}

#[test]
fn a_change_of_the_schema_is_seen_in_answers_of_pragmas_and_in_columns() {
    let file = TestFile::new();
    let db = counters(file.options().readers(1));
    let (blocking, plain) = (db.clone(), file.plain());
    for n in 0..20 {
        hold(&db);
        let before: (i64, i64) = (
            blocking.query_optional_value("PRAGMA schema_version", ()).wait().unwrap().unwrap(),
            blocking.query_optional_value("PRAGMA data_version", ()).wait().unwrap().unwrap(),
        );
        hold(&db);
        plain.execute_batch(&format!("ALTER TABLE t ADD COLUMN c{n}")).unwrap();
        let columns = blocking.query("SELECT * FROM t", ()).wait().unwrap().columns().len();
        assert_eq!(columns, 4 + n);
        assert_eq!(blocking.query("PRAGMA table_info(t)", ()).wait().unwrap().len(), columns);
        let after: (i64, i64) = (
            blocking.query_optional_value("PRAGMA schema_version", ()).wait().unwrap().unwrap(),
            blocking.query_optional_value("PRAGMA data_version", ()).wait().unwrap().unwrap(),
        );
        assert!(after.0 > before.0 && after.1 != before.1, "{before:?} {after:?}");
    }
}

#[test]
fn there_are_no_leases_where_they_would_harm() {
    let reads = |db: &Database| (0..500).for_each(|_| drop(db.query("SELECT * FROM t", ()).wait().unwrap()));
    let file = TestFile::new();
    let other = TestFile::new();
    other.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (a)").unwrap();
    file.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
    let some = file.options().open().wait().unwrap();
    wait_until(|| {
        reads(&some);
        leases(&some).reused > 0
    });
    run(some.close()).unwrap();
    for options in [
        file.options().tuning(|t| t.leases(false)),
        file.options().checkpoint(Checkpoint::External),
        file.options().tuning(|t| t.attach("other", other.path())),
        file.options().tuning(|t| t.assume_immutable(true)),
    ] {
        let db = options.clone().open().wait().unwrap();
        reads(&db);
        assert_eq!(leases(&db), LeaseStats::default(), "{options:?}");
        run(db.close()).unwrap();
    }
    file.plain().execute_batch("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq)").unwrap();
    for options in [file.options(), file.options().read_only(true)] {
        let db = options.open().wait().unwrap();
        reads(&db);
        assert_eq!(leases(&db), LeaseStats::default(), "Litestream");
        run(db.close()).unwrap();
    }
}

#[test]
fn a_commit_to_an_attached_file_is_seen() {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (a); INSERT INTO o VALUES (0)").unwrap();
    let db = counters(file.options().readers(1).tuning(|t| t.attach("other", other.path())));
    let plain = other.plain();
    let seen = || db.query_optional_value::<i64>("SELECT a FROM o", ()).wait().unwrap().unwrap();
    for n in 1..=50 {
        assert!((0..5).all(|_| seen() == n - 1));
        plain.execute("UPDATE o SET a = ?1", [n]).unwrap();
        assert_eq!(seen(), n);
    }
}

#[test]
fn a_database_that_is_only_read_has_leases_too() {
    let file = TestFile::new();
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (w INTEGER PRIMARY KEY, n, pad)").unwrap();
    plain.execute_batch("INSERT INTO t VALUES (0, 0, NULL)").unwrap();
    let db = file.options().read_only(true).readers(1).open().wait().unwrap();
    for n in 1..=50 {
        hold(&db);
        plain.execute(COUNT, [0]).unwrap();
        assert_eq!(read(&db, 0), n);
    }
}
