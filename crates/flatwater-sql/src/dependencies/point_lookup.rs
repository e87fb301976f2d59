//! Lookups of single rows, as the program of a query shows them. Pure.
//!
//! Owns: finding out that a program reads a table only at rowids which are parameters or constants, or only at one key of
//! a unique index, whose columns are parameters. Invariant: an instruction that is not in a table here makes the answer
//! "no". Leaves out: what follows for a live query (`reads`).

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use flatwater_sqlite::{Op, Program};

use flatwater_base::growth_counter::step;

/// A rowid that a program looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookedUp {
    /// The parameter with this number, from 1.
    Parameter(i32),
    /// A row by its rowid.
    Rowid(i64),
}

/// Returns the b-trees that the program opens to read: cursor, root page, database.
pub fn opened(program: &Program) -> impl Iterator<Item = (i32, i32, i32)> {
    program.iter().filter(|op| matches!(&*op.opcode, "OpenRead" | "ReopenIdx")).map(|op| (op.p1, op.p2, op.p3))
}

/// The instructions of one program, by what they use.
#[derive(Default)]
pub struct Uses<'a> {
    has_unknown: bool,
    /// The cursors with which a b-tree is read, by its root page.
    cursors: HashMap<i32, Vec<i32>>,
    by_cursor: HashMap<i32, Vec<(Use, &'a Op)>>,
    /// The instructions that write a register.
    writers: HashMap<i32, Vec<&'a Op>>,
    /// Where a cursor is compared with the key that begins in a register, and the program goes on behind the key.
    ends: HashSet<(i32, i32)>,
}

impl<'a> Uses<'a> {
    /// Reads a program.
    pub fn of(program: &'a Program) -> Self {
        let mut uses = Self::default();
        for (cursor, root, _) in opened(program) {
            uses.cursors.entry(root).or_default().push(cursor);
        }
        for op in program {
            step(1);
            match use_of(op) {
                Use::Unknown => uses.has_unknown = true,
                Use::Other => {}
                used @ (Use::Seeks(cursor, _) | Use::Moves(cursor)) => {
                    uses.by_cursor.entry(cursor).or_default().push((used, op));
                }
            }
            for register in writes(op) {
                step(1);
                uses.writers.entry(register).or_default().push(op);
            }
            if &*op.opcode == "IdxGT" {
                uses.ends.insert((op.p1, op.p3));
            }
        }
        uses
    }

    /// Returns the cursors with which the program reads the b-tree with this root page.
    fn cursors(&self, root: i32) -> &[i32] {
        self.cursors.get(&root).map_or(&[], Vec::as_slice)
    }

    fn of_cursor(&self, cursor: i32) -> impl Iterator<Item = (Use, &'a Op)> {
        self.by_cursor.get(&cursor).into_iter().flatten().copied().inspect(|_| step(1))
    }

    /// Returns the rowids at which the program reads the table with this root page, if it reads nothing else of it.
    pub fn looked_up(&self, root: i32) -> Option<Vec<LookedUp>> {
        let [cursor] = *self.cursors(root) else { return None };
        let key = |(used, _)| if let Use::Seeks(_, key) = used { self.constant(key) } else { None };
        let keys: Vec<LookedUp> = self.of_cursor(cursor).map(key).collect::<Option<_>>()?;
        (!self.has_unknown && !keys.is_empty()).then_some(keys)
    }

    /// Returns the numbers of the parameters by which the program looks one row up in a unique index with so many columns,
    /// if it reads nothing else of the table and of the index.
    pub fn looked_up_by_key(&self, table: i32, index: i32, columns: usize) -> Option<Vec<i32>> {
        let [by_index] = *self.cursors(index) else { return None };
        let by_table = match *self.cursors(table) {
            // The index has all that is read.
            [] => None,
            [cursor] => Some(cursor),
            _ => return None,
        };
        // To the row of the index.
        let follows = |(_, op): (Use, &Op)| (&*op.opcode, op.p1) == ("DeferredSeek", by_index);
        if self.has_unknown || !by_table.into_iter().flat_map(|cursor| self.of_cursor(cursor)).all(follows) {
            return None;
        }
        let mut key = None;
        for (_, op) in self.of_cursor(by_index).filter(|(used, _)| matches!(used, Use::Moves(_))) {
            let is_full_key = op.p4.as_deref().and_then(|p4| p4.parse().ok()) == Some(columns);
            if &*op.opcode != "SeekGE" || !is_full_key || key.replace(op.p3).is_some() {
                return None;
            }
        }
        // The seek finds the first row of the key or the one behind it, which this keeps out.
        let first = key.filter(|first| self.ends.contains(&(by_index, *first)))?;
        (first..).take(columns).map(|register| self.parameter(register)).collect()
    }

    /// Returns the number of the parameter that is in a register, maybe converted for a comparison.
    fn parameter(&self, register: i32) -> Option<i32> {
        let op = self.only_writer(register, |op| &*op.opcode != "Affinity")?;
        (&*op.opcode == "Variable").then_some(op.p1)
    }

    /// Returns the value of a register that only one instruction writes.
    fn constant(&self, register: i32) -> Option<LookedUp> {
        let op = self.only_writer(register, |_| true)?;
        match &*op.opcode {
            "Variable" => Some(LookedUp::Parameter(op.p1)),
            "Integer" => Some(LookedUp::Rowid(op.p1.into())),
            "Int64" => op.p4.as_deref()?.parse().ok().map(LookedUp::Rowid),
            _ => None,
        }
    }

    /// Returns the instruction that writes a register, if it is the only one of those that count.
    fn only_writer(&self, register: i32, counts: impl Fn(&Op) -> bool) -> Option<&'a Op> {
        let mut writers = self.writers.get(&register)?.iter().copied().filter(|op| counts(op));
        writers.next().filter(|_| writers.next().is_none())
    }
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
