"""SQLAlchemy over `sqlite+flatwater://`."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from sqlalchemy import ForeignKey, bindparam, delete, event, insert, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, selectinload
from sqlalchemy.pool import AsyncAdaptedQueuePool, StaticPool

import flatwater
import flatwater.aiosqlite
import flatwater.sqlalchemy.connection as adapted
from flatwater._logical.own import Own
from flatwater._logical.pooled import Pooled


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    posts: Mapped[list[Post]] = relationship(back_populates="author", order_by="Post.id")


class Post(Base):
    __tablename__ = "posts"

    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    title: Mapped[str]
    author: Mapped[User] = relationship(back_populates="posts")


class Engine:
    """An engine with the tables, as a block that disposes of it."""

    def __init__(self, path, **options) -> None:
        self.engine = create_async_engine(f"sqlite+flatwater:///{path}", **options)

    async def __aenter__(self):
        async with self.engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        return self.engine

    async def __aexit__(self, *_: object) -> None:
        await self.engine.dispose()


async def logical_of(connection):
    return (await connection.get_raw_connection()).driver_connection._core


async def test_a_name_in_double_quotes_that_is_no_column_is_an_error(file):
    async with Engine(file) as engine, engine.connect() as connection:
        with pytest.raises(OperationalError, match='no such column: "gone"'):
            await connection.execute(text('SELECT "gone" FROM users'))
    async with (
        Engine(file, connect_args={"tuning": {"double_quoted_strings": True}}) as engine,
        engine.connect() as connection,
    ):
        assert (await connection.execute(text('SELECT "gone"'))).scalar_one() == "gone"


async def names(engine):
    async with engine.connect() as connection:
        return list(await connection.scalars(select(User.name).order_by(User.id)))


async def test_objects_are_stored_and_loaded(place):
    async with Engine(place) as engine:
        sessions = async_sessionmaker(engine, expire_on_commit=False)
        async with sessions.begin() as session:
            session.add(User(name="Ada", posts=[Post(title="one"), Post(title="two")]))
        async with sessions() as session:
            [user] = await session.scalars(select(User).options(selectinload(User.posts)))
            assert (user.name, [post.title for post in user.posts]) == ("Ada", ["one", "two"])
            user.name = "Grace"
            await session.delete(user.posts[0])
            await session.commit()
        async with sessions() as session:
            assert await session.scalar(select(User.name)) == "Grace"
            assert list(await session.scalars(select(Post.title))) == ["two"]


async def test_many_rows_of_an_update_and_a_delete_return_theirs(place):
    users = User.__table__
    async with Engine(place) as engine, engine.begin() as connection:
        await connection.execute(insert(User), [{"name": name} for name in "abc"])
        change = (
            update(users).where(users.c.name == bindparam("old")).values(name=bindparam("new")).returning(users.c.name)
        )
        changed = await connection.execute(change, [{"old": "b", "new": "x"}, {"old": "a", "new": "y"}])
        assert changed.all() == [("x",), ("y",)] and changed.rowcount == 2
        gone = await connection.execute(
            delete(users).where(users.c.name == bindparam("old")).returning(users.c.id), [{"old": "y"}, {"old": "none"}]
        )
        assert gone.scalars().all() == [1]


async def test_a_nested_transaction_is_rolled_back_alone(place):
    async with Engine(place) as engine, async_sessionmaker(engine)() as session:
        session.add(User(name="Ada"))
        await session.flush()
        async with session.begin_nested():
            session.add(User(name="Grace"))
        with pytest.raises(IntegrityError):
            async with session.begin_nested():
                session.add(User(name="Ada"))
        with pytest.raises(ZeroDivisionError):
            async with session.begin_nested():
                session.add(User(name="Edsger"))
                await session.flush()
                raise ZeroDivisionError
        await session.commit()
        assert list(await session.scalars(select(User.name).order_by(User.id))) == ["Ada", "Grace"]


async def test_a_session_that_ends_with_an_exception_has_written_nothing(place):
    async with Engine(place) as engine:
        with pytest.raises(ZeroDivisionError):
            async with async_sessionmaker(engine).begin() as session:
                session.add(User(name="Ada"))
                await session.flush()
                raise ZeroDivisionError
        assert await names(engine) == []


async def test_sessions_of_thirty_tasks_write_and_none_fails(file):
    async with Engine(file) as engine:
        sessions = async_sessionmaker(engine)

        async def work(number):
            async with sessions.begin() as session:
                session.add(User(name=f"user {number}"))
                await session.flush()
                # Others get their turn, and want to write.
                await asyncio.sleep(0)
                session.add(Post(author_id=1, title=f"post {number}"))

        await asyncio.gather(*(work(number) for number in range(30)))
        assert len(await names(engine)) == 30


async def test_thirty_tasks_get_their_objects(file):
    async with Engine(file) as engine:
        sessions = async_sessionmaker(engine)
        async with sessions.begin() as session:
            session.add_all(User(id=number, name=f"user {number}") for number in range(1, 31))

        async def name(number):
            async with sessions() as session:
                user = await session.get(User, number)
                return user.name

        found = await asyncio.gather(*(name(number) for number in range(1, 31)))
        assert found == [f"user {number}" for number in range(1, 31)]


async def test_a_task_that_is_cancelled_while_it_waits_for_the_writer_writes_nothing(file):
    async with Engine(file) as engine:
        sessions = async_sessionmaker(engine)
        wants = asyncio.Event()

        async def write():
            async with sessions.begin() as session:
                session.add(User(name="Grace"))
                wants.set()
                await session.flush()

        async with sessions.begin() as session:
            session.add(User(name="Ada"))
            await session.flush()
            task = asyncio.create_task(write())
            await wants.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await names(engine) == ["Ada"]
        async with sessions.begin() as session:
            session.add(User(name="Edsger"))
        assert await names(engine) == ["Ada", "Edsger"]
        assert engine.pool.checkedout() == 0


async def test_a_query_that_is_cancelled_ends_and_the_pool_goes_on(file):
    started = threading.Event()

    def functions(database):
        database.create_function("started", 0, lambda: started.set() or 1)

    endless = text("WITH RECURSIVE c(n) AS (SELECT started() UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c")
    async with Engine(file, connect_args={"functions": functions}) as engine:

        async def ask():
            async with engine.connect() as connection:
                await connection.execute(endless)

        task = asyncio.create_task(ask())
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.pool.checkedout() == 0
        assert await names(engine) == []


async def test_a_connection_that_goes_back_to_the_pool_has_no_transaction_and_stays_pooled(file):
    async with Engine(file, pool_size=1, max_overflow=0) as engine:
        assert isinstance(engine.pool, AsyncAdaptedQueuePool)
        async with engine.connect() as connection:
            logical = await logical_of(connection)
            await connection.execute(User.__table__.insert(), {"name": "Ada"})
            assert logical.in_transaction
        assert not logical.in_transaction
        async with engine.connect() as connection:
            assert await logical_of(connection) is logical
            assert isinstance(logical.mode, Pooled)
        assert await names(engine) == []


async def test_a_pragma_of_a_connect_event_makes_a_connection_its_own_unless_it_is_so(file):
    async with Engine(file) as engine:
        pragmas = ["PRAGMA journal_mode = WAL", "PRAGMA foreign_keys = OFF"]

        @event.listens_for(engine.sync_engine, "connect")
        def connect(connection, _):
            for pragma in pragmas:
                cursor = connection.cursor()
                cursor.execute(pragma)
                cursor.close()

        for pragma, kind in [(None, Pooled), ("PRAGMA foreign_keys = ON", Own)]:
            pragmas += [pragma] if pragma else []
            await engine.dispose()
            async with engine.begin() as connection:
                assert isinstance((await logical_of(connection)).mode, kind)
                await connection.execute(User.__table__.insert(), {"name": kind.__name__})
        assert await names(engine) == ["Pooled", "Own"]
        with pytest.raises(IntegrityError, match="FOREIGN KEY"):
            async with engine.begin() as connection:
                await connection.execute(Post.__table__.insert(), {"author_id": 7, "title": "lost"})


async def test_a_live_query_sees_what_a_session_commits(file):
    async with flatwater.connect(file) as db, Engine(file) as engine:
        async with db.live("SELECT name FROM users ORDER BY id") as results:
            assert await asyncio.wait_for(anext(results), 60) == []
            async with async_sessionmaker(engine).begin() as session:
                session.add(User(name="Ada"))
            assert await asyncio.wait_for(anext(results), 60) == [("Ada",)]


async def test_a_statement_switches_once_and_what_has_nothing_to_do_never(file, monkeypatch):
    async with Engine(file, pool_size=1, max_overflow=0) as engine:
        await names(engine)
        switches = 0
        await_ = adapted.await_

        def counted(awaitable):
            nonlocal switches
            switches += 1
            return await_(awaitable)

        monkeypatch.setattr(adapted, "await_", counted)
        async with engine.connect() as connection:
            assert list(await connection.scalars(select(User.name))) == []
            assert switches == 1
            await connection.commit()
            await connection.rollback()
            assert switches == 1
            await connection.execute(User.__table__.insert(), [{"name": "Ada"}, {"name": "Grace"}])
            await connection.commit()
            assert switches == 3
        assert switches == 3


async def test_levels_of_isolation(file):
    async with Engine(file) as engine:
        async with engine.connect() as connection:
            assert await connection.get_isolation_level() == "SERIALIZABLE"
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(User.__table__.insert(), {"name": "Ada"})
        assert await names(engine) == ["Ada"]
        async with engine.connect() as connection:
            logical = await logical_of(connection)
            assert logical.isolation_level == ""
            await connection.execute(User.__table__.insert(), {"name": "Grace"})
        assert await names(engine) == ["Ada"]


async def test_autocommit_commits_an_open_transaction(file):
    async with Engine(file) as engine:
        async with engine.connect() as connection:
            await connection.execute(User.__table__.insert(), {"name": "Ada"})
            raw = await connection.get_raw_connection()

            def set_level(_):
                raw.dbapi_connection.isolation_level = None

            await connection.run_sync(set_level)
            assert not raw.driver_connection.in_transaction
        assert await names(engine) == ["Ada"]


async def test_begin_immediate_takes_the_writer_and_stays_pooled(file):
    async with Engine(file) as engine:

        @event.listens_for(engine.sync_engine, "connect")
        def connect(connection, _):
            connection.isolation_level = None

        @event.listens_for(engine.sync_engine, "begin")
        def begin(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        await engine.dispose()
        async with async_sessionmaker(engine)() as session:
            assert list(await session.scalars(select(User))) == []
            async with session.begin_nested():
                session.add(User(name="Ada"))
            logical = await logical_of(await session.connection())
            assert logical.in_transaction and isinstance(logical.mode, Pooled)
            await session.rollback()
        assert await names(engine) == []


async def test_a_stream_reads_on_while_others_write(file):
    async with Engine(file) as engine:
        async with engine.begin() as connection:
            # Some more than is held of a result at once.
            await connection.execute(
                User.__table__.insert(), [{"name": f"{number:06}" + "." * 1_000} for number in range(3_000)]
            )
        async with engine.connect() as connection:
            streamed = await connection.stream(select(User.id).order_by(User.name))
            async with engine.begin() as other:
                await other.execute(User.__table__.delete())
            assert await streamed.fetchone() == (1,)
            assert await streamed.fetchmany(2) == [(2,), (3,)]
            assert sum([1 async for _ in streamed]) == 2_997
        assert await names(engine) == []


async def test_the_connection_of_the_driver_is_that_of_aiosqlites_surface(file):
    async with Engine(file) as engine, engine.connect() as connection:
        raw = await connection.get_raw_connection()
        assert isinstance(raw.driver_connection, flatwater.aiosqlite.Connection)
        async with raw.driver_connection.execute("SELECT 1") as cursor:
            assert await cursor.fetchone() == (1,)
        assert str(engine.dialect.dbapi_version) == flatwater.__version__


async def test_errors_are_those_of_sqlalchemy(place):
    async with Engine(place) as engine, engine.connect() as connection:
        with pytest.raises(OperationalError, match="no such table: absent") as failed:
            await connection.execute(text("SELECT * FROM absent"))
        assert isinstance(failed.value.orig, flatwater.OperationalError)
        await connection.execute(User.__table__.insert(), {"name": "Ada"})
        with pytest.raises(IntegrityError, match="UNIQUE constraint failed: users.name"):
            await connection.execute(User.__table__.insert(), {"name": "Ada"})
        with pytest.raises(ProgrammingError):
            await connection.exec_driver_sql("SELECT ?", (1, 2))


async def test_a_connection_that_was_closed_is_replaced(file):
    async with Engine(file, pool_size=1, max_overflow=0) as engine:
        async with engine.connect() as connection:
            raw = await connection.get_raw_connection()
            await raw.driver_connection.close()
            with pytest.raises(ProgrammingError, match="Connection closed") as failed:
                await connection.execute(select(User))
            assert failed.value.connection_invalidated
        assert await names(engine) == []


async def test_a_connection_that_is_invalidated_rolls_back(file):
    async with Engine(file) as engine:
        async with engine.connect() as connection:
            await connection.execute(User.__table__.insert(), {"name": "Ada"})
            logical = await logical_of(connection)
            await connection.invalidate()
            assert not logical.is_open
        assert await names(engine) == []


async def test_a_connection_that_is_dropped_rolls_back(file):
    async with Engine(file) as engine:
        connection = await engine.connect()
        await connection.execute(User.__table__.insert(), {"name": "Ada"})
        with pytest.warns(Warning, match="garbage collector is trying to clean up"):
            del connection
            gc.collect()
        async with engine.begin() as connection:
            await connection.execute(User.__table__.insert(), {"name": "Grace"})
        assert await names(engine) == ["Grace"]


async def test_databases_in_memory(tmp_path):
    async with Engine(":memory:") as engine:
        assert isinstance(engine.pool, StaticPool)
    async with Engine("file:shared?mode=memory&cache=shared&uri=true", poolclass=AsyncAdaptedQueuePool) as engine:
        async with engine.connect() as one, engine.connect() as other:
            await one.execute(User.__table__.insert(), {"name": "Ada"})
            await one.commit()
            assert list(await other.scalars(select(User.name))) == ["Ada"]


async def test_options_of_the_engine_are_arguments_of_connect(file, tmp_path):
    attached = tmp_path / "attached.db"
    options = {"tuning": {"attach": {"side": str(attached)}}, "foreign_keys": True, "timeout": 1.0}
    async with Engine(file, connect_args=options) as engine:
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TABLE side.notes (a)"))
            await connection.execute(text("INSERT INTO side.notes VALUES (1)"))
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT a FROM side.notes")) == 1
            with pytest.raises(IntegrityError, match="FOREIGN KEY"):
                await connection.execute(Post.__table__.insert(), {"author_id": 7, "title": "lost"})
            assert isinstance((await logical_of(connection)).mode, Pooled)
    with pytest.raises(TypeError):
        async with Engine(tmp_path / "other.db", connect_args={"absent": 1}):
            pass


async def test_a_text_is_stored_as_it_is_written(place):
    stored = "SELECT changes(), last_insert_rowid() -- total_changes()"
    async with Engine(place) as engine:
        async with engine.begin() as connection:
            await connection.execute(text(f"INSERT INTO users (name) VALUES ('{stored}')"))
        async with engine.connect() as connection:
            found = await connection.execute(text(f"SELECT name AS \"changes()\" FROM users WHERE name = '{stored}'"))
            assert (list(found.keys()), found.scalars().all()) == (["changes()"], [stored])


async def test_a_statement_that_is_not_compiled_holds_nothing(file):
    async with Engine(file) as engine, Engine(file, connect_args={"timeout": 0.05}) as other:
        async with engine.connect() as connection:
            with pytest.raises(OperationalError, match="no such table"):
                await connection.execute(text("INSERT INTO none VALUES (1)"))
            async with other.begin() as second:
                await second.execute(text("INSERT INTO users (name) VALUES ('Ada')"))
