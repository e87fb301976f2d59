"""The database: opening and closing it, and what only a database can do.

Owns the handle of a program. Dropping an open database closes it in the background, with a `ResourceWarning` and a log
record. When the interpreter ends, the module closes all open databases.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterable
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .. import _native
from .._errors import AtExit, Error
from .._given.forms import Forms
from .._given.functions import Functions, collect
from .._given.row_types import RowsT_co, RowT_co
from .._native import Call, Row, Rows
from .._told import logging as _logging
from .._told.names import check_options, not_open
from .._waiting.pause import Pause, is_due
from .scopes import Reads, Snapshot, Transaction

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .._given.types import AnyPath, Options, Params, Seconds, SqlLike
    from .._told.stats import Stats
    from .connection import Connection
    from .live import Live, Subscription
    from .prepared import Prepared

_T = TypeVar("_T")
_open: weakref.WeakSet[Opened] = weakref.WeakSet()


class Opened(Functions):
    """An open database, whether its calls are awaited or wait."""

    def __init__(self, native: _native.NativeDatabase, path: str, executor: _native.Executor[Any, Any]) -> None:
        self._native = native
        self._path = path
        self._is_closed = False
        self._loggers: list[Callable[[_native.StatementEvent], object]] = []
        executor._open(native)
        _open.add(self)

    def stats(self) -> Stats:
        """Returns what the database has done since it was opened, as dictionaries."""
        return self._native.stats()

    def add_statement_listener(self, logger: Callable[[_native.StatementEvent], object]) -> None:
        """Calls `logger` with a `StatementEvent` for each call of this database that ends: a statement, a batch, a
        whole stream, the beginning and the end of a transaction. It does not report calls that began before.

        The event loop calls it, soon after the call has ended, with the context variables of its task; a thread without
        a loop calls it before the call returns. An exception in it is logged. Without a logger nothing is measured. A
        logger that writes into the same file must use another `connect`, or it logs its own writes."""
        _logging.check(logger)
        if logger not in self._loggers:
            self._loggers.append(logger)
        self._native.log_queries(_logging.teller(self))

    def remove_statement_listener(self, logger: Callable[[_native.StatementEvent], object]) -> None:
        """Removes `logger`. Succeeds if it was not added."""
        if logger in self._loggers:
            self._loggers.remove(logger)
        if not self._loggers:
            self._native.log_queries(None)

    def _give(self, function: _native.NativeFunction) -> None:
        self._native.create(function)

    def _remove_function(self, name: str, narg: int) -> None:
        self._native.remove_function(name, narg)

    def _remove_collation(self, name: str) -> None:
        self._native.remove_collation(name)

    def _keeps_datetimes(self) -> bool:
        return self._native.keeps_datetimes()

    def _begin_close(self) -> Call[None]:
        close = self._native.close()
        self._is_closed = True
        return close

    def __repr__(self) -> str:
        return f"<flatwater.{type(self).__name__} {self._path!r}{' (closed)' if self._is_closed else ''}>"

    def __del__(self) -> None:
        if not self.__dict__.get("_is_closed", True):
            if not sys.is_finalizing():
                # As text: a record that is kept would keep the database open.
                _logging.log.warning("a database was dropped while it was open, and is closed: %s", repr(self))
            warnings.warn(f"unclosed database {self!r}", ResourceWarning, source=self, stacklevel=2)


class Database(Opened, Reads[RowsT_co, RowT_co]):
    """An open database: one writer, several readers, any number of tasks. Made by `connect`."""

    def __init__(self, native: _native.NativeDatabase, path: str) -> None:
        Opened.__init__(self, native, path, self)

    def transaction(self, *, timeout: Seconds | None = None) -> Transaction[RowsT_co, RowT_co]:
        """Returns a transaction, for `async with`. `timeout` limits the wait for other writes at its beginning."""
        return Transaction(self, timeout)

    def snapshot(self, *, timeout: Seconds | None = None) -> Snapshot[RowsT_co, RowT_co]:
        """Returns a snapshot, for `async with`: several reads of one point in time."""
        return Snapshot(self, timeout)

    def connection(
        self, *, busy_timeout: Seconds | None = None, foreign_keys: bool | None = None
    ) -> Connection[RowsT_co, RowT_co]:
        """Returns a connection of one's own, for what a pooled one refuses: transaction control as text, TEMP objects,
        ATTACH, PRAGMAs. `busy_timeout` limits the wait for the writer and for locks. Close it, or use `async with`."""
        from .connection import Connection

        return Connection(self._native.connection(busy_timeout, foreign_keys))

    async def prepare(self, sql: str, *, timeout: Seconds | None = None) -> Prepared[RowsT_co, RowT_co]:
        """Compiles a statement, so that an error in it is raised here, and returns a handle for running it."""
        from .prepared import Prepared

        await self._prepare(sql, timeout)
        return Prepared(self, sql)

    def live(self, sql: SqlLike, params: Params = None, *, debounce: Seconds = 0, throttle: Seconds = 0) -> Live:
        """Returns the results of a query, for `async with`, and again whenever this program or another process changed
        them. `debounce` waits until no newer result has come for so many seconds, `throttle` delivers at most one in so
        many."""
        from .live import Live

        return Live(
            lambda: self._native.live([(sql, params)], debounce, throttle),
            lambda: self._native.live_changes(sql, params, debounce, throttle),
        )

    def live_group(
        self, queries: Iterable[SqlLike | tuple[SqlLike, Params]], *, debounce: Seconds = 0, throttle: Seconds = 0
    ) -> Subscription[tuple[Rows, ...]]:
        """Returns the results of several queries, for `async with`, and again whenever one of them changed: a tuple
        with one result for each. A query is its SQL, or a pair of SQL and parameters. The results are of one point in
        time, so a list and its count never disagree."""
        from .live import Subscription

        statements = list(queries)
        return Subscription(lambda: self._native.live(statements, debounce, throttle), lambda results: results)

    def migrate(
        self,
        migrations: Iterable[tuple[str, str]] | AnyPath,
        *,
        ignore_missing: bool = False,
        timeout: Seconds | None = None,
    ) -> Call[list[str]]:
        """Applies the migrations that the database does not have yet, and returns their names.

        Migrations are pairs of a name, such as "0001_users", and SQL; or a folder with a file for each. Each is applied
        once, even if several processes start at the same time.
        """
        return self._native.migrate(migrations, ignore_missing, timeout)

    def backup(
        self,
        path: AnyPath,
        *,
        progress: Callable[[_native.BackupProgress], object] | None = None,
        timeout: Seconds | None = None,
    ) -> Call[None]:
        """Copies the database into a new file, as of one point in time, while reads and writes continue.

        It overwrites nothing: `path` must not exist. The file gets its name when it is complete and synced, and is
        called `PATH.RANDOM.partial` until then. A backup that fails, is cancelled or passes its `timeout` removes that
        file. Attached files are not copied. In a database in memory other calls wait meanwhile.

        `progress` is called by the task while pages are copied, for steps of 64 pages; for several at once if the loop
        is busy. It is a plain function: what it returns is ignored, and an exception ends the backup. When no page is
        left, the file is synced, and gets its name.
        """
        return self._native.backup(path, timeout, progress)

    def vacuum(self, *, timeout: Seconds | None = None) -> Call[None]:
        """Rebuilds the database without its free pages, and gives their space back to the file system.

        It holds the writer until it is done: later writes wait. Reads, streams, snapshots and live queries continue in
        a file in WAL mode. Cancelling it before its commit undoes it. It needs free space for the database twice.
        """
        return self._native.vacuum(timeout)

    def vacuum_into(self, path: AnyPath, *, timeout: Seconds | None = None) -> Call[None]:
        """Writes a compact copy of the database into a new file, as of one point in time, while reads and writes
        continue: a `backup` without free pages, which takes longer."""
        return self._native.vacuum_into(path, timeout)

    def incremental_vacuum(self, pages: int = 0, *, timeout: Seconds | None = None) -> Call[int]:
        """Gives up to so many free pages back to the file system, 0 for all, and returns how many. The file gets
        shorter with the next checkpoint. For a database that was created with `auto_vacuum="incremental"`; raises for
        one without `auto_vacuum`."""
        return self._native.incremental_vacuum(pages, timeout)

    async def integrity_check(
        self, *, table: str | None = None, quick: bool = False, name: str = "main", timeout: Seconds | None = None
    ) -> AsyncIterator[str]:
        """The problems of the database, for `async for`: a sentence for each, and none if it is sound.

        Reads and writes continue, but the WAL cannot start over meanwhile: check a large database table by table.
        `quick` does not compare indexes with their tables. `name` is that of an attached database. Foreign keys and
        CHECK constraints are not checked. Read all problems, or close the iterator: until then it holds a reader."""
        sql = _native.check_sql(table, quick, name)
        pages = self._native.pages_sql(name)
        if pages is not None:
            try:
                async with aclosing(self._problems(sql, timeout)) as problems:
                    if await anext(problems, None) is None:
                        return
            except Error:
                damaged = await self.query_values(pages, types="stored")
                if not damaged:
                    raise
            else:
                damaged = await self.query_values(pages, types="stored")
            for number, problem in enumerate(damaged, 1):
                yield problem
                if is_due(number):
                    await Pause()
            if damaged:
                # The others follow from these.
                return
        async with aclosing(self._problems(sql, timeout)) as problems:
            async for problem in problems:
                yield problem

    async def _problems(self, sql: str, timeout: Seconds | None) -> AsyncGenerator[str, None]:
        async with self.batches(sql, types="stored", timeout=timeout) as batches:
            async for rows in batches:
                for number, row in enumerate(rows, 1):
                    for problem in _native.problems(row[0]):
                        yield problem
                    if is_due(number):
                        await Pause()

    def serialize(self, *, timeout: Seconds | None = None) -> Call[bytes]:
        """Returns the database as bytes, as of one point in time. `connect(":memory:", tuning={"deserialize": data})`
        opens them. For a large database use `backup`."""
        return self._native.serialize(timeout)

    def export(self, path: AnyPath, *, key: str | bytes | None, timeout: Seconds | None = None) -> Call[None]:
        """Copies the database into a new file that is encrypted with `key`, or into a plain one with `key=None`: to
        encrypt a database that exists, or to decrypt one. Otherwise it is like `backup`. It needs the package
        `flatwater-sqlcipher`."""
        return self._native.export(path, key, timeout)

    def rekey(self, key: str | bytes, *, timeout: Seconds | None = None) -> Call[None]:
        """Encrypts the database with another key, and goes on with it. It writes every page, and other calls wait for
        it. No other connection may have the file open: it waits for reads in progress and for other processes, up to
        `busy_timeout`. If it is cancelled, the file has either key, and the database goes on with that: `has_key`
        tells which."""
        return self._native.rekey(key, timeout)

    def has_key(self, key: str | bytes, *, timeout: Seconds | None = None) -> Call[bool]:
        """Whether the database has this key, after the calls of `rekey` from before, also cancelled ones. False for a
        database without a key."""
        return self._native.has_key(key, timeout)

    async def iterdump(self, *, filter: str | None = None) -> AsyncIterator[str]:  # noqa: A002, the name in `sqlite3`
        """The database as SQL, for `async for`: lines that `executescript` and the `sqlite3` shell load, of one point
        in time. `filter` is a pattern of LIKE for the names of tables, indexes, triggers and views.

        Read all lines, or close the iterator: until then it holds a reader, like a snapshot."""
        from .dump import Ask, Lines, dump

        asked, rows = dump(filter), None
        async with self.snapshot() as snapshot:
            while True:
                try:
                    step = asked.send(rows)
                except StopIteration:
                    return
                rows = None
                if isinstance(step, Ask):
                    rows = await snapshot.query(step.sql, step.params, into=Row, types="stored")
                elif isinstance(step, Lines):
                    async with snapshot.batches(step.sql, types="stored") as batches:
                        async for batch in batches:
                            for number, row in enumerate(batch, 1):
                                yield f"{row[0]};"
                                if is_due(number):
                                    await Pause()
                else:
                    yield step

    def checkpoint(self, mode: str = "passive") -> Call[_native.CheckpointInfo]:
        """Copies the WAL into the database now. You do not have to call this. The mode is "passive", "full",
        "restart" or "truncate"."""
        return self._native.checkpoint(mode)

    def close(self) -> Call[None]:
        """Closes the database: executes the writes that were begun before, waits for an open transaction
        (`close_wait`), and then rolls it back. Calls that begin later raise `ProgrammingError`. Closing twice is
        allowed."""
        return self._begin_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class Connecting(Coroutine[Any, Any, "Database[RowsT_co, RowT_co]"], Generic[RowsT_co, RowT_co]):
    """What `connect` returns: a database that is about to be opened. `await` returns it; `async with` also closes it.

    Your own function that calls `connect` returns this too, and is used in the same two ways::

        def connect_app(**options: Unpack[flatwater.Options]) -> flatwater.Connecting:
            return flatwater.connect("app.db", **options)

    The await opens the database.
    """

    __slots__ = ("_call", "_database", "_forms", "_path")

    def __init__(self, path: str, options: Any, *, joins: bool = False) -> None:
        self._path = path
        self._database: Database[RowsT_co, RowT_co] | None = None
        self._forms = Forms(options)
        functions = collect(options, self._forms.datetimes_of_sqlite3)
        _logging.listen()
        self._call: Call[_native.NativeDatabase] = _native.connect(path, options, functions, joins=joins)

    def _opened(self, native: _native.NativeDatabase) -> Database[RowsT_co, RowT_co]:
        self._forms.give(native)
        return Database(native, native.name(self._path))

    def __await__(self) -> Generator[Any, None, Database[RowsT_co, RowT_co]]:
        return self._opened((yield from self._call.__await__()))

    def send(self, value: Any) -> Any:
        try:
            return self._call.send(value)
        except StopIteration as done:
            raise StopIteration(self._opened(done.value)) from None

    def throw(self, *exception: Any) -> Any:
        try:
            return self._call.throw(*exception)
        except StopIteration as done:
            raise StopIteration(self._opened(done.value)) from None

    def close(self) -> None:
        self._call.close()

    async def __aenter__(self) -> Database[RowsT_co, RowT_co]:
        self._database = await self
        return self._database

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            not_open(self, name, Database)

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("_"):
                not_open(self, name, Database)
            object.__setattr__(self, name, value)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._database is not None
        await self._database.close()


@overload
def connect(path: AnyPath, *, into: None = None, **options: Unpack[Options]) -> Connecting: ...
@overload
def connect(
    path: AnyPath, *, into: type[dict[Any, Any]], **options: Unpack[Options]
) -> Connecting[list[dict[str, Any]], dict[str, Any]]: ...
@overload
def connect(
    path: AnyPath, *, into: type[tuple[Any, ...]], **options: Unpack[Options]
) -> Connecting[list[tuple[Any, ...]], tuple[Any, ...]]: ...
@overload
def connect(path: AnyPath, *, into: Callable[..., _T], **options: Unpack[Options]) -> Connecting[list[_T], _T]: ...
def connect(path: AnyPath, **options: Any) -> Connecting[Any, Any]:
    """Opens or creates the database file at `path`: `db = await connect(path)`, or `async with connect(path) as db`.

    ":memory:" is a private database in memory. "rqlite://host:4001" and "libsql://host" are databases on servers, with
    the methods that run statements; the await asks the server. `Options` lists the options; durations are seconds or a
    `timedelta`. Options that most programs leave as they are go into the dict `tuning`; `Tuning` lists them. An unknown
    option is a `TypeError` that names the nearest one.
    """
    check_options(options)
    return Connecting(os.fsdecode(path), options)


@atexit.register
def _close_all() -> None:
    """Closes what is still open when the interpreter ends, and waits for that: all files at once, then the rest."""
    _native.close_at_exit([database._native for database in list(_open) if not database._is_closed], AtExit)
