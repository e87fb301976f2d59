//! What the instructions of expressions do to registers (<https://sqlite.org/opcode.html>).
//!
//! Owns: constants, copies, and operators. Invariant: a result is NULL only for a reason that is here: an operand, a division by zero,
//! or a number that is none. Leaves out: functions (`functions`), rows and cursors (`step`).

use flatwater_sqlite::Op;

use super::functions::number;
use super::state::State;
use super::value::Value;
use crate::kind::Classes;

/// Constants, parameters, and values that move.
pub(super) fn copies(op: &Op, state: &mut State) -> bool {
    match &*op.opcode {
        "Null" | "BeginSubrtn" => (op.p2..=op.p3.max(op.p2)).for_each(|register| state.set(register, Value::NULL)),
        "SoftNull" => state.set(op.p1, Value::NULL),
        "Integer" => state.set(op.p2, Value::constant(Some(op.p1))),
        "Int64" => state.set(op.p2, Value::INTEGER),
        "Real" => state.set(op.p2, Value::of(Classes::REAL, false)),
        "String" if op.p3 > 0 => state.set(op.p2, Value::of(Classes::TEXT.or(Classes::BLOB), false)),
        "String" | "String8" => state.set(op.p2, Value::of(Classes::TEXT, false)),
        "Blob" => state.set(op.p2, Value::of(Classes::BLOB, false)),
        "Variable" => state.set(op.p2, Value { parameter: usize::try_from(op.p1).ok(), ..Value::ANY }),
        "SCopy" => state.set(op.p2, state.get(op.p1)),
        "IntCopy" => state.set(op.p2, Value::constant(state.get(op.p1).constant)),
        "Copy" | "Move" => {
            let moved = &*op.opcode == "Move";
            let count = if moved { op.p3.max(1) } else { op.p3.max(0) + 1 };
            for offset in 0..count {
                let value = state.get(op.p1 + offset);
                if moved {
                    state.set(op.p1 + offset, Value::NULL);
                }
                state.set(op.p2 + offset, value);
            }
        }
        _ => return false,
    }
    true
}

/// Expressions.
pub(super) fn computes(op: &Op, state: &mut State) -> bool {
    let (one, other) = (state.get(op.p1), state.get(op.p2));
    let null = one.null || other.null;
    match &*op.opcode {
        "Add" | "Subtract" | "Multiply" | "Divide" | "Remainder" => state.set(op.p3, arithmetic(op, &one, &other)),
        "Concat" => state.set(op.p3, Value::of(Classes::TEXT, null)),
        "BitAnd" | "BitOr" | "ShiftLeft" | "ShiftRight" | "And" | "Or" => {
            state.set(op.p3, Value::of(Classes::INTEGER, null));
        }
        "Not" | "BitNot" => state.set(op.p2, Value::of(Classes::INTEGER, one.null)),
        "IsTrue" => state.set(op.p2, Value::INTEGER),
        "ZeroOrNull" => state.set(op.p2, Value::of(Classes::INTEGER, one.null || state.get(op.p3).null)),
        "Cast" => {
            let classes = match u8::try_from(op.p2).unwrap_or_default() {
                b'A' => Classes::BLOB,
                b'B' => Classes::TEXT,
                b'D' => Classes::INTEGER,
                b'E' => Classes::REAL,
                _ => Classes::NUMBER,
            };
            state.set(op.p1, Value::of(classes, one.null));
        }
        "Affinity" => {
            let letters = op.p4.as_deref().unwrap_or_default().bytes();
            for (register, letter) in (op.p1..op.p1.saturating_add(op.p2.max(0))).zip(letters) {
                state.refine(register, |value| value.with_affinity(letter));
            }
        }
        // A REAL that is a whole number is stored as one.
        "RealAffinity" => state.refine(op.p1, |value| {
            let real = if value.classes.has(Classes::INTEGER) { Classes::REAL } else { Classes::NONE };
            Value { classes: value.classes.without(Classes::INTEGER).or(real), constant: None, ..value }
        }),
        _ => return false,
    }
    true
}

/// P2 and P1 in this order, as SQLite computes them.
fn arithmetic(op: &Op, one: &Value, other: &Value) -> Value {
    let classes = match (number(one), number(other)) {
        (Classes::INTEGER, Classes::INTEGER) => Classes::INTEGER,
        (Classes::REAL, _) | (_, Classes::REAL) if &*op.opcode != "Remainder" => Classes::REAL,
        _ => Classes::NUMBER,
    };
    // NULL: a division by zero, and a sum or a product of what is infinite that is not a number.
    let is_nonzero = one.constant.is_some_and(|constant| constant != 0);
    let defined = match &*op.opcode {
        "Divide" | "Remainder" => is_nonzero,
        "Multiply" => {
            one.is_finite() && other.is_finite() || is_nonzero || other.constant.is_some_and(|constant| constant != 0)
        }
        _ => one.is_finite() || other.is_finite(),
    };
    // An INTEGER that does not fit becomes a REAL.
    let certain = classes != Classes::INTEGER && one.certain && other.certain;
    Value { certain, ..Value::of(classes, one.null || other.null || !defined) }
}
