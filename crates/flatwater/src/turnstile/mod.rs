//! The turnstile: processes that write to one file take turns, in the order in which they came.
//!
//! Owns: the turn that this process has in one open database, and when it needs one; and telling other processes of commits through
//! the file of the turnstile. Runs on the thread that holds the writer slot; `before_write` and `found_busy` may block it, in slices in
//! which the caller's deadline and cancellation are seen. Invariants: SQLite's own lock stays the authority, so whatever fails here
//! costs fairness only; no mutex is held while a turn is waited for; a turn ends when its slot is released, or, if it is kept for the
//! next slots, after the quantum (`turn`) or when nothing comes. Leaves out: the line (`line`), its file (`side_file`), the thread that
//! waits for commits (`workers::live`), waiting without a line (`busy_handler`), what is done in a turn (`workers::writer`).
//!
//! A process that always gets the lock never gets BUSY. So whoever writes looks for the file of those who did:
//!
//! ```text
//! process A                                process B
//! writes, and writes again at once
//!                                          finds BUSY: makes the file, draws a ticket
//! looks, 10 ms after the last look: there
//! is a file, and somebody is in line
//! draws a ticket, and waits                gets the lock, writes, passes the turn on
//! ```

mod line;
mod side_file;
mod turn;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use flatwater_sqlite::{Origin, TurnFile, Word};
use line::Came;
use side_file::SideFile;
pub(crate) use turn::LeftTurn;
use turn::{Holds, Stage, Ticket, Turn};

use crate::options::{Fairness, Options};
use crate::stats::file_counters::TurnRecorder;
use flatwater_base::busy_handler::BusyWait;
use flatwater_base::thread::lock;

/// If there is a file, how often a process that writes looks whether somebody is in line.
const LOOK_AT_LINE: Duration = Duration::from_micros(250);

pub(crate) struct Turnstile {
    origin: Origin,
    file: SideFile,
    /// The database is not only read.
    may_make: bool,
    recorder: Arc<TurnRecorder>,
    quiet: Quiet,
    /// A turn is kept for the next slot.
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
        let is_meant = options.fairness == Fairness::Auto && !options.is_memory() && !options.assume_immutable;
        (cfg!(target_os = "linux") && is_meant).then(|| Self {
            origin: Origin::here(),
            file: SideFile::new(&options.path, recorder.clone()),
            may_make: !options.read_only,
            recorder: recorder.clone(),
            quiet: Quiet::new(),
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
        if self.quiet.is_at(now) {
            return;
        }
        self.pass_if_over(now);
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
    pub(crate) fn found_busy(&self, tries: u32, wait: &BusyWait) -> bool {
        let again = self.waits_again(tries, wait);
        if !again && let Some(Ticket { stage: stage @ Stage::Tries, .. }) = &mut *self.mine() {
            // It did not get the lock.
            *stage = Stage::InLine;
        }
        again
    }

    fn waits_again(&self, tries: u32, wait: &BusyWait) -> bool {
        // A race for a lock that is free again is no reason to wait in line.
        if tries == 0 || self.mine().as_ref().is_some_and(Ticket::has_turn) {
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
        if self.quiet.is_at(now) {
            return true;
        }
        self.pass_if_over(now);
        match &mut *self.mine() {
            Some(mine) if mine.may_go_on(now) => {
                mine.begins_slot(now);
                return true;
            }
            Some(_) => return false,
            None => {}
        }
        self.line(now).is_none()
    }

    /// Called when the caller that is waited for may have left, or the database closes: has the thread that waits in line look
    /// whether it is still to.
    pub(crate) fn look_again(&self) {
        if let Some(Ticket { file, number, stage: Stage::InLine }) = &*self.mine() {
            line::look_again(&**file, *number);
        }
    }

    /// Gives the file up until the next use, and removes it if no other process uses it. Called when nothing is written, and
    /// at last when the database is closed.
    pub(crate) fn let_go(&self, for_good: bool) {
        self.pass();
        self.is_followed.store(false, Ordering::Relaxed);
        self.file.let_go(for_good);
    }

    /// Tells processes that wait for commits of one that left the WAL with this change counter. Does not block.
    pub(crate) fn committed(&self, change: u32) {
        if !self.is_followed.load(Ordering::Relaxed) {
            return;
        }
        if let Some(file) = self.file.opened().filter(|file| file.set(Word::Commit, change).is_ok()) {
            file.wake(Word::Commit, u32::MAX);
            self.recorder.commits_announced.count();
        }
    }

    /// Returns the file, for a thread that waits for commits. If there is none, a process that may write makes it. `None`
    /// while the database is parked.
    pub(crate) fn follow(&self) -> Option<Arc<TurnFile>> {
        let file = self.file.get_unless_parked(Instant::now(), self.may_make)?;
        self.file.unless_failed(file.follow()).map(|()| file)
    }

    /// Called by that thread when it waits no more.
    pub(crate) fn follow_no_more(&self) {
        self.file.opened().inspect(|file| file.follow_no_more());
    }

    /// Counts a commit of another process that was heard of here.
    pub(crate) fn heard(&self) {
        self.recorder.commits_heard.count();
    }

    /// Called when a parked database has a connection again.
    pub(crate) fn unpark(&self) {
        self.file.unpark();
    }

    fn mine(&self) -> MutexGuard<'_, Option<Ticket>> {
        lock(&self.mine)
    }

    /// Returns the file if this process has no turn, and somebody is in line. Called before a write.
    fn line(&self, now: Instant) -> Option<Arc<TurnFile>> {
        if self.mine().as_ref().is_some_and(Ticket::has_turn) {
            return None;
        }
        let Some(file) = self.file.get(now, false) else {
            self.quiet.set(now + side_file::LOOK);
            return None;
        };
        let looked = file.counters().and_then(|counters| Ok((counters, file.has_followers()?)));
        let (counters, is_followed) = self.file.unless_failed(looked)?;
        self.is_followed.store(is_followed, Ordering::Relaxed);
        if line::is_in_use(counters) {
            return Some(file);
        }
        self.quiet.set(now + LOOK_AT_LINE);
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
                self.recorder.taken.count();
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
        self.quiet.end();
        *self.mine() = mine;
    }

    /// Ends a turn that has lasted for too long.
    fn pass_if_over(&self, now: Instant) {
        let is_over = |mine: &Ticket| matches!(mine.stage, Stage::Turn(turn) if !turn.may_go_on(now));
        if self.mine().as_ref().is_some_and(is_over) {
            self.pass();
        }
    }

    /// Gives the ticket of this process back, if it has one: the turn is the next one's.
    pub(crate) fn pass(&self) {
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

/// After an opening that failed; a close has let go before.
impl Drop for Turnstile {
    fn drop(&mut self) {
        if !self.origin.is_inherited() {
            self.let_go(true);
        }
    }
}

/// Until when nobody is in line, as far as is known: a write reads it without a lock.
struct Quiet {
    made: Instant,
    /// Nanoseconds after `made`.
    until: AtomicU64,
}

impl Quiet {
    fn new() -> Self {
        Self { made: Instant::now(), until: AtomicU64::new(0) }
    }

    fn is_at(&self, now: Instant) -> bool {
        let nanos = now.saturating_duration_since(self.made).as_nanos();
        nanos < u128::from(self.until.load(Ordering::Relaxed))
    }

    fn set(&self, until: Instant) {
        let nanos = until.saturating_duration_since(self.made).as_nanos();
        self.until.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn end(&self) {
        self.until.store(0, Ordering::Relaxed);
    }
}
