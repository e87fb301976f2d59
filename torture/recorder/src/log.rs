//! The log: the files' names, and one record after the other.
//!
//! Owns: the log's descriptor and its lock, the number of each file, and the file of each descriptor. A file that is
//! created again under an old name is another file. A record consists of its kind (1 byte), file (4), number (8),
//! length (4), and that many bytes, in the machine's byte order. Invariant: if a record cannot be written, the process
//! ends, because a log with a gap would be wrong. Leaves out: interpreting the log, which the program does.

use std::ffi::c_int;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The kind of a record. The reader uses the same numbers.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A file that existed when it was opened; its name.
    Met = 1,
    /// A new file; its name.
    Create = 2,
    /// The offset, and the bytes.
    Write = 3,
    /// The new length.
    Truncate = 4,
    /// The number of the sync.
    SyncBegin = 5,
    /// The number of the sync, which succeeded.
    SyncEnd = 6,
    /// The number of the sync, which failed.
    SyncFailed = 7,
    /// The file lost its name; the name.
    Unlink = 8,
    /// A text from the process itself.
    Mark = 9,
    /// The number of the sync, which reported the failure of an earlier one.
    SyncTold = 10,
}

/// The place a path refers to.
pub(crate) enum Place<'a> {
    Elsewhere,
    /// The recorded directory.
    Directory,
    /// A file in it, with its name.
    File(&'a [u8]),
}

/// A call on a WAL that is to fail.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Fails {
    Nothing,
    Sync,
    Write,
}

/// A sync that has begun.
#[derive(Clone, Copy)]
pub(crate) struct Sync {
    pub(crate) number: u64,
    pub(crate) fails: bool,
}

pub(crate) struct Log {
    fd: c_int,
    /// The files that have a name, with their numbers.
    names: Vec<(Vec<u8>, u32)>,
    files: u32,
    syncs: u64,
    /// The file whose last write was the header of a commit frame.
    commits: Option<u32>,
}

/// The number of the directory itself.
pub(crate) const DIRECTORY: u32 = u32::MAX;
/// No file; the number of everything that is not recorded.
const NONE: u32 = 0;
const FRAME_HEADER: usize = 24;
/// The smallest page of a database, in bytes.
const SMALLEST_PAGE: usize = 512;
const DESCRIPTORS: usize = 1 << 16;

static FILES: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(NONE) }; DESCRIPTORS];
/// Descriptors whose next sync fails. After a failed sync, each descriptor of the file reports it once.
static FAIL: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];

/// Returns whether the descriptor has to report a failure, which it does once.
fn has_to_tell(fd: c_int) -> bool {
    usize::try_from(fd).is_ok_and(|at| FAIL[at].swap(false, Ordering::SeqCst))
}

/// The call that is to fail next.
static NEXT: AtomicU8 = AtomicU8::new(Fails::Nothing as u8);

/// Returns the directory to record, without a slash at its end.
fn directory() -> Option<&'static [u8]> {
    static DIRECTORY: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    DIRECTORY.get_or_init(|| Some(std::env::var_os("FLATWATER_RECORDED_DIRECTORY")?.into_vec())).as_deref()
}

/// Calls `body` with the log, under its lock; returns `None` if nothing is to be recorded.
pub(crate) fn with<T>(body: impl FnOnce(&mut Log) -> T) -> Option<T> {
    static LOG: OnceLock<Option<Mutex<Log>>> = OnceLock::new();
    let log = LOG.get_or_init(|| Log::open().map(Mutex::new)).as_ref()?;
    Some(body(&mut log.lock().unwrap_or_else(PoisonError::into_inner)))
}

pub(crate) fn place(path: &[u8]) -> Place<'_> {
    let Some(rest) = directory().and_then(|directory| path.strip_prefix(directory)) else { return Place::Elsewhere };
    match rest {
        [] | b"/" | b"/." => Place::Directory,
        [b'/', name @ ..] if !name.contains(&b'/') && !name.ends_with(b"-shm") => Place::File(name),
        _ => Place::Elsewhere,
    }
}

pub(crate) fn opened(fd: c_int, file: u32) {
    if let Ok(at) = usize::try_from(fd) {
        match FILES.get(at) {
            Some(entry) => {
                FAIL[at].store(false, Ordering::SeqCst);
                entry.store(file, Ordering::SeqCst);
            }
            None => give_up("a descriptor beyond what is looked at"),
        }
    }
}

pub(crate) fn closed(fd: c_int) {
    if let Some(entry) = usize::try_from(fd).ok().and_then(|at| FILES.get(at)) {
        entry.store(NONE, Ordering::SeqCst);
    }
}

/// Returns the file a descriptor refers to, if it is recorded.
pub(crate) fn file_of(fd: c_int) -> Option<u32> {
    let file = FILES.get(usize::try_from(fd).ok()?)?.load(Ordering::SeqCst);
    (file != NONE).then_some(file)
}

pub(crate) fn fail_next(call: Fails) {
    NEXT.store(call as u8, Ordering::SeqCst);
}

impl Log {
    fn open() -> Option<Self> {
        let mut path = std::env::var_os("FLATWATER_RECORDED_LOG")?.into_vec();
        path.push(0);
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path ends with a NUL and is valid during the call.
        let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) as c_int };
        if fd < 0 {
            give_up("the log cannot be opened");
        }
        Some(Self { fd, names: Vec::new(), files: 0, syncs: 0, commits: None })
    }

    /// Returns the number of the file of that name, which has just been opened.
    pub(crate) fn file(&mut self, name: &[u8], was_there: bool) -> u32 {
        if let Some((_, file)) = self.names.iter().find(|(known, _)| known == name) {
            return *file;
        }
        self.files += 1;
        self.names.push((name.to_vec(), self.files));
        self.record(if was_there { Kind::Met } else { Kind::Create }, self.files, 0, name);
        self.files
    }

    pub(crate) fn unlinked(&mut self, name: &[u8]) {
        let at = self.names.iter().position(|(known, _)| known == name);
        let file = at.map_or(NONE, |at| self.names.swap_remove(at).1);
        self.record(Kind::Unlink, file, 0, name);
    }

    /// Returns whether `data`, if the file is a WAL, is the page of a commit frame. SQLite writes the header of a frame
    /// (<https://sqlite.org/fileformat2.html#walformat>) and then its page; Flatwater makes one write of them.
    pub(crate) fn completes_commit(&mut self, file: u32, data: &[u8]) -> bool {
        let page = data.len().saturating_sub(FRAME_HEADER);
        if page >= SMALLEST_PAGE && page.is_power_of_two() {
            self.commits = None;
            return data[4..8] != [0; 4];
        }
        let is_header = data.len() == FRAME_HEADER;
        let before = self.commits.replace(file).is_some_and(|before| before == file);
        if !is_header || data[4..8] == [0; 4] {
            self.commits = None;
        }
        before && !is_header
    }

    /// Returns whether this call on a file is the one that is to fail.
    pub(crate) fn fails(&self, file: u32, call: Fails) -> bool {
        let is_wal = || self.names.iter().any(|(name, number)| *number == file && name.ends_with(b"-wal"));
        NEXT.load(Ordering::SeqCst) == call as u8
            && is_wal()
            && NEXT.compare_exchange(call as u8, Fails::Nothing as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn sync_begins(&mut self, fd: c_int, file: u32) -> Sync {
        let fails = self.fails(file, Fails::Sync);
        if fails {
            let leads_there = |at: &usize| FILES[*at].load(Ordering::SeqCst) == file;
            (0..DESCRIPTORS).filter(leads_there).for_each(|at| FAIL[at].store(true, Ordering::SeqCst));
            has_to_tell(fd);
        }
        self.syncs += 1;
        self.record(Kind::SyncBegin, file, self.syncs, &[]);
        Sync { number: self.syncs, fails }
    }

    /// Records the end of a sync. Returns whether the sync may be reported as successful.
    pub(crate) fn sync_ends(&mut self, fd: c_int, file: u32, sync: u64, succeeds: bool) -> bool {
        let kind = match (succeeds, succeeds && has_to_tell(fd)) {
            (true, false) => Kind::SyncEnd,
            (true, true) => Kind::SyncTold,
            (false, _) => Kind::SyncFailed,
        };
        self.record(kind, file, sync, &[]);
        matches!(kind, Kind::SyncEnd)
    }

    pub(crate) fn record(&mut self, kind: Kind, file: u32, number: u64, data: &[u8]) {
        let Ok(length) = u32::try_from(data.len()) else { give_up("a write of more than 4 GiB") };
        let mut head = [0; 17];
        head[0] = kind as u8;
        head[1..5].copy_from_slice(&file.to_ne_bytes());
        head[5..13].copy_from_slice(&number.to_ne_bytes());
        head[13..].copy_from_slice(&length.to_ne_bytes());
        self.append(&head);
        self.append(data);
    }

    fn append(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            // SAFETY: the bytes are valid during the call.
            let done = unsafe { libc::syscall(libc::SYS_write, self.fd, data.as_ptr(), data.len()) };
            match usize::try_from(done) {
                Ok(done) => data = &data[done..],
                Err(_) => give_up("the log cannot be written"),
            }
        }
    }
}

/// Ends the process with a message.
fn give_up(why: &str) -> ! {
    for text in ["the recorder gives up: ", why, "\n"] {
        // SAFETY: the bytes are valid during the call.
        unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, text.as_ptr(), text.len()) };
    }
    // SAFETY: abort does not return.
    unsafe { libc::abort() }
}
