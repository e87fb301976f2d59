"""Flatwater without `await`, for scripts, threads and WSGI: the same calls, each of which waits for its result.

There are no live queries.

    from flatwater import blocking

    with blocking.connect("app.db") as db:
        for user in db.query("SELECT id, name FROM users"):
            print(user["name"])

Owns the blocks, and the calls that do more than to wait for another one. A `Database` may be used by any number of
threads. Do not use it on a thread that runs an event loop: it would block the loop.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .. import _native
from .._errors import Error, misuse
from .._given.forms import Forms
from .._given.functions import collect
from .._given.row_types import RowsT_co, RowT_co
from .._handles.database import Opened
from .._handles.dump import Ask, Lines, dump
from .._native import (
    BackupProgress,
    CheckpointInfo,
    NativeDatabase,
    Row,
    SnapshotGuard,
    TransactionBlock,
    WaitedBlock,
    wait,
)
from .._told import logging as _logging
from .._told.names import check_options, no_attribute, not_in_transaction, of_module, refuse_unknown
from .._waiting import with_blocks as _with_blocks
from .._waiting.seconds import deadline
from . import process
from ._blob import Blob
from ._calls import Calls
from ._prepared import Prepared
from ._reads import Batches, Stream

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .._given.types import AnyPath, ManyParams, Options, Params, Seconds, SqlLike, Types
    from ._connection import Connection

__all__ = [
    "Batches",
    "Blob",
    "Connection",
    "Database",
    "Prepared",
    "Snapshot",
    "Stream",
    "Transaction",
    "connect",
    "process",
]

# So many rows of a generator are kept at a time, and in a transaction for no longer than so many seconds.
PART = 512
TURN = 0.5


_T = TypeVar("_T")


class Executor(Calls[RowsT_co, RowT_co]):
    """What runs SQL, and waits for it."""

    def __init__(self) -> None:
        self._on = _native.Executor()

    def executemany(self, sql: str, rows: ManyParams, *, timeout: Seconds | None = None) -> int:
        """Runs one statement once per row of parameters, all or nothing. Returns the number of rows it changed.

        A list and a table of Arrow are taken as a whole. Rows of a generator run as they come, some hundred at a time;
        if there are more, they run in a transaction, and other writes wait until the generator ends."""
        comes_in_parts = isinstance(rows, Iterable) and not isinstance(rows, Sized) and not _is_table(rows)
        if comes_in_parts and isinstance(self, (Database, Transaction)):
            return _run_in_parts(self, sql, iter(cast("Iterable[Params]", rows)), timeout)
        return wait(self._on.executemany(sql, rows, timeout=timeout))

    def stream(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Stream:
        """Returns the rows of a query one by one, in bounded memory and of one point in time, for `with`. `timeout` is
        that of each fetch."""
        return Stream(self, sql, params, types, timeout)

    def batches(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Batches:
        """Returns the rows of a query in batches, in bounded memory and of one point in time, for `with`. `timeout` is
        that of each fetch."""
        return Batches(self, sql, params, types, timeout)

    def open_blob(
        self, table: str, column: str, rowid: int, *, name: str = "main", timeout: Seconds | None = None
    ) -> Blob:
        """Opens the BLOB or TEXT of one row as a binary file, of which parts are read and written. `name` is that of an
        attached database. `timeout` is that of each read and write."""
        return Blob(self._on._open_blob(table, column, rowid, name, timeout)._wait(), timeout)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            no_attribute(self, name, blocking=True)

        def __setattr__(self, name: str, value: object) -> None:
            refuse_unknown(self, name)
            object.__setattr__(self, name, value)


class Transaction(WaitedBlock, Executor[RowsT_co, RowT_co]):
    """A transaction: `with db.transaction() as tx`. It is committed when the block ends, and rolled back if it
    raises."""

    _on: TransactionBlock[RowsT_co, RowT_co]

    def __init__(self, outer: Executor[RowsT_co, RowT_co], timeout: Seconds | None) -> None:
        self._on = TransactionBlock(outer._on, timeout)

    def __enter__(self) -> Self:
        begin = self._on._enter(_with_blocks.block())
        try:
            begin._wait()
            return self
        except BaseException:
            # Nobody leaves a block that was not entered.
            self._on._abandon()
            raise

    def transaction(self, *, timeout: Seconds | None = None) -> Transaction[RowsT_co, RowT_co]:
        """Returns a nested transaction. If its block raises, its changes are rolled back; this one stays open. While
        its block is open it is the current one: calls of the block on the outer one run in it. Calls of other threads
        on the outer one are refused meanwhile."""
        return Transaction(self, timeout)

    def savepoint(self, name: str) -> None:
        """Opens a savepoint, to which `rollback_to` returns. They form a stack; a name may be used again, and is then
        that of the newest one. A block that nests, `transaction()`, has its own names."""
        self._on._begun().savepoint(name)._wait()

    def release(self, name: str) -> None:
        """Closes the savepoint of this name and those after it, and keeps their changes. The transaction stays open."""
        self._on._begun().release(name)._wait()

    def rollback_to(self, name: str) -> None:
        """Undoes all changes since the savepoint of this name, which stays open. Those after it are closed."""
        self._on._begun().rollback_to(name)._wait()

    def rollback(self) -> None:
        """Rolls the transaction back before its block ends, without an exception. Later calls on it raise
        `ProgrammingError`, and the end of the block does nothing. Succeeds if SQLite, the idle limit or a close has
        already rolled it back."""
        wait(self._on.rollback())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            not_in_transaction(self, name, blocking=True)

    @property
    def in_transaction(self) -> bool:
        """True until the transaction is over."""
        return self._on.in_transaction


class Snapshot(Executor[RowsT_co, RowT_co]):
    """One point in time: `with db.snapshot() as snapshot`. All its reads see the same state, whatever is committed
    meanwhile."""

    def __init__(self, outer: Executor[RowsT_co, RowT_co], timeout: Seconds | None) -> None:
        super().__init__()
        self._timeout = timeout
        self._outer = outer
        self._guard: SnapshotGuard | None = None

    def __enter__(self) -> Self:
        if self._guard is not None:
            raise misuse("a snapshot is used once", "call `snapshot()` for another one", "finished")
        self._guard = self._outer._on._snapshot(self._timeout)._wait()
        self._on._open(self._guard)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            self._guard.close()


class Database(Opened, Executor[RowsT_co, RowT_co]):
    """An open database. Made by `connect`."""

    def __init__(self, native: NativeDatabase, path: str) -> None:
        self._on = _native.Executor()
        Opened.__init__(self, native, path, self._on)

    def transaction(self, *, timeout: Seconds | None = None) -> Transaction[RowsT_co, RowT_co]:
        """Returns a transaction, for `with`."""
        return Transaction(self, timeout)

    def snapshot(self, *, timeout: Seconds | None = None) -> Snapshot[RowsT_co, RowT_co]:
        """Returns a snapshot, for `with`: several reads of one point in time."""
        return Snapshot(self, timeout)

    def connection(
        self, *, busy_timeout: Seconds | None = None, foreign_keys: bool | None = None
    ) -> Connection[RowsT_co, RowT_co]:
        """Returns a connection of one's own, for what a pooled one refuses: transaction control as text, TEMP objects,
        ATTACH, PRAGMAs. `busy_timeout` limits the wait for the writer and for locks. Close it, or use `with`."""
        from ._connection import Connection

        return Connection(self._native.connection(busy_timeout, foreign_keys))

    def prepare(self, sql: str, *, timeout: Seconds | None = None) -> Prepared[RowsT_co, RowT_co]:
        """Compiles a statement, so that an error in it is raised here, and returns a handle for running it."""
        self._on._prepare(sql, timeout)._wait()
        return Prepared(self, sql)

    def migrate(
        self,
        migrations: Iterable[tuple[str, str]] | AnyPath,
        *,
        ignore_missing: bool = False,
        timeout: Seconds | None = None,
    ) -> list[str]:
        """Applies the migrations that the database does not have yet, and returns their names."""
        return self._native.migrate(migrations, ignore_missing, timeout)._wait()

    def backup(
        self,
        path: AnyPath,
        *,
        progress: Callable[[BackupProgress], object] | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Copies the database into a new file, as of one point in time, while other threads read and write. It
        overwrites nothing: `path` must not exist. `progress` is called on this thread while pages are copied, and an
        exception of it ends the backup."""
        self._native.backup(path, timeout, progress)._wait()

    def vacuum(self, *, timeout: Seconds | None = None) -> None:
        """Rebuilds the database without its free pages, and gives their space back to the file system. Later writes
        wait until it is done; reads continue in a file in WAL mode."""
        self._native.vacuum(timeout)._wait()

    def vacuum_into(self, path: AnyPath, *, timeout: Seconds | None = None) -> None:
        """Writes a compact copy of the database into a new file, as of one point in time, while other threads read and
        write: a `backup` without free pages, which takes longer."""
        self._native.vacuum_into(path, timeout)._wait()

    def incremental_vacuum(self, pages: int = 0, *, timeout: Seconds | None = None) -> int:
        """Gives up to so many free pages back to the file system, 0 for all, and returns how many. The file gets
        shorter with the next checkpoint. For a database that was created with `auto_vacuum="incremental"`; raises for
        one without `auto_vacuum`."""
        return self._native.incremental_vacuum(pages, timeout)._wait()

    def integrity_check(
        self, *, table: str | None = None, quick: bool = False, name: str = "main", timeout: Seconds | None = None
    ) -> Iterator[str]:
        """The problems of the database: a sentence for each, and none if it is sound. `quick` does not compare indexes
        with their tables. `name` is that of an attached database. Foreign keys and CHECK constraints are not checked.

        Read all problems, or close the iterator: until then it holds a reader."""
        sql = _native.check_sql(table, quick, name)
        pages = self._native.pages_sql(name)
        if pages is not None:
            try:
                with closing(self._problems(sql, timeout)) as problems:
                    if next(problems, None) is None:
                        return
            except Error:
                damaged = self.query_values(pages, types="stored")
                if not damaged:
                    raise
            else:
                damaged = self.query_values(pages, types="stored")
            if damaged:
                # The others follow from these.
                yield from damaged
                return
        yield from self._problems(sql, timeout)

    def _problems(self, sql: str, timeout: Seconds | None) -> Generator[str, None, None]:
        with self.batches(sql, types="stored", timeout=timeout) as batches:
            for rows in batches:
                for row in rows:
                    yield from _native.problems(row[0])

    def serialize(self, *, timeout: Seconds | None = None) -> bytes:
        """Returns the database as bytes, as of one point in time. `connect(":memory:", tuning={"deserialize": data})`
        opens them. For a large database use `backup`."""
        return self._native.serialize(timeout)._wait()

    def export(self, path: AnyPath, *, key: str | bytes | None, timeout: Seconds | None = None) -> None:
        """Copies the database into a new file that is encrypted with `key`, or into a plain one with `key=None`. It
        needs the package `flatwater-sqlcipher`."""
        self._native.export(path, key, timeout)._wait()

    def rekey(self, key: str | bytes, *, timeout: Seconds | None = None) -> None:
        """Encrypts the database with another key, and goes on with it. It writes every page. No other connection may
        have the file open: it waits for reads in progress and for other processes, up to `busy_timeout`."""
        self._native.rekey(key, timeout)._wait()

    def has_key(self, key: str | bytes, *, timeout: Seconds | None = None) -> bool:
        """Whether the database has this key, after the calls of `rekey` from before. False for a database without a
        key."""
        return self._native.has_key(key, timeout)._wait()

    def iterdump(self, *, filter: str | None = None) -> Iterator[str]:  # noqa: A002, the name in `sqlite3`
        """The database as SQL: lines that `executescript` and the `sqlite3` shell load, of one point in time. `filter`
        is a pattern of LIKE for the names of tables, indexes, triggers and views.

        Read all lines, or close the iterator: until then it holds a reader, like a snapshot."""
        asked, rows = dump(filter), None
        with self.snapshot() as snapshot:
            while True:
                try:
                    step = asked.send(rows)
                except StopIteration:
                    return
                rows = None
                if isinstance(step, Ask):
                    rows = snapshot.query(step.sql, step.params, into=Row, types="stored")
                elif isinstance(step, Lines):
                    with snapshot.batches(step.sql, types="stored") as batches:
                        for batch in batches:
                            yield from (f"{row[0]};" for row in batch)
                else:
                    yield step

    def checkpoint(self, mode: str = "passive") -> CheckpointInfo:
        """Copies the WAL into the database now. You do not have to call this."""
        return self._native.checkpoint(mode)._wait()

    def close(self) -> None:
        """Closes the database, and waits for that. Closing twice is allowed."""
        wait(self._begin_close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _is_table(rows: object) -> bool:
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")


def _run_in_parts(
    on: Database[Any, Any] | Transaction[Any, Any], sql: str, rows: Iterator[Params], timeout: Seconds | None
) -> int:
    """Runs a statement for rows that are not there yet, of which no more than a part is kept."""
    # A server has no transaction for several parts.
    is_whole = isinstance(on, Database) and on._native.is_server()
    part = list(rows if is_whole else islice(rows, PART))
    if is_whole or len(part) < PART:
        return wait(on._on.executemany(sql, part, timeout=timeout))
    left = deadline(timeout)
    changes = done = 0
    with on.transaction(timeout=left()) as tx:
        while part:
            changes += wait(tx._on._executemany_part(sql, part, done, left()))
            done += len(part)
            # Before the next ones are made.
            part.clear()
            _take(rows, part)
    return changes


def _take(rows: Iterator[Params], part: list[Params]) -> None:
    """Takes rows until the part is full, or for a while: the transaction must not be idle as long as many rows take."""
    end = time.monotonic() + TURN
    for row in rows:
        part.append(row)
        if len(part) == PART or time.monotonic() >= end:
            return


@overload
def connect(path: AnyPath, *, into: None = None, **options: Unpack[Options]) -> Database: ...
@overload
def connect(
    path: AnyPath, *, into: type[dict[Any, Any]], **options: Unpack[Options]
) -> Database[list[dict[str, Any]], dict[str, Any]]: ...
@overload
def connect(
    path: AnyPath, *, into: type[tuple[Any, ...]], **options: Unpack[Options]
) -> Database[list[tuple[Any, ...]], tuple[Any, ...]]: ...
@overload
def connect(path: AnyPath, *, into: Callable[..., _T], **options: Unpack[Options]) -> Database[list[_T], _T]: ...
def connect(path: AnyPath, **options: Any) -> Database[Any, Any]:
    """Opens or creates the database file at `path`, and waits for that. The options are those of
    `flatwater.connect`."""
    check_options(options)
    path = os.fsdecode(path)
    forms = Forms(options)
    functions = collect(options, forms.datetimes_of_sqlite3)
    _logging.listen()
    native = _native.connect(path, cast("Options", options), functions)._wait()
    forms.give(native)
    return Database(native, native.name(path))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "Connection":
            from ._connection import Connection

            return Connection
        of_module(__name__, name, blocking=True)
