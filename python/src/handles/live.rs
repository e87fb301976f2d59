//! Live queries.
//!
//! Owns: the native side of `Live` and of its changes. Runs on the loop's thread. Invariant: closing leaves the query.
//! Leaves out: the results and changes as objects (`shape`, `changes`); blocks and loops, which are in Python (`flatwater._handles.live`).

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use flatwater::bindings::{Output, Target, poll_live, server};
use flatwater::live::{Change, Live, LiveRows};
use flatwater::{Params, Result, Session};
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::given::forms::Forms;
use crate::given::reading::Reading;
use crate::results::changes::Kept;
use crate::results::known_rows::KnownRows;
use crate::results::shape::Shape;
use crate::waiting::call::Body;
use crate::waiting::polls::{Next, Shared, close};

/// A live query that goes on.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeLive {
    of: Shared<Kind>,
    /// The rows that the program holds, for each query.
    known: Arc<[KnownRows]>,
    kept: Kept,
    reading: Option<Arc<Reading>>,
}

enum Kind {
    /// Of one query, or of a group.
    Results(Live<Vec<LiveRows>>),
    Changes(Live<Change>),
}

/// How often results are yielded.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) debounce: Duration,
    pub(crate) throttle: Duration,
}

impl NativeLive {
    fn new(session: &Session, of: Kind, known: Arc<[KnownRows]>) -> Self {
        let reading = Forms::of(&Target::of(session)).reading;
        Self { of: Arc::new(Mutex::new(Some(of))), known, kept: Kept::default(), reading }
    }

    pub(crate) fn results(session: &Session, queries: Vec<(String, Params)>, pace: Pace) -> Self {
        let known = queries.iter().map(|_| KnownRows::default()).collect();
        let live = server::live_group(session, queries).debounce(pace.debounce).throttle(pace.throttle);
        Self::new(session, Kind::Results(live), known)
    }

    pub(crate) fn changes(session: &Session, sql: &str, params: Params, pace: Pace) -> Self {
        let live = server::live(session, sql, params).debounce(pace.debounce).throttle(pace.throttle);
        Self::new(session, Kind::Changes(live.changes()), Arc::default())
    }
}

impl Kind {
    fn poll(&mut self, kept: &Kept, context: &mut Context<'_>) -> Poll<Result<Output>> {
        fn output<T>(next: Option<Result<T>>, of: fn(T) -> Output) -> Result<Output> {
            next.map_or(Ok(Output::Done(())), |next| next.map(of))
        }
        if let Some(change) = kept.take() {
            return Poll::Ready(Ok(Output::Change(change)));
        }
        match self {
            Self::Results(live) => poll_live(live, context).map(|next| output(next, Output::Live)),
            Self::Changes(live) => poll_live(live, context).map(|next| output(next, Output::Change)),
        }
    }
}

#[pymethods]
impl NativeLive {
    /// Returns the next results, a tuple with one for each query, or the next change; None when the database is closed.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kept = self.kept.clone();
        let next = Next::new(&self.of, move |kind: &mut Kind, context: &mut Context<'_>| kind.poll(&kept, context));
        let shape = Shape::Live(self.known.clone(), self.kept.clone());
        new_call(py, Body::other("live", Ok(Box::new(next)), shape).with(self.reading.clone()))
    }

    /// Leaves the query.
    fn close(&self) {
        close(&self.of);
    }
}
