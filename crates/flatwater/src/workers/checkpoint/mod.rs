//! The checkpointer: keeps the WAL short, so that no user's commit has to checkpoint. Thread `fw-checkpoint`.
//!
//! Owns: what that thread shares with those that write: the length of the WAL as the writer reports it, the limits near which
//! writes wait, and when the next one may begin. Runs on all of them. Invariants: passive checkpoints and syncs hold
//! no lock that a writer needs; the WAL is restarted only between two rounds of the writer, which waits for that no longer
//! than the budget and one sync; a failure is counted and retried on another connection, and no caller waits for it
//! meanwhile. The exception is a failed sync: after it the database refuses writes. Leaves out: deciding what to do when
//! (`decision`), doing it, and the connection (`thread`, `passes`, `pin`), when the thread starts and ends (`life`), how long a
//! write waits (`write_delay`).

mod decision;
mod life;
mod passes;
mod pin;
mod thread;
mod write_delay;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

use decision::Policy;
use flatwater_sqlite::WalHeader;
use pin::Pin;
use write_delay::Pace;

use crate::file::disk::{Disk, frame_bytes};
use crate::file::watch::Watch;
use crate::options::CheckpointLimits;
use crate::workers::context::Context;
use crate::workers::interfaces::CommitListener;
use crate::workers::work::InSlot;
use flatwater_base::error::Result;
use flatwater_base::thread::lock;
use flatwater_base::time::timer::Deadline;

/// What the checkpointer needs from other workers.
pub(crate) struct Powers {
    /// Runs a closure between two rounds of the writer. Returns false if there is no writer any more.
    pub(crate) in_slot: Box<dyn Fn(InSlot) -> bool + Send + Sync>,
    /// Returns the read that has been running longest.
    pub(crate) oldest_read: Box<dyn Fn() -> Option<OldestRead> + Send + Sync>,
    /// Ends the snapshots that readers keep for their next read. While the returned value lives, no reader keeps one.
    pub(crate) end_leases: Box<dyn Fn() -> Box<dyn Send> + Send + Sync>,
}

/// A running read: its age, its SQL, and how to end it.
pub(crate) struct OldestRead {
    pub(crate) age: Duration,
    pub(crate) sql: String,
    /// Returns false if that was done before.
    pub(crate) cut_off: Box<dyn FnOnce() -> bool>,
}

/// The handle to the checkpointer, which other threads use.
#[derive(Clone)]
pub(crate) struct Checkpointer(Arc<CheckpointerShared>);

struct CheckpointerShared {
    context: Arc<Context>,
    managed: CheckpointLimits,
    powers: Powers,
    began: Instant,
    /// Written by the holder of the slot, read by the checkpointer: the frames in the WAL, and when the last one was
    /// written, in microseconds since `began`.
    frames: AtomicU32,
    last_write_us: AtomicU64,
    /// The number of frames that wakes the thread; the highest number while the thread is awake.
    wake_at: AtomicU32,
    /// Writes are delayed near these limits; both are the highest number until the page size is known. The soft limit is
    /// also the highest number while a reader or another process blocks a restart: a slower writer would not help then.
    /// Both are the highest number while checkpoints fail: then nothing can make room.
    hard: AtomicU32,
    soft: AtomicU32,
    /// The number of pages that the database may have, so that the disk has space for the WAL.
    pages: AtomicU32,
    /// The time that the disk takes for a frame, in nanoseconds. Written by the thread.
    frame_ns: AtomicU64,
    /// Written by the thread, around each of its checkpoints outside of the slot.
    is_copying: AtomicBool,
    /// How many frames the thread copies and syncs at the moment, 0 if none, and since when, in microseconds since `began`.
    pass_frames: AtomicU32,
    pass_began_us: AtomicU64,
    /// When the next write may begin, in microseconds since `began`, and whether it waits because of the hard limit. Written
    /// by the holder of the slot.
    next_write_us: AtomicU64,
    waits_for_room: AtomicBool,
    /// Set by the thread, ended by the holder of the slot.
    pin: Pin,
    state: Mutex<ThreadState>,
    /// Signalled when the thread has ended.
    changed: Condvar,
    /// Starts another thread after one that had no place to linger. Set and taken back under the lock of the state.
    alarm: Deadline,
}

#[derive(Default)]
struct ThreadState {
    thread: Option<Thread>,
    /// What that thread knew.
    policy: Option<Policy>,
    closed: bool,
    /// The thread is asked to end.
    rests: bool,
}

impl Checkpointer {
    pub(crate) fn new(context: Arc<Context>, managed: CheckpointLimits, powers: Powers) -> Self {
        Self(Arc::new(CheckpointerShared {
            context,
            managed,
            powers,
            began: Instant::now(),
            frames: AtomicU32::new(0),
            last_write_us: AtomicU64::new(0),
            wake_at: AtomicU32::new(0),
            hard: AtomicU32::new(u32::MAX),
            soft: AtomicU32::new(u32::MAX),
            pages: AtomicU32::new(u32::MAX),
            frame_ns: AtomicU64::new(0),
            is_copying: AtomicBool::new(false),
            pass_frames: AtomicU32::new(0),
            pass_began_us: AtomicU64::new(0),
            next_write_us: AtomicU64::new(0),
            waits_for_room: AtomicBool::new(false),
            pin: Pin::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            alarm: Deadline::default(),
        }))
    }

    /// The listener that the writer reports commits to.
    pub(crate) fn listener(&self) -> Arc<dyn CommitListener> {
        Arc::new(Self(self.0.clone()))
    }
}

impl CommitListener for Checkpointer {
    fn grew(&self, header: &WalHeader, now: Instant) {
        let shared = &*self.0;
        // Sequentially consistent with `wake_at`: either the thread sees these frames before it sleeps, or this call
        // wakes it.
        let before = shared.frames.swap(header.max_frame, Ordering::SeqCst);
        if before == header.max_frame {
            return;
        }
        let now = now.saturating_duration_since(shared.began);
        shared.last_write_us.store(u64::try_from(now.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        shared.space_out(before, header.max_frame, now);
        let wake_at = shared.wake_at.load(Ordering::SeqCst);
        // At first, when the page size is not known, a WAL of `WORTH_A_LOOK` frames starts the thread.
        let is_due = if wake_at == 0 { header.max_frame >= WORTH_A_LOOK } else { header.max_frame >= wake_at };
        if is_due && wake_at != u32::MAX {
            shared.wake_at.store(u32::MAX, Ordering::SeqCst);
            self.wake();
        }
    }

    fn end_leases(&self) -> Box<dyn Send> {
        (self.0.powers.end_leases)()
    }

    fn unpin(&self, commit: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Send>> {
        Ok(Box::new(self.0.pin.refuse(commit)?))
    }

    fn is_copying(&self) -> bool {
        self.0.is_copying.load(Ordering::SeqCst)
    }

    fn page_limit(&self) -> u32 {
        self.0.pages.load(Ordering::Relaxed)
    }

    fn looked_at(&self, disk: &Disk, header: &WalHeader) {
        self.0.looked_at(disk, header);
    }

    fn delay(&self, now: Instant) -> Option<Duration> {
        let now = now.saturating_duration_since(self.0.began);
        // The limits may have been lifted, and the WAL restarted by another process.
        if !self.0.pace(now).delays(self.0.frames.load(Ordering::Relaxed)) {
            return None;
        }
        let next = Duration::from_micros(self.0.next_write_us.load(Ordering::Relaxed));
        write_delay::worth_a_pause(next.saturating_sub(now))
    }

    fn delayed(&self, took: Duration) {
        if self.0.waits_for_room.load(Ordering::Relaxed) {
            self.0.context.recorder.wal.writers_waited(took);
        } else {
            self.0.context.recorder.wal.slowed.count();
        }
    }
}

/// The thread is not started for fewer frames.
const WORTH_A_LOOK: u32 = 64;

impl CheckpointerShared {
    fn watch(&self) -> &Watch {
        self.context.watch.as_ref().unwrap_or_else(|| unreachable!("a database with a WAL has a file"))
    }

    fn lock(&self) -> MutexGuard<'_, ThreadState> {
        lock(&self.state)
    }

    /// Returns how writes are slowed down now.
    fn pace(&self, now: Duration) -> Pace {
        let [soft, hard] = [&self.soft, &self.hard].map(|limit| limit.load(Ordering::Relaxed));
        let measured = Duration::from_nanos(self.frame_ns.load(Ordering::Relaxed));
        let began = Duration::from_micros(self.pass_began_us.load(Ordering::Relaxed));
        let frame =
            write_delay::frame_now(measured, self.pass_frames.load(Ordering::Relaxed), now.saturating_sub(began));
        Pace { soft, hard, frame }
    }

    /// Notes that a pass begins, which copies and syncs so many frames.
    fn begin_pass(&self, frames: u32) {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.pass_began_us.store(now, Ordering::Relaxed);
        self.pass_frames.store(frames, Ordering::Relaxed);
    }

    fn end_pass(&self) {
        self.pass_frames.store(0, Ordering::Relaxed);
    }

    /// Decides when the next write may begin, after one that left the WAL with `frames` instead of `before`.
    fn space_out(&self, before: u32, frames: u32, now: Duration) {
        let pace = self.pace(now);
        let delay = pace.delay(frames.checked_sub(before).unwrap_or(frames), frames);
        if !delay.is_zero() {
            self.waits_for_room.store(frames >= pace.hard, Ordering::Relaxed);
            let next = Duration::from_micros(self.next_write_us.load(Ordering::Relaxed));
            let next = write_delay::after(next, now, delay).as_micros();
            self.next_write_us.store(u64::try_from(next).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    fn looked_at(&self, disk: &Disk, header: &WalHeader) {
        let soft = frames(self.managed.limit_bytes, header.page_bytes);
        self.pages.store(disk.pages(soft), Ordering::Relaxed);
    }

    /// Lifts both limits, so that no writer waits for room that cannot be made.
    fn make_no_room(&self) {
        self.soft.store(u32::MAX, Ordering::Relaxed);
        self.hard.store(u32::MAX, Ordering::Relaxed);
    }
}

/// Converts a limit to frames.
fn frames(bytes: u64, page_bytes: u32) -> u32 {
    u32::try_from(bytes / frame_bytes(page_bytes)).unwrap_or(u32::MAX).max(16)
}
