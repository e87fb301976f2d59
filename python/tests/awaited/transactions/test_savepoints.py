"""Savepoints by name."""

from __future__ import annotations

import pytest

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"


async def test_what_follows_a_savepoint_is_undone_and_it_stays_open(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute(INSERT, (1,))
            await tx.savepoint("one")
            await tx.execute(INSERT, (2,))
            await tx.savepoint("two")
            await tx.execute(INSERT, (3,))
            await tx.rollback_to("ONE")
            with pytest.raises(flatwater.ProgrammingError, match="two"):
                await tx.release("two")
            await tx.execute(INSERT, (4,))
            await tx.release("one")
            assert tx.in_transaction
        assert await db.query_values("SELECT a FROM t ORDER BY a") == [1, 4]


async def test_a_name_that_is_used_again_is_that_of_the_newest_savepoint(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.savepoint("s")
            await tx.execute(INSERT, (1,))
            await tx.savepoint("s")
            await tx.execute(INSERT, (2,))
            await tx.rollback_to("s")
            await tx.release("s")
            assert await tx.query_values("SELECT a FROM t") == [1]
            await tx.rollback_to("s")
        assert await db.query_values("SELECT a FROM t") == []


async def test_a_nested_block_has_its_own_names(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.savepoint("outer")
            async with tx.transaction() as step:
                with pytest.raises(flatwater.ProgrammingError, match="outer"):
                    await step.rollback_to("outer")


async def test_a_savepoint_needs_a_transaction_that_is_open(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        tx = db.transaction()
        with pytest.raises(flatwater.ProgrammingError, match="has not begun"):
            await tx.savepoint("s")
        async with tx:
            await tx.rollback()
            with pytest.raises(flatwater.ProgrammingError, match="finished"):
                await tx.savepoint("s")


def test_threads_have_the_same_calls(place):
    with blocking.connect(place) as db:
        db.execute("CREATE TABLE t (a)")
        with db.transaction() as tx:
            tx.savepoint("s")
            tx.execute(INSERT, (1,))
            tx.rollback_to("s")
            tx.execute(INSERT, (2,))
            tx.release("s")
        assert db.query_values("SELECT a FROM t") == [2]
