"""In which `with` blocks a call is made.

Owns what tells the threads of a program apart. Invariants: nothing here keeps a frame; a thread is said to be in a
block only if that is certain. Leaves out what becomes of a call, which the engine decides, and nested transactions,
which the native part knows.
"""

from __future__ import annotations

import inspect
import opcode
import sys
from types import FrameType

# What a `with` statement runs to call `__enter__`: one instruction before Python 3.14, and the two of a method since.
_ENTERS = [opcode.opmap[name] for name in ("SETUP_WITH", "BEFORE_WITH") if name in opcode.opmap]
_ENTERS_AFTER = opcode.opmap.get("LOAD_SPECIAL")


def block() -> int | None:
    """Returns the frame whose `with` statement calls the `__enter__` that asks, by its address: it runs until the block
    has ended, so no other frame has that address before. None if no such statement does, as in an `ExitStack` or where
    one thread enters and another leaves: then the frame that ends the block is unknown.

    A generator may be suspended within its block. If it is one of `contextlib.contextmanager`, the statement that
    entered it is asked for."""
    found = None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if _enters(frame):
            found = id(frame)
            if not frame.f_code.co_flags & inspect.CO_GENERATOR:
                break
        elif frame.f_code.co_name != "__enter__":
            break
        frame = frame.f_back
    return found


def _enters(frame: FrameType) -> bool:
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] in _ENTERS or (at > 1 and code[at - 2] == _ENTERS_AFTER)


def is_running(block: int) -> bool:
    """Returns true if this thread runs the frame, so that its block cannot end before the code that asks."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame) != block:
        frame = frame.f_back
    return frame is not None
