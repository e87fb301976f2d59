"""Tasks of a library that is not asyncio."""

from __future__ import annotations

import pytest
import trio

import flatwater
from flatwater import blocking


def test_a_task_of_trio_is_told_that_calls_are_of_asyncio(file):
    async def connect() -> None:
        await flatwater.connect(file)

    with pytest.raises(flatwater.ProgrammingError, match="no event loop of asyncio.*trio.to_thread") as caught:
        trio.run(connect)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_way_in_the_hint_works(file):
    async def ask() -> object:
        with blocking.connect(file) as db:
            return await trio.to_thread.run_sync(db.query_value, "SELECT 5")

    assert trio.run(ask) == 5
