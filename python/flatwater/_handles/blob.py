"""Large values that are read and written in parts.

Owns the position in the value. Invariant: a blob holds no connection and no snapshot between two calls. Leaves out
using the value, which the native side does.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._errors import misuse

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from .._given.types import Seconds
    from .._native import Executor, NativeBlob


class Position:
    """Where in a value of so many bytes the next read or write begins."""

    __slots__ = ("at", "length")

    def __init__(self, length: int) -> None:
        self.at = 0
        self.length = length

    def seek(self, offset: int, origin: int) -> int:
        """Moves, and returns the new position."""
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}
        if origin not in starts:
            raise ValueError("the origin is 0, 1 or 2: os.SEEK_SET, os.SEEK_CUR or os.SEEK_END")
        at = starts[origin] + offset
        if not 0 <= at <= self.length:
            raise ValueError(f"the position is not in the blob, which has {self.length} bytes")
        self.at = at
        return at

    def left(self, size: int | None) -> int:
        """So many bytes are read if `size` are asked for."""
        left = self.length - self.at
        return left if size is None or size < 0 else min(size, left)


class Blob:
    """A BLOB or TEXT of one row, of which parts are read and written: `async with db.open_blob(table, column, rowid) as
    blob`, or `blob = await db.open_blob(...)`.

    Of a database each read is of the newest commit, and each write is a transaction of its own. In a transaction the
    writes are part of it, and in a snapshot all reads are of one point in time. A blob keeps the length that it had
    when it was opened. It holds nothing open, so it need not be closed."""

    __slots__ = ("_native", "_opening", "_position", "_timeout")

    def __init__(
        self, on: Executor[Any, Any], table: str, column: str, rowid: int, name: str, timeout: Seconds | None
    ) -> None:
        self._opening = (on, table, column, rowid, name)
        self._timeout = timeout
        self._native: NativeBlob | None = None
        self._position = Position(0)

    def __await__(self) -> Generator[Any, None, Self]:
        on, table, column, rowid, name = self._opening
        native: NativeBlob = yield from on._open_blob(table, column, rowid, name, self._timeout).__await__()
        self._native, self._position = native, Position(len(native))
        return self

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def read(self, size: int = -1, *, timeout: Seconds | None = None) -> bytes:
        """Reads up to `size` bytes from the position on, or all that follow, and moves it. If it is cancelled, the
        position stays."""
        at = self._position.at
        data = await self._open().read(at, self._position.left(size), self._timeout if timeout is None else timeout)
        self._position.at = at + len(data)
        return data

    async def write(self, data: Buffer, *, timeout: Seconds | None = None) -> int:
        """Writes `data` over what is there from the position on, moves it, and returns the number of bytes. Raises if
        it does not fit. If it is cancelled, the position stays."""
        at, size = self._position.at, memoryview(data).nbytes
        await self._open().write(at, data, self._timeout if timeout is None else timeout)
        self._position.at = at + size
        return size

    def seek(self, offset: int, origin: int = io.SEEK_SET, /) -> int:
        """Sets the position, and returns it. It waits for nothing."""
        self._open()
        return self._position.seek(offset, origin)

    def tell(self) -> int:
        """The position."""
        self._open()
        return self._position.at

    def __len__(self) -> int:
        self._open()
        return self._position.length

    def __bool__(self) -> bool:
        return True

    def close(self) -> None:
        """Later calls raise. There is nothing that must be freed."""
        self._native = None

    def _open(self) -> NativeBlob:
        if self._native is None:
            raise misuse(
                "the blob is not open",
                "use `async with db.open_blob(...) as blob`, and it within the block",
                "finished",
            )
        return self._native

    def __repr__(self) -> str:
        return f"<flatwater.Blob of {self._opening[1]!r}, {self._opening[2]!r}>"
