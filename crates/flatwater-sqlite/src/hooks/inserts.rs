//! Whether a row was inserted into a table, according to the update hook.
//!
//! Owns: the watched table, while it is watched, and what was inserted into it. Used by the thread that is inside a SQLite
//! call on the connection. Invariant: inserts into a virtual table are seen in the tables where FTS and R-Tree keep one row for
//! each of its rows. Leaves out: the hook (`hooks`).

use std::cell::{Cell, RefCell};

/// Whether a table got a new row.
#[derive(Default)]
pub struct Inserts {
    table: RefCell<Vec<u8>>,
    /// More inserts would tell more.
    is_watching: Cell<bool>,
    seen: Cell<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    /// A row was inserted, in a table that is not virtual.
    row: bool,
    /// A row of a virtual table was inserted, and one whose rowid is 0.
    virtual_row: bool,
    virtual_row_0: bool,
}

impl Inserts {
    /// Starts to watch for an insert into `table`, which may be a virtual table; [`saw`](Self::saw) returns whether there
    /// was one.
    pub fn watch(&self, table: &str) {
        let mut watched = self.table.borrow_mut();
        watched.clear();
        watched.extend_from_slice(table.as_bytes());
        self.seen.set(Seen::default());
        self.is_watching.set(true);
    }

    /// Returns true if `note` is to be called for inserts.
    pub(crate) fn is_watching(&self) -> bool {
        self.is_watching.get()
    }

    /// Records that a row was inserted into a table.
    pub(crate) fn note(&self, table: &[u8], rowid: i64) {
        let watched = self.table.borrow();
        let Some((start, end)) = table.split_at_checked(watched.len()) else { return };
        if !watched.eq_ignore_ascii_case(start) {
            return;
        }
        let kept_in: [&[u8]; 3] = [b"_content", b"_docsize", b"_rowid"];
        let mut seen = self.seen.get();
        if end.is_empty() {
            seen.row = true;
            self.is_watching.set(false);
        } else if kept_in.contains(&end) {
            seen.virtual_row = true;
            seen.virtual_row_0 |= rowid == 0;
        }
        self.seen.set(seen);
    }

    /// Returns true if the table passed to [`watch`](Self::watch) got a row since then, given that `rowid` is now that of the connection's last insert. A command
    /// that is written as an insert (<https://sqlite.org/fts5.html#special_insert_commands>) sets that rowid to 0, and
    /// may rewrite rows.
    #[must_use]
    pub fn saw(&self, rowid: i64) -> bool {
        self.is_watching.set(false);
        let Seen { row, virtual_row, virtual_row_0 } = self.seen.get();
        row || if rowid == 0 { virtual_row_0 } else { virtual_row }
    }
}
