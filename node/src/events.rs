//! The events of calls, for the program's tracing channel.
//!
//! Owns: the event of the last poll. Heard on the loop's thread, in the poll that ends a call or in a drop. Invariants: while no call is
//! traced nothing is noted; an event has no bound value. Leaves out: whose event it is, which JavaScript knows: it reads it right
//! after the poll.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flatwater::bindings::Hear;
use flatwater::events::{ExecutedOn, StatementEvent};

use crate::capi::value::{Env, Result, Value};

#[derive(Default)]
pub(crate) struct Events {
    /// Calls were traced.
    is_used: Cell<bool>,
    last: Arc<Mutex<Option<Event>>>,
}

/// The facts of one call. What JavaScript knows itself is left out.
pub(crate) struct Event {
    ran_on: Option<&'static str>,
    queue: Duration,
    lock: Duration,
    run: Duration,
    total: Duration,
    rows: Option<u64>,
    changes: Option<u64>,
    is_slow: bool,
}

impl Events {
    /// A poll begins: an event from now on is of its call.
    pub(crate) fn begin(&self) {
        if self.is_used.get() {
            let _ = self.take();
        }
    }

    pub(crate) fn take(&self) -> Option<Event> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns what notes the events of a database from now on.
    pub(crate) fn hear(&self) -> Hear {
        self.is_used.set(true);
        let last = self.last.clone();
        Arc::new(move |event| {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Event::of(event));
        })
    }
}

impl Event {
    fn of(event: &StatementEvent<'_>) -> Self {
        Self {
            ran_on: event.ran_on.map(ExecutedOn::name),
            queue: event.queue,
            lock: event.lock,
            run: event.run,
            total: event.total,
            rows: event.rows,
            changes: event.changes,
            is_slow: event.is_slow,
        }
    }

    /// Times in milliseconds. What is not known is undefined.
    pub(crate) fn object<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        let object = env.object()?;
        let times = [("queue", self.queue), ("lock", self.lock), ("run", self.run), ("total", self.total)];
        for (name, time) in times {
            env.set(object, name, env.number(time.as_secs_f64() * 1_000.0)?)?;
        }
        for (name, count) in [("rows", self.rows), ("changes", self.changes)] {
            if let Some(count) = count {
                env.set(object, name, env.number(count as f64)?)?;
            }
        }
        if let Some(ran_on) = self.ran_on {
            env.set(object, "ranOn", env.text(ran_on)?)?;
        }
        env.set(object, "isSlow", env.boolean(self.is_slow)?)?;
        Ok(object)
    }
}
