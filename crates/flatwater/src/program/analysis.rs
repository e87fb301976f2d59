//! What a program teaches: whether it is short, and how it writes.
//!
//! Owns: the analysis of one program. Pure. Leaves out: when a program is looked at (`connection::learnt`), and what it looks
//! like (`graph`).

use std::collections::HashSet;

use flatwater_sqlite::{Op, Program};

use super::graph::{Graph, Shape, Strange, shape};

/// How a read may stay on its caller's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlineRead {
    /// It ends by itself.
    Acyclic,
    /// It ends because the progress handler ends it.
    Bounded,
}

/// A write that may run on its caller's thread: without a loop, to one ordinary table of the main database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlineWrite {
    /// It may change or delete a row that was there, and must then free what is left of a long one.
    pub(crate) changes_existing_rows: bool,
}

/// The analysis of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramAnalysis {
    pub(crate) shape: Shape,
    pub(crate) write: Option<InlineWrite>,
}

impl ProgramAnalysis {
    pub(crate) fn of(programs: &[Program], strange: &Strange) -> Self {
        let shape = if reads_attached(programs) { Shape::Opaque("attached".into()) } else { shape(programs, strange) };
        let write = if shape == Shape::Acyclic { inline_write(&programs[0]) } else { None };
        Self { shape, write }
    }

    /// Of a program that was not seen.
    pub(crate) fn opaque(why: &str) -> Self {
        Self { shape: Shape::Opaque(why.into()), write: None }
    }
}

/// `UPDATE` in P5 of an `Insert`, and `P2 is a register` in P5 of an `OpenWrite`.
const IS_UPDATE: i32 = 0x04;
const P2_IS_REGISTER: i32 = 0x10;
/// The root page of the schema table.
const SCHEMA_ROOT: i32 = 1;

/// Whether it touches an attached file. Nothing is known of how long that takes: its pages are read whatever the time.
fn reads_attached(programs: &[Program]) -> bool {
    let (main, temp) = (0, 1);
    programs.iter().flatten().any(|op| &*op.opcode == "Transaction" && op.p1 != main && op.p1 != temp)
}

/// How a program without a loop writes, if it writes one table of the main database and its indexes.
fn inline_write(program: &Program) -> Option<InlineWrite> {
    let named = |name: &'static str| program.iter().filter(move |op| &*op.opcode == name);
    let elsewhere = |op: &Op| op.p1 != 0 && op.p2 != 0;
    if named("OpenWrite").next().is_none() || named("Transaction").any(elsewhere) {
        return None;
    }
    let ordinary = |op: &Op| op.p3 == 0 && op.p2 != SCHEMA_ROOT && op.p5 & P2_IS_REGISTER == 0;
    // A table with rowids tells its number of columns, an index and a table without rowids its key.
    let is_table = |op: &&Op| op.p4.as_deref().is_some_and(|p4| !p4.starts_with("k("));
    if !named("OpenWrite").all(ordinary) || named("OpenWrite").filter(is_table).nth(1).is_some() {
        return None;
    }
    Some(InlineWrite { changes_existing_rows: changes_existing_rows(program) })
}

/// Whether a row that is there can be deleted, updated or written over. An `Insert` writes over the row with its rowid:
/// so it counts if it is reached after a seek that found one.
fn changes_existing_rows(program: &Program) -> bool {
    let writes: HashSet<i32> = program.iter().filter(|op| &*op.opcode == "OpenWrite").map(|op| op.p1).collect();
    let is_write = |op: &Op| writes.contains(&op.p1);
    let inserts = |op: &Op| is_write(op) && matches!(&*op.opcode, "Insert" | "IdxInsert");
    let graph = Graph::of(program);
    let reaches_insert = |found: usize| {
        found < program.len()
            && (0..program.len()).any(|at| inserts(&program[at]) && (at == found || graph.reaches(found, at)))
    };
    program.iter().enumerate().any(|(at, op)| match &*op.opcode {
        "Delete" | "IdxDelete" => true,
        "Insert" if inserts(op) && op.p5 & IS_UPDATE != 0 => true,
        "Found" if is_write(op) => reaches_insert(usize::try_from(op.p2).unwrap_or(at)),
        "NotExists" | "SeekRowid" | "NotFound" | "NoConflict" | "IfNoHope" if is_write(op) => reaches_insert(at + 1),
        "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" | "Last" | "Rewind" if is_write(op) => reaches_insert(at + 1),
        _ => false,
    })
}
