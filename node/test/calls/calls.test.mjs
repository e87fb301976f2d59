// How a call begins, what it returns, and what its errors say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRequire } from "node:module";
import { FlatwaterError, open, sql } from "../../dist/index.mjs";
import { database, ENDLESS, folder, numbers, run } from "../support.mjs";

test("a call never throws, and always returns a promise", async (t) => {
  const db = await database(t);
  const throwing = {
    get name() {
      throw new RangeError("from the program");
    },
  };
  const calls = [
    [() => db.execute(1), "misuse"],
    [() => db.execute("SELECT ?", [undefined]), "misuse"],
    [() => db.execute("SELECT ?", 1), "misuse"],
    [() => db.query("SELECT 1", [], { rows: "rows" }), "misuse"],
    [() => db.query("SELECT 1", [], { integers: "all" }), "misuse"],
    [() => db.query("SELECT 1", [], { timeout: "1" }), "misuse"],
    [() => db.query("SELEC 1"), "sql"],
    [() => db.executeMany("INSERT INTO t VALUES (?)", "rows"), "misuse"],
    [() => db.batch(1), "misuse"],
    [() => db.migrate(1), "misuse"],
    [() => open(":memory:", { readers: "two" }), "misuse"],
  ];
  for (const [call, kind] of calls) {
    const promise = call();
    assert.ok(promise instanceof Promise, call.toString());
    await assert.rejects(promise, (error) => error instanceof FlatwaterError && error.kind === kind, call.toString());
  }
  await assert.rejects(db.execute("SELECT :name", throwing), RangeError);
});

test("a call begins when it is made", async (t) => {
  const db = await database(t);
  const first = db.execute("CREATE TABLE t (a)");
  const inserts = Array.from({ length: 200 }, (_, at) => db.execute("INSERT INTO t VALUES (?)", [at]));
  const count = db.queryValue("SELECT count(*) FROM t");
  await Promise.all([first, ...inserts]);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 200);
  await count;
});

test("a write that was submitted before the close succeeds, and a call after it is refused", async (t) => {
  const path = `${folder(t)}/a.db`;
  const db = await open(path);
  await db.execute("CREATE TABLE t (a)");
  const inserts = Array.from({ length: 300 }, (_, at) => db.execute("INSERT INTO t VALUES (?)", [at]));
  const closed = db.close();
  await assert.rejects(db.execute("INSERT INTO t VALUES (1)"), { kind: "closed", code: "FLATWATER_DATABASE_CLOSED" });
  await Promise.all(inserts);
  await closed;
  await db.close();
  const again = await open(path);
  assert.equal(await again.queryValue("SELECT count(*) FROM t"), 300);
  await again.close();
});

test("an error has its kind, its code, the SQL and the place, and no value", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a TEXT UNIQUE)");
  await db.execute("INSERT INTO t VALUES (?)", ["secret"]);
  await assert.rejects(db.execute("INSERT INTO t VALUES (?)", ["secret"]), (error) => {
    assert.equal(error.name, "FlatwaterError");
    assert.equal(error.kind, "constraint");
    assert.equal(error.code, "SQLITE_CONSTRAINT_UNIQUE");
    assert.equal(error.errcode, 2067);
    assert.equal(error.sql, "INSERT INTO t VALUES (?)");
    assert.equal(error.retryable, false);
    assert.ok(!JSON.stringify(error).includes("secret") && !error.message.includes("secret"));
    return true;
  });
  await assert.rejects(db.query("SELECT * FORM t"), { kind: "sql", offset: 9 });
  await assert.rejects(db.execute("BEGIN"), /db\.transaction\(async tx/);
});

test("an error that the operating system caused has its error as the cause", async (t) => {
  await assert.rejects(open(`${folder(t)}/${"x".repeat(300)}`), ({ kind, cause }) => {
    assert.deepEqual([kind, cause.code, cause instanceof Error], ["open", "ENAMETOOLONG", true]);
    return true;
  });
  await assert.rejects(open("/no/such/folder/a.db"), (error) => error.kind === "open" && !("cause" in error));
});

test("the stack of an error shows who made the call, on either road", async (t) => {
  const db = await database(t);
  async function theCaller(text) {
    await db.query(text);
  }
  for (const text of [
    "SELECT * FROM nowhere",
    `SELECT abs(-9223372036854775808) FROM (${ENDLESS.replace("FROM c)", "FROM c LIMIT 9)")})`,
  ]) {
    await assert.rejects(theCaller(text), (error) => error.stack.includes("theCaller"));
  }
});

test("a rejection that nobody awaits ends the program, as any other", async () => {
  const { code, errors } = await run(`
    const db = await open(":memory:");
    db.execute("INSERT INTO nowhere VALUES (1)");
    await new Promise((resolve) => setTimeout(resolve, 60_000));`);
  assert.equal(code, 1);
  assert.match(errors, /no such table: nowhere/);
});

test("options that are misspelt or of another library are answered with what to write", async (t) => {
  await assert.rejects(open(":memory:", { busyTimeuot: 1 }), /did you mean "busyTimeout"/);
  await assert.rejects(open(":memory:", { queue: 1 }), /belongs into `tuning`/);
  await assert.rejects(open(":memory:", { tuning: { readers: 1 } }), /is no key of `tuning`/);
  await assert.rejects(open(":memory:", { timeout: -1 }), /a number of milliseconds/);
  const db = await database(t);
  assert.throws(() => db.pragma("user_version"), /run the PRAGMA with `query`/);
  assert.throws(() => db.exec(""), /`executeScript`/);
});

test("the module for require is that for import", () => {
  const required = createRequire(import.meta.url)("../../dist/index.js");
  assert.equal(required.open, open);
  assert.equal(required.FlatwaterError, FlatwaterError);
});

test("a template binds its values", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)");
  const name = "Robert'); DROP TABLE users; --";
  await db.execute(sql`INSERT INTO users (name) VALUES (${name}), (${"Ada"})`);
  const part = sql`name = ${"Ada"}`;
  assert.deepEqual(
    await db.sql`SELECT id FROM ${sql.id("users")} WHERE ${part} OR id IN ${sql.list([1, 7])} ORDER BY id`,
    [{ id: 1 }, { id: 2 }],
  );
  await assert.rejects(db.query(part, ["x"]), { kind: "misuse" });
  assert.equal(sql.id('a"`b').text, '`a"``b`');
  // Between double quotes SQLite would take it for a text.
  await assert.rejects(db.sql`SELECT ${sql.id("absent")} FROM users`, /no such column/);
});

test("a batch answers for each statement, and is undone as a whole", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a UNIQUE)");
  const results = await db.batch([
    ["INSERT INTO t VALUES (?) RETURNING a", ["x"]],
    "INSERT INTO t VALUES ('y')",
    sql`UPDATE t SET a = ${"z"} WHERE a = ${"y"}`,
  ]);
  assert.deepEqual(results[0].rows, [{ a: "x" }]);
  assert.deepEqual([results[0].changes, results[0].lastInsertRowid], [1, 1]);
  assert.deepEqual([results[1].changes, results[1].lastInsertRowid, results[2].changes], [1, 2, 1]);
  await assert.rejects(db.batch(["DELETE FROM t", "INSERT INTO t VALUES ('x'), ('x')"]), { kind: "constraint" });
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 2);
  await assert.rejects(db.batch(["SELECT 1", ["SELECT ?", [undefined]]]), /statement 1: parameter 1: undefined/);
});

test("an array takes its place in the queue when the call is made", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  // While the writer is taken, calls wait.
  let release;
  const begun = new Promise((resolve) => {
    const held = db.transaction(() => new Promise((end) => resolve((release = end))));
    t.after(() => held);
  });
  await begun;
  const calls = [
    db.executeMany("INSERT INTO t VALUES (?)", [["many"]]),
    db.execute("INSERT INTO t VALUES ('one')"),
    db.batch(["INSERT INTO t VALUES ('batch')"]),
    db.execute("INSERT INTO t VALUES ('last')"),
  ];
  release();
  await Promise.all(calls);
  assert.deepEqual(await db.queryValues("SELECT a FROM t ORDER BY rowid"), ["many", "one", "batch", "last"]);
});

test("a folder without a migration is refused by its name, and an empty list is not", async (t) => {
  const db = await database(t);
  const refused = (error) => error.kind === "misuse" && error.message.includes(path);
  const path = folder(t);
  await assert.rejects(db.migrate(path), refused);
  await assert.rejects(open(":memory:", { migrations: path }), refused);
  assert.deepEqual(await db.migrate([]), []);
});

test("a migration in the function of a transaction is refused at once", async (t) => {
  const db = await database(t);
  await db.transaction(async (tx) => {
    await tx.execute("CREATE TABLE t (a)");
    await assert.rejects(db.migrate([["001_u", "CREATE TABLE u (a)"]]), { kind: "misuse" });
  });
  assert.deepEqual(await db.migrate([["001_u", "CREATE TABLE u (a)"]]), ["001_u"]);
});

test("executeMany takes arrays, iterables and async iterables", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a, b)");
  const insert = "INSERT INTO t VALUES (:a, :b)";
  assert.equal(
    await db.executeMany(
      insert,
      Array.from({ length: 3000 }, (_, a) => ({ a, b: "array" })),
    ),
    3000,
  );
  function* some() {
    for (let a = 0; a < 1500; a++) yield { a, b: "iterable" };
  }
  assert.equal(await db.executeMany(insert, some()), 1500);
  async function* later() {
    for (let a = 0; a < 700; a++) yield { a, b: "async" };
  }
  assert.equal(await db.executeMany(insert, later()), 700);
  const rows = [
    [1, 1],
    [2, Symbol("x")],
  ];
  await assert.rejects(db.executeMany("INSERT INTO t VALUES (?, ?)", rows), /row 1: parameter 2: a symbol/);
  async function* fails() {
    yield { a: 1, b: 1 };
    throw new RangeError("no more");
  }
  await assert.rejects(db.executeMany(insert, fails()), RangeError);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 5200);
});

test("prepared statements have the words of better-sqlite3", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  const insert = await db.prepare("INSERT INTO t (a) VALUES (?)");
  assert.deepEqual(await insert.run("x"), { changes: 1, lastInsertRowid: 1 });
  assert.deepEqual(await insert.run(["y"]), { changes: 1, lastInsertRowid: 2 });
  const all = await db.prepare("SELECT id, a FROM t WHERE id >= ? ORDER BY id");
  assert.deepEqual(await all.all(1), [
    { id: 1, a: "x" },
    { id: 2, a: "y" },
  ]);
  assert.deepEqual(await all.get(2), { id: 2, a: "y" });
  assert.equal(await all.get(3), undefined);
  assert.deepEqual(await all.raw().all(2), [[2, "y"]]);
  assert.deepEqual(await all.pluck().all(1), [1, 2]);
  const seen = [];
  for await (const id of all.iterate(1)) seen.push(id);
  assert.deepEqual(seen, [1, 2]);
  const bound = (await db.prepare("SELECT :a AS a")).bind({ a: 7 });
  assert.deepEqual(await bound.get(), { a: 7 });
  await assert.rejects(db.prepare("SELEC"), { kind: "sql" });
  await db.transaction(async (tx) => {
    await insert.in(tx).run("z");
    assert.equal(await tx.queryValue("SELECT count(*) FROM t"), 3);
  });
});

test("JSON is a buffer in UTF-8", async (t) => {
  const db = await database(t);
  const json = await db.queryJson("SELECT 1 AS a, 'ä' AS b, 9007199254740993 AS c", [], { bigIntegersAsStrings: true });
  assert.ok(Buffer.isBuffer(json));
  assert.equal(json.toString(), '[{"a":1,"b":"ä","c":"9007199254740993"}]');
  assert.equal(JSON.parse(await db.queryJson(`${numbers(5000)} SELECT x FROM c`)).length, 5000);
});

test("rows become what the caller wants", async (t) => {
  const db = await database(t);
  class Point {
    get sum() {
      return this.x + this.y;
    }
  }
  const [point] = await db.query("SELECT 1 AS x, 2 AS y", [], { as: Point });
  assert.ok(point instanceof Point && point.sum === 3);
  const as = { parse: (row) => ({ doubled: row.x * 2 }) };
  assert.deepEqual(await db.queryOne("SELECT 4 AS x", [], { as }), { doubled: 8 });
  assert.equal(await db.queryOptional("SELECT 4 AS x WHERE 0", [], { as }), undefined);
  const refuses = {
    parse: () => {
      throw new RangeError("not this row");
    },
  };
  await assert.rejects(db.query("SELECT 1", [], { as: refuses }), RangeError);
});

test("the columns of a prepared statement have the shape of better-sqlite3's", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, plain)");
  const columns = async (text) => (await db.prepare(text)).columns();
  const of = (column, type) => ({ column, table: "users", database: "main", type });
  assert.deepEqual(await columns("SELECT id, name AS n, plain, upper(name) FROM users AS u"), [
    { name: "id", ...of("id", "INTEGER") },
    { name: "n", ...of("name", "TEXT") },
    { name: "plain", ...of("plain", null) },
    { name: "upper(name)", column: null, table: null, database: null, type: null },
  ]);
  const insert = await db.prepare("INSERT INTO users (name) VALUES ('x') RETURNING id");
  assert.deepEqual(
    (await insert.columns()).map(({ name }) => name),
    ["id"],
  );
  assert.equal(await db.queryValue("SELECT count(*) FROM users"), 0);
  await assert.rejects(columns("DELETE FROM users"), { kind: "misuse", message: /returns no rows/ });
  await assert.rejects(columns("PRAGMA user_version"), { kind: "misuse", message: /only when it runs/ });
});
