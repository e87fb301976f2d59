"""The databases of logical connections: which file a name means, and how it is opened.

Owns the databases in memory that have a name. Invariant: such a database is there as long as one of its connections is
open. Leaves out running anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from .. import _native
from .._errors import make
from .._given.functions import collect
from .._handles.database import Opened
from .._native import Executor
from .._told import logging as _logging
from .steps import Steps

# A transaction of an interactive program may wait for its user.
IDLE = 300.0
BUSY = 30.0
# What modules set by themselves, and what a server has in its own way.
_OF_FILES = ("double_quoted_strings",)


def with_tuning(options: dict[str, Any], **own: Any) -> dict[str, Any]:
    """The options, with these keys of `tuning` where they are not given. `connect` refuses one that is no mapping."""
    given = options.get("tuning")
    is_mapping = given is None or isinstance(given, Mapping)
    return {**options, "tuning": {**own, **(given or {})}} if is_mapping else options


def _of_server(options: dict[str, Any]) -> dict[str, Any]:
    given = options.get("tuning")
    if not isinstance(given, Mapping):
        return options
    tuning = {key: given[key] for key in given if key not in _OF_FILES}
    return {**options, "tuning": tuning or None}


@dataclass
class Settings:
    """What a logical connection is opened with."""

    # An address may have a secret.
    path: str = field(repr=False)
    timeout: float = 5.0
    detect_types: int = 0
    isolation_level: str | None = ""
    foreign_keys: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class Handle(Opened):
    """One handle of an open file, or of a database in memory."""

    def __init__(self, native: _native.NativeDatabase, path: str) -> None:
        self.on = Executor()
        super().__init__(native, path, self.on)


@dataclass
class _Named:
    """A database in memory that has a name: all its connections have this handle."""

    handle: Handle
    connections: int = 0


_lock = Lock()
_named: dict[str, _Named] = {}


class Place:
    """Where a connection's database is."""

    __slots__ = ("_content", "_name", "handle", "options", "path")

    def __init__(self, settings: Settings, uri: bool) -> None:
        self.path, self._name = _path(settings.path, uri)
        if _native.is_address(self.path):
            # A server has its own settings, and the rest are in the address.
            self.options: Any = _of_server(settings.options)
        else:
            # The `sqlite3` module takes texts in double quotes, and writes nothing that is not asked for.
            own = {"optimize_every": False, "foreign_keys": settings.foreign_keys}
            self.options = with_tuning({**own, **settings.options}, transaction_idle=IDLE, double_quoted_strings=True)
            self.options.setdefault("busy_timeout", max(settings.timeout, BUSY))
        self.handle: Handle | None = None
        # Of a database in memory, if another was copied into it.
        self._content: bytes | None = None

    def open(self) -> Steps[Handle]:
        """Opens the database. If this process has the file open already, the options are those of the first."""
        if self._name:
            handle = self._join()
        else:
            _logging.listen()
            options = self.options if self._content is None else with_tuning(self.options, deserialize=self._content)
            native = yield _connect(self.path, options, joins=True)
            handle = Handle(native, native.name(self.path))
        self.handle = handle
        return handle

    def _join(self) -> Handle:
        with _lock:
            named = _named.get(self._name)
            if named is None:
                # Which takes no time, and no other thread may make it meanwhile.
                native = _connect(":memory:", self.options)._wait()
                named = _named[self._name] = _Named(Handle(native, self._name))
            named.connections += 1
            return named.handle

    def check_target(self) -> None:
        """Raises if a copy cannot replace the content."""
        if self._name:
            raise make("OperationalError", "a database in memory with a name is no target of a copy", "misuse")

    def write(self, file: Path) -> None:
        """Replaces the content, which nobody has open, by that of a file. Blocks this thread."""
        if self.path == ":memory:":
            self._content = file.read_bytes()
        else:
            with closing(sqlite3.connect(file)) as copy, closing(_plain(self.path)) as into:
                copy.backup(into)

    def close(self) -> Steps[None]:
        """Closes it, unless another connection has the same database in memory."""
        handle = self.leave()
        if handle is not None:
            yield handle._begin_close()

    def leave(self) -> Handle | None:
        """Gives the place up. Returns what is to be closed, which closes in the background if it is dropped."""
        handle, self.handle = self.handle, None
        if self._name and handle is not None:
            with _lock:
                named = _named[self._name]
                named.connections -= 1
                if named.connections:
                    return None
                del _named[self._name]
        return handle


def _connect(path: str, options: Any, joins: bool = False) -> _native.OwnCall[_native.NativeDatabase]:
    options = options.copy()
    functions = collect(options, as_sqlite3=True)
    return _native.connect(path, options, functions, joins=joins)


def _plain(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, uri=path.startswith("file:"))


def _path(path: str, uri: bool) -> tuple[str, str]:
    """Returns the path for the engine, and the name of a database in memory that has one."""
    if path == "":
        return ":memory:", ""
    if not path.startswith("file:"):
        return path, ""
    if not uri:
        # It is the name of a file.
        return f"./{path}", ""
    file, _, query = path.partition("?")
    keys = dict(parse_qsl(query, keep_blank_values=True))
    is_shared = keys.pop("cache", "") == "shared"
    name = unquote(file.removeprefix("file:"))
    if name == ":memory:" or keys.get("mode") == "memory":
        return ":memory:", name if is_shared else ""
    return file + ("?" + urlencode(keys) if keys else ""), ""
