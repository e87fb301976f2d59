"""The turn of other tasks, in loops over what is there at once.

Owns when it is due, and the step that gives it. Invariant: the engine's calls count too, so that a loop of both
gives one turn.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .._native import turn_is_due, turn_was_given

# The clock is read once per so many rows.
ROWS = 64


def is_due(number: int) -> bool:
    """Returns true if other tasks are to have their turn before this item."""
    return number % ROWS == 0 and turn_is_due()


class Pause:
    """Other tasks get their turn."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        yield
        turn_was_given()

    def _wait(self) -> None:
        turn_was_given()
