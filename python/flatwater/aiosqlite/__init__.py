"""The surface of aiosqlite on Flatwater: `import flatwater.aiosqlite as aiosqlite`, and nothing else changes.

    import flatwater.aiosqlite as aiosqlite

    async with aiosqlite.connect("app.db") as db:
        await db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",))
        await db.commit()
        async with db.execute("SELECT id, name FROM users") as cursor:
            async for row in cursor:
                print(row)

The names are those of aiosqlite 0.22. Its connections to one file share one writer and several readers.
"""

from sqlite3 import (
    DatabaseError,
    Error,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    paramstyle,
    register_adapter,
    register_converter,
)

from .._logical import Row
from .._native import sqlite_version
from .core import Connection, Cursor, connect

__version__ = "0.22.1"
sqlite_version_info = tuple(int(number) for number in sqlite_version.split("."))

__all__ = [
    "Connection",
    "Cursor",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Row",
    "Warning",
    "__version__",
    "connect",
    "paramstyle",
    "register_adapter",
    "register_converter",
    "sqlite_version",
    "sqlite_version_info",
]
