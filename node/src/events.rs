//! The events of calls, for the program's tracing channel.
//!
//! Owns: the event of the last poll. Heard on the loop's thread, in the poll that ends a call or in a drop. Invariants: while no call is
//! traced nothing is noted; an event has no bound value. Leaves out: whose event it is, which JavaScript knows: it reads it right
//! after the poll.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flatwater::bindings::{Hear, listen as set_listener};
use flatwater::events::{ExecutedOn, StatementEvent};

use crate::capi::function::Call;
use crate::capi::value::{Env, Result, Value};
use crate::handles::Handle;
use crate::host::Host;

#[derive(Default)]
pub(crate) struct Events {
    /// Calls were traced.
    is_used: Cell<bool>,
    last: Arc<Mutex<Option<Event>>>,
}

/// The facts of one call. What JavaScript knows itself is left out.
struct Event {
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

    fn take(&self) -> Option<Event> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn hear(&self) -> Hear {
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
    fn object<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
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

/// `listen(target, on)`: whether the calls on this database have events.
pub(crate) fn listen<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host) = (call.env, call.host);
    let is_on = env.as_bool(call.argument::<1>())?;
    if let Some(target) = host.handles.get(call.number::<0>()?).as_deref().and_then(Handle::target) {
        host.events.is_used.set(true);
        set_listener(target, is_on.then(|| host.events.hear()));
    }
    env.undefined()
}

/// `event()`: the event of the last poll, if a call ended in it.
pub(crate) fn event<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    call.host.events.take().map_or_else(|| call.env.undefined(), |event| event.object(call.env))
}
