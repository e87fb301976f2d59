//! The future of `execute_many` and of `query_many`: it collects the rows of parameters, and then makes the call.
//!
//! Owns: collecting them in slices, between which other tasks get their turn. Runs on the thread that polls it.
//! Invariants: the caller's iterator is used on that thread only, and never while anything of the database is held;
//! nothing is collected before the first poll. Leaves out: the call itself (`call`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::api::call::{Call, Read};
use crate::engine::caller::Caller;
use crate::engine::opening::CancelOutcome;
use crate::queue::ticket::CallOptions;
use crate::workers::shared_errors::polled_again;
use crate::workers::work::{WantedOfRuns, Work};
use flatwater_base::error::Result;
use flatwater_base::error::location::in_row;
use flatwater_base::inline::budget::{self, Pause};
use flatwater_base::values::{IntoParams, ParamRows, Rows, RunResult};
use flatwater_sql::statement_info::StatementInfo;

/// After this time the task yields. The clock is read once per so many rows.
const SLICE: Duration = Duration::from_micros(500);
const ROWS: usize = 64;

/// What is wanted of the runs of a statement.
pub(crate) struct Runs<T> {
    operation: &'static str,
    wanted: WantedOfRuns,
    read: Read<T>,
}

/// The number of rows that they change. They return none.
pub(crate) const CHANGES: &Runs<u64> =
    &Runs { operation: "execute_many", wanted: WantedOfRuns::Changes, read: |answer, _| answer.changes() };
/// The rows that they return.
pub(crate) const RETURNED: &Runs<Rows> =
    &Runs { operation: "query_many", wanted: WantedOfRuns::Rows, read: |answer, _| answer.rows() };
/// The rows that they return, if any, and what they change.
pub(crate) const ANY: &Runs<RunResult> =
    &Runs { operation: "run_many", wanted: WantedOfRuns::Any, read: |answer, _| answer.ran() };

/// The future of `execute_many`, and of `query_many`, which returns [`Rows`]. It begins when it is first polled.
///
/// It first takes all rows of parameters from the iterator, on the thread that polls it. Each half millisecond it returns
/// `Pending`, so that other tasks and the event loop run. The call takes its place in the queue when it has the last row. From
/// then on it is a [`Call`].
#[must_use = "a call begins when it is awaited"]
pub struct ExecuteMany<I, T: 'static = u64>(Progress<I, T>);

enum Progress<I, T: 'static> {
    Collecting(Box<Collecting<I, T>>),
    Running(Box<Call<T>>),
    Done,
}

struct Collecting<I, T: 'static> {
    runs: &'static Runs<T>,
    caller: Caller,
    text: Arc<StatementInfo>,
    rows: I,
    params: ParamRows,
    pause: Pause,
}

impl<I: Iterator<Item: IntoParams>, T> ExecuteMany<I, T> {
    pub(crate) fn new(runs: &'static Runs<T>, caller: &Caller, text: Result<Arc<StatementInfo>>, rows: I) -> Self {
        let caller = caller.now();
        Self(match text {
            Ok(text) => {
                let (params, pause) = (ParamRows::default(), Pause::default());
                Progress::Collecting(Box::new(Collecting { runs, caller, text, rows, params, pause }))
            }
            Err(error) => Progress::Running(Box::new(many(runs, caller, Err(error), ParamRows::default()))),
        })
    }

    /// Sets the deadline of this call, counted from when it has the last row of parameters. See [`Call::timeout`].
    #[must_use = "a call begins when it is awaited"]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with_option(|options| options.set_timeout(timeout))
    }

    /// Sends the rows to the writer's thread even if they are known to be short. See [`Call::never_inline`].
    #[must_use = "a call begins when it is awaited"]
    pub fn never_inline(self) -> Self {
        self.with_option(|options| options.never_inline = true)
    }

    /// Changes the options of this call alone.
    fn with_option(mut self, set: impl FnOnce(&mut CallOptions)) -> Self {
        match &mut self.0 {
            Progress::Collecting(collecting) => set(&mut collecting.caller.options),
            Progress::Running(call) => call.pending.set_option(set),
            Progress::Done => {}
        }
        self
    }

    /// Blocks this thread until the call completes. See [`Call::wait`].
    ///
    /// # Errors
    /// Returns the errors of the operation, and `Misuse` where this thread could deadlock.
    pub fn wait(mut self) -> Result<T> {
        match std::mem::replace(&mut self.0, Progress::Done) {
            Progress::Collecting(mut collecting) => {
                let collected = collecting.collect(|_| false).map(drop);
                collecting.call(collected).wait()
            }
            Progress::Running(call) => call.wait(),
            Progress::Done => Err(polled_again()),
        }
    }

    /// Cancels the call, as dropping it does, and returns the effect. See [`Call::cancel`].
    pub fn cancel(self) -> CancelOutcome {
        match self.0 {
            Progress::Collecting(_) => CancelOutcome::Withdrawn,
            Progress::Running(call) => call.cancel(),
            Progress::Done => CancelOutcome::Answered,
        }
    }
}

impl<I: Iterator<Item: IntoParams>, T> Collecting<I, T> {
    /// Collects rows until there are no more, which returns true, or `is_enough` of the number collected so far.
    fn collect(&mut self, is_enough: impl Fn(usize) -> bool) -> Result<bool> {
        loop {
            let Some(row) = self.rows.next() else { return Ok(true) };
            let number = self.params.len();
            row.add_to(&mut self.params).map_err(|error| in_row(error, number).with_sql(&self.text.sql))?;
            if is_enough(self.params.len()) {
                return Ok(false);
            }
        }
    }

    fn call(self, collected: Result<()>) -> Call<T> {
        let Self { runs, caller, text, params, .. } = self;
        many(runs, caller, collected.map(|()| text), params)
    }
}

/// Runs a statement once per row.
pub(crate) fn many<T>(runs: &Runs<T>, caller: Caller, text: Result<Arc<StatementInfo>>, rows: ParamRows) -> Call<T> {
    Call::new(caller, runs.operation, text.map(|text| Work::many(text, rows, runs.wanted)), runs.read)
}

impl<I: Iterator<Item: IntoParams>, T> Future for ExecuteMany<I, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out: after a panic of the iterator the future is over.
        let mut call = match std::mem::replace(&mut self.0, Progress::Done) {
            Progress::Collecting(mut collecting) => {
                let began = Instant::now();
                // Nothing suspends before the first rows: writes run in the order of their first polls.
                if !collecting.pause.is_over(began) {
                    self.0 = Progress::Collecting(collecting);
                    budget::wake(context);
                    return Poll::Pending;
                }
                match collecting.collect(|rows| rows.is_multiple_of(ROWS) && began.elapsed() >= SLICE) {
                    Ok(false) => {
                        budget::spend(began, began.elapsed());
                        collecting.pause.give(context);
                        self.0 = Progress::Collecting(collecting);
                        return Poll::Pending;
                    }
                    collected => Box::new(collecting.call(collected.map(drop))),
                }
            }
            Progress::Running(call) => call,
            Progress::Done => return Poll::Ready(Err(polled_again())),
        };
        let polled = Pin::new(&mut *call).poll(context);
        if polled.is_pending() {
            self.0 = Progress::Running(call);
        }
        polled
    }
}

/// The iterator is not pinned.
impl<I, T> Unpin for ExecuteMany<I, T> {}

opaque!(ExecuteMany<I, T>);
