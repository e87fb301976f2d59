"""What Django asks of a backend: its own for SQLite, on `flatwater.dbapi`.

Owns how a connection is opened, and its cursors. Runs on Django's threads, each of which has a connection. Invariants:
the functions that Django's SQL calls are options of the database, so connections share its writer and its readers;
foreign keys are enforced. Leaves out SQL, schemas and introspection, which are Django's, and databases of tests
(`creation`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3._functions import register
from django.db.utils import NotSupportedError
from django.utils.asyncio import async_unsafe

from .. import dbapi
from .._handles.database import Connecting
from .._logical.files import Place, Settings
from .creation import DatabaseCreation
from .features import DatabaseFeatures

# Arguments of `sqlite3.connect` that are not of the file.
OF_CONNECTIONS = (
    *("database", "timeout", "detect_types", "isolation_level"),
    *("check_same_thread", "factory", "cached_statements", "uri"),
)


class Cursor(dbapi.Cursor):
    """Takes parameters as Django writes them: `%s` and `%(name)s`."""

    convert_query = base.SQLiteCursorWrapper.convert_query

    def execute(self, query: str, params: Any = None, /) -> Cursor:
        """Runs one statement. Without parameters its text is taken as it is."""
        if params is None:
            return super().execute(query)
        names = list(params) if isinstance(params, Mapping) else None
        return super().execute(self.convert_query(query, param_names=names), params)

    def executemany(self, query: str, param_list: Iterable[Any], /) -> Cursor:
        """Runs one statement for each row of parameters."""
        rows = iter(param_list)
        first = next(rows, None)
        names = list(first) if isinstance(first, Mapping) else None
        given = () if first is None else chain([first], rows)
        return super().executemany(self.convert_query(query, param_names=names), given)


class _Functions:
    """What Django takes for a connection on which it registers its functions."""

    def __init__(self, database: Any) -> None:
        self.create_function = database.create_function
        self.create_aggregate = database.create_aggregate

    def execute(self, sql: str) -> _Functions:
        """Django asks whether mathematical functions are built in."""
        return self

    def fetchone(self) -> tuple[int]:
        """They are."""
        return (1,)


def _with_functions(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `connect`, with Django's functions before those of the program."""
    more = given.get("functions")

    def functions(database: Any) -> None:
        register(_Functions(database))
        if more is not None:
            more(database)

    return {"foreign_keys": True, **given, "functions": functions}


class DatabaseWrapper(base.DatabaseWrapper):
    """The connection of one thread."""

    Database = dbapi
    creation_class = DatabaseCreation
    features_class = DatabaseFeatures

    @async_unsafe
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Opens a connection. OPTIONS has arguments of `flatwater.dbapi.connect`."""
        connection = dbapi.connect(**_with_functions(conn_params))
        for command in filter(str.strip, self.init_commands):
            connection.execute(command)
        return connection

    @async_unsafe
    def create_cursor(self, name: str | None = None) -> Cursor:
        """Returns a cursor."""
        connection: Any = self.connection
        cursor: Cursor = connection.cursor(factory=Cursor)
        return cursor

    def connecting(self) -> Connecting:
        """What opens the file for the package's own calls, with the options that Django's connections have."""
        given = _with_functions(self.get_connection_params())
        if self.is_in_memory_db():
            raise NotSupportedError("a database in memory has no calls beside Django's: name a file, in TEST too")
        options = {name: value for name, value in given.items() if name not in OF_CONNECTIONS}
        keys = options.pop("foreign_keys")
        place = Place(Settings(os.fspath(given["database"]), foreign_keys=keys, options=options), uri=True)
        return Connecting(place.path, place.options, joins=True)
