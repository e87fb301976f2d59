//! A span and the duration metric of each call.
//!
//! Owns: the attributes and the times of a span. Runs on the thread that ends a call. Invariant: nothing here has a bound value. Leaves
//! out: gathering the event, which the engine does for `Options::on_statement`.

use std::borrow::Cow;
use std::time::SystemTime;

use flatwater::{ErrorCode, events::StatementEvent};
use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::trace::{Span, SpanKind, Status, Tracer};
use opentelemetry::{Context, KeyValue, global};

use crate::observed::SCOPE;

/// The boundaries that the conventions advise, in seconds.
const BOUNDARIES: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

type Summary = Box<dyn Fn(&StatementEvent<'_>) -> String + Send + Sync>;

/// Makes a span and the duration metric of each call that it is told of.
///
/// A span is a child of the span of [`Context::current`] on the thread that ends the call, which is the one that polls it. Its name and
/// `db.query.summary` are the method and the file, such as `query app.db`.
///
/// ```
/// use flatwater::Options;
/// use flatwater_telemetry::{Instrumentation, observe};
///
/// # async fn f() -> flatwater::Result<()> {
/// let telemetry = Instrumentation::new();
/// let db = Options::new("app.db").on_statement(move |event| telemetry.record(event)).open().await?;
/// let _observed = observe(&db, "app.db");
/// # Ok(())
/// # }
/// ```
pub struct Instrumentation {
    tracer: global::BoxedTracer,
    duration: Histogram<f64>,
    returned_rows: Histogram<u64>,
    has_query_text: bool,
    summary: Summary,
}

impl Default for Instrumentation {
    fn default() -> Self {
        Self::new()
    }
}

impl Instrumentation {
    /// Returns one for the global providers.
    #[must_use]
    pub fn new() -> Self {
        Self::with(global::tracer(SCOPE), &global::meter(SCOPE))
    }

    /// Returns one for these.
    #[must_use]
    pub fn with(tracer: global::BoxedTracer, meter: &Meter) -> Self {
        let duration = meter
            .f64_histogram("db.client.operation.duration")
            .with_unit("s")
            .with_description("Duration of database client operations.")
            .with_boundaries(BOUNDARIES.to_vec());
        let returned_rows = meter
            .u64_histogram("db.client.response.returned_rows")
            .with_unit("{row}")
            .with_description("The actual number of records returned.");
        Self {
            tracer,
            duration: duration.build(),
            returned_rows: returned_rows.build(),
            has_query_text: true,
            summary: Box::new(summary_of),
        }
    }

    /// Leaves the SQL out of the spans, with the literals that your program wrote into it.
    #[must_use]
    pub fn without_query_text(mut self) -> Self {
        self.has_query_text = false;
        self
    }

    /// Names spans, and their `db.query.summary`, by a function: for example by a name that your program has for the statement.
    #[must_use]
    pub fn summary(mut self, summary: impl Fn(&StatementEvent<'_>) -> String + Send + Sync + 'static) -> Self {
        self.summary = Box::new(summary);
        self
    }

    /// Records a call that has ended. It does not block but as the program's exporters do.
    pub fn record(&self, event: &StatementEvent<'_>) {
        let ended = SystemTime::now();
        let attributes = attributes_of(event);
        self.duration.record(event.total.as_secs_f64(), &attributes);
        if let Some(rows) = event.rows {
            self.returned_rows.record(rows, &attributes);
        }
        self.make_span(event, attributes, ended);
    }

    fn make_span(&self, event: &StatementEvent<'_>, mut attributes: Vec<KeyValue>, ended: SystemTime) {
        let summary = (self.summary)(event);
        let seconds = [("flatwater.queue", event.queue), ("flatwater.lock", event.lock), ("flatwater.run", event.run)];
        attributes.extend(seconds.map(|(name, time)| KeyValue::new(name, time.as_secs_f64())));
        attributes.push(KeyValue::new("db.query.summary", summary.clone()));
        let text = event.sql.filter(|_| self.has_query_text);
        attributes.extend(text.map(|sql| KeyValue::new("db.query.text", sql.to_owned())));
        attributes.extend(event.ran_on.map(|on| KeyValue::new("flatwater.ran_on", on.name())));
        let rows = event.rows.map(|rows| i64::try_from(rows).unwrap_or(i64::MAX));
        attributes.extend(rows.map(|rows| KeyValue::new("db.response.returned_rows", rows)));
        let builder = self.tracer.span_builder(Cow::from(summary)).with_kind(SpanKind::Client);
        let began = ended.checked_sub(event.total).unwrap_or(ended);
        let mut span = self
            .tracer
            .build_with_context(builder.with_start_time(began).with_attributes(attributes), &Context::current());
        if let Some(error) = event.error {
            span.set_status(Status::error(error.kind().name()));
        }
        span.end_with_timestamp(ended);
    }
}

fn summary_of(event: &StatementEvent<'_>) -> String {
    let file = event.path.file_name().unwrap_or(event.path.as_os_str());
    format!("{} {}", event.operation, file.to_string_lossy())
}

/// Returns what spans and metrics have both.
fn attributes_of(event: &StatementEvent<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("db.system.name", "sqlite"),
        KeyValue::new("db.namespace", event.path.to_string_lossy().into_owned()),
        KeyValue::new("db.operation.name", event.operation),
    ];
    if let Some(error) = event.error {
        attributes.push(KeyValue::new("error.type", error.kind().name()));
        let code = error.sqlite_name().or_else(|| error.code().map(ErrorCode::name));
        attributes.extend(code.map(|code| KeyValue::new("db.response.status_code", code)));
    }
    attributes
}
