"""The backend: Django's own, with connections and cursors of `flatwater.dbapi`.

Django registers its functions on each new connection. Here they are an option of the database instead, so that all of
its connections have them and share its readers.
"""

from collections.abc import Mapping
from itertools import chain

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3._functions import register

from flatwater import dbapi


class Cursor(dbapi.Cursor):
    """Takes parameters as Django writes them: `%s` and `%(name)s`."""

    convert_query = base.SQLiteCursorWrapper.convert_query

    def execute(self, query, params=None):
        if params is None:
            return super().execute(query)
        names = list(params) if isinstance(params, Mapping) else None
        return super().execute(self.convert_query(query, param_names=names), params)

    def executemany(self, query, param_list):
        rows = iter(param_list)
        first = next(rows, None)
        names = list(first) if isinstance(first, Mapping) else None
        rows = () if first is None else chain([first], rows)
        return super().executemany(self.convert_query(query, param_names=names), rows)


class Functions:
    """What Django takes for the connection that it registers its functions on."""

    def __init__(self, functions):
        self.create_function = functions.create_function
        self.create_aggregate = functions.create_aggregate

    def execute(self, sql):
        """Django asks whether mathematical functions are built in."""
        return self

    def fetchone(self):
        return (1,)


class DatabaseWrapper(base.DatabaseWrapper):
    Database = dbapi

    def get_new_connection(self, conn_params):
        connection = dbapi.connect(
            **conn_params,
            foreign_keys=True,
            tuning={"double_quoted_strings": False},
            functions=lambda functions: register(Functions(functions)),
        )
        for command in filter(str.strip, self.init_commands):
            connection.execute(command)
        return connection

    def create_cursor(self, name=None):
        return self.connection.cursor(factory=Cursor)
