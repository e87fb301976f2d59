//! The only way a row leaves SQLite.
//!
//! Owns: the `Sink` trait. A sink is called on the thread that steps the statement and must not wait. Leaves out: the
//! sinks themselves (row block, JSON, digest), which live with the engine.

/// Whether the step loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Step to the next row.
    Continue,
    /// Stop here; the statement is reset.
    Stop,
}

/// Takes the cells of a result, row by row and left to right.
///
/// For every row the loop calls one cell method per column and then [`row_done`](Sink::row_done). Borrowed bytes live
/// for that call only. A sink that panics leaves a reset statement behind; the panic goes on to the caller of `run`.
pub trait Sink {
    /// A NULL.
    fn null(&mut self);
    /// An INTEGER.
    fn integer(&mut self, value: i64);
    /// A REAL.
    fn real(&mut self, value: f64);
    /// A TEXT in UTF-8 as SQLite stores it, which does not have to be valid.
    fn text(&mut self, value: &[u8]);
    /// A BLOB.
    fn blob(&mut self, value: &[u8]);
    /// The row is complete.
    fn row_done(&mut self) -> Flow;
}

/// A sink that drops what it is given.
#[derive(Debug, Default, Clone, Copy)]
pub struct Discard;

impl Sink for Discard {
    fn null(&mut self) {}
    fn integer(&mut self, _: i64) {}
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        Flow::Continue
    }
}
