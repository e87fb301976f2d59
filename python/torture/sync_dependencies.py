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
import gc
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from ledger import HANGS, INSERT, Finding, Ledger
from requests_on_threads import THREADS, Requests
from tasks_on_a_loop import Tasks

from flatwater import blocking


def play(seed: int, seconds: float) -> Counter[str]:
    """Runs one round. Raises what it found, or returns what was done."""
    rng = random.Random(seed)
    ledger = Ledger()
    # Without waits of the program a block is idle only if the machine is slow: then the limit ends any of them.
    options = {"tuning": {"transaction_idle": rng.choice([0.02, 0.1, 1.0])}}
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
                while ledger.goes_on(until, "committed blocks") and not failed:
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
