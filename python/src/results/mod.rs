//! What a program gets: rows, columns, changes and counters as objects of Python.

pub(crate) mod cells;
pub(crate) mod changes;
pub(crate) mod chunk;
pub(crate) mod column;
pub(crate) mod column_names;
pub(crate) mod columns;
pub(crate) mod known_rows;
pub(crate) mod listing;
pub(crate) mod pickled;
pub(crate) mod rows;
pub(crate) mod shape;
pub(crate) mod small;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod tuples;
