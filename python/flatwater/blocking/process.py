"""What concerns all databases of this process, for `flatwater.blocking`: calls that wait for their result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from ..process import set_max_open

if TYPE_CHECKING:
    from .._given.types import Seconds

__all__ = ["close_all", "set_max_open"]


def close_all(wait: Seconds) -> None:
    """As `flatwater.process.close_all`, and waits for that."""
    _native.close_all(wait)._wait()
