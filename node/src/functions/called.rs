//! What SQLite calls: functions, aggregates, window functions and collations that ask a thread of Node.
//!
//! Owns: their arguments, the rows of an aggregate that were not handed over yet, and what becomes of a failure. Runs on the threads of
//! databases, inside of SQLite. Invariants: an aggregate stays with the worker that has its first row; its `result` is called once,
//! unless its statement has failed: then it is forgotten; a statement that is to end waits for nobody; the code of a function on a loop
//! is let go when no database has it. Leaves out: the worker's side.

use std::cmp::Ordering;
use std::mem::take;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use flatwater::ValueRef;
use flatwater::bindings::functions::{Function, OwnError};
use flatwater::rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use flatwater::rusqlite::types::Value as SqlValue;
use flatwater::rusqlite::{Error, Result, ffi};

use super::definition::{Definition, Kind};
use super::modules::{Module, instance};
use super::request::{Answer, Failed, Method, Request};
use super::worker::{Worker, no_worker};

/// So many rows of an aggregate go over at once, and so many bytes of its arguments.
const ROWS: usize = 64;
const BYTES: usize = 64 * 1024;

/// Who answers.
enum Asked {
    /// The workers of a module.
    Module(Arc<Module>),
    /// The loop of the program.
    Loop(Arc<Worker>),
}

/// One definition.
struct Code {
    asked: Asked,
    at: usize,
    definition: Arc<Definition>,
}

/// The functions of a module, for a database.
pub(crate) fn functions(module: &Arc<Module>) -> flatwater::Result<Vec<Function>> {
    let definitions = module.definitions().into_iter().enumerate();
    let of = |(at, definition)| Code { asked: Asked::Module(module.clone()), at, definition }.function();
    definitions.map(of).collect()
}

/// Functions on a loop, for one database. JavaScript has the code of the first under the number `first`.
pub(crate) fn functions_on_loop(
    worker: &Arc<Worker>,
    first: usize,
    definitions: Vec<Arc<Definition>>,
) -> flatwater::Result<Vec<Function>> {
    let of = |(at, definition)| Code { asked: Asked::Loop(worker.clone()), at, definition };
    // All are there, so that all are let go if one is refused.
    let codes: Vec<Code> = (first..).zip(definitions).map(of).collect();
    codes.into_iter().map(Code::function).collect()
}

impl Code {
    fn function(self) -> flatwater::Result<Function> {
        let definition = self.definition.clone();
        let Definition { name, kind, arguments, is_deterministic, is_direct_only, integers } = &*definition;
        let mut flags = FunctionFlags::SQLITE_UTF8;
        flags.set(FunctionFlags::SQLITE_DETERMINISTIC, *is_deterministic);
        flags.set(FunctionFlags::SQLITE_DIRECTONLY, *is_direct_only);
        // Databases share the code of a module, and not that of a loop.
        let module = if let Asked::Module(module) = &self.asked { Some(Arc::as_ptr(module).addr()) } else { None };
        let function = match kind {
            Kind::Function => Function::scalar(name, *arguments, flags, move |context| self.scalar(context)),
            Kind::Aggregate => Function::aggregate(name, *arguments, flags, self),
            Kind::Window => Function::window(name, *arguments, flags, self),
            Kind::Collation => Function::collation(name, move |one, other| self.compare(one, other)),
        };
        let way = (*kind as u32) << 4 | u32::from(*is_deterministic) << 3 | u32::from(*is_direct_only) << 2 | *integers;
        let function = function?.waiting();
        Ok(match module {
            Some(address) => function.known_as(address, way),
            None => function,
        })
    }

    /// Who answers now, and the number by which it has the code.
    fn worker(&self) -> Result<(Arc<Worker>, usize), Failed> {
        match &self.asked {
            Asked::Loop(worker) => Ok((worker.clone(), self.at)),
            Asked::Module(module) => {
                module.worker(self.at, &self.definition).ok_or_else(|| no_worker(&self.definition, "was not called"))
            }
        }
    }

    fn scalar(&self, context: &Context<'_>) -> Result<SqlValue> {
        let ask = || {
            let (worker, at) = self.worker()?;
            worker.ask(Request::new(
                (&self.definition, at),
                0,
                vec![(Method::Call, context.len())],
                arguments(context).collect(),
            ))
        };
        of_sqlite(ask())
    }

    fn compare(&self, one: &str, other: &str) -> Result<Ordering, OwnError> {
        let ask = || {
            let (worker, at) = self.worker()?;
            let texts = [one, other].map(|text| SqlValue::Text(text.to_owned()));
            worker.ask(Request::new((&self.definition, at), 0, vec![(Method::Compare, 2)], texts.into()))
        };
        match ask() {
            Ok(SqlValue::Integer(order)) => Ok(order.cmp(&0)),
            Ok(SqlValue::Real(order)) => Ok(order.total_cmp(&0.0)),
            Ok(_) => Err(format!("{} returned no number", self.definition.said()).into()),
            Err(Failed::Ended) => Err(format!("{} was ended", self.definition.said()).into()),
            Err(Failed::Threw(threw)) => Err(threw.into()),
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Asked::Loop(worker) = &self.asked {
            worker.tell(Request::new((&self.definition, self.at), 0, vec![(Method::Release, 0)], Vec::new()));
        }
    }
}

fn arguments<'a>(context: &'a Context<'_>) -> impl Iterator<Item = SqlValue> + use<'a> {
    (0..context.len()).map(|at| match context.get_raw(at) {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_owned()),
    })
}

fn of_sqlite(answer: Answer) -> Result<SqlValue> {
    answer.map_err(|failed| match failed {
        // As SQLite's own interrupt.
        Failed::Ended => Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None),
        Failed::Threw(threw) => Error::UserFunctionError(threw.into()),
    })
}

/// A group of rows, or a window.
struct Instance {
    worker: Arc<Worker>,
    definition: Arc<Definition>,
    at: usize,
    number: u64,
    /// Rows that the worker does not have yet.
    calls: Vec<(Method, usize)>,
    arguments: Vec<SqlValue>,
    bytes: usize,
    has_failed: bool,
    /// The worker has it no more.
    is_over: bool,
}

/// A panic leaves it as it is.
impl UnwindSafe for Instance {}
impl RefUnwindSafe for Instance {}

impl Instance {
    fn new(code: &Code) -> Result<Self, Failed> {
        let (worker, at) = code.worker()?;
        let (calls, arguments) = Default::default();
        let definition = code.definition.clone();
        Ok(Self {
            worker,
            definition,
            at,
            number: instance(),
            calls,
            arguments,
            bytes: 0,
            has_failed: false,
            is_over: false,
        })
    }

    fn row(&mut self, method: Method, context: &Context<'_>) -> Result<()> {
        self.calls.push((method, context.len()));
        for value in arguments(context) {
            self.bytes += match &value {
                SqlValue::Text(text) => text.len(),
                SqlValue::Blob(bytes) => bytes.len(),
                _ => 0,
            };
            self.arguments.push(value);
        }
        if self.calls.len() < ROWS && self.bytes < BYTES {
            return Ok(());
        }
        of_sqlite(self.ask()).map(drop)
    }

    fn ask(&mut self) -> Answer {
        self.bytes = 0;
        let request =
            Request::new((&self.definition, self.at), self.number, take(&mut self.calls), take(&mut self.arguments));
        let answer = self.worker.ask(request);
        self.has_failed |= answer.is_err();
        answer
    }

    fn then(&mut self, method: Method) -> Answer {
        self.calls.push((method, 0));
        let answer = self.ask();
        self.is_over = method == Method::Result && !matches!(answer, Err(Failed::Ended));
        answer
    }
}

/// Of one whose `result` was not asked for, or not answered.
impl Drop for Instance {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let of = (&self.definition, self.at);
        self.worker.tell(Request::new(of, self.number, vec![(Method::Forget, 0)], Vec::new()));
    }
}

impl Aggregate<Instance, SqlValue> for Code {
    fn init(&self, _: &mut Context<'_>) -> Result<Instance> {
        Instance::new(self).map_err(|failed| of_sqlite(Err(failed)).unwrap_err())
    }

    fn step(&self, context: &mut Context<'_>, instance: &mut Instance) -> Result<()> {
        instance.row(Method::Step, context)
    }

    fn finalize(&self, _: &mut Context<'_>, instance: Option<Instance>) -> Result<SqlValue> {
        // Without rows it begins here.
        let mut instance = match instance.map_or_else(|| Instance::new(self), Ok) {
            Ok(instance) => instance,
            Err(failed) => return of_sqlite(Err(failed)),
        };
        // SQLite ends the aggregates of a statement that has failed too, and takes no result.
        if instance.has_failed { Ok(SqlValue::Null) } else { of_sqlite(instance.then(Method::Result)) }
    }
}

impl WindowAggregate<Instance, SqlValue> for Code {
    fn value(&self, instance: Option<&mut Instance>) -> Result<SqlValue> {
        match instance {
            Some(instance) => of_sqlite(instance.then(Method::Value)),
            None => self.finalize_empty(),
        }
    }

    fn inverse(&self, context: &mut Context<'_>, instance: &mut Instance) -> Result<()> {
        instance.row(Method::Inverse, context)
    }
}

impl Code {
    /// The result of no rows.
    fn finalize_empty(&self) -> Result<SqlValue> {
        of_sqlite(Instance::new(self).and_then(|mut instance| instance.then(Method::Result)))
    }
}
