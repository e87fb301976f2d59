"""The `sqlite3` module beside this package.

It has its own SQLite. When that closes a file, the system releases all locks that the process has on it, including
those of transactions that run here. Owns the refusal to open a file that is open here.
"""

from __future__ import annotations

import os
import re
from typing import Any

from .. import _native
from .._errors import misuse


def opens(database: Any) -> None:
    """Called by the interpreter before the `sqlite3` module opens a file, which raises the exception of this
    function."""
    try:
        path = os.fsdecode(database)
    except TypeError:
        # It is no path, as the module will say itself.
        return
    if path.startswith("file:"):
        path = _path_of(path)
    if _native.refuses_second_copy(path):
        message = f"{path} is open in this process, and the sqlite3 module is another SQLite library: it would release"
        hint = "use `flatwater.blocking`, another process, or close it; `tuning=` key `allow_second_sqlite` allows both"
        raise misuse(f"{message} the locks", hint, "second_sqlite")


def _path_of(uri: str) -> str:
    """The path in `file:path?query#fragment`, or in `file://authority/path`."""
    path = re.split("[?#]", uri[5:], maxsplit=1)[0]
    if path.startswith("//"):
        path = "".join(path[2:].partition("/")[1:])
    return os.fsdecode(
        re.sub(rb"%([0-9A-Fa-f]{2})", lambda escape: bytes.fromhex(escape[1].decode()), os.fsencode(path))
    )
