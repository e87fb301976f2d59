"""The surface of the `sqlite3` module on Flatwater, for threads: PEP 249, and what programs use beyond it.

    from flatwater import dbapi

    db = dbapi.connect("app.db")
    with db:
        db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",))
    print(db.execute("SELECT id, name FROM users").fetchall())
    db.close()

Its connections to one file share one writer and several readers. Any thread may use any of them.
"""

from sqlite3.dbapi2 import (
    PARSE_COLNAMES,
    PARSE_DECLTYPES,
    Binary,
    DatabaseError,
    DataError,
    Date,
    DateFromTicks,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    Warning,
    adapters,
    complete_statement,
    converters,
    register_adapter,
    register_converter,
)

from .._logical import Row
from .._native import sqlite_version
from .connection import Connection, connect
from .cursor import Cursor
from .type_objects import BINARY, DATETIME, NUMBER, ROWID, STRING

apilevel = "2.0"
paramstyle = "qmark"
# Threads may share the module and connections.
threadsafety = 2
sqlite_version_info = tuple(int(number) for number in sqlite_version.split("."))

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Row",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "adapters",
    "apilevel",
    "complete_statement",
    "connect",
    "converters",
    "paramstyle",
    "register_adapter",
    "register_converter",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
]
