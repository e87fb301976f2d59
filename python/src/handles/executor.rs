//! What a database, a transaction, a snapshot and a connection have in common: the operations that run SQL.
//!
//! Owns: making calls of arguments. Runs on the loop's thread; no work runs here. Invariants: nothing begins; an error
//! in an argument is raised by the await, as by any coroutine. Leaves out: what differs between the three, which is in
//! Python.

use flatwater::{ErrorCode, Params};
use std::sync::OnceLock;

use flatwater::bindings::{FrontCall, JsonOptions, Needed, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::capi::attributes::set_attribute;
use crate::capi::call_type::new_call;
use crate::capi::thread_end::inside;
use crate::given::forms::{Forms, Written};
use crate::given::many::{Collecting, Collection, ManyRows, Statements};
use crate::given::seconds::{Seconds, timed};
use crate::given::statement::{Statement, statement};
use crate::handles::batches::NativeBatches;
use crate::handles::blob::NativeBlob;
use crate::handles::connection::NativeConnection;
use crate::handles::database::NativeDatabase;
use crate::handles::guards::SnapshotGuard;
use crate::handles::transaction::TransactionGuard;
use crate::results::listing::Into;
use crate::results::shape::Shape;
use crate::told::errors::refused;
use crate::waiting::call::Body;
use crate::waiting::pending::Pending;

/// A statement and its parameters, as a program gives them.
type Given<'a, 'py> = (&'a Bound<'py, PyAny>, Option<&'a Bound<'py, PyAny>>);

/// What a call says besides of itself.
#[derive(Clone, Copy, Default)]
struct Asked<'a, 'py> {
    timeout: Option<Seconds>,
    types: Option<&'a Bound<'py, PyAny>>,
}

/// Runs SQL. The base of `Database`, `Transaction`, `Snapshot` and `Connection`.
#[pyclass(subclass, frozen, weakref, module = "flatwater._native")]
pub(crate) struct Executor {
    /// Set when the database, the transaction, the snapshot or the connection is open.
    target: OnceLock<Target>,
}

impl Executor {
    /// Returns what calls are made on.
    pub(crate) fn target(&self, py: Python<'_>) -> PyResult<&Target> {
        let hint = "use it inside of its `with` block, or open it before";
        self.target.get().ok_or_else(|| refused(py, ErrorCode::Finished, "this is not open", Some(hint)))
    }

    pub(crate) fn unopened() -> Self {
        Self { target: OnceLock::new() }
    }

    /// Takes what calls are made on. Called once.
    pub(crate) fn open(&self, py: Python<'_>, target: Target) -> PyResult<()> {
        let is_first = self.target.set(target).is_ok();
        if is_first {
            Ok(())
        } else {
            Err(refused(py, ErrorCode::Finished, "it was opened before", Some("make another one")))
        }
    }

    /// What becomes of rows: what the call says, or what the database was opened with.
    fn into(&self, py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> Into {
        match (given, self.target.get().and_then(Forms::into_of)) {
            (None, Some(into)) => Into::of(Some(into.bind(py))),
            (given, _) => Into::of(given),
        }
    }

    /// A call on the target.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        name: &'static str,
        timeout: Option<Seconds>,
        shape: Shape,
        call: impl FnOnce(&Target) -> PyResult<FrontCall>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = inside(py, || self.target(py).and_then(|target| timed(call(target)?, timeout)));
        new_call(py, Body::call(name, call, shape))
    }

    /// The same of a statement, whose values may have forms of their own.
    fn make_statement<'py>(
        &self,
        name: &'static str,
        (sql, params): Given<'_, 'py>,
        Asked { timeout, types }: Asked<'_, 'py>,
        shape: Shape,
        call: impl FnOnce(&Target, &str, Params) -> FrontCall,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut reading = None;
        let call = inside(sql.py(), || {
            let target = self.target(sql.py())?;
            let forms = Forms::of_call(target, types)?;
            reading = forms.reading;
            let Statement { sql, params } = statement(sql, params, forms.written)?;
            timed(call(target, &sql, params), timeout)
        });
        new_call(sql.py(), Body::call(name, call, shape).with(reading))
    }

    /// A call whose arguments are taken from an iterable when it runs.
    fn make_of_many<'py, C: Collection + 'static>(
        &self,
        name: &'static str,
        given: &Bound<'py, PyAny>,
        Asked { timeout, types }: Asked<'_, 'py>,
        (shape, keeps): (Shape, bool),
        empty: impl FnOnce(Written) -> PyResult<C>,
        call: fn(&Target, C) -> FrontCall,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut reading = None;
        let begin = || {
            let target = self.target(given.py())?.clone();
            let forms = Forms::of_call(&target, types)?;
            reading = forms.reading;
            let (number, empty) = (target.database(), empty(forms.written)?);
            let make = move |collected| timed(call(&target, collected), timeout);
            Ok(Box::new(Collecting::new(given, number, empty, keeps, Box::new(make))?) as Box<dyn Pending>)
        };
        let body = Body::other(name, inside(given.py(), begin), shape);
        new_call(given.py(), body.with(reading))
    }

    /// A query for all its rows.
    fn make_query<'py>(
        &self,
        name: &'static str,
        given: Given<'_, 'py>,
        asked: Asked<'_, 'py>,
        into: Into,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Rows become a list while the query runs.
        let in_parts = !matches!(into, Into::Row);
        self.make_statement(name, given, asked, Shape::Rows(into), |target, sql, params| match in_parts {
            true => target.query_in_parts(name, sql, params),
            false => target.query(name, sql, params, Needed::All),
        })
    }

    /// A query for its first row.
    fn make_first<'py>(
        &self,
        name: &'static str,
        given: Given<'_, 'py>,
        asked: Asked<'_, 'py>,
        needed: Needed,
        shape: Shape,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_statement(name, given, asked, shape, |target, sql, params| target.query(name, sql, params, needed))
    }
}

#[pymethods]
impl Executor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::unopened()
    }

    /// Of the types of rows, which type checkers know.
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, _types: &Bound<'py, PyAny>) -> Bound<'py, PyType> {
        cls.clone()
    }

    /// Refuses to set what it does not have, with what reading it raises: otherwise a setting of another library would be
    /// accepted and do nothing.
    fn __setattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if !name.to_str()?.starts_with('_') && !this.get_type().hasattr(name)? {
            this.getattr(name)?;
        }
        set_attribute(this.as_any(), name, Some(value))
    }

    fn __delattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        set_attribute(this.as_any(), name, None)
    }

    /// Takes what calls are made on. Called once.
    fn _open(&self, on: &Bound<'_, PyAny>) -> PyResult<()> {
        let target = if let Ok(database) = on.cast::<NativeDatabase>() {
            database.get().target()
        } else if let Ok(guard) = on.cast::<TransactionGuard>() {
            guard.get().target(on.py())?
        } else if let Ok(connection) = on.cast::<NativeConnection>() {
            connection.get().target()
        } else {
            on.cast::<SnapshotGuard>()?.get().target()
        };
        self.open(on.py(), target)
    }

    /// Runs one statement that returns no rows. Returns its changes and the rowid of the last row it inserted.
    #[pyo3(signature = (sql, params=None, *, timeout=None))]
    fn execute<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { timeout, types: None };
        self.make_statement("execute", (sql, params), asked, Shape::Plain, Target::execute)
    }

    /// Runs any one statement. Returns its rows, if it returns rows, and what it changed: for programs that do not know what the
    /// statement is, such as consoles and adapters.
    #[pyo3(signature = (sql, params=None, *, types=None, timeout=None))]
    fn run<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_statement("run", (sql, params), Asked { timeout, types }, Shape::Plain, Target::run)
    }

    /// Runs one statement once per row of parameters, all or nothing. Returns the number of rows it changed.
    #[pyo3(signature = (sql, rows, *, timeout=None))]
    fn executemany<'py>(
        &self,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self._executemany_part(sql, rows, 0, timeout)
    }

    /// The same for a part of the rows, the first of which has this number in errors.
    #[pyo3(signature = (sql, rows, first, timeout))]
    fn _executemany_part<'py>(
        &self,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
        first: usize,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let empty = |written| Ok(ManyRows::new(sql.to_str()?.to_owned(), written, first));
        let call = |target: &Target, many: ManyRows| target.execute_many(&many.sql, many.rows);
        self.make_of_many("executemany", rows, Asked { timeout, types: None }, (Shape::Plain, false), empty, call)
    }

    /// The same of any one statement. Returns what the runs changed, and the rows that they returned, if any. `keeps`: in a
    /// transaction or on a connection of a caller, if a row fails, or cannot be had, those before it stay.
    #[pyo3(signature = (sql, rows, keeps))]
    fn _run_many<'py>(
        &self,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
        keeps: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let empty = |written| Ok(ManyRows::new(sql.to_str()?.to_owned(), written, 0));
        let call: fn(&Target, ManyRows) -> FrontCall = match keeps {
            true => |target, many| target.keeping_rows().run_many(&many.sql, many.rows),
            false => |target, many| target.run_many(&many.sql, many.rows),
        };
        self.make_of_many("executemany", rows, Asked::default(), (Shape::Plain, keeps), empty, call)
    }

    /// Runs several statements without parameters, separated by semicolons, all or nothing.
    #[pyo3(signature = (sql, *, timeout=None))]
    fn executescript<'py>(&self, sql: &Bound<'py, PyString>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        let make = |target: &Target| Ok(target.execute_script(sql.to_str()?));
        self.make(sql.py(), "executescript", timeout, Shape::Plain, make)
    }

    /// Runs several statements with their parameters, all or nothing, in one trip. Returns a result for each.
    #[pyo3(signature = (statements, *, timeout=None))]
    fn batch<'py>(&self, statements: &Bound<'py, PyAny>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        let call = |target: &Target, statements: Statements| target.batch(statements.all);
        let empty = |written| Ok(Statements::new(written));
        self.make_of_many("batch", statements, Asked { timeout, types: None }, (Shape::Plain, false), empty, call)
    }

    /// Runs one statement and returns all its rows: a sequence of `Row`, or a list of what `into` makes of each.
    #[pyo3(signature = (sql, params=None, *, into=None, types=None, timeout=None))]
    fn query<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        into: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_query("query", (sql, params), Asked { timeout, types }, self.into(sql.py(), into))
    }

    /// Runs one statement that returns rows once per row of parameters, all or nothing. Returns the rows of all its runs, as
    /// `query` does.
    #[pyo3(signature = (sql, rows, *, into=None, types=None, timeout=None))]
    fn query_many<'py>(
        &self,
        sql: &Bound<'py, PyString>,
        rows: &Bound<'py, PyAny>,
        into: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let empty = |written| Ok(ManyRows::new(sql.to_str()?.to_owned(), written, 0));
        let call = |target: &Target, many: ManyRows| target.query_many(&many.sql, many.rows);
        let shape = (Shape::Rows(self.into(sql.py(), into)), false);
        self.make_of_many("query_many", rows, Asked { timeout, types }, shape, empty, call)
    }

    /// Runs one statement and returns its first row, or what `into` makes of it. Raises `RowNotFound` without a row.
    #[pyo3(signature = (sql, params=None, *, into=None, types=None, timeout=None))]
    fn query_one<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        into: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = Shape::First(self.into(sql.py(), into));
        self.make_first("query_one", (sql, params), Asked { timeout, types }, Needed::Row, shape)
    }

    /// Runs one statement and returns its first row, or what `into` makes of it, or None without a row.
    #[pyo3(signature = (sql, params=None, *, into=None, types=None, timeout=None))]
    fn query_optional<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        into: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = Shape::First(self.into(sql.py(), into));
        self.make_first("query_optional", (sql, params), Asked { timeout, types }, Needed::First, shape)
    }

    /// Runs one statement and returns the first value of its first row; None for NULL. Raises `RowNotFound` without a row.
    #[pyo3(signature = (sql, params=None, *, types=None, timeout=None))]
    fn query_value<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_first("query_value", (sql, params), Asked { timeout, types }, Needed::Value, Shape::Value)
    }

    /// Runs one statement and returns the first value of its first row; None for NULL and without a row.
    #[pyo3(signature = (sql, params=None, *, types=None, timeout=None))]
    fn query_optional_value<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_first("query_optional_value", (sql, params), Asked { timeout, types }, Needed::First, Shape::Value)
    }

    /// Runs one statement and returns the first value of every row.
    #[pyo3(signature = (sql, params=None, *, types=None, timeout=None))]
    fn query_values<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        types: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_query("query_values", (sql, params), Asked { timeout, types }, Into::Value)
    }

    /// Runs one statement and returns its result as columns.
    #[pyo3(signature = (sql, params=None, *, timeout=None))]
    fn query_columns<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { timeout, types: None };
        let shape = Shape::Columns(Box::default());
        self.make_statement("query_columns", (sql, params), asked, shape, |target, sql, params| {
            target.query_in_parts("query_columns", sql, params)
        })
    }

    /// Runs one statement and returns its rows as the text of a JSON array of objects, or of arrays.
    #[pyo3(signature = (sql, params=None, *, arrays=false, big_integers_as_strings=false, embed=None, timeout=None))]
    fn query_json<'py>(
        &self,
        sql: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
        arrays: bool,
        big_integers_as_strings: bool,
        embed: Option<Vec<String>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = JsonOptions::new().arrays(arrays).big_integers_as_strings(big_integers_as_strings);
        let options = embed.into_iter().flatten().fold(options, JsonOptions::embed);
        let asked = Asked { timeout, types: None };
        self.make_statement("query_json", (sql, params), asked, Shape::Plain, |target, sql, params| {
            target.query_json(sql, params, options)
        })
    }

    /// Compiles a statement. Nothing runs.
    #[pyo3(signature = (sql, timeout))]
    fn _prepare<'py>(&self, sql: &Bound<'py, PyString>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        self.make(sql.py(), "prepare", timeout, Shape::Plain, |target| Ok(target.prepare(sql.to_str()?)))
    }

    /// Returns the native side of a stream or of batches. Nothing begins.
    #[pyo3(signature = (sql, params, timeout, types=None))]
    fn _batches(
        &self,
        sql: &Bound<'_, PyAny>,
        params: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        types: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<NativeBatches> {
        let target = self.target(sql.py())?;
        let Forms { written, reading, .. } = Forms::of_call(target, types)?;
        let Statement { sql: text, params } = inside(sql.py(), || statement(sql, params, written))?;
        let batches = match timeout.map(Seconds::duration).transpose()? {
            Some(timeout) => target.timeout(timeout).batches(&text, params),
            None => target.batches(&text, params),
        };
        Ok(NativeBatches::new(batches, reading))
    }

    /// Opens a value that is read and written in parts. Returns its handle.
    #[pyo3(signature = (table, column, rowid, name, timeout))]
    fn _open_blob<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        column: &str,
        rowid: i64,
        name: &str,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make(py, "open_blob", timeout, Shape::Handle(Box::new(NativeBlob::of)), |target| {
            Ok(target.open_blob((name, table), column, rowid))
        })
    }

    /// Begins a transaction, or in a transaction a nested one. Returns its guard: that which is given, or a new one. In it
    /// `last_insert_rowid()` tells `rowid` until a row is inserted.
    #[pyo3(signature = (timeout, guard=None, rowid=None))]
    fn _begin<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Seconds>,
        guard: Option<Py<TransactionGuard>>,
        rowid: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let begun = move |py: Python<'_>, output| match guard {
            Some(guard) => guard.get().fill(py, output).map(|()| guard.into_any()),
            None => TransactionGuard::of(py, output),
        };
        self.make(py, "transaction", timeout, Shape::Handle(Box::new(begun)), |target| Ok(target.begin(rowid)))
    }

    /// Opens a snapshot. Returns its guard.
    #[pyo3(signature = (timeout))]
    fn _snapshot<'py>(&self, py: Python<'py>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        self.make(py, "snapshot", timeout, Shape::Handle(Box::new(SnapshotGuard::of)), |target| Ok(target.snapshot()))
    }
}
