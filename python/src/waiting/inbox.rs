//! The mailbox of an event loop, in Python: how the loop is woken, and which futures it resumes then.
//!
//! Owns: the bell through which a worker's thread wakes the loop without the interpreter's lock, and the futures of the
//! calls that wait. One per loop; found by the loop itself, which it does not keep alive. Runs on the loop's
//! thread. Invariant: a call that waits has a future in the table, or its wake is on its way. Leaves out: the calls.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flatwater::bindings::Mailbox;
use flatwater_bridge::Tokens;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyWeakrefMethods, PyWeakrefReference};

use crate::told::records;
use crate::waiting::bell::Bell;
use crate::waiting::running_loop::running_loop;

#[pyclass(frozen, weakref, module = "flatwater._native")]
pub(crate) struct Inbox {
    inbox: Arc<flatwater_bridge::Inbox>,
    mailbox: Arc<dyn Mailbox>,
    waiting: Mutex<Tokens<Py<PyAny>>>,
    bell: Arc<Bell>,
}

/// What a call that waits has to do with its loop.
pub(crate) struct Waiting {
    inbox: Py<Inbox>,
    token: u64,
    pub(crate) future: Py<PyAny>,
}

thread_local! {
    /// The loop that was asked for last on this thread, with its inbox.
    static LAST: RefCell<Option<(Py<PyWeakrefReference>, Py<Inbox>)>> = const { RefCell::new(None) };
}

/// The inboxes of all loops, by loop: a `WeakKeyDictionary`.
static ALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Tokens<Py<PyAny>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the inbox of a loop.
    fn new<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = event_loop.py();
        let bell = Arc::<Bell>::default();
        let rung = bell.clone();
        let inbox = flatwater_bridge::Inbox::new(move || rung.ring());
        let mailbox = inbox.clone() as Arc<dyn Mailbox>;
        let new = Bound::new(py, Self { inbox: inbox.clone(), mailbox, waiting: Mutex::default(), bell })?;
        new.get().bell.hang(event_loop, &new)?;
        records::add_bell(&inbox);
        Ok(new)
    }

    /// Returns the inbox of the running loop.
    fn running<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = event_loop.py();
        let last = LAST.with_borrow(|last| {
            let (known, inbox) = last.as_ref()?;
            let is_same = known.bind(py).upgrade().is_some_and(|known| known.is(event_loop));
            is_same.then(|| inbox.bind(py).clone())
        });
        if let Some(inbox) = last {
            return Ok(inbox);
        }
        let all =
            ALL.get_or_try_init(py, || py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind))?;
        let all = all.bind(py);
        let found = all.call_method1(intern!(py, "get"), (event_loop,))?;
        let inbox = match found.cast_into::<Self>() {
            Ok(inbox) => inbox,
            Err(_) => {
                forget_closed(all)?;
                let new = Self::new(event_loop)?;
                all.set_item(event_loop, &new)?;
                new
            }
        };
        let known = (PyWeakrefReference::new(event_loop)?.unbind(), inbox.clone().unbind());
        let before = LAST.replace(Some(known));
        drop(before);
        Ok(inbox)
    }
}

/// Lets go of what waits in loops that are closed: nobody resumes it any more.
fn forget_closed(all: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = all.py();
    // A copy, because loops of other threads may come and go meanwhile.
    for (event_loop, inbox) in all.getattr(intern!(py, "data"))?.cast::<PyDict>()?.copy()? {
        let event_loop = event_loop.call0()?;
        if event_loop.is_none() || !event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            continue;
        }
        all.call_method1(intern!(py, "pop"), (event_loop, py.None()))?;
        let waited = inbox.cast::<Inbox>()?.get().waiting().clear();
        drop(waited);
    }
    Ok(())
}

#[pymethods]
impl Inbox {
    /// Resumes the calls whose tokens were noted, and logs what the engine told. Called by the loop.
    fn deliver(&self, py: Python<'_>) {
        self.bell.hear();
        let mut tokens = Vec::new();
        self.inbox.read(&mut tokens);
        for token in tokens {
            let Some(future) = self.waiting().take(token) else { continue };
            // One that cannot be resumed must not keep the others waiting.
            if let Err(error) = resume(future.bind(py)) {
                error.write_unraisable(py, Some(future.bind(py)));
            }
        }
        records::deliver(py);
    }
}

/// Wakes the task that awaits the future, unless it was cancelled meanwhile.
fn resume(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

impl Waiting {
    /// Makes a future of the running loop, and a token for it.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let event_loop = running_loop(py)?;
        let inbox = Inbox::running(&event_loop)?;
        let future = event_loop.call_method0(intern!(py, "create_future"))?.unbind();
        let token = inbox.get().waiting().add(future.clone_ref(py));
        Ok(Self { inbox: inbox.unbind(), token, future })
    }

    /// Where the reply is to be told, and the token.
    pub(crate) fn address(&self) -> (&Arc<dyn Mailbox>, u64) {
        (&self.inbox.get().mailbox, self.token)
    }

    /// Returns the future, as a coroutine yields it to its task.
    pub(crate) fn to_yield(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.future.bind(py).setattr(intern!(py, "_asyncio_future_blocking"), true)?;
        Ok(self.future.clone_ref(py))
    }

    /// Returns true if the task may go on.
    pub(crate) fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        self.future.bind(py).call_method0(intern!(py, "done"))?.is_truthy()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waited = self.inbox.get().waiting().take(self.token);
        drop(waited);
    }
}
