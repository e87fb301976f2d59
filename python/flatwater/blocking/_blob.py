"""The blobs of `flatwater.blocking`, which are files to Python.

Owns the file. Leaves out the position (`flatwater._handles.blob`).
"""

from __future__ import annotations

import io
import operator
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, overload

from .._handles.blob import Position

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .._given.types import Seconds
    from .._native import NativeBlob


class Blob(io.RawIOBase):
    """A BLOB or TEXT of one row as a binary file: `with db.open_blob(table, column, rowid) as blob`. What takes a file
    takes it, such as `shutil.copyfileobj`, and `io.BufferedReader` makes many small reads few.

    Of a database each read is of the newest commit, and each write is a transaction of its own. In a transaction the
    writes are part of it, and in a snapshot all reads are of one point in time. A blob keeps the length that it had
    when it was opened. It holds nothing open, so it need not be closed."""

    def __init__(self, native: NativeBlob, timeout: Seconds | None) -> None:
        self._native = native
        self._timeout = timeout
        self._position = Position(len(native))

    def readable(self) -> bool:
        """True."""
        return True

    def writable(self) -> bool:
        """True, although a write is refused in a snapshot and by a read-only database."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads up to `size` bytes from the position on, or all that follow, and moves it."""
        self._checkClosed()
        at = self._position.at
        data = self._native.read(at, self._position.left(size), self._timeout)._wait()
        self._position.at = at + len(data)
        return data

    def readall(self) -> bytes:
        """Reads all bytes that follow."""
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        """Reads as many bytes as there are into `buffer`, and returns how many."""
        with memoryview(buffer).cast("B") as into:
            data = self.read(into.nbytes)
            into[: len(data)] = data
        return len(data)

    def write(self, data: Buffer, /) -> int:
        """Writes `data` over what is there from the position on, moves it, and returns the number of bytes. Raises if
        it does not fit."""
        self._checkClosed()
        at, size = self._position.at, memoryview(data).nbytes
        self._native.write(at, data, self._timeout)._wait()
        self._position.at = at + size
        return size

    def seek(self, offset: int, origin: int = io.SEEK_SET, /) -> int:
        """Sets the position, and returns it."""
        self._checkClosed()
        return self._position.seek(offset, origin)

    def tell(self) -> int:
        """The position."""
        self._checkClosed()
        return self._position.at

    def __len__(self) -> int:
        return self._position.length

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> bytes: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | bytes:
        """Reads one byte, or those of a slice, as of the `Blob` of `sqlite3`. The position stays."""
        self._checkClosed()
        if not isinstance(key, slice):
            return self._read(self._index(key), 1)[0]
        first, count, step = self._span(key)
        return self._read(first, count)[::step] if count else b""

    def __setitem__(self, key: SupportsIndex | slice, value: SupportsIndex | Buffer) -> None:
        """Writes one byte, or those of a slice: as many as there are. One with a step is read before."""
        self._checkClosed()
        if not isinstance(key, slice):
            if not isinstance(value, int):
                raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")
            at = self._index(key)
            if not 0 <= value <= 255:
                raise ValueError("byte must be in range(0, 256)")
            self._native.write(at, bytes([value]), self._timeout)._wait()
            return
        first, count, step = self._span(key)
        if not count:
            return
        data = bytes(memoryview(value))  # type: ignore[arg-type]
        if len(data) != len(range(0, count, abs(step))):
            raise IndexError("Blob slice assignment is wrong size")
        if abs(step) != 1:
            parts = bytearray(self._read(first, count))
            parts[::step] = data
            data = bytes(parts)
        elif step < 0:
            data = data[::-1]
        self._native.write(first, data, self._timeout)._wait()

    def __delitem__(self, _: object) -> NoReturn:
        raise TypeError("Blob doesn't support item deletion")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError("a blob is not searched: read it, or a part of it")

    def _read(self, at: int, count: int) -> bytes:
        return self._native.read(at, count, self._timeout)._wait()

    def _index(self, key: SupportsIndex) -> int:
        try:
            at = operator.index(key)
        except TypeError:
            raise TypeError("Blob indices must be integers") from None
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError("Blob index out of range")
        return at

    def _span(self, key: slice) -> tuple[int, int, int]:
        """Returns where the bytes of a slice begin, how many there are up to the last one, and the step."""
        chosen = range(*key.indices(len(self)))
        if not chosen:
            return 0, 0, chosen.step
        first, last = sorted((chosen[0], chosen[-1]))
        return first, last - first + 1, chosen.step

    def __bool__(self) -> bool:
        return True

    def _checkClosed(self) -> None:  # noqa: N802, the name in `io`
        if self.closed:
            raise ValueError("I/O operation on closed file.")
