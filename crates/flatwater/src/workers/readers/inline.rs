//! Reads on their caller's thread: a short query on a connection nobody uses, if its statement is prepared there.
//!
//! Owns: borrowing a connection for a stay, and telling what became of it. Runs on the thread that polls a call. Waits
//! for nothing but the pool's lock: not for a connection, nor for a lock of the file. Invariant: an answer is the one a
//! worker would give, or there is none and a worker gives it. Leaves out: reads of workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Refusal, is_refusal};

use super::reader::Reader;
use super::{Readers, Shared, State};
use crate::connection::catalogue::Text;
use crate::connection::statements::Ready;
use crate::connection::stay::{self, LastRead};
use crate::encode::rows::RowSink;
use crate::types::inline::{InlineLimits, Moved, Stay};
use crate::types::params::Params;
use crate::types::row::Rows;
use crate::types::time::later;

/// A stay that took so many times its limit is looked into.
const SLOW: u32 = 4;
/// What one step of the virtual machine takes at least when nothing is in its way, as far as slow stays are explained.
const STEP: Duration = Duration::from_nanos(5);

impl Readers {
    /// Runs the query here and now, if it is known to be short and a connection is free that holds it prepared.
    pub(crate) fn stay(
        &self,
        text: &Arc<Text>,
        params: &Params,
        limit: usize,
        limits: &InlineLimits,
        began: Instant,
    ) -> Stay<Rows> {
        let shared = &*self.0;
        if params.heap_bytes() > limits.bytes || shared.breaker.is_off(began) || !text.may_stay() {
            return Stay::Unfit;
        }
        let Some(reader) = shared.lock().lend() else { return Stay::Unfit };
        let mut lent = Lent { readers: self, reader: Some(reader), is_sound: true };
        let Some(reader) = &mut lent.reader else { return Stay::Unfit };
        let Some(ready) = reader.ready_to_stay(shared, text, limits) else { return Stay::Unfit };
        lent.is_sound = false;
        if !reader.enter(began) {
            return Stay::Unfit;
        }
        let (stay, is_sound) = reader.stay(shared, &ready, params, limit, limits, began);
        lent.is_sound = reader.leave(matches!(stay, Stay::Done(..)), began + stay.took()) && is_sound;
        stay
    }
}

/// A connection on loan. It comes back however the stay ends; after a panic it is no more.
struct Lent<'a> {
    readers: &'a Readers,
    reader: Option<Box<Reader>>,
    /// Nothing runs on it, and nothing panicked there.
    is_sound: bool,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let reader = self.reader.take().filter(|_| self.is_sound);
        let shared = &*self.readers.0;
        let mut state = shared.lock();
        state.take_back(reader);
        if state.closed {
            shared.closed.notify_all();
        }
        if !state.waiting.is_empty() {
            // Without a thread the requests that came meanwhile wait for the next push.
            let _ = self.readers.rouse(state);
        }
    }
}

impl State {
    /// The connection that was used last, if nobody waits for one.
    fn lend(&mut self) -> Option<Box<Reader>> {
        if self.closed || !self.waiting.is_empty() { None } else { self.idle.pop() }
    }
}

impl Reader {
    /// The statement of `text`, if it is prepared here and known to be short.
    fn ready_to_stay(&mut self, shared: &Shared, text: &Text, limits: &InlineLimits) -> Option<Arc<Ready>> {
        if self.epoch != shared.catalogue.epoch() {
            return None;
        }
        let ready = self.connection.statements.find(&mut self.connection.sqlite, text)?;
        ready.reads_shortly(limits).then_some(ready)
    }

    /// Runs the query, and answers whether the connection can be used again.
    fn stay(
        &mut self,
        shared: &Shared,
        ready: &Ready,
        params: &Params,
        limit: usize,
        limits: &InlineLimits,
        began: Instant,
    ) -> (Stay<Rows>, bool) {
        let (connection, text) = (&mut self.connection, &ready.text);
        self.lock_wait.never();
        let _ = connection.sqlite.take_steps(ready.id);
        let rows = limit.min(limits.rows.saturating_add(1));
        let mut sink = RowSink::new(text.expected_size(), rows);
        let end = later(began, limits.time);
        let before = stay::begin(&mut connection.sqlite, limits.bytes, Some(LastRead(end, Refusal::Interrupt)));
        stay::end_at(&mut connection.sqlite, &connection.budget, end);
        let ran = connection.sqlite.run(ready.id, params.bindings(), &mut sink);
        let reads = stay::end(&mut connection.sqlite, before);
        let took = began.elapsed();
        shared.breaker.stayed();
        if took > limits.time.saturating_mul(SLOW) {
            // Only for a reason of its own: pages it had to read, or its steps. Otherwise the machine was busy.
            if reads.some || STEP * connection.sqlite.take_steps(ready.id) > took / 2 {
                shared.breaker.was_slow(began + took);
            }
        }
        // A refused read that SQLite made nothing of may have been one of the schema's.
        let is_sound = !reads.refused || ran.as_ref().is_err_and(|error| error.code().is_some_and(is_refusal));
        let stay = match ran {
            Ok(()) if sink.rows_left() == 0 && rows > limits.rows => Stay::Moved(Moved::Other, took),
            Ok(()) => {
                let (cells, bytes) = sink.size();
                text.had_size(cells, bytes);
                Stay::Done(sink.finish(ready.names.clone()), took)
            }
            Err(error) => Stay::Moved(Moved::after(error.code()), took),
        };
        (stay, is_sound)
    }
}
