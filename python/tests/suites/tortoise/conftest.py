"""The fixtures that Tortoise's tests ask for: its source release has the tests without them.

Owns the contexts of tests. `db`: a test's transaction is rolled back. `db_truncate`: its tables are emptied.
`db_isolated`: it has a database of its own.
"""

import os
from contextlib import asynccontextmanager

import pytest_asyncio
from tortoise import context as contexts
from tortoise.context import tortoise_test_context

URL = os.environ.get("TORTOISE_TEST_DB", "sqlite://:memory:")


class Undone(Exception):
    """Ends a transaction that is not to be committed."""


@asynccontextmanager
async def opened(modules):
    names = {"app_label": "models", "connection_label": "models"}
    async with tortoise_test_context(modules=modules, db_url=URL, **names) as context:
        yield context


@asynccontextmanager
async def current(context):
    """The context of a test, whatever task runs it."""
    token = contexts._current_context.set(context)
    try:
        yield context
    finally:
        contexts._current_context.reset(token)


@pytest_asyncio.fixture(scope="module")
async def db_module():
    async with opened(["tests.testmodels"]) as context:
        before, contexts._global_context = contexts._global_context, context
        yield context
        contexts._global_context = before


@pytest_asyncio.fixture
async def db(db_module):
    async with current(db_module):
        transaction = db_module.db()._in_transaction()
        await transaction.__aenter__()
        yield db_module
        await transaction.__aexit__(Undone, Undone(), None)


@pytest_asyncio.fixture
async def db_simple(db_module):
    async with current(db_module):
        yield db_module


@pytest_asyncio.fixture
async def db_isolated():
    async with opened(["tests.testmodels"]) as context:
        yield context


@pytest_asyncio.fixture
async def db_truncate(db_module):
    async with current(db_module):
        yield db_module
        for model in db_module.apps.get_models_iterable():
            await model._meta.db.execute_script(f'DELETE FROM "{model._meta.db_table}"')
