//! The file on Linux: locks of a descriptor, and a futex at an address of the mapped file.
//!
//! Owns: the descriptor and the mapping. Runs on any thread; only the wait for the futex blocks. Invariant: the file is removed
//! only by a process that alone has it open. Leaves out: what all systems have in common (`turn_file`).
//!
//! ```text
//! a process that opens                     the last process, which closes
//!                                          holds IN_USE alone: nobody else has it
//! opens the file
//! IN_USE, shared: refused; comes back
//! later, and makes another file            the path leads to this file yet: unlinks it
//! ```

use std::ffi::c_void;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};
use std::time::Duration;

use super::{Counters, Word};
use crate::locks::ofd::{Kind, is_held, set};
use crate::process::origin::Origin;

/// The size of the file: one page of the smallest size that a system has.
const PAGE: usize = 4096;
/// The last byte is the version.
const NAME: [u8; 12] = *b"FLATWATERT\0\x01";
const COUNTERS: u64 = 16;
/// The bytes that are read.
const CONTENTS: usize = COUNTERS as usize + 12;
/// First byte and length of the ranges of locks, which lie behind the contents.
const IN_USE: (i64, i64) = (PAGE as i64, 1);
const FOLLOWING: (i64, i64) = (PAGE as i64 + 1, 1);
const TICKETS: i64 = 2 * PAGE as i64;
/// Tickets that are so far apart share a byte: as many may be held at a time.
const RING: u32 = 1 << 16;

/// An open file `<db>-turn`. Dropping it closes it; the locks that it holds end then, unless a forked child has a copy.
#[derive(Debug)]
pub struct TurnFile {
    file: File,
    identity: Identity,
    /// The mapped page. Never read or written here.
    page: NonNull<c_void>,
    origin: Origin,
}

/// Device and inode.
type Identity = (u64, u64);

// SAFETY: the mapping lives as long as the value, on whichever thread it is, and only the kernel uses it.
unsafe impl Send for TurnFile {}
// SAFETY: as above; the other fields may be shared.
unsafe impl Sync for TurnFile {}

impl TurnFile {
    /// Opens the file at `path`. If there is none, makes it, if asked to, with the rights and the owner of `database`.
    /// Returns `None` if there is none, and if another process is just making or removing it.
    ///
    /// # Errors
    /// The operating system's error; `InvalidData` if the file holds something else, or the form of another version. It is
    /// left as it is.
    pub fn open(path: &Path, database: &Path, may_make: bool) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(may_make).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(invalid("is no file"));
        }
        let identity = identity(&metadata);
        if !set(&file, Kind::Shared, IN_USE)? || !is_at(path, identity) {
            return Ok(None);
        }
        if !has_name(&file)? && !make(&file, path, database, may_make)? {
            return Ok(None);
        }
        let page = map(&file)?;
        Ok(Some(Self { file, identity, page, origin: Origin::here() }))
    }

    /// Returns true if the path leads to this file.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(path, self.identity)
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// The operating system's error; `InvalidData` if the file was cut short or written over.
    pub fn counters(&self) -> io::Result<Counters> {
        let mut bytes = [0; CONTENTS];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(invalid("was cut short")),
            read => read?,
        }
        if bytes[..NAME.len()] != NAME {
            return Err(invalid("was written over"));
        }
        let counter = |word| {
            let at = offset(word) as usize;
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Ok(Counters { next: counter(Word::Next), served: counter(Word::Served), commit: counter(Word::Commit) })
    }

    /// Sets a counter.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn set(&self, word: Word, value: u32) -> io::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), offset(word))
    }

    /// Locks the byte of a ticket. Returns false if another one has it.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn lock(&self, ticket: u32) -> io::Result<bool> {
        set(&self.file, Kind::Alone, ticket_bytes(ticket, 1))
    }

    /// Unlocks the byte of a ticket.
    pub fn unlock(&self, ticket: u32) {
        // A forked child would unlock it for its parent. If it fails, the lock ends with the descriptor.
        if !self.origin.is_inherited() {
            let _ = set(&self.file, Kind::None, ticket_bytes(ticket, 1));
        }
    }

    /// Returns true if another one has one of so many tickets, from the first one on.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn is_held(&self, first: u32, count: u32) -> io::Result<bool> {
        let count = count.min(RING);
        let to_the_end = count.min(RING - first % RING);
        Ok(is_held(&self.file, Kind::Alone, ticket_bytes(first, to_the_end))?
            || count > to_the_end && is_held(&self.file, Kind::Alone, ticket_bytes(0, count - to_the_end))?)
    }

    /// Shows that this process waits for commits.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn follow(&self) -> io::Result<()> {
        set(&self.file, Kind::Shared, FOLLOWING).map(drop)
    }

    /// Takes that back.
    pub fn follow_no_more(&self) {
        if !self.origin.is_inherited() {
            let _ = set(&self.file, Kind::None, FOLLOWING);
        }
    }

    /// Returns true if another process waits for commits.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn has_followers(&self) -> io::Result<bool> {
        is_held(&self.file, Kind::Alone, FOLLOWING)
    }

    /// Blocks while the counter has this value, until someone wakes one of the same `bits`, or the time is over. It may
    /// return early. Returns false if the time is over.
    ///
    /// # Errors
    /// The operating system's error, `EFAULT` if the file was cut short.
    pub fn wait(&self, word: Word, value: u32, bits: u32, time: Duration) -> io::Result<bool> {
        let until = monotonic_in(time);
        // SAFETY: the address lies in the mapped page, and the kernel checks it; `until` lives for the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.address(word),
                libc::FUTEX_WAIT_BITSET,
                value,
                &raw const until,
                null::<u32>(),
                bits,
            )
        };
        if done == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(true),
            Some(libc::ETIMEDOUT) => Ok(false),
            _ => Err(error),
        }
    }

    /// Wakes all who wait at the counter with one of the `bits`.
    pub fn wake(&self, word: Word, bits: u32) {
        let all = libc::c_int::MAX;
        // SAFETY: the address lies in the mapped page, and the kernel checks it. If it fails, waits end by their time.
        unsafe {
            let (no_time, no_other) = (null::<libc::timespec>(), null::<u32>());
            libc::syscall(libc::SYS_futex, self.address(word), libc::FUTEX_WAKE_BITSET, all, no_time, no_other, bits);
        }
    }

    /// Called before the file is closed: removes it, if no other process uses it and the path still leads to it.
    ///
    /// This one's own use ends first. Of two that close at the same time, each would otherwise keep the other from it:
    ///
    /// ```text
    /// process A                                process B
    /// asks for IN_USE alone: B has it
    ///                                          asks for IN_USE alone: A has it yet
    /// closes                                   closes; the file is left
    /// ```
    pub fn remove_if_last(&self, path: &Path) {
        let is_last =
            || Ok::<_, io::Error>(set(&self.file, Kind::None, IN_USE)? && set(&self.file, Kind::Alone, IN_USE)?);
        if !self.origin.is_inherited() && matches!(is_last(), Ok(true)) && self.is_at(path) {
            let _ = std::fs::remove_file(path);
        }
    }

    fn address(&self, word: Word) -> *mut c_void {
        // SAFETY: the offset is less than the size of the page.
        unsafe { self.page.as_ptr().byte_add(offset(word) as usize) }
    }
}

impl Drop for TurnFile {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and nobody else has the address.
        unsafe { libc::munmap(self.page.as_ptr(), PAGE) };
    }
}

/// From now on the pauses of this thread end when they should, and not up to 50 us later.
pub fn precise_pauses() {
    const SLACK_NS: libc::c_ulong = 1;
    // SAFETY: the call takes a number, and concerns the thread that makes it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
}

fn offset(word: Word) -> u64 {
    COUNTERS
        + match word {
            Word::Next => 0,
            Word::Served => 4,
            Word::Commit => 8,
        }
}

fn ticket_bytes(first: u32, count: u32) -> (i64, i64) {
    (TICKETS + i64::from(first % RING), i64::from(count))
}

fn identity(of: &Metadata) -> Identity {
    (of.dev(), of.ino())
}

fn is_at(path: &Path, opened: Identity) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == opened)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the file {what}"))
}

/// Returns false if the file is empty or was cut short, or nothing was written where its name should be.
fn has_name(file: &File) -> io::Result<bool> {
    let mut begin = [0; CONTENTS];
    let read = file.read_at(&mut begin, 0)?;
    let (name, _) = begin.split_first_chunk::<{ NAME.len() }>().expect("it begins with the name");
    match *name {
        NAME => Ok(read == CONTENTS),
        _ if name.iter().all(|byte| *byte == 0) => Ok(false),
        _ if name[..NAME.len() - 1] == NAME[..NAME.len() - 1] => Err(invalid("is of another version")),
        _ => Err(invalid("holds something else")),
    }
}

/// Writes the first contents. Returns false if another process uses the file at the moment. If it fails, the file is
/// removed, so that the next attempt is like the first one.
fn make(file: &File, path: &Path, database: &Path, may_make: bool) -> io::Result<bool> {
    if !may_make || !set(file, Kind::Alone, IN_USE)? {
        return Ok(false);
    }
    let written = rights(file, database).and_then(|()| {
        let mut page = [0; PAGE];
        page[..NAME.len()].copy_from_slice(&NAME);
        file.write_all_at(&page, 0)
    });
    if let Err(error) = written {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    set(file, Kind::Shared, IN_USE)
}

/// Gives the file the rights of the database, and its owner if this process may, as SQLite does for the files beside a
/// database.
fn rights(file: &File, database: &Path) -> io::Result<()> {
    let of = std::fs::metadata(database)?;
    file.set_permissions(Permissions::from_mode(of.mode() & 0o666))?;
    // SAFETY: the call has no conditions.
    if unsafe { libc::geteuid() } == 0 {
        fchown(file, Some(of.uid()), Some(of.gid()))?;
    }
    Ok(())
}

fn map(file: &File) -> io::Result<NonNull<c_void>> {
    // SAFETY: a new mapping of an open file, at an address that the kernel chooses.
    let page = unsafe {
        libc::mmap(null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(page).ok_or_else(|| ErrorKind::OutOfMemory.into())
}

/// The time of the monotonic clock in so long.
fn monotonic_in(time: Duration) -> libc::timespec {
    let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `until` lives for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut until) };
    until.tv_sec = until.tv_sec.saturating_add(time.as_secs().try_into().unwrap_or(0));
    until.tv_nsec += libc::c_long::from(time.subsec_nanos().cast_signed());
    if until.tv_nsec >= 1_000_000_000 {
        until.tv_nsec -= 1_000_000_000;
        until.tv_sec = until.tv_sec.saturating_add(1);
    }
    until
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let [path, database] = ["a.db-turn", "a.db"].map(|name| directory.path().join(name));
        std::fs::write(&database, "").unwrap();
        std::fs::set_permissions(&database, Permissions::from_mode(0o640)).unwrap();
        (directory, path, database)
    }

    #[test]
    fn it_is_made_when_asked_to_with_the_rights_of_the_database_and_removed_by_the_last() {
        let (_directory, path, database) = place();
        let open = |may_make| TurnFile::open(&path, &database, may_make).unwrap();
        assert!(open(false).is_none() && !path.exists());
        let first = open(true).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(first.counters().unwrap(), Counters { next: 0, served: 0, commit: 0 });
        let second = open(false).unwrap();
        second.set(Word::Served, 7).unwrap();
        assert_eq!(first.counters().unwrap().served, 7);
        first.remove_if_last(&path);
        drop(first);
        assert!(second.is_at(&path));
        second.remove_if_last(&path);
        assert!(!path.exists());
    }

    #[test]
    fn of_two_that_close_at_the_same_time_one_removes_it() {
        let (_directory, path, database) = place();
        let open = || TurnFile::open(&path, &database, true).unwrap().unwrap();
        let (one, two) = (open(), open());
        one.remove_if_last(&path);
        assert!(path.exists(), "it is in use");
        two.remove_if_last(&path);
        assert!(!path.exists());
    }

    #[test]
    fn another_file_at_its_path_stays() {
        let (_directory, path, database) = place();
        let file = TurnFile::open(&path, &database, true).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another").unwrap();
        assert!(!file.is_at(&path));
        file.remove_if_last(&path);
        assert!(path.exists());
        assert_eq!(TurnFile::open(&path, &database, true).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(std::fs::read(&path).unwrap(), b"another", "it is left as it is");
    }

    #[test]
    fn a_directory_a_link_and_another_version_are_refused() {
        let (directory, path, database) = place();
        let refused = || TurnFile::open(&path, &database, true).unwrap_err();
        std::fs::create_dir(&path).unwrap();
        refused();
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &path).unwrap();
        refused();
        std::fs::remove_file(&path).unwrap();
        let mut next = NAME;
        next[NAME.len() - 1] += 1;
        std::fs::write(&path, next).unwrap();
        assert!(refused().to_string().contains("version"));
    }

    #[test]
    fn a_file_that_is_cut_short_fails_calls_and_is_made_again_when_nobody_uses_it() {
        let (_directory, path, database) = place();
        let file = TurnFile::open(&path, &database, true).unwrap().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(file.counters().unwrap_err().kind(), ErrorKind::InvalidData);
        file.wait(Word::Served, 0, 1, Duration::from_secs(60)).unwrap_err();
        file.wake(Word::Served, 1);
        // A write comes after the cut.
        file.set(Word::Next, 5).unwrap();
        file.counters().unwrap_err();
        assert!(TurnFile::open(&path, &database, true).unwrap().is_none(), "one uses it");
        drop(file);
        for length in [4096, 20, 0] {
            File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
            let file = TurnFile::open(&path, &database, true).unwrap().unwrap();
            assert_eq!(file.counters().unwrap().next, 0, "{length}");
            file.set(Word::Next, 0).unwrap();
        }
    }

    #[test]
    fn tickets_conflict_between_handles_and_the_ring_has_no_end() {
        let (_directory, path, database) = place();
        let open = || TurnFile::open(&path, &database, true).unwrap().unwrap();
        let (one, two) = (open(), open());
        for ticket in [0, RING - 1, u32::MAX] {
            assert!(one.lock(ticket).unwrap() && !two.lock(ticket).unwrap());
            assert!(two.is_held(ticket.wrapping_sub(3), 5).unwrap() && !one.is_held(ticket, 1).unwrap());
            assert!(!two.is_held(ticket.wrapping_add(1), 5).unwrap());
            one.unlock(ticket);
            assert!(!two.is_held(0, u32::MAX).unwrap());
        }
        one.lock(2).unwrap();
        assert!(two.is_held(u32::MAX - 1, 5).unwrap(), "over the end of the ring");
        drop(one);
        assert!(!two.is_held(0, u32::MAX).unwrap(), "the locks end with it");
    }

    #[test]
    fn followers_are_seen_by_others_only() {
        let (_directory, path, database) = place();
        let open = || TurnFile::open(&path, &database, true).unwrap().unwrap();
        let (one, two) = (open(), open());
        one.follow().unwrap();
        assert!(two.has_followers().unwrap() && !one.has_followers().unwrap());
        one.follow_no_more();
        assert!(!two.has_followers().unwrap());
    }

    #[test]
    fn a_wait_ends_with_a_wake_of_its_bits_and_does_not_begin_if_the_counter_has_moved() {
        let (_directory, path, database) = place();
        let open = || TurnFile::open(&path, &database, true).unwrap().unwrap();
        let (one, two) = (Arc::new(open()), open());
        assert!(one.wait(Word::Served, 1, 1, Duration::from_secs(60)).unwrap(), "it is 0");
        assert!(!one.wait(Word::Served, 0, 1, Duration::ZERO).unwrap());
        let waiting = one.clone();
        let thread = std::thread::spawn(move || {
            while waiting.counters().unwrap().served == 0 {
                waiting.wait(Word::Served, 0, 0b10, Duration::from_secs(60)).unwrap();
            }
        });
        two.set(Word::Served, 1).unwrap();
        two.wake(Word::Served, 0b10);
        thread.join().unwrap();
    }
}
