//! What is exported of the calls and figures of a database.

use std::collections::BTreeMap;

use flatwater::{Database, Options};
use flatwater_telemetry::{Instrumentation, observe_with, prometheus_text};
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, Value};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

struct Telemetry {
    spans: InMemorySpanExporter,
    tracers: SdkTracerProvider,
    metrics: InMemoryMetricExporter,
    meters: SdkMeterProvider,
    folder: tempfile::TempDir,
}

impl Telemetry {
    fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        Self {
            tracers: SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build(),
            meters: SdkMeterProvider::builder().with_periodic_exporter(metrics.clone()).build(),
            spans,
            metrics,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn instrumentation(&self) -> Instrumentation {
        let tracer = self.tracers.tracer("test");
        Instrumentation::with(BoxedTracer::new(Box::new(tracer)), &self.meters.meter("test"))
    }

    async fn open(&self, instrumentation: Instrumentation) -> Database {
        let options = Options::new(self.folder.path().join("app.db"));
        options.on_statement(move |event| instrumentation.record(event)).open().await.unwrap()
    }

    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    /// The names of the metrics now, and the sum of the numbers of each.
    fn metrics(&self) -> BTreeMap<String, f64> {
        self.metrics.reset();
        self.meters.force_flush().unwrap();
        let mut found = BTreeMap::new();
        for resource in self.metrics.get_finished_metrics().unwrap() {
            for metric in resource.scope_metrics().flat_map(|scope| scope.metrics()) {
                let AggregatedMetrics::F64(data) = metric.data() else { continue };
                let sum = match data {
                    MetricData::Gauge(gauge) => gauge.data_points().map(|point| point.value()).sum(),
                    MetricData::Sum(sum) => sum.data_points().map(|point| point.value()).sum(),
                    MetricData::Histogram(histogram) => histogram.data_points().map(|point| point.count() as f64).sum(),
                    _ => continue,
                };
                found.insert(metric.name().to_owned(), sum);
            }
        }
        found
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<Value> {
    span.attributes.iter().find(|pair| pair.key.as_str() == name).map(|pair| pair.value.clone())
}

#[tokio::test]
async fn a_call_is_a_span_inside_the_one_that_is_current() {
    let telemetry = Telemetry::new();
    let db = telemetry.open(telemetry.instrumentation()).await;
    let request = telemetry.tracers.tracer("test").start("request");
    let inside = Context::current_with_span(request);
    {
        let _guard = inside.clone().attach();
        db.query_value::<String>("SELECT ?", ("secret",)).wait().unwrap();
    }
    let spans = telemetry.spans();
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(span.parent_span_id, inside.span().span_context().span_id());
    assert_eq!((span.name.as_ref(), &span.span_kind), ("query_value app.db", &SpanKind::Client));
    assert!(span.start_time <= span.end_time);
    for (name, value) in [
        ("db.system.name", "sqlite"),
        ("db.operation.name", "query_value"),
        ("db.query.summary", "query_value app.db"),
        ("db.query.text", "SELECT ?"),
    ] {
        assert_eq!(attribute(span, name), Some(Value::from(value)), "{name}");
    }
    assert_eq!(attribute(span, "db.response.returned_rows"), Some(Value::I64(1)));
    assert!(!format!("{span:?}").contains("secret"));
    assert_eq!(telemetry.metrics().get("db.client.operation.duration"), Some(&1.0));
    db.close().await.unwrap();
}

#[tokio::test]
async fn an_error_has_its_kind_and_code_and_no_value() {
    let telemetry = Telemetry::new();
    let named = telemetry.instrumentation().without_query_text().summary(|event| format!("t.{}", event.operation));
    let db = telemetry.open(named).await;
    db.execute("CREATE TABLE t (a UNIQUE)", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (?1), (?1)", ("secret",)).await.unwrap_err();
    db.execute("SELECT 1", ()).await.unwrap_err();
    let spans = telemetry.spans();
    let expected = [("constraint", "SQLITE_CONSTRAINT_UNIQUE"), ("misuse", "returns_rows")];
    for (span, (kind, code)) in spans[1..].iter().zip(expected) {
        assert_eq!(span.name, "t.execute");
        assert_eq!(span.status, Status::error(kind));
        assert_eq!(attribute(span, "error.type"), Some(Value::from(kind)));
        assert_eq!(attribute(span, "db.response.status_code"), Some(Value::from(code)));
        assert_eq!(attribute(span, "db.query.text"), None);
        assert!(!format!("{span:?}").contains("secret"));
    }
    assert_eq!(spans.len(), 3);
    db.close().await.unwrap();
}

#[tokio::test]
async fn figures_are_read_until_they_are_observed_no_longer() {
    let telemetry = Telemetry::new();
    let db = telemetry.open(telemetry.instrumentation()).await;
    let observed = observe_with(&db, "app", &telemetry.meters.meter("test"));
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let metrics = telemetry.metrics();
    assert_eq!(metrics.get("flatwater.wal.size").copied(), Some(db.stats().wal.file_bytes as f64));
    assert_eq!(metrics.keys().filter(|name| name.starts_with("flatwater.")).count(), 27);
    drop(observed);
    assert!(!telemetry.metrics().contains_key("flatwater.wal.size"));
    db.close().await.unwrap();
}

#[tokio::test]
async fn prometheus_reads_each_database() {
    let telemetry = Telemetry::new();
    let db = telemetry.open(telemetry.instrumentation()).await;
    let text = prometheus_text([("app", &db)]);
    let line = "flatwater_wal_size_bytes{database=\"app\"} ";
    assert_eq!(text.lines().filter(|found| found.starts_with(line)).count(), 1);
    assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), 27);
    db.close().await.unwrap();
}
