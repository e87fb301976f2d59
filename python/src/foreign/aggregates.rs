//! Aggregate and window functions that are classes of Python: `step`, `finalize`, `value` and `inverse`, as the `sqlite3`
//! module calls them.
//!
//! Owns: the instance, from the first row of a group to its end. Runs on the threads of the database, inside of SQLite.
//! Invariants: there is no instance for a group without rows, whose result is NULL; `finalize` is called once for each other
//! one, also when the statement has failed or was interrupted. Leaves out: arguments, results and exceptions (`calls_python`).

use std::panic::{RefUnwindSafe, UnwindSafe};

use flatwater::rusqlite::Result;
use flatwater::rusqlite::functions::{Aggregate, Context, WindowAggregate};
use flatwater::rusqlite::types::Value;
use pyo3::intern;
use pyo3::prelude::*;

use crate::foreign::calls_python::Code;

/// The class.
pub(crate) struct PythonAggregate(pub(crate) Code);

/// An instance of it.
pub(crate) struct Instance(Py<PyAny>);

/// A panic leaves it as it is: its state is Python's.
impl UnwindSafe for Instance {}
impl RefUnwindSafe for Instance {}

impl Aggregate<Instance, Value> for PythonAggregate {
    fn init(&self, _: &mut Context<'_>) -> Result<Instance> {
        let Self(code) = self;
        code.run(|py| code.code.call0(py).map(Instance).map_err(|error| code.raised(py, error)))
    }

    fn step(&self, context: &mut Context<'_>, instance: &mut Instance) -> Result<()> {
        let Self(code) = self;
        code.run(|py| {
            let arguments = code.arguments(py, context)?;
            let stepped = instance.0.call_method1(py, intern!(py, "step"), arguments);
            stepped.map(drop).map_err(|error| code.raised(py, error))
        })
    }

    fn finalize(&self, _: &mut Context<'_>, instance: Option<Instance>) -> Result<Value> {
        let Self(code) = self;
        let Some(instance) = instance else { return Ok(Value::Null) };
        code.run(|py| {
            let result = instance.0.bind(py).call_method0(intern!(py, "finalize"));
            let result = code.stored(&result.map_err(|error| code.raised(py, error))?);
            // While the thread has the interpreter's lock.
            drop(instance);
            result
        })
    }
}

impl WindowAggregate<Instance, Value> for PythonAggregate {
    fn value(&self, instance: Option<&mut Instance>) -> Result<Value> {
        let Self(code) = self;
        let Some(instance) = instance else { return Ok(Value::Null) };
        code.run(|py| {
            let result = instance.0.bind(py).call_method0(intern!(py, "value"));
            code.stored(&result.map_err(|error| code.raised(py, error))?)
        })
    }

    fn inverse(&self, context: &mut Context<'_>, instance: &mut Instance) -> Result<()> {
        let Self(code) = self;
        code.run(|py| {
            let arguments = code.arguments(py, context)?;
            let stepped = instance.0.call_method1(py, intern!(py, "inverse"), arguments);
            stepped.map(drop).map_err(|error| code.raised(py, error))
        })
    }
}
