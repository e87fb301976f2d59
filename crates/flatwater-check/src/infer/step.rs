//! What one instruction does to what is known (<https://sqlite.org/opcode.html>).
//!
//! Owns: the registers and cursors that each instruction writes, and what is known of them afterwards. Invariant: an instruction that
//! is not here is not known, and ends the search. Leaves out: where control goes, and what a jump tells (`mod`).

use flatwater_sqlite::Op;

use super::expressions::{computes, copies};
use super::functions::{aggregate, collected, scalar};
use super::state::State;
use super::value::Value;
use super::{Machine, Unknown};
use crate::kind::Classes;

impl Machine<'_> {
    pub(super) fn step(&mut self, at: usize, op: &Op, state: &mut State) -> Result<(), Unknown> {
        self.uses.of(op, state, &self.cursors);
        let known = copies(op, state)
            || computes(op, state)
            || self.calls(at, op, state)
            || self.reads(op, state)
            || self.opens_or_stores(op, state)
            || counts(at, op, state)
            || writes_nothing(op);
        if known { Ok(()) } else { Err(Unknown) }
    }

    /// Functions and aggregates.
    fn calls(&self, at: usize, op: &Op, state: &mut State) -> bool {
        let call = op.p4.as_deref().unwrap_or_default();
        match &*op.opcode {
            "Function" | "PureFunc" => {
                let count = call.rsplit_once('(').and_then(|(_, count)| count.strip_suffix(')')?.parse().ok());
                // With a number of arguments that varies there may be one; a function that takes none has none.
                let count: i32 = count.unwrap_or(0);
                let arguments = state.all(op.p2, if count < 0 { 1 } else { count });
                state.set(op.p3, scalar(self.functions, call, &arguments));
            }
            "AggStep" | "AggStep1" => {
                let so_far = state.get(op.p3);
                let so_far = if so_far.classes == Classes::NONE { Value::NULL } else { so_far };
                let value = collected(call, &so_far, &state.all(op.p2, op.p5));
                if so_far.classes != Classes::NONE {
                    self.may_skip(at, state);
                }
                state.set(op.p3, value);
            }
            // A window may have no row after it.
            "AggInverse" => state.refine(op.p3, Value::nullable),
            "AggFinal" => state.set(op.p1, aggregate(self.functions, call, &never_stepped(state.get(op.p1)))),
            "AggValue" => state.set(op.p3, aggregate(self.functions, call, &never_stepped(state.get(op.p1)))),
            _ => return false,
        }
        true
    }

    /// The register of the instruction `CollSeq` before the step of a `min` or `max` is 1 behind it if the row is not the one that
    /// was searched for. That is never so for the first row.
    fn may_skip(&self, at: usize, state: &mut State) {
        let before = self.program[..at].iter().rev().find(|op| &*op.opcode == "CollSeq" && op.p1 != 0);
        if let Some(op) = before {
            state.set(op.p1, Value::INTEGER);
        }
    }

    /// Rows of tables.
    fn reads(&mut self, op: &Op, state: &mut State) -> bool {
        match &*op.opcode {
            "Column" => state.set(op.p3, self.cursors.column(op.p1, op.p2, state)),
            "VColumn" => state.set(op.p3, Value::ANY),
            "Rowid" | "IdxRowid" => state.set(op.p2, self.cursors.rowid(op.p1, state)),
            "RowData" | "SorterData" => {
                let record = self.cursors.record(op.p1, state);
                state.set(op.p2, record);
            }
            "NullRow" => state.set_without_row(op.p1, true),
            "DeferredSeek" => {
                let without = state.may_be_without_row(op.p1);
                state.set_without_row(op.p3, without);
            }
            "ResultRow" => self.result(&state.all(op.p1, op.p2)),
            _ => return false,
        }
        true
    }

    fn opens_or_stores(&mut self, op: &Op, state: &mut State) -> bool {
        match &*op.opcode {
            "OpenRead" | "OpenWrite" | "ReopenIdx" | "OpenEphemeral" | "OpenAutoindex" | "OpenDup" | "OpenPseudo"
            | "SorterOpen" | "VOpen" => state.set_without_row(op.p1, false),
            "MakeRecord" => {
                let letters = op.p4.as_deref().unwrap_or_default().bytes().chain(std::iter::repeat(b'A'));
                for (register, letter) in (op.p1..op.p1.saturating_add(op.p2.max(0))).zip(letters) {
                    state.refine(register, |value| value.with_affinity(letter));
                }
                let record = Value::record(state.all(op.p1, op.p2).into());
                state.set(op.p3, record);
            }
            "Insert" | "IdxInsert" | "SorterInsert" => {
                if let Some(record) = state.get(op.p2).record {
                    self.cursors.insert(op.p1, &record);
                }
            }
            _ => return false,
        }
        true
    }
}

/// What an aggregate has collected that was never made NULL: it has seen no row.
fn never_stepped(value: Value) -> Value {
    if value.classes == Classes::NONE { Value::NULL } else { value }
}

/// Numbers that SQLite counts with, and results that are numbers.
fn counts(at: usize, op: &Op, state: &mut State) -> bool {
    match &*op.opcode {
        "AddImm" | "DecrJumpZero" | "IfNotZero" | "MemMax" => state.set(op.p1, Value::INTEGER),
        "Gosub" => state.set(op.p1, Value::constant(i32::try_from(at).ok())),
        "InitCoroutine" => state.set(op.p1, Value::constant(op.p3.checked_sub(1))),
        "MustBeInt" => state.set(op.p1, Value::INTEGER),
        "IfPos" if op.p3 != 0 => state.set(op.p1, Value::INTEGER),
        "CollSeq" if op.p1 != 0 => state.set(op.p1, Value::constant(Some(0))),
        "NewRowid" => {
            state.set(op.p2, Value::INTEGER);
            if op.p3 > 0 {
                state.set(op.p3, Value::INTEGER);
            }
        }
        "Count" | "Sequence" | "OffsetLimit" => state.set(op.p2, Value::INTEGER),
        "RowSetRead" => state.set(op.p3, Value::INTEGER),
        "Offset" => state.set(op.p3, Value::of(Classes::INTEGER, true)),
        "GetSubtype" => state.set(op.p2, Value::of(Classes::INTEGER, true)),
        "Param" | "VInitIn" | "VCheck" => state.set(op.p2, Value::ANY),
        "Program" => state.set(op.p3, Value::ANY),
        "HaltIfNull" => state.refine(op.p3, Value::not_null),
        _ => return false,
    }
    true
}

/// Instructions that leave registers and rows as they are, but for what a jump tells.
fn writes_nothing(op: &Op) -> bool {
    matches!(
        &*op.opcode,
        "Abortable"
            | "Clear"
            | "Close"
            | "ClrSubtype"
            | "CollSeq"
            | "ColumnsUsed"
            | "Compare"
            | "CursorHint"
            | "CursorLock"
            | "CursorUnlock"
            | "Delete"
            | "ElseEq"
            | "EndCoroutine"
            | "Eq"
            | "Expire"
            | "Explain"
            | "Filter"
            | "FilterAdd"
            | "FinishSeek"
            | "FkCheck"
            | "FkCounter"
            | "FkIfZero"
            | "Found"
            | "Ge"
            | "Goto"
            | "Gt"
            | "Halt"
            | "IdxDelete"
            | "IdxGE"
            | "IdxGT"
            | "IdxLE"
            | "IdxLT"
            | "If"
            | "IfEmpty"
            | "IfNoHope"
            | "IfNot"
            | "IfNotOpen"
            | "IfNullRow"
            | "IfPos"
            | "IfSizeBetween"
            | "Init"
            | "IsNull"
            | "IsType"
            | "Jump"
            | "Last"
            | "Le"
            | "Lt"
            | "Ne"
            | "Next"
            | "NoConflict"
            | "Noop"
            | "NotExists"
            | "NotFound"
            | "NotNull"
            | "Once"
            | "Permutation"
            | "Prev"
            | "ReleaseReg"
            | "ResetCount"
            | "ResetSorter"
            | "Return"
            | "Rewind"
            | "RowSetAdd"
            | "RowSetTest"
            | "SeekEnd"
            | "SeekGE"
            | "SeekGT"
            | "SeekHit"
            | "SeekLE"
            | "SeekLT"
            | "SeekRowid"
            | "SeekScan"
            | "SequenceTest"
            | "SetSubtype"
            | "Sort"
            | "SorterCompare"
            | "SorterNext"
            | "SorterSort"
            | "TableLock"
            | "Trace"
            | "Transaction"
            | "TypeCheck"
            | "VBegin"
            | "VFilter"
            | "VNext"
            | "VUpdate"
            | "Yield"
    )
}
