"""An act of `make torture` that Python is needed for: the handler of a signal raises, between any two instructions.

    python torture/signals.py --seconds 60 [--seed 7]

The handler stands for Ctrl-C, a time limit of a test, or that of a task. In each step a timer ends a transaction at a
random moment: of `flatwater.dbapi`, pooled and with a connection of its own, and of `flatwater.blocking`. In half of
the steps the program goes on while the exception and its traceback are still there.

It shows: afterwards the connection works at once, and another one too; no transaction is open after a rollback or the
end of its block; a transaction is there whole or not at all, and whole if it was acknowledged. A step that takes 20 s
counts as hung.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from ledger import Finding

from flatwater import blocking, dbapi

HANGS = 20
# A wait for the writer ends before that, and says so.
TIMEOUT = 5
INSERT = "INSERT INTO t VALUES (?, ?)"
COUNT = "SELECT count(*) FROM t WHERE i = ?"
ROWS = 3
KINDS = ["pooled", "own", "blocks"]


class Stop(BaseException):
    """What the handler raises."""


is_armed = False


def stop(*_: object) -> None:
    # The signal may come to another thread, which runs late.
    if is_armed:
        raise Stop


class Driver:
    """A connection of `flatwater.dbapi`."""

    def __init__(self, path: str, own: bool) -> None:
        self.connection = dbapi.connect(path, timeout=TIMEOUT)
        if own:
            self.connection.execute("CREATE TEMP TABLE own (a)")

    def work(self, number: int) -> None:
        connection = self.connection
        connection.execute(INSERT, (number, "a"))
        connection.executemany(INSERT, ((number, text) for text in ("b", "c")))
        connection.execute(COUNT, (number,)).fetchone()
        connection.commit()

    def end(self) -> None:
        self.connection.rollback()
        if self.connection.in_transaction:
            raise Finding("a transaction is open after the rollback")

    def count(self, number: int) -> int:
        return int(self.connection.execute(COUNT, (number,)).fetchone()[0])

    def clear(self) -> None:
        self.connection.execute("DELETE FROM t")
        self.connection.commit()

    def close(self) -> None:
        self.connection.close()


class Blocks:
    """A database of `flatwater.blocking`."""

    def __init__(self, path: str) -> None:
        self.db = blocking.connect(path)

    def work(self, number: int) -> None:
        with self.db.transaction(timeout=TIMEOUT) as tx:
            tx.execute(INSERT, (number, "a"))
            with tx.transaction() as nested:
                nested.executemany(INSERT, [(number, "b"), (number, "c")])
            tx.query(COUNT, (number,))

    def end(self) -> None:
        self.db.execute("DELETE FROM t WHERE 0", timeout=TIMEOUT)

    def count(self, number: int) -> int:
        return int(self.db.query_value(COUNT, (number,)))

    def clear(self) -> None:
        self.db.execute("DELETE FROM t", timeout=TIMEOUT)

    def close(self) -> None:
        self.db.close()


def interrupted(work: Callable[[], Any], end: Callable[[], Any], rng: random.Random) -> bool:
    """Does the work, and then the end, before or after the exception is gone. Returns true if the work was done."""
    global is_armed
    after = rng.choice([1, 5, 20, 60, 150]) * rng.random() * 2e-5 + 1e-6
    try:
        try:
            is_armed = True
            signal.setitimer(signal.ITIMER_REAL, after)
            work()
        finally:
            is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return True
    except Stop:
        if rng.random() < 0.5:
            end()
        return False


def play(path: str, seed: int, kind: str | None, steps: int, counts: Counter[str]) -> None:
    """Runs one round. Raises what it found."""
    rng = random.Random(seed)
    kind = kind or rng.choice(KINDS)
    one: Driver | Blocks = Blocks(path) if kind == "blocks" else Driver(path, kind == "own")
    for number in range(steps):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        done = interrupted(lambda n=number: one.work(n), one.end, rng)
        one.end()
        found = one.count(number)
        if found not in (0, ROWS) or (done and found != ROWS):
            raise Finding(f"{found} rows of a transaction that was {'committed' if done else 'interrupted'}")
        counts[f"{kind}: {'committed' if done else 'interrupted'}"] += 1
        if number % 100 == 99:
            one.clear()
    one.clear()
    one.close()
    faulthandler.cancel_dump_traceback_later()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--steps", type=int, default=200, help="in a round")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seed", type=int, help="one round, once more")
    given = parser.parse_args()
    # A call that was made and did not begin before the exception.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    signal.signal(signal.SIGALRM, stop)
    until = time.monotonic() + given.seconds
    counts: Counter[str] = Counter()
    rounds = 0
    with tempfile.TemporaryDirectory(prefix="flatwater-signals-") as folder:
        path = os.path.join(folder, "signals.db")
        with blocking.connect(path) as db:
            db.executescript("CREATE TABLE t (i, k); CREATE INDEX t_i ON t (i)")
            while rounds == 0 or (time.monotonic() < until and given.seed is None):
                seed = random.randrange(1 << 32) if given.seed is None else given.seed
                try:
                    play(path, seed, given.kind, given.steps, counts)
                    # Another connection is not kept from the writer.
                    db.execute("DELETE FROM t", timeout=TIMEOUT)
                except BaseException as error:
                    print(f"signals: found in the round of --seed {seed}: {error!r}", file=sys.stderr)
                    raise
                rounds += 1
    print(f"signals: {rounds} rounds, nothing found")
    for what, count in sorted(counts.items()):
        print(f"  {count:>9} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
