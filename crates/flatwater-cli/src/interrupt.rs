//! Ctrl-C, and SIGTERM: what runs is ended in order, and the second time the process is.
//!
//! Owns: the one handler of the process, and what it ends. The handler runs on a thread of its own. Invariant: an interrupted command
//! leaves no half of a backup and no open transaction, because what it waits for ends with an error. Leaves out: the shell, which
//! interrupts a statement by the same handler and goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use flatwater::Database;

use crate::failure::{Failure, Outcome};

type Action = Box<dyn FnMut() + Send>;

static CAME: AtomicBool = AtomicBool::new(false);
static ACTION: Mutex<Option<Action>> = Mutex::new(None);

/// Returns whether the command was interrupted.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::SeqCst)
}

/// Sets what the next Ctrl-C does. The process ends at the second one, unless `forget` is called between.
pub(crate) fn on_interrupt(action: impl FnMut() + Send + 'static) -> Outcome {
    let is_first = {
        let mut current = ACTION.lock().unwrap_or_else(PoisonError::into_inner);
        current.replace(Box::new(action)).is_none()
    };
    if is_first {
        ctrlc::set_handler(|| {
            if CAME.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            if let Some(action) = &mut *ACTION.lock().unwrap_or_else(PoisonError::into_inner) {
                action();
            }
        })
        .map_err(|error| Failure::System("listening for Ctrl-C".to_owned(), std::io::Error::other(error)))?;
    }
    Ok(())
}

/// Makes the next Ctrl-C a first one.
pub(crate) fn forget() {
    CAME.store(false, Ordering::SeqCst);
}

/// Closes this database at Ctrl-C: what runs in it is rolled back, and its calls return.
pub(crate) fn closes(db: &Database) -> Outcome {
    let db = db.clone();
    on_interrupt(move || {
        let _ = db.close().wait();
    })
}
