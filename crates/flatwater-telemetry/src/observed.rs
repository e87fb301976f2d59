//! Metrics of a database's figures.
//!
//! Owns: the instruments, and the database that they read until it is no longer observed. Their callbacks run where the program's reader
//! of metrics does. Invariant: an instrument, which cannot be removed, keeps no database open. Leaves out: what is counted (`figures`).

use std::sync::{Arc, Mutex, PoisonError};

use flatwater::Database;
use opentelemetry::metrics::Meter;
use opentelemetry::{KeyValue, global};

use crate::figures::{FIGURES, Kind};

/// The name of this library in spans and metrics.
pub(crate) const SCOPE: &str = "flatwater";

/// A database whose figures are metrics. Dropping it ends that; the database stays open until then.
#[must_use = "dropping it ends the metrics"]
pub struct Observed(Arc<Mutex<Option<Database>>>);

impl Drop for Observed {
    fn drop(&mut self) {
        // Dropped without the lock: a database that is closed here takes its time.
        let database = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(database);
    }
}

/// Makes metrics of the figures of `db`, on the global provider. `namespace` is their attribute `db.namespace`, such as the path of the
/// file. They are read when a reader of the metrics asks, and cost no statement.
pub fn observe(db: &Database, namespace: impl Into<String>) -> Observed {
    observe_with(db, namespace, &global::meter(SCOPE))
}

/// The same on the provider of this meter.
pub fn observe_with(db: &Database, namespace: impl Into<String>, meter: &Meter) -> Observed {
    let database = Arc::new(Mutex::new(Some(db.clone())));
    let attributes: Arc<[KeyValue]> =
        Arc::new([KeyValue::new("db.system.name", "sqlite"), KeyValue::new("db.namespace", namespace.into())]);
    for figure in FIGURES {
        let (database, attributes) = (database.clone(), attributes.clone());
        let read = move || {
            let database = database.lock().unwrap_or_else(PoisonError::into_inner).clone();
            database.map(|database| ((figure.read)(&database.stats()), attributes.clone()))
        };
        match figure.kind {
            Kind::Counter => {
                let builder = meter.f64_observable_counter(figure.name).with_unit(figure.unit);
                let builder = builder.with_description(figure.help);
                builder
                    .with_callback(move |to| read().into_iter().for_each(|(value, of)| to.observe(value, &of)))
                    .build();
            }
            Kind::Gauge => {
                let builder = meter.f64_observable_gauge(figure.name).with_unit(figure.unit);
                let builder = builder.with_description(figure.help);
                builder
                    .with_callback(move |to| read().into_iter().for_each(|(value, of)| to.observe(value, &of)))
                    .build();
            }
        }
    }
    Observed(database)
}
