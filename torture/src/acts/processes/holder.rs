//! The part that holds locks of the wal-index while it is stopped, and the one that dies between the two copies of the
//! wal-index header.
//!
//! It does not use SQLite, so that the locks are its own: closing a descriptor of a file releases all POSIX locks that
//! the process has on it (<https://sqlite.org/howtocorrupt.html>).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use serde::{Deserialize, Serialize};

use super::witness::database;

/// <https://sqlite.org/walformat.html#wal_locks>
pub(super) const WRITE: i64 = 120;
/// READ 1 to 4: a reader needs one of them to begin a snapshot of the WAL.
pub(super) const MARKS: RangeInclusive<i64> = 124..=127;
/// All locks except the last, which decides which process opens the file first.
pub(super) const LOCKS: RangeInclusive<i64> = 120..=127;
/// <https://sqlite.org/walformat.html#the_wal_index_header>: two copies, the change counter at byte 8 of each.
const HEADER: usize = 48;
const CHANGE_OF_SECOND_COPY: u64 = 56;
const TRIES: Duration = Duration::from_millis(100);

/// What a round requests from the part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hold {
    pub(super) directory: PathBuf,
    pub(super) locks: RangeInclusive<i64>,
    pub(super) exclusive: bool,
    /// Whether the lock belongs to the descriptor (OFD) instead of the process.
    pub(super) of_descriptor: bool,
    /// Whether to make the copies of the header differ first. Only with the WRITE lock, exclusively.
    pub(super) tears: bool,
}

/// The words it prints when it has the lock, or cannot get it.
pub(super) const HELD: &str = "held";
pub(super) const MISSED: &str = "missed";

/// Prints whether it has the lock, and keeps it until its standard input ends.
pub(super) fn part(args: &[String]) -> ExitCode {
    let hold: Hold = args.first().and_then(|text| serde_json::from_str(text).ok()).expect("the round says what");
    let held = take(&hold);
    let said = if held.is_some() { HELD } else { MISSED };
    println!("{said}");
    let _ = io::stdout().flush();
    if held.is_some() {
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }
    ExitCode::SUCCESS
}

/// Returns `None` if there is no wal-index, or another process keeps the lock.
fn take(hold: &Hold) -> Option<File> {
    let mut name = database(&hold.directory).into_os_string();
    name.push("-shm");
    let index = OpenOptions::new().read(true).write(true).open(Path::new(&name)).ok()?;
    let until = Instant::now() + TRIES;
    while !is_locked(&index, hold) {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    if hold.tears && !tear(&index).unwrap_or(false) {
        return None;
    }
    Some(index)
}

fn is_locked(index: &File, hold: &Hold) -> bool {
    let kind = if hold.exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
    let lock = libc::flock {
        l_type: i16::try_from(kind).expect("a small number"),
        l_whence: i16::try_from(libc::SEEK_SET).expect("a small number"),
        l_start: *hold.locks.start(),
        l_len: hold.locks.end() - hold.locks.start() + 1,
        l_pid: 0,
    };
    let way = if hold.of_descriptor { FcntlArg::F_OFD_SETLK(&lock) } else { FcntlArg::F_SETLK(&lock) };
    match fcntl(index, way) {
        Ok(_) => true,
        Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) => false,
        Err(error) => panic!("a lock is neither given nor refused: {error}"),
    }
}

/// Simulates a process that dies after it wrote the second copy, which is written first. A process needs the WRITE lock
/// to commit, so no other process is between its two copies now. Returns false if there is no header yet.
fn tear(index: &File) -> io::Result<bool> {
    let mut headers = [0; 2 * HEADER];
    if index.read_at(&mut headers, 0)? < headers.len() || headers[..HEADER] != headers[HEADER..] {
        return Ok(false);
    }
    let at = usize::try_from(CHANGE_OF_SECOND_COPY).expect("a small number");
    let change = u32::from_ne_bytes(headers[at..at + 4].try_into().expect("four bytes"));
    index.write_all_at(&change.wrapping_add(1).to_ne_bytes(), CHANGE_OF_SECOND_COPY)?;
    Ok(true)
}
