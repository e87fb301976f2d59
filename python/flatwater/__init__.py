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
    TimeoutError,
    Warning,
)
from ._live import Live, Subscription
from ._native import BatchResult, Call, Change, Checkpointed, Executed, LoggedQuery, Row, Rows, sqlite_version
from ._native import version as __version__
from ._prepared import Prepared
from ._reads import Cursor, Stream
from ._scopes import Snapshot, Transaction
from ._sql import Sql
from ._stats import CallStats, InlineStats, LeaseStats, LiveStats, Stats, TurnStats, WalBlocker, WalStats
from ._types import Options, Params, SqlLike
from ._values import register_adapter

__all__ = [
    "BatchResult",
    "Call",
    "CallStats",
    "Change",
    "Checkpointed",
    "Connecting",
    "Cursor",
    "DataError",
    "Database",
    "DatabaseError",
    "Error",
    "Executed",
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
    "Rows",
    "Snapshot",
    "Sql",
    "SqlLike",
    "Stats",
    "Stream",
    "Subscription",
    "TimeoutError",
    "Transaction",
    "TurnStats",
    "WalBlocker",
    "WalStats",
    "Warning",
    "__version__",
    "connect",
    "register_adapter",
    "sqlite_version",
]

# As `tuple` and `list` are. Rows of one result can be the parameters of a statement.
Sequence.register(Row)  # pyright: ignore[reportAttributeAccessIssue]
Sequence.register(Rows)  # pyright: ignore[reportAttributeAccessIssue]
