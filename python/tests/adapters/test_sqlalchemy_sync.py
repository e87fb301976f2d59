"""The synchronous driver of SQLAlchemy: what it adds to `flatwater.dbapi`. SQLAlchemy's suite and Alembic's tests on it
run in `make test-python-suites-whole`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Engine, ForeignKey, create_engine, event, exc, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import flatwater
from flatwater import dbapi
from flatwater._logical.pooled import Pooled


class Base(DeclarativeBase):
    pass


class Parent(Base):
    __tablename__ = "parents"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


class Child(Base):
    __tablename__ = "children"

    id: Mapped[int] = mapped_column(primary_key=True)
    parent: Mapped[int] = mapped_column(ForeignKey("parents.id", ondelete="CASCADE"))


@contextmanager
def opened(file: Path, **arguments: Any) -> Iterator[Engine]:
    engine = create_engine(f"sqlite+flatwater_sync:///{file}", connect_args={"foreign_keys": True, **arguments})
    try:
        Base.metadata.create_all(engine)
        yield engine
    finally:
        engine.dispose()


def test_a_session_writes_and_reads_on_pooled_connections(file: Path) -> None:
    with opened(file) as engine:
        with Session(engine) as session, session.begin():
            session.add_all([Parent(name="Ada"), Parent(name="Eve")])
            with pytest.raises(exc.IntegrityError) as refused, session.begin_nested():
                session.execute(text("INSERT INTO parents (name) VALUES ('Ada')"))
            assert isinstance(refused.value.orig, flatwater.UniqueViolation)
        with engine.connect() as connection:
            assert connection.scalars(select(Parent.name).where(Parent.name.regexp_match("^A"))).all() == ["Ada"]
            driver: Any = connection.connection.driver_connection
            assert isinstance(driver, dbapi.Connection) and type(driver._logical.mode) is Pooled
            with pytest.raises(exc.OperationalError, match="no such column"):
                connection.execute(text('SELECT "none" FROM parents'))


def test_threads_that_write_wait_for_each_other(file: Path) -> None:
    with opened(file) as engine:
        event.listen(engine, "connect", lambda connection, record: setattr(connection, "isolation_level", None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        with Session(engine) as session, session.begin():
            session.add(Parent(id=1, name="0"))

        def count(_: int) -> None:
            for _ in range(5):
                with Session(engine) as session, session.begin():
                    parent = session.get_one(Parent, 1)
                    parent.name = str(int(parent.name) + 1)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(count, range(4)))
        with Session(engine) as session:
            assert session.get_one(Parent, 1).name == "20"


def rebuild(connection: Any, breaks: bool = False) -> None:
    with Operations(MigrationContext.configure(connection)).batch_alter_table("parents", recreate="always") as batch:
        batch.alter_column("name", new_column_name="title")
    if breaks:
        connection.execute(text("DELETE FROM parents"))


def test_a_batch_of_alembic_keeps_the_rows_that_refer_to_its_table(file: Path) -> None:
    with opened(file) as engine:
        with Session(engine) as session, session.begin():
            session.add(Parent(id=1, name="Ada"))
            session.flush()
            session.add(Child(parent=1))
        with pytest.raises(exc.IntegrityError, match="1 row.s., such as rowid 1 of children, miss parents"):
            with engine.begin() as connection:
                rebuild(connection, breaks=True)
        with engine.begin() as connection:
            # As with `sqlite3`, a CREATE before the first write is committed by itself.
            connection.execute(text("DROP TABLE _alembic_tmp_parents"))
        with engine.connect() as connection:
            connection.execute(text("UPDATE parents SET name = 'Eve'"))
            with pytest.raises(exc.OperationalError, match="a transaction that has begun"):
                rebuild(connection)
        with engine.begin() as connection:
            rebuild(connection)
        with engine.connect() as connection:
            assert connection.execute(text("SELECT title FROM parents")).all() == [("Ada",)]
            assert connection.execute(text("SELECT parent FROM children")).all() == [(1,)]
            assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
