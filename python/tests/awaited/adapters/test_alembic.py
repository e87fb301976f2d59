"""Alembic over `sqlite+flatwater://`: a table that is built again, with rows that refer to it."""

from __future__ import annotations

import pytest
import sqlalchemy
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

TABLES = [
    "CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents (id) ON DELETE CASCADE)",
    "INSERT INTO parents VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO children VALUES (10, 1), (20, 2)",
]


def rebuild(operations: Operations) -> None:
    with operations.batch_alter_table("parents") as batch:
        batch.alter_column("name", existing_type=sqlalchemy.Text(), nullable=False)
        batch.add_column(sqlalchemy.Column("age", sqlalchemy.Integer()))


def migrated(connection: sqlalchemy.Connection, *steps) -> None:
    """Runs steps as one migration."""
    context = MigrationContext.configure(connection)
    with context.begin_transaction(_per_migration=True):
        for step in steps:
            step(Operations(context))


class Opened:
    """An engine whose connections have foreign keys, with the tables."""

    def __init__(self, file, **arguments) -> None:
        arguments = {"foreign_keys": True, **arguments}
        self.engine = create_async_engine(f"sqlite+flatwater:///{file}", connect_args=arguments)

    async def __aenter__(self):
        async with self.engine.begin() as connection:
            for sql in TABLES:
                await connection.exec_driver_sql(sql)
        return self.engine

    async def __aexit__(self, *_: object) -> None:
        await self.engine.dispose()


async def content(engine):
    async with engine.connect() as connection:
        return [
            (await connection.exec_driver_sql(sql)).fetchall()
            for sql in ("SELECT id, name FROM parents", "SELECT id, parent FROM children", "PRAGMA foreign_keys")
        ]


ALL = [[(1, "a"), (2, "b")], [(10, 1), (20, 2)], [(1,)]]


async def test_a_batch_keeps_the_rows_that_refer_to_its_table(file):
    async with Opened(file) as engine:
        async with engine.connect() as connection:
            await connection.run_sync(migrated, rebuild, rebuild_again)
            await connection.commit()
            # On the same connection keys are enforced again.
            with pytest.raises(IntegrityError):
                await connection.exec_driver_sql("INSERT INTO children VALUES (30, 3)")
            await connection.rollback()
        assert await content(engine) == ALL
        async with engine.begin() as connection:
            await connection.exec_driver_sql("DELETE FROM parents WHERE id = 1")
        assert (await content(engine))[1] == [(20, 2)]


def rebuild_again(operations: Operations) -> None:
    with operations.batch_alter_table("parents") as batch:
        batch.drop_column("age")


async def test_a_batch_that_breaks_a_key_is_not_committed(file):
    async with Opened(file) as engine:
        async with engine.connect() as connection:
            with pytest.raises(IntegrityError, match="FOREIGN KEY constraint failed"):
                await connection.run_sync(migrated, rebuild, lambda it: it.execute("DELETE FROM parents WHERE id = 2"))
            await connection.rollback()
        assert await content(engine) == ALL


async def test_a_batch_that_is_rolled_back_leaves_foreign_keys_on(file):
    async with Opened(file) as engine:
        async with engine.connect() as connection:
            with pytest.raises(ZeroDivisionError):
                await connection.run_sync(migrated, rebuild, lambda _: 1 // 0)
            await connection.rollback()
            assert (await connection.exec_driver_sql("PRAGMA foreign_keys")).fetchall() == [(1,)]
        assert await content(engine) == ALL


async def test_a_batch_in_a_transaction_that_has_written_is_refused_before_it_changes_anything(file):
    async with Opened(file) as engine:
        async with engine.connect() as connection:
            with pytest.raises(OperationalError, match="foreign keys cannot be turned off"):
                await connection.run_sync(migrated, lambda it: it.execute("UPDATE parents SET name = name"), rebuild)
            await connection.rollback()
        assert await content(engine) == ALL


async def test_without_foreign_keys_a_batch_is_as_ever(file):
    async with Opened(file, foreign_keys=False) as engine:
        async with engine.begin() as connection:
            await connection.run_sync(migrated, lambda it: it.execute("UPDATE parents SET name = name"), rebuild)
        assert await content(engine) == [*ALL[:2], [(0,)]]
