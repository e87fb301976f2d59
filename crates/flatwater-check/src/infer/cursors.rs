//! What the cursors of a program read: tables and indexes of the schema, and tables of the statement itself.
//!
//! Owns: which b-trees each cursor may be on, and what was put into the tables of the statement. Invariant: a cursor that is opened
//! several times is on any of what it was opened on. Leaves out: whether it is on a row (`state`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use flatwater_sqlite::{Op, Program};

use super::state::State;
use super::value::{Value, records};
use crate::catalogue::{Catalogue, Stored};

/// What a cursor reads.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A b-tree of the schema.
    Tree(Arc<Stored>),
    /// A table of the statement, by the cursor that opened it.
    Own(i32),
    /// The record in a register.
    Register(i32),
    /// A virtual table, or a table of which nothing is known.
    Foreign,
}

type Contents = HashMap<i32, Arc<[Value]>>;

#[derive(Debug)]
pub(super) struct Cursors {
    sources: HashMap<i32, Vec<Source>>,
    contents: Contents,
}

/// P5 of an instruction that opens the root page in register P2.
const ROOT_IN_REGISTER: i32 = 0x10;

impl Cursors {
    pub(super) fn of(program: &Program, catalogue: &Catalogue) -> Self {
        let mut sources: HashMap<i32, Vec<Source>> = HashMap::new();
        for op in program {
            let source = match &*op.opcode {
                "OpenRead" | "OpenWrite" | "ReopenIdx" if op.p5 & ROOT_IN_REGISTER == 0 => {
                    catalogue.at(op.p3, op.p2).map_or(Source::Foreign, |tree| Source::Tree(tree.clone()))
                }
                "OpenRead" | "OpenWrite" | "ReopenIdx" | "VOpen" => Source::Foreign,
                "OpenEphemeral" | "OpenAutoindex" | "SorterOpen" => Source::Own(op.p1),
                "OpenDup" => Source::Own(origin(program, op.p2)),
                "OpenPseudo" => Source::Register(op.p2),
                _ => continue,
            };
            sources.entry(op.p1).or_default().push(source);
        }
        Self { sources, contents: Contents::new() }
    }

    pub(super) fn sources(&self, cursor: i32) -> &[Source] {
        self.sources.get(&cursor).map_or(&[Source::Foreign], Vec::as_slice)
    }

    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The tables that a loop of the program goes through from one end to the other.
    pub(super) fn scans(&self, program: &Program) -> Vec<String> {
        let has =
            |cursor, opcodes: [&str; 2]| program.iter().any(|op| op.p1 == cursor && opcodes.contains(&&*op.opcode));
        let is_scan = |cursor| has(cursor, ["Rewind", "Last"]) && has(cursor, ["Next", "Prev"]);
        let cursors = self.sources.iter().filter(|(cursor, _)| is_scan(**cursor));
        let tables = cursors.flat_map(|(_, sources)| sources).filter_map(|source| match source {
            Source::Tree(tree) => Some(tree.table.clone()),
            _ => None,
        });
        tables.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Adds a record to a table of the statement.
    pub(super) fn insert(&mut self, cursor: i32, record: &[Value]) {
        let tables: Vec<i32> = self.own(cursor).collect();
        for table in tables {
            let known = self.contents.get(&table);
            let joined = known.map_or_else(|| record.into(), |known| records(known, record));
            self.contents.insert(table, joined);
        }
    }

    fn own(&self, cursor: i32) -> impl Iterator<Item = i32> {
        self.sources(cursor)
            .iter()
            .filter_map(|source| if let Source::Own(table) = source { Some(*table) } else { None })
    }

    /// The value of a column where the cursor is.
    pub(super) fn column(&self, cursor: i32, column: i32, state: &State) -> Value {
        let at = usize::try_from(column).unwrap_or(usize::MAX);
        let of = |source: &Source| match source {
            Source::Tree(tree) => tree.columns.get(at).cloned().unwrap_or(Value::ANY),
            Source::Own(table) => self.contents.get(table).map_or(Value::NOTHING, |record| of_record(record, at)),
            Source::Register(register) => match state.get(*register) {
                Value { record: Some(record), .. } => of_record(&record, at),
                nothing if nothing == Value::NOTHING => nothing,
                _ => Value::ANY,
            },
            Source::Foreign => Value::ANY,
        };
        // A record in a register is read wherever the cursor is.
        let is_register = |source: &Source| matches!(source, Source::Register(_));
        let without = state.may_be_without_row(cursor) && !self.sources(cursor).iter().all(is_register);
        let value = self.sources(cursor).iter().map(of).reduce(|one, other| one.or(&other)).unwrap_or(Value::ANY);
        if without { value.or(&Value::NULL) } else { value }
    }

    /// The number of the row where the cursor is.
    pub(super) fn rowid(&self, cursor: i32, state: &State) -> Value {
        let of = |source: &Source| match source {
            Source::Tree(tree) => match (&tree.rowid, tree.columns.last()) {
                (Some(column), _) => Value::of_column(column),
                (None, Some(key)) if !tree.has_rowid => key.clone(),
                _ => Value::INTEGER,
            },
            Source::Own(_) | Source::Register(_) => Value::INTEGER,
            // Of a virtual table it is a number, too.
            Source::Foreign => Value::INTEGER,
        };
        let value = self.sources(cursor).iter().map(of).reduce(|one, other| one.or(&other)).unwrap_or(Value::ANY);
        if state.may_be_without_row(cursor) { value.or(&Value::NULL) } else { value }
    }

    /// The record where the cursor is.
    pub(super) fn record(&self, cursor: i32, state: &State) -> Value {
        let of = |source: &Source| match source {
            Source::Tree(tree) => Value::record(tree.columns.as_slice().into()),
            Source::Own(table) => {
                self.contents.get(table).map_or(Value::NOTHING, |record| Value::record(record.clone()))
            }
            Source::Register(register) => state.get(*register),
            Source::Foreign => Value::ANY,
        };
        self.sources(cursor).iter().map(of).reduce(|one, other| one.or(&other)).unwrap_or(Value::ANY)
    }
}

/// The cursor that opened the table which this one reads too.
fn origin(program: &Program, cursor: i32) -> i32 {
    let dup = program.iter().find(|op: &&Op| &*op.opcode == "OpenDup" && op.p1 == cursor);
    dup.map_or(cursor, |op| if op.p2 == cursor { cursor } else { origin(program, op.p2) })
}

fn of_record(record: &[Value], at: usize) -> Value {
    record.get(at).cloned().unwrap_or(Value::NULL)
}
