"""The queue, the cache and the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from cache import CACHE, Cache
from outbox import OUTBOX, drain, post
from work_queue import JOBS, Worker, add

import flatwater


async def until(db: flatwater.Database, sql: str, value: object) -> None:
    """Waits until a query returns this value."""
    async with db.live(sql) as results:
        async for [row] in results:
            if row[0] == value:
                return


@asynccontextmanager
async def running(*coroutines: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def test_a_job_is_done_or_tried_again_until_it_is_dead() -> None:
    seen: list[tuple[str, int]] = []

    async def handle(payload: Any, tries: int) -> None:
        seen.append((payload["name"], tries))
        if payload["name"] == "bad" or (payload["name"] == "late" and tries < 2):
            raise ValueError("not yet")

    async def test() -> None:
        async with flatwater.connect(":memory:", migrations=[("1", JOBS)]) as db:
            worker = Worker(db, handle, most=3, backoff=lambda _: 0)
            async with running(worker.run()):
                for name in ("good", "bad", "late"):
                    await add(db, {"name": name}, 0.05 if name == "late" else 0)
                await until(db, "SELECT count(*) FROM jobs WHERE NOT is_dead", 0)
            [dead] = await db.query("SELECT payload, tries, error FROM jobs")
            assert tuple(dead) == ('{"name": "bad"}', 3, "ValueError('not yet')")
            assert sorted(seen) == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1), ("late", 1), ("late", 2)]

    asyncio.run(test())


def test_a_job_is_done_once_by_several_workers() -> None:
    seen: list[int] = []

    async def handle(payload: Any, tries: int) -> None:
        seen.append(payload)

    async def test() -> None:
        async with flatwater.connect(":memory:", migrations=[("1", JOBS)]) as db:
            async with running(*(Worker(db, handle).run() for _ in range(3))):
                async with db.transaction() as tx:
                    for n in range(20):
                        await add(tx, n)
                await until(db, "SELECT count(*) FROM jobs", 0)
            assert sorted(seen) == list(range(20))

    asyncio.run(test())


def test_a_value_is_made_once_and_not_returned_after_its_time() -> None:
    made = 0

    async def make() -> int:
        nonlocal made
        made += 1
        return made

    async def fail() -> int:
        raise ValueError("no")

    async def test() -> None:
        async with flatwater.connect(":memory:", migrations=[("1", CACHE)]) as db:
            cache = Cache(db)
            assert await asyncio.gather(*(cache.get_or_make("a", 60, make) for _ in range(3))) == [1, 1, 1]
            assert await cache.get("a") == 1
            for n in range(5):
                await cache.set(f"old {n}", n, -1)
            assert await cache.get("old 1") is None
            assert await cache.sweep(2) == 5
            await cache.delete("a")
            assert await db.query_value("SELECT count(*) FROM cache") == 0
            with pytest.raises(ValueError, match="no"):
                await cache.get_or_make("b", 60, fail)
            assert await cache.get_or_make("b", 60, make) == 2

    asyncio.run(test())


def test_messages_are_sent_in_their_order_if_they_are_committed() -> None:
    sent: list[tuple[int, str]] = []
    fails = 2

    async def send(id_: int, topic: str, payload: Any) -> None:
        nonlocal fails
        if payload == "b" and fails:
            fails -= 1
            raise ConnectionError
        sent.append((id_, payload))

    async def test() -> None:
        async with flatwater.connect(":memory:", migrations=[("1", OUTBOX)]) as db:
            async with running(drain(db, send, pause=0.001)):
                async with db.transaction() as tx:
                    for payload in ("a", "b", "c"):
                        await post(tx, "t", payload)
                with pytest.raises(ValueError, match="undone"):
                    async with db.transaction() as tx:
                        await post(tx, "t", "never")
                        raise ValueError("undone")
                await until(db, "SELECT count(*) FROM outbox", 0)
            assert sent == [(1, "a"), (2, "b"), (3, "c")]

    asyncio.run(test())
