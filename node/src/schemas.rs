//! The columns of results, by number.
//!
//! Owns: the numbers by which JavaScript knows what it made for a schema, and what the columns of the last one mean. Runs on the loop's thread. Invariants: a number is of one
//! schema, and never given again; so many schemas are kept as programs have statements. Leaves out: what is made of one.

use std::sync::Arc;

use flatwater::Rows;
use flatwater::bindings::Schema;
use flatwater_bridge::{Meaning, Types};

/// What columns mean: of a call before what the database says.
pub(crate) struct Meanings {
    pub(crate) types: Types,
    /// Those that the call named, each of which a column must have.
    pub(crate) asked: Option<Types>,
}

impl Meanings {
    pub(crate) fn of(&self, rows: &Rows) -> Vec<Option<Meaning>> {
        let meaning = |at| rows.column(at).ok().and_then(|column| self.types.of(column));
        let all: Vec<_> = (0..rows.columns().len()).map(meaning).collect();
        if all.iter().any(Option::is_some) { all } else { Vec::new() }
    }
}

/// The numbers of the schemas of results, by which JavaScript knows what it made of one.
#[derive(Default)]
pub(crate) struct Schemas {
    known: Vec<(Schema, f64)>,
    next: f64,
    /// What the columns of one schema mean: of the result that was read last.
    meant: Option<Meant>,
}

struct Meant {
    schema: f64,
    by: Arc<Meanings>,
    meanings: Arc<[Option<Meaning>]>,
}

/// Prepared statements beyond this number are known anew.
const SCHEMAS: usize = 256;

impl Schemas {
    pub(crate) fn number(&mut self, rows: &Rows) -> f64 {
        let schema = Schema::of(rows);
        if let Some(at) = self.known.iter().rposition(|(known, _)| known.key() == schema.key()) {
            let last = self.known.len() - 1;
            self.known.swap(at, last);
            return self.known[last].1;
        }
        if self.known.len() == SCHEMAS {
            self.known.clear();
        }
        self.next += 1.0;
        self.known.push((schema, self.next));
        self.next
    }

    /// What the columns of these rows mean by these types.
    pub(crate) fn meanings(
        &mut self,
        rows: &Rows,
        by: &Arc<Meanings>,
        make: impl FnOnce() -> Vec<Option<Meaning>>,
    ) -> Arc<[Option<Meaning>]> {
        let schema = self.number(rows);
        match &self.meant {
            Some(meant) if meant.schema == schema && Arc::ptr_eq(&meant.by, by) => Arc::clone(&meant.meanings),
            _ => {
                let meanings: Arc<[_]> = make().into();
                self.meant = Some(Meant { schema, by: Arc::clone(by), meanings: Arc::clone(&meanings) });
                meanings
            }
        }
    }

    /// The names of the columns of the schema of this number.
    pub(crate) fn names_of(&self, number: f64) -> Vec<String> {
        self.find(number).map_or_else(Vec::new, |schema| schema.names().map(str::to_owned).collect())
    }

    /// The types of these columns, as they are written in the definitions of tables; empty for an expression.
    pub(crate) fn declared_types_of(&self, number: f64) -> Vec<String> {
        let owned = |declared: Option<&str>| declared.unwrap_or_default().to_owned();
        self.find(number).map_or_else(Vec::new, |schema| schema.declared_types().map(owned).collect())
    }

    /// The tables of these columns; empty for an expression.
    pub(crate) fn tables_of(&self, number: f64) -> Vec<String> {
        let owned = |table: Option<&str>| table.unwrap_or_default().to_owned();
        self.find(number).map_or_else(Vec::new, |schema| schema.tables().map(owned).collect())
    }

    fn find(&self, number: f64) -> Option<&Schema> {
        self.known.iter().find(|(_, known)| *known == number).map(|(schema, _)| schema)
    }
}
