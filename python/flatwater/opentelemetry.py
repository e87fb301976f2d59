"""Spans and metrics of OpenTelemetry for a database, whether its calls are awaited or wait.

Needs `opentelemetry-api`, which the extra `flatwater[opentelemetry]` installs; where they go is what your program
configures.

Owns the attributes, which are those of the conventions for databases
(<https://opentelemetry.io/docs/specs/semconv/db/>), and the times of a span. Runs where statement listeners run.
Invariant: no attribute has a bound value. Leaves out what is counted (`_told.figures`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from opentelemetry import metrics, trace

from ._handles.database import Opened
from ._native import StatementEvent
from ._told.figures import FIGURES, Figure

__all__ = ["instrument"]

_SCOPE = "flatwater"
# The boundaries that the conventions advise, in seconds.
_BOUNDARIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)


def instrument(
    db: Opened,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    query_text: bool = True,
    summary: Callable[[StatementEvent], str] | None = None,
) -> Callable[[], None]:
    """Makes a span and the duration metric of each call of `db`, and metrics of its figures. Returns what ends that.

    A span is a child of the span that was current for the call. Its name and `db.query.summary` are the method and the
    file, such as "query app.db"; `summary` returns another one, such as a name that your program has for the statement.
    Without `query_text` the SQL is not in the spans: the literals that your program wrote into it would be.

    Without providers it takes the global ones. The figures of `db` are read when a reader of the metrics asks, until
    `db` is closed.
    """
    recorder = _Recorder(
        trace.get_tracer(_SCOPE, tracer_provider=tracer_provider),
        metrics.get_meter(_SCOPE, meter_provider=meter_provider),
        query_text,
        summary or _summary,
    )
    recorder.observe(db)
    db.add_statement_listener(recorder.record)

    def stop() -> None:
        recorder.observed = None
        db.remove_statement_listener(recorder.record)

    return stop


def _summary(event: StatementEvent) -> str:
    return f"{event.operation} {event.path.name}"


class _Recorder:
    """Turns the events of one database into spans and metrics."""

    def __init__(
        self, tracer: trace.Tracer, meter: metrics.Meter, query_text: bool, summary: Callable[[StatementEvent], str]
    ) -> None:
        self._tracer = tracer
        self._meter = meter
        self._query_text = query_text
        self._summary = summary
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of database client operations.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._rows = meter.create_histogram(
            "db.client.response.returned_rows", unit="{row}", description="The actual number of records returned."
        )
        # None when it has ended: an instrument of the API cannot be removed.
        self.observed: Opened | None = None

    def observe(self, db: Opened) -> None:
        self.observed = db
        attributes = {"db.system.name": "sqlite", "db.namespace": db._path}

        def reader(figure: Figure) -> Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]:
            def read(_options: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
                db = self.observed
                if db is None or db._is_closed:
                    return
                yield metrics.Observation(figure.read(db.stats()), attributes)

            return read

        for figure in FIGURES:
            if figure.kind == "gauge":
                self._meter.create_observable_gauge(figure.name, [reader(figure)], figure.unit, figure.help)
            else:
                self._meter.create_observable_counter(figure.name, [reader(figure)], figure.unit, figure.help)

    def record(self, event: StatementEvent) -> None:
        """The listener of the statements."""
        ended = time.time_ns()
        attributes: dict[str, str | int] = {
            "db.system.name": "sqlite",
            "db.namespace": str(event.path),
            "db.operation.name": event.operation,
        }
        if event.error is not None:
            attributes["error.type"] = event.error
        if event.error_code is not None:
            attributes["db.response.status_code"] = event.error_code
        self._duration.record(event.total, attributes)
        if event.rows is not None:
            self._rows.record(event.rows, attributes)
        self._make_span(event, attributes, ended)

    def _make_span(self, event: StatementEvent, attributes: dict[str, str | int], ended: int) -> None:
        summary = self._summary(event)
        span = self._tracer.start_span(
            summary,
            kind=trace.SpanKind.CLIENT,
            start_time=ended - round(event.total * 1e9),
            attributes=attributes | {"db.query.summary": summary},
        )
        if span.is_recording():
            if self._query_text and event.sql is not None:
                span.set_attribute("db.query.text", event.sql)
            if event.rows is not None:
                span.set_attribute("db.response.returned_rows", event.rows)
            if event.ran_on is not None:
                span.set_attribute("flatwater.ran_on", event.ran_on)
            for name, seconds in (("queue", event.queue), ("lock", event.lock), ("run", event.run)):
                span.set_attribute(f"flatwater.{name}", seconds)
            if event.error is not None:
                span.set_status(trace.StatusCode.ERROR, event.error)
        span.end(ended)
