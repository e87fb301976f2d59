//! A large value that is read and written in parts.
//!
//! Owns: the position in the value. Its methods run on the caller's thread, and never block there. Invariant: a blob
//! holds no connection, no transaction and no snapshot between two calls, so it may be kept for as long as its caller
//! likes. Leaves out: using the value, which a worker does.

use std::io::SeekFrom;
use std::sync::Arc;

use crate::api::call::Call;
use crate::api::session::Session;
use crate::connection::run::blobs::{BlobPlace, BlobStep, BlobUse};
use crate::workers::work::Work;
use flatwater_base::error::{Error, ErrorCode, Result};

/// A BLOB or a TEXT of one row, of which parts are read and written, made by [`Session::open_blob`].
///
/// Of a database, each read is of the newest commit, and each write is a transaction of its own. So between two reads
/// another caller may write the value; if it then has another length, or its row is gone, the next call fails. In a
/// [`Transaction`](crate::Transaction) the writes are a part of the transaction, and in a [`Snapshot`](crate::Snapshot)
/// all reads are of one point in time. After the end of the transaction or the snapshot the calls fail.
///
/// A blob keeps the length that it had when it was opened. Making it longer, or NULL, is the task of an UPDATE.
///
/// ```no_run
/// # async fn example(db: flatwater::Database, parts: Vec<Vec<u8>>) -> flatwater::Result<()> {
/// let tx = db.begin().await?;
/// let bytes: i64 = parts.iter().map(|part| part.len() as i64).sum();
/// let rowid: i64 = tx.query_value("INSERT INTO files (data) VALUES (zeroblob(?)) RETURNING id", (bytes,)).await?;
/// let mut blob = tx.open_blob("files", "data", rowid).await?;
/// for part in &parts {
///     blob.write(part).await?;
/// }
/// tx.commit().await?;
/// # Ok(()) }
/// ```
pub struct Blob {
    session: Session,
    place: Arc<BlobPlace>,
    length: usize,
    position: usize,
}

impl Session {
    /// Opens the value of `column` in the row `rowid` of `table`, to read and write parts of it without having all of
    /// it in memory. The value is a BLOB or a TEXT. `table` is a table of the main database, or of an attached one as
    /// `(database, table)`.
    ///
    /// It holds nothing open: see [`Blob`]. A value of some hundred kilobytes is read and written faster by
    /// [`query`](Self::query) and [`execute`](Self::execute).
    ///
    /// # Errors
    /// `RowNotFound` if there is no such row; `Sql` if there is no such table or column, for a view, a virtual table, a
    /// table WITHOUT ROWID or with generated columns, and for another type of value, NULL included; `Busy`, `Io`,
    /// `Closed`.
    pub fn open_blob<'t>(&self, table: impl Into<BlobTable<'t>>, column: &str, rowid: i64) -> Call<Blob> {
        let BlobTable { database, table } = table.into();
        let work = BlobUse::open(database, table, column, rowid).into();
        self.call("open_blob", Ok(work), |answer, caller| {
            let opened = answer.blob()?;
            let session = Session(caller.ok_or_else(Error::closed)?.clone());
            Ok(Blob { session, place: opened.place, length: opened.length, position: 0 })
        })
    }
}

/// The table of a blob: the name of one in the main database, or a pair of an attached database and a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobTable<'t> {
    database: &'t str,
    table: &'t str,
}

impl<'t> From<&'t str> for BlobTable<'t> {
    fn from(table: &'t str) -> Self {
        Self { database: "main", table }
    }
}

impl<'t> From<&'t String> for BlobTable<'t> {
    fn from(table: &'t String) -> Self {
        table.as_str().into()
    }
}

impl<'t> From<(&'t str, &'t str)> for BlobTable<'t> {
    fn from((database, table): (&'t str, &'t str)) -> Self {
        Self { database, table }
    }
}

impl Blob {
    /// Returns its length in bytes, which does not change while it is open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns true if it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns where the next read or write begins.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Sets where the next read or write begins, and returns it. Does not block, because it uses no database.
    ///
    /// # Errors
    /// `Misuse` for a position before the beginning or after the end. The position stays as it was.
    pub fn seek(&mut self, to: SeekFrom) -> Result<usize> {
        let position = match to {
            SeekFrom::Start(at) => usize::try_from(at).ok(),
            SeekFrom::End(by) => moved(self.length, by),
            SeekFrom::Current(by) => moved(self.position, by),
        };
        let Some(position) = position.filter(|position| *position <= self.length) else {
            let message = format!("the position is not in the blob, which has {} bytes", self.length);
            return Err(Error::new(ErrorCode::BlobBounds, message).in_operation("seek"));
        };
        self.position = position;
        Ok(position)
    }

    /// Reads as many bytes as there are into `buffer`, and returns how many. There are fewer than it has space for only
    /// at the end of the blob. If the future is dropped, the position stays as it was.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.read_at(self.position, buffer.len()).await?;
        buffer[..read.len()].copy_from_slice(&read);
        self.position += read.len();
        Ok(read.len())
    }

    /// Writes all of `bytes`, over those that are there. If the future is dropped, the position stays as it was; what a
    /// write does then is said at [`Session::execute`](crate::Session::execute).
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(self.position, bytes.to_vec()).await?;
        self.position += bytes.len();
        Ok(())
    }

    /// Reads up to so many bytes from this position on, and fewer only at the end of the blob. Does not move the
    /// position.
    ///
    /// # Errors
    /// `Misuse` if the value has another length than when it was opened; `RowNotFound` if its row is gone; and as
    /// [`Session::query`](crate::Session::query).
    pub fn read_at(&self, position: usize, bytes: usize) -> Call<Vec<u8>> {
        let work = self.work(BlobStep::Read { at: position, bytes, length: self.length });
        self.session.call("read_blob", Ok(work), |answer, _| answer.blob().map(|used| used.bytes))
    }

    /// Writes all bytes from this position on. Does not move the position.
    ///
    /// No trigger runs and no CHECK constraint is checked (<https://sqlite.org/c3ref/blob_open.html>). Live queries
    /// that read the column run again.
    ///
    /// # Errors
    /// `Misuse` if the write would end after the end of the blob, if the value has another length than when it was
    /// opened, in a snapshot, and for a read-only database; `RowNotFound` if its row is gone; `Sql` if the column has
    /// an index or is a foreign key; and as [`Session::execute`](crate::Session::execute).
    pub fn write_at(&self, position: usize, bytes: impl Into<Vec<u8>>) -> Call<()> {
        let work = self.work(BlobStep::Write { at: position, bytes: bytes.into(), length: self.length });
        // A blob may outlive the borrow of its transaction, and be used while a nested one is open. So the call is not one that is
        // made now (`Caller::now`), which would take the nested one for ended and undo it: it is refused.
        Call::new(self.session.0.clone(), "write_blob", Ok(work), |answer, _| answer.blob().map(drop))
    }

    fn work(&self, step: BlobStep) -> Work {
        BlobUse { place: self.place.clone(), step }.into()
    }
}

fn moved(from: usize, by: i64) -> Option<usize> {
    isize::try_from(by).ok().and_then(|by| from.checked_add_signed(by))
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blob").field("length", &self.length).field("position", &self.position).finish_non_exhaustive()
    }
}
