// The surface of node-sqlite3: what its own tests do not look at, and what is better here.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import sqlite3, { Database, verbose } from "../../dist/sqlite3.mjs";
import { open } from "../../dist/index.mjs";
import { table, written } from "../../suites/sqlite3/table.mjs";
import { folder, run, until } from "../support.mjs";

const required = createRequire(import.meta.url)("../../dist/sqlite3.js");

/** What a call comes to: its callback's error, or what it is told, and its `this`. */
export const called = (on, name, ...given) =>
  new Promise((resolve, reject) => {
    on[name](...given, function (error, value) {
      error ? reject(error) : resolve({ value, self: this });
    });
  });

/** Paths of files, and databases, which are closed before the files go. */
function places(t) {
  const closed = [];
  t.after(() => Promise.all(closed.map((close) => close().catch(() => {}))));
  const at = folder(t);
  const opened = (...given) => {
    const db = new Database(...given);
    closed.push(() => called(db, "close"));
    return db;
  };
  return { path: (name = "t.db") => join(at, name), opened, closed };
}

const database = (t, ...given) => places(t).opened(...(given.length > 0 ? given : [":memory:"]));

test("import and require give one module, which verbose returns", () => {
  assert.equal(sqlite3, required);
  assert.equal(sqlite3.default, required);
  assert.equal(Database, required.Database);
  assert.equal(verbose, required.verbose);
  assert.match(sqlite3.VERSION, /^3\.\d+\.\d+$/);
  assert.equal(sqlite3.CONSTRAINT, 19);
});

test("a transaction is text, and belongs to its database only", async (t) => {
  const { path, opened } = places(t);
  const [one, other] = [opened(path()), opened(path())];
  await called(one, "exec", "CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1)");
  assert.deepEqual((await called(other, "all", "SELECT * FROM t")).value, []);
  other.configure("busyTimeout", 10);
  const locked = { message: "SQLITE_BUSY: database is locked", errno: 5, code: "SQLITE_BUSY" };
  await assert.rejects(called(other, "run", "INSERT INTO t VALUES (2)"), locked);
  await called(one, "run", "COMMIT");
  const { self } = await called(other, "run", "INSERT INTO t VALUES (2)");
  assert.deepEqual([self.lastID, self.changes], [2, 1]);
  await assert.rejects(called(one, "run", "COMMIT"), /cannot commit - no transaction is active/);
});

test("it shares a file with a database of Flatwater, whose live queries see its commits", async (t) => {
  const { path, opened, closed } = places(t);
  const there = await open(path());
  closed.push(() => there.close());
  await there.execute("CREATE TABLE t (a)");
  const db = opened(path());
  const live = there.live("SELECT a FROM t")[Symbol.asyncIterator]();
  assert.deepEqual((await live.next()).value, []);
  await called(db, "run", "INSERT INTO t VALUES (?)", 7);
  assert.deepEqual((await live.next()).value, [{ a: 7 }]);
  await live.return();
});

test("a callback that throws ends in uncaughtException, and holds up nothing", async () => {
  const { output } = await run(`
    const { default: sqlite3 } = await import(${JSON.stringify(new URL("../../dist/sqlite3.mjs", import.meta.url).href)});
    process.on("uncaughtException", (error) => console.log("uncaught", error.message));
    const db = new sqlite3.Database(":memory:");
    db.serialize();
    db.run("CREATE TABLE t (a)", () => { throw new Error("of run"); });
    db.each("SELECT 1 AS a UNION SELECT 2", (error, row) => { throw new Error("of each " + row.a); });
    db.once("trace", () => { throw new Error("of trace"); });
    db.exec("SELECT 1", () => { throw new Error("of exec"); });
    db.all("SELECT * FROM t", (error, rows) => console.log("rows", rows.length));
    db.close(() => { console.log("closed"); throw new Error("of close"); });
  `);
  const lines = ["of run", "of each 1", "of each 2", "of trace", "of exec"].map((of) => `uncaught ${of}`);
  assert.deepEqual(output.trim().split("\n"), [...lines, "rows 0", "closed", "uncaught of close"]);
});

test("an error that nobody is called back with is an event of the statement, and then of the process", async () => {
  const { output } = await run(`
    const { default: sqlite3 } = await import(${JSON.stringify(new URL("../../dist/sqlite3.mjs", import.meta.url).href)});
    process.on("uncaughtException", (error) => console.log("uncaught", error.code));
    const db = new sqlite3.Database(":memory:");
    db.run("SELECT * FROM nowhere");
    const statement = db.prepare("SELEC 1");
    statement.on("error", (error) => console.log("event", error.message));
    db.exec("SELEC");
    db.close(() => console.log("closed"));
  `);
  const expected = ["uncaught SQLITE_ERROR", 'event SQLITE_ERROR: near "SELEC": syntax error', "uncaught SQLITE_ERROR"];
  assert.deepEqual(output.trim().split("\n").sort(), [...expected, "closed"].sort());
});

test("callbacks have the context of their calls", async (t) => {
  const context = new AsyncLocalStorage();
  const db = database(t);
  const told = await Promise.all(
    ["a", "b"].map((name) =>
      context.run(name, () => new Promise((resolve) => db.get("SELECT 1", () => resolve(context.getStore())))),
    ),
  );
  assert.deepEqual(told, ["a", "b"]);
});

test("values are stored as node-sqlite3 stores them", async (t) => {
  const db = database(t);
  const typeOf = async (value) => Object.values((await called(db, "get", "SELECT typeof(?)", [value])).value)[0];
  const values = [1, 2 ** 31, 1.5, -0, true, null, "a", NaN, new Date(5), new Date(2 ** 40), /x/, {}, Buffer.of(1)];
  const types = ["integer", "real", "real", "integer", "integer", "null", "text", "null", "real", "real"];
  assert.deepEqual(await Promise.all(values.map(typeOf)), [...types, "text", "text", "blob"]);
  // As SQLite does where nothing is encrypted.
  await called(db, "run", "PRAGMA KEY = 'secret'");
  const { value } = await called(db, "get", "SELECT 9007199254740993 AS big, x'01' AS bytes, 1 AS twice, 2 AS twice");
  assert.deepEqual(value, { big: 9007199254740992, bytes: Buffer.of(1), twice: 2 });
});

test("statements are parameters' and cursors' own", async (t) => {
  const db = database(t);
  await called(db, "exec", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
  const statement = db.prepare("SELECT a FROM t WHERE a >= ? ORDER BY a", 2);
  const got = async (...given) => (await called(statement, "get", ...given)).value?.a;
  assert.deepEqual([await got(), await got(), await got(), await got()], [2, 3, undefined, undefined]);
  assert.deepEqual([await got(1), await got()], [1, 2]);
  await assert.rejects(called(statement, "get", 1, 2), { message: "SQLITE_RANGE: column index out of range" });
  await assert.rejects(called(db, "close"), /SQLITE_BUSY: unable to close due to unfinalized statements/);
  await called(statement, "finalize");
  await assert.rejects(called(statement, "get"), /SQLITE_MISUSE: Statement is already finalized/);
});

test("lastID and changes are those of the connection", async (t) => {
  const db = database(t);
  const told = async (sql) => {
    const { self } = await called(db, "run", sql);
    return [self.lastID, self.changes];
  };
  assert.deepEqual(await told("CREATE TABLE t (a PRIMARY KEY)"), [0, 0]);
  assert.deepEqual(await told("INSERT INTO t VALUES (1), (2)"), [2, 2]);
  await called(db, "exec", "INSERT INTO t VALUES (3); UPDATE t SET a = a + 10");
  assert.deepEqual(await told("SELECT 1"), [3, 3]);
  await assert.rejects(called(db, "run", "INSERT OR FAIL INTO t VALUES (4), (11)"), { code: "SQLITE_CONSTRAINT" });
  assert.deepEqual(await told("CREATE TABLE u (a)"), [4, 1]);
});

test("an interrupt ends what runs, and no more", async (t) => {
  const db = database(t);
  const endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
  let isOver = false;
  const ended = called(db, "all", endless).finally(() => (isOver = true));
  void until(() => {
    if (db.open && !isOver) db.interrupt();
    return isOver;
  });
  await assert.rejects(ended, { message: "SQLITE_INTERRUPT: interrupted", errno: 9 });
  assert.deepEqual((await called(db, "get", "SELECT 1 AS a")).value, { a: 1 });
});

test("databases in memory have names, and a file is opened once in the cache", async (t) => {
  const mode = sqlite3.OPEN_URI | sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE;
  const [one, other] = [1, 2].map(() => database(t, "file:shared?mode=memory&cache=shared", mode));
  await called(one, "exec", "CREATE TABLE t (a)");
  assert.deepEqual((await called(other, "all", "SELECT * FROM t")).value, []);
  const alone = database(t, "file:shared?mode=memory", mode);
  await assert.rejects(called(alone, "all", "SELECT * FROM t"), /no such table/);
  const { path, closed } = places(t);
  const cached = new sqlite3.cached.Database(path());
  closed.push(() => called(cached, "close"));
  assert.equal(sqlite3.cached.Database(path()), cached);
});

test("what cannot be is refused before anything is done", async (t) => {
  const db = database(t);
  assert.throws(() => new Database(5), /String expected/);
  assert.throws(() => new sqlite3.Statement({}, "SELECT 1"), /Database object expected/);
  assert.throws(() => db.run(), /SQL query expected/);
  assert.throws(() => db.exec(), /Argument 0 must be a string/);
  assert.throws(() => db.configure("nothing", 1), /nothing is not a valid configuration option/);
  assert.throws(() => db.configure("limit", 1), /Expected 3arguments/);
  const failed = await new Promise((resolve) => new Database(join(folder(t), "no/where.db"), resolve));
  assert.equal(failed.message, "SQLITE_CANTOPEN: unable to open database file");
  const misused = await new Promise((resolve) => new Database(":memory:", 16, resolve));
  assert.equal(misused.code, "SQLITE_MISUSE");
  await called(db, "wait");
  await assert.rejects(called(db, "loadExtension", "/nowhere"), { code: "SQLITE_ERROR" });
  assert.deepEqual((await called(db, "get", "SELECT 1 AS a")).value, { a: 1 });
  await assert.rejects(called(db, "loadExtension", "/nowhere"), /before anything else is done/);
});

test("a copy replaces no file that somebody writes", async (t) => {
  const { path, opened } = places(t);
  const copy = path("copy.db");
  const [db, target] = [opened(path()), opened(copy)];
  await called(db, "exec", "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
  await called(target, "exec", "CREATE TABLE u (a); BEGIN IMMEDIATE");
  const backup = db.backup(copy);
  await assert.rejects(called(backup, "step", -1), { code: "SQLITE_BUSY" });
  assert.deepEqual([backup.completed, backup.failed, backup.idle], [false, false, true]);
  await called(target, "close");
  await called(backup, "step", -1);
  assert.deepEqual([backup.completed, backup.remaining], [true, 0]);
  const made = opened(copy);
  assert.deepEqual((await called(made, "all", "SELECT * FROM t")).value, [{ a: 1 }]);
});

test("a PRAGMA in a transaction begins no snapshot", async (t) => {
  const { path, opened } = places(t);
  const [one, other] = [opened(path()), opened(path())];
  await called(one, "exec", "CREATE TABLE t (a)");
  await called(other, "exec", "BEGIN; PRAGMA read_uncommitted = OFF; PRAGMA foreign_keys");
  await called(one, "run", "INSERT INTO t VALUES (1)");
  assert.deepEqual((await called(other, "all", "SELECT a FROM t")).value, [{ a: 1 }]);
  await called(other, "exec", "INSERT INTO t VALUES (2); COMMIT");
});

test("the guide has the results of the suites", () => {
  assert.equal(written(), table());
});
