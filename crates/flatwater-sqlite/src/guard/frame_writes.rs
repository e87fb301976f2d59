//! Writing a frame of a WAL with one system call instead of two.
//!
//! Owns: the header of a frame that SQLite wrote, until SQLite writes the frame's page. Called by the file methods, on the thread
//! that is inside a SQLite call. SQLite writes the two right after each other (`walWriteOneFrame`), and nothing depends on their
//! order: other connections read a frame after its commit is published in the wal-index, and after a crash it counts if its
//! checksum, which covers both, is right. Invariants: what comes after a header and is not the write of its page writes the
//! header first, if it can look at the file or publish what is in it; so whoever looks finds what SQLite wrote. A header that
//! SQLite read just before, with its page, is written again alone (`walRewriteChecksums`), and is never held. Leaves out: which
//! files are WALs (`file_methods`).

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::slice;

use rusqlite::ffi;

/// The length of a frame's header (<https://sqlite.org/fileformat2.html#the_write_ahead_log>).
const HEADER_BYTES: usize = 24;
/// A longer page is not worth copying it.
const LONGEST_PAGE: usize = 16 << 10;

/// SQLite's own method for writing.
pub(crate) type Write = unsafe extern "C" fn(*mut ffi::sqlite3_file, *const c_void, c_int, ffi::sqlite3_int64) -> c_int;

/// A header that SQLite wrote, and that is not in the file yet.
#[derive(Clone, Copy)]
struct Held {
    file: *mut ffi::sqlite3_file,
    offset: ffi::sqlite3_int64,
    header: [u8; HEADER_BYTES],
    write: Write,
}

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
    /// Where this thread read a WAL last, if it has not written since.
    static READ_AT: Cell<Option<(*mut ffi::sqlite3_file, ffi::sqlite3_int64)>> = const { Cell::new(None) };
    /// For a header and its page.
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes, or holds what is to be written if it is the header of a frame.
///
/// # Safety
/// The file is open, `data` has so many bytes, and `own` is SQLite's method for the file.
pub(crate) unsafe fn write(
    own: Write,
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let length = usize::try_from(bytes).unwrap_or(0);
    let was_read = READ_AT.take() == Some((file, offset));
    if let Some(held) = HELD.get()
        && held.file == file
        && held.offset + HEADER_BYTES as ffi::sqlite3_int64 == offset
        && (HEADER_BYTES + 1..=LONGEST_PAGE).contains(&length)
    {
        HELD.set(None);
        #[cfg(test)]
        tests::JOINED.set(tests::JOINED.get() + 1);
        // SAFETY: as the caller promises.
        return held.write_with(unsafe { slice::from_raw_parts(data.cast(), length) });
    }
    let code = write_held();
    if code != ffi::SQLITE_OK {
        return code;
    }
    #[cfg(test)]
    tests::AGAIN.set(tests::AGAIN.get() + u64::from(was_read && length == HEADER_BYTES));
    if length == HEADER_BYTES && !was_read {
        let mut header = [0; HEADER_BYTES];
        // SAFETY: as the caller promises.
        header.copy_from_slice(unsafe { slice::from_raw_parts(data.cast(), HEADER_BYTES) });
        HELD.set(Some(Held { file, offset, header, write: own }));
        return ffi::SQLITE_OK;
    }
    // SAFETY: as the caller promises.
    unsafe { own(file, data, bytes, offset) }
}

/// Called before a WAL is read there.
pub(crate) fn reads(file: *mut ffi::sqlite3_file, offset: ffi::sqlite3_int64) -> c_int {
    READ_AT.set(Some((file, offset)));
    write_held()
}

/// Writes the header that this thread holds, if there is one. Called before any other method.
pub(crate) fn write_held() -> c_int {
    HELD.take().map_or(ffi::SQLITE_OK, |held| {
        #[cfg(test)]
        tests::ALONE.set(tests::ALONE.get() + 1);
        held.write_with(&[])
    })
}

impl Held {
    /// Writes the header, and the page after it.
    fn write_with(self, page: &[u8]) -> c_int {
        // A thread that ends may have given its buffer back already.
        let written = FRAME.try_with(|frame| self.write_in(&mut frame.borrow_mut(), page));
        written.unwrap_or_else(|_| self.write_in(&mut Vec::new(), page))
    }

    fn write_in(&self, frame: &mut Vec<u8>, page: &[u8]) -> c_int {
        frame.clear();
        if frame.try_reserve_exact(HEADER_BYTES + page.len()).is_err() {
            return ffi::SQLITE_IOERR_NOMEM;
        }
        frame.extend_from_slice(&self.header);
        frame.extend_from_slice(page);
        let bytes = c_int::try_from(frame.len()).unwrap_or(c_int::MAX);
        // SAFETY: the file was open when the header was held, no method has run on this thread since, and the buffer has so
        // many bytes.
        unsafe { (self.write)(self.file, frame.as_ptr().cast(), bytes, self.offset) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::OpenFlags;

    use super::*;
    use crate::Sqlite;

    thread_local! {
        /// The frames that were written with one call, and the headers that were held and then written alone.
        pub(super) static JOINED: Cell<u64> = const { Cell::new(0) };
        pub(super) static ALONE: Cell<u64> = const { Cell::new(0) };
        /// The headers that were written again.
        pub(super) static AGAIN: Cell<u64> = const { Cell::new(0) };
    }

    /// Opens a database in WAL mode that copies nothing out of the WAL, and spills its cache early.
    fn open(path: &Path, page_bytes: usize, synchronous: &str) -> Sqlite {
        let mut connection = Sqlite::open(path, OpenFlags::default(), None).unwrap();
        let settings = format!(
            "PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 10; PRAGMA cache_spill = 10;
             CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE INDEX t_v ON t (v)"
        );
        connection.execute_batch(&settings).unwrap();
        assert_eq!(connection.read_journal_mode().unwrap(), "wal");
        connection.files().guard();
        assert!(connection.files().guarded().is_some());
        connection
    }

    /// Returns the rows of a copy of the files, as after a crash: all that counts is what is in the WAL.
    fn recovered(path: &Path) -> (i64, i64) {
        let copy = tempfile::tempdir().unwrap();
        let to = copy.path().join("copy.db");
        std::fs::copy(path, &to).unwrap();
        std::fs::copy(path.with_extension("db-wal"), copy.path().join("copy.db-wal")).unwrap();
        let plain = rusqlite::Connection::open(&to).unwrap();
        let check: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        plain
            .query_row("SELECT count(*), ifnull(sum(length(v)), 0) FROM t", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    }

    #[test]
    fn what_is_committed_is_in_the_wal_whatever_was_spilled_or_written_again() {
        for (page_bytes, synchronous) in
            [(512, "NORMAL"), (4096, "NORMAL"), (4096, "FULL"), (16384, "NORMAL"), (32768, "FULL")]
        {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("test.db");
            let connection = open(&path, page_bytes, synchronous);
            [&JOINED, &ALONE, &AGAIN].iter().for_each(|count| count.set(0));
            let insert = "INSERT INTO t (v) SELECT randomblob(300) FROM generate_series";
            let insert = insert.replace(
                "generate_series",
                "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT i FROM n)",
            );
            for round in 0..6 {
                connection.execute_batch(&format!("BEGIN; {insert}; SAVEPOINT s; {insert}")).unwrap();
                // Pages that were spilled change again, so that their frames are written again, and then their headers.
                connection.execute_batch("UPDATE t SET v = v || 'x' WHERE id % 7 = 0; ROLLBACK TO s").unwrap();
                connection.execute_batch("UPDATE t SET v = v || 'y' WHERE id % 5 = 0; RELEASE s").unwrap();
                connection.execute_batch(if round % 3 == 2 { "ROLLBACK" } else { "COMMIT" }).unwrap();
                let rows =
                    connection.rusqlite().query_row("SELECT count(*), ifnull(sum(length(v)), 0) FROM t", [], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                    });
                assert_eq!(recovered(&path), rows.unwrap(), "{page_bytes} {synchronous} {round}");
                if round == 3 {
                    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
                }
            }
            assert!(HELD.get().is_none());
            let (joined, alone, again) = (JOINED.get(), ALONE.get(), AGAIN.get());
            let counts = format!("{page_bytes}: {joined} frames with one call, {alone} headers alone, {again} again");
            assert!(again > 0, "{counts}");
            if page_bytes <= LONGEST_PAGE {
                assert!(joined > 100 && alone == 0, "{counts}");
            } else {
                assert!(joined == 0 && alone > 0, "{counts}");
            }
        }
    }

    #[test]
    fn a_header_whose_page_does_not_follow_is_written_before_anything_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let connection = open(&path, 4096, "NORMAL");
        let [_, wal] = connection.files().guarded().unwrap();
        let bytes =
            |at: usize, length: usize| std::fs::read(path.with_extension("db-wal")).unwrap()[at..][..length].to_vec();
        // SAFETY: the file is open, and has methods.
        let methods = unsafe { &*(*wal).pMethods };
        let end = bytes(0, 0).len() + connection.files().wal_bytes().unwrap() as usize;
        let hold = |content: u8, at: usize| {
            let (data, length) = ([content; HEADER_BYTES], HEADER_BYTES as c_int);
            // SAFETY: as above, and the data has that length.
            assert_eq!(unsafe { methods.xWrite.unwrap()(wal, data.as_ptr().cast(), length, at as i64) }, 0);
            assert!(HELD.get().is_some());
        };
        hold(1, end);
        let mut size = 0;
        // SAFETY: as above.
        assert_eq!(unsafe { methods.xFileSize.unwrap()(wal, &raw mut size) }, 0);
        assert_eq!((size as usize, bytes(end, 24)), (end + 24, vec![1; 24]));
        hold(2, end);
        // SAFETY: as above.
        assert_eq!(unsafe { methods.xSync.unwrap()(wal, ffi::SQLITE_SYNC_NORMAL) }, 0);
        assert_eq!(bytes(end, 24), vec![2; 24]);
        hold(3, end);
        hold(4, end + 100);
        assert_eq!(bytes(end, 24), vec![3; 24], "another header");
        let mut read = [0_u8; HEADER_BYTES];
        // SAFETY: as above, and the buffer has that length.
        let code =
            unsafe { methods.xRead.unwrap()(wal, read.as_mut_ptr().cast(), HEADER_BYTES as c_int, end as i64 + 100) };
        assert_eq!((code, read), (0, [4; HEADER_BYTES]));
        // One that was read just before is written again alone.
        let data = [5_u8; HEADER_BYTES];
        // SAFETY: as above.
        unsafe { methods.xWrite.unwrap()(wal, data.as_ptr().cast(), HEADER_BYTES as c_int, end as i64 + 100) };
        assert!(HELD.get().is_none());
        assert_eq!(bytes(end + 100, 24), vec![5; 24]);
        hold(6, end);
        // SAFETY: as above.
        assert_eq!(unsafe { methods.xTruncate.unwrap()(wal, end as i64) }, 0);
        assert_eq!(connection.files().wal_bytes(), Some(end as u64));
    }
}
