//! The call that copies the database into a file, and what its caller is told meanwhile.
//!
//! Owns: calling the callback of its caller. Runs on the thread that polls the call. Invariants: the callback never runs on a thread of
//! the database; it is called with the newest state, and at most once in a poll, so one that is slow delays its own caller alone; it
//! is not called after the call has returned. Leaves out: the call itself (`call`), copying and counting pages
//! (`connection::exclusive::copy`).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::api::call::Call;
use crate::api::pending::Leaving;
use crate::connection::exclusive::copy_target::Report;
use crate::engine::handle::called_from_within;
use crate::engine::opening::CancelOutcome;
use crate::queue::reply::{Parts, Waiter};
use flatwater_base::error::Result;
use flatwater_base::error::cause::panicked;
use flatwater_base::inline::budget;
use flatwater_base::thread::current::{block_on, must_not_block};

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Pages of the database.
    pub total_pages: u32,
    /// Pages that are not copied yet.
    pub remaining_pages: u32,
}

type Callback = Box<dyn FnMut(BackupProgress) + Send>;

/// The future of [`Database::backup`](crate::Database::backup): a [`Call`] that can tell how far it is.
#[must_use = "a backup begins when it is awaited"]
pub struct BackupCall {
    call: Call<()>,
    reported: Arc<Parts<BackupProgress>>,
    /// Only the owner of the call accesses it, without locking. The mutex makes the call `Sync`.
    progress: Option<Mutex<Callback>>,
}

impl BackupCall {
    /// The call that `backup` returns, which reports how far it is.
    pub(crate) fn new(backup: impl FnOnce(Report) -> Call<()>) -> Self {
        let reported = Arc::<Parts<BackupProgress>>::default();
        let newest = reported.clone();
        let report =
            move |total_pages, remaining_pages| newest.replace(BackupProgress { total_pages, remaining_pages });
        Self { call: backup(Box::new(report)), reported, progress: None }
    }

    /// Calls `progress` while pages are copied, for steps of 64 pages; for several at once if the task is not polled meanwhile. When
    /// no page is left, the file is synced, and gets its name.
    ///
    /// It is called by the task that awaits the call, or by the thread in [`wait`](Self::wait): the backup itself does not wait for it.
    /// If it panics, the call fails with `Panicked`, and the backup is given up; the file is there if it was complete by then. It
    /// may call the database.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let backup = db.backup("app-backup.db");
    /// backup.progress(|pages| println!("{} of {} pages are left", pages.remaining_pages, pages.total_pages)).await?;
    /// # Ok(()) }
    /// ```
    pub fn progress(self, progress: impl FnMut(BackupProgress) + Send + 'static) -> Self {
        Self { progress: Some(Mutex::new(Box::new(progress))), ..self }
    }

    /// Sets the deadline of this call. See [`Call::timeout`].
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { call: self.call.timeout(timeout), ..self }
    }

    /// Blocks this thread until the backup is complete. See [`Call::wait`].
    ///
    /// # Errors
    /// Returns the errors of the backup, and `Misuse` where this thread could deadlock.
    pub fn wait(self) -> Result<()> {
        if self.progress.is_none() {
            return self.call.wait();
        }
        if must_not_block() {
            return Err(called_from_within().in_operation("backup"));
        }
        // A thread of the database copies, because this one has the callback.
        let result = block_on(self);
        budget::renew();
        result
    }

    /// Cancels the call, as dropping it does, and returns the effect. See [`Call::cancel`].
    pub fn cancel(self) -> CancelOutcome {
        self.call.cancel()
    }

    /// Tells the caller what was reported. Without a report the waiter, if there is one, is told of the next. Returns whether the
    /// caller was told.
    fn tell(&mut self, waiter: Option<Waiter>) -> Result<bool> {
        let Some(progress) = &mut self.progress else { return Ok(false) };
        let Some(newest) = self.reported.take_or_wait(waiter) else { return Ok(false) };
        let progress = progress.get_mut().unwrap_or_else(PoisonError::into_inner);
        match catch_unwind(AssertUnwindSafe(|| progress(newest))) {
            Ok(()) => Ok(true),
            Err(panic) => {
                self.call.pending.give_up(Leaving::AtOnce);
                Err(panicked(&*panic).in_operation("backup"))
            }
        }
    }
}

impl Future for BackupCall {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // Before the report is looked at: what was reported before the answer is found there.
        match Pin::new(&mut this.call).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(this.tell(None).map(drop)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                match this.tell(Some(context.waker().clone().into())) {
                    // There may be another one by now, and other tasks have their turn first.
                    Ok(true) => context.waker().wake_by_ref(),
                    Ok(false) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                Poll::Pending
            }
        }
    }
}

opaque!(BackupCall);
