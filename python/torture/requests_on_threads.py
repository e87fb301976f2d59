"""Requests whose steps run on the threads of a pool, each on any of them, as those of a web framework."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ledger import HANGS, INSERT, OWN, Finding, Ledger, Undo, is_idle_end

import flatwater
from flatwater import blocking

# As many threads as there are requests at a time: a step that waits for the writer keeps none from the others.
THREADS = 8


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
        except flatwater.Timeout as error:
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
