"""Whether a thread waits for a transaction of its own: blocks that one thread enters and another leaves, as those of
web frameworks, and blocks that cannot end before the call."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from conftest import SECONDS

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"
WAITS = "inside its own transaction"


@pytest.fixture
def db(place: str) -> Iterator[blocking.Database]:
    with blocking.connect(place, tuning={"transaction_idle": 3600}) as db:
        db.execute("CREATE TABLE t (a)")
        yield db


@pytest.fixture
def threads() -> Iterator[list[ThreadPoolExecutor]]:
    """Three threads, each of which does one thing after the other."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]


def waits(db: blocking.Database, call: Future[Any], number: int = 1) -> None:
    """Returns when the call waits for the writer."""
    while db.stats()["writes_waiting"] < number:
        assert not call.done(), call.result()


def rows(db: blocking.Database) -> list[int]:
    return sorted(db.query_values("SELECT a FROM t"))


def test_a_block_that_one_thread_enters_and_another_leaves_belongs_to_neither(db, threads):
    first, second, _ = threads
    for n in range(10):
        block = db.transaction()
        tx = first.submit(block.__enter__).result(SECONDS)
        # The thread has other work now, and its write waits for the block.
        write = first.submit(db.execute, INSERT, (2 * n,))
        waits(db, write)
        second.submit(tx.execute, INSERT, (2 * n + 1,)).result(SECONDS)
        second.submit(block.__exit__, None, None, None).result(SECONDS)
        write.result(SECONDS)
        for thread in threads:
            with_transaction = thread.submit(lambda: write_in_block(db, 100 + n))
            with_transaction.result(SECONDS)
    assert rows(db) == sorted([*range(20), *(100 + n for n in range(10) for _ in threads)])


def write_in_block(db: blocking.Database, n: int) -> None:
    with db.transaction() as tx:
        tx.execute(INSERT, (n,))


def test_a_block_that_waits_for_another_ones_end_has_a_deadline(db, threads):
    block = db.transaction()
    threads[0].submit(block.__enter__).result(SECONDS)
    with pytest.raises(flatwater.Timeout):
        threads[0].submit(db.execute, INSERT, (1,), timeout=0.05).result(SECONDS)
    with pytest.raises(flatwater.Timeout):
        threads[0].submit(db.transaction(timeout=0.05).__enter__).result(SECONDS)
    threads[1].submit(block.__exit__, None, None, None).result(SECONDS)
    threads[0].submit(db.execute, INSERT, (2,)).result(SECONDS)
    assert rows(db) == [2]


def test_a_block_that_is_dropped_ends_and_belongs_to_no_thread(db, threads):
    for thread in threads:
        block = [db.transaction()]
        thread.submit(block[0].__enter__).result(SECONDS)
        block.clear()
        thread.submit(db.execute, INSERT, (1,)).result(SECONDS)
    assert rows(db) == [1, 1, 1]


def test_the_transaction_that_the_idle_limit_or_a_failure_has_ended_belongs_to_no_thread(place):
    with blocking.connect(place, tuning={"transaction_idle": 0.05}) as db:
        db.executescript("CREATE TABLE t (a); CREATE TABLE one (a UNIQUE)")
        with db.transaction() as tx:
            while tx.in_transaction:
                pass
            db.execute(INSERT, (1,))
            tx.rollback()
    with blocking.connect(":memory:") as db:
        db.executescript("CREATE TABLE t (a); CREATE TABLE one (a UNIQUE)")
        with db.transaction() as tx:
            with pytest.raises(flatwater.IntegrityError):
                tx.execute("INSERT OR ROLLBACK INTO one VALUES (1), (1)")
            db.execute(INSERT, (1,))
            tx.rollback()
        assert rows(db) == [1]


class UnitOfWork:
    def __init__(self, db: blocking.Database) -> None:
        self._block = db.transaction()

    def __enter__(self) -> blocking.Transaction:
        return self._block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._block.__exit__(*exception)


@contextlib.contextmanager
def unit_of_work(db: blocking.Database) -> Iterator[blocking.Transaction]:
    with db.transaction() as tx:
        yield tx


@contextlib.contextmanager
def unit_of_units(db: blocking.Database) -> Iterator[blocking.Transaction]:
    with unit_of_work(db) as tx:
        yield tx


@pytest.mark.parametrize("block", [blocking.Database.transaction, unit_of_work, unit_of_units, UnitOfWork])
def test_a_call_inside_of_a_block_that_cannot_end_before_it_is_refused(db, block: Callable[[Any], Any]):
    def helper() -> None:
        db.execute(INSERT, (1,))

    with block(db) as tx:
        tx.execute(INSERT, (2,))
        with pytest.raises(flatwater.ProgrammingError, match=WAITS):
            helper()
        with pytest.raises(flatwater.ProgrammingError, match=WAITS), db.transaction():
            pass
        with tx.transaction() as nested:
            nested.execute(INSERT, (3,))
            with pytest.raises(flatwater.ProgrammingError, match=WAITS):
                helper()
        with pytest.raises(flatwater.ProgrammingError, match=WAITS):
            helper()
    helper()
    assert rows(db) == [1, 2, 3]


def test_a_generator_waits_for_itself_while_it_runs_and_not_while_it_is_suspended(db, threads):
    def dependency() -> Iterator[blocking.Transaction]:
        with db.transaction() as tx:
            yield tx
            with pytest.raises(flatwater.ProgrammingError, match=WAITS):
                db.execute(INSERT, (1,))

    first, second, _ = threads
    generator = dependency()
    tx = first.submit(next, generator).result(SECONDS)
    write = first.submit(db.execute, INSERT, (2,))
    waits(db, write)
    second.submit(tx.execute, INSERT, (3,)).result(SECONDS)
    second.submit(list, generator).result(SECONDS)
    write.result(SECONDS)
    assert rows(db) == [2, 3]


def test_a_thread_with_the_number_of_one_that_has_ended_writes(db):
    numbers = set()
    for n in range(20):
        block = [db.transaction()]
        thread = threading.Thread(target=block[0].__enter__)
        thread.start()
        numbers.add(thread.ident)
        thread.join()
        another = threading.Thread(target=db.execute, args=(INSERT, (n,)))
        another.start()
        while db.stats()["writes_waiting"] == 0:
            assert another.is_alive()
        block[0].__exit__(None, None, None)
        another.join()
    assert rows(db) == list(range(20))


async def ask(app: Any, method: str, path: str) -> int:
    """Sends one request to an ASGI application. Returns the status."""
    status = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "root_path": "",
        "scheme": "http",
        "server": ("test", 80),
        "client": ("test", 1),
    }
    await app(scope, receive, send)
    return status[0]


def test_sync_dependencies_of_fastapi_give_each_request_its_transaction(db):
    """A route and its dependencies that are no coroutines run on threads, each on any of them."""
    fastapi = pytest.importorskip("fastapi")

    def transaction() -> Iterator[blocking.Transaction]:
        with db.transaction() as tx:
            yield tx

    def step(tx=fastapi.Depends(transaction)) -> Iterator[blocking.Transaction]:
        with tx.transaction() as step:
            yield step

    app = fastapi.FastAPI()

    @app.post("/in-transaction/{n}")
    def in_transaction(n: int, tx=fastapi.Depends(transaction)) -> None:
        tx.execute(INSERT, (n,))

    @app.post("/in-step/{n}")
    def in_step(n: int, step=fastapi.Depends(step)) -> None:
        step.execute(INSERT, (n,))

    @app.post("/undone/{n}")
    def undone(n: int, tx=fastapi.Depends(transaction)) -> None:
        tx.execute(INSERT, (n,))
        raise fastapi.HTTPException(418)

    @app.post("/alone/{n}")
    def alone(n: int) -> None:
        db.execute(INSERT, (n,))

    kinds = {"in-transaction": 200, "in-step": 200, "undone": 418, "alone": 200}

    async def client(first: int) -> list[tuple[int, int, str]]:
        found = []
        for n in range(first, first + 40):
            kind = list(kinds)[n % len(kinds)]
            found.append((n, await ask(app, "POST", f"/{kind}/{n}"), kind))
        return found

    async def clients() -> list[list[tuple[int, int, str]]]:
        return await asyncio.wait_for(asyncio.gather(*(client(100 * number) for number in range(8))), SECONDS)

    answers = [answer for client in asyncio.run(clients()) for answer in client]
    assert [answer for answer in answers if answer[1] != kinds[answer[2]]] == []
    assert rows(db) == sorted(n for n, status, _ in answers if status == 200)
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda n: db.execute(INSERT, (n,)), range(400)))
