"""Names of other libraries, and what they are called here.

Owns the hints. Leaves out names that are merely misspelt, which Python itself corrects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

_HINTS = {
    "commit": "each statement is committed when its await returns; several belong into `async with db.transaction()`",
    "rollback": "`async with db.transaction()` rolls back if its body raises",
    "begin": "use `async with db.transaction()`",
    "fetchall": "use `await db.query(sql, params)`, which returns all rows",
    "fetchone": "use `await db.query_one(sql, params)`, which returns the first row or None",
    "fetchmany": "use `db.stream(sql, params)` for a large result",
    "fetch": "use `await db.query(sql, params)`",
    "fetchrow": "use `await db.query_one(sql, params)`",
    "fetchval": "use `await db.query_value(sql, params)`",
    "fetch_all": "use `await db.query(sql, params)`",
    "fetch_one": "use `await db.query_one(sql, params)`",
    "execute_fetchall": "use `await db.query(sql, params)`",
    "execute_insert": "use `await db.execute(sql, params)`, whose result has `last_insert_rowid`",
    "execute_many": "use `executemany`",
    "execute_script": "use `executescript`",
    "row_factory": "rows have names and positions; `query(..., into=dict)` makes others",
    "text_factory": "TEXT is str and BLOB is bytes; CAST in SQL changes that",
    "isolation_level": "there is autocommit, and `async with db.transaction()`",
    "autocommit": "there is autocommit, and `async with db.transaction()`",
    "lastrowid": "the result of `execute` has `last_insert_rowid`",
    "rowcount": "the result of `execute` has `changes`",
    "total_changes": "the result of `execute` has `changes`",
    "set_trace_callback": "use `db.add_query_logger`",
    "interrupt": "cancel the task, or give the call a `timeout`",
    "register_adapter": "use `flatwater.register_adapter`",
    "iterdump": "use `await db.backup(path)`, which writes a copy of one point in time",
    "create_function": "functions written in Python are not supported",
}


_OPTIONS = {
    "check_same_thread": "any task and any thread may use a database",
    "isolation_level": "there is autocommit, and `async with db.transaction()`",
    "autocommit": "there is autocommit, and `async with db.transaction()`",
    "cached_statements": "it is `statement_cache`",
    "uri": "a path that begins with file: is a URI",
    "detect_types": "a value is what SQLite stored; `query(..., into=...)` makes others",
    "factory": "rows become your own type with `query(..., into=...)`",
    "iter_chunk_size": "a stream chooses the size of its batches",
    "loop": "a database belongs to no event loop",
}


def check_options(names: Iterable[str]) -> None:
    """Refuses an option of other libraries."""
    for name in names:
        if hint := _OPTIONS.get(name):
            raise TypeError(f"there is no option {name!r}: {hint}")


def not_open(owner: object, name: str, kind: type) -> NoReturn:
    """Raises what an unknown attribute raises, with a hint if it is one of the database that is not open yet."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if hasattr(kind, name) or name in _HINTS:
        text += ": it is not open yet; `await` it, or use `async with connect(path) as db`"
    raise AttributeError(text, name=name, obj=owner)


def no_attribute(owner: object, name: str) -> NoReturn:
    """Raises what an unknown attribute raises, with a hint if other libraries have it."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if hint := _HINTS.get(name):
        text = f"{text}: {hint}"
    raise AttributeError(text, name=name, obj=owner)
