"""Names of other libraries, and what they are called here.

Owns the hints. Leaves out names that are merely misspelt, which Python itself corrects.
"""

from __future__ import annotations

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


def no_attribute(owner: object, name: str) -> NoReturn:
    """Raises what an unknown attribute raises, with a hint if other libraries have it."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if hint := _HINTS.get(name):
        text = f"{text}: {hint}"
    raise AttributeError(text, name=name, obj=owner)
