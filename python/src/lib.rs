//! The native part of the Python package `flatwater`.
//!
//! Owns: the module `flatwater._native`. The design is in `docs/design/bridge.md`. All unsafe code is in `capi`.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod capi;
mod foreign;
mod given;
mod handles;
mod results;
mod told;
mod waiting;

use pyo3::prelude::*;

/// Everything native; the package `flatwater` has the names for programs.
#[pymodule(gil_used = true)]
mod _native {
    use super::*;

    #[pymodule_export]
    use crate::foreign::functions::NativeFunction;
    #[pymodule_export]
    use crate::handles::batches::NativeBatches;
    #[pymodule_export]
    use crate::handles::blob::NativeBlob;
    #[pymodule_export]
    use crate::handles::block::{TransactionBlock, WaitedBlock};
    #[pymodule_export]
    use crate::handles::connection::NativeConnection;
    #[pymodule_export]
    use crate::handles::database::NativeDatabase;
    #[pymodule_export]
    use crate::handles::executor::Executor;
    #[pymodule_export]
    use crate::handles::guards::SnapshotGuard;
    #[pymodule_export]
    use crate::handles::live::NativeLive;
    #[pymodule_export]
    use crate::handles::transaction::TransactionGuard;
    #[pymodule_export]
    use crate::results::changes::Change;
    #[pymodule_export]
    use crate::results::columns::Columns;
    #[pymodule_export]
    use crate::results::rows::row::{Row, restore_row};
    #[pymodule_export]
    use crate::results::rows::{Rows, restore_rows};
    #[pymodule_export]
    use crate::results::small::{BackupProgress, CheckpointInfo, ExecuteResult, RunResult};
    #[pymodule_export]
    use crate::told::statement_event::StatementEvent;
    #[pymodule_export]
    use crate::waiting::logical_turns::{Turn, Turns};

    #[pymodule_export]
    use crate::foreign::functions::function;
    #[pymodule_export]
    use crate::given::reading::check_types;
    #[pymodule_export]
    use crate::given::statement::{Statements, Tokens, parameters_of};
    #[pymodule_export]
    use crate::handles::database::{check_sql, connect, is_address, options, problems, refuses_second_copy};
    #[pymodule_export]
    use crate::handles::process::{close_all, close_at_exit, set_max_open};
    #[pymodule_export]
    use crate::results::tuples::{converters_of, tuples};
    #[pymodule_export]
    use crate::told::records::listen;
    #[pymodule_export]
    use crate::waiting::steps::drive;
    #[pymodule_export]
    use crate::waiting::turns::{turn_is_due, turn_was_given};

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
