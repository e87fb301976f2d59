//! The program of a text, as EXPLAIN lists it.
//!
//! Owns: the listing, and the boundary between the main program and the subprograms of triggers and foreign-key actions.
//! Runs on the thread that uses the connection. Invariants: parameters stay unbound and no part of the text runs; a listing
//! is run as soon as it is prepared, and ended before `explain` returns. Leaves out: the meaning of a program.

use std::ffi::{CStr, c_int};

use rusqlite::ffi;

use super::Sqlite;
use crate::error::{Error, Result};
use crate::hooks::authorizer::AuthEvent;
use crate::statements::statement_start::statement_start;

/// One instruction of a program (<https://sqlite.org/opcode.html>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The name of the opcode, such as `SeekRowid`.
    pub opcode: Box<str>,
    /// The operands; their meaning depends on the opcode.
    pub p1: i32,
    /// Often an address to jump to.
    pub p2: i32,
    /// See `p1`.
    pub p3: i32,
    /// What the fourth operand points to, as text: a function and its number of arguments, a key with its collations, a
    /// table.
    pub p4: Option<Box<str>>,
    /// The flags; their meaning depends on the opcode.
    pub p5: i32,
}

/// The instructions of one program. An instruction's address is its index.
pub type Program = Vec<Op>;

impl Sqlite {
    /// The programs of the one statement of `sql`: its own first, then each subprogram once. Addresses are those of the
    /// program that contains the instruction. Blocks for as long as a prepare does.
    ///
    /// SQLite asks the current policy as for any prepare; its verdicts and the events are not kept. SQLite counts the
    /// listing of a write as a statement that changed nothing: `changes()` is 0 afterwards. PRAGMAs may act while they
    /// are prepared, so they must not be explained.
    ///
    /// # Errors
    /// SQLite's error; [`Error::StaleStatement`] if there is no statement.
    pub fn explain(&mut self, sql: &str) -> Result<Vec<Program>> {
        Ok(self.explain_if(sql, |_| true)?.unwrap_or_default())
    }

    /// Like [`explain`](Self::explain), but only if `wanted` returns true for the authorizer's events of the text, its
    /// triggers and its views. Otherwise returns `None` and leaves `changes()` unchanged.
    ///
    /// # Errors
    /// As [`explain`](Self::explain).
    pub fn explain_if(&mut self, sql: &str, wanted: impl FnOnce(&[AuthEvent]) -> bool) -> Result<Option<Vec<Program>>> {
        let statement = &sql[statement_start(sql)..];
        let listing = self.prepare(&format!("EXPLAIN {statement}"))?.ok_or(Error::StaleStatement)?;
        let raw = self.statement(listing.id).compiled()?.raw;
        // Nothing may run in between: a listing points into the schema, and does not check whether the schema is still
        // the same.
        let programs = wanted(&listing.events).then(|| {
            // SAFETY: just prepared, not stepped, and used here alone; the connection is borrowed, so nothing ran
            // since.
            unsafe { list(raw) }
        });
        self.statement(listing.id).finalize();
        programs.transpose().map_err(|code| self.handle.error(code))
    }
}

/// Steps a listing to its end. The addresses of a program count from 0, so an address 0 begins the next program.
///
/// # Safety
/// `raw` is an EXPLAIN statement, not stepped, on a connection that only the caller uses and on which nothing ran since
/// the statement was prepared.
unsafe fn list(raw: *mut ffi::sqlite3_stmt) -> std::result::Result<Vec<Program>, c_int> {
    let mut programs = Vec::new();
    loop {
        // SAFETY: as the caller promises.
        match unsafe { ffi::sqlite3_step(raw) } {
            ffi::SQLITE_ROW => {
                // SAFETY: the statement is on a row.
                let (address, op) = unsafe { (ffi::sqlite3_column_int(raw, 0), op(raw)) };
                if address == 0 {
                    programs.push(Program::new());
                }
                if let Some(program) = programs.last_mut() {
                    program.push(op);
                }
            }
            ffi::SQLITE_DONE => return Ok(programs),
            code => return Err(code),
        }
    }
}

/// # Safety
/// `raw` is a listing that is on a row: address, opcode, p1 to p5, comment.
unsafe fn op(raw: *mut ffi::sqlite3_stmt) -> Op {
    // SAFETY: as the caller promises.
    unsafe {
        Op {
            opcode: text(raw, 1).unwrap_or_default(),
            p1: ffi::sqlite3_column_int(raw, 2),
            p2: ffi::sqlite3_column_int(raw, 3),
            p3: ffi::sqlite3_column_int(raw, 4),
            p4: text(raw, 5),
            p5: ffi::sqlite3_column_int(raw, 6),
        }
    }
}

/// # Safety
/// `raw` is on a row that has this column.
unsafe fn text(raw: *mut ffi::sqlite3_stmt, column: c_int) -> Option<Box<str>> {
    // SAFETY: the text is null or NUL-terminated and lives until the next step; it is copied here.
    unsafe {
        let text = ffi::sqlite3_column_text(raw, column);
        (!text.is_null()).then(|| CStr::from_ptr(text.cast()).to_string_lossy().into())
    }
}
