"""Names that do not exist here, such as those of other libraries, and what to use instead.

Owns the hints. Leaves out names that are merely misspelt, which Python itself corrects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

# What stands for the words in a hint, in code that awaits and in code without an event loop.
_AWAITING = {"await_": "await ", "async_": "async ", "call": "await"}
_BLOCKING = {"await_": "", "async_": "", "call": "call"}

_HINTS = {
    "commit": "each statement is committed when its {call} returns; "
    "several belong into `{async_}with db.transaction()`",
    "rollback": "`{async_}with db.transaction()` rolls back if its body raises",
    "begin": "use `{async_}with db.transaction()`",
    "fetchall": "use `{await_}db.query(sql, params)`, which returns all rows",
    "fetchone": "use `{await_}db.query_optional(sql, params)`, which returns the first row or None",
    "fetchmany": "use `db.stream(sql, params)` for a large result",
    "fetch": "use `{await_}db.query(sql, params)`",
    "fetchrow": "use `{await_}db.query_optional(sql, params)`",
    "fetchval": "use `{await_}db.query_optional_value(sql, params)`",
    "fetch_all": "use `{await_}db.query(sql, params)`",
    "fetch_arrow_table": "use `pyarrow.table({await_}db.query_columns(sql, params))`",
    "query_arrow": "use `{await_}db.query_columns(sql, params)`, which libraries take that read Arrow",
    "query_df": "use `pandas.DataFrame.from_arrow({await_}db.query_columns(sql, params))`",
    "fetch_one": "use `{await_}db.query_optional(sql, params)`",
    "fetch_val": "use `{await_}db.query_optional_value(sql, params)`",
    "cursor": "use `db.batches(sql, params)` for rows in batches, and `{await_}db.query(sql, params)` for all of them",
    "execute_fetchall": "use `{await_}db.query(sql, params)`",
    "execute_insert": "use `{await_}db.execute(sql, params)`, whose result has `last_insert_rowid`",
    "execute_many": "use `executemany`",
    "execute_script": "use `executescript`",
    "row_factory": "rows have names and positions; `query(..., into=dict)` makes others",
    "text_factory": "TEXT is str and BLOB is bytes; CAST in SQL changes that",
    "isolation_level": "there is autocommit, and `{async_}with db.transaction()`",
    "autocommit": "there is autocommit, and `{async_}with db.transaction()`",
    "lastrowid": "the result of `execute` has `last_insert_rowid`",
    "rowcount": "the result of `execute` has `changes`",
    "total_changes": "the result of `execute` has `changes`; `db.connection()` has it",
    "set_trace_callback": "use `db.add_statement_listener`; `db.connection()` has it",
    "interrupt": "cancel the task, or give the call a `timeout`; `db.connection()` has it",
    "blobopen": "use `{async_}with db.open_blob(table, column, rowid) as blob`",
    "deserialize": 'use `flatwater.connect(":memory:")`, with `deserialize` in `tuning`',
    "register_adapter": "use `flatwater.register_adapter`",
    "register_converter": "use the option `converters` of `connect`",
    "load_extension": "use the option `load_extension` of `connect`",
    "enable_load_extension": "use the option `load_extension` of `connect`",
    "createscalarfunction": "use `create_function`",
    "createaggregatefunction": "use `create_aggregate`",
    "createcollation": "use `create_collation`",
    "create_scalar_function": "use `create_function`",
    "create_aggregate_function": "use `create_aggregate`",
    "set_authorizer": "use a `read_only` database for what must not write; `db.connection()` has it",
    "set_progress_handler": "cancel the task, or give the call a `timeout`; `db.connection()` has it",
    "in_transaction": "outside of `{async_}with db.transaction()` each statement is its own transaction",
    "stop": "use `{await_}db.close()`",
}

_IN_TRANSACTION = {
    "commit": "it is committed when its `{async_}with` block ends",
    "begin": "use `{async_}with tx.transaction()` for a nested one",
    "savepoint": "use `{async_}with db.transaction()`, and `tx.savepoint(name)` in it",
    **{
        name: f"use `db.{name}`: the transaction has it from its next statement on"
        for name in ("create_function", "create_aggregate", "create_window_function", "create_collation")
    },
}

# Of a connection of one's own.
_OF_CONNECTION = {
    "commit": 'use `{await_}connection.execute("COMMIT")`',
    "rollback": 'use `{await_}connection.execute("ROLLBACK")`',
    "begin": 'use `{await_}connection.execute("BEGIN")`',
    "transaction": 'use `{await_}connection.execute("BEGIN")`, or `{async_}with db.transaction()`',
    "savepoint": 'use `{await_}connection.execute("SAVEPOINT ...")`',
    "snapshot": "use `{async_}with db.snapshot()`",
}

# Of what the option `functions` is called with.
_OF_FUNCTIONS = {
    name: "no SQL runs in `functions`; use the option `on_open` for a PRAGMA, `migrations` for the schema"
    for name in ("execute", "executescript", "executemany", "cursor", "commit", "query")
}

# Of what calls return.
_OF_RESULT = {
    "lastrowid": "it is `last_insert_rowid`",
    "rowcount": "it is `changes`",
    "fetchall": "`execute` is for statements without rows; use `{await_}db.query(sql, params)`",
    "fetchone": "`execute` is for statements without rows; use `{await_}db.query_optional(sql, params)`",
    "fetchmany": "`execute` is for statements without rows; use `db.stream(sql, params)`",
    "close": "there is nothing to close",
}
_OF_ROWS = {
    "fetchall": "these are all rows; `list(rows)` is a list of them",
    "fetchone": "use `rows[0]`, or `{await_}db.query_optional(sql, params)`",
    "fetchmany": "use `rows[:n]`, or `db.stream(sql, params)` for a large result",
    "description": "the names are `rows.columns`",
    "rowcount": "use `len(rows)`",
    "append": "a result is immutable; `list(rows)` is not",
    "close": "there is nothing to close",
}
_OF_COLUMNS = {
    "to_pandas": "use `pandas.DataFrame.from_arrow(columns)`",
    "to_polars": "use `polars.DataFrame(columns)`",
    "to_arrow": "use `pyarrow.table(columns)`",
    "to_numpy": "use `numpy.array(columns[name])`",
    "to_pydict": "it is `to_dict`",
    "to_pylist": "use `{await_}db.query(sql, params, into=dict)`, which returns a list of rows",
    "columns": "the names are `columns.names`, and the values of one are `columns[name]`",
    "keys": "the names are `columns.names`",
    "shape": "it is `(columns.row_count, len(columns.names))`",
    "num_rows": "it is `row_count`",
}
_OF_BATCHES = {
    "fetchall": "use `{await_}db.query(sql, params)`",
    "fetchone": "use `{async_}for row in stream`",
    "fetchmany": "use `{async_}for rows in batches`, or `{await_}batches.next_batch()`",
    "execute": "it belongs to one query: `db.batches(sql, params)`",
    "description": "the names are `rows.columns`",
}

# Of the modules.
_OF_MODULE = {
    "Checkpointed": "it is `CheckpointInfo`",
    "Cursor": "it is `Batches`",
    "Executed": "it is `ExecuteResult`",
    "register_converter": "use the option `converters` of `connect`",
    "shutdown": "use `{await_}process.close_all(wait)`",
}


_OPTIONS = {
    "check_same_thread": "any task and any thread may use a database",
    "isolation_level": "there is autocommit, and `async with db.transaction()`",
    "autocommit": "there is autocommit, and `async with db.transaction()`",
    "cached_statements": 'it is tuning={"statement_cache": ...}',
    "uri": "a path that begins with file: is a URI",
    "detect_types": 'pass `converters={"name of a type": function}`',
    "factory": "rows become your own type with `query(..., into=...)`",
    "iter_chunk_size": "a stream chooses the size of its batches",
    "loop": "a database belongs to no event loop",
    "max_open": "it is for the whole process: `flatwater.process.set_max_open(databases)`",
    "on_statement": "use `db.add_statement_listener`",
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuses an option of other libraries, and one that is something else here."""
    tuning = options.get("tuning")
    for name in (*options, *(tuning if isinstance(tuning, Mapping) else ())):
        if hint := _OPTIONS.get(name):
            raise TypeError(f"there is no option {name!r}: {hint}")


def _said(hint: str, blocking: bool) -> str:
    """Returns a hint with the words of code that awaits, or of code without an event loop."""
    return hint.format(**(_BLOCKING if blocking else _AWAITING))


def not_open(owner: object, name: str, kind: type) -> NoReturn:
    """Raises what an unknown attribute raises, with a hint if it is one of the database that is not open yet."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if hasattr(kind, name) or name in _HINTS:
        text += ": it is not open yet; `await` it, or use `async with connect(path) as db`"
    raise AttributeError(text, name=name, obj=owner)


def no_attribute(owner: object, name: str, *, hints: dict[str, str] | None = None, blocking: bool = False) -> NoReturn:
    """Raises what an unknown attribute raises, with a hint if other libraries have it."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if hint := (hints or {}).get(name) or _HINTS.get(name):
        text = f"{text}: {_said(hint, blocking)}"
    raise AttributeError(text, name=name, obj=owner)


def refuse_unknown(owner: object, name: str) -> None:
    """Refuses to set an attribute that an object does not have, with what reading it raises."""
    if not name.startswith("_") and not hasattr(type(owner), name):
        getattr(owner, name)


def not_in_transaction(owner: object, name: str, *, blocking: bool = False) -> NoReturn:
    """The same for a transaction."""
    no_attribute(owner, name, hints=_IN_TRANSACTION, blocking=blocking)


def of_connection(owner: object, name: str, *, blocking: bool = False) -> NoReturn:
    """The same for a connection of one's own."""
    no_attribute(owner, name, hints=_OF_CONNECTION, blocking=blocking)


def of_batches(owner: object, name: str, *, blocking: bool = False) -> NoReturn:
    """The same for a stream, or for batches."""
    no_attribute(owner, name, hints=_OF_BATCHES, blocking=blocking)


def of_functions(owner: object, name: str) -> NoReturn:
    """The same for what the option `functions` is called with."""
    no_attribute(owner, name, hints=_OF_FUNCTIONS)


def of_result(owner: object, name: str) -> NoReturn:
    """The same for the result of `execute`. Called by the native part."""
    no_attribute(owner, name, hints=_OF_RESULT)


def of_rows(owner: object, name: str) -> NoReturn:
    """The same for rows. Called by the native part."""
    no_attribute(owner, name, hints=_OF_ROWS)


def of_columns(owner: object, name: str) -> NoReturn:
    """The same for columns. Called by the native part."""
    no_attribute(owner, name, hints=_OF_COLUMNS)


def of_module(module: str, name: str, *, blocking: bool = False) -> NoReturn:
    """The same for a module."""
    text = f"module {module!r} has no attribute {name!r}"
    if hint := _OF_MODULE.get(name):
        text = f"{text}: {_said(hint, blocking)}"
    raise AttributeError(text, name=name, obj=sys.modules[module])


def of_call(name: str) -> str | None:
    """Returns what an unknown attribute of a call that was not awaited raises. Called by the native part."""
    if name not in {*_OF_RESULT, *_OF_ROWS, *_OF_COLUMNS, "changes", "last_insert_rowid", "names", "row_count"}:
        return None
    return f"'flatwater.Call' object has no attribute {name!r}: it was not awaited; its result is what `await` returns"


def not_awaited(what: str, call: str) -> NoReturn:
    """Raises what an `await` of a block raises."""
    raise TypeError(f"a {what} cannot be awaited: it is a block, `async with {call} as ...`")
