"""The act of `make torture` that compares: random programs on `sqlite3`, and on the modules that have its surface.

    python torture/sqlite3_programs.py --seconds 60 [--seed 7]

A program is a list of steps on one connection and a few cursors: statements of all kinds, also what programs do wrong:
SQL that is not compiled, parameters that do not fit, rows that cannot be had, keys that are missing at the commit,
schemas that change in a transaction, savepoints, scripts, changes of `isolation_level`, cursors that are half read. It
runs on `sqlite3`, and with `flatwater.dbapi` or `flatwater.aiosqlite` on a file of its own. After each step both must
tell the same. A program that differs is made shorter, and printed with its seed.

It does not compare what `DIFFERENCES` lists, each with its reason.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

from sqlite3_statements import SCHEMA, program

import flatwater.aiosqlite
from flatwater import dbapi

# What is not compared, and why. `sqlite3_statements` does not make such steps, or `Side` leaves them out.
DIFFERENCES = {
    "a half-read SELECT after its connection has written": "it is read on from its snapshot",
    "a half-read statement when a transaction or the schema changes": "sqlite3 refuses or aborts some",
    "rowcount of RETURNING before its last row": "here all rows are there at once",
    "counts after a statement that has failed and taken its transaction along": "they are asked for in the transaction",
    "the class of the error for a value that cannot be bound": "sqlite3 has that of the error before, whichever it was",
    "executemany without a transaction of a statement that rolls back": "its rows are one transaction here",
    "last_insert_rowid() of each row of one INSERT": "it is a number in the text until its connection has inserted",
    "the class of the error of a CREATE with rows that do not fit": "sqlite3 may compile it when they are bound",
    "a cursor after executemany has failed or had rows": "sqlite3 keeps some of what was before it",
    "a mapping for parameters such as ?1": "sqlite3 takes the number for a name",
    "counts after a full-text table was written": "it writes its own tables at another time",
    "messages": "the class and SQLite's code are compared; the texts that programs test for have their own tests",
}

# What cannot be bound, as it is in the text of a step.
UNBOUND = ("object", str(1 << 70), r"\ud800")
CURSORS = 3
CURSOR_STEPS = ("execute", "all", "many", "script", "fetch", "fresh", "block")
# Where total_changes and lastrowid are in a state.
COUNTS = (2, 4)


class Finding(Exception):
    """The two differ."""


def outcome(work: Callable[[], Any]) -> Any:
    """What a step returns, or the class of its error as `sqlite3` has it."""
    try:
        return work()
    except sqlite3.Error as error:
        own = next(one for one in type(error).__mro__ if one.__module__ == "sqlite3")
        return ("raises", own.__name__, getattr(error, "sqlite_errorname", None) or "")
    except Exception as error:
        return ("raises", type(error).__name__, "")


class Side:
    """One module, on a file of its own."""

    def __init__(self, connection: Any, wait: Callable[[Any], Any]) -> None:
        self.db = connection
        self.wait = wait
        self.cursors = [wait(connection.cursor()) for _ in range(CURSORS)]

    def step(self, step: tuple[Any, ...]) -> list[Any]:
        """Does a step, and returns what is to be compared."""
        what, *given = step
        told = outcome(lambda: getattr(self, what)(*given))
        cursor = self.cursors[given[0]] if what in CURSOR_STEPS else None
        state = [told, self.db.in_transaction, self.db.total_changes]
        if cursor is not None:
            description = cursor.description
            state += [cursor.rowcount, cursor.lastrowid, description and [column[0] for column in description]]
        return state

    def execute(self, at: int, sql: str, params: Any) -> Any:
        self.wait(self.cursors[at].execute(sql, *(() if params is None else (params,))))

    def all(self, at: int, sql: str, params: Any) -> Any:
        """A statement with its rows."""
        self.execute(at, sql, params)
        return self.wait(self.cursors[at].fetchall())

    def many(self, at: int, sql: str, rows: Any) -> Any:
        self.wait(self.cursors[at].executemany(sql, taken(rows)))

    def script(self, at: int, sql: str) -> Any:
        self.wait(self.cursors[at].executescript(sql))

    def fetch(self, at: int, count: int | None) -> Any:
        cursor = self.cursors[at]
        if count is None:
            return self.wait(cursor.fetchall())
        return self.wait(cursor.fetchone() if count == 1 else cursor.fetchmany(count))

    def fresh(self, at: int) -> Any:
        """Another cursor in the place of one."""
        self.wait(self.cursors[at].close())
        self.cursors[at] = self.wait(self.db.cursor())

    def commit(self) -> Any:
        self.wait(self.db.commit())

    def rollback(self) -> Any:
        self.wait(self.db.rollback())

    def block(self, at: int, sql: str, params: Any, fails: bool) -> Any:
        """A block of a connection: a commit, or a rollback."""
        try:
            self.execute(at, sql, params)
            if fails:
                raise KeyError("of the program")
        except Exception:
            self.rollback()
            raise
        try:
            self.commit()
        except Exception:
            self.rollback()
            raise

    def level(self, level: str | None) -> Any:
        self.db.isolation_level = level
        return self.db.isolation_level

    def finish(self) -> None:
        """No cursor is half read any more."""
        for at in range(CURSORS):
            outcome(partial(self.fetch, at, None))


def taken(rows: Any) -> Any:
    """Rows as they are in a program: a list, or a generator that may raise."""
    kind, *values = rows
    if kind == "list":
        return values[0]

    def generated() -> Iterator[Any]:
        for row in values[0]:
            if row == "raise":
                raise KeyError("of the program")
            yield row

    return generated()


def plain(value: Any) -> Any:
    return value


def changes_something(step: tuple[Any, ...]) -> bool:
    return step[0] not in ("execute", "all", "fetch", "fresh") or (step[0] != "fetch" and not is_select(step))


def asks_for_counts(step: tuple[Any, ...]) -> bool:
    return any(isinstance(text, str) and ("changes" in text or "rowid" in text) for text in step)


def without_counts(state: list[Any]) -> list[Any]:
    return [value for at, value in enumerate(state) if at not in COUNTS]


def rolls_back(step: tuple[Any, ...], was_open: bool, is_open: bool) -> bool:
    """True if a statement that has failed has ended the transaction, that it may have begun itself."""
    return not is_open and (was_open or step[0] in ("execute", "all", "many", "script", "block"))


def is_select(step: tuple[Any, ...]) -> bool:
    return len(step) > 2 and isinstance(step[2], str) and step[2].lstrip().upper().startswith("SELECT")


def compare(steps: list[tuple[Any, ...]], level: str | None, of: str, counts: Counter[str]) -> None:
    """Runs a program on both. Raises what differs."""
    with tempfile.TemporaryDirectory() as folder, closing(asyncio.new_event_loop()) as loop:
        ours = os.path.join(folder, "ours.db")
        one: Any = sqlite3.connect(os.path.join(folder, "plain.db"))
        one.isolation_level = level
        one.execute("PRAGMA foreign_keys = 1")
        if of == "dbapi":
            wait: Callable[[Any], Any] = plain
            other: Any = dbapi.connect(ours, isolation_level=level, foreign_keys=True)
        else:
            wait = loop.run_until_complete
            other = wait(flatwater.aiosqlite.connect(ours, isolation_level=level, foreign_keys=True))
        sides = [Side(one, plain), Side(other, wait)]
        try:
            for side in sides:
                side.script(0, SCHEMA)
            has_counts, blurred = True, set[int]()
            for number, step in enumerate(steps):
                if not has_counts and asks_for_counts(step):
                    continue
                if step[0] == "many" and one.isolation_level is None and (14,) in step[3][1]:
                    continue
                was_open = one.in_transaction
                if changes_something(step):
                    for side in sides:
                        side.finish()
                left, right = (side.step(step) for side in sides)
                counts[step[0]] += 1
                raised = isinstance(left[0], tuple) and left[0][:1] == ("raises",)
                counts["raised"] += raised
                has_counts &= not (raised and rolls_back(step, was_open, one.in_transaction))
                has_counts &= not any(isinstance(text, str) and (" f " in text) for text in step)
                fails_twice = step[0] == "many" and step[2].startswith("CREATE ")
                if raised and (fails_twice or any(value in repr(step[3:]) for value in UNBOUND)):
                    left[0], right[0] = left[0][:1], right[0][:1]
                if step[0] == "many" and (raised or "RETURNING" in step[2]):
                    blurred.add(step[1])
                elif step[0] in ("execute", "all", "block", "fresh", "many"):
                    blurred.discard(step[1])
                if step[0] in CURSOR_STEPS and step[1] in blurred:
                    left, right = left[:-3], right[:-3]
                if not has_counts:
                    left, right = without_counts(left), without_counts(right)
                if left != right:
                    raise Finding(f"step {number} {step}\n  sqlite3   {left}\n  {of:<9} {right}")
            for side in sides:
                side.finish()
                side.rollback()
            for table in ("t", "p", "c", "w", "g", "f", "log"):
                left, right = (side.step(("all", 0, f"SELECT * FROM {table}", None))[0] for side in sides)
                if left != right:
                    raise Finding(f"at the end {table}\n  sqlite3   {left}\n  {of:<9} {right}")
        finally:
            one.close()
            wait(other.close())


def differs(steps: list[Any], level: str | None, of: str) -> str | None:
    try:
        compare(steps, level, of, Counter())
    except Finding as finding:
        return str(finding)
    return None


def shortened(steps: list[Any], level: str | None, of: str) -> list[Any]:
    """The steps without those that are not needed for the two to differ."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if differs(fewer, level, of):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def play(seed: int, counts: Counter[str]) -> None:
    """Runs one program. Raises if it differs."""
    rng = random.Random(seed)
    level = rng.choice(["", "", "", None, "DEFERRED", "IMMEDIATE", "exclusive"])
    of = rng.choice(["dbapi", "dbapi", "dbapi", "aiosqlite"])
    steps = program(rng, CURSORS)
    try:
        compare(steps, level, of, counts)
    except Finding as finding:
        short = shortened(steps, level, of)
        print(f"sqlite3-programs: --seed {seed}, {of}, isolation_level {level!r}", file=sys.stderr)
        for step in short:
            print(f"  {step},", file=sys.stderr)
        raise Finding(differs(short, level, of) or str(finding)) from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="one program, once more")
    given = parser.parse_args()
    # That a COMMIT failed is what programs do here.
    logging.disable(logging.WARNING)
    until = time.monotonic() + given.seconds
    counts: Counter[str] = Counter()
    while not counts or (time.monotonic() < until and given.seed is None):
        seed = random.randrange(1 << 32) if given.seed is None else given.seed
        try:
            play(seed, counts)
        except Finding as finding:
            print(f"sqlite3-programs: found in the program of --seed {seed}: {finding}", file=sys.stderr)
            return 1
        counts["programs"] += 1
    print("sqlite3-programs: nothing found")
    for what, count in sorted(counts.items()):
        print(f"  {count:>9} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
