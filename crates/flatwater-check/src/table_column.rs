//! A column of a table, as its definition has it.
//!
//! Owns: the column. Invariant: what is certain of it holds for every row that the schema admits. Leaves out: reading definitions
//! (`catalogue`).

use crate::kind::Kind;

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) declared: String,
    pub(crate) kind: Kind,
    pub(crate) not_null: bool,
    /// Whether it only holds what its kind says: of a STRICT table, or the rowid.
    pub(crate) certain: bool,
}
