"""The blobs of `flatwater.blocking`, which are files to Python.

Owns the file. Leaves out the position (`_blob`).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ._blob import Position

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._native import NativeBlob
    from ._types import Seconds


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

    def __bool__(self) -> bool:
        return True

    def _checkClosed(self) -> None:  # noqa: N802, the name in `io`
        if self.closed:
            raise ValueError("I/O operation on closed file.")
