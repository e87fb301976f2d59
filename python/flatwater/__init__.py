"""SQLite for asyncio: as fast as calling it directly, and it never stalls your event loop.

    import flatwater

    async with flatwater.connect("app.db") as db:
        await db.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        await db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",))
        for user in await db.query("SELECT id, name FROM users"):
            print(user["id"], user["name"])

One writer and several readers serve any number of tasks. Every call is a coroutine, which begins when it is awaited.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import process
from ._database import Connecting, Database, connect
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    RowNotFound,
    TimeoutError,
    Warning,
)
from ._functions import Functions
from ._names import of_module
from ._native import (
    BatchResult,
    Call,
    Change,
    CheckpointInfo,
    Columns,
    ExecuteResult,
    LoggedQuery,
    Row,
    Rows,
    sqlite_version,
)
from ._native import version as __version__
from ._reads import Batches, Stream
from ._scopes import Snapshot, Transaction

if TYPE_CHECKING:
    from ._blob import Blob
    from ._connection import Connection
    from ._live import Live, Subscription
    from ._prepared import Prepared
    from ._sql import Sql
    from ._stats import CallStats, InlineStats, LeaseStats, LiveStats, Stats, TurnStats, WalBlocker, WalStats
    from ._types import Options, Params, Seconds, SqlLike, Tuning
    from ._values import register_adapter

__all__ = [
    "BatchResult",
    "Batches",
    "Blob",
    "Call",
    "CallStats",
    "Change",
    "CheckpointInfo",
    "Columns",
    "Connecting",
    "Connection",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "ExecuteResult",
    "Functions",
    "InlineStats",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LeaseStats",
    "Live",
    "LiveStats",
    "LoggedQuery",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "Params",
    "Prepared",
    "ProgrammingError",
    "Row",
    "RowNotFound",
    "Rows",
    "Seconds",
    "Snapshot",
    "Sql",
    "SqlLike",
    "Stats",
    "Stream",
    "Subscription",
    "TimeoutError",
    "Transaction",
    "Tuning",
    "TurnStats",
    "WalBlocker",
    "WalStats",
    "Warning",
    "__version__",
    "connect",
    "process",
    "register_adapter",
    "sqlite_version",
]

# As `tuple` and `list` are. Rows of one result can be the parameters of a statement.
Sequence.register(Row)  # pyright: ignore[reportAttributeAccessIssue]
Sequence.register(Rows)  # pyright: ignore[reportAttributeAccessIssue]

if not TYPE_CHECKING:
    # What many programs do not use is imported when they do: this takes as long as all the rest.
    _LATER = {
        "_blob": {"Blob"},
        "_connection": {"Connection"},
        "_live": {"Live", "Subscription"},
        "_prepared": {"Prepared"},
        "_sql": {"Sql"},
        "_stats": {"WalBlocker", *(name for name in __all__ if name.endswith("Stats"))},
        "_types": {"Options", "Params", "Seconds", "SqlLike", "Tuning"},
        "_values": {"register_adapter"},
    }

    def __getattr__(name: str) -> Any:
        for module, names in _LATER.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        of_module(__name__, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
