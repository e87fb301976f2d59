"""What SQLAlchemy 2.0 and 2.1 have differently.

Owns the differences. Leaves out what either is used for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import pool
from sqlalchemy.util import concurrency

# How code in a greenlet awaits something.
await_: Callable[[Any], Any] = getattr(concurrency, "await_", None) or concurrency.await_only
IS_2_0 = not hasattr(concurrency, "await_")


def describe(init: Callable[..., None], driver: Any, dbapi: Any) -> None:
    """Makes an adapted module, which has no arguments in 2.0."""
    if IS_2_0:
        init()
    else:
        init(driver, dbapi_module=dbapi)


def check_pool(dialect: Any, url: Any) -> None:
    """Warns of a database in memory with a pool that it is not for, as 2.1 does."""
    if not IS_2_0:
        dialect._warn_memory_mode_pool_selection(url, pool.StaticPool, pool.AsyncAdaptedQueuePool)
