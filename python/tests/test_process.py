"""What happens at the ends of processes, after a fork, and beside the `sqlite3` module."""

from __future__ import annotations

import asyncio
import os
import pathlib
import sqlite3
import subprocess
import sys
import textwrap

import pytest

import flatwater


def run(program, *arguments):
    """Runs a program to its end, which it must reach by itself."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_a_database_that_is_open_at_the_end_is_closed(file):
    program = """
        import asyncio, sys, flatwater
        async def main():
            global db
            db = await flatwater.connect(sys.argv[1])
            await db.execute("CREATE TABLE t (a)")
        asyncio.run(main())
    """
    assert run(program, file) == (0, "", "")
    assert not os.path.exists(f"{file}-wal"), "the last close removes the WAL"


@pytest.mark.parametrize(
    "ending",
    [
        "await asyncio.sleep(0)",
        "return",
        "raise SystemExit(0)",
        "sys.exit(0)",
        "asyncio.get_running_loop().stop()",
        "task.cancel(); await asyncio.sleep(0)",
        "threading.Thread(target=asyncio.run, args=(other(),), daemon=True).start(); time.sleep(0.05)",
    ],
)
def test_a_program_ends_whatever_is_under_way(file, ending):
    program = f"""
        import asyncio, sys, threading, time, flatwater
        endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
        async def other():
            db = await flatwater.connect(sys.argv[1], tuning={{"close_wait": 0.01}})
            await db.query_value(endless)
        async def main():
            global db, tx
            db = await flatwater.connect(sys.argv[1], tuning={{"close_wait": 0.01}})
            await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
            task = asyncio.create_task(db.query_value(endless))
            tx = db.transaction()
            await tx.__aenter__()
            await tx.execute("INSERT INTO t VALUES (1)")
            write = asyncio.create_task(db.execute("INSERT INTO t VALUES (2)"))
            await asyncio.sleep(0.01)
            {ending}
        try:
            asyncio.run(main())
        except RuntimeError as error:
            assert "stopped before" in str(error)
    """
    code, _, errors = run(program, file)
    assert code == 0, errors
    assert "panic" not in errors and "Fatal" not in errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_use_is_refused_and_the_parent_goes_on(file):
    program = """
        import asyncio, os, sys, warnings, flatwater
        # From 3.12 on: the process has threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        async def main():
            async with flatwater.connect(sys.argv[1]) as db:
                await db.execute("CREATE TABLE t (a)")
                child = os.fork()
                if child == 0:
                    try:
                        await db.execute("INSERT INTO t VALUES (1)")
                    except flatwater.ProgrammingError as error:
                        os._exit(7 if "forked" in str(error) else 8)
                    os._exit(9)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
                await db.execute("INSERT INTO t VALUES (2)")
                print(*(await db.query_one("SELECT a FROM t")))
        asyncio.run(main())
    """
    assert run(program, file) == (0, "2", "")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child opens nothing")
@pytest.mark.parametrize("how", ["os.fork", "multiprocessing"])
def test_after_a_fork_a_child_opens_other_files_and_the_same_file(file, how):
    program = """
        import asyncio, multiprocessing, os, sys, threading, warnings, flatwater
        from flatwater import blocking
        # From 3.12 on: the process has threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        file, how = sys.argv[1], HOW
        ROWS, CHILDREN = 20, 5

        async def use(path):
            async with flatwater.connect(path) as db:
                await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
                before = await db.query_value("SELECT count(*) FROM t")
                async with db.live("SELECT count(*) FROM t") as live:
                    await anext(aiter(live))
                    await asyncio.gather(*(db.execute("INSERT INTO t VALUES (1)") for _ in range(ROWS)))
                    async for (now,), *_ in live:
                        if now >= before + ROWS:
                            break

        def child(number):
            try:
                parents.query("SELECT 1")
            except flatwater.ProgrammingError as error:
                assert "forked" in str(error), error
            else:
                raise AssertionError("what the parent opened was served")
            asyncio.run(use(file + f".{number}"))
            asyncio.run(use(file))
            with blocking.connect(file) as own:
                own.execute("INSERT INTO t VALUES (2)")

        def start(number):
            if how == "multiprocessing":
                process = multiprocessing.get_context("fork").Process(target=child, args=(number,))
                process.start()
                return lambda: process.join() or process.exitcode
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    child(number)
                    code = 0
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        written, stop = 0, threading.Event()
        def write():
            global written
            while not stop.is_set():
                parents.execute("INSERT INTO t VALUES (3)")
                written += 1

        parents = blocking.connect(file)
        parents.execute("CREATE TABLE IF NOT EXISTS t (a)")
        writer = threading.Thread(target=write)
        writer.start()
        codes = [join() for join in [start(number) for number in range(CHILDREN)]]
        stop.set()
        writer.join()
        assert os.path.exists(file + "-wal"), "the locks of the parent are gone"
        assert codes == [0] * CHILDREN, codes
        assert parents.query_value("SELECT count(*) FROM t") == written + CHILDREN * (ROWS + 1)
        assert parents.query_value("PRAGMA integrity_check") == "ok"
        parents.close()
        print("fine")
    """
    code, out, errors = run(program.replace("HOW", repr(how)), file)
    assert (code, out) == (0, "fine"), errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_that_exits_leaves_the_files_of_its_parent_alone(file):
    program = """
        import asyncio, os, sys, flatwater
        async def main():
            async with flatwater.connect(sys.argv[1]) as db:
                await db.execute("CREATE TABLE t (a)")
                if os.fork() == 0:
                    sys.exit(0)
                os.wait()
                await db.execute("INSERT INTO t VALUES (2)")
                print(await db.query_value("SELECT count(*) FROM t"))
        asyncio.run(main())
    """
    code, out, errors = run(program, file)
    assert (code, out) == (0, "1"), errors


def uri(path):
    """A path in the longest form that SQLite reads."""
    return f"file://localhost{str(path).replace('t', '%74')}?mode=rw#here"


@pytest.mark.parametrize(
    "form", [str, os.fsencode, pathlib.Path, lambda path: f"file:{path}?mode=rw", uri, os.path.relpath]
)
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
async def test_the_sqlite3_module_does_not_open_a_file_that_is_open_here(file, tmp_path, form, link):
    """The module has a SQLite of its own, whose close drops the locks of the process."""
    path = file
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        if link is not None:
            path = tmp_path / "link.db"
            link(file, path)
        with pytest.raises(flatwater.ProgrammingError, match="is open in this process") as caught:
            sqlite3.connect(form(path), uri=True)
        assert "allow_second_sqlite" in caught.value.hint
        with pytest.raises(sqlite3.ProgrammingError):
            await asyncio.to_thread(sqlite3.connect, form(path), uri=True)
        # Other files are none of its business, and the database is as it was.
        for other in [":memory:", tmp_path / "other.db", ""]:
            sqlite3.connect(other).close()
        with pytest.raises(TypeError):
            sqlite3.connect(5.5)
        await db.execute("INSERT INTO t VALUES (1)")
    plain = sqlite3.connect(form(path), uri=True)
    assert plain.execute("SELECT a FROM t").fetchall() == [(1,)]
    plain.close()


def test_the_hook_imports_nothing_when_it_is_called(file):
    """Neither at an event of a program that runs, nor while the interpreter ends and modules lose their names."""
    program = """
        import sqlite3, sys, flatwater
        from flatwater import blocking

        class AtTheEnd:
            def __del__(self):
                self.connect(":memory:").close()
                print("opened")

        at_the_end = AtTheEnd()
        at_the_end.connect = sqlite3.connect
        db = blocking.connect(sys.argv[1])
        imported = []
        sys.addaudithook(lambda event, args: imported.append(args[0]) if event == "import" else None)
        sqlite3.connect(":memory:").close()
        print(imported)
        # It is gone when the module is.
        sys.modules["at the end"] = at_the_end
        del at_the_end
    """
    assert run(program, file) == (0, "[]\nopened", "")


async def test_a_database_that_only_reads_leaves_the_sqlite3_module_alone(file):
    sqlite3.connect(file).execute("CREATE TABLE t (a)").connection.close()
    async with flatwater.connect(file, read_only=True) as db:
        plain = sqlite3.connect(file)
        plain.execute("INSERT INTO t VALUES (1)")
        plain.commit()
        plain.close()
        assert await db.query_value("SELECT a FROM t") == 1


async def test_the_sqlite3_module_beside_it_loses_nothing(file):
    """Where the program has allowed it."""
    async with flatwater.connect(file, tuning={"allow_second_sqlite": True}) as db:
        await db.execute("CREATE TABLE t (a)")
        second = sqlite3.connect(file)
        assert second.execute("SELECT count(*) FROM t").fetchone() == (0,)
        second.close()
        for n in range(100):
            await db.execute("INSERT INTO t VALUES (?)", (n,))
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM t") == 100


@pytest.mark.skipif(sys.platform != "linux", reason="another copy is looked for on Linux only")
async def test_a_file_that_the_sqlite3_module_has_open_is_refused(file):
    other = sqlite3.connect(file)
    other.execute("PRAGMA journal_mode = wal")
    other.execute("CREATE TABLE t (a)")
    try:
        with pytest.raises(flatwater.ProgrammingError) as caught:
            await flatwater.connect(file)
        assert "SQLite" in str(caught.value) and caught.value.hint
        async with flatwater.connect(file, tuning={"allow_second_sqlite": True}) as db:
            assert await db.query_value("SELECT count(*) FROM t") == 0
    finally:
        other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="another copy is looked for on Linux only")
async def test_a_file_that_the_sqlite3_module_attaches_is_no_longer_written(file):
    """The interpreter reports no ATTACH. It is found by the look that is taken every few seconds."""
    other = sqlite3.connect(":memory:")
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        other.execute("ATTACH ? AS a", (str(file),))
        assert other.execute("SELECT count(*) FROM a.t").fetchone() == (0,)
        written = 0
        with pytest.raises(flatwater.ProgrammingError, match="SQLite"):
            while True:
                await db.execute("INSERT INTO t VALUES (?)", (written,))
                written += 1
                await asyncio.sleep(0.01)
        assert await db.query_value("SELECT count(*) FROM t") == written
    other.close()
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM t") == written


async def test_the_wheel_has_the_extensions_that_programs_expect():
    async with flatwater.connect(":memory:") as db:
        assert await db.query_value("SELECT sqrt(16.0)") == 4.0
        assert await db.query_value("SELECT json_extract('{\"a\":[1,2]}', '$.a[1]')") == 2
        await db.executescript("CREATE VIRTUAL TABLE f USING fts5(a); CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)")
