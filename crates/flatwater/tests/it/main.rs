//! The integration tests of the engine: one program, one module per subject.

mod basics;
mod differential;
mod floors;
mod kill;
mod schema;
mod support;
