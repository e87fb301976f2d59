//! The whole rusqlite connection, lent to a closure of the user as `&mut`.
//!
//! Owns: lending it, and finding out whether the same connection came back: the closure may put another one in its
//! place (`std::mem::swap`) and keep this one, on any thread. Runs on the thread that has the connection. Invariant: a
//! connection that did not come back is never touched again, and what SQLite refers to of it is never freed. Leaves out:
//! restoring what the closure changed (`connection`).

use std::mem::ManuallyDrop;

use super::Sqlite;
use crate::error::Result;

impl Sqlite {
    /// Runs `f` with the whole rusqlite connection. Returns the connection too, or `None` if `f` took it away.
    ///
    /// # Errors
    /// SQLite's error before `f` ran; then the connection is closed.
    pub fn lend<T>(mut self, f: impl FnOnce(&mut rusqlite::Connection) -> T) -> Result<(T, Option<Self>)> {
        // As long as a statement of ours lives, SQLite refuses to close the connection
        // (<https://sqlite.org/c3ref/close.html>), so the closure cannot free it, and no other connection can get its
        // address.
        let anchor = self.prepare("SELECT 1")?.map(|prepared| prepared.id);
        self.wal.files.mapping.lend();
        self.hooks().commits.forget();
        let mut lent = ManuallyDrop::new(self);
        let Some(inner) = lent.inner.as_mut() else { unreachable!("it is None only inside of `drop`") };
        let result = f(inner);
        // SAFETY: the handle is only compared.
        let handle = unsafe { inner.handle() };
        if handle != lent.handle.raw() {
            // What `f` left in its place is not ours and is closed. Statements and hooks stay allocated.
            drop(lent.inner.take());
            return Ok((result, None));
        }
        let mut connection = ManuallyDrop::into_inner(lent);
        connection.wal.files.mapping.take_back();
        if let Some(anchor) = anchor {
            connection.statement(anchor).finalize();
        }
        Ok((result, Some(connection)))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::*;

    fn open() -> Sqlite {
        Sqlite::open(std::path::Path::new(":memory:"), OpenFlags::default(), None).unwrap()
    }

    fn other() -> rusqlite::Connection {
        rusqlite::Connection::open_in_memory().unwrap()
    }

    #[test]
    fn a_connection_that_came_back_is_used_on() {
        let (changed, back) = open().lend(|c| c.execute_batch("CREATE TABLE t (a)").is_ok()).unwrap();
        let back = back.unwrap();
        assert!(changed && back.execute_batch("INSERT INTO t VALUES (1)").is_ok());
    }

    #[test]
    fn a_connection_that_was_taken_stays_its_takers() {
        let (taken, back) = open().lend(|c| std::mem::replace(c, other())).unwrap();
        assert!(back.is_none());
        taken.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
        assert!(taken.close().is_err(), "a statement of ours still lives");
    }

    #[test]
    fn a_connection_that_was_closed_for_another_is_not_mistaken_for_it() {
        for _ in 0..100 {
            let ((), back) = open().lend(|c| drop(std::mem::replace(c, other()))).unwrap();
            assert!(back.is_none());
        }
    }
}
