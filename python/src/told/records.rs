//! What the engine tells through `tracing`, on its way to Python's `logging`.
//!
//! Owns: the events that are not logged yet, and which event loops are woken for them. Any thread tells; a thread of
//! Python logs: that of an event loop, or one whose call has waited. Invariants: telling takes no lock of the
//! interpreter; no more than `LIMIT` events are kept, and those that were lost are counted. Leaves out: the loggers,
//! which are Python's (`flatwater._told.logging`).

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use flatwater::bindings::Mailbox;
use flatwater_bridge::Inbox;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, callsite};

/// How many events are kept.
const LIMIT: usize = 1_000;

/// The target of the events of calls.
const STATEMENT: &str = "flatwater::statement";

/// An event: its level, where it belongs, its message, and its fields.
type Told = (u8, &'static str, String, Vec<(&'static str, Value)>);

#[derive(IntoPyObject)]
enum Value {
    Text(String),
    Number(u64),
    Bool(bool),
}

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());
/// How many events are kept, and how many were lost since the last delivery.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicUsize = AtomicUsize::new(0);
/// The inboxes of event loops.
static BELLS: Mutex<Vec<Weak<Inbox>>> = Mutex::new(Vec::new());
/// Whether the events of level `debug` are wanted: those of the engine, and those of calls.
static DEBUG: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says whether events of level `debug` are wanted: those of the engine, and those of calls. Warnings always are.
#[pyfunction]
pub(crate) fn listen(engine: bool, calls: bool) {
    static SET: Once = Once::new();
    // It is the first: `tracing` is this library's own copy.
    SET.call_once(|| _ = tracing::subscriber::set_global_default(Logging));
    let before = DEBUG[0].swap(engine, Ordering::Relaxed) != engine;
    if DEBUG[1].swap(calls, Ordering::Relaxed) != calls || before {
        callsite::rebuild_interest_cache();
    }
}

/// From now on this loop is woken for events.
pub(crate) fn add_bell(inbox: &Arc<Inbox>) {
    let mut bells = locked(&BELLS);
    bells.retain(|bell| bell.strong_count() > 0);
    bells.push(Arc::downgrade(inbox));
}

/// Logs what was told. Called when a loop reads its inbox, after a call of a thread without a loop, and at the end.
pub(crate) fn deliver(py: Python<'_>) {
    if WAITING.load(Ordering::Acquire) > 0 {
        log(py).unwrap_or_else(|error| error.write_unraisable(py, None));
    }
}

#[cold]
fn log(py: Python<'_>) -> PyResult<()> {
    static WRITE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let told = {
        let mut told = locked(&TOLD);
        WAITING.store(0, Ordering::Release);
        std::mem::take(&mut *told)
    };
    let lost = LOST.swap(0, Ordering::Relaxed);
    WRITE.import(py, "flatwater._told.logging", "write")?.call1((told, lost))?;
    Ok(())
}

/// The subscriber.
struct Logging;

impl Subscriber for Logging {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_of_call = metadata.target() == STATEMENT;
        let is_wanted = || DEBUG[usize::from(is_of_call)].load(Ordering::Relaxed);
        // Those of other crates are not ours to pass on.
        let is_own = metadata.target().starts_with("flatwater");
        is_own && (*metadata.level() <= Level::WARN || *metadata.level() == Level::DEBUG && is_wanted())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let is_debug = DEBUG.iter().any(|debug| debug.load(Ordering::Relaxed));
        Some(if is_debug { LevelFilter::DEBUG } else { LevelFilter::WARN })
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let level = if *metadata.level() <= Level::WARN { 30 } else { 10 };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut told = locked(&TOLD);
        if told.len() == LIMIT {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        }
        told.push((level, metadata.target(), fields.message, fields.others));
        WAITING.store(told.len(), Ordering::Release);
        drop(told);
        let bells: Vec<_> = locked(&BELLS).iter().filter_map(Weak::upgrade).collect();
        bells.iter().for_each(|inbox| inbox.flush());
    }

    // There are no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What an event consists of.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.others.push((name, Value::Text(format!("{value:?}")))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.others.push((field.name(), Value::Text(value.to_owned())));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), Value::Number(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), Value::Bool(value)));
    }
}
