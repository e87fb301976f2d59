//! What queries read, what writes change, and which live queries a change invalidates. Pure.
//!
//! Owns: the rules of [live.md](../../../docs/design/live.md). Runs on the threads that prepare and publish. Invariant:
//! what is not understood reads, or changes, everything. Leaves out: asking SQLite, and running queries again
//! (`workers::live`).

pub(crate) mod change;
pub(crate) mod index;
pub(crate) mod point_lookup;
pub(crate) mod reads;
pub(crate) mod tables;

/// Columns of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Columns {
    All,
    /// Sorted.
    Some(Vec<Box<str>>),
}

impl Columns {
    pub(crate) const NONE: Self = Self::Some(Vec::new());

    pub(crate) fn add(&mut self, column: &str) {
        if let Self::Some(columns) = self
            && let Err(place) = columns.binary_search_by(|known| (**known).cmp(column))
        {
            columns.insert(place, column.into());
        }
    }

    pub(crate) fn add_all(&mut self, others: &Self) {
        match others {
            Self::All => *self = Self::All,
            Self::Some(others) => others.iter().for_each(|column| self.add(column)),
        }
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(columns) => columns.binary_search_by(|known| (**known).cmp(column)).is_ok(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    pub(crate) fn overlap(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::Some(columns), others) | (others, Self::Some(columns)) => {
                columns.iter().any(|column| others.has(column))
            }
            (Self::All, Self::All) => true,
        }
    }
}
