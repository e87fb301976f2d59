//! A transaction as a block of code: `async with db.transaction()`, or `with`.
//!
//! Owns: the beginning of the block and its end, as calls, and the end of a block of a thread that waits. Runs on the loop's
//! thread, or on the thread that waits. Invariants: however a block is left, its transaction is ended; a block is entered once;
//! the handler of a signal may raise between two instructions of Python, and there is none between the end of the code in the
//! block and that of its transaction. Leaves out: the operations inside (`executor`), the right to the transaction
//! (`transaction`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use flatwater::bindings::{FrontCall, Mailbox, Output, Polled};
use flatwater::{ErrorCode, ErrorKind};
use pyo3::exceptions::PyGeneratorExit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::capi::call_type::new_call;
use crate::capi::thread_end::inside;
use crate::given::seconds::Seconds;
use crate::handles::executor::Executor;
use crate::handles::transaction::{TransactionGuard, is_over};
use crate::results::shape::Shape;
use crate::told::errors::refused;
use crate::waiting::call::Body;
use crate::waiting::nested;
use crate::waiting::owners;
use crate::waiting::pending::Pending;
use crate::waiting::running_loop::running_loop;

/// The base of `Transaction`.
#[pyclass(extends = Executor, subclass, frozen, module = "flatwater._native")]
pub(crate) struct TransactionBlock {
    outer: Py<Executor>,
    timeout: Option<Seconds>,
    /// Set when the block is entered.
    guard: OnceLock<Py<TransactionGuard>>,
    is_committed: AtomicBool,
    is_undone: AtomicBool,
}

/// How a block ends, or its transaction before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    /// The program asked for it.
    Rollback,
    /// The block raises, whatever becomes of the rollback: if it fails, the connection is replaced.
    Raised,
}

impl TransactionBlock {
    /// Returns the one around it, if this is nested.
    fn outer<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, Self>> {
        self.outer.bind(py).cast().ok()
    }

    /// Returns true if it was rolled back, by itself or with one around it.
    fn was_undone(&self, py: Python<'_>) -> bool {
        self.is_undone.load(Ordering::Relaxed) || self.outer(py).is_some_and(|outer| outer.get().was_undone(py))
    }

    /// The transaction has begun, and the block with it. `frame`: that of the `with` statement, if the thread waits and it is
    /// known.
    fn entered(this: &Bound<'_, Self>, waits: bool, frame: Option<usize>, output: Output) -> PyResult<()> {
        let (py, block) = (this.py(), this.get());
        let guard = Bound::new(py, TransactionGuard::of_output(output)?)?;
        let target = guard.get().target(py)?;
        this.as_super().get().open(py, target.clone())?;
        let _ = block.guard.set(guard.clone().unbind());
        let entered = match block.outer(py) {
            Some(_) => nested::enter(&guard),
            None if !waits => owners::note_task(py, target),
            None => {
                // Without one it is unknown whose end it waits for.
                frame.into_iter().for_each(|frame| owners::note_block(target.clone(), frame));
                Ok(())
            }
        };
        // Then the block is not left either.
        entered.inspect_err(|_| block.abandon())
    }

    fn enter<'py>(this: &Bound<'py, Self>, waits: bool, frame: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let (py, block) = (this.py(), this.get());
        if block.guard.get().is_some() {
            return Err(Self::used_twice(py));
        }
        let entered = this.clone().unbind();
        let entered = move |py: Python<'_>, output| {
            let this = entered.into_bound(py);
            Self::entered(&this, waits, frame, output).map(|()| this.into_any().unbind())
        };
        let (outer, shape) = (block.outer.get(), Shape::Handle(Box::new(entered)));
        outer.make(py, "transaction", block.timeout, shape, |target| Ok(target.begin(None)))
    }

    /// Returns the end of the block, if its transaction is not over. One whose code is closed cannot be awaited.
    fn leave<'py>(
        this: &Bound<'py, Self>,
        exc_type: &Bound<'py, PyAny>,
        waits: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, block) = (this.py(), this.get());
        let Some(guard) = block.guard.get() else { return Ok(None) };
        if let Err(error) = inside(py, || nested::leave(guard.bind(py))) {
            block.abandon();
            return Err(error);
        }
        if block.was_undone(py) {
            return Ok(None);
        }
        if exc_type.is_none() {
            return ending(this, End::Commit).map(Some);
        }
        // Without a loop nothing can be waited for, and the error of the block is the one to raise.
        if !waits && (exc_type.is(py.get_type::<PyGeneratorExit>()) || running_loop(py).is_err()) {
            block.abandon();
            return Ok(None);
        }
        ending(this, End::Raised).map(Some)
    }

    fn used_twice(py: Python<'_>) -> PyErr {
        refused(py, ErrorCode::Finished, "a transaction is used once", Some("call `transaction()` for another one"))
    }

    /// Ends the transaction. `None`: it is over.
    fn end(&self, py: Python<'_>, end: End) -> PyResult<Option<FrontCall>> {
        let Some(guard) = self.guard.get().filter(|_| !self.was_undone(py)) else { return Ok(None) };
        match end {
            End::Commit => self.is_committed.store(true, Ordering::Relaxed),
            End::Rollback if self.is_committed.load(Ordering::Relaxed) => {}
            End::Rollback | End::Raised => self.is_undone.store(true, Ordering::Relaxed),
        }
        match (guard.get().take(), end) {
            (Some(transaction), End::Commit) => Ok(Some(transaction.commit().into())),
            (Some(transaction), _) => Ok(Some(transaction.rollback().into())),
            (None, End::Raised) => Ok(None),
            (None, _) => Err(is_over(py)),
        }
    }
}

fn ending<'py>(this: &Bound<'py, TransactionBlock>, end: End) -> PyResult<Bound<'py, PyAny>> {
    let (py, block) = (this.py(), this.get());
    let name = if end == End::Commit { "commit" } else { "rollback" };
    let is_over_now = block.guard.get().is_some_and(|guard| guard.get().is_taken()) && !block.was_undone(py);
    if is_over_now && end != End::Raised {
        return new_call(py, Body::call(name, Err(is_over(py)), Shape::Plain));
    }
    let ending = Box::new(Ending { block: this.clone().unbind(), end, has_begun: false, call: None });
    let mut body = Body::other(name, Ok(ending), Shape::Plain);
    if end == End::Raised {
        // The error of the block is raised, and not that no loop runs.
        body.set_begun();
    }
    new_call(py, body)
}

#[pymethods]
impl TransactionBlock {
    #[new]
    fn new(outer: Py<Executor>, timeout: Option<Seconds>) -> PyClassInitializer<Self> {
        let (is_committed, is_undone) = (AtomicBool::new(false), AtomicBool::new(false));
        let block = Self { outer, timeout, guard: OnceLock::new(), is_committed, is_undone };
        PyClassInitializer::from(Executor::unopened()).add_subclass(block)
    }

    fn __aenter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::enter(this, false, None)
    }

    /// The same for a thread that waits. `frame`: the address of that of its `with` statement, if it is known.
    fn _enter<'py>(this: &Bound<'py, Self>, frame: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        Self::enter(this, true, frame)
    }

    /// Rolls the transaction back, without waiting for that.
    #[pyo3(name = "_abandon")]
    fn abandon(&self) {
        self.is_undone.store(true, Ordering::Relaxed);
        drop(self.guard.get().and_then(|guard| guard.get().take()));
    }

    fn __aexit__<'py>(
        this: &Bound<'py, Self>,
        exc_type: &Bound<'py, PyAny>,
        exc: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (exc, traceback);
        Self::leave(this, exc_type, false)?.map_or_else(|| nothing(this.py()), Ok)
    }

    /// Rolls the transaction back before its block ends, without an exception. Later calls on it raise `ProgrammingError`, and the
    /// end of the block does nothing. Succeeds if SQLite, the idle limit or a close has already rolled it back.
    fn rollback<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.get()._begun(this.py())?;
        ending(this, End::Rollback)
    }

    /// True until the transaction is over.
    #[getter]
    fn in_transaction(&self) -> bool {
        self.guard.get().is_some_and(|guard| guard.get().in_transaction())
    }

    /// Returns the right to the transaction, which has begun.
    fn _begun(&self, py: Python<'_>) -> PyResult<Py<TransactionGuard>> {
        let not_begun = || refused(py, ErrorCode::Finished, "the transaction has not begun", Some("enter its block"));
        self.guard.get().map(|guard| guard.clone_ref(py)).ok_or_else(not_begun)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.outer)?;
        self.guard.get().map_or(Ok(()), |guard| visit.call(guard))
    }
}

/// The base of the `Transaction` of a thread that waits, which has its block in `_on`.
#[pyclass(subclass, frozen, module = "flatwater._native")]
pub(crate) struct WaitedBlock;

#[pymethods]
impl WaitedBlock {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }

    fn __exit__<'py>(
        this: &Bound<'py, Self>,
        exc_type: &Bound<'py, PyAny>,
        exc: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let _ = (exc, traceback);
        let block = this.getattr(intern!(this.py(), "_on"))?.cast_into::<TransactionBlock>()?;
        match TransactionBlock::leave(&block, exc_type, true)? {
            Some(ending) => ending.call_method0(intern!(this.py(), "_wait")).map(drop),
            None => Ok(()),
        }
    }
}

/// The end of a transaction, which begins when it is awaited. If it never is, the transaction is rolled back with the block.
struct Ending {
    block: Py<TransactionBlock>,
    end: End,
    has_begun: bool,
    call: Option<FrontCall>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.has_begun && self.end != End::Rollback {
            self.block.get().abandon();
        }
    }
}

impl Pending for Ending {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        let block = self.block.bind(py).get();
        if !self.has_begun {
            self.has_begun = true;
            self.call = block.end(py, self.end)?;
        }
        let Some(call) = &mut self.call else { return Ok(Polled::Ready(Ok(Output::Done(())))) };
        let polled = Pending::poll(call, py, address)?;
        Ok(match polled {
            Polled::Ready(Err(_)) if self.end == End::Raised => Polled::Ready(Ok(Output::Done(()))),
            Polled::Ready(Err(error)) => {
                if self.end == End::Commit && error.kind() != ErrorKind::CommitUnknown {
                    block.is_undone.store(true, Ordering::Relaxed);
                }
                Polled::Ready(Err(error))
            }
            polled => polled,
        })
    }

    fn give_up(&mut self) -> bool {
        self.call.as_mut().is_some_and(FrontCall::give_up)
    }

    fn begins_on(&mut self, py: Python<'_>) -> Option<usize> {
        Some(self.block.get().guard.get()?.get().target(py).ok()?.database())
    }
}

/// What is awaited where nothing is to be done. It needs no event loop.
struct Nothing;

impl Pending for Nothing {
    fn poll(&mut self, _: Python<'_>, _: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        Ok(Polled::Ready(Ok(Output::Done(()))))
    }

    fn give_up(&mut self) -> bool {
        false
    }
}

fn nothing(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let mut body = Body::other("__aexit__", Ok(Box::new(Nothing)), Shape::Plain);
    body.set_begun();
    new_call(py, body)
}
