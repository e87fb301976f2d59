"""What programs do with SQLAlchemy's asyncio extension. Each workload answers the microseconds of one operation.

Both sides are in WAL mode with `synchronous = NORMAL`, and have SQLAlchemy's own pool. Owns the workloads of
SQLAlchemy.
"""

import asyncio
from contextlib import asynccontextmanager
from time import perf_counter

from sqlalchemy import event, func, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from surface import ROWS, expect


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    value: Mapped[float]


TABLE = Item.__table__


@asynccontextmanager
async def opened(side, file, rows=ROWS):
    """An engine of a side, with a table that has so many rows."""
    options = {"durability": "normal"} if side == "flatwater" else {}
    engine = create_async_engine(f"sqlite+{side}:///{file}", connect_args=options)
    if side == "aiosqlite":

        @event.listens_for(engine.sync_engine, "connect")
        def connect(connection, _):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")

    try:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
            if rows:
                values = [{"name": f"name {row}", "value": row * 1.5} for row in range(rows)]
                await connection.execute(TABLE.insert(), values)
        yield engine
    finally:
        await engine.dispose()


async def number(engine):
    async with engine.connect() as connection:
        return await connection.scalar(select(func.count()).select_from(TABLE))


async def core(side, file, count):
    """SQLAlchemy: core SELECT of one row"""
    count *= 100
    async with opened(side, file) as engine, engine.connect() as connection:
        began = perf_counter()
        for at in range(count):
            found = (await connection.execute(select(TABLE.c.name).where(TABLE.c.id == at % ROWS + 1))).one()
            expect(found, (f"name {at % ROWS}",))
        return (perf_counter() - began) / count * 1e6


async def checkout(side, file, count):
    """SQLAlchemy: core SELECT of one row, with checkout"""
    count *= 100
    async with opened(side, file) as engine:
        began = perf_counter()
        for at in range(count):
            async with engine.connect() as connection:
                found = (await connection.execute(select(TABLE.c.name).where(TABLE.c.id == at % ROWS + 1))).one()
            expect(found, (f"name {at % ROWS}",))
        return (perf_counter() - began) / count * 1e6


async def get(side, file, count):
    """SQLAlchemy: session.get of 30 tasks"""
    count *= 5
    async with opened(side, file) as engine:
        sessions = async_sessionmaker(engine)

        async def work(task):
            for at in range(count):
                async with sessions() as session:
                    found = await session.get(Item, (task * count + at) % ROWS + 1)
                    expect(found.name, f"name {(task * count + at) % ROWS}")

        began = perf_counter()
        await asyncio.gather(*(work(task) for task in range(30)))
        return (perf_counter() - began) / (30 * count) * 1e6


async def insert_1000(side, file, count):
    """SQLAlchemy: ORM insert of 1,000"""
    async with opened(side, file, rows=0) as engine:
        sessions = async_sessionmaker(engine)
        spent = 0.0
        for _ in range(count):
            items = [Item(name=f"name {at}", value=at * 1.5) for at in range(1_000)]
            began = perf_counter()
            async with sessions.begin() as session:
                session.add_all(items)
            spent += perf_counter() - began
        expect(await number(engine), count * 1_000)
        return spent / count * 1e6


async def flush(side, file, count):
    """SQLAlchemy: flush of one"""
    count *= 50
    async with opened(side, file, rows=0) as engine:
        async with async_sessionmaker(engine).begin() as session:
            began = perf_counter()
            for at in range(count):
                session.add(Item(name=f"name {at}", value=1.0))
                await session.flush()
            spent = perf_counter() - began
        expect(await number(engine), count)
        return spent / count * 1e6


WORKLOADS = {work.__name__: work for work in (core, checkout, get, insert_1000, flush)}
