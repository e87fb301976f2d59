"""Times that are left of a deadline, for what is done by several calls.

Owns the clock.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._given.types import Seconds


def deadline(timeout: Seconds | None) -> Callable[[], Seconds | None]:
    """Returns what returns how much of a timeout is left. What is no time is left to the call, which refuses it."""
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if not isinstance(seconds, (int, float)) or seconds < 0:
        return lambda: timeout
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), 0)
