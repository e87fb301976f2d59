"""Opening, closing, and running SQL."""

from __future__ import annotations

import asyncio
import datetime
import gc

import pyarrow
import pytest

import flatwater
from flatwater import blocking


async def test_connect_is_awaited_or_a_context_manager(place):
    db = await flatwater.connect(place)
    assert await db.query_value("SELECT 1") == 1
    await db.close()
    async with flatwater.connect(place) as db:
        assert await db.query_value("SELECT 2") == 2
    opened = await asyncio.create_task(flatwater.connect(place))
    assert await opened.query_value("SELECT 3") == 3
    await opened.close()


async def test_after_close_calls_are_refused_and_closing_twice_is_no_error(place):
    db = await flatwater.connect(place)
    await db.close()
    await db.close()
    with pytest.raises(flatwater.ProgrammingError, match="the database is closed") as caught:
        await db.execute("CREATE TABLE t (a)")
    assert caught.value.kind == "closed"


async def test_writes_that_were_begun_before_a_close_are_executed(file):
    db = await flatwater.connect(file)
    await db.execute("CREATE TABLE t (a)")
    writes = [asyncio.create_task(db.execute("INSERT INTO t VALUES (?)", (n,))) for n in range(100)]
    await asyncio.sleep(0)
    await db.close()
    assert [(await write).changes for write in writes] == [1] * 100
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM t") == 100


async def test_a_database_that_is_dropped_open_warns_and_is_closed(file):
    db = await flatwater.connect(file)
    await db.execute("CREATE TABLE t (a)")
    with pytest.warns(ResourceWarning, match="unclosed database"):
        del db
        gc.collect()
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_execute_returns_what_it_changed(place):
    async with flatwater.connect(place) as db:
        done = await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        assert (done.changes, done.last_insert_rowid) == (0, None)
        done = await db.execute("INSERT INTO t VALUES (7, 'x'), (8, 'y')")
        assert (done.changes, done.last_insert_rowid) == (2, 8)
        assert repr(done) == "ExecuteResult(changes=2, last_insert_rowid=8)"


async def test_parameters_are_positional_or_named(place):
    async with flatwater.connect(place) as db:
        for params in [(1, "x"), [1, "x"]]:
            assert await db.query_one("SELECT ?, ?", params) == (1, "x")
        assert await db.query_one("SELECT :a, @b, $c", {"a": 1, "b": 2, "c": 3}) == (1, 2, 3)
        assert await db.query_one("SELECT :a", {":a": 1}) == (1,)
        assert await db.query_one("SELECT ?2, ?1", (1, 2)) == (2, 1)
        with pytest.raises(flatwater.ProgrammingError):
            await db.query_one("SELECT ?, ?", (1,))
        with pytest.raises(flatwater.ProgrammingError):
            await db.query_one("SELECT :a", {"b": 1})
        with pytest.raises(flatwater.ProgrammingError, match=r"\(value,\)"):
            await db.query_one("SELECT ?", "abc")
        with pytest.raises(flatwater.ProgrammingError, match="a sequence or a mapping, not int"):
            await db.query_one("SELECT ?", 5)


async def test_executemany_is_all_or_nothing(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        assert await db.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "y")]) == 2
        assert await db.executemany("INSERT INTO t VALUES (:id, :a)", ({"id": n, "a": n} for n in (3, 4))) == 2
        assert await db.executemany("INSERT INTO t VALUES (?, ?)", []) == 0
        with pytest.raises(flatwater.IntegrityError):
            await db.executemany("INSERT INTO t VALUES (?, ?)", [(5, "x"), (1, "y")])
        with pytest.raises(ZeroDivisionError):
            await db.executemany("INSERT INTO t VALUES (?, ?)", ((n, 1 // (7 - n)) for n in (6, 7)))
        with pytest.raises(flatwater.ProgrammingError, match=r"\[\(value,\), \.\.\.\]"):
            await db.executemany("INSERT INTO t (a) VALUES (?)", "abc")
        assert await db.query_value("SELECT count(*) FROM t") == 4


async def test_executemany_takes_rows_in_slices(file, other_task):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a, b)")
        async with other_task() as other:
            assert await db.executemany("INSERT INTO t VALUES (?, ?)", ((n, str(n)) for n in range(100_000))) == 100_000
        assert other.turns > 3
        assert await db.query_one("SELECT count(*), sum(a), max(b) FROM t") == (100_000, 4999950000, "99999")


async def test_a_table_is_taken_in_slices_and_in_its_place(file, other_task):
    table = pyarrow.table({"a": list(range(300_000))})
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        async with other_task() as other:
            calls = db.executemany("INSERT INTO t VALUES (?)", table), db.execute("UPDATE t SET a = -1")
            written, updated = await asyncio.gather(*calls)
        assert other.turns > 3 and (written, updated.changes) == (300_000, 300_000)


async def test_query_many_returns_the_rows_of_all_runs(place):
    insert = "INSERT INTO t (a) VALUES (?) RETURNING id, a"
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)")
        rows = await db.query_many(insert, [("x",), ("y",)])
        assert rows == [(1, "x"), (2, "y")] and rows.columns == ("id", "a")
        assert await db.query_many(insert, ((n,) for n in range(2)), into=dict) == [
            {"id": 3, "a": 0},
            {"id": 4, "a": 1},
        ]
        assert await db.query_many(insert, [], into=tuple) == []
        async with db.transaction() as tx:
            assert await tx.query_many("DELETE FROM t WHERE id = :id RETURNING a", [{"id": 1}, {"id": 1}]) == [("x",)]
        with pytest.raises(flatwater.UniqueViolation, match="row 1, counted from 0"):
            await db.query_many(insert, [("z",), ("y",)])
        with pytest.raises(flatwater.ProgrammingError, match="`query_many`") as refused:
            await db.executemany(insert, [("z",)])
        assert refused.value.code == "returns_rows"
        statement = await db.prepare("SELECT json_array(?) AS a")
        assert await statement.query_many([(1,), (2,)], types={"a": "json"}) == [([1],), ([2],)]
        assert await db.query_value("SELECT count(*) FROM t") == 3


async def test_a_script_runs_several_statements(place):
    async with flatwater.connect(place) as db:
        assert await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)") is None
        assert await db.query_value("SELECT count(*) FROM t") == 2


async def test_a_batch_is_atomic_and_returns_a_result_each(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        first, second = await db.batch(
            [("INSERT INTO t (a) VALUES (?) RETURNING id, a", ("x",)), "UPDATE t SET a = 'y'"]
        )
        assert first.rows == [(1, "x")]
        assert (second.changes, second.rows) == (1, None)
        with pytest.raises(flatwater.IntegrityError):
            await db.batch([("INSERT INTO t VALUES (?, ?)", (2, "z")), ("INSERT INTO t VALUES (?, ?)", (1, "z"))])
        with pytest.raises(flatwater.ProgrammingError, match="executescript"):
            await db.batch("DELETE FROM t")
        assert await db.query_value("SELECT count(*) FROM t") == 1


async def test_a_batch_takes_statements_in_slices(file, other_task):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        async with other_task() as other:
            taken = 0

            def statements():
                """There are more until the other task has had turns."""
                nonlocal taken
                while other.turns < 3:
                    taken += 1
                    assert taken < 1_000_000, "the loop is held"
                    yield "INSERT INTO t VALUES (?)", (taken,)

            results = await db.batch(statements())
        assert len(results) == taken > 3
        assert await db.query_one("SELECT count(*), max(a) FROM t") == (taken, taken)


async def test_a_batch_whose_statements_fail_does_nothing(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        with pytest.raises(ZeroDivisionError):
            await db.batch(f"INSERT INTO t VALUES ({1 // (2 - n)})" for n in (1, 2))
        with pytest.raises(TypeError, match=r"\(sql, params\) or sql"):
            await db.batch(["INSERT INTO t VALUES (1)", ("INSERT INTO t VALUES (?)", 1, 2)])
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_query_forms(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
        assert await db.query("SELECT a, b FROM t") == [(1, "x"), (2, None)]
        for one in (db.query_one, db.query_optional):
            assert await one("SELECT a FROM t WHERE a = ?", (2,)) == (2,)
        assert await db.query_optional("SELECT a FROM t WHERE a = ?", (3,)) is None
        for value in (db.query_value, db.query_optional_value):
            assert await value("SELECT b FROM t WHERE a = 1") == "x"
            assert await value("SELECT b FROM t WHERE a = 2") is None
        assert await db.query_optional_value("SELECT b FROM t WHERE a = 3") is None
        assert await db.query_json("SELECT a, b FROM t") == '[{"a":1,"b":"x"},{"a":2,"b":null}]'
        assert await db.query("INSERT INTO t VALUES (3, 'z') RETURNING a") == [(3,)]


async def test_a_call_that_needs_a_row_says_so(place):
    none = "SELECT a FROM t WHERE a = ?"
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        statement = await db.prepare(none)
        calls = [db.query_one(none, (3,), into=into) for into in (None, dict, tuple, str)]
        for call in [*calls, db.query_value(none, (3,)), statement.query_one((3,)), statement.query_value((3,))]:
            optional = {"query_one": "query_optional", "query_value": "query_optional_value"}[call.__name__]
            with pytest.raises(flatwater.RowNotFound, match="the query returned no row") as caught:
                await call
            error = caught.value
            assert isinstance(error, flatwater.ProgrammingError)
            assert (error.kind, error.sql, error.retryable) == ("row_not_found", none, False)
            assert f"`{optional}`" in error.hint and error.hint in str(error)
            assert (error.sqlite_errorcode, error.sqlite_errorname) == (None, None)
        for found in (await statement.query_optional((3,)), await statement.query_optional_value((3,))):
            assert found is None
        async with db.snapshot() as snapshot:
            with pytest.raises(flatwater.RowNotFound):
                await snapshot.query_value(none, (3,))
            assert await snapshot.query_optional(none, (3,)) is None
        async with db.transaction() as tx:
            with pytest.raises(flatwater.RowNotFound):
                await tx.query_one("UPDATE t SET a = 1 RETURNING a")
            assert tx.in_transaction and await tx.query_optional("DELETE FROM t RETURNING a") is None
        # Of a long text the beginning is shown, and what was bound is not.
        sql = flatwater.Sql("SELECT a FROM t WHERE a IN ").bind_list(["secret"] * 300)
        with pytest.raises(flatwater.RowNotFound) as caught:
            await db.query_one(sql)
        assert caught.value.sql.startswith("SELECT a FROM t WHERE a IN (?, ?") and caught.value.sql.endswith("...")
        assert len(caught.value.sql) == 203 and "secret" not in f"{caught.value} {caught.value.__dict__}"


async def test_wrong_uses_are_refused_with_a_hint(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE users (a)")
        for sql, hint in [
            ("SELECT 1", "`query`"),
            ("BEGIN", "async with db.transaction()"),
            ("INSERT INTO usres VALUES (1)", "users"),
        ]:
            with pytest.raises(flatwater.Error) as caught:
                await db.execute(sql)
            assert hint in caught.value.hint
            assert caught.value.hint in str(caught.value)


@pytest.mark.parametrize(
    "name", ["fetchall", "fetchone", "commit", "execute_many", "fetchval", "row_factory", "load_extension", "cursor"]
)
async def test_names_of_other_libraries_are_answered_with_a_hint(name):
    async with flatwater.connect(":memory:") as db:
        with pytest.raises(AttributeError, match=f"no attribute '{name}': "):
            getattr(db, name)
        assert not hasattr(db, name)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
            db.nonsense


@pytest.mark.parametrize("module", [flatwater, blocking])
def test_names_that_a_module_does_not_have_are_answered_with_a_hint(module):
    for name, hint in [
        ("Executed", "ExecuteResult"),
        ("Checkpointed", "CheckpointInfo"),
        ("Cursor", "Batches"),
        ("shutdown", "process.close_all"),
    ]:
        with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute '{name}': .*{hint}") as caught:
            getattr(module, name)
        assert ("await" in str(caught.value)) == (name == "shutdown" and module is flatwater)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        module.nonsense
    assert not hasattr(module, "Cursor")
    with pytest.raises(ImportError):
        from flatwater import Executed  # noqa: F401


async def test_a_database_that_is_not_open_yet_says_so(file):
    connecting = flatwater.connect(file)
    with pytest.raises(AttributeError, match="no attribute 'query': it is not open yet; `await` it"):
        connecting.query("SELECT 1")
    with pytest.raises(AttributeError, match="no attribute 'fetchall': it is not open yet"):
        connecting.fetchall()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        connecting.nonsense
    async with connecting as db:
        assert await db.query_value("SELECT 1") == 1


async def test_options_are_checked(file):
    with pytest.raises(TypeError, match='did you mean "busy_timeout"'):
        await flatwater.connect(file, busy_timeuot=1)
    with pytest.raises(TypeError, match='did you mean "busy_timeout"'):
        await flatwater.connect(file, busy_timeuot=None)
    with pytest.raises(TypeError, match="'isolation_level': there is autocommit"):
        await flatwater.connect(file, isolation_level=None)
    with pytest.raises(TypeError, match="'check_same_thread': any task"):
        blocking.connect(file, check_same_thread=False)
    with pytest.raises(TypeError, match='"readers" must be a non-negative number'):
        await flatwater.connect(file, readers="many")
    with pytest.raises(TypeError, match="'max_open': .*`flatwater.process.set_max_open"):
        await flatwater.connect(file, max_open=3)
    async with flatwater.connect(file, busy_timeout=1.5, readers=2, foreign_keys=False, durability="full") as db:
        assert await db.query_value("PRAGMA foreign_keys") == 0
    with pytest.raises(flatwater.OperationalError):
        await flatwater.connect(file.parent / "nowhere" / "test.db")


async def test_what_few_programs_set_is_in_tuning(file):
    tuning = {"statement_cache": 7, "group": False, "snapshot_age": datetime.timedelta(seconds=1)}
    async with flatwater.connect(file, journal="keep", tuning=tuning) as db:
        assert db.stats()["journal"] == "delete"
    with blocking.connect(file, journal="wal", tuning={"queue": None}) as db:
        assert db.stats()["journal"] == "wal"
    async with flatwater.connect(file, tuning=None) as db:
        assert await db.query_value("SELECT 1") == 1
    for wrong, said in [
        ({"queue": 10}, 'the option "queue" is not a keyword: pass it as tuning={"queue": ...}'),
        ({"attach": {}}, 'the option "attach" is not a keyword: pass it as tuning={"attach": ...}'),
        ({"queue": None}, 'the option "queue" is not a keyword: pass it as tuning={"queue": ...}'),
        ({"allow_second_sqlit": True}, 'did you mean tuning={"allow_second_sqlite": ...}?'),
        ({"tuning": {"qeue": 10}}, 'no key of `tuning` "qeue"; did you mean "queue"?'),
        ({"tuning": {"qeue": None}}, 'no key of `tuning` "qeue"; did you mean "queue"?'),
        ({"tuning": {"readers": 2}}, '"readers" is not a key of `tuning`: pass it as the keyword readers=...'),
        ({"tuning": {"nonsense": 2}}, "there are: allow_network_filesystem, "),
        ({"tuning": {"max_open": 2}}, "`flatwater.process.set_max_open"),
        ({"tuning": {"queue": "long"}}, '"queue" must be a non-negative number'),
        ({"tuning": "queue"}, 'the option "tuning" must be a dict'),
        ({"nonsense": 1}, "there are: busy_timeout, checkpoint, "),
        (
            {"migrations": {"001_init": "SELECT 1"}},
            "migrations are pairs of a name and its SQL, or the path of a folder",
        ),
        ({"migrations": 5}, "migrations are pairs of a name and its SQL, or the path of a folder"),
    ]:
        for connect in (flatwater.connect, blocking.connect):
            with pytest.raises(TypeError) as caught:
                await connect(file, **wrong)
            assert said in str(caught.value)


def test_every_option_has_a_type():
    from flatwater import _native

    types = flatwater.Options.__annotations__, flatwater.Tuning.__annotations__
    # `into` is a keyword by itself, which says what the calls of the database return.
    assert (sorted([*types[0], "into"]), sorted(types[1])) == _native.options()


async def test_durations_are_seconds_or_timedeltas(file):
    idle = datetime.timedelta(milliseconds=50)
    async with flatwater.connect(file, tuning={"transaction_idle": idle}) as db:
        with pytest.raises(flatwater.OperationalError, match="50ms"):
            async with db.transaction() as tx:
                while tx.in_transaction:
                    await asyncio.sleep(0.01)
                await tx.execute("CREATE TABLE t (a)")


async def test_migrations_of_the_options_are_applied_before_the_database_is_open(place):
    migrations = [("0001_users", "CREATE TABLE users (id INTEGER PRIMARY KEY)")]
    async with flatwater.connect(place, migrations=iter(migrations)) as db:
        assert await db.query_value("SELECT count(*) FROM users") == 0


async def test_attached_files_are_there(file, tmp_path):
    async with flatwater.connect(tmp_path / "other.db") as other:
        await other.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (5)")
    async with flatwater.connect(file, tuning={"attach": {"other": tmp_path / "other.db"}}) as db:
        assert await db.query_value("SELECT a FROM other.t") == 5


async def test_migrations_are_applied_once(place, tmp_path):
    async with flatwater.connect(place) as db:
        migrations = [("0001_users", "CREATE TABLE users (id INTEGER PRIMARY KEY)")]
        assert await db.migrate(migrations) == ["0001_users"]
        assert await db.migrate(migrations) == []
        folder = tmp_path / "migrations"
        folder.mkdir()
        (folder / "0001_users.sql").write_text(migrations[0][1])
        (folder / "0002_name.sql").write_text("ALTER TABLE users ADD COLUMN name TEXT")
        assert await db.migrate(folder) == ["0002_name"]


async def test_a_folder_without_a_migration_is_refused_and_an_empty_list_is_not(place, tmp_path):
    folder = tmp_path / "migratoins"
    folder.mkdir()
    (folder / "0001_users.down.sql").write_text("DROP TABLE users")
    with pytest.raises(flatwater.ProgrammingError, match="migratoins"):
        await flatwater.connect(place, migrations=folder)
    async with flatwater.connect(place, migrations=[]) as db:
        with pytest.raises(flatwater.ProgrammingError, match="migratoins"):
            await db.migrate(folder)
        assert await db.migrate([]) == []


async def test_a_checkpoint_copies_the_wal(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        done = await db.checkpoint("truncate")
        assert (done.frames, done.copied) == (0, 0)
        with pytest.raises(ValueError, match="passive"):
            await db.checkpoint("fast")
