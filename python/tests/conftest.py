"""What all tests share: coroutines as tests, and places for databases, which are checked afterwards."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sqlite3
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
from servers import SQLD, Cluster, Sqld

import flatwater

# How long a machine with other work takes decides nothing.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

SECONDS = int(os.environ.get("FLATWATER_TEST_SECONDS", "300"))


class Sum:
    """Sums, as an aggregate and in windows."""

    def __init__(self) -> None:
        self.sum = 0

    def step(self, value: int) -> None:
        self.sum += value

    def inverse(self, value: int) -> None:
        self.sum -= value

    def value(self) -> int:
        return self.sum

    finalize = value


class Unwatching(asyncio.SelectorEventLoop):
    """A loop that watches no sockets for programs, as Windows' default one."""

    def add_reader(self, *_: object) -> NoReturn:
        raise NotImplementedError


def pytest_addoption(parser: pytest.Parser) -> None:
    loops = ["asyncio", "uvloop", "unwatching"]
    parser.addoption("--loop", default="asyncio", choices=loops, help="the event loop of the tests")


def pytest_configure() -> None:
    """Lets tests and their programs be interrupted: what was started in the background may ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(config: pytest.Config, test: Coroutine[object, object, None]) -> None:
    """Runs a coroutine in a new loop of the kind that was asked for."""
    kind = config.getoption("--loop")
    if kind == "asyncio":
        asyncio.run(asyncio.wait_for(test, SECONDS))
        return
    if kind == "uvloop":
        import uvloop
    event_loop = uvloop.new_event_loop() if kind == "uvloop" else Unwatching()
    try:
        event_loop.run_until_complete(asyncio.wait_for(test, SECONDS))
    finally:
        event_loop.run_until_complete(event_loop.shutdown_asyncgens())
        event_loop.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run(pyfuncitem.config, pyfuncitem.obj(**arguments))
    return True


def plain_connection(path: Path) -> sqlite3.Connection:
    """Opens a file with plain SQLite as soon as it is closed: one that was dropped open is closed in the background,
    and refused until then."""
    give_up_at = time.monotonic() + SECONDS
    while True:
        try:
            return sqlite3.connect(path)
        except flatwater.ProgrammingError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.001)


def check(path: Path) -> None:
    """Checks a file with plain SQLite, when it is closed."""
    if path.exists():
        plain = plain_connection(path)
        try:
            assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert plain.execute("PRAGMA foreign_key_check").fetchall() == []
        finally:
            plain.close()


class OtherTask:
    """Another task of the loop, which counts the turns that it gets."""

    def __init__(self) -> None:
        self.turns = 0

    async def _take_turns(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    async def __aenter__(self) -> OtherTask:
        self._task = asyncio.create_task(self._take_turns())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()


@pytest.fixture
def other_task() -> type[OtherTask]:
    """Another task beside the calls of a test: `async with other_task() as other`."""
    return OtherTask


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "test.db"
    yield path
    check(path)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """The stand-in for an rqlite cluster."""
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def sqld() -> Iterator[str]:
    """A libSQL server, by its address."""
    if SQLD is None:
        pytest.skip("needs SQLD=/path/to/sqld")
    server = Sqld()
    yield server.address
    server.close()


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database file, and memory."""
    if request.param == "memory":
        yield ":memory:"
        return
    path = tmp_path / "test.db"
    yield str(path)
    check(path)
