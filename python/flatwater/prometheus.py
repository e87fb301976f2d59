"""The figures of databases for `prometheus_client`, which the extra `flatwater[prometheus]` installs.

Owns the names and labels in Prometheus' form. Runs where Prometheus' endpoint is rendered, and costs no statement.
Leaves out what is counted (`_told.figures`), and the endpoint, which `prometheus_client` has.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ._handles.database import Opened
from ._told.figures import FIGURES, Figure

__all__ = ["DatabaseCollector"]

_UNITS = {"s": "seconds", "By": "bytes"}


class DatabaseCollector(Collector):
    """The figures of some databases: `REGISTRY.register(DatabaseCollector(db))`.

    They are read when Prometheus asks. Each has the label `database`, which is the path that the database was opened
    with; a closed one has none any more.
    """

    def __init__(self, *databases: Opened) -> None:
        self._databases = databases

    def describe(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        """Their names, so that a registry need not ask for their values."""
        return [_family(figure) for figure in FIGURES]

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Reads each database once."""
        stats = [(db._path, db.stats()) for db in self._databases if not db._is_closed]
        for figure in FIGURES:
            family = _family(figure)
            for path, of_database in stats:
                family.add_metric([path], figure.read(of_database))
            yield family


def _family(figure: Figure) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
    name = figure.name.replace(".", "_")
    return kind(name, figure.help, labels=["database"], unit=_UNITS.get(figure.unit, ""))
