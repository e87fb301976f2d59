"""The types of the native part. Programs import them from `flatwater`."""

from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, SupportsIndex, TypeAlias, TypeVar, final, overload, type_check_only

from typing_extensions import Buffer, Self, disjoint_base

from ._given.row_types import RowsT_co, RowT_co
from ._given.types import AnyPath, ManyParams, Options, Params, Seconds, SqlLike, Types
from ._told.stats import Stats

__all__ = [
    "BackupProgress",
    "RunResult",
    "Call",
    "Change",
    "CheckpointInfo",
    "Columns",
    "ExecuteResult",
    "Executor",
    "StatementEvent",
    "NativeBatches",
    "NativeBlob",
    "NativeConnection",
    "NativeDatabase",
    "NativeFunction",
    "NativeLive",
    "Row",
    "Rows",
    "SnapshotGuard",
    "Statements",
    "Tokens",
    "TransactionBlock",
    "TransactionGuard",
    "Turn",
    "Turns",
    "WaitedBlock",
    "check_sql",
    "check_types",
    "close_all",
    "close_at_exit",
    "connect",
    "converters_of",
    "drive",
    "function",
    "listen",
    "options",
    "parameters_of",
    "problems",
    "is_address",
    "refuses_second_copy",
    "restore_row",
    "restore_rows",
    "set_max_open",
    "sqlite_version",
    "tuples",
    "turn_is_due",
    "turn_was_given",
    "version",
    "wait",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

Call: TypeAlias = Coroutine[Any, Any, _T]
"""One call of the database: a coroutine, which begins when it is awaited. A type of its own when it runs; type checkers
look for a forgotten `await` at this type only, and at none that derives from it."""

@type_check_only
class OwnCall(Coroutine[Any, Any, _T_co], Generic[_T_co]):
    """The same where the package itself uses it, in threads without an event loop too."""

    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def send(self, value: Any, /) -> Any: ...
    def throw(self, *exception: Any) -> Any: ...
    def close(self) -> None: ...
    def _wait(self) -> _T_co: ...
    def _wait_unless(self, raises: Callable[[], None]) -> _T_co: ...

@final
class Row(Sequence[Any]):
    """One row: immutable; by position, by name, and as an iterable of its values."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: str | SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Any, ...]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __lt__(self, other: Row | tuple[Any, ...], /) -> bool: ...
    def __le__(self, other: Row | tuple[Any, ...], /) -> bool: ...
    def __gt__(self, other: Row | tuple[Any, ...], /) -> bool: ...
    def __ge__(self, other: Row | tuple[Any, ...], /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any, /) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def index(self, value: Any, /, *range: int) -> int: ...
    def count(self, value: Any, /) -> int: ...
    def keys(self) -> tuple[str, ...]:
        """The names of the columns. With it, `dict(row)` works."""

@final
class Rows(Sequence[Row]):
    """All rows of a query: a sequence of `Row`."""

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any, /) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Row: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Row]: ...
    def __iter__(self) -> Iterator[Row]: ...
    def index(self, value: Any, /, *range: int) -> int: ...
    def count(self, value: Any, /) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Columns:
    """A result as columns, without an object for each row or value. Libraries that read Arrow take it as a table:
    `pandas.DataFrame.from_arrow(columns)`, `polars.DataFrame(columns)`, `pyarrow.table(columns)`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
    @property
    def row_count(self) -> int:
        """The number of rows."""
    def __getitem__(self, key: str | SupportsIndex, /) -> list[Any]:
        """The values of a column, by its name or its position."""
    def to_dict(self) -> dict[str, list[Any]]:
        """The values of every column, by its name."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new stream of the columns: Arrow's PyCapsule interface. The columns stay as they are."""

@final
class ExecuteResult:
    """What one statement changed."""

    def __new__(cls, changes: int, last_insert_rowid: int | None = None) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def changes(self) -> int:
        """Rows that the statement itself inserted, updated or deleted."""
    @property
    def last_insert_rowid(self) -> int | None:
        """The rowid of the last row that it inserted, or None."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class RunResult:
    """What one statement did, whatever it is."""

    def __new__(cls, changes: int, last_insert_rowid: int | None = None, rows: Rows | None = None) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def changes(self) -> int:
        """Rows that the statement itself inserted, updated or deleted."""
    @property
    def last_insert_rowid(self) -> int | None:
        """The rowid of the last row that it inserted, or None."""
    @property
    def rows(self) -> Rows | None:
        """The rows of a statement that returns rows, or None."""
    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; there are none if the statement returns no rows."""

@final
class CheckpointInfo:
    """What a checkpoint did."""

    @property
    def frames(self) -> int:
        """Frames in the WAL."""
    @property
    def copied(self) -> int:
        """How many of them are in the database."""

@final
class BackupProgress:
    """How far a backup is."""

    @property
    def total_pages(self) -> int:
        """Pages of the database."""
    @property
    def remaining_pages(self) -> int:
        """Pages that are not copied yet."""

@final
class Change:
    """What has changed in the result of a live query since the change before."""

    @property
    def full(self) -> Rows | None:
        """The whole result, if it replaces the results before; otherwise None."""
    @property
    def inserted(self) -> list[Row]:
        """The rows whose key is new."""
    @property
    def updated(self) -> list[tuple[Row, Row]]:
        """Pairs of the old and the new version of a row."""
    @property
    def deleted(self) -> list[Row]:
        """The rows whose key is gone."""

@final
class StatementEvent:
    """One call that has ended. Times are in seconds. It never contains bound values."""

    @property
    def path(self) -> Path:
        """The file of the database."""
    @property
    def operation(self) -> str:
        """What was called, such as "query_one", or "begin" and "commit" for a transaction."""
    @property
    def sql(self) -> str | None:
        """The SQL. That of a batch is joined by "; ". None if the call has no SQL, or its parameters were refused."""
    @property
    def in_transaction(self) -> bool:
        """True for a call of an open transaction."""
    @property
    def ran_on(self) -> str | None:
        """Where it ran: on the "caller", a "reader", the "writer", the writer in a "group", or a "server"; None if it
        did not."""
    @property
    def queue(self) -> float:
        """How long it waited until it ran, locks excluded."""
    @property
    def lock(self) -> float:
        """How long it waited for locks of other connections."""
    @property
    def run(self) -> float:
        """How long it ran."""
    @property
    def total(self) -> float:
        """From its first step to its end."""
    @property
    def rows(self) -> int | None:
        """How many rows were returned, if rows were asked for."""
    @property
    def changes(self) -> int | None:
        """How many rows were changed, if a write was asked for."""
    @property
    def error(self) -> str | None:
        """The `kind` of the error, or None. A call that was cancelled has "cancelled"."""
    @property
    def error_code(self) -> str | None:
        """SQLite's name of the error, such as "SQLITE_BUSY", or its `code`, such as "returns_rows"; or None."""
    @property
    def is_slow(self) -> bool:
        """True if it took at least `slow_statement`."""

@disjoint_base
class Executor(Generic[RowsT_co, RowT_co]):
    """Runs SQL. The base of `Database`, `Transaction`, `Snapshot` and `Connection`."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self: ...
    def __class_getitem__(cls, _types: Any) -> type[Self]: ...
    def execute(self, sql: SqlLike, params: Params = None, *, timeout: Seconds | None = None) -> Call[ExecuteResult]:
        """Runs one statement that returns no rows. Returns its changes and the rowid of the last row it inserted."""
    def run(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Call[RunResult]:
        """Runs any one statement. Returns its rows, if it returns rows, and what it changed: for programs that do not
        know what the statement is, such as consoles and adapters."""
    def executemany(self, sql: str, rows: ManyParams, *, timeout: Seconds | None = None) -> Call[int]:
        """Runs one statement once per row of parameters, all or nothing. Returns the number of rows it changed. A table
        of Arrow is taken too, such as a DataFrame: its columns are the parameters in order, or by the names of them."""
    def executescript(self, sql: str, *, timeout: Seconds | None = None) -> Call[None]:
        """Runs several statements without parameters, separated by semicolons, all or nothing."""
    def batch(
        self, statements: Iterable[SqlLike | tuple[str, Params]], *, timeout: Seconds | None = None
    ) -> Call[list[RunResult]]:
        """Runs several statements with their parameters, all or nothing, in one trip. Returns a result for each."""
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[RowsT_co]:
        """Runs one statement and returns all its rows: a sequence of `Row`, or a list of what `into` makes of each.
        `types` says what the values of columns mean, as the option of `connect`; here each column must be there."""
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[dict[str, Any]]]: ...
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[tuple[Any, ...]]]: ...
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[_T]]: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[RowsT_co]:
        """Runs one statement that returns rows once per row of parameters, all or nothing: an INSERT with RETURNING.
        Returns the rows of all its runs in the order of the parameters, or a list of what `into` makes of each."""
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[dict[str, Any]]]: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[tuple[Any, ...]]]: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[list[_T]]: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[RowT_co]:
        """Runs one statement and returns its first row, or what `into` makes of it. Raises `RowNotFound` if there is
        no row."""
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[dict[str, Any]]: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[tuple[Any, ...]]: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[_T]: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[RowT_co | None]:
        """Runs one statement and returns its first row, or what `into` makes of it; None if there is no row."""
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[dict[str, Any] | None]: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[tuple[Any, ...] | None]: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Call[_T | None]: ...
    def query_value(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Call[Any]:
        """Runs one statement and returns the first value of its first row; None for NULL. Raises `RowNotFound` if there
        is no row."""
    def query_optional_value(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Call[Any]:
        """Runs one statement and returns the first value of its first row; None for NULL and if there is no row."""
    def query_values(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Call[list[Any]]:
        """Runs one statement and returns the first value of every row."""
    def query_columns(self, sql: SqlLike, params: Params = None, *, timeout: Seconds | None = None) -> Call[Columns]:
        """Runs one statement and returns its result as columns, for libraries that read Arrow, such as pandas. Raises
        if a column has values of several types."""
    def query_json(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        arrays: bool = False,
        big_integers_as_strings: bool = False,
        embed: list[str] | None = None,
        timeout: Seconds | None = None,
    ) -> Call[str]:
        """Runs one statement and returns its rows as the text of a JSON array of objects, or of arrays."""
    def _executemany_part(
        self, sql: str, rows: Iterable[Params], first: int, timeout: Seconds | None
    ) -> OwnCall[int]: ...
    def _run_many(self, sql: str, rows: Iterable[Params], keeps: bool) -> OwnCall[RunResult]: ...
    def _prepare(self, sql: str, timeout: Seconds | None) -> OwnCall[None]: ...
    def _open(self, on: NativeDatabase | TransactionGuard | SnapshotGuard | NativeConnection) -> None: ...
    def _begin(
        self, timeout: Seconds | None, guard: TransactionGuard | None = None, rowid: int | None = None
    ) -> OwnCall[TransactionGuard]: ...
    def _snapshot(self, timeout: Seconds | None) -> OwnCall[SnapshotGuard]: ...
    def _batches(
        self, sql: SqlLike, params: Params, timeout: Seconds | None, types: Types | None = None
    ) -> NativeBatches: ...
    def _open_blob(
        self, table: str, column: str, rowid: int, name: str, timeout: Seconds | None
    ) -> OwnCall[NativeBlob]: ...

@disjoint_base
class TransactionBlock(Executor[RowsT_co, RowT_co]):
    """A transaction, for `async with`, and for a `with` of its base `WaitedBlock`."""

    def __new__(cls, outer: Executor[RowsT_co, RowT_co], timeout: Seconds | None) -> Self: ...
    def __aenter__(self) -> OwnCall[Self]: ...
    def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> OwnCall[None]: ...
    def rollback(self) -> Call[None]:
        """Rolls the transaction back before its block ends, without an exception. Later calls on it raise
        `ProgrammingError`, and the end of the block does nothing. Succeeds if SQLite, the idle limit or a close has
        already rolled it back."""
    @property
    def in_transaction(self) -> bool:
        """True until the transaction is over."""
    def _enter(self, frame: int | None) -> OwnCall[Self]: ...
    def _abandon(self) -> None: ...
    def _begun(self) -> TransactionGuard: ...

class WaitedBlock:
    """The end of a `with` block."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class NativeDatabase:
    """An open database."""

    def close(self) -> OwnCall[None]: ...
    def set_forms(
        self,
        sqlite3_datetimes: bool,
        converters: Mapping[str, Callable[[bytes], Any]] | None,
        from_declared: bool,
        from_name: bool,
        types: Types | None,
        into: Callable[..., Any] | None,
    ) -> None: ...
    def pages_sql(self, name: str) -> str | None: ...
    def create(self, function: NativeFunction) -> None: ...
    def remove_function(self, name: str, arguments: int) -> None: ...
    def remove_collation(self, name: str) -> None: ...
    def keeps_datetimes(self) -> bool: ...
    def enforces_foreign_keys(self) -> bool: ...
    def name(self, path: str) -> str: ...
    def is_server(self) -> bool: ...
    def log_queries(self, tell: Callable[[StatementEvent], None] | None) -> None: ...
    def migrate(
        self, migrations: Iterable[tuple[str, str]] | AnyPath, ignore_missing: bool, timeout: Seconds | None
    ) -> OwnCall[list[str]]: ...
    def backup(
        self, path: AnyPath, timeout: Seconds | None, progress: Callable[[BackupProgress], object] | None = None
    ) -> OwnCall[None]: ...
    def vacuum(self, timeout: Seconds | None) -> OwnCall[None]: ...
    def vacuum_into(self, path: AnyPath, timeout: Seconds | None) -> OwnCall[None]: ...
    def incremental_vacuum(self, pages: int, timeout: Seconds | None) -> OwnCall[int]: ...
    def serialize(self, timeout: Seconds | None) -> OwnCall[bytes]: ...
    def export(self, path: AnyPath, key: str | bytes | None, timeout: Seconds | None) -> OwnCall[None]: ...
    def rekey(self, key: str | bytes, timeout: Seconds | None) -> OwnCall[None]: ...
    def has_key(self, key: str | bytes, timeout: Seconds | None) -> OwnCall[bool]: ...
    def checkpoint(self, mode: str) -> OwnCall[CheckpointInfo]: ...
    def live(
        self, queries: Sequence[SqlLike | tuple[SqlLike, Params]], debounce: Seconds, throttle: Seconds
    ) -> NativeLive: ...
    def live_changes(self, sql: SqlLike, params: Params, debounce: Seconds, throttle: Seconds) -> NativeLive: ...
    def connection(self, busy_timeout: Seconds | None, foreign_keys: bool | None) -> NativeConnection: ...
    def stats(self) -> Stats: ...

@final
class NativeConnection:
    """A connection of one's own."""

    def close(self) -> OwnCall[None]: ...
    def in_transaction(self) -> bool: ...
    def total_changes(self) -> int: ...
    def interrupt(self) -> None: ...
    def create(self, function: NativeFunction) -> None: ...
    def remove_function(self, name: str, arguments: int) -> None: ...
    def remove_collation(self, name: str) -> None: ...
    def keeps_datetimes(self) -> bool: ...
    def set_authorizer(self, code: Callable[..., int] | None) -> None: ...
    def set_progress_handler(self, code: Callable[[], object] | None, steps: int) -> None: ...
    def set_trace_callback(self, code: Callable[[str], object] | None) -> None: ...

@final
class NativeFunction:
    """A function or a collation that no database has yet."""

@final
class TransactionGuard:
    """The right to an open transaction, or to a nested one."""

    def __new__(cls) -> Self: ...
    def commit(self) -> OwnCall[None]: ...
    def commit_or_stay(self) -> OwnCall[None]: ...
    def rollback(self) -> OwnCall[None]: ...
    def abandon(self) -> None: ...
    def savepoint(self, name: str) -> OwnCall[None]: ...
    def release(self, name: str) -> OwnCall[None]: ...
    def rollback_to(self, name: str) -> OwnCall[None]: ...
    def is_open(self) -> bool: ...

@final
class SnapshotGuard:
    """The right to an open snapshot."""

    def close(self) -> None: ...

@final
class NativeBatches:
    """The rest of a result."""

    def next_batch(self) -> OwnCall[Rows | None]: ...
    def touch(self) -> None: ...
    def is_over(self) -> bool: ...
    def empty(self) -> Rows | None: ...
    def close(self) -> None: ...

@final
class NativeBlob:
    """A large value that is read and written in parts."""

    def __len__(self) -> int: ...
    def read(self, position: int, bytes: int, timeout: Seconds | None) -> OwnCall[bytes]: ...
    def write(self, position: int, data: Buffer, timeout: Seconds | None) -> OwnCall[None]: ...

@final
class Turns:
    """The line of the calls of one connection."""

    def empty(self) -> bool:
        """Returns true if nobody has a turn, or waits for one."""
    def take(self, *, shared: bool, taking: bool = False) -> Turn:
        """Returns a place in the line. `taking`: the call still takes what it was given."""

@final
class Turn:
    """A place in the line: a step that is over when the turn has come."""

    @property
    def has_come(self) -> bool: ...
    def taken(self) -> None: ...
    def alone(self) -> None: ...
    def leave(self) -> None: ...
    def _wait(self) -> None: ...
    def __await__(self) -> Generator[Any, Any, None]: ...

@final
class NativeLive:
    """A live query that goes on."""

    def next(self) -> OwnCall[Any]: ...
    def close(self) -> None: ...

version: str
sqlite_version: str

def connect(
    path: AnyPath, options: Options | None = None, functions: list[NativeFunction] = ..., joins: bool = ...
) -> OwnCall[NativeDatabase]: ...
def function(
    kind: str, name: str, arguments: int, code: Callable[..., Any], deterministic: bool, sqlite3_datetimes: bool
) -> NativeFunction: ...
def listen(engine: bool, calls: bool) -> None: ...
def options() -> tuple[list[str], list[str]]: ...
def is_address(path: str) -> bool: ...
def check_types(given: Any) -> None: ...
def refuses_second_copy(path: AnyPath) -> bool: ...
def close_all(wait: Seconds) -> OwnCall[None]: ...
def close_at_exit(open: list[NativeDatabase], error: type[BaseException]) -> None: ...
def check_sql(table: str | None, quick: bool, name: str) -> str: ...
def problems(row: str) -> list[str]: ...
def set_max_open(databases: int) -> None: ...
def tuples(
    rows: Rows,
    first: int,
    end: int,
    text: Callable[[bytes], Any] | None,
    converters: list[Callable[[bytes], Any] | None] | None = None,
) -> list[tuple[Any, ...]]: ...
def converters_of(
    rows: Rows, by_type: Mapping[str, Callable[[bytes], Any]], from_declared: bool, from_name: bool
) -> tuple[tuple[str, ...], list[Callable[[bytes], Any] | None] | None]: ...
def drive(work: Generator[Any, Any, _T]) -> _T: ...
def parameters_of(sql: str) -> list[str]: ...

@final
class Statements:
    """The statements of a script, each with its semicolon, and the white space and comments before it."""

    def __new__(cls, script: str) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> str: ...

@final
class Tokens:
    """The tokens of a text: what each is, the token, and the white space and comments before it."""

    def __new__(cls, sql: str) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[str, str, str]: ...

def turn_is_due() -> bool: ...
def turn_was_given() -> None: ...
def restore_row(
    names: tuple[str, ...],
    values: tuple[Any, ...],
    converters: list[Callable[[bytes], Any] | None] | None = None,
) -> Row: ...
def restore_rows(
    names: tuple[str, ...],
    values: tuple[Any, ...],
    converters: list[Callable[[bytes], Any] | None] | None = None,
) -> Rows: ...
def wait(call: Call[_T], /) -> _T:
    """Blocks this thread until the result is there."""
