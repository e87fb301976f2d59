//! The native part of the Python package `flatwater`.
//!
//! Owns: the module `flatwater._native`. The design is in `docs/design/bridge.md`. All unsafe code is in `capi`.

#![deny(unsafe_code)]

mod aggregates;
mod awaiting;
mod batches;
mod bell;
mod blob;
mod block;
mod blocked;
mod call;
mod callbacks;
mod calls_python;
#[allow(unsafe_code)]
mod capi;
mod cells;
mod changes;
mod chunk;
mod column;
mod column_names;
mod columns;
mod connection;
mod converters;
mod database;
mod entries;
mod errors;
mod executor;
mod forms;
mod functions;
mod guards;
mod inbox;
mod keys;
mod known_rows;
mod line;
mod listing;
mod live;
mod logged_query;
mod logical_turns;
mod many;
mod nested;
mod options;
mod own_exceptions;
mod owners;
mod params;
mod paths;
mod pending;
mod pickled;
mod place;
mod polls;
mod process;
mod records;
mod results;
mod rows;
mod running_loop;
mod seconds;
mod shape;
mod statement;
mod stats;
mod steps;
mod table;
mod transaction;
mod tuples;
mod turns;

use pyo3::prelude::*;

/// Everything native; the package `flatwater` has the names for programs.
#[pymodule(gil_used = true)]
mod _native {
    use super::*;

    #[pymodule_export]
    use crate::batches::NativeBatches;
    #[pymodule_export]
    use crate::blob::NativeBlob;
    #[pymodule_export]
    use crate::block::{TransactionBlock, WaitedBlock};
    #[pymodule_export]
    use crate::changes::Change;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::connection::NativeConnection;
    #[pymodule_export]
    use crate::database::NativeDatabase;
    #[pymodule_export]
    use crate::executor::Executor;
    #[pymodule_export]
    use crate::functions::NativeFunction;
    #[pymodule_export]
    use crate::guards::SnapshotGuard;
    #[pymodule_export]
    use crate::live::NativeLive;
    #[pymodule_export]
    use crate::logged_query::LoggedQuery;
    #[pymodule_export]
    use crate::logical_turns::{Turn, Turns};
    #[pymodule_export]
    use crate::results::{BatchResult, CheckpointInfo, ExecuteResult};
    #[pymodule_export]
    use crate::rows::row::{Row, restore_row};
    #[pymodule_export]
    use crate::rows::{Rows, restore_rows};
    #[pymodule_export]
    use crate::transaction::TransactionGuard;

    #[pymodule_export]
    use crate::database::{check_sql, connect, is_address, options, problems, refuses_second_copy};
    #[pymodule_export]
    use crate::functions::function;
    #[pymodule_export]
    use crate::process::{close_all, close_at_exit, set_max_open};
    #[pymodule_export]
    use crate::records::listen;
    #[pymodule_export]
    use crate::statement::{Statements, Tokens, parameters_of};
    #[pymodule_export]
    use crate::steps::drive;
    #[pymodule_export]
    use crate::tuples::{converters_of, tuples};
    #[pymodule_export]
    use crate::turns::{turn_is_due, turn_was_given};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        capi::thread_end::load(module.py());
        let call = capi::call_type::type_object(module.py())?;
        module.add("wait", call.getattr("_wait")?)?;
        module.add("Call", call)?;
        module.add("version", env!("CARGO_PKG_VERSION"))?;
        module.add("sqlite_version", flatwater::rusqlite::version())
    }
}
