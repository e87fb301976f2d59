"""Spans and metrics of OpenTelemetry, and the collector for Prometheus."""

from __future__ import annotations

import asyncio
import csv
import json
import pathlib
import re

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, generate_latest

import flatwater
from flatwater import blocking
from flatwater._told.figures import FIGURES
from flatwater.opentelemetry import instrument
from flatwater.prometheus import DatabaseCollector

ROOT = pathlib.Path(__file__).parents[3]


class Telemetry:
    """What is exported."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    def instrument(self, db, **options):
        return instrument(db, tracer_provider=self.tracers, meter_provider=self.meters, **options)

    async def spans(self, count):
        while len(self.exporter.get_finished_spans()) < count:
            await asyncio.sleep(0.001)
        return self.exporter.get_finished_spans()

    def metrics(self):
        """The points of each metric by name."""
        data = json.loads(self.reader.get_metrics_data().to_json())
        scopes = [scope for resource in data["resource_metrics"] for scope in resource["scope_metrics"]]
        return {metric["name"]: metric["data"]["data_points"] for scope in scopes for metric in scope["metrics"]}


@pytest.fixture
def telemetry():
    telemetry = Telemetry()
    yield telemetry
    telemetry.meters.shutdown()
    telemetry.tracers.shutdown()


async def test_a_call_is_a_span_inside_the_one_that_was_current(tmp_path, telemetry):
    async with flatwater.connect(tmp_path / "app.db") as db:
        telemetry.instrument(db)
        with telemetry.tracers.get_tracer("test").start_as_current_span("request") as request:
            await db.query("SELECT ? AS a", ["secret"])
        spans = {span.name: span for span in await telemetry.spans(2)}
    span = spans["query app.db"]
    assert span.parent.span_id == request.get_span_context().span_id
    assert (span.kind, span.status.status_code) == (SpanKind.CLIENT, StatusCode.UNSET)
    attributes = dict(span.attributes)
    times = [attributes.pop(f"flatwater.{name}") for name in ("queue", "lock", "run")]
    assert all(0 <= seconds <= (span.end_time - span.start_time) / 1e9 + 1e-9 for seconds in times)
    assert attributes.pop("flatwater.ran_on") in ("caller", "reader", "writer")
    assert attributes == {
        "db.system.name": "sqlite",
        "db.namespace": str(tmp_path / "app.db"),
        "db.operation.name": "query",
        "db.query.summary": "query app.db",
        "db.query.text": "SELECT ? AS a",
        "db.response.returned_rows": 1,
    }


async def test_an_error_is_told_by_kind_and_code_and_not_by_value(place, telemetry):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a UNIQUE)")
        telemetry.instrument(db, query_text=False, summary=lambda event: f"t.{event.operation}")
        with pytest.raises(flatwater.UniqueViolation):
            await db.execute("INSERT INTO t VALUES (?1), (?1)", ["secret"])
        with pytest.raises(flatwater.ProgrammingError):
            await db.execute("SELECT 1")
        unique, rows = await telemetry.spans(2)
        assert [span.name for span in (unique, rows)] == ["t.execute"] * 2
        assert unique.status.status_code is StatusCode.ERROR
        names = ("error.type", "db.response.status_code")
        assert [unique.attributes[name] for name in names] == ["constraint", "SQLITE_CONSTRAINT_UNIQUE"]
        assert [rows.attributes[name] for name in names] == ["misuse", "returns_rows"]
        assert "db.query.text" not in unique.attributes
        assert "secret" not in unique.to_json() + rows.to_json()
        (point,) = [
            point
            for point in telemetry.metrics()["db.client.operation.duration"]
            if point["attributes"].get("error.type") == "constraint"
        ]
        assert point["count"] == 1


async def test_figures_are_read_when_they_are_asked_for_until_the_end(tmp_path, telemetry):
    path = str(tmp_path / "app.db")
    async with flatwater.connect(path) as db:
        stop = telemetry.instrument(db)
        await db.execute("CREATE TABLE t (a)")
        metrics = telemetry.metrics()
        assert {figure.name for figure in FIGURES} <= set(metrics)
        (size,) = metrics["flatwater.wal.size"]
        assert size["value"] == db.stats()["wal"]["file_bytes"]
        assert size["attributes"] == {"db.system.name": "sqlite", "db.namespace": path}
        await telemetry.spans(1)
        stop()
        await db.query("SELECT 1")
        assert "flatwater.wal.size" not in telemetry.metrics()
        assert len(telemetry.exporter.get_finished_spans()) == 1
        telemetry.instrument(db)
    assert "flatwater.wal.size" not in telemetry.metrics()


def test_calls_that_wait_are_told_too(place, telemetry):
    with blocking.connect(place) as db:
        telemetry.instrument(db)
        db.query("SELECT 1")
        assert [span.attributes["db.operation.name"] for span in telemetry.exporter.get_finished_spans()] == ["query"]


async def test_prometheus_gets_each_database_once(tmp_path):
    registry = CollectorRegistry()
    async with flatwater.connect(tmp_path / "b.db") as other:
        async with flatwater.connect(tmp_path / "a.db") as db:
            registry.register(DatabaseCollector(db, other))
            text = generate_latest(registry).decode()
            for path in (tmp_path / "a.db", tmp_path / "b.db"):
                assert len(re.findall(rf'^flatwater_wal_size_bytes{{database="{path}"}} ', text, re.M)) == 1
            assert 'flatwater_turns_waited_seconds_total{database="' in text
        text = generate_latest(registry).decode()
        assert "a.db" not in text and "b.db" in text


def test_the_figures_are_those_of_all_languages():
    with (ROOT / "conformance/figures.csv").open(newline="") as file:
        listed = [tuple(row.values()) for row in csv.DictReader(file)]
    assert listed == [(figure.name, figure.kind, figure.unit) for figure in FIGURES]


async def test_the_dashboard_asks_for_metrics_that_there_are_and_for_all(tmp_path):
    registry = CollectorRegistry()
    async with flatwater.connect(tmp_path / "a.db") as db:
        registry.register(DatabaseCollector(db))
        told = set(re.findall(r"^(flatwater_\w+)\{", generate_latest(registry).decode(), re.M))
    dashboard = json.loads((ROOT / "examples/grafana/flatwater.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"flatwater_\w+", target["expr"])
    }
    assert asked == told
