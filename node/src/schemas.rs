//! The columns of results, by number.
//!
//! Owns: the numbers by which JavaScript knows what it made for a schema. Runs on the loop's thread. Invariants: a number is of one
//! schema, and never given again; so many schemas are kept as programs have statements. Leaves out: what is made of one.

use flatwater::Rows;
use flatwater::bindings::Schema;

/// The numbers of the schemas of results, by which JavaScript knows what it made of one.
#[derive(Default)]
pub(crate) struct Schemas {
    known: Vec<(Schema, f64)>,
    next: f64,
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

    /// The names of the columns of the schema of this number.
    pub(crate) fn names_of(&self, number: f64) -> Vec<String> {
        self.find(number).map_or_else(Vec::new, |schema| schema.names().map(str::to_owned).collect())
    }

    /// The types of these columns, as they are written in the definitions of tables; empty for an expression.
    pub(crate) fn declared_types_of(&self, number: f64) -> Vec<String> {
        let owned = |declared: Option<&str>| declared.unwrap_or_default().to_owned();
        self.find(number).map_or_else(Vec::new, |schema| schema.declared_types().map(owned).collect())
    }

    fn find(&self, number: f64) -> Option<&Schema> {
        self.known.iter().find(|(_, known)| *known == number).map(|(schema, _)| schema)
    }
}
