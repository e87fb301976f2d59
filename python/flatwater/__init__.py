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
from ._errors import (
    Busy,
    CheckViolation,
    Constraint,
    DatabaseError,
    DataError,
    Error,
    ForeignKeyViolation,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotNullViolation,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    RowNotFound,
    Timeout,
    UniqueViolation,
    Warning,
)
from ._given.functions import Functions
from ._handles.database import Connecting, Database, connect
from ._handles.reads import Batches, Stream
from ._handles.scopes import Snapshot, Transaction
from ._native import (
    BackupProgress,
    Call,
    Change,
    CheckpointInfo,
    Columns,
    ExecuteResult,
    Row,
    Rows,
    RunResult,
    StatementEvent,
    sqlite_version,
)
from ._native import version as __version__
from ._told.names import of_module

if TYPE_CHECKING:
    from ._given.types import Options, Params, Seconds, SqlLike, Tuning, Types
    from ._given.values import Json, register_adapter
    from ._handles.blob import Blob
    from ._handles.connection import Connection
    from ._handles.live import Live, Subscription
    from ._handles.prepared import Prepared
    from ._sql import Sql
    from ._told.stats import CallStats, InlineStats, LeaseStats, LiveStats, Stats, TurnStats, WalBlocker, WalStats

__all__ = [
    "BackupProgress",
    "Batches",
    "Blob",
    "Busy",
    "Call",
    "CallStats",
    "Change",
    "CheckViolation",
    "CheckpointInfo",
    "Columns",
    "Connecting",
    "Connection",
    "Constraint",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "ExecuteResult",
    "ForeignKeyViolation",
    "Functions",
    "InlineStats",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Json",
    "LeaseStats",
    "Live",
    "LiveStats",
    "StatementEvent",
    "NotNullViolation",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "Params",
    "Prepared",
    "ProgrammingError",
    "Row",
    "RowNotFound",
    "Rows",
    "RunResult",
    "Seconds",
    "Snapshot",
    "Sql",
    "SqlLike",
    "Stats",
    "Stream",
    "Subscription",
    "Timeout",
    "Transaction",
    "Tuning",
    "TurnStats",
    "Types",
    "UniqueViolation",
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
        "_given.types": {"Options", "Params", "Seconds", "SqlLike", "Tuning", "Types"},
        "_given.values": {"Json", "register_adapter"},
        "_handles.blob": {"Blob"},
        "_handles.connection": {"Connection"},
        "_handles.live": {"Live", "Subscription"},
        "_handles.prepared": {"Prepared"},
        "_sql": {"Sql"},
        "_told.stats": {"WalBlocker", *(name for name in __all__ if name.endswith("Stats"))},
    }

    def __getattr__(name: str) -> Any:
        for module, names in _LATER.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        of_module(__name__, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
