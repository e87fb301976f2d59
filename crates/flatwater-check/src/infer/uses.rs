//! The columns that parameters are compared with, or stored in.
//!
//! Owns: finding them while a program is followed. Invariant: a parameter of which nothing is found may be anything. Leaves out: which
//! type follows from several columns (`schema`).

use std::collections::BTreeMap;
use std::sync::Arc;

use flatwater_sqlite::Op;

use super::cursors::{Cursors, Source};
use super::state::State;
use super::value::Value;
use crate::kind::Kind;
use crate::table_column::TableColumn;

/// What a parameter is used for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Use {
    /// The kind of the values beside it.
    pub(crate) kind: Kind,
    /// The column, unless it is a rowid without a name or a limit.
    pub(crate) column: Option<Arc<TableColumn>>,
    /// Whether it is stored there.
    pub(crate) is_stored: bool,
}

/// The uses of each parameter, by its number from 1.
#[derive(Debug, Default)]
pub(crate) struct Uses(BTreeMap<usize, Vec<Use>>);

impl Uses {
    pub(crate) fn get(&self, parameter: usize) -> &[Use] {
        self.0.get(&parameter).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, value: &Value, with: &Value, is_stored: bool) {
        let kind = with.column.as_ref().map_or_else(|| Kind::of(with.classes), |column| column.kind);
        let (Some(parameter), true) = (value.parameter, with.column.is_some() || kind != Kind::Any) else { return };
        let uses = self.0.entry(parameter).or_default();
        let new = Use { kind, column: with.column.clone(), is_stored };
        if !uses.contains(&new) {
            uses.push(new);
        }
    }

    /// Looks for parameters among what an instruction uses.
    pub(super) fn of(&mut self, op: &Op, state: &State, cursors: &Cursors) {
        match &*op.opcode {
            "Eq" | "Ne" | "Lt" | "Le" | "Gt" | "Ge" => {
                let (one, other) = (state.get(op.p1), state.get(op.p3));
                self.add(&one, &compared(other.clone()), false);
                self.add(&other, &compared(one), false);
            }
            "MustBeInt" => self.add(&state.get(op.p1), &Value::INTEGER, false),
            "SeekRowid" | "NotExists" => self.add(&state.get(op.p3), &cursors.rowid(op.p1, state), false),
            "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" | "IdxGE" | "IdxGT" | "IdxLE" | "IdxLT" | "Found"
            | "NotFound" | "NoConflict" => self.key(op, state, cursors),
            "Insert" | "IdxInsert" => self.stored(op, state, cursors),
            _ => {}
        }
    }

    /// The key of a search: registers from P3 on, or the record in P3.
    fn key(&mut self, op: &Op, state: &State, cursors: &Cursors) {
        let count: i32 = op.p4.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
        for source in cursors.sources(op.p1) {
            let Source::Tree(tree) = source else { continue };
            if tree.has_rowid {
                self.add(&state.get(op.p3), &cursors.rowid(op.p1, state), false);
                continue;
            }
            let key = state.get(op.p3).record.map_or_else(|| state.all(op.p3, count), |record| record.to_vec());
            key.iter().zip(&tree.columns).for_each(|(value, column)| self.add(value, column, false));
        }
    }

    fn stored(&mut self, op: &Op, state: &State, cursors: &Cursors) {
        for source in cursors.sources(op.p1) {
            let Source::Tree(tree) = source else { continue };
            let Some(record) = state.get(op.p2).record else { continue };
            record.iter().zip(&tree.columns).for_each(|(value, column)| self.add(value, column, true));
            if tree.has_rowid {
                self.add(&state.get(op.p3), &cursors.rowid(op.p1, state), true);
            }
        }
    }
}

/// A value beside which a parameter stands in a comparison: of an expression nothing is taken, for it converts nothing.
fn compared(value: Value) -> Value {
    if value.column.is_some() { value } else { Value::ANY }
}
