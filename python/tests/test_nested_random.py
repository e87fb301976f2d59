"""Random trees of nested blocks, one after the other and concurrent. Calls are made on the block or on one around it.

The model: a row that was acknowledged is in the table if all blocks that its code was in were kept, and is not there
otherwise. A call that is refused changes nothing. `FLATWATER_LISTS` sets the number of trees, `FLATWATER_SEED` takes
one of them.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"
SEEDS = [int(os.environ["FLATWATER_SEED"])] if "FLATWATER_SEED" in os.environ else range(100)
SEEDS = SEEDS[: int(os.environ.get("FLATWATER_LISTS", "100"))]
DEEPEST = 4


class Undo(Exception):
    """A block is to be undone."""


class Block:
    def __init__(self, tx: Any, outer: Block | None = None) -> None:
        self.tx, self.outer, self.is_kept = tx, outer, False

    def chain(self) -> Iterator[Block]:
        block: Block | None = self
        while block:
            yield block
            block = block.outer


class Tree:
    """What the program did, and decided."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rows: list[tuple[int, Block]] = []
        self.tried = self.refused = 0

    def any_around(self, block: Block) -> Block:
        return self.random.choice(list(block.chain()))

    def number(self) -> int:
        self.tried += 1
        return self.tried

    def ending(self) -> str:
        return self.random.choice(["keep", "keep", "keep", "raise", "rollback"])

    def steps(self, block: Block) -> list[str]:
        kinds = ["insert", "insert", "nest", "fork"] if len(list(block.chain())) < DEEPEST else ["insert"]
        return self.random.choices(kinds, k=self.random.randint(1, 4))

    def expected(self) -> list[int]:
        return sorted(n for n, block in self.rows if all(one.is_kept for one in block.chain()))


class Awaited(Tree):
    """The code of a task is in its block, and so is that of the tasks it starts."""

    async def insert(self, block: Block) -> None:
        n = self.number()
        try:
            await self.any_around(block).tx.execute(INSERT, (n,))
            self.rows.append((n, block))
        except flatwater.ProgrammingError as error:
            self.was_refused(error)

    def was_refused(self, error: flatwater.ProgrammingError) -> None:
        assert "a nested transaction is open" in str(error), error
        self.refused += 1

    async def body(self, block: Block) -> None:
        for step in self.steps(block):
            if self.random.random() < 0.3:
                await asyncio.sleep(0)
            if step == "insert":
                await self.insert(block)
            elif step == "nest":
                await self.nest(block)
            else:
                branches = [self.random.choice([self.nest, self.insert])(block) for _ in range(3)]
                await asyncio.gather(*branches)

    async def nest(self, outer: Block) -> None:
        tx = self.any_around(outer).tx.transaction()
        try:
            await tx.__aenter__()
        except flatwater.ProgrammingError as error:
            return self.was_refused(error)
        try:
            # As the `async with` that was entered by hand.
            await self.run(Block(tx, outer))
        except Undo as error:
            await tx.__aexit__(Undo, error, None)
        else:
            await tx.__aexit__(None, None, None)
        return None

    async def run(self, block: Block) -> None:
        await self.body(block)
        ending = self.ending()
        if ending == "raise":
            raise Undo
        if ending == "rollback":
            await block.tx.rollback()
        block.is_kept = ending == "keep"

    async def grow(self, db: flatwater.Database) -> None:
        try:
            async with db.transaction() as tx:
                await self.run(Block(tx))
        except Undo:
            pass


class Blocking(Tree):
    """The code of a thread is in the blocks that it entered itself. If it entered none, each stands for itself."""

    pool: ThreadPoolExecutor

    def any_given(self, block: Block, given: Block | None) -> tuple[Block, Block]:
        """Returns the block whose transaction is used, and the one that the code is in then."""
        used = self.any_around(block)
        return (used, used) if block is given else (used, block)

    def insert(self, block: Block, given: Block | None) -> None:
        used, place = self.any_given(block, given)
        n = self.number()
        try:
            used.tx.execute(INSERT, (n,))
            self.rows.append((n, place))
        except flatwater.ProgrammingError as error:
            assert "a nested transaction is open" in str(error), error
            self.refused += 1

    def body(self, block: Block, given: Block | None) -> None:
        for step in self.steps(block):
            if step == "insert":
                self.insert(block, given)
            elif step == "nest":
                self.nest(block, given)
            else:
                branches = [self.random.choice([self.nest, self.insert]) for _ in range(2)]
                for branch in [self.pool.submit(branch, block, block) for branch in branches]:
                    branch.result()

    def nest(self, block: Block, given: Block | None) -> None:
        used, outer = self.any_given(block, given)
        tx = used.tx.transaction()
        try:
            tx.__enter__()
        except flatwater.ProgrammingError as error:
            assert "a nested transaction is open" in str(error), error
            self.refused += 1
            return
        try:
            self.run(Block(tx, outer), given)
        except Undo as error:
            tx.__exit__(Undo, error, None)
        else:
            tx.__exit__(None, None, None)

    def run(self, block: Block, given: Block | None) -> None:
        self.body(block, given)
        ending = self.ending()
        if ending == "raise":
            raise Undo
        if ending == "rollback":
            block.tx.rollback()
        block.is_kept = ending == "keep"

    def grow(self, db: blocking.Database) -> None:
        # A branch waits for its own branches.
        with ThreadPoolExecutor(64) as self.pool:
            try:
                with db.transaction() as tx:
                    self.run(Block(tx), None)
            except Undo:
                pass


async def test_what_awaited_blocks_leave_is_what_their_ends_say(place):
    refused = 0
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        for seed in SEEDS:
            tree = Awaited(seed)
            await tree.grow(db)
            assert await db.query_values("SELECT a FROM t ORDER BY a") == tree.expected(), f"FLATWATER_SEED={seed}"
            await db.execute("DELETE FROM t")
            refused += tree.refused
    assert refused or len(SEEDS) < 10


def test_what_blocks_of_threads_leave_is_what_their_ends_say(place):
    refused = 0
    with blocking.connect(place) as db:
        db.execute("CREATE TABLE t (a)")
        for seed in SEEDS:
            tree = Blocking(seed)
            tree.grow(db)
            assert db.query_values("SELECT a FROM t ORDER BY a") == tree.expected(), f"FLATWATER_SEED={seed}"
            db.execute("DELETE FROM t")
            refused += tree.refused
    assert refused or len(SEEDS) < 10
