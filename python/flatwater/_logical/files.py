"""The databases of logical connections: which file a name means, and with which options it is open.

Owns the options of each file that is open, which are those of the first connection, and the databases in memory that
have a name. Invariant: a note is as old as the oldest connection that is open. Leaves out running anything.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from .. import _logging, _native
from .._database import Opened
from .._errors import make
from .._native import Executor
from .steps import Steps

# A transaction of an interactive program may wait for its user.
IDLE = 300.0
BUSY = 30.0

# Copies a database into one of `sqlite3`.
Copy = Callable[[sqlite3.Connection], None]


@dataclass
class Settings:
    """What a logical connection is opened with."""

    path: str
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
class _Use:
    options: dict[str, Any]
    connections: int = 0
    # Of a database in memory with a name: all its connections have this one.
    handle: Handle | None = None


_lock = Lock()
_uses: dict[str, _Use] = {}


class Place:
    """Where a connection's database is."""

    __slots__ = ("_content", "_key", "_use", "handle", "options", "path")

    def __init__(self, settings: Settings, uri: bool) -> None:
        self.path, name = _path(settings.path, uri)
        self._key = f"memory {name}" if name else os.path.realpath(_file(self.path))
        is_private = self.path == ":memory:" and not name
        options = {"foreign_keys": settings.foreign_keys, "transaction_idle": IDLE, **settings.options}
        options.setdefault("busy_timeout", max(settings.timeout, BUSY))
        self._use = _Use(options)
        self.handle: Handle | None = None
        # Of a database in memory, if another was copied into it.
        self._content: bytes | None = None
        with _lock:
            if not is_private:
                self._use = _uses.setdefault(self._key, self._use)
            self._use.connections += 1
            if name and self._use.handle is None:
                # Which takes no time, and no other thread may make it meanwhile.
                self._use.handle = Handle(_native.connect(":memory:", options.copy())._wait(), self.path)  # type: ignore[arg-type]
        self.options = self._use.options

    def open(self) -> Steps[Handle]:
        """Opens the database."""
        if self._use.handle is not None:
            self.handle = self._use.handle
            return self.handle
        _logging.listen()
        options = self.options if self._content is None else {**self.options, "deserialize": self._content}
        native = yield _native.connect(self.path, options.copy())  # type: ignore[arg-type]
        self.handle = Handle(native, self.path)
        return self.handle

    def replace(self, handle: Handle, copy: Copy, in_thread: Callable[[Any], Any]) -> Steps[None]:
        """Closes the handle, lets the `sqlite3` module write the database, and opens it again."""
        with _lock:
            if self._use.connections > 1:
                raise make("OperationalError", "target is in use by another connection of this process", "busy")
        yield handle._begin_close()
        try:
            if self.path == ":memory:":
                self._content = yield in_thread(lambda: _written(copy))
            else:
                yield in_thread(lambda: _write(self.path, copy))
        finally:
            yield from self.open()

    def close(self) -> Steps[None]:
        """Closes it, unless another connection has the same database in memory."""
        handle = self.leave()
        if handle is not None:
            yield handle._begin_close()

    def leave(self) -> Handle | None:
        """Gives the place up. Returns what is to be closed, which closes in the background if it is dropped."""
        handle, self.handle = self.handle, None
        with _lock:
            self._use.connections -= 1
            if self._use.connections:
                return None if self._use.handle is not None else handle
            if _uses.get(self._key) is self._use:
                del _uses[self._key]
        return handle


def _write(path: str, copy: Copy) -> None:
    into = sqlite3.connect(path, uri=path.startswith("file:"))
    try:
        copy(into)
    finally:
        into.close()


def _written(copy: Copy) -> bytes:
    with TemporaryDirectory(prefix="flatwater-") as folder:
        file = Path(folder, "memory.db")
        _write(str(file), copy)
        return file.read_bytes()


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


def _file(path: str) -> str:
    return unquote(path.removeprefix("file:").partition("?")[0]) if path.startswith("file:") else path
