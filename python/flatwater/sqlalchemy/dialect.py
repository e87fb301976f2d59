"""What SQLAlchemy asks of a dialect: that of SQLite, on Flatwater.

Owns what differs from SQLAlchemy's dialect for `sqlite3`. Invariants: it registers no function on a connection, for
that would make each its own, `regexp` and `floor` are built in; a table that Alembic builds again keeps the rows that
refer to it. Leaves out connections and cursors (`connection`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import pool, util
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.url import URL
from sqlalchemy.schema import CreateTable

from .. import __version__
from .._logical import Closed
from .connection import FlatwaterModule
from .keys import REBUILT
from .version import check_pool


class FlatwaterExecutionContext(SQLiteExecutionContext):
    """One statement of SQLAlchemy."""

    def create_server_side_cursor(self) -> Any:
        """Returns a cursor that reads its rows as they are wanted."""
        connection: Any = self._dbapi_connection
        return connection.cursor(server_side=True)


class OfFlatwater(SQLiteDialect_pysqlite):
    """What the dialects of Flatwater have in common."""

    supports_statement_cache = True

    @classmethod
    def load_provisioning(cls) -> None:
        """What SQLAlchemy's tests need to know of SQLite."""
        import sqlalchemy.dialects.sqlite.provision  # noqa: F401

    def retrieve_dbapi_version(self, dbapi: Any) -> util.VersionInfo:
        """The version of Flatwater."""
        return util.parse_version_string(__version__)

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Runs a statement."""
        if context is not None and context.isddl:
            created = context.compiled.statement
            if isinstance(created, CreateTable) and created.element.name.startswith(REBUILT):
                context._dbapi_connection.turn_keys_off()
        cursor.execute(statement, parameters)

    def on_connect(self) -> Any:
        """Nothing."""
        return None

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """True if the error says that the connection is closed."""
        return isinstance(e, Closed) or super().is_disconnect(e, connection, cursor)


class FlatwaterDialect(OfFlatwater):
    """`sqlite+flatwater://`."""

    driver = "flatwater"
    supports_statement_cache = True
    supports_server_side_cursors = True
    update_executemany_returning = True
    delete_executemany_returning = True
    is_async = True
    has_terminate = True
    execution_ctx_cls = FlatwaterExecutionContext

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module with `connect` and the exceptions."""
        return FlatwaterModule()

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """A file has several connections, a database in memory one."""
        if cls._is_url_file_db(url):
            return pool.AsyncAdaptedQueuePool
        check_pool(cls, url)
        return pool.StaticPool

    def get_driver_connection(self, connection: Any) -> Any:
        """The connection of `flatwater.aiosqlite`."""
        return connection._connection

    def do_terminate(self, dbapi_connection: Any) -> None:
        """Closes a connection that is not to be used any more, also outside of a task."""
        dbapi_connection.terminate()
