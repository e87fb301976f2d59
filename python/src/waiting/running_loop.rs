//! The event loop that runs on a thread.
//!
//! Owns: asking asyncio for it, and when this thread asked last. Runs with the interpreter's lock. Invariant: a call that is
//! awaited where no loop runs is refused before it begins, unless a loop ran there less than `MOMENT` ago; one that has to wait
//! is refused in any case. Leaves out: waking the loop (`inbox`).
//!
//! Before Python 3.14 `asyncio.get_running_loop` makes a system call, which would take a fifth of the time of a short read. So a
//! thread asks once for the calls of a moment. `asyncio.run` takes longer to end a loop.

use flatwater::ErrorCode;
use std::cell::Cell;
use std::time::{Duration, Instant};

use flatwater::bindings::{host_turns_between_polls, is_forked};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::told::errors::refused;

/// For so long a thread does not ask again.
const MOMENT: Duration = Duration::from_micros(100);

thread_local! {
    /// When a loop was found last.
    static FOUND: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns the loop that runs on this thread. Without one it says what a call needs.
pub(crate) fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "asyncio", "get_running_loop")?.call0().map_err(|error| no_loop(py, error))
}

/// Returns an error unless a loop runs on this thread. In a forked child that loop may be the parent's: what becomes of the call
/// says the call.
pub(crate) fn needs_loop(py: Python<'_>) -> PyResult<()> {
    if is_forked() {
        host_turns_between_polls();
        return Ok(());
    }
    let now = Instant::now();
    if FOUND.get().is_some_and(|found| now.saturating_duration_since(found) < MOMENT) {
        return Ok(());
    }
    running_loop(py)?;
    // asyncio looks at timers and sockets before each round of what is ready.
    host_turns_between_polls();
    FOUND.set(Some(now));
    Ok(())
}

/// Says that a call was awaited without asyncio: in a task of another library, or resumed by hand.
#[cold]
fn no_loop(py: Python<'_>, error: PyErr) -> PyErr {
    let hint =
        "under trio use `flatwater.blocking` with `trio.to_thread.run_sync`; under anyio the backend \"asyncio\"";
    let refused = refused(
        py,
        ErrorCode::Unsupported,
        "a call must be awaited in an asyncio task, but no asyncio event loop runs here",
        Some(hint),
    );
    refused.set_cause(py, Some(error));
    refused
}
