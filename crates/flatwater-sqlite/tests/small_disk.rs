//! A small disk: the WAL leaves room for its own checkpoint, and a database that was full can be written again as soon
//! as there is room.
//!
//! Its own program, because it puts its own `pwrite` and `statvfs` in the place of the C library's: together they are a
//! disk of a given size that holds the files of one directory and nothing else.
#![cfg(target_os = "linux")]

mod futures;

use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::{Database, ErrorKind, Options, rusqlite};
use futures::finish;

const MIB: u64 = 1 << 20;
/// The size of the disk.
static SIZE: AtomicU64 = AtomicU64::new(u64::MAX);
/// The space that other files take.
static OTHERS: AtomicU64 = AtomicU64::new(0);
/// How many of the next writes that make the `-shm` longer find no space; how many did.
static SHM: AtomicI64 = AtomicI64::new(0);
static SHM_REFUSED: AtomicU64 = AtomicU64::new(0);
/// How many of the next writes to the WAL find no space, wherever they are in it.
static WAL: AtomicI64 = AtomicI64::new(0);
/// How many of the next writes to the file of turns find no space.
static TURN: AtomicI64 = AtomicI64::new(0);
/// The checkpointer's next write into the database waits until this is false again, and tells that it does.
static HOLD_CHECKPOINTER: AtomicBool = AtomicBool::new(false);
static IS_HELD: AtomicBool = AtomicBool::new(false);
static DATABASE: Mutex<Option<PathBuf>> = Mutex::new(None);

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn beside(path: &Path, end: &str) -> PathBuf {
    format!("{}{end}", path.display()).into()
}

fn used(path: &Path) -> u64 {
    OTHERS.load(Ordering::SeqCst)
        + ["", "-wal", "-shm", "-turn"].iter().map(|end| length(&beside(path, end))).sum::<u64>()
}

/// Returns false if the file may not get that long.
fn has_space(fd: c_int, end: u64) -> bool {
    let Some(path) = DATABASE.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return true };
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    if file == beside(&path, "-wal") && WAL.fetch_sub(1, Ordering::SeqCst) > 0 {
        return false;
    }
    if file == beside(&path, "-turn") && TURN.fetch_sub(1, Ordering::SeqCst) > 0 {
        return false;
    }
    if file == path && std::thread::current().name() == Some("fw-checkpoint") {
        while HOLD_CHECKPOINTER.load(Ordering::SeqCst) {
            IS_HELD.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let grows = end.saturating_sub(length(&file));
    if file.parent() != path.parent() || grows == 0 {
        return true;
    }
    if file == beside(&path, "-shm") && SHM.fetch_sub(1, Ordering::SeqCst) > 0 {
        SHM_REFUSED.fetch_add(1, Ordering::SeqCst);
        return false;
    }
    used(&path) + grows <= SIZE.load(Ordering::SeqCst)
}

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    if !has_space(fd, offset.unsigned_abs() + bytes as u64) {
        // SAFETY: the C library's errno of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSPC };
        return -1;
    }
    // SAFETY: the system call that the replaced function makes, with its arguments.
    unsafe { libc::syscall(libc::SYS_pwrite64, fd, data, bytes, offset) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    // SAFETY: the caller's arguments.
    unsafe { pwrite(fd, data, bytes, offset) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn statvfs(_path: *const c_char, answer: *mut libc::statvfs) -> c_int {
    let path = DATABASE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let free = path.map_or(u64::MAX, |path| SIZE.load(Ordering::SeqCst).saturating_sub(used(&path)));
    // SAFETY: the caller's buffer is one of this type, for which zeros are valid.
    unsafe {
        answer.write(std::mem::zeroed());
        ((*answer).f_frsize, (*answer).f_bavail) = (1, free);
    }
    0
}

/// The disk, while a test uses it.
struct Disk {
    _one_at_a_time: MutexGuard<'static, ()>,
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Disk {
    fn of(bytes: u64) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap().join("test.db");
        *DATABASE.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.clone());
        SIZE.store(bytes, Ordering::SeqCst);
        OTHERS.store(0, Ordering::SeqCst);
        SHM.store(0, Ordering::SeqCst);
        SHM_REFUSED.store(0, Ordering::SeqCst);
        WAL.store(0, Ordering::SeqCst);
        TURN.store(0, Ordering::SeqCst);
        IS_HELD.store(false, Ordering::SeqCst);
        Self { _one_at_a_time: one_at_a_time, _directory: directory, path }
    }

    fn open(&self) -> Database {
        let db = Options::new(&self.path).open().wait().unwrap();
        db.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
        db
    }

    fn wal_bytes(&self) -> u64 {
        length(&beside(&self.path, "-wal"))
    }

    fn free(&self) -> u64 {
        SIZE.load(Ordering::SeqCst).saturating_sub(used(&self.path))
    }

    /// Lets other files take all the space that is left but this.
    fn leave(&self, bytes: u64) {
        OTHERS.store(0, Ordering::SeqCst);
        OTHERS.store(SIZE.load(Ordering::SeqCst).saturating_sub(used(&self.path) + bytes), Ordering::SeqCst);
    }

    fn is_sound(&self) -> i64 {
        let plain = rusqlite::Connection::open(&self.path).unwrap();
        let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
        plain.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        *DATABASE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

const INSERT: &str = "INSERT INTO t (b) VALUES (zeroblob(3000))";

fn count(db: &Database) -> i64 {
    db.query_optional_value("SELECT count(*) FROM t", ()).wait().unwrap().unwrap()
}

/// Inserts rows until the disk is full.
fn fill(db: &Database, rows: &mut i64) {
    let error = loop {
        match db.execute(INSERT, ()).wait() {
            Ok(_) => *rows += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(error.hint().is_some(), "{error}");
    assert_eq!(count(db), *rows, "what failed is not there");
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// As plain SQLite does them: what is alive at any time is far less than the disk holds.
#[test]
fn a_disk_that_holds_the_data_holds_the_wal_and_its_checkpoint_too() {
    let disk = Disk::of(16 * MIB);
    let db = disk.open();
    let mut longest = 0;
    for row in 1..=4000 {
        db.execute(INSERT, ()).wait().unwrap_or_else(|error| panic!("row {row}: {error}: {:?}", db.stats().wal));
        if row % 400 == 0 {
            db.execute("DELETE FROM t WHERE n % 2 = 0 OR n < ?", (row - 400,)).wait().unwrap();
        }
        longest = longest.max(disk.wal_bytes());
    }
    // The limit is looked at before a write begins. A DELETE may then write every page of the database.
    let most = 8 * MIB + std::fs::metadata(&disk.path).unwrap().len();
    assert!(longest <= most, "{longest} bytes of WAL, and {most} at most: {:?}", db.stats().wal);
    assert_eq!(db.stats().wal.failures, 0);
    let rows = count(&db);
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), rows);
}

#[test]
fn other_files_that_take_the_space_make_the_wal_short() {
    let disk = Disk::of(64 * MIB);
    let db = disk.open();
    while disk.wal_bytes() < 5 * MIB {
        db.execute(INSERT, ()).wait().unwrap();
    }
    db.execute("UPDATE t SET b = randomblob(3000) WHERE n < 1000", ()).wait().unwrap();
    finish(db.checkpoint(CheckpointMode::Full)).unwrap();
    disk.leave(MIB);
    // It is longer than what is left, so it is made short when it starts over. A checkpointer that got little time may
    // leave it too long again, until the next time.
    let is_short = || disk.wal_bytes() <= disk.free();
    assert!(!is_short());
    let is_done = (0..20_000).any(|n| {
        db.execute("UPDATE t SET b = randomblob(3000) WHERE n = ?", (n % 1000,)).wait().unwrap();
        n > 10_000 && is_short()
    });
    assert!(is_done, "{} bytes free: {:?}", disk.free(), db.stats().wal);
    let rows = count(&db);
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), rows);
}

#[test]
fn a_database_that_was_full_is_written_again_when_there_is_space() {
    let disk = Disk::of(16 * MIB);
    let db = disk.open();
    let mut rows = 0;
    for size in [18, 24] {
        fill(&db, &mut rows);
        SIZE.store(size * MIB, Ordering::SeqCst);
        for _ in 0..100 {
            db.execute(INSERT, ()).wait().unwrap();
            rows += 1;
        }
    }
    let restarts = db.stats().wal.resets;
    wait_until(|| db.stats().wal.resets > restarts || db.stats().wal.frames < 64);
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), rows);
}

/// A write that finds no space for the next part of the `-shm` has written its frames, but is not committed.
#[test]
fn a_write_for_which_the_shm_cannot_grow_runs_again_in_a_short_wal() {
    let disk = Disk::of(u64::MAX >> 1);
    let mut rows = 0;
    loop {
        // A close removes the `-shm`, and its first part is for 4,062 frames. A row has one.
        let db = disk.open();
        let insert_many = |rows: i64| db.execute_many(INSERT, (0..rows).map(|_| ())).wait();
        insert_many(3900).unwrap();
        SHM_REFUSED.store(0, Ordering::SeqCst);
        SHM.store(1, Ordering::SeqCst);
        let outcome = insert_many(400);
        SHM.store(0, Ordering::SeqCst);
        match &outcome {
            Ok(_) => rows += 4300,
            // The checkpointer was in the middle of a checkpoint.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                rows += 3900;
            }
        }
        assert_eq!(count(&db), rows);
        db.close().wait().unwrap();
        // Otherwise the checkpointer started the WAL over before.
        if outcome.is_ok() && SHM_REFUSED.load(Ordering::SeqCst) > 0 {
            break;
        }
    }
    assert_eq!(disk.is_sound(), rows);
}

#[test]
fn a_database_that_was_full_has_room_when_rows_are_deleted() {
    let disk = Disk::of(16 * MIB);
    let db = disk.open();
    let mut rows = 0;
    for _ in 0..3 {
        fill(&db, &mut rows);
        assert!(length(&disk.path) > 14 * MIB, "{} bytes", length(&disk.path));
        for _ in 0..20 {
            db.execute("DELETE FROM t WHERE n IN (SELECT n FROM t LIMIT 100)", ()).wait().unwrap();
        }
        // What these rows took is used again.
        for _ in 0..1500 {
            db.execute(INSERT, ()).wait().unwrap();
        }
        rows -= 500;
        assert_eq!(count(&db), rows);
    }
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), rows);
}

/// There is space again before anybody looks at the disk.
#[test]
fn a_write_that_finds_no_space_runs_again_if_there_is_some_by_then() {
    let disk = Disk::of(64 * MIB);
    let db = disk.open();
    WAL.store(1, Ordering::SeqCst);
    db.execute(INSERT, ()).wait().unwrap();
    assert!(WAL.load(Ordering::SeqCst) < 1, "a write found no space");
    assert_eq!(count(&db), 1);
    WAL.store(i64::MAX, Ordering::SeqCst);
    assert_eq!(db.execute(INSERT, ()).wait().unwrap_err().kind(), ErrorKind::Full);
    WAL.store(0, Ordering::SeqCst);
    db.execute(INSERT, ()).wait().unwrap();
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), 2);
}

/// The checkpointer is held for longer than the write would wait for another process.
#[test]
fn a_write_without_space_waits_for_the_checkpointer() {
    let disk = Disk::of(64 * MIB);
    let db = disk.open();
    for _ in 0..100 {
        db.execute(INSERT, ()).wait().unwrap();
    }
    finish(db.checkpoint(CheckpointMode::Truncate)).unwrap();
    let update = |n: i64| {
        db.execute("UPDATE t SET b = randomblob(3000) WHERE n = ?", (n % 100,)).wait().unwrap();
    };
    HOLD_CHECKPOINTER.store(true, Ordering::SeqCst);
    (0..).take_while(|_| !IS_HELD.load(Ordering::SeqCst)).for_each(update);
    // The checkpoint needs no space.
    disk.leave(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            HOLD_CHECKPOINTER.store(false, Ordering::SeqCst);
        });
        update(1);
    });
    assert_eq!(count(&db), 100);
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), 100);
}

/// No statement of the engine looks at the disk here: the closures do all.
#[test]
fn closures_find_the_space_that_there_is_again() {
    let disk = Disk::of(16 * MIB);
    let db = disk.open();
    let mut rows = 0;
    fill(&db, &mut rows);
    let whole = || db.with_connection(|connection| Ok::<_, flatwater::Error>(connection.execute(INSERT, [])?)).wait();
    let part = || db.write_with(|tx| Ok::<_, flatwater::Error>(tx.execute(INSERT, [])?)).wait();
    let closures: [&dyn Fn() -> flatwater::Result<usize>; 2] = [&whole, &part];
    for (size, closure) in (1..).zip(closures) {
        while closure().is_ok() {
            rows += 1;
        }
        SIZE.store((16 + 8 * size) * MIB, Ordering::SeqCst);
        // The first one may still have the limit of the disk as it was.
        let tries = [closure(), closure()];
        assert!(tries[1].is_ok(), "{tries:?}");
        rows += tries.iter().filter(|answer| answer.is_ok()).count() as i64;
        assert_eq!(count(&db), rows);
    }
    db.close().wait().unwrap();
    assert_eq!(disk.is_sound(), rows);
}

#[test]
fn a_page_limit_that_the_user_set_is_not_raised() {
    let disk = Disk::of(16 * MIB);
    let options = Options::new(&disk.path).on_open("PRAGMA max_page_count = 2500");
    let db = options.open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    let mut rows = 0;
    fill(&db, &mut rows);
    SIZE.store(64 * MIB, Ordering::SeqCst);
    assert_eq!(db.execute(INSERT, ()).wait().unwrap_err().kind(), ErrorKind::Full);
    db.close().wait().unwrap();
    assert_eq!(length(&disk.path), 2500 * 4096);
    assert_eq!(disk.is_sound(), rows);
}

/// Runs a write that meets another program's lock, which is freed when the condition holds.
fn meets_busy(disk: &Disk, db: &Database, condition: impl Fn() -> bool) {
    let other = rusqlite::Connection::open(&disk.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let written = scope.spawn(|| db.execute(INSERT, ()).wait().map(drop));
        wait_until(|| condition() || written.is_finished());
        other.execute_batch("ROLLBACK").unwrap();
        written.join().unwrap().unwrap();
    });
}

#[test]
fn a_disk_that_is_full_when_the_file_of_turns_is_made_leaves_none_and_costs_no_write() {
    let disk = Disk::of(64 * MIB);
    let turn_file = beside(&disk.path, "-turn");
    let db = disk.open();
    TURN.store(i64::MAX, Ordering::SeqCst);
    meets_busy(&disk, &db, || db.stats().turns.failures > 0);
    assert!(!turn_file.exists(), "no half of it is left");
    assert_eq!(count(&db), 1);
    db.close().wait().unwrap();
    // With space it is made.
    TURN.store(0, Ordering::SeqCst);
    let db = disk.open();
    meets_busy(&disk, &db, || length(&turn_file) > 0);
    assert_eq!((count(&db), db.stats().turns.failures), (2, 0));
    db.close().wait().unwrap();
    assert!(!turn_file.exists());
    assert_eq!(disk.is_sound(), 2);
}
