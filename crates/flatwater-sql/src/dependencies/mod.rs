//! What queries read, what writes change, and which live queries a change invalidates. Pure.
//!
//! Owns: the rules of [live.md](../../../docs/design/live.md). Runs on the threads that prepare and publish. Invariant:
//! what is not understood reads, or changes, everything. Leaves out: asking SQLite, and running queries again
//! (`workers::live`).

pub mod change;
pub mod index;
pub mod point_lookup;
pub mod reads;
pub mod tables;

/// Columns of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// All of them.
    All,
    /// Sorted.
    Some(Vec<Box<str>>),
}

impl Columns {
    /// None of them.
    pub const NONE: Self = Self::Some(Vec::new());

    /// Adds one.
    pub fn add(&mut self, column: &str) {
        if let Self::Some(columns) = self
            && let Err(place) = columns.binary_search_by(|known| (**known).cmp(column))
        {
            columns.insert(place, column.into());
        }
    }

    /// Adds others.
    pub fn add_all(&mut self, others: &Self) {
        match others {
            Self::All => *self = Self::All,
            Self::Some(others) => others.iter().for_each(|column| self.add(column)),
        }
    }

    /// Returns true if this one is among them.
    pub fn has(&self, column: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(columns) => columns.binary_search_by(|known| (**known).cmp(column)).is_ok(),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns true if one is among both.
    pub fn overlap(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::Some(columns), others) | (others, Self::Some(columns)) => {
                columns.iter().any(|column| others.has(column))
            }
            (Self::All, Self::All) => true,
        }
    }
}
