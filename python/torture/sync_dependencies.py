"""The act of `make torture` that Python is needed for: blocks whose code runs on any thread.

    python torture/sync_dependencies.py --seconds 60 [--seed 7]

A pool of threads serves requests as a web framework serves routes and dependencies that are no coroutines: each step of
a request runs on any thread, also the beginning and the end of its block. Beside them tasks of an event loop use the
same file. Blocks are left, raise, are dropped, are undone, or wait until the idle limit ends them.

It shows: nobody is refused because of a block that is another request's or has ended; a call inside of a block that
cannot end before it is refused at once; no acknowledged row is lost and no other is there; nothing waits for ever. A
ledger has each row's fate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"
OWN = "waits for that transaction"
# A step that takes longer counts as hung.
HANGS = 60
# As many threads as there are requests at a time: a step that waits for the writer keeps none from the others.
THREADS = 8
TASKS = 8


class Finding(Exception):
    """What must not be."""


class Ledger:
    """The fate of each row: it is there, or it is not, or all of its block are or none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: set[int] = set()
        self._open: list[set[int]] = []
        self._last = 0
        self.counts: Counter[str] = Counter()

    def number(self) -> int:
        with self._lock:
            self._last += 1
            return self._last

    def keep(self, rows: list[int]) -> None:
        with self._lock:
            self._kept.update(rows)

    def leave_open(self, rows: list[int]) -> None:
        with self._lock:
            self._open.append(set(rows))

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def compare(self, rows: list[int]) -> None:
        if lost := self._kept - set(rows):
            raise Finding(f"acknowledged rows that are lost: {sorted(lost)[:10]}")
        if len(rows) != len(set(rows)):
            raise Finding("a row is there twice")
        extra = set(rows) - self._kept
        for block in self._open:
            if extra & block and not extra >= block:
                raise Finding(f"a part of a block: {sorted(extra & block)}")
            extra -= block
        if extra:
            raise Finding(f"rows that nobody kept: {sorted(extra)[:10]}")


class Undo(Exception):
    """A block is to be undone."""


def is_idle_end(error: flatwater.Error) -> bool:
    return error.kind == "timeout" and "was not used for" in str(error)


class Requests:
    """Requests whose steps run on the threads of a pool."""

    def __init__(self, db: blocking.Database, ledger: Ledger) -> None:
        self.db, self.ledger = db, ledger
        self.pool = ThreadPoolExecutor(THREADS)

    def step(self, function: Callable[..., Any], *given: Any) -> Any:
        """Runs on any thread of the pool."""
        return self.pool.submit(function, *given).result(HANGS)

    def dependency(self) -> Iterator[blocking.Transaction]:
        with self.db.transaction() as tx:
            yield tx

    def serve(self, rng: random.Random) -> None:
        kind = rng.choice(
            [self.in_generator, self.in_generator, self.by_hand, self.alone, self.with_deadline, self.within]
        )
        kind(rng)
        self.ledger.count("requests")

    def alone(self, _: random.Random) -> None:
        n = self.ledger.number()
        self.step(self.db.execute, INSERT, (n,))
        self.ledger.keep([n])

    def with_deadline(self, rng: random.Random) -> None:
        n = self.ledger.number()
        try:
            self.step(lambda: self.db.execute(INSERT, (n,), timeout=rng.random() / 100))
            self.ledger.keep([n])
        except flatwater.TimeoutError as error:
            if error.applied != "no":
                raise Finding(f"it is unknown what a deadline did: {error!r}") from error
            self.ledger.count("deadlines")

    def within(self, rng: random.Random) -> None:
        """A block that one thread runs. What it does on the database itself would wait for its end."""

        def route() -> list[int]:
            with self.db.transaction() as tx:
                rows = [self.ledger.number()]
                tx.execute(INSERT, (rows[0],))
                try:
                    self.db.execute(INSERT, (0,))
                except flatwater.ProgrammingError as error:
                    if OWN not in str(error):
                        raise
                    self.ledger.count("own blocks")
                else:
                    if tx.in_transaction:
                        raise Finding("a write on the database took place inside of a block")
                    raise Undo
                with tx.transaction():
                    rows.append(self.ledger.number())
                    tx.execute(INSERT, (rows[1],))
                if rng.random() < 0.3:
                    raise Undo
            return rows

        self.judge(lambda: self.step(route), None)

    def in_generator(self, rng: random.Random) -> None:
        """As FastAPI does: a generator is resumed once for the value and once for the end."""
        generator = self.dependency()
        tx = self.step(next, generator)
        rows: list[int] = []

        def serve() -> None:
            self.use(tx, rows, rng)
            ending = rng.choice(["end", "end", "raise", "rollback", "drop"])
            self.ledger.count(ending)
            if ending == "end":
                self.step(list, generator)
                return
            if ending == "raise":
                with contextlib.suppress(Undo):
                    self.step(generator.throw, Undo())
            elif ending == "rollback":
                self.step(tx.rollback)
                self.step(list, generator)
            raise Undo

        self.judge(serve, rows)

    def by_hand(self, rng: random.Random) -> None:
        block = self.db.transaction()
        tx = self.step(block.__enter__)
        rows: list[int] = []

        def serve() -> None:
            self.use(tx, rows, rng)
            if rng.random() < 0.3:
                raise Undo
            self.step(block.__exit__, None, None, None)

        self.judge(serve, rows)

    def use(self, tx: blocking.Transaction, rows: list[int], rng: random.Random) -> None:
        for _ in range(rng.randint(1, 3)):
            n = self.ledger.number()
            if rng.random() < 0.3:
                step = tx.transaction()
                nested = self.step(step.__enter__)
                self.step(nested.execute, INSERT, (n,))
                if rng.random() < 0.5:
                    self.step(step.__exit__, None, None, None)
                    rows.append(n)
                else:
                    self.step(step.__exit__, Undo, Undo(), None)
            else:
                self.step(tx.execute, INSERT, (n,))
                rows.append(n)
        if rng.random() < 0.05:
            while tx.in_transaction:
                time.sleep(0.001)

    def judge(self, serve: Callable[[], Any], rows: list[int] | None) -> None:
        """Keeps the rows, given or returned, of a block that was committed."""
        try:
            done = serve()
            self.ledger.keep(done if rows is None else rows)
            self.ledger.count("committed blocks")
        except Undo:
            self.ledger.count("undone blocks")
        except flatwater.Error as error:
            if not is_idle_end(error):
                raise
            self.ledger.count("idle blocks")


class Tasks:
    """Tasks of an event loop, whose blocks end in every way."""

    def __init__(self, path: str, options: dict[str, Any], ledger: Ledger) -> None:
        self.path, self.options, self.ledger = path, options, ledger

    async def work(self, db: flatwater.Database, rng: random.Random, inside: asyncio.Event) -> None:
        rows: list[int] = []
        try:
            async with db.transaction() as tx:
                inside.set()
                for _ in range(rng.randint(1, 3)):
                    rows.append(self.ledger.number())
                    async with tx.transaction():
                        await tx.execute(INSERT, (rows[-1],))
                if rng.random() < 0.3:
                    try:
                        await db.execute(INSERT, (0,))
                    except flatwater.ProgrammingError as error:
                        if OWN not in str(error):
                            raise
                        self.ledger.count("own blocks of tasks")
                    else:
                        if tx.in_transaction:
                            raise Finding("a write on the database took place inside of a block of its task")
                        raise Undo
                if rng.random() < 0.3:
                    raise Undo
                if rng.random() < 0.1:
                    await asyncio.get_running_loop().create_future()
            self.ledger.keep(rows)
            self.ledger.count("committed blocks of tasks")
        except Undo:
            self.ledger.count("undone blocks of tasks")
        except asyncio.CancelledError:
            # It may have been in its commit.
            self.ledger.leave_open(rows)
            raise
        except flatwater.Error as error:
            if not is_idle_end(error):
                raise
            self.ledger.count("idle blocks of tasks")

    async def client(self, db: flatwater.Database, rng: random.Random, until: float) -> None:
        while time.monotonic() < until:
            inside = asyncio.Event()
            task = asyncio.ensure_future(self.work(db, rng, inside))
            waiting = asyncio.ensure_future(inside.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=HANGS)
            waiting.cancel()
            await asyncio.wait([task], timeout=0.1)
            if not task.done():
                # It waits for ever, for the writer, or for its commit.
                task.cancel()
                self.ledger.count("cancelled tasks")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, HANGS)
            n = self.ledger.number()
            await db.execute(INSERT, (n,), timeout=HANGS)
            self.ledger.keep([n])

    async def main(self, seed: int, until: float) -> None:
        async with flatwater.connect(self.path, **self.options) as db:
            clients = [self.client(db, random.Random(f"{seed} {number}"), until) for number in range(TASKS)]
            await asyncio.gather(*clients)


def play(seed: int, seconds: float) -> Counter[str]:
    """Runs one round. Raises what it found, or returns what was done."""
    rng = random.Random(seed)
    ledger = Ledger()
    # Without waits of the program a block is idle only if the machine is slow: then the limit ends any of them.
    options = {"transaction_idle": rng.choice([0.02, 0.1, 1.0])}
    failed: list[BaseException] = []
    until = time.monotonic() + seconds

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        with blocking.connect(path, **options) as db:
            db.execute("CREATE TABLE t (a)")
            requests = Requests(db, ledger)

            def client(number: int) -> None:
                rng = random.Random(f"{seed} thread {number}")
                while time.monotonic() < until and not failed:
                    requests.serve(rng)

            works: list[Callable[[], Any]] = [lambda n=n: client(n) for n in range(THREADS)]
            works.append(lambda: asyncio.run(Tasks(path, options, ledger).main(seed, until)))
            threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(seconds + 3 * HANGS)
                if thread.is_alive():
                    raise Finding("a thread hangs")
            if failed:
                raise failed[0]
            gc.collect()
            # No thread of the pool is refused, whatever it did.
            together = threading.Barrier(THREADS)

            def last() -> None:
                together.wait(HANGS)
                with db.transaction(timeout=HANGS) as tx:
                    n = ledger.number()
                    tx.execute(INSERT, (n,))
                ledger.keep([n])

            for one in [requests.pool.submit(last) for _ in range(THREADS)]:
                one.result(HANGS)
            requests.pool.shutdown()
        plain = sqlite3.connect(path)
        try:
            if plain.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise Finding("the file is damaged")
            ledger.compare([n for (n,) in plain.execute("SELECT a FROM t WHERE a <> 0")])
        finally:
            plain.close()
    for what in ["committed blocks", "committed blocks of tasks", "requests"]:
        if not ledger.counts[what]:
            raise Finding(f"no {what}: what does nothing finds nothing")
    return ledger.counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="one round, once more")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    counts: Counter[str] = Counter()
    rounds = 0
    while rounds == 0 or (time.monotonic() < until and given.seed is None):
        seed = random.randrange(1 << 32) if given.seed is None else given.seed
        try:
            counts += play(seed, min(5.0, given.seconds))
        except BaseException as error:
            print(f"sync-dependencies: found in the round of --seed {seed}: {error!r}", file=sys.stderr)
            raise
        rounds += 1
    print(f"sync-dependencies: {rounds} rounds, nothing found")
    for what, count in sorted(counts.items()):
        print(f"  {count:>9} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
