//! Closing an engine: in the right order, and with an answer in time.
//!
//! Owns: the close in progress, what it leaves behind if something does not end, and how many databases copy the rest of their WALs at a
//! time. Runs on the thread that closes, on the writer's thread, or on `fw-close` if there is no writer, and at the end of the time on
//! the timer's. Invariants: the writer's connection is the last one closed, so that SQLite's own last-close checkpoint runs there; each
//! caller of `close` is answered, at the latest `GRACE` after `Tuning::close_wait`; the reservation of the file ends when the last
//! connection is closed, and not before; there are never more copies at a time than places, so that the disk has a bounded number of
//! syncs to do when the time of a close is over; who gets no place in time copies nothing, and its WAL stays for the next open. Leaves
//! out: how the workers end what they run, and copying (`workers::writer`).
//!
//! ```text
//! close                close_wait                 + GRACE / 2                  + GRACE
//! | new calls: Closed  | transactions: rolled back | commits: refused           | close: Busy, naming what runs
//! | the earlier ones   | what runs: interrupted    | what runs now: interrupted | what waits: Closed
//! | run                | what waits runs           | what waits: Closed         | ... it ends: the connections are
//! |                    |                           |                            | closed, as ever
//! ```

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::{InUse, PerProcess};
use rusqlite::OpenFlags;

use super::Engine;
use super::file_table::left_behind;
use super::parking::unlist;
use super::registry::FileReservation;
use crate::events;
use crate::file::guard::{self, Guard};
use crate::file::watch::Watch;
use crate::options::Options;
use crate::options::resolve::beside;
use crate::queue::reply::Promise;
use crate::turnstile::Turnstile;
use crate::workers::Answer;
use crate::workers::readers::Readers;
use crate::workers::writer::Writer;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::{background, lock};
use flatwater_base::time::later;
use flatwater_base::time::timer::{self, Alarm};

/// How long after its time a close waits for what it has interrupted. In the first half what waited runs.
const GRACE: Duration = Duration::from_secs(2);

/// Held while the database is open, and dropped when it is closed.
#[derive(Default)]
pub(super) struct Hold {
    /// Keeps the timer's thread, for all alarms of this engine.
    pub(super) timer: Option<Alarm>,
    /// The right to close the file, once the close has begun.
    pub(super) reservation: Option<FileReservation>,
    pub(super) in_use: Option<InUse>,
    /// Goes off when the close must answer.
    pub(super) last: Option<Alarm>,
    /// While the rest of the WAL is copied.
    pub(super) permit: Option<CheckpointPermit>,
}

/// The promise to a caller that waits for the end of the close.
pub(crate) type Closed = Promise<Result<Answer>>;

pub(super) enum Closing {
    Open,
    /// The callers that wait for the end of the close.
    Waits(Vec<Closed>),
    /// Something did not end in time: the answer to every close.
    Left(Error),
    Closed,
}

impl Engine {
    fn lock_closing(&self) -> MutexGuard<'_, Closing> {
        lock(&self.closing)
    }

    /// Fills `promise` when the close in progress ends, or at once if there is none, or if it has left something behind.
    pub(crate) fn when_closed(&self, promise: Option<Closed>) {
        let answer = match &mut *self.lock_closing() {
            Closing::Waits(others) => return others.extend(promise),
            Closing::Left(error) => Err(error.clone()),
            Closing::Open | Closing::Closed => Ok(Answer::Done),
        };
        if let Some(promise) = promise {
            promise.answer(answer);
        }
    }

    /// Says that the close begins, so that whoever closes from now on waits for its end. Returns false if another thread said
    /// so before.
    pub(super) fn begin_close(&self) -> bool {
        let mut closing = self.lock_closing();
        let begins = matches!(*closing, Closing::Open);
        if begins {
            *closing = Closing::Waits(Vec::new());
        }
        begins
    }

    /// Closes the database, and gives what was submitted before `wait`. Called once, after `begin_close`, by the holder of the
    /// `reservation` for the file. The close ends the reservation.
    pub(crate) fn close(self: &Arc<Self>, promise: Option<Closed>, reservation: FileReservation, wait: Duration) {
        let deadline = later(Instant::now(), wait);
        let last = later(deadline, GRACE);
        if let Closing::Waits(promises) = &mut *self.lock_closing() {
            promises.extend(promise);
        }
        let left = self.clone();
        let alarm = timer::at(last, move || left.leave_behind());
        let mut hold = self.hold();
        hold.reservation = Some(reservation);
        hold.last = Some(alarm);
        drop(hold);
        self.is_closing.store(true, Ordering::Release);
        self.live.close();
        self.own.close_soon();
        let (first, last) = (self.clone(), self.clone());
        match &self.writer {
            Some(writer) => {
                let open = self.clone();
                let alarm = timer::at(deadline, move || open.end_what_is_open());
                let rest = writer.clone();
                let end = timer::at(later(deadline, GRACE / 2), move || rest.leave_behind());
                let before = Box::new(move || {
                    drop((alarm, end));
                    first.close_readers(deadline);
                    first.time_to_copy(wait, deadline)
                });
                writer.close(before, Box::new(move || last.closed()));
            }
            None => {
                let close = move |engine: &Self| {
                    engine.close_readers(deadline);
                    remove_empty_wals(&engine.context.options);
                    engine.closed();
                };
                if background::run_waiting("fw-close", move || close(&last)).is_err() {
                    // If no thread can be started, this thread closes the database.
                    close(&first);
                }
            }
        }
    }

    /// Called at the end of the close wait, while the writer may still run what was submitted before.
    fn end_what_is_open(&self) {
        self.writer.as_ref().into_iter().for_each(|writer| writer.ongoing().end());
        self.own.end();
        self.context.turnstile.iter().for_each(Turnstile::look_again);
        self.readers.as_ref().into_iter().for_each(Readers::end_reads);
    }

    fn close_readers(&self, deadline: Instant) {
        self.own.wait_until_closed(deadline);
        if let Some(readers) = &self.readers {
            readers.close(deadline);
        }
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.close();
        }
        self.watch().inspect(|watch| watch.release());
    }

    /// Returns how long the rest of the WAL may be copied into the database: the copy ends before the close must answer,
    /// unless it has answered. Waits for a place among those that copy. Blocks.
    fn time_to_copy(&self, wait: Duration, deadline: Instant) -> Duration {
        if matches!(*self.lock_closing(), Closing::Left(_)) {
            return wait;
        }
        let until = later(deadline, GRACE / 2);
        let Some(place) = CheckpointPermit::wait(until) else { return Duration::ZERO };
        self.hold().permit = Some(place);
        wait.min(until.saturating_duration_since(Instant::now()))
    }

    /// Called when the time of the close is over, by far. What runs cannot be ended: the close is answered without it.
    fn leave_behind(&self) {
        let on_reader = || self.readers.as_ref().and_then(Readers::oldest).map(|oldest| oldest.sql());
        self.writer.as_ref().into_iter().for_each(Writer::leave_behind);
        let what = self.writer.as_ref().and_then(|writer| writer.ongoing().name()).or_else(on_reader);
        let what = what.unwrap_or_else(|| "a checkpoint".into());
        let hold = self.hold();
        // `None`: the close has just ended.
        let Some(reservation) = &hold.reservation else { return };
        reservation.leave_behind(&what);
        drop(hold);
        let error = left_behind(&what, self.path());
        let mut closing = self.lock_closing();
        let Closing::Waits(promises) = &mut *closing else { return };
        let promises = std::mem::take(promises);
        *closing = Closing::Left(error.clone());
        drop(closing);
        events::left_behind(self.path(), &what);
        promises.into_iter().for_each(|promise| promise.answer(Err(error.clone())));
        // After the close is answered: what waits may be closures, whose drop is the user's code.
        self.writer.as_ref().into_iter().for_each(Writer::refuse_waiting);
        self.readers.as_ref().into_iter().for_each(Readers::refuse_waiting);
    }

    /// Finishes the close, after all connections are closed.
    fn closed(&self) {
        unlist(self);
        self.context.turnstile.iter().for_each(|turnstile| turnstile.let_go(true));
        self.observed.iter().for_each(|file| file.let_go(true));
        let Hold { reservation, in_use, last, permit, timer } = std::mem::take(&mut *self.hold());
        drop((last, permit, timer));
        self.watch().and_then(Watch::unguard).into_iter().for_each(Guard::keep);
        guard::close_kept();
        drop(reservation);
        drop(in_use);
        let before = std::mem::replace(&mut *self.lock_closing(), Closing::Closed);
        if let Closing::Waits(promises) = before {
            promises.into_iter().for_each(|promise| promise.answer(Ok(Answer::Done)));
        }
        self.context.functions.let_go();
    }
}

/// Removes what SQLite has made beside files that were only read. It makes a WAL and its index for any connection, and removes
/// them with the last one that may write (`sqlite3WalClose`). So such a one is opened and closed, without a wait, if the WAL
/// has no commits, which it would copy into the file. Where somebody else uses the file, or it cannot be written, they stay.
fn remove_empty_wals(options: &Options) {
    let attached = options.attach.iter().filter(|attached| !attached.immutable).map(|attached| &attached.path);
    let main = (!options.assume_immutable).then_some(&options.path);
    for path in main.into_iter().chain(attached) {
        let is_empty = std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() == 0);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = || match options.vfs.as_deref() {
            Some(vfs) => rusqlite::Connection::open_with_flags_and_vfs(path, flags, vfs),
            None => rusqlite::Connection::open_with_flags(path, flags),
        };
        if is_empty
            && let Ok(sqlite) = opened()
            && sqlite.busy_timeout(Duration::ZERO).is_ok()
        {
            // It uses the WAL from its first read on, also if that fails, such as without a key.
            let _ = sqlite.query_row("PRAGMA schema_version", [], |_| Ok(()));
        }
    }
}

/// A disk syncs several files in little more time than one.
const PLACES: usize = 16;

static TAKEN: PerProcess<usize> = PerProcess::new(|| 0);
/// Signalled when a place is free.
static FREE: Condvar = Condvar::new();

/// A place. Dropping it gives it to another one.
pub(super) struct CheckpointPermit(());

impl CheckpointPermit {
    /// Waits for a place. Returns `None` if there is none until then. Blocks.
    pub(super) fn wait(until: Instant) -> Option<Self> {
        let left = until.saturating_duration_since(Instant::now());
        let waited = FREE.wait_timeout_while(TAKEN.lock(), left, |taken| **taken >= PLACES);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_free = **taken < PLACES;
        **taken += usize::from(is_free);
        is_free.then(|| Self(()))
    }
}

impl Drop for CheckpointPermit {
    fn drop(&mut self) {
        **TAKEN.lock() -= 1;
        FREE.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn there_are_so_many_places_and_who_waits_in_vain_gets_none() {
        let until = Instant::now() + Duration::from_secs(600);
        let places: Vec<_> = (0..PLACES).map(|_| CheckpointPermit::wait(until).unwrap()).collect();
        assert!(CheckpointPermit::wait(Instant::now()).is_none());
        let waits = std::thread::spawn(move || CheckpointPermit::wait(until).is_some());
        drop(places);
        assert!(waits.join().unwrap());
    }
}
