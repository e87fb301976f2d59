"""What the package reports: records of the logger "flatwater", and the calls of statement listeners.

Owns the form of the records, and where a statement listener runs. The engine reports on any thread; listeners run on a
thread of Python: that of an event loop, or one whose call waits. Invariant: an exception in a logger harms no call.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native

if TYPE_CHECKING:
    from typing import Protocol

    from .._native import StatementEvent

    class _HasLoggers(Protocol):
        """An open database, as far as its loggers go."""

        _loggers: list[Callable[[StatementEvent], object]]


log = logging.getLogger("flatwater")
_statements = logging.getLogger("flatwater.statement")


def listen() -> None:
    """Takes over the levels of the loggers, so that no unwanted records are made."""
    _native.listen(log.isEnabledFor(logging.DEBUG), _statements.isEnabledFor(logging.DEBUG))


def write(told: list[tuple[int, str, str, list[tuple[str, Any]]]], lost: int) -> None:
    """Logs events of the engine. Called by the native part."""
    for level, target, message, pairs in told:
        fields = dict(pairs)
        text = " ".join(f"{name}={value}" for name, value in pairs if name != "db.system.name")
        logging.getLogger(target.replace("::", ".")).log(level, "%s: %s", message, text, extra={"fields": fields})
    if lost:
        log.warning("%d events were not logged, because no loop read them in time", lost)


def check(logger: Any) -> None:
    """Refuses what cannot be a statement listener."""
    if not callable(logger) or inspect.iscoroutinefunction(logger):
        raise TypeError("a statement listener must be a plain function of one argument; it may create a task")


def teller(opened: _HasLoggers) -> Callable[[StatementEvent], None]:
    """Returns what the native part calls with every query of a database, which it does not keep alive."""
    known = weakref.ref(opened)

    def tell(query: StatementEvent) -> None:
        opened = known()
        if opened is None:
            return
        for logger in tuple(opened._loggers):
            try:
                event_loop = asyncio.get_running_loop()
            except RuntimeError:
                _call(opened, logger, query)
            else:
                event_loop.call_soon(_call, opened, logger, query)

    return tell


def _call(opened: _HasLoggers, logger: Callable[[StatementEvent], object], query: StatementEvent) -> None:
    # It may have been removed meanwhile.
    if logger not in opened._loggers:
        return
    try:
        logger(query)
    except Exception:
        log.exception("a statement listener raised: %r", logger)
