//! The turnstile: processes that write to one file take turns, in the order in which they came.
//!
//! Owns: the turn that this process has in one open database, and when it needs one. Runs on the thread that holds the
//! writer slot; `before_write` and `met_busy` may block it, in slices in which the caller's deadline and cancellation are
//! seen. Invariants: SQLite's own lock stays the authority, so whatever fails here costs fairness only; no mutex is held
//! while a turn is waited for; a turn ends when its slot is released, or, if the writer's thread keeps it for the next
//! slots, after the quantum (`turn`) or when nothing comes. Leaves out: the line (`line`), its file (`side_file`), commits
//! that are told through it (`commits`), waiting without a line (`busy_handler`), what is done in a turn (`workers::writer`).
//!
//! A process that always gets the lock never gets BUSY. So whoever writes looks for the file of those who did:
//!
//! ```text
//! process A                                process B
//! writes, and writes again at once
//!                                          meets BUSY: makes the file, draws a ticket
//! looks, 10 ms after the last look: there
//! is a file, and somebody is in line
//! draws a ticket, and waits                gets the lock, writes, passes the turn on
//! ```

mod commits;
mod holds;
mod line;
mod side_file;
mod ticket;
mod turn;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::{Origin, TurnFile};
use holds::Holds;
use line::Came;
use side_file::SideFile;
use ticket::{Stage, Ticket};
pub(crate) use turn::HOLD;
use turn::{Rest, Turn};

use crate::busy_handler::BusyWait;
use crate::options::{Fairness, Options};
use crate::stats::turn_counters::TurnRecorder;

/// If there is a file, how often a process that writes looks whether somebody is in line.
const LOOK_AT_LINE: Duration = Duration::from_micros(250);

pub(crate) struct Turnstile {
    origin: Origin,
    file: SideFile,
    /// The database is not only read.
    may_make: bool,
    recorder: Arc<TurnRecorder>,
    made: Instant,
    /// Nanoseconds after `made`: until then, as far as is known, nobody is in line.
    quiet_until: AtomicU64,
    /// The writer's thread keeps a turn.
    is_kept: AtomicBool,
    /// This process has a ticket.
    has_ticket: AtomicBool,
    /// Another process waits for commits.
    is_followed: AtomicBool,
    mine: Mutex<Option<Ticket>>,
    holds: Mutex<Holds>,
}

impl Turnstile {
    /// Returns the turnstile of a database, unless the options or its place rule it out.
    pub(crate) fn of(options: &Options, recorder: &Arc<TurnRecorder>) -> Option<Self> {
        let is_meant = options.fairness == Fairness::Auto && !options.is_memory() && !options.immutable;
        (cfg!(target_os = "linux") && is_meant).then(|| Self {
            origin: Origin::here(),
            file: SideFile::new(&options.path, recorder.clone()),
            may_make: !options.read_only,
            recorder: recorder.clone(),
            made: Instant::now(),
            quiet_until: AtomicU64::new(0),
            is_kept: AtomicBool::new(false),
            has_ticket: AtomicBool::new(false),
            is_followed: AtomicBool::new(false),
            mine: Mutex::new(None),
            holds: Mutex::default(),
        })
    }

    /// Called in the slot, before a write: if others are in line, waits for a turn, at most as long as what `wait` returns
    /// says. Blocks.
    pub(crate) fn before_write<'a>(&self, wait: impl FnOnce() -> &'a BusyWait) {
        let now = Instant::now();
        if self.is_quiet(now) {
            return;
        }
        if let Some(file) = self.line(now) {
            self.enter(&file, wait());
        }
        if let Some(mine) = &mut *self.mine() {
            mine.begins_slot(now);
            if let Stage::Turn(turn) = &mut mine.stage {
                turn.is_running = true;
            }
        }
    }

    /// The busy handler of a connection that writes: waits for a turn, or, in one, for a program that takes none. Returns
    /// false if the lock is not to be tried again. Blocks.
    pub(crate) fn met_busy(&self, tries: u32, wait: &BusyWait) -> bool {
        let again = self.waits_again(tries, wait);
        if !again && let Some(Ticket { stage: stage @ Stage::Tries, .. }) = &mut *self.mine() {
            // It did not get the lock.
            *stage = Stage::InLine;
        }
        again
    }

    fn waits_again(&self, tries: u32, wait: &BusyWait) -> bool {
        // A race for a lock that is free again is no reason to wait in line.
        if tries == 0 || self.has_turn() {
            return wait.again(tries);
        }
        if wait.is_over() {
            return false;
        }
        let Some(file) = self.file.get(Instant::now(), true) else { return wait.again(tries) };
        self.enter(&file, wait);
        !wait.is_over()
    }

    /// Returns true if a write may begin now without a wait for a turn. Does not block.
    pub(crate) fn may_write(&self, now: Instant) -> bool {
        if self.is_quiet(now) {
            return true;
        }
        let mut mine = self.mine();
        match &mut *mine {
            Some(mine) if mine.may_go_on(now) => {
                mine.begins_slot(now);
                return true;
            }
            Some(Ticket { stage: Stage::Turn(_), .. }) => {
                drop(mine);
                self.pass();
            }
            Some(_) => return false,
            None => drop(mine),
        }
        self.line(now).is_none()
    }

    /// Called when the slot is released: ends the turn, or keeps it for the next slot if the writer's thread had it. The place
    /// in line of a request that waits no more is that of the next one, if there are more. Returns true if a turn ended.
    pub(crate) fn left_slot(&self, is_writers_thread: bool, are_more: impl FnOnce() -> bool) -> bool {
        if !self.has_ticket.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        let mut mine = self.mine();
        let is_kept = match mine.as_mut() {
            Some(Ticket { stage: Stage::InLine, .. }) => is_writers_thread && are_more(),
            Some(ticket) if ticket.may_go_on(now) => self.keeps(ticket, is_writers_thread, are_more, now),
            _ => false,
        };
        drop(mine);
        if !is_kept {
            self.pass();
        }
        !is_kept
    }

    /// Decides whether a turn is kept for the next slot.
    fn keeps(
        &self,
        ticket: &mut Ticket,
        is_writers_thread: bool,
        are_more: impl FnOnce() -> bool,
        now: Instant,
    ) -> bool {
        let Stage::Turn(turn) = &mut ticket.stage else { return false };
        turn.has_served(now);
        if self.is_kept() {
            self.holds().was(true);
            return true;
        }
        let is_kept = is_writers_thread && (are_more() || self.holds().is_worth_it());
        self.is_kept.store(is_kept, Ordering::Relaxed);
        is_kept
    }

    /// Returns true while the writer's thread keeps a turn: then it may not sleep for longer than `HOLD`.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Called by the writer's thread when nothing came for `HOLD`: passes the turn on, unless it was used meanwhile. Returns
    /// false if there is none.
    pub(crate) fn rests(&self) -> bool {
        if !self.is_kept() {
            return false;
        }
        let Some(Ticket { stage: Stage::Turn(turn), .. }) = self.mine().clone() else { return true };
        match turn.rests(Instant::now()) {
            Rest::Held => {}
            Rest::Outlasted => self.is_kept.store(false, Ordering::Relaxed),
            Rest::Over { in_vain } => {
                if in_vain {
                    self.holds().was(false);
                }
                self.pass();
            }
        }
        true
    }

    /// Gives the file up until the next use, and removes it if no other process uses it. Called when nothing is written, and
    /// at last when the database is closed.
    pub(crate) fn let_go(&self, for_good: bool) {
        self.pass();
        self.is_followed.store(false, Ordering::Relaxed);
        self.file.let_go(for_good);
    }

    /// Called when a parked database has a connection again.
    pub(crate) fn unpark(&self) {
        self.file.unpark();
    }
}

/// After an opening that failed; a close has let go before.
impl Drop for Turnstile {
    fn drop(&mut self) {
        if !self.origin.is_inherited() {
            self.let_go(true);
        }
    }
}

impl Turnstile {
    fn mine(&self) -> MutexGuard<'_, Option<Ticket>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_quiet(&self, now: Instant) -> bool {
        let nanos = now.saturating_duration_since(self.made).as_nanos();
        nanos < u128::from(self.quiet_until.load(Ordering::Relaxed))
    }

    fn set_quiet(&self, until: Instant) {
        let nanos = until.saturating_duration_since(self.made).as_nanos();
        self.quiet_until.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn has_turn(&self) -> bool {
        matches!(*self.mine(), Some(Ticket { stage: Stage::Turn(_), .. }))
    }

    /// Returns the file if this process has no turn, and somebody is in line. Called before a write.
    fn line(&self, now: Instant) -> Option<Arc<TurnFile>> {
        if self.has_turn() {
            return None;
        }
        let Some(file) = self.file.get(now, false) else {
            self.set_quiet(now + side_file::LOOK);
            return None;
        };
        let looked = file.counters().and_then(|counters| Ok((counters, file.has_followers()?)));
        let (counters, is_followed) = self.file.unless_failed(looked)?;
        self.is_followed.store(is_followed, Ordering::Relaxed);
        if line::is_in_use(counters) {
            return Some(file);
        }
        self.set_quiet(now + LOOK_AT_LINE);
        None
    }

    /// Waits for a turn, on from where this process is in line.
    fn enter(&self, file: &Arc<TurnFile>, wait: &BusyWait) {
        let began = Instant::now();
        let entered = self.wait_in_line(file, wait);
        let waited = began.elapsed();
        wait.has_waited(waited);
        self.recorder.waited(waited);
        if self.file.unless_failed(entered).is_none() {
            self.set_mine(None);
        }
    }

    fn wait_in_line(&self, file: &Arc<TurnFile>, wait: &BusyWait) -> io::Result<()> {
        let mine = self.mine().take();
        let (file, number) = match mine {
            Some(Ticket { file, number, .. }) => (file, number),
            None => match line::draw(&**file)? {
                Some(number) => (file.clone(), number),
                None => return Ok(()),
            },
        };
        let at = |stage| Some(Ticket { file: file.clone(), number, stage });
        self.set_mine(at(Stage::InLine));
        let left = || (!wait.is_over()).then(|| wait.left());
        let came = line::wait(&*file, number, left).inspect_err(|_| file.unlock(number))?;
        let now = Instant::now();
        match came {
            Came::Turn => {
                self.recorder.took_turn();
                self.set_mine(at(Stage::Turn(Turn::begin(now))));
            }
            Came::Stalled => self.set_mine(at(Stage::Tries)),
            // The next request may want it.
            Came::Unwanted => {}
        }
        Ok(())
    }

    fn set_mine(&self, mine: Option<Ticket>) {
        self.has_ticket.store(mine.is_some(), Ordering::Relaxed);
        self.quiet_until.store(0, Ordering::Relaxed);
        *self.mine() = mine;
    }

    /// Gives the ticket of this process back, if it has one: the turn is the next one's.
    fn pass(&self) {
        let mine = self.mine().take();
        self.has_ticket.store(false, Ordering::Relaxed);
        self.is_kept.store(false, Ordering::Relaxed);
        let Some(Ticket { file, number, stage }) = mine else { return };
        let passed = match stage {
            Stage::InLine => line::give_up(&*file, number),
            Stage::Tries => {
                self.recorder.jumped();
                line::pass(&*file, number)
            }
            Stage::Turn(_) => line::pass(&*file, number),
        };
        self.file.unless_failed(passed);
    }
}
