//! The handle of an open database.
//!
//! Owns: opening, closing, and the operations that only a database has. Runs on the loop's thread. Leaves out: those
//! that it shares with transactions (`executor`).

use std::path::PathBuf;
use std::sync::Arc;

use flatwater::bindings::{
    FrontCall, Mailbox, Needed, Output, Polled, Target, close, enforces_foreign_keys, functions, joining, open_with,
    set_listener,
};
use flatwater::calls::CheckpointMode;
use flatwater::{ConnectionOptions, Params, Session};
use flatwater_bridge::Opened;
use flatwater_remote::Remote;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::capi::audit;
use crate::capi::call_type::new_call;
use crate::capi::thread_end::inside;
use crate::foreign::functions::NativeFunction;
use crate::given::converters::Converters;
use crate::given::forms::{Forms, Written};
use crate::given::keys::AnyKey;
use crate::given::many::of_pair;
use crate::given::paths::AnyPath;
use crate::given::reading::{Reading, types_of};
use crate::given::seconds::{Seconds, timed};
use crate::given::statement::{Statement, statement};
use crate::handles::connection::NativeConnection;
use crate::handles::live::{NativeLive, Pace};
use crate::results::shape::Shape;
use crate::told::errors::{raised, unexpected};
use crate::told::statement_event;
use crate::waiting::call::Body;
use crate::waiting::owners;
use crate::waiting::pending::Pending;

/// An open database, or one on a server.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeDatabase(Opened);

impl NativeDatabase {
    /// Makes the handle that `connect` returns.
    fn of(py: Python<'_>, output: Output) -> PyResult<Py<PyAny>> {
        let Output::Database(database) = output else { return Err(unexpected()) };
        Py::new(py, Self(Opened::File(database))).map(Py::into_any)
    }

    /// The same for a server, which has answered.
    fn of_server(py: Python<'_>, remote: Remote) -> PyResult<Py<PyAny>> {
        Py::new(py, Self(Opened::Server(remote))).map(Py::into_any)
    }

    fn session(&self) -> &Session {
        self.0.session()
    }

    pub(crate) fn target(&self) -> Target {
        Target::of(self.session())
    }

    /// Returns the database of this process. `what` is what needs one.
    fn database(&self, py: Python<'_>, what: &str) -> PyResult<&flatwater::Database> {
        self.0.file(what).map_err(|error| raised(py, &error))
    }

    /// Returns what closes it, and waits for that, when this one is gone.
    pub(crate) fn closing(&self) -> Box<dyn FnOnce() + Send> {
        let opened = self.0.clone();
        Box::new(move || match opened {
            Opened::File(database) => drop(database.close().wait()),
            server @ Opened::Server(_) => server.close_at_exit(),
        })
    }

    fn call<'py>(&self, py: Python<'py>, name: &'static str, call: PyResult<FrontCall>) -> PyResult<Bound<'py, PyAny>> {
        new_call(py, Body::call(name, call, Shape::Plain))
    }
}

fn pace(debounce: Seconds, throttle: Seconds) -> PyResult<Pace> {
    Ok(Pace { debounce: debounce.duration()?, throttle: throttle.duration()? })
}

/// Opens a database.
#[pyfunction]
#[pyo3(signature = (path, options=None, functions=Vec::new(), joins=false))]
pub(crate) fn connect<'py>(
    py: Python<'py>,
    path: AnyPath,
    options: Option<&Bound<'py, PyDict>>,
    functions: Vec<Bound<'py, NativeFunction>>,
    joins: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(address) = path.0.to_str().filter(|text| flatwater_remote::is_address(text)) {
        return connect_to_server(py, address, options, functions.len());
    }
    audit::watch(py)?;
    let call = inside(py, || {
        let options = crate::given::options::of(path.0, options)?;
        let options = if joins { joining(options) } else { options };
        let functions = functions.iter().map(|function| function.get().take(py)).collect::<PyResult<_>>()?;
        Ok(open_with(options, functions))
    });
    new_call(py, Body::call("connect", call, Shape::Handle(Box::new(NativeDatabase::of))))
}

/// True for what is meant as the address of a server.
#[pyfunction]
pub(crate) fn is_address(path: &str) -> bool {
    flatwater_remote::is_address(path)
}

/// Connects to a server, which answers a first query.
fn connect_to_server<'py>(
    py: Python<'py>,
    address: &str,
    options: Option<&Bound<'py, PyDict>>,
    functions: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let remote = inside(py, || {
        let remote = Remote::connect(address).map_err(|error| raised(py, &error))?;
        crate::given::options::of_server(py, remote, options, functions)
    });
    let (call, shape) = match remote {
        Ok(remote) => {
            let call = Target::of(&remote).query("connect", "SELECT 1", Params::default(), Needed::First);
            (Ok(call), Shape::Handle(Box::new(move |py, _answer| NativeDatabase::of_server(py, remote))))
        }
        Err(error) => (Err(error), Shape::Plain),
    };
    new_call(py, Body::call("connect", call, shape))
}

/// Returns the statement that checks a database, or one of its tables.
#[pyfunction]
pub(crate) fn check_sql(table: Option<&str>, quick: bool, name: &str) -> String {
    flatwater::bindings::check_sql(name, table, quick)
}

/// Returns the problems that a row of it names.
#[pyfunction]
pub(crate) fn problems(row: &str) -> Vec<String> {
    flatwater::bindings::problems(row).collect()
}

/// True if the `sqlite3` module must not open this file, because it is open here.
#[pyfunction]
pub(crate) fn refuses_second_copy(path: PathBuf) -> bool {
    flatwater::bindings::refuses_second_copy(&path)
}

/// The names of the options that are keywords of `connect`, and of those that are keys of its `tuning`, in order.
#[pyfunction]
pub(crate) fn options() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut keywords: Vec<_> = crate::given::options::keywords().collect();
    keywords.sort_unstable();
    (keywords, crate::given::options::tuning().collect())
}

#[pymethods]
impl NativeDatabase {
    /// From now on values have these forms: datetimes those of the `sqlite3` module, and columns what converters make of
    /// their values, by the names of types in upper case, or what `types` says; and rows become what `into` makes of them.
    /// Called once, before the first call.
    fn set_forms(
        &self,
        sqlite3_datetimes: bool,
        converters: Option<Py<PyMapping>>,
        from_declared: bool,
        from_name: bool,
        types: Option<&Bound<'_, PyAny>>,
        into: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let types = types.map_or(Ok(None), types_of)?;
        let written = Written { sqlite3_datetimes, standard: types.is_some() };
        let converters = converters.map(|by_type| Converters::new(by_type, from_declared, from_name));
        Forms { written, reading: Reading::new(converters, types), into: into.map(Arc::new) }.keep(self.session());
        Ok(())
    }

    /// How messages call it: `path`, or the address of a server without its secrets.
    fn name(&self, path: &str) -> String {
        self.0.address().unwrap_or(path).to_owned()
    }

    /// True for a database on a server.
    fn is_server(&self) -> bool {
        self.0.address().is_some()
    }

    /// True if foreign keys are enforced. Those of a server are as it was started.
    fn enforces_foreign_keys(&self) -> bool {
        matches!(&self.0, Opened::File(database) if enforces_foreign_keys(database))
    }

    /// Closes the database.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let closing = Closing { of: self.target(), has_begun: false, call: close(self.session()) };
        new_call(py, Body::other("close", Ok(Box::new(closing)), Shape::Plain))
    }

    /// Returns the statement that tells which pages of an encrypted database cannot be decrypted.
    fn pages_sql(&self, name: &str) -> Option<String> {
        flatwater::bindings::pages_sql(&self.target(), name)
    }

    /// Gives the database a function or a collation.
    fn create(&self, function: &Bound<'_, NativeFunction>) -> PyResult<()> {
        let py = function.py();
        inside(py, || {
            let function = function.get().take(py)?;
            functions::create(self.database(py, "a function")?, function).map_err(|error| raised(py, &error))
        })
    }

    /// Removes a function.
    fn remove_function(&self, py: Python<'_>, name: &str, arguments: i32) -> PyResult<()> {
        let functions = self.database(py, "a function")?.functions();
        inside(py, || functions.remove_function(name, arguments).map_err(|error| raised(py, &error)))
    }

    /// Removes a collation.
    fn remove_collation(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let functions = self.database(py, "a collation")?.functions();
        inside(py, || functions.remove_collation(name).map_err(|error| raised(py, &error)))
    }

    /// True if datetimes are stored as the `sqlite3` module stores them.
    fn keeps_datetimes(&self) -> bool {
        Written::of(&self.target()).sqlite3_datetimes
    }

    /// Calls `tell` with every call of this database that ends, or nobody.
    fn log_queries(&self, tell: Option<Py<PyAny>>) {
        set_listener(self.session(), tell.map(statement_event::listener));
    }

    /// Returns the native side of live queries, whose results are of one snapshot. Nothing begins.
    fn live(
        &self,
        py: Python<'_>,
        queries: Vec<Bound<'_, PyAny>>,
        debounce: Seconds,
        throttle: Seconds,
    ) -> PyResult<NativeLive> {
        let written = Written::of(&self.target());
        let query = |given| {
            let (sql, params) = of_pair(given)?;
            statement(&sql, params.as_ref(), written).map(|Statement { sql, params }| (sql.into_owned(), params))
        };
        let queries = inside(py, || queries.iter().map(query).collect::<PyResult<_>>())?;
        Ok(NativeLive::results(self.session(), queries, pace(debounce, throttle)?))
    }

    /// Returns the native side of the changes of a live query. Nothing begins.
    fn live_changes(
        &self,
        sql: &Bound<'_, PyAny>,
        params: Option<&Bound<'_, PyAny>>,
        debounce: Seconds,
        throttle: Seconds,
    ) -> PyResult<NativeLive> {
        let Statement { sql, params } = inside(sql.py(), || statement(sql, params, Written::of(&self.target())))?;
        Ok(NativeLive::changes(self.session(), &sql, params, pace(debounce, throttle)?))
    }

    /// Returns a connection of the caller's own. Its first statement opens it.
    #[pyo3(signature = (busy_timeout, foreign_keys))]
    fn connection(
        &self,
        py: Python<'_>,
        busy_timeout: Option<Seconds>,
        foreign_keys: Option<bool>,
    ) -> PyResult<NativeConnection> {
        let mut options = ConnectionOptions::new();
        if let Some(time) = busy_timeout {
            options = options.busy_timeout(time.duration()?);
        }
        if let Some(enforced) = foreign_keys {
            options = options.foreign_keys(enforced);
        }
        Ok(NativeConnection::new(options.connect(self.database(py, "a connection of one's own")?)))
    }

    /// Returns what the database has done since it was opened.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::results::stats::of(py, &self.database(py, "`stats`")?.stats())
    }

    /// Applies migrations: pairs of a name and SQL, or the path of a folder.
    #[pyo3(signature = (migrations, ignore_missing, timeout))]
    fn migrate<'py>(
        &self,
        migrations: &Bound<'py, PyAny>,
        ignore_missing: bool,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let list = inside(migrations.py(), || crate::given::options::migrations(migrations));
        let call = list.and_then(|list| timed(self.target().migrate(list.ignore_missing(ignore_missing)), timeout));
        self.call(migrations.py(), "migrate", call)
    }

    /// Copies the database into a new file.
    #[pyo3(signature = (path, timeout, progress=None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        path: AnyPath,
        timeout: Option<Seconds>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(progress) = progress else {
            return self.call(py, "backup", timed(self.target().backup(&path.0), timeout));
        };
        if !progress.is_callable() {
            return Err(PyTypeError::new_err("progress must be callable"));
        }
        let call = timed(self.target().backup_in_parts(&path.0), timeout);
        new_call(py, Body::call("backup", call, Shape::Told(progress.unbind(), None)))
    }

    /// Writes a compact copy of the database into a new file.
    #[pyo3(signature = (path, timeout))]
    fn vacuum_into<'py>(
        &self,
        py: Python<'py>,
        path: AnyPath,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "vacuum_into", timed(self.target().vacuum_into(&path.0), timeout))
    }

    /// Rebuilds the database without its free pages.
    #[pyo3(signature = (timeout))]
    fn vacuum<'py>(&self, py: Python<'py>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "vacuum", timed(self.target().vacuum(), timeout))
    }

    /// Gives free pages back. Returns how many.
    #[pyo3(signature = (pages, timeout))]
    fn incremental_vacuum<'py>(
        &self,
        py: Python<'py>,
        pages: u32,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = self
            .database(py, "an incremental vacuum")
            .and_then(|_| timed(self.target().incremental_vacuum(pages), timeout));
        self.call(py, "incremental_vacuum", call)
    }

    /// Returns the database as bytes.
    #[pyo3(signature = (timeout))]
    fn serialize<'py>(&self, py: Python<'py>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "serialize", timed(self.target().serialize(), timeout))
    }

    /// Copies the database into a new file with another key, or without one.
    #[pyo3(signature = (path, key, timeout))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        path: AnyPath,
        key: Option<AnyKey>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = self
            .database(py, "an export")
            .and_then(|_| timed(self.target().export(&path.0, key.map(|key| key.0)), timeout));
        self.call(py, "export", call)
    }

    /// Encrypts the database with another key.
    #[pyo3(signature = (key, timeout))]
    fn rekey<'py>(&self, py: Python<'py>, key: AnyKey, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        let call = self.database(py, "another key").and_then(|_| timed(self.target().rekey(key.0), timeout));
        self.call(py, "rekey", call)
    }

    /// Whether the database has this key.
    #[pyo3(signature = (key, timeout))]
    fn has_key<'py>(&self, py: Python<'py>, key: AnyKey, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        let call =
            self.database(py, "a question about the key").and_then(|_| timed(self.target().has_key(key.0), timeout));
        self.call(py, "has_key", call)
    }

    /// Runs a checkpoint.
    fn checkpoint<'py>(&self, py: Python<'py>, mode: &str) -> PyResult<Bound<'py, PyAny>> {
        let mode = match mode {
            "passive" => Ok(CheckpointMode::Passive),
            "full" => Ok(CheckpointMode::Full),
            "restart" => Ok(CheckpointMode::Restart),
            "truncate" => Ok(CheckpointMode::Truncate),
            _ => Err(PyValueError::new_err("the mode is \"passive\", \"full\", \"restart\" or \"truncate\"")),
        };
        self.call(py, "checkpoint", mode.map(|mode| self.target().checkpoint(mode)))
    }
}

/// A close, which is refused where it would wait for who awaits it.
struct Closing {
    of: Target,
    has_begun: bool,
    call: FrontCall,
}

impl Pending for Closing {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if !std::mem::replace(&mut self.has_begun, true) {
            owners::refuse_close(py, &self.of)?;
        }
        Pending::poll(&mut self.call, py, address)
    }

    fn give_up(&mut self) -> bool {
        Pending::give_up(&mut self.call)
    }
}
