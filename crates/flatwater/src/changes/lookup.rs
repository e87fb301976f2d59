//! Lookups of single rows, as the program of a query shows them. Pure.
//!
//! Owns: finding out that a program reads a table only at rowids which are parameters or constants, or only at one key of
//! a unique index, whose columns are parameters. Invariant: an instruction that is not in a table here makes the answer
//! "no". Leaves out: what follows for a live query (`reads`).

use std::ops::RangeInclusive;

use flatwater_sqlite::{Op, Program};

/// A rowid that a program looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// The parameter with this number, from 1.
    Parameter(i32),
    Rowid(i64),
}

/// Returns the b-trees that the program opens to read: cursor, root page, database.
pub(crate) fn opened(program: &Program) -> impl Iterator<Item = (i32, i32, i32)> {
    program.iter().filter(|op| matches!(&*op.opcode, "OpenRead" | "ReopenIdx")).map(|op| (op.p1, op.p2, op.p3))
}

/// Returns the cursors with which the program reads the b-tree with this root page.
fn cursors(program: &Program, root: i32) -> Vec<i32> {
    opened(program).filter(|(_, opened, _)| *opened == root).map(|(cursor, ..)| cursor).collect()
}

/// Returns the rowids at which the program reads the table with this root page, if it reads nothing else of it.
pub(crate) fn looked_up(program: &Program, root: i32) -> Option<Vec<Key>> {
    let [cursor] = cursors(program, root)[..] else { return None };
    if program.iter().any(|op| use_of(op) == Use::Unknown) {
        return None;
    }
    let mut keys = Vec::new();
    for op in program {
        match use_of(op) {
            Use::Seeks(at, key) if at == cursor => keys.push(constant(program, key)?),
            Use::Moves(at) if at == cursor => return None,
            _ => {}
        }
    }
    (!keys.is_empty()).then_some(keys)
}

/// Returns the numbers of the parameters by which the program looks one row up in a unique index with so many columns,
/// if it reads nothing else of the table and of the index.
pub(crate) fn looked_up_by_key(program: &Program, table: i32, index: i32, columns: usize) -> Option<Vec<i32>> {
    let [by_index] = cursors(program, index)[..] else { return None };
    let by_table = match cursors(program, table)[..] {
        // The index has all that is read.
        [] => None,
        [cursor] => Some(cursor),
        _ => return None,
    };
    let mut key = None;
    for op in program {
        match use_of(op) {
            Use::Unknown => return None,
            Use::Seeks(cursor, _) if Some(cursor) == by_table => return None,
            // To the row of the index.
            Use::Moves(cursor) if Some(cursor) == by_table && (&*op.opcode, op.p1) == ("DeferredSeek", by_index) => {}
            Use::Moves(cursor) if Some(cursor) == by_table => return None,
            Use::Moves(cursor) if cursor == by_index => {
                let is_whole = op.p4.as_deref().and_then(|p4| p4.parse().ok()) == Some(columns);
                if &*op.opcode != "SeekGE" || !is_whole || key.replace(op.p3).is_some() {
                    return None;
                }
            }
            _ => {}
        }
    }
    // The seek finds the first row of the key or the one behind it, which this keeps out.
    let ends = |op: &Op| &*op.opcode == "IdxGT" && op.p1 == by_index && Some(op.p3) == key;
    let first = key.filter(|_| program.iter().any(ends))?;
    (first..).take(columns).map(|register| parameter(program, register)).collect()
}

/// Returns the number of the parameter that is in a register, maybe converted for a comparison.
fn parameter(program: &Program, register: i32) -> Option<i32> {
    let op = only_writer(program, register, |op| &*op.opcode != "Affinity")?;
    (&*op.opcode == "Variable").then_some(op.p1)
}

/// Returns the value of a register that only one instruction writes.
fn constant(program: &Program, register: i32) -> Option<Key> {
    let op = only_writer(program, register, |_| true)?;
    match &*op.opcode {
        "Variable" => Some(Key::Parameter(op.p1)),
        "Integer" => Some(Key::Rowid(op.p1.into())),
        "Int64" => op.p4.as_deref()?.parse().ok().map(Key::Rowid),
        _ => None,
    }
}

/// Returns the instruction that writes a register, if it is the only one of those that count.
fn only_writer(program: &Program, register: i32, counts: impl Fn(&Op) -> bool) -> Option<&Op> {
    let mut writers = program.iter().filter(|op| counts(op) && writes(op).contains(&register));
    writers.next().filter(|_| writers.next().is_none())
}

/// What an instruction does with a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It goes to the row whose rowid is in this register, or elsewhere in the program if there is none.
    Seeks(i32, i32),
    /// It goes to another row, or reads more than one.
    Moves(i32),
    /// Neither.
    Other,
    Unknown,
}

fn use_of(op: &Op) -> Use {
    match &*op.opcode {
        "SeekRowid" | "NotExists" => Use::Seeks(op.p1, op.p3),
        "Count" | "Found" | "IfNoHope" | "IfSizeBetween" | "Last" | "Next" | "NoConflict" | "NotFound" | "Prev"
        | "Rewind" | "SeekEnd" | "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" | "SeekScan" | "Sort" | "SorterNext"
        | "SorterSort" => Use::Moves(op.p1),
        // It goes to the row of the index in P1 with the cursor in P3.
        "DeferredSeek" => Use::Moves(op.p3),
        _ if !writes(op).is_empty() => Use::Other,
        "AggFinal" | "AggStep" | "Close" | "ClrSubtype" | "CollSeq" | "Compare" | "Eq" | "Explain" | "FinishSeek"
        | "Ge" | "Goto" | "Gt" | "Halt" | "IdxGE" | "IdxGT" | "IdxInsert" | "IdxLE" | "IdxLT" | "If" | "IfEmpty"
        | "IfNot" | "IfNotZero" | "IfNullRow" | "IfPos" | "Init" | "IsNull" | "IsType" | "Jump" | "Le" | "Lt"
        | "Ne" | "Noop" | "NotNull" | "NullRow" | "Once" | "OpenEphemeral" | "OpenPseudo" | "OpenRead"
        | "Permutation" | "ReleaseReg" | "ReopenIdx" | "ResultRow" | "SeekHit" | "SorterData" | "SorterInsert"
        | "SorterOpen" | "TableLock" | "Trace" | "Transaction" | "CursorHint" | "ColumnsUsed" | "MustBeInt"
        | "Insert" => Use::Other,
        _ => Use::Unknown,
    }
}

/// Returns the registers that an instruction writes, as far as it is in this table. `MustBeInt` only changes the form
/// of a number, and an aggregate's registers are no key.
fn writes(op: &Op) -> RangeInclusive<i32> {
    let one = |register| register..=register;
    match &*op.opcode {
        "Blob" | "Int64" | "IntCopy" | "Integer" | "IsTrue" | "NewRowid" | "Not" | "BitNot" | "OffsetLimit"
        | "Real" | "RowData" | "Rowid" | "IdxRowid" | "SCopy" | "Sequence" | "String" | "String8" | "Variable"
        | "ZeroOrNull" | "BeginSubrtn" => one(op.p2),
        "Add" | "And" | "BitAnd" | "BitOr" | "Column" | "Concat" | "Divide" | "Function" | "MakeRecord"
        | "Multiply" | "Or" | "PureFunc" | "Remainder" | "ShiftLeft" | "ShiftRight" | "Subtract" => one(op.p3),
        "Null" => op.p2..=op.p3.max(op.p2),
        "Copy" => op.p2..=op.p2 + op.p3,
        "AddImm" | "Cast" | "DecrJumpZero" | "RealAffinity" | "SoftNull" => one(op.p1),
        "Affinity" => op.p1..=op.p1 + op.p2 - 1,
        #[allow(clippy::reversed_empty_ranges, reason = "it has no register")]
        _ => 1..=0,
    }
}
