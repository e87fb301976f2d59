//! Short writes on the thread of their caller: a statement, rows, a step of a transaction, its begin and its end.

pub(crate) mod gate;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod statement;
pub(crate) mod transaction;
pub(crate) mod write;
