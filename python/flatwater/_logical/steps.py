"""Work that is the same whether it is awaited or waited for: generators that yield what has to be waited for.

Owns how such work is driven. A step has `__await__` for a task and `_wait` for a thread, as the calls of the native
part have. Invariant: an error of Flatwater leaves a driver with the text of `sqlite3`. Leaves out the work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Protocol, TypeVar

from .._errors import Error
from .._native import drive, turn_is_due
from .._waiting.pause import Pause
from .errors import as_of_sqlite3, interrupted

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Step(Awaitable[T_co], Protocol[T_co]):
    """Something to wait for."""

    def _wait(self) -> T_co: ...


# What is yielded is a `Step`; what is sent is its result.
Steps = Generator[Any, Any, T]


async def awaited(steps: Steps[T]) -> T:
    """Does the work, and awaits its steps. A loop of work without steps lets other tasks run too."""
    given: Any = None
    step: Any = None
    resume: Any = steps.send
    try:
        while True:
            step = resume(given)
            try:
                given = await step
                resume = steps.send
            except BaseException as error:
                given, resume = error, steps.throw
    except StopIteration as done:
        result: T = done.value
        return result
    except Error as error:
        raise as_of_sqlite3(error)
    finally:
        # An error refers to this frame.
        given = None
        if step is None and turn_is_due():
            await Pause()


def waited(steps: Steps[T]) -> T:
    """Does the work, and blocks this thread for its steps. The native part resumes it: an exception that comes between
    two instructions, from the handler of a signal, comes in the work or after it."""
    try:
        return drive(steps)
    except Error as error:
        raise as_of_sqlite3(error)


class Running(Step[T]):
    """A call of the engine that may be interrupted."""

    __slots__ = ("_call", "_future", "_is_interrupted", "_of")

    def __init__(self, call: Any, of: set[Any]) -> None:
        self._call = call
        # The calls of the connection that run.
        self._of = of
        self._future: Any = None
        self._is_interrupted = False

    def __await__(self) -> Generator[Any, Any, T]:
        result: T
        call = self._call
        try:
            self._future = call.send(None)
        except StopIteration as done:
            result = done.value
            return result
        cancelled: BaseException | None = None
        error: BaseException | None = None
        try:
            self._of.add(self)
            while True:
                error = None
                try:
                    yield self._future
                except GeneratorExit:
                    call.close()
                    raise
                except BaseException as thrown:
                    error = thrown
                if self._is_interrupted and cancelled is None:
                    error = cancelled = interrupted()
                elif error is not None:
                    error = self._cancelled(error)
                self._future = call.send(None) if error is None else call.throw(error)
        except StopIteration as done:
            result = done.value
            self._check()
            return result
        finally:
            self._of.discard(self)
            self._future = cancelled = error = None

    def _cancelled(self, error: BaseException) -> BaseException | None:
        """The task is cancelled. Returns what the call learns of it."""
        return error

    def _check(self) -> None:
        """The call has its result."""

    def interrupt(self) -> None:
        """Interrupts it. May be called on any thread."""
        self._is_interrupted = True
        future = self._future
        if future is not None:
            future.get_loop().call_soon_threadsafe(future.cancel)

    def _wait(self) -> T:
        try:
            self._of.add(self)
            result: T = self._call._wait_unless(self._raise_if_interrupted)
            return result
        finally:
            self._of.discard(self)

    def _raise_if_interrupted(self) -> None:
        if self._is_interrupted:
            raise interrupted()


class Whole(Running[T]):
    """A call that goes on to its end, also if its task is cancelled meanwhile: the task learns of it then."""

    __slots__ = ("_error",)

    def __init__(self, call: Any, of: set[Any] | None = None) -> None:
        super().__init__(call, set() if of is None else of)
        self._error: BaseException | None = None

    def _cancelled(self, error: BaseException) -> BaseException | None:
        # The future is over, so the call goes on with another one.
        self._error = error
        return None

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
