//! The analysis of a bytecode program: whether it is short, and how it writes.
//!
//! Owns: the analysis of one program. Pure. Leaves out: when a program is analysed (`connection::learn::analyse`), and its
//! control flow (`graph`).

use std::collections::HashSet;

use flatwater_sqlite::{Op, Program};

use super::graph::{Graph, Shape, Strange, shape};

/// Why an inline run ends soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The program has no loop, so it ends by itself.
    Acyclic,
    /// The progress handler ends it.
    Bounded,
}

/// A write that may run inline: a program that writes one ordinary table of the main database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineWrite {
    /// How it ends.
    pub ending: Ending,
    /// The write may change or delete an existing row. If that row is long, SQLite must then free its overflow pages.
    pub changes_existing_rows: bool,
    /// After its first change of a b-tree nothing but such changes follows. So the write either fails before it has changed
    /// anything, or because of the file system, the memory or a damaged file.
    pub fails_before_changes: bool,
    /// Its one loop scans a table or an index from one end to the other, once.
    pub scans: bool,
}

/// The analysis of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAnalysis {
    /// How long it may run.
    pub shape: Shape,
    /// Of a write that may run on its caller's thread.
    pub write: Option<InlineWrite>,
    /// The program passes over all pages of a b-tree in one instruction. Those in the cache are passed over in any case; the
    /// first one that must be read after the time of an inline run is over ends it.
    pub counts_all: bool,
    /// The program calls a function of which only its history shows whether it is short, and which may need a lock of its host.
    pub calls_timed: bool,
}

/// `SELECT count(*)` of a table. SQLite interrupts it from another thread only.
const COUNT: &str = "Count";

impl ProgramAnalysis {
    /// Analyses a statement and the programs that it calls.
    pub fn of(programs: &[Program], strange: &Strange) -> Self {
        let shape = if reads_attached(programs) { Shape::Opaque("attached".into()) } else { shape(programs, strange) };
        let counts_all = programs.iter().flatten().any(|op| &*op.opcode == COUNT);
        let is_timed = |op: &Op| op.p4.as_deref().is_some_and(|p4| strange.timed.contains(p4));
        let calls_timed = programs.iter().flatten().any(is_timed);
        let mut analysis = Self { shape, write: None, counts_all, calls_timed };
        let ending = analysis.ending().filter(|_| !analysis.needs_history());
        analysis.write = ending.and_then(|ending| inline_write(&programs[0], ending));
        analysis
    }

    /// Returns why an inline run of the program ends soon; `None` if that is not known.
    pub fn ending(&self) -> Option<Ending> {
        match self.shape {
            Shape::Acyclic => Some(Ending::Acyclic),
            Shape::Bounded => Some(Ending::Bounded),
            Shape::Opaque(_) => None,
        }
    }

    /// Returns true if only its history shows whether it is short.
    pub fn needs_history(&self) -> bool {
        self.counts_all || self.calls_timed
    }

    /// Returns the analysis of a program that was not read, for the reason `why`.
    pub fn opaque(why: &str) -> Self {
        Self { shape: Shape::Opaque(why.into()), write: None, counts_all: false, calls_timed: false }
    }
}

/// The flags in P5: of an insert of a row, that it counts as a change; of an `Insert`, that it is an UPDATE's; of an
/// `OpenWrite`, that P2 is a register.
const IS_COUNTED: i32 = 0x01;
const IS_UPDATE: i32 = 0x04;
const P2_IS_REGISTER: i32 = 0x10;
/// The root page of the schema table.
const SCHEMA_ROOT: i32 = 1;

/// Returns true if the program uses an attached file. It is then not known how long it takes, because pages of attached
/// files are read whatever the time limit.
fn reads_attached(programs: &[Program]) -> bool {
    let (main, temp) = (0, 1);
    programs.iter().flatten().any(|op| &*op.opcode == "Transaction" && op.p1 != main && op.p1 != temp)
}

/// Returns how a program writes, or `None` if it does not write exactly one table of the main database and its indexes.
fn inline_write(program: &Program, ending: Ending) -> Option<InlineWrite> {
    let named = |name: &'static str| program.iter().filter(move |op| &*op.opcode == name);
    let elsewhere = |op: &Op| op.p1 != 0 && op.p2 != 0;
    if named("OpenWrite").next().is_none() || named("Transaction").any(elsewhere) {
        return None;
    }
    let ordinary = |op: &Op| op.p3 == 0 && op.p2 != SCHEMA_ROOT && op.p5 & P2_IS_REGISTER == 0;
    // P4 is the number of columns for a table with rowids, and the key for an index or a table without rowids.
    let is_table = |op: &&Op| op.p4.as_deref().is_some_and(|p4| !p4.starts_with("k("));
    if !named("OpenWrite").all(ordinary) || named("OpenWrite").filter(is_table).nth(1).is_some() {
        return None;
    }
    Some(InlineWrite {
        ending,
        changes_existing_rows: changes_existing_rows(program),
        fails_before_changes: fails_before_changes(program),
        scans: ending == Ending::Bounded && scans(program),
    })
}

/// Returns true if no instruction that may report a violation, or find a value too long, is reached after a change.
/// Violations of foreign keys that are counted (`FkCounter`) are reported at the end.
fn fails_before_changes(program: &Program) -> bool {
    let changes = |op: &Op| matches!(&*op.opcode, "Delete" | "IdxDelete" | "IdxInsert" | "Insert");
    let cannot_fail = |op: &Op| match &*op.opcode {
        "Close" | "Copy" | "Goto" | "Integer" | "Noop" | "Null" | "SCopy" => true,
        "Halt" => op.p1 == 0,
        _ => changes(op),
    };
    let graph = Graph::of(program);
    let fails_after =
        |at: usize| (0..program.len()).any(|next| graph.reaches(at, next) && !cannot_fail(&program[next]));
    let counts_violations = program.iter().any(|op| &*op.opcode == "FkCounter");
    !counts_violations && !(0..program.len()).any(|at| changes(&program[at]) && fails_after(at))
}

/// Returns true if the program has one loop, which scans a table or an index from one end to the other: it has as many passes
/// as there are entries, whatever values are bound, and no pass calls a function. `WHERE id < ?` leaves its loop early, and
/// `WHERE ? AND v = ?` may not enter it.
fn scans(program: &Program) -> bool {
    let graph = Graph::of(program);
    let is_inside: Vec<bool> = (0..program.len()).map(|at| graph.reaches(at, at)).collect();
    let is_step = |at: &usize| is_inside[*at] && matches!(&*program[*at].opcode, "Next" | "Prev");
    let steps: Vec<usize> = (0..program.len()).filter(is_step).collect();
    let [step] = steps[..] else { return false };
    // A rowid that is NULL does not occur; an error ends all.
    let is_usual = |from: usize, to: usize| {
        let fails = &*program[to].opcode == "Halt" && program[to].p1 != 0;
        from == step || fails || &*program[from].opcode == "IsNull"
    };
    let leaves_early = |from: usize, to: usize| is_inside[from] && !is_inside[to] && !is_usual(from, to);
    let is = |at: usize, opcodes: &[&str]| opcodes.contains(&&*program[at].opcode);
    let is_of_cursor = |at: usize| program[at].p1 == program[step].p1;
    let begins = |at: usize| is_of_cursor(at) && is(at, &["Rewind", "Last"]);
    let lookups = ["Found", "NotFound", "NotExists", "NoConflict", "IfNoHope", "NewRowid"];
    let moves = |at: usize| is_of_cursor(at) && (program[at].opcode.starts_with("Seek") || is(at, &lookups));
    let calls = |at: usize| is_inside[at] && is(at, &["Function", "PureFunc"]);
    let not_begun = graph.without(|from, _| begins(from));
    let ends_before = |at: usize| is(at, &["Halt"]) && program[at].p1 == 0 && not_begun.reaches(0, at);
    !(0..program.len()).any(|at| moves(at) || calls(at) || ends_before(at))
        && !graph.has(leaves_early)
        && graph.without(|from, _| from == step).is_acyclic()
}

/// Returns true if the program can delete, update or overwrite an existing row. An `Insert` overwrites the row with its
/// rowid, so it counts if it is reached after a seek that found a row. In a build without the preupdate hook, REPLACE on a
/// table without rowids and without other indexes does not seek.
fn changes_existing_rows(program: &Program) -> bool {
    let writes: HashSet<i32> = program.iter().filter(|op| &*op.opcode == "OpenWrite").map(|op| op.p1).collect();
    let is_write = |op: &Op| writes.contains(&op.p1);
    let inserts = |op: &Op| is_write(op) && matches!(&*op.opcode, "Insert" | "IdxInsert");
    let graph = Graph::of(program);
    let reaches_insert = |found: usize| {
        found < program.len()
            && (0..program.len()).any(|at| inserts(&program[at]) && (at == found || graph.reaches(found, at)))
    };
    let is_lookup = |op: &Op| matches!(&*op.opcode, "Found" | "NotFound" | "NoConflict" | "IfNoHope");
    let is_looked_up = |cursor: i32| program.iter().any(|op| op.p1 == cursor && is_lookup(op));
    program.iter().enumerate().any(|(at, op)| match &*op.opcode {
        "Delete" | "IdxDelete" => true,
        "Insert" if inserts(op) && op.p5 & IS_UPDATE != 0 => true,
        // The row of a table without rowids.
        "IdxInsert" if inserts(op) && op.p5 & IS_COUNTED != 0 => !is_looked_up(op.p1),
        "Found" if is_write(op) => reaches_insert(usize::try_from(op.p2).unwrap_or(at)),
        "NotExists" | "SeekRowid" | "NotFound" | "NoConflict" | "IfNoHope" if is_write(op) => reaches_insert(at + 1),
        "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" | "Last" | "Rewind" if is_write(op) => reaches_insert(at + 1),
        _ => false,
    })
}
