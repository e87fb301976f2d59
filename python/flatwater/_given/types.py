"""Types of arguments."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union

from .._sql import Sql

if TYPE_CHECKING:
    from .functions import Functions

if sys.version_info >= (3, 14):
    from string.templatelib import Template

    SqlLike = Union[str, Sql, Template]
else:
    SqlLike = Union[str, Sql]
"""A statement: a text, an `Sql`, or from Python 3.14 on a t-string."""


class Values(Protocol):
    """Values in order: a tuple, a list, a `Row` or another sequence, but no str and no bytes, which are one value."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: int, /) -> Any: ...
    # Here a str accepts only str, and bytes only bytes and numbers.
    def __contains__(self, value: object, /) -> bool: ...
    def count(self, value: Any, /) -> int: ...


Params = Union[Values, Mapping[str, Any], None]
"""The parameters of a statement: values in order, or values by name."""


class TableLike(Protocol):
    """A table of Arrow: a DataFrame of pandas or polars, a table or a reader of pyarrow, `Columns`."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class BatchLike(Protocol):
    """A record batch of Arrow."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


ManyParams = Union[Iterable[Params], TableLike, BatchLike]
"""Rows of parameters: any iterable of them, or a table of Arrow, whose columns are the parameters."""

Seconds = Union[float, datetime.timedelta]
"""A time: a number of seconds, or a `timedelta`."""

AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


TypeWord = Literal[
    "boolean",
    "date",
    "time",
    "datetime",
    "json",
    "uuid",
    "decimal",
    "unix_seconds",
    "unix_milliseconds",
    "julian_day",
    "stored",
]
"""What the values of a column mean: "stored" is what SQLite stores."""

Types = Union[Literal["standard", "stored"], Mapping[str, TypeWord]]
"""What the values of columns mean: what their declared types say, with other words for columns by name, or for those of
a table: `{"total": "decimal", "events.at": "unix_seconds"}`."""


class Tuning(TypedDict, total=False):
    """The options of `connect` that most programs leave as they are: `connect(path, tuning={"queue": 100})`."""

    attach: Mapping[str, AnyPath]
    """Other database files, by the name that they have in SQL. Default: none."""
    auto_vacuum: Literal["none", "full", "incremental"]
    """Whether a file that is created gives the space of deleted rows back. Default "none"."""
    close_wait: Seconds
    """How long `close` waits for what was begun before. Default 5 s."""
    deserialize: bytes | bytearray
    """The content of a database in memory: what `serialize` returned, or the bytes of a database file. Default:
    none."""
    double_quoted_strings: bool
    """Takes a name in double quotes for a text if there is no column of that name, as SQLite does by itself. Default
    off: a misspelt column is an error. Views and triggers of the file that have such texts need it."""
    extra_readers: int
    """How many streams and snapshots may be open at a time. Default 8."""
    fairness: Literal["auto", "off"]
    """Whether processes that write take turns in the order in which they came (the file `<db>-turn`), or only poll for
    the lock. Default "auto"."""
    group: bool
    """Commits writes that arrive together in one transaction. Each keeps its own result. Default on."""
    assume_immutable: bool
    """Asserts that no process changes the file. Default off."""
    inline: bool
    """Runs statements that are known to be short in the await itself. Default on."""
    memory_limit: int
    """A statement ends if SQLite takes more than so many bytes of memory for it, and with it a transaction or a
    snapshot. Default: no limit; 128 MiB for a file that is `untrusted`."""
    mmap_bytes: int
    """How much of the file is mapped into memory. Default 0."""
    allow_network_filesystem: bool
    """Allows a file on a network file system, which only one machine may use. Default off."""
    observe: bool
    """Shows the figures of the database to `flatwater top`, in the file `<db>-observe-RANDOM`. On Unix systems. Default
    off."""
    page_size: int
    """The page size of a file that is created: a power of two from 512 to 65,536. Default 4,096."""
    queue: int
    """How many requests may wait before callers wait for a place. Default 1,024."""
    read_limit: Seconds
    """How long a read may keep the WAL from starting over. Default: no limit."""
    reader_cache_bytes: int
    """The page cache of each reader. Default 4 MiB."""
    result_limit: int
    """A statement ends if its result takes more than so many bytes; of a stream this counts for each fetch. Default: no
    limit; 64 MiB for a file that is `untrusted`."""
    allow_second_sqlite: bool
    """Another SQLite library of this process, such as that of the `sqlite3` module, may have the file open. When it
    closes it, acknowledged writes can be lost. Default False."""
    snapshot_age: Seconds
    """How long a snapshot may be open. Default 300 s."""
    statement_cache: int
    """How many compiled statements each connection keeps. Default 128."""
    step_limit: int
    """A statement ends after so many steps of SQLite's virtual machine. Default: no limit; 1,000,000,000 for a file
    that is `untrusted`."""
    stream_idle: Seconds
    """How long a stream may go unused. Default 30 s."""
    temp_store: Literal["auto", "file", "memory"]
    """Where temporary data is kept. Default "auto"."""
    transaction_idle: Seconds
    """How long a transaction may go unused before it is rolled back. Default 30 s."""
    untrusted: bool
    """For a file that a stranger may have made: it is opened for reading unless `read_only=False`, its schema runs no
    function that may have effects, and its sizes have low limits. Default off."""
    vfs: str
    """The VFS to open the file with. Default: SQLite's."""
    wal_limit_bytes: int
    """The WAL starts over before it grows beyond this. Default 32 MiB."""
    writer_cache_bytes: int
    """The page cache of the writer. Default 16 MiB."""


class Options(TypedDict, total=False):
    """How to open a database: the keywords of `connect`. Every option has a default."""

    busy_timeout: Seconds
    """How long a call waits for a lock that another process holds. Default 30 s."""
    converters: Mapping[str, Callable[[bytes], Any]]
    """What makes the values of columns, by the name of a type in any case: a function that is called with the bytes of
    a value. A column has the type that ends its name, as in `AS "at [timestamp]"`, or the first word of its declared
    type. Default: none."""
    checkpoint: Literal["managed", "external"]
    """Whether Flatwater keeps the WAL short, or another program. Litestream needs no option. Default "managed"."""
    create: bool
    """Creates the file if it does not exist. Default on."""
    datetimes: Literal["utc", "sqlite3"]
    """In which form datetimes are stored: with a time zone in UTC, or with its offset, as the `sqlite3` module stores
    them. Default "utc"."""
    durability: Literal["normal", "full"]
    """What an acknowledged write survives: the end of the process, or also a power failure. Default "normal"."""
    foreign_keys: bool
    """Enforces foreign keys. Default on."""
    journal: Literal["wal", "keep"]
    """Switches the file to WAL, or keeps the mode that it has. Default "wal"."""
    key: str | bytes
    """The key of an encrypted file: a passphrase, or the 32 bytes of the key itself. It needs the package
    `flatwater-sqlcipher`. Default: the file is not encrypted."""
    load_extension: AnyPath | tuple[AnyPath, str] | list[AnyPath | tuple[AnyPath, str]]
    """An extension of SQLite, or a list of them, that each connection loads: its path, or its path and entry point.
    Default: none."""
    migrations: Iterable[tuple[str, str]] | AnyPath
    """Migrations to apply before the database is open: see `Database.migrate`. Default: none."""
    functions: Callable[[Functions], object]
    """Called by `connect`, before anything is opened, with what creates SQL functions and collations. The database has
    them when its migrations run. Default: none."""
    on_open: str | list[str]
    """SQL that runs on every connection right after it was opened. Default: none."""
    optimize_every: Seconds | Literal[False]
    """How often the statistics of SQLite's query planner are brought up to date, and when the database is closed.
    False: never. Default: once a day."""
    read_only: bool
    """Opens the database for reading. Default off."""
    readers: int
    """How many reads run at the same time. Default: as many as there are cores, from 2 to 8."""
    slow_statement: Seconds
    """How long a call takes that is logged as slow. Default: no call is slow."""
    timeout: Seconds
    """The deadline of every call that has none of its own. Default: none."""
    types: Types
    """What the values of columns mean. "standard": columns that were declared BOOLEAN, DATE, TIME, DATETIME, TIMESTAMP,
    JSON, UUID, DECIMAL or NUMERIC have values of Python's types for it, a moment is in UTC, and a dict, a list and a
    `Decimal` can be bound. A dict is the same with other types for some columns. Default "stored"."""
    tuning: Tuning
    """Options that most programs leave as they are: see `Tuning`. Default: none is set."""
