//! The write-ahead log seen from outside: the wal-index header.
//!
//! Owns: reading the shared-memory header through SQLite's own mapping, so that no descriptor on the `-shm` file is
//! ever opened (closing one would drop all POSIX locks of the process,
//! <https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>). Runs on
//! the thread that uses the connection. Invariant: the header is read at an address at which it is mapped. Leaves out: how
//! long the address is remembered (`mapping`), and when to read the header.

pub(crate) mod files;
pub(crate) mod mapping;

use std::ffi::{CString, c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rusqlite::ffi;

use crate::wal::files::{File, Files};

/// One copy of the wal-index header (<https://sqlite.org/walformat.html#the_wal_index_header>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalHeader {
    /// Incremented by every commit; a restart of the WAL keeps it, and only a recovery resets it.
    pub change: u32,
    /// The number of valid frames in the WAL.
    pub max_frame: u32,
    /// The WAL's two salts, changed at each restart.
    pub salts: [u32; 2],
    /// Frames of the WAL that are copied into the database.
    pub copied: u32,
    /// The page size in bytes.
    pub page_bytes: u32,
}

const REGION_BYTES: c_int = 32 * 1024;
const CHANGE: usize = 8;
const MAX_FRAME: usize = 16;
const SALT_1: usize = 32;
const SALT_2: usize = 36;
/// The page size is the upper half of the previous word, in the machine's byte order.
const PAGE: usize = 12;
const COPIED: usize = 96;

/// Extracts the page size from the word whose last two bytes contain it, where 1 stands for 65,536.
fn page_bytes(word: u32) -> u32 {
    let [_, _, low, high] = word.to_ne_bytes();
    match u32::from(u16::from_ne_bytes([low, high])) {
        1 => 65_536,
        bytes => bytes,
    }
}

/// The whole wal-index header, read when both of its copies are equal. Two equal states mean the same content of the
/// database: SQLite's page cache relies on the same rule. Where the copies differ, a connection is committing, or died
/// while it committed, and the next snapshot would have to wait for it or to recover the wal-index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalState([u32; STATE_WORDS]);

/// 48 bytes. The last two words are a checksum of the others.
const STATE_WORDS: usize = 12;
const CHECKED_WORDS: usize = 10;
/// The word whose first byte in memory indicates that the header is initialised.
const INITIALISED: usize = 3;

impl WalState {
    /// Returns `None` for words that were read while another connection wrote them, or of an index that is not in use
    /// yet.
    fn whole(first: [u32; STATE_WORDS], second: [u32; STATE_WORDS]) -> Option<Self> {
        let is_initialised = first[INITIALISED].to_ne_bytes()[0] != 0;
        let (checked, sums) = first.split_at(CHECKED_WORDS);
        (first == second && is_initialised && checksum(checked) == sums).then_some(Self(first))
    }

    /// Incremented by every commit; a restart of the WAL keeps it, and only a recovery resets it.
    #[must_use]
    pub fn change(&self) -> u32 {
        self.0[CHANGE / size_of::<u32>()]
    }

    /// Half of the header's checksum: two states of one database almost never have the same.
    #[must_use]
    pub fn stamp(&self) -> u32 {
        self.0[CHECKED_WORDS]
    }
}

/// The offset of a word in one of the two copies.
const fn word_at(copy: usize, word: usize) -> usize {
    (copy * STATE_WORDS + word) * size_of::<u32>()
}

/// The WAL's checksum over words in the machine's byte order
/// (<https://sqlite.org/fileformat2.html#checksum_algorithm>).
fn checksum(words: &[u32]) -> [u32; 2] {
    words.chunks_exact(2).fold([0_u32; 2], |[first, second], pair| {
        let first = first.wrapping_add(pair[0]).wrapping_add(second);
        [first, second.wrapping_add(pair[1]).wrapping_add(first)]
    })
}

/// # Safety
/// `base` is the mapping of the first region of a wal-index, which stays mapped for the call, and `offset` a multiple
/// of 4 in it.
unsafe fn load(base: *mut c_void, offset: usize) -> u32 {
    // SAFETY: as the caller promises; the mapping is page-aligned. Other processes write these words: hence an atomic
    // load.
    unsafe { AtomicU32::from_ptr(base.cast::<u8>().add(offset).cast()) }.load(Ordering::Acquire)
}

/// # Safety
/// As for `load`; `offset` is a multiple of 8.
unsafe fn load_two(base: *mut c_void, offset: usize) -> u64 {
    // SAFETY: as in `load`.
    unsafe { AtomicU64::from_ptr(base.cast::<u8>().add(offset).cast()) }.load(Ordering::Acquire)
}

/// Two words in their order in memory.
fn two([first, second]: [u32; 2]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// The WAL of a connection's main database.
pub struct Wal {
    pub(crate) files: Files,
}

impl Wal {
    /// # Safety
    /// As for `Handle::new`.
    pub(crate) unsafe fn new(db: *mut ffi::sqlite3) -> Self {
        // SAFETY: as the caller promises.
        Self { files: unsafe { Files::new(db) } }
    }

    /// The wal-index header as it is published now, or `None` for a database that is not in WAL mode or whose header is
    /// not mapped. Makes no system call once mapped. Call it only after the connection has read the database.
    #[must_use]
    pub fn header(&self) -> Option<WalHeader> {
        let base = self.index()?;
        // SAFETY: `index` returns an existing mapping, and the offsets below are multiples of 4.
        let load = |offset| unsafe { load(base, offset) };
        Some(WalHeader {
            change: load(CHANGE),
            max_frame: load(MAX_FRAME),
            salts: [load(SALT_1), load(SALT_2)],
            copied: load(COPIED),
            page_bytes: page_bytes(load(PAGE)),
        })
    }

    /// The whole published header. `None` where [`header`](Self::header) returns `None`, while another
    /// connection writes the header, or if one died while it wrote the header.
    #[must_use]
    pub fn state(&self) -> Option<WalState> {
        let base = self.index()?;
        // In this order, as SQLite reads them: SQLite writes them in the opposite order (`walIndexWriteHdr`).
        // SAFETY: `index` returns an existing mapping, and each offset is a multiple of 4.
        let [first, second] = [0, 1].map(|copy| std::array::from_fn(|word| unsafe { load(base, word_at(copy, word)) }));
        WalState::whole(first, second)
    }

    /// Returns true if the published header still equals `state`, in both copies.
    #[must_use]
    pub fn is_state(&self, state: &WalState) -> bool {
        let Some(base) = self.index() else { return false };
        // Two words at once, and no early return between them: the header is nearly always equal.
        let mut differs = 0;
        for (pair, noted) in state.0.as_chunks::<2>().0.iter().enumerate() {
            // SAFETY: `index` returns an existing mapping, and each copy begins at a multiple of 8 and has an even
            // number of words.
            let [first, second] = [0, 1].map(|copy| unsafe { load_two(base, word_at(copy, pair * 2)) });
            let noted = two(*noted);
            differs |= (first ^ noted) | (second ^ noted);
        }
        differs == 0
    }

    /// The whole published header and the values derived from it, as [`state`](Self::state) and
    /// [`header`](Self::header) return them.
    #[must_use]
    pub fn now(&self) -> Option<(WalState, WalHeader)> {
        let state = self.state()?;
        let base = self.index()?;
        let word = |offset: usize| state.0[offset / size_of::<u32>()];
        let header = WalHeader {
            change: word(CHANGE),
            max_frame: word(MAX_FRAME),
            salts: [word(SALT_1), word(SALT_2)],
            // SAFETY: `index` returns an existing mapping, and the offset is a multiple of 4.
            copied: unsafe { load(base, COPIED) },
            page_bytes: page_bytes(word(PAGE)),
        };
        Some((state, header))
    }

    /// The change counter of an attached database. Call it only for a database in WAL mode, after the connection has
    /// read it: for another one SQLite would create a wal-index.
    #[must_use]
    pub fn attached_change(&self, name: &str) -> Option<u32> {
        let name = CString::new(name).ok()?;
        let file = self.files.find_of(&name, ffi::SQLITE_FCNTL_FILE_POINTER)?;
        let base = self.region(file)?;
        // SAFETY: the region was just returned; it stays while the database is attached and in WAL mode.
        Some(unsafe { load(base, CHANGE) })
    }

    /// The address at which the wal-index is mapped, for finding it among the mappings of the process. Only a number:
    /// it does not tell how long the mapping stays.
    #[must_use]
    pub fn index_address(&self) -> Option<usize> {
        self.index().map(|base| base.addr())
    }

    /// SQLite's mapping of the first wal-index region, remembered from an earlier call or requested again.
    ///
    /// It stays until this connection leaves WAL mode or closes: SQLite keeps the address itself for as long, and calls
    /// xShmUnmap nowhere else. After a close this code does not use the address either. Only a `PRAGMA journal_mode`
    /// leaves WAL mode. It can come from three places. Through the rusqlite connection: after that is handed out
    /// nothing is remembered until an exclusive borrow shows that no other code has it any more. As a statement of this
    /// crate: then `run` forgets the mapping. From a user's callback that gets the connection (collation_needed) while
    /// SQLite prepares: then `prepare` and `run` forget the mapping.
    fn index(&self) -> Option<*mut c_void> {
        if !self.files.in_wal_mode() {
            return None;
        }
        self.files.mapping.get().or_else(|| self.ask_for_mapping().inspect(|base| self.files.mapping.remember(*base)))
    }

    fn ask_for_mapping(&self) -> Option<*mut c_void> {
        self.region(self.files.find(File::Database)?)
    }

    /// The first region of the wal-index of an open file, if it is mapped and is shared memory.
    fn region(&self, file: *mut ffi::sqlite3_file) -> Option<*mut c_void> {
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: the file is open and its methods are those of its layer, some of them called through this crate's;
        // xShmMap without extension only returns a region that exists, and stores its address.
        let rc = unsafe {
            let methods = &*(*file).pMethods;
            if methods.iVersion < 2 {
                return None;
            }
            methods.xShmMap?(file, 0, REGION_BYTES, 0, (&raw mut base).cast())
        };
        (rc & 0xff == ffi::SQLITE_OK && !base.is_null()).then_some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> [u32; STATE_WORDS] {
        let mut words = [3_007_000, 0, 7, u32::from_ne_bytes([1, 0, 0, 16]), 5, 2, 11, 12, 13, 14, 0, 0];
        let sums = checksum(&words[..CHECKED_WORDS]);
        words[CHECKED_WORDS..].copy_from_slice(&sums);
        words
    }

    #[test]
    fn a_header_read_while_it_is_written_is_none() {
        assert!(WalState::whole(words(), words()).is_some());
        for word in 0..STATE_WORDS {
            let mut torn = words();
            torn[word] ^= 1;
            assert_eq!(WalState::whole(torn, torn), None, "word {word}");
            assert_eq!(WalState::whole(torn, words()), None, "word {word} of the first copy");
            assert_eq!(WalState::whole(words(), torn), None, "word {word} of the second copy");
        }
        assert_eq!(WalState::whole([0; STATE_WORDS], [0; STATE_WORDS]), None, "not in use yet");
    }
}
